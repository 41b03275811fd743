/// Notices new names in directories, on a thread of its own.
///
/// Uses inotify if the system has it, and checks the directories' times of change every two seconds: inotify does not see writes by other
/// hosts to a network file system, and watches may be exhausted. Changes close together are reported once. A link in the place of a
/// directory is not followed.
enum FolderWatch {
    /// - Parameter places: a missing directory is watched once it exists. The removal of an optional one is not reported.
    static func start(_ places: [WatchedDirectory], _ changed: @escaping @Sendable () -> Void) throws -> any ExchangeObservation {
        // The baseline is the state at this moment, not when the thread begins to run.
        let watcher = try Watcher(places)
        return try ObservationThread(body: { state in watcher.run(state, changed) }, wake: { watcher.watch.signal() })
    }

    private final class Watcher: @unchecked Sendable {
        // Sendable: the thread of the observation owns what changes.
        let paths: [String], watch: PathWatch
        /// The status of each path at the last check.
        private var seen: [System.Status?]
        static let pollMilliseconds: Int32 = 2_000
        /// How long it must be quiet after a change, so that a batch is one notification, and how often that wait may be repeated.
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
