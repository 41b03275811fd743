/// Set from any thread to stop long work at its next check.
public final class CancelToken: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.leaf)
    private var set = false, last: Double
    /// A token that is not set.
    public init() { last = .infinity }
    /// - Parameter end: when, by the steady clock, the work is going to be stopped: what would not be done by then is not begun.
    package init(end: Double) { last = end }
    package var end: Double { lock.withLock { last } }
    /// It is stopped by then, or before.
    package func stop(by end: Double) { lock.withLock { last = min(last, end) } }
    /// Asks the work to stop. Any thread, any number of times.
    public func cancel() { lock.withLock { set = true } }
    /// Whether `cancel` was called.
    public var isCancelled: Bool { lock.withLock { set } }
}

/// How far long work has come. `total` is 0 while it is not known.
public struct Progress: Sendable {
    /// What the work is doing.
    public enum Stage: UInt32, Sendable {
        /// Asking the other side of an exchange what it has.
        case listing = 1
        /// Fetching versions from there.
        case receiving
        /// Storing versions here.
        case adding
        /// Writing versions there.
        case sending
        /// Reading what is in a store or snapshot.
        case reading
        /// Writing a snapshot or another file.
        case writing
        /// Comparing what is stored with its checksums.
        case verifying
        /// Reading or writing the keys of a place that is encrypted.
        case keys
        /// Merging packs at a place.
        case folding
        /// Deleting packs there that others replace.
        case deleting
    }
    /// What it is doing.
    public var stage: Stage
    /// How many of `total` are done: versions, files or chunks, by the stage.
    public var completed: UInt64
    /// How many there are to do; 0 while it is not known.
    public var total: UInt64
    /// How far: the counts are of the stage, not of the whole call.
    public init(stage: Stage, completed: UInt64, total: UInt64) {
        self.stage = stage; self.completed = completed; self.total = total
    }
}

/// How many bytes are to be moved, and were: of one part of a call at a time, in which neither becomes fewer.
package final class ByteProgress: Sendable {
    private let counts = Guarded((done: UInt64(0), total: UInt64(0)))
    package init() {}

    package var now: (done: UInt64, total: UInt64) { counts.withLock { $0 } }
    /// Another part begins.
    package func begin() { counts.withLock { $0 = (0, 0) } }
    /// So many are to be moved.
    package func expect(_ more: Int) { counts.withLock { $0.total &+= UInt64(max(0, more)) } }
    /// So many were moved, or need not be any more.
    package func add(_ more: Int) { counts.withLock { $0.done = min($0.total, $0.done &+ UInt64(max(0, more))) } }
}

/// Progress and cancellation of one call of long work; checked at least every 100 ms or MiB.
public struct OperationControl: Sendable {
    /// Called on the thread that called; returns false to cancel. May throw `StoreError`.
    public var progress: (@Sendable (Progress) throws -> Bool)?
    /// Stops the work from any thread.
    public var token: CancelToken?
    /// Bytes cost money, or the battery is low: what can wait does.
    package var isThrifty = false
    /// What came over a link just now is left to whoever made it.
    package var leavesToMakers = false
    /// Where somebody wants to know how many bytes are moved.
    package var bytes: ByteProgress?
    /// Without either the call runs to its end.
    public init(progress: (@Sendable (Progress) throws -> Bool)? = nil, token: CancelToken? = nil) {
        self.progress = progress; self.token = token
    }
    /// Throws `.cancelled` when the work shall stop.
    public func check(_ stage: Progress.Stage, _ completed: Int, of total: Int, doing what: String) throws {
        if let token, token.isCancelled { throw OperationControl.cancelled(what) }
        let state = Progress(stage: stage, completed: UInt64(max(0, completed)), total: UInt64(max(0, total)))
        if let progress, try !Waiting.setAside({ try progress(state) }) {
            throw OperationControl.cancelled(what)
        }
    }
    /// After how many bytes work checks again.
    static let bytesPerCheck = 1 << 20

    /// For a step of longer work: it checks as often as it likes, and what is told is how far the whole has come.
    func within(_ stage: Progress.Stage, _ completed: Int, of total: Int) -> OperationControl {
        guard let progress else { return self }
        let whole = Progress(stage: stage, completed: UInt64(max(0, completed)), total: UInt64(max(0, total)))
        var step = OperationControl(progress: { _ in try progress(whole) }, token: token)
        (step.isThrifty, step.leavesToMakers, step.bytes) = (isThrifty, leavesToMakers, bytes)
        return step
    }
    static func cancelled(_ what: String) -> StoreError {
        StoreError(.cancelled, "\(what) was cancelled; what had been added whole is kept. Run it again to go on.")
    }
    /// Of work that adds nothing before its end.
    static func ended(_ what: String) -> StoreError {
        StoreError(.cancelled, "\(what) was cancelled; nothing was changed. Begin it again.")
    }
}
