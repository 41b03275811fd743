/// Observes new versions, whichever process adds them.
extension Store {
    /// Calls back soon after versions were added to the history, until cancelled. It reports versions of this handle, of other handles and
    /// of other processes; the storage is checked for the latter when something changes at its place. Calls are made one at a time, on a
    /// thread of its own. Versions that are added in quick succession cause one call.
    ///
    /// If the file system does not notify, or other machines may write unnoticed, the storage is checked every two seconds. If a storage
    /// cannot be watched (memory, the host's), only versions that come through this handle are reported, including those of a reload.
    ///
    /// The observation does not keep the store open. It ends when the store is closed or released.
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
                    // First check for what was added before the watch began.
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

    /// Reads new versions. Returns false if the store is closed.
    private func look() -> Bool {
        do { try reloadHistory() } catch {
            if (error as? StoreError)?.code == .closed { return false }
            // Readers and writers get the error. It may be gone at the next check.
            Log.write(.debug, "Checking for new versions in \(description) failed: \(error)")
        }
        return true
    }

    /// Whether versions were added since the last query.
    private final class News: @unchecked Sendable {
        // Sendable: `lock` guards all mutable state.
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
    /// How long it must be quiet after a change, and how many such waits there may be.
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
