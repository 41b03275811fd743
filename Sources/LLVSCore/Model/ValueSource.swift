/// A value that is read piece by piece while a version is made with it, so that it need not be whole in memory.
public struct ValueSource {
    /// The value to set.
    public var id: ValueID
    /// Bytes in all, if known beforehand. A large value of known size is written once, otherwise twice.
    public var size: Int?
    /// Fills the buffer from its start with the next bytes, and returns their number; 0 at the end. Called on the thread that makes the
    /// version, with no lock held. If it throws, making the version fails with that error and stores nothing.
    public var read: (UnsafeMutableRawBufferPointer) throws -> Int
    /// A value to be read while a version is made. `read` is called from the start of the value, once, or twice if the size is unknown.
    public init(id: ValueID, size: Int? = nil, read: @escaping (UnsafeMutableRawBufferPointer) throws -> Int) {
        self.id = id; self.size = size; self.read = read
    }
}

/// A value whose bytes are in a blob before the version that names it is made, or are not stored at all.
@usableFromInline
package final class WrittenValue: Sendable {
    package let blob: BlobID
    package let size: Int
    /// SHA-256.
    package let digest: [UInt8]
    /// Whether the value has no bytes: its change is to be hollow (docs/format.md). Then there is no blob.
    package let isHollow: Bool
    package init(blob: BlobID, size: Int, digest: [UInt8]) { self.blob = blob; self.size = size; self.digest = digest; isHollow = false }
    /// Creates a value of which only size and digest are known.
    package init(hollow size: Int, digest: [UInt8]) {
        blob = BlobID(high: 0, low: 0)
        self.size = size; self.digest = digest; isHollow = true
    }
}
