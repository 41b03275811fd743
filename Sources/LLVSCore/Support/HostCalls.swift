import CLLVSShims

/// A state that is set while code of the host runs: a held lock, or a record of which thread is inside.
///
/// The host's callbacks must return. If one does not (longjmp, a C++ exception), the state stays set. The next call on the same thread
/// resets it.
@_documentation(visibility: internal)
open class HostCallMark: @unchecked Sendable {
    // Sendable: it has no state. Subclasses document what guards their state.
    /// Creates a mark that is not set. `HostCalls.run` sets it.
    public init() {}
    /// Called on the thread that set the mark, once it is certain that the calls within will never return.
    open func hostLeft() {}
}

/// Tracks, for each thread, which marks are set while code of the host runs.
///
/// A mark is bound to the thread and to a frame of its stack. A new call from a frame above that one proves that the frame is gone.
@_documentation(visibility: internal)
public enum HostCalls {
    /// Runs `body`, which may call the host.
    /// - Parameters:
    ///   - mark: the mark that is set meanwhile.
    ///   - observes: whether this is a callback for whose result no call waits.
    ///   - body: the call of the host.
    @inline(never)
    public static func run<R>(_ mark: HostCallMark, observes: Bool = false, _ body: () throws -> R) rethrows -> R {
        let entered = enter(mark, observes: observes)
        defer { leave(entered) }
        return try body()
    }

    /// A set mark.
    package struct Entered {
        fileprivate let mark: Unmanaged<HostCallMark>
        /// Nil if there were too many marks to record another.
        fileprivate let frame: UInt?
    }

    /// The same as `run`, without a closure: the mark is set until `leave`, which must follow in the same function. That function must
    /// never be inlined: its frame distinguishes the mark from those of its callers.
    @inline(__always)
    static func enter(_ mark: HostCallMark, observes: Bool = false) -> Entered {
        let frame = llvs_shim_frame(), kept = Unmanaged.passRetained(mark)
        let isKnown = llvs_shim_host_enter(frame, kept.toOpaque(), observes ? 1 : 0) != 0
        return Entered(mark: kept, frame: isKnown ? frame : nil)
    }
    @inline(__always)
    static func leave(_ entered: Entered) {
        if let frame = entered.frame {
            cleanUp(frame)
            _ = llvs_shim_host_leave(frame)
        }
        entered.mark.release()
    }

    /// Resets the marks of calls that will never return, as a new call of this frame proves.
    @inline(__always)
    public static func cleanUp(_ frame: UInt) {
        if llvs_shim_host_depth() != 0 { cleanUpSlowly(frame) }
    }
    @inline(never)
    private static func cleanUpSlowly(_ frame: UInt) {
        while let left = llvs_shim_host_left(frame) {
            Waiting.forget()
            Unmanaged<HostCallMark>.fromOpaque(left).takeRetainedValue().hostLeft()
        }
    }

    /// Whether this thread is inside an observation callback. There, a call must not wait for another callback, which may be waiting for
    /// this one.
    public static var isObserving: Bool { llvs_shim_host_observes() != 0 }
}
