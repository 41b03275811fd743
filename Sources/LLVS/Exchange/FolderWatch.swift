/// Notices new names in a directory, on a thread of its own.
///
/// By inotify where there is one, and by the directory's time of change every two seconds besides: inotify
/// does not see what another host writes to a network file system, and watches may be used up. What
/// comes close together is reported once.
enum FolderWatch {
    static func start(_ path: String, _ changed: @escaping @Sendable () -> Void) throws -> any ExchangeObservation {
        let pipes = try StopPipe(path)
        let watcher = Watcher(path: path, pipes: pipes)
        // The state to compare with is that of now, not of when the thread gets to run.
        watcher.begin()
        return try ObservationThread(body: { state in watcher.run(state, changed) }, wake: { pipes.wake() })
    }

    /// Ends the wait of the watching thread.
    private final class StopPipe: Sendable {
        let reading: Int32, writing: Int32
        init(_ path: String) throws {
            (reading, writing) = try posix("Watching the folder", path) { () throws(Errno) in try System.pipe() }
        }
        func wake() { var byte: UInt8 = 0; _ = write(writing, &byte, 1) }
        deinit { close(reading); close(writing) }
    }

    private final class Watcher: @unchecked Sendable {
        let path: String, pipes: StopPipe
        var inotify: Int32 = -1
        var watch: Int32 = -1
        var seen: System.Status?
        static let pollMilliseconds: Int32 = 2_000
        /// How long it must be quiet after a change, so that a batch is one notification.
        static let quietMilliseconds: Int32 = 50
        static let longestBurst = 10 // quiet times

        init(path: String, pipes: StopPipe) { self.path = path; self.pipes = pipes }
        deinit { if inotify >= 0 { close(inotify) } }

        func begin() {
            seen = try? System.status(path)
            #if os(Linux)
            inotify = (try? System.inotify()) ?? -1
            #endif
            addWatch()
        }
        func addWatch() {
            #if os(Linux)
            guard inotify >= 0 else { return }
            watch = inotify_add_watch(inotify, path, UInt32(IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR | IN_DELETE_SELF | IN_MOVE_SELF))
            #endif
        }

        func run(_ state: ObservationThread.State, _ changed: () -> Void) {
            while !state.stops {
                let event = wait(Watcher.pollMilliseconds)
                if state.stops { return }
                let now = try? System.status(path)
                if now?.inode != seen?.inode || watch < 0 { addWatch() } // replaced, or made only now
                guard event || (now != nil && now != seen) else { seen = now; continue }
                for _ in 0..<Watcher.longestBurst where !state.stops {
                    pause(Watcher.quietMilliseconds)
                    if !drain() { break }
                }
                if state.stops { return }
                seen = try? System.status(path)
                changed()
            }
        }

        /// Whether something happened in that time.
        private func wait(_ milliseconds: Int32) -> Bool {
            var waiting = [pollfd(fd: pipes.reading, events: Int16(POLLIN), revents: 0)]
            if inotify >= 0 { waiting.append(pollfd(fd: inotify, events: Int16(POLLIN), revents: 0)) }
            guard poll(&waiting, nfds_t(waiting.count), milliseconds) > 0, waiting.count > 1, waiting[1].revents != 0 else { return false }
            return drain()
        }

        /// Waits without looking, unless it is time to stop.
        private func pause(_ milliseconds: Int32) {
            var waiting = pollfd(fd: pipes.reading, events: Int16(POLLIN), revents: 0)
            _ = poll(&waiting, 1, milliseconds)
        }

        /// Takes the events that have come; whether there were any.
        private func drain() -> Bool {
            guard inotify >= 0 else { return false }
            var buffer = [UInt8](repeating: 0, count: 16 << 10), any = false
            while read(inotify, &buffer, buffer.count) > 0 { any = true }
            return any
        }
    }
}
