#if DEBUG
import CLLVSShims
#endif

/// Counts this thread's operations on nodes of maps, in debug builds, so that tests can check costs on any machine.
enum MapWork {
    struct Counts: Equatable {
        /// Nodes read.
        var read: UInt64 = 0
        /// Nodes made.
        var made: UInt64 = 0
    }

    #if DEBUG
    static func read() { _ = llvs_shim_thread_count(0, 1) }
    static func made() { _ = llvs_shim_thread_count(1, 1) }
    private static var now: Counts { Counts(read: llvs_shim_thread_count(0, 0), made: llvs_shim_thread_count(1, 0)) }
    static func counting(_ body: () throws -> Void) rethrows -> Counts {
        let before = now
        try body()
        return Counts(read: now.read &- before.read, made: now.made &- before.made)
    }
    #else
    @inline(__always) static func read() {}
    @inline(__always) static func made() {}
    #endif
}
