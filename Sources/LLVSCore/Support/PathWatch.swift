import CLLVSShims

/// A directory in which other processes may add files.
package struct WatchedDirectory: Sendable {
    /// The path of the directory.
    package var path: String
    /// Returns whether a file matters, by its name; nil if all do.
    package var names: (@Sendable (String) -> Bool)?
    /// Whether it may be missing. Then it is searched again whenever something happens.
    package var isOptional: Bool
    /// Creates a watched directory. An optional one need not exist yet.
    package init(_ path: String, isOptional: Bool = false, names: (@Sendable (String) -> Bool)? = nil) {
        self.path = path; self.isOptional = isOptional; self.names = names
    }
}

/// Waits until a file in one of some directories is written, a thread signals, or a time has passed.
///
/// The host may close the library's descriptors, or reuse their numbers. If it does, none of them is used any more.
///
/// It uses inotify. That does not report writes of another host to a network file system, and the system's watches may be exhausted. Then
/// the caller must poll (`isTold`).
package final class PathWatch: @unchecked Sendable {
    // Sendable: `lock` guards what is documented to be under it; the waiting thread owns the rest.
    package enum Woken { case changed, signalled, late }

    private let places: [WatchedDirectory]
    /// Used by the waiting thread only.
    private var watched: [Int32: Int] = [:]
    private let inotify: Int32
    private let reading: Int32, writing: Int32
    private let isReliable: Bool
    private let lock = Lock(.leaf)
    private var isSignalled = false
    /// The files of the descriptors. Guarded by `lock`, like `wasLost`.
    private var owned: [(descriptor: Int32, identity: FileIdentity)] = []
    private var wasLost = false
    /// The events requested from inotify.
    private let events: UInt32
    /// Whether only closed or renamed files matter.
    private let isWhole: Bool

    /// - Parameters:
    ///   - asks: false simulates a system without inotify.
    ///   - whole: whether only closed or renamed files matter. Then links at the end of the paths are not followed.
    /// - Throws: if there are no descriptors, the error for that.
    package init(_ places: [WatchedDirectory], asks: Bool = true, whole: Bool = false) throws {
        self.places = places
        isWhole = whole
        #if os(Linux)
        let all = IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_CREATE
        events = UInt32(IN_ONLYDIR) | (whole ? UInt32(all) | UInt32(IN_DONT_FOLLOW) : UInt32(all | IN_MODIFY))
        #else
        events = 0
        #endif
        (reading, writing) = try posix("Watching", places.first?.path ?? "") { () throws(Errno) in try System.pipe() }
        #if os(Linux)
        inotify = asks && !places.isEmpty ? (try? System.inotify()) ?? -1 : -1
        #else
        inotify = -1
        #endif
        for descriptor in [reading, writing, inotify] where descriptor >= 0 {
            guard let status = try? System.status(descriptor) else { continue }
            owned.append((descriptor, FileIdentity(status)))
        }
        isReliable = places.allSatisfy { $0.isOptional || llvs_shim_is_local($0.path) == 1 }
        renew()
    }
    deinit {
        if isLost() { return }
        for descriptor in [reading, writing, inotify] where descriptor >= 0 { System.close(descriptor) }
    }

    /// Whether the host has taken over one of the descriptors. Other kinds of inotify's class (epoll, eventfd) look the same; a pipe does
    /// not.
    private func isLost() -> Bool { lock.withLock { isLostNow() } }
    /// Precondition: `lock` is held.
    private func isLostNow() -> Bool {
        if wasLost { return true }
        wasLost = owned.contains { owned in (try? System.status(owned.descriptor)).map(FileIdentity.init) != owned.identity }
        return wasLost
    }

    /// Whether every event is reported. Used by the waiting thread.
    var isTold: Bool {
        if isLost() { return false }
        let known = Set(watched.values)
        return isReliable && places.indices.allSatisfy { places[$0].isOptional || known.contains($0) }
    }

    /// Ends the wait, now or when it begins. Any thread.
    package func signal() {
        guard
            lock.withLock({
                let was = isSignalled; isSignalled = true; return !was && !isLostNow()
            })
        else { return }
        var byte: UInt8 = 0
        _ = write(writing, &byte, 1)
    }

    /// - Parameter milliseconds: the longest wait; negative for no limit.
    package func wait(_ milliseconds: Int32) -> Woken {
        var descriptors = [pollfd(fd: reading, events: Int16(POLLIN), revents: 0)]
        if inotify >= 0 { descriptors.append(pollfd(fd: inotify, events: Int16(POLLIN), revents: 0)) }
        let steady = Clock.steady()
        if isLost() { return pause(milliseconds) }
        while true {
            let rest = milliseconds < 0 ? -1 : Int32(max(0, Double(milliseconds) - (Clock.steady() - steady) * 1_000))
            let count = poll(&descriptors, nfds_t(descriptors.count), rest)
            if count < 0, errno == EINTR { continue }
            // After an error, pause instead of looping without a pause.
            if count < 0 { usleep(100_000) }
            guard count > 0 else { return .late }
            if isLost() { return pause(rest) }
            if descriptors.count > 1, descriptors[1].revents != 0, drain() { return .changed }
            if takeSignal() { return .signalled }
        }
    }

    /// Without descriptors, waits at most two seconds, so that the caller polls.
    private func pause(_ milliseconds: Int32) -> Woken {
        for _ in 0..<(milliseconds < 0 ? 20 : max(1, min(20, milliseconds / 100))) {
            if takeSignal() { return .signalled }
            usleep(100_000)
        }
        return .late
    }

    /// Waits until there is no event for some milliseconds, at most this many times: events in quick succession count as one change.
    /// Returns whether there was one.
    package func settle(_ milliseconds: UInt32, atMost times: Int) -> Bool {
        var any = false
        for _ in 0..<times {
            usleep(milliseconds * 1_000)
            let changed = drain(), signalled = takeSignal()
            any = any || changed
            if !changed, !signalled { break }
        }
        return any
    }

    /// Watches directories that exist again.
    package func renew() {
        #if os(Linux)
        guard inotify >= 0, !isLost() else { return }
        for (i, place) in places.enumerated() where !watched.values.contains(i) {
            let watch = inotify_add_watch(inotify, place.path, events)
            if watch >= 0 { watched[watch] = i }
        }
        #endif
    }

    /// Watches other directories if the paths now lead to others.
    package func beginAnew() {
        #if os(Linux)
        if isLost() { return }
        for watch in watched.keys { inotify_rm_watch(inotify, watch) }
        watched = [:]
        renew()
        #endif
    }

    private func takeSignal() -> Bool {
        lock.withLock {
            let was = isSignalled
            isSignalled = false
            if isLostNow() { return was }
            // The byte of a signal may arrive after the signal was handled.
            var bytes: UInt64 = 0
            while read(reading, &bytes, 8) > 0 {}
            return was
        }
    }

    /// Reads the events that have arrived. Returns whether one of them matters.
    private func drain() -> Bool {
        #if os(Linux)
        guard inotify >= 0, !isLost() else { return false }
        var buffer = [UInt8](repeating: 0, count: 16 << 10), matters = false
        while true {
            let count = read(inotify, &buffer, buffer.count)
            guard count > 0 else { break }
            buffer.withUnsafeBytes { bytes in
                let head = MemoryLayout<inotify_event>.size
                var at = 0
                while at + head <= count {
                    let event = bytes.loadUnaligned(fromByteOffset: at, as: inotify_event.self)
                    let start = at + head, end = min(count, start + Int(event.len))
                    at = start + Int(event.len)
                    if note(event, name: String(decoding: bytes[start..<end].prefix { $0 != 0 }, as: UTF8.self)) { matters = true }
                }
            }
        }
        if matters { renew() }
        return matters
        #else
        return false
        #endif
    }

    #if os(Linux)
    private func note(_ event: inotify_event, name: String) -> Bool {
        if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
        if event.mask & UInt32(IN_IGNORED | IN_MOVE_SELF) != 0 {
            if let gone = watched.removeValue(forKey: event.wd) {
                inotify_rm_watch(inotify, event.wd)
                return !places[gone].isOptional
            }
            return false
        }
        guard let i = watched[event.wd] else { return false }
        // A new file is not complete yet, but a new directory exists.
        if isWhole, event.mask & UInt32(IN_CREATE) != 0, event.mask & UInt32(IN_ISDIR) == 0 { return false }
        return places[i].names?(name) ?? true
    }
    #endif
}
