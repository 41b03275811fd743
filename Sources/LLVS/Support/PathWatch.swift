import CLLVSShims
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A directory in which others may add something.
public struct WatchedPlace: Sendable {
    /// Of the directory.
    public var path: String
    /// Which files in it matter, by their names; nil: all.
    public var names: (@Sendable (String) -> Bool)?
    /// Whether it may be missing: it is looked for again whenever something happens.
    public var isOptional: Bool
    public init(_ path: String, isOptional: Bool = false, names: (@Sendable (String) -> Bool)? = nil) {
        self.path = path; self.isOptional = isOptional; self.names = names
    }
}

/// Waits until something is written into one of some directories, or somebody signals, or for a time.
///
/// By inotify. It tells nothing of what another host writes to a network file system, and watches may be used up: who waits
/// then looks by himself from time to time (`isTold`).
final class PathWatch: @unchecked Sendable {
    enum Woken { case changed, signalled, late }

    private let places: [WatchedPlace]
    /// Read and written by the thread that waits.
    private var watched: [Int32: Int] = [:]
    private let inotify: Int32
    private let reading: Int32, writing: Int32
    private let isReliable: Bool
    private let lock = Lock()
    private var isSignalled = false

    /// - Parameter asks: false: as where there is no inotify.
    /// - Throws: `.busy` and `.io`, when there is no descriptor for it.
    init(_ places: [WatchedPlace], asks: Bool = true) throws {
        self.places = places
        (reading, writing) = try PathWatch.pipe(places.first?.path ?? "")
        inotify = asks && !places.isEmpty ? PathWatch.makeInotify() : -1
        isReliable = !places.contains { PathWatch.isRemote($0.path) }
        renew()
    }
    deinit {
        for descriptor in [reading, writing, inotify] where descriptor >= 0 { close(descriptor) }
    }

    /// Whether all that happens is told. Asked by the thread that waits.
    var isTold: Bool {
        let known = Set(watched.values)
        return isReliable && places.indices.allSatisfy { places[$0].isOptional || known.contains($0) }
    }

    /// Ends the wait, now or when it begins. Any thread.
    func signal() {
        guard lock.withLock({ let was = isSignalled; isSignalled = true; return !was }) else { return }
        var byte: UInt8 = 0
        _ = write(writing, &byte, 1)
    }

    /// - Parameter milliseconds: how long at most; negative: for ever.
    func wait(_ milliseconds: Int32) -> Woken {
        var descriptors = [pollfd(fd: reading, events: Int16(POLLIN), revents: 0)]
        if inotify >= 0 { descriptors.append(pollfd(fd: inotify, events: Int16(POLLIN), revents: 0)) }
        let steady = Clock.steady()
        while true {
            let rest = milliseconds < 0 ? -1 : Int32(max(0, Double(milliseconds) - (Clock.steady() - steady) * 1_000))
            let count = poll(&descriptors, nfds_t(descriptors.count), rest)
            if count < 0, errno == EINTR { continue }
            // A failure is a pause, not a loop without one.
            if count < 0 { usleep(100_000) }
            guard count > 0 else { return .late }
            if descriptors.count > 1, descriptors[1].revents != 0, drain() { return .changed }
            if takeSignal() { return .signalled }
        }
    }

    /// Waits until nothing more comes for some milliseconds, but no longer than so many times: what comes close together is one change.
    /// True when there was a change.
    func settle(_ milliseconds: UInt32, atMost times: Int) -> Bool {
        var any = false
        for _ in 0..<times {
            usleep(milliseconds * 1_000)
            let changed = drain(), signalled = takeSignal()
            any = any || changed
            if !changed, !signalled { break }
        }
        return any
    }

    /// Watches what is there again.
    func renew() {
        #if os(Linux)
        guard inotify >= 0 else { return }
        let events = IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE_SELF | IN_MOVE_SELF
        for (i, place) in places.enumerated() where !watched.values.contains(i) {
            let watch = inotify_add_watch(inotify, place.path, UInt32(events) | UInt32(IN_ONLYDIR))
            if watch >= 0 { watched[watch] = i }
        }
        #endif
    }

    private func takeSignal() -> Bool {
        lock.withLock {
            guard isSignalled else { return false }
            isSignalled = false
            var byte: UInt8 = 0
            _ = read(reading, &byte, 1)
            return true
        }
    }

    /// Takes the events that have come; whether one of them matters.
    private func drain() -> Bool {
        #if os(Linux)
        guard inotify >= 0 else { return false }
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
        return places[i].names?(name) ?? true
    }
    #endif

    // MARK: Descriptors

    private static func pipe(_ path: String) throws -> (Int32, Int32) {
        var ends: (Int32, Int32) = (-1, -1)
        let made = withUnsafeMutableBytes(of: &ends) { bytes in
            #if canImport(Glibc)
            Glibc.pipe(bytes.assumingMemoryBound(to: Int32.self).baseAddress)
            #elseif canImport(Musl)
            Musl.pipe(bytes.assumingMemoryBound(to: Int32.self).baseAddress)
            #else
            Darwin.pipe(bytes.assumingMemoryBound(to: Int32.self).baseAddress)
            #endif
        }
        guard made == 0 else { throw StoreError.posix(Errno.current, doing: "Watching", path: path) }
        return (beyondStandard(ends.0), beyondStandard(ends.1))
    }

    private static func makeInotify() -> Int32 {
        #if os(Linux)
        let made = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
        return made < 0 ? -1 : beyondStandard(made)
        #else
        return -1
        #endif
    }

    /// 0 to 2 are the host's, also while they are closed.
    private static func beyondStandard(_ descriptor: Int32) -> Int32 {
        guard descriptor >= 0, descriptor <= 2 else {
            if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
            return descriptor
        }
        let other = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        close(descriptor)
        return other
    }

    /// Whether others may write there of whom this kernel does not know: network file systems, and those of programs (FUSE).
    private static func isRemote(_ path: String) -> Bool {
        #if os(Linux)
        let kinds: Set<UInt32> = [
            0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42,  // NFS, SMB, CIFS, SMB 2
            0x6573_5546, 0x0102_1997, 0x5346_414F, 0x6B41_4653,  // FUSE, 9P, AFS, AFS of the kernel
            0x00C3_6400, 0x0BD0_0BD0, 0x4750_4653, 0x7375_7245, 0x0116_1970,  // Ceph, Lustre, GPFS, Coda, GFS 2
        ]
        return kinds.contains(llvs_shim_file_system(path))
        #else
        return true
        #endif
    }
}
