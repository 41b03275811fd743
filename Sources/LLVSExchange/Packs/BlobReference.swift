/// Where the bytes of a value are that is too large for a pack: `blob/<digest>-<part>-<pack id>` for each part.
package struct BlobReference: Equatable, Sendable {
    /// The first bytes of `sha256`, as in records and names.
    package var digest: PackID
    /// The bytes of all parts together.
    package var size: UInt64
    /// The SHA-256 of these bytes.
    package var sha256: [UInt8]
    var parts: [PackID]

    package init?(size: Int, sha256: [UInt8], parts: [PackID]) {
        guard sha256.count == 32, let digest = PackID(sha256) else { return nil }
        self.digest = digest; self.size = UInt64(max(0, size)); self.sha256 = sha256; self.parts = parts
    }

    /// - Throws: `PackFault`.
    init(_ cursor: inout PackCursor, partsLimit: Int) throws {
        digest = try cursor.id()
        size = try cursor.integer(UInt64.self)
        sha256 = Array(try cursor.take(32))
        let count = try cursor.count(size: PackID.size, limit: partsLimit)
        parts = []
        parts.reserveCapacity(count)
        for _ in 0..<count { parts.append(try cursor.id()) }
        let partSize = UInt64(PackFormat.partSize)
        guard count > 0, size / partSize + (size % partSize == 0 ? 0 : 1) == UInt64(count), PackID(sha256) == digest else {
            throw PackFault.damaged("a reference to a blob contradicts itself")
        }
    }

    func write(into out: inout ByteWriter) {
        out.raw(digest.bytes)
        out.integer(size)
        out.raw(sha256)
        out.varint(UInt64(parts.count))
        for part in parts { out.raw(part.bytes) }
    }

    /// The blob's id in the record of a version.
    var blobID: BlobID { BlobID(high: digest.high, low: digest.low) }
}
