/// Sixteen random bytes that name a value kept outside its record.
public struct BlobID: Hashable, Sendable {
    public var high: UInt64
    public var low: UInt64
    public init(high: UInt64, low: UInt64) { self.high = high; self.low = low }
}
