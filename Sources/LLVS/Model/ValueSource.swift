/// A value that is asked for piece by piece while a version is made of it, so that it need not be in memory as a whole.
public struct ValueSource {
    /// The value to set.
    public var id: ValueID
    /// Bytes in all, where they are known beforehand: then a large value is written once, else it is written twice.
    public var size: Int?
    /// Fills the buffer from its start with what comes next, and answers how many bytes; 0 at the end. Called on the thread
    /// that makes the version, with no lock held. What it throws comes out of making the version, of which nothing is left.
    public var read: (UnsafeMutableRawBufferPointer) throws -> Int
    /// A value to be read while a version is made; `read` is asked from the start, once, or twice where the size is not known.
    public init(id: ValueID, size: Int? = nil, read: @escaping (UnsafeMutableRawBufferPointer) throws -> Int) {
        self.id = id; self.size = size; self.read = read
    }
}

/// A value whose bytes are in a blob already, before the version that names it is made.
@usableFromInline
final class WrittenValue: Sendable {
    let blob: BlobID
    let size: Int
    /// SHA-256.
    let digest: [UInt8]
    init(blob: BlobID, size: Int, digest: [UInt8]) { self.blob = blob; self.size = size; self.digest = digest }
}
