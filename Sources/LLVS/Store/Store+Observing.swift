/// Hearing of versions that come, whoever adds them.
extension Store {
    /// Calls back soon after versions have come into the history, on a thread of its own, one call at a time, until cancelled:
    /// versions of other processes and handles, which are looked for when something happens where the records rest, and those
    /// that were added through this handle. What comes close together is one call.
    ///
    /// Where the file system does not tell, and where others may write unseen, the storage is looked at every two seconds. A
    /// storage that cannot be watched (memory, the host's) tells of what comes through this handle, a reload included.
    ///
    /// The store is not kept open by it: nothing is heard once it is closed or let go of.
    /// - Throws: `.closed`, `.busy` and `.io`.
    public func observeAdditions(_ changed: @escaping @Sendable () -> Void) throws -> any ExchangeObservation {
        try checkOpen()
        let watch = try PathWatch(storage.watchedPlaces, asks: environment.asksForChanges)
        let news = News(), interval = environment.lookInterval
        let added = observers.add { _ in
            news.add()
            watch.signal()
        }
        do {
            let thread = try ObservationThread(
                body: { [weak self, isWatched = !storage.watchedPlaces.isEmpty] state in
                    // What came while nobody watched is looked for at first.
                    var looks = isWatched
                    while !state.stops {
                        if looks {
                            guard let store = self, store.look() else { return }
                        }
                        if news.take(), !state.stops { changed() }
                        if state.stops { return }
                        let woken = watch.wait(isWatched && !watch.isTold ? interval : -1)
                        if state.stops { return }
                        if woken == .late { watch.renew() }
                        let more = woken != .late && watch.settle(StoreNews.quietMilliseconds, atMost: StoreNews.longestBurst)
                        looks = isWatched && (woken != .signalled || more)
                    }
                }, wake: { watch.signal() })
            return StoreNews(thread, added)
        } catch {
            added.cancel()
            throw error
        }
    }

    /// Picks up what came; false when the store is closed.
    private func look() -> Bool {
        do { try reloadHistory() } catch {
            if (error as? StoreError)?.code == .closed { return false }
            // Whoever reads or saves is told; it may be over by the next look.
            Log.write(.debug, "Looking for new versions in \(description) failed: \(error)")
        }
        return true
    }

    /// Whether versions came since somebody asked.
    private final class News: @unchecked Sendable {
        // Sendable: `lock` guards all that changes.
        private let lock = Lock(.leaf)
        private var any = false
        func add() { lock.withLock { any = true } }
        func take() -> Bool {
            lock.withLock {
                let was = any; any = false; return was
            }
        }
    }
}

/// An observation of a store.
final class StoreNews: ExchangeObservation, @unchecked Sendable {
    // Sendable: both observations are safe from all threads, and it does not change.
    /// How long it must be quiet after a change, and how often that may be waited for.
    static let quietMilliseconds: UInt32 = 10, longestBurst = 10
    private let thread: ObservationThread
    private let added: any ExchangeObservation
    init(_ thread: ObservationThread, _ added: any ExchangeObservation) { self.thread = thread; self.added = added }
    deinit { cancel() }

    func cancel() {
        added.cancel()
        thread.cancel()
    }
}
