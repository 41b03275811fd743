/// Callbacks by which the host stores the tokens or keys of an account, for example in a key store, instead of a file
/// (docs/cloud-drives.md). They are called on the thread of the exchange's call, which rethrows their errors.
public struct HostTokens: Sendable {
    /// Returns the JSON, with the members that the file would have.
    public var read: @Sendable () throws -> [UInt8]
    /// Replaces the JSON, durably before it returns: only then are the tokens used.
    public var keep: @Sendable ([UInt8]) throws -> Void
    /// Begins a renewal. Returns false if another thread or process with the same tokens is renewing them; the call is then repeated soon.
    public var lock: @Sendable () throws -> Bool
    /// Ends a renewal.
    public var unlock: @Sendable () -> Void

    /// - Parameters:
    ///   - read: returns the JSON.
    ///   - keep: replaces the JSON.
    ///   - lock: begins a renewal.
    ///   - unlock: ends it.
    public init(
        read: @escaping @Sendable () throws -> [UInt8], keep: @escaping @Sendable ([UInt8]) throws -> Void,
        lock: @escaping @Sendable () throws -> Bool, unlock: @escaping @Sendable () -> Void
    ) {
        self.read = read; self.keep = keep; self.lock = lock; self.unlock = unlock
    }
}
