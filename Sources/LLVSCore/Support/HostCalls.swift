import CLLVSShims

/// A state that is set while code of the host runs: a held lock, or a record of which thread is inside.
///
/// The host's callbacks must return. If one does not (longjmp, a C++ exception), the state stays set. The next call on the same thread
/// resets it.
package protocol HostCallMark: AnyObject, Sendable {
    /// Called on the thread that set the mark, once it is certain that the calls within will never return.
    func hostLeft()
}

/// A mark without state.
package final class PlainMark: HostCallMark {
    package init() {}
    package func hostLeft() {}
}

/// Tracks, for each thread, which marks are set while code of the host runs.
///
/// A mark is bound to the thread and to a frame of its stack. A new call from a frame above that one proves that the frame is gone.
@usableFromInline
package enum HostCalls {
    /// Runs `body`, which may call the host.
    /// - Parameters:
    ///   - mark: the mark that is set meanwhile.
    ///   - observes: whether this is a callback for whose result no call waits.
    ///   - body: the call of the host.
    @inline(never)
    package static func run<R>(_ mark: any HostCallMark, observes: Bool = false, _ body: () throws -> R) rethrows -> R {
        let entered = enter(mark, observes: observes)
        defer { leave(entered) }
        return try body()
    }

    /// A set mark.
    package struct Entered {
        fileprivate let mark: Unmanaged<AnyObject>
        /// Nil if there were too many marks to record another.
        fileprivate let frame: UInt?
    }

    /// The same as `run`, without a closure: the mark is set until `leave`, which must follow in the same function. That function must
    /// never be inlined: its frame distinguishes the mark from those of its callers.
    @inline(__always)
    static func enter(_ mark: any HostCallMark, observes: Bool = false) -> Entered {
        let frame = llvs_shim_frame(), kept = Unmanaged<AnyObject>.passRetained(mark)
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
    @inlinable @inline(__always)
    package static func cleanUp(_ frame: UInt) {
        if llvs_shim_host_depth() != 0 { cleanUpSlowly(frame) }
    }
    @usableFromInline @inline(never)
    static func cleanUpSlowly(_ frame: UInt) {
        while let left = llvs_shim_host_left(frame) {
            Waiting.forget()
            (Unmanaged<AnyObject>.fromOpaque(left).takeRetainedValue() as? any HostCallMark)?.hostLeft()
        }
    }

    /// Whether this thread is inside an observation callback. There, a call must not wait for another callback, which may be waiting for
    /// this one.
    package static var isObserving: Bool { llvs_shim_host_observes() != 0 }
}
