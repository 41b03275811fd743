/// Sixteen random bytes that name a value kept outside its record.
public struct BlobID: Hashable, Sendable {
    /// The first eight bytes.
    public var high: UInt64
    /// The last eight bytes.
    public var low: UInt64
    /// An id of any sixteen bytes; all are valid.
    public init(high: UInt64, low: UInt64) { self.high = high; self.low = low }
}
