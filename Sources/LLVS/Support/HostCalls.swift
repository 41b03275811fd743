import CLLVSShims

/// Something that stays set while code of the host runs: a lock that is held, a mark of who is inside.
///
/// The host's callbacks must return. One that does not (longjmp, an exception of C++) leaves all that set; the next call of the
/// thread that it left from takes it back.
open class HostCallMark: @unchecked Sendable {
    // Sendable: it holds nothing; what derives from it says what guards its own.
    /// A mark that is not set yet: `HostCalls.run` sets it.
    public init() {}
    /// Called on the thread that set the mark, once the calls within will never return.
    open func hostLeft() {}
}

/// Knows, for each thread, what is set while code of the host runs.
///
/// A mark is bound to the thread and to a frame of its stack. A new call from a frame above that means that the frame is gone.
public enum HostCalls {
    /// Runs `body`, which may call the host. `observes`: in a callback that nobody waits for the result of.
    @inline(never)
    public static func run<R>(_ mark: HostCallMark, observes: Bool = false, _ body: () throws -> R) rethrows -> R {
        let entered = enter(mark, observes: observes)
        defer { leave(entered) }
        return try body()
    }

    /// A mark that is set.
    struct Entered {
        fileprivate let mark: Unmanaged<HostCallMark>
        /// Nil where there were too many marks for one more.
        fileprivate let frame: UInt?
    }

    /// As `run`, without a closure: until `leave`, which must follow in the same function. That is one which is never inlined, since
    /// its frame is what tells the mark from those of its callers.
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

    /// Takes back what calls left set that will never return, as a new call of this frame shows.
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

    /// Whether this thread is inside an unsolicited callback: there nobody waits for the end of another, which may be waiting for this one.
    public static var isObserving: Bool { llvs_shim_host_observes() != 0 }
}
