import LLVS

/// Receives the progress of a call, on the thread that does the work. It must not wait for the task that waits for the call.
public typealias ProgressCallback = @Sendable (Progress) -> Void

/// Runs blocking work (which waits for a disk, another process, an arbiter) on a thread of its own, so that no thread of Swift's
/// cooperative pool is blocked. The async forms of the calls of stores, exchanges and coordinators use this; for other long calls use it
/// yourself:
///
///     let report = try await onOwnThread { try Salvage.run("broken.llvs", into: "saved.llvs", Store.Options(), $0) }
///
/// Cancelling the task cancels the work: at its next check of the control it throws a `StoreError` with the code `.cancelled`. Work that
/// never checks, or can no longer stop, ends normally.
/// - Parameters:
///   - progress: receives the progress of the work; nil: not reported.
///   - work: called once, on the thread; pass the control to the calls that take one.
/// - Returns: what `work` returns.
/// - Throws: the errors of `work`, unchanged; `.io` or `.outOfMemory` if no thread can be started.
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
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { (waiting: CheckedContinuation<R, any Error>) in
            do {
                try OwnThread.start("A thread for work that waits") { waiting.resume(with: Result { try work(control) }) }
            } catch { waiting.resume(throwing: error) }
        }
    } onCancel: {
        token.cancel()
    }
}
