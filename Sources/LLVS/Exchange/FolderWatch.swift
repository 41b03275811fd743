/// Notices new names in directories, on a thread of its own.
///
/// By inotify where there is one, and by the directories' times of change every two seconds besides: inotify
/// does not see what another host writes to a network file system, and watches may be used up. What
/// comes close together is reported once. A link in the place of a directory is not followed.
enum FolderWatch {
    /// - Parameter places: a directory that is missing is watched once it is there. If it is optional, that it goes is not reported.
    static func start(_ places: [WatchedDirectory], _ changed: @escaping @Sendable () -> Void) throws -> any ExchangeObservation {
        // The state to compare with is that of now, not of when the thread gets to run.
        let watcher = try Watcher(places)
        return try ObservationThread(body: { state in watcher.run(state, changed) }, wake: { watcher.watch.signal() })
    }

    private final class Watcher: @unchecked Sendable {
        // Sendable: the thread of the observation owns what changes.
        let paths: [String], watch: PathWatch
        /// What was at each of the paths when they were looked at last.
        private var seen: [System.Status?]
        static let pollMilliseconds: Int32 = 2_000
        /// How long it must be quiet after a change, so that a batch is one notification, and how often that may be waited for.
        static let quietMilliseconds: UInt32 = 50, longestBurst = 10

        init(_ places: [WatchedDirectory]) throws {
            paths = places.map(\.path)
            seen = paths.map { try? System.statusOfLink($0) }
            watch = try PathWatch(places, whole: true)
        }

        func run(_ state: ObservationThread.State, _ changed: () -> Void) {
            // The directories that are watched.
            var places = seen.map { $0.map(FileIdentity.init) }
            while !state.stops {
                let woken = watch.wait(Watcher.pollMilliseconds)
                if state.stops { return }
                let now = paths.map { try? System.statusOfLink($0) }, there = now.map { $0.map(FileIdentity.init) }
                if there != places { watch.beginAnew() } else { watch.renew() }
                places = there
                guard woken == .changed || zip(now, seen).contains(where: { $0 != nil && $0 != $1 }) else { seen = now; continue }
                _ = watch.settle(Watcher.quietMilliseconds, atMost: Watcher.longestBurst)
                if state.stops { return }
                seen = paths.map { try? System.statusOfLink($0) }
                changed()
            }
        }
    }
}
