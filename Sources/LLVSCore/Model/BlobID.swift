/// Sixteen random bytes that name a value kept outside its record.
package struct BlobID: Hashable, Sendable {
    /// The first eight bytes.
    package var high: UInt64
    /// The last eight bytes.
    package var low: UInt64
    /// An id of any sixteen bytes; all are valid.
    package init(high: UInt64, low: UInt64) { self.high = high; self.low = low }
}
