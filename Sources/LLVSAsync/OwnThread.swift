import LLVS

/// Receives the progress of a call, on the thread that does the work. It must not wait for the task that waits for the call.
public typealias ProgressCallback = @Sendable (OperationProgress) -> Void

/// Runs blocking work (which waits for a disk, another process, an arbiter) on a thread of its own, so that no thread of Swift's
/// cooperative pool is blocked. The async forms of the calls of stores, exchanges and coordinators use this; for other long calls use it
/// yourself:
///
///     let report = try await onOwnThread { try Salvage.run("broken.llvs", into: "saved.llvs", Store.Options(), $0) }
///
/// Cancelling the task cancels the work: at its next check of the control it ends, and the call throws `CancellationError`. Work that never
/// checks, or can no longer stop, ends normally.
/// - Parameters:
///   - progress: receives the progress of the work; nil: not reported.
///   - work: called once, on the thread; pass the control to the calls that take one.
/// - Returns: what `work` returns.
/// - Throws: the errors of `work`, unchanged, except that a cancellation of the task is a `CancellationError`; `.io` or `.outOfMemory` if
///   no thread can be started.
/// - Complexity: the thread costs some ten microseconds.
public func onOwnThread<R: Sendable>(
    progress: ProgressCallback? = nil, _ work: @escaping @Sendable (OperationControl) throws -> R
) async throws -> R {
    let token = CancelToken()
    let control = OperationControl(
        progress: progress.map { progress in
            { @Sendable state in
                progress(state); return true
            }
        }, token: token)
    let result = try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { (waiting: CheckedContinuation<Result<R, any Error>, any Error>) in
            do {
                try OwnThread.start("A thread for work that waits") { waiting.resume(returning: Result { try work(control) }) }
            } catch { waiting.resume(throwing: error) }
        }
    } onCancel: {
        token.cancel()
    }
    return try cancelling { try result.get() }
}

/// Runs blocking work that is soon done, and changes nothing, on a thread of its own, unless the task is cancelled already.
package func onOwnThreadUnlessCancelled<R: Sendable>(_ work: @escaping @Sendable () throws -> R) async throws -> R {
    try Task.checkCancellation()
    return try await onOwnThread { _ in try work() }
}

/// Calls the closure, and throws `CancellationError` if it reports that the work was cancelled and the task is.
func cancelling<R>(_ body: () throws -> R) throws -> R {
    do { return try body() } catch let error as StoreError where error.code == .cancelled && Task.isCancelled { throw CancellationError() }
}

/// Runs blocking work that cannot fail on a thread of its own; if none can be started, on this one.
func onThreadOfItsOwn(_ work: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { (waiting: CheckedContinuation<Void, Never>) in
        let all: @Sendable () -> Void = {
            work()
            waiting.resume()
        }
        do { try OwnThread.start("A thread for work that waits", all) } catch { all() }
    }
}
