#if DEBUG
import CLLVSShims
#endif

/// Counts what this thread does with nodes of maps, in debug builds, so that tests see what an operation costs on any
/// machine.
enum MapWork {
    struct Counts: Equatable {
        /// Nodes that were looked at.
        var read: UInt64 = 0
        /// Nodes that were made.
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
