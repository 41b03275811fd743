import LLVS

/// Packs in streams, whose bytes async closures write and read.
extension Store {
    /// Writes the versions that another store lacks as one stream of packs. At the other store, `readPack` adds them.
    ///
    ///     try await store.writePack(have: theirs) { try await connection.send($0) }
    ///
    /// The next bytes are made when the closure has returned, so a slow receiver needs no memory here. A closure that awaits nothing fits
    /// the function without `async` as well, which the compiler then calls.
    /// - Parameters:
    ///   - have: heads of the other store. Ids that are unknown here are ignored.
    ///   - recipients: who can read the stream; nil: it is not encrypted.
    ///   - progress: receives the count of versions sent.
    ///   - write: receives the next bytes. Cancelling the task cancels the task in which it runs, too.
    /// - Returns: the versions written, and those that could not be written.
    /// - Throws: the errors of `write`, those of the function without `async`, `CancellationError`. Then discard what was written.
    @discardableResult
    public func writePack(
        have: [VersionID] = [], for recipients: PackRecipients? = nil, progress: ProgressCallback? = nil,
        _ write: @escaping @Sendable ([UInt8]) async throws -> Void
    ) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { control, carrier in
            try self.writePack(have: have, for: recipients, control: control) { bytes in
                let bytes = Array(bytes)
                try carrier.wait { try await write(bytes) }
            }
        }
    }

    /// Adds the versions of a stream of packs. What was added stays if this fails, and the same stream can be read again.
    ///
    ///     try await store.readPack { try await connection.receive() }
    /// - Parameters:
    ///   - unlocking: the keys; nil: the stream is not encrypted.
    ///   - progress: receives the counts of packs read and versions added.
    ///   - read: returns the next bytes, as many as there are; none at the end. Cancelling the task cancels the task in which it runs, too.
    /// - Returns: the versions added, and the problems.
    /// - Throws: the errors of `read`, those of the function without `async`, `CancellationError`.
    @discardableResult
    public func readPack(
        by unlocking: PackUnlocking? = nil, progress: ProgressCallback? = nil, _ read: @escaping @Sendable () async throws -> [UInt8]
    ) async throws -> ExchangeResult {
        try await onOwnThread(progress: progress) { control, carrier in
            var pending: ArraySlice<UInt8> = []
            return try self.readPack(by: unlocking, control: control) { buffer in
                if pending.isEmpty { pending = try carrier.wait(read)[...] }
                let count = min(buffer.count, pending.count)
                buffer.copyBytes(from: pending.prefix(count))
                pending = pending.dropFirst(count)
                return count
            }
        }
    }
}

/// Calls async closures from a thread that may wait.
private final class Carrier: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private let lock = Lock(), changed = Condition()
    private var isCancelled = false
    private var cancel: (() -> Void)?

    /// Runs the closure in a task and waits for its result.
    func wait<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) throws -> R {
        let answer = Guarded<Result<R, any Error>?>(nil)
        let task = Task { [self] in
            let result: Result<R, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            answer.withLock { $0 = result }
            lock.withLock { changed.broadcast() }
        }
        lock.withLock {
            if isCancelled { task.cancel() }
            cancel = { task.cancel() }
        }
        while true {
            if let result = answer.withLock({ $0 }) { return try result.get() }
            lock.withLock { if answer.withLock({ $0 == nil }) { changed.wait(lock) } }
        }
    }
    func end() {
        lock.withLock {
            isCancelled = true
            cancel?()
        }
    }
}

private func onOwnThread<R: Sendable>(
    progress: ProgressCallback?, _ work: @escaping @Sendable (OperationControl, Carrier) throws -> R
) async throws -> R {
    let carrier = Carrier()
    return try await withTaskCancellationHandler {
        try await onOwnThread(progress: progress) { try work($0, carrier) }
    } onCancel: {
        carrier.end()
    }
}
