/// Where the bytes are that are too large for a pack: `blob/<digest>-<part>-<pack id>` for each part.
struct BlobReference: Equatable, Sendable {
    /// The beginning of `sha256`, by which records and names have it.
    var digest: PackID
    /// Bytes of all parts together.
    var size: UInt64
    /// SHA-256 of them.
    var sha256: [UInt8]
    var parts: [PackID]

    init?(size: Int, sha256: [UInt8], parts: [PackID]) {
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

    /// As the record of a version has it.
    var blobID: BlobID { BlobID(high: digest.high, low: digest.low) }
}
