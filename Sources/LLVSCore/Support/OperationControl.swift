/// Stops long work at its next check when it is set from any thread.
public final class CancelToken: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private let lock = Lock(.leaf)
    private var set = false, last: Double
    /// Creates a token that is not set.
    public init() { last = .infinity }
    /// - Parameter end: when, by the steady clock, the work will be stopped. Steps that would not be done by then are not begun.
    package init(end: Double) { last = end }
    package var end: Double { lock.withLock { last } }
    /// Announces that the work will be stopped by `end`, or before.
    package func stop(by end: Double) { lock.withLock { last = min(last, end) } }
    /// Requests the work to stop. Any thread, any number of times.
    public func cancel() { lock.withLock { set = true } }
    /// Whether `cancel` was called.
    public var isCancelled: Bool { lock.withLock { set } }
}

/// The progress of long work. `total` is 0 while it is not known.
public struct OperationProgress: Sendable {
    /// The stage of the work.
    public enum Stage: UInt32, Sendable {
        /// Asking the other side of an exchange which versions it has.
        case listing = 1
        /// Fetching versions from the other side.
        case receiving
        /// Storing the fetched versions.
        case adding
        /// Writing versions to the other side.
        case sending
        /// Reading a store or snapshot.
        case reading
        /// Writing a snapshot or another file.
        case writing
        /// Comparing stored bytes with their checksums.
        case verifying
        /// Reading or writing the keys of an encrypted place.
        case keys
        /// Merging packs at a place.
        case merging
        /// Deleting packs at a place that other packs replace.
        case deleting
    }
    /// The current stage.
    public var stage: Stage
    /// How many of `total` are done: versions, files or chunks, depending on the stage.
    public var completed: UInt64
    /// The number of steps; 0 while it is not known.
    public var total: UInt64
    /// Creates a progress. The counts are those of the stage, not of the whole call.
    public init(stage: Stage, completed: UInt64, total: UInt64) {
        self.stage = stage; self.completed = completed; self.total = total
    }
}

/// The bytes to transfer and the bytes transferred, of one part of a call at a time. Within a part, neither decreases.
package final class ByteProgress: Sendable {
    private let counts = Guarded((done: UInt64(0), total: UInt64(0)))
    package init() {}

    package var now: (done: UInt64, total: UInt64) { counts.withLock { $0 } }
    /// Begins another part.
    package func begin() { counts.withLock { $0 = (0, 0) } }
    /// Adds bytes to transfer.
    package func expect(_ more: Int) { counts.withLock { $0.total &+= UInt64(max(0, more)) } }
    /// Adds bytes that were transferred, or no longer need to be.
    package func add(_ more: Int) { counts.withLock { $0.done = min($0.total, $0.done &+ UInt64(max(0, more))) } }
}

/// Progress and cancellation of one call of long work. Checked at least every 100 ms or 1 MiB of data.
public struct OperationControl: Sendable {
    /// Called on the thread of the call. Returns false to cancel. May throw `StoreError`.
    public var progress: (@Sendable (OperationProgress) throws -> Bool)?
    /// Stops the work from any thread.
    public var token: CancelToken?
    /// Whether bytes cost money, or the battery is low. If so, work that can wait is postponed.
    package var isThrifty = false
    /// Whether versions that just arrived over a link are left to the device that made them.
    package var leavesToMakers = false
    /// Counts the transferred bytes, if that was requested.
    package var bytes: ByteProgress?
    /// Creates a control. Without progress and token, the call runs to its end.
    public init(progress: (@Sendable (OperationProgress) throws -> Bool)? = nil, token: CancelToken? = nil) {
        self.progress = progress; self.token = token
    }
    /// Throws `.cancelled` if the work must stop.
    public func check(_ stage: OperationProgress.Stage, _ completed: Int, of total: Int, doing what: String) throws {
        if let token, token.isCancelled { throw OperationControl.cancelled(what) }
        let state = OperationProgress(stage: stage, completed: UInt64(max(0, completed)), total: UInt64(max(0, total)))
        if let progress, try !Waiting.setAside({ try progress(state) }) {
            throw OperationControl.cancelled(what)
        }
    }
    /// The number of bytes after which work checks again.
    package static let bytesPerCheck = 1 << 20

    /// Returns a control for a step of longer work. The step may check as often as it likes; progress reports the whole work.
    package func within(_ stage: OperationProgress.Stage, _ completed: Int, of total: Int) -> OperationControl {
        guard let progress else { return self }
        let whole = OperationProgress(stage: stage, completed: UInt64(max(0, completed)), total: UInt64(max(0, total)))
        var step = OperationControl(progress: { _ in try progress(whole) }, token: token)
        (step.isThrifty, step.leavesToMakers, step.bytes) = (isThrifty, leavesToMakers, bytes)
        return step
    }
    package static func cancelled(_ what: String) -> StoreError {
        StoreError(.cancelled, "\(what) was cancelled; what was added completely remains. Run it again to continue.")
    }
    /// Returns the error for work that adds nothing before its end.
    static func ended(_ what: String) -> StoreError {
        StoreError(.cancelled, "\(what) was cancelled; nothing was changed. Run it again.")
    }
}
