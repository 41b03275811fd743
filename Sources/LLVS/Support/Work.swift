#if DEBUG
import CLLVSShims
#endif

/// Counts what this thread does, in debug builds, so that tests see what an operation costs on any machine. (`MapWork`
/// counts the nodes of maps.)
enum Work: UInt32 {
    /// Pages of tables of changes that were checked, to be read.
    case pages = 2
    /// Versions that were passed on a walk through history.
    case versions = 3
    /// Blobs that were looked for.
    case blobs = 4
    /// Steps of loops that ask a control whether it is time to look.
    case looks = 5
    /// Damages that were looked at to be told of once.
    case damages = 6
    /// Values that were compared, to see whether states are equal, or how to merge them.
    case comparisons = 7
    /// Values that were merged inside.
    case merges = 8
    /// Times that it was asked whether the map of a version is in memory.
    case mapLooks = 9
    /// Versions that were gone back over for a value, since no index tells of them yet.
    case unindexed = 10
    /// Bytes of names that were compared beyond the first that differ, to put members into their order.
    case names = 11
    /// Values that were read to find the places of conflicts in them.
    case documents = 12

    #if DEBUG
    func count(_ more: Int = 1) { _ = llvs_shim_thread_count(rawValue, UInt64(truncatingIfNeeded: more)) }
    /// How many the body made.
    func counting(_ body: () throws -> Void) rethrows -> Int {
        let before = llvs_shim_thread_count(rawValue, 0)
        try body()
        return Int(truncatingIfNeeded: llvs_shim_thread_count(rawValue, 0) &- before)
    }
    #else
    @inline(__always) func count(_ more: @autoclosure () -> Int = 1) {}
    #endif
}
