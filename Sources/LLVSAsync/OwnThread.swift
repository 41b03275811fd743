import LLVS

/// Hears how far a call has come, on the thread that does the work. It must not wait for the task that waits for the call.
public typealias ProgressCallback = @Sendable (Progress) -> Void

/// Does work that waits (for a disk, another process, an arbiter) on a thread made for it, so that no thread of Swift's cooperative pool
/// is held up. The async forms of the calls of stores, exchanges and coordinators are made of this; for other long calls use it yourself:
///
///     let report = try await onOwnThread { try Salvage.run("broken.llvs", into: "saved.llvs", Store.Options(), $0) }
///
/// Cancelling the task asks the work to stop: it then throws a `StoreError` with the code `.cancelled` at its next look at the control.
/// Work that never looks, or is beyond the point of no return, ends as if nobody had asked.
/// - Parameters:
///   - progress: told how far the work has come; nil: nobody is.
///   - work: called once, on the thread; hand the control on to the calls that take one.
/// - Returns: what `work` returns.
/// - Throws: what `work` throws, unchanged; `.io` or `.outOfMemory` when no thread can be started.
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
