#if DEBUG
import CLLVSShims
#endif

/// Counts what this thread does, in debug builds, so that tests can check the cost of an operation on any machine. (`MapWork` counts the
/// nodes of maps.)
@usableFromInline
package enum Work: UInt32 {
    /// Pages of change tables that were checked.
    case pages = 2
    /// Versions that were visited on a walk through the history.
    case versions = 3
    /// Blobs that were looked up.
    case blobs = 4
    /// Steps of loops that call a control.
    case looks = 5
    /// Comparisons of damages, to report each once.
    case damages = 6
    /// Values that were compared, to see whether states are equal, or how to merge them.
    case comparisons = 7
    /// Values that were merged inside.
    case merges = 8
    /// Checks whether the map of a version is in memory.
    case mapLooks = 9
    /// Versions that were visited to find a value, since no index covers them yet.
    case unindexed = 10
    /// Bytes of names that were compared beyond the first difference, to sort members.
    case names = 11
    /// Values that were read to find the places of conflicts in them.
    case documents = 12
    /// Values that were looked up at a version, to undo saves.
    case undoneValues = 13
    /// Versions that were considered for a value, to undo saves.
    case undoneSteps = 14

    #if DEBUG
    /// Adds to the count of this thread, in debug builds alone.
    package func count(_ more: Int = 1) { _ = llvs_shim_thread_count(rawValue, UInt64(truncatingIfNeeded: more)) }
    /// Returns how many the body caused.
    func counting(_ body: () throws -> Void) rethrows -> Int {
        let before = llvs_shim_thread_count(rawValue, 0)
        try body()
        return Int(truncatingIfNeeded: llvs_shim_thread_count(rawValue, 0) &- before)
    }
    #else
    /// Does nothing: counts exist in debug builds alone.
    @inlinable @inline(__always) package func count(_ more: @autoclosure () -> Int = 1) {}
    #endif
}
