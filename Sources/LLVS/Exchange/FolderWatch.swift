/// Notices new names in a directory, on a thread of its own.
///
/// By inotify where there is one, and by the directory's time of change every two seconds besides: inotify
/// does not see what another host writes to a network file system, and watches may be used up. What
/// comes close together is reported once. A link in the place of the directory is not followed.
enum FolderWatch {
    static func start(_ path: String, _ changed: @escaping @Sendable () -> Void) throws -> any ExchangeObservation {
        // The state to compare with is that of now, not of when the thread gets to run.
        let watcher = try Watcher(path)
        return try ObservationThread(body: { state in watcher.run(state, changed) }, wake: { watcher.watch.signal() })
    }

    private final class Watcher: @unchecked Sendable {
        // Sendable: the thread of the observation owns what changes.
        let path: String, watch: PathWatch
        private var seen: System.Status?
        /// The directory that is watched.
        private var place: FileIdentity?
        static let pollMilliseconds: Int32 = 2_000
        /// How long it must be quiet after a change, so that a batch is one notification, and how often that may be waited for.
        static let quietMilliseconds: UInt32 = 50, longestBurst = 10

        init(_ path: String) throws {
            self.path = path
            seen = try? System.statusOfLink(path)
            place = seen.map(FileIdentity.init)
            watch = try PathWatch([WatchedDirectory(path)], whole: true)
        }

        func run(_ state: ObservationThread.State, _ changed: () -> Void) {
            while !state.stops {
                let woken = watch.wait(Watcher.pollMilliseconds)
                if state.stops { return }
                let now = try? System.statusOfLink(path)
                let there = now.map(FileIdentity.init)
                if there != place { watch.beginAnew() } else { watch.renew() }
                place = there
                guard woken == .changed || (now != nil && now != seen) else { seen = now; continue }
                _ = watch.settle(Watcher.quietMilliseconds, atMost: Watcher.longestBurst)
                if state.stops { return }
                seen = try? System.statusOfLink(path)
                changed()
            }
        }
    }
}
