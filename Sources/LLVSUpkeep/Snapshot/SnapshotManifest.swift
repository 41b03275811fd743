/// The manifest of a snapshot: `manifest.json`.
///
///     {"snapshotId":…,"format":…,"createdAt":…,"latestVersionId":…,"versionCount":…,"chunkCount":…,"totalSize":…,"chunkDigests":[…]}
public struct SnapshotManifest: Hashable, Sendable {
    /// An upper-case UUID if this implementation made it.
    public var snapshotID: String
    /// `Snapshots.format` if this implementation made it, or "llvs-v1-hollow" if values lack their bytes; others write other formats.
    public var format: String
    /// Seconds since 2001-01-01 UTC.
    public var createdAt: Double
    /// The newest head when it was made.
    public var latestVersionID: String
    /// The number of versions in the snapshot.
    public var versionCount: UInt64
    /// The number of its files.
    public var chunkCount: UInt64
    /// The bytes of all chunks together.
    public var totalSize: UInt64
    /// The SHA-256 of each chunk, in lower-case hexadecimal. Empty in foreign snapshots.
    public var chunkDigests: [String]
    /// The SHA-256 over all chunks in order, in hexadecimal, if a foreign snapshot has it.
    public var sha256: String?

    /// The SHA-256, in lower-case hexadecimal, of the names of the orders to erase whose bytes it lacks (`Orders.markOfSnapshots`).
    var orders: String?

    /// Whether another implementation made it.
    public var isForeign: Bool { format != Snapshots.format && format != SnapshotLimits.hollowFormat }
    /// Whether this implementation can restore it.
    public var isReadable: Bool { !isForeign || format == ZipSnapshot.format }

    func encoded() -> [UInt8] {
        var out: [UInt8] = []
        func append(_ text: String) { out.append(contentsOf: text.utf8) }
        func string(_ text: String) { Array(text.utf8).withUnsafeBytes { JSONString.append($0, to: &out) } }
        append("{\"snapshotId\":"); string(snapshotID)
        append(",\"format\":"); string(format)
        append(",\"createdAt\":"); JSONNumber.append(createdAt, to: &out)
        append(",\"latestVersionId\":"); string(latestVersionID)
        append(",\"versionCount\":\(versionCount),\"chunkCount\":\(chunkCount),\"totalSize\":\(totalSize),\"chunkDigests\":[")
        for (i, digest) in chunkDigests.enumerated() {
            if i > 0 { append(",") }
            string(digest)
        }
        append("]")
        if let orders { append(",\"orders\":"); string(orders) }
        append("}")
        return out
    }

    /// - Throws: `.snapshotDamaged`.
    init(_ bytes: [UInt8], file: String) throws {
        snapshotID = ""; format = ""; createdAt = 0; latestVersionID = ""; versionCount = 0; chunkCount = 0; totalSize = 0;
        chunkDigests = []
        var found = 0
        func text(_ reader: inout JSONReader) throws -> String { found += 1; return String(decoding: try reader.string(), as: UTF8.self) }
        do {
            try InterchangeDecoder(file: file).reading(.bytes(bytes)) { reader in
                try reader.beginObject()
                while let member = try reader.nextMember() {
                    if try reader.equals(member, "snapshotId") {
                        snapshotID = try text(&reader)
                    } else if try reader.equals(member, "format") {
                        format = try text(&reader)
                    } else if try reader.equals(member, "createdAt") {
                        createdAt = try reader.double()
                    } else if try reader.equals(member, "latestVersionId") {
                        latestVersionID = try reader.skipNull() ? "" : try text(&reader)
                    } else if try reader.equals(member, "versionCount") {
                        versionCount = try reader.unsigned()
                    } else if try reader.equals(member, "chunkCount") {
                        chunkCount = try reader.unsigned()
                    } else if try reader.equals(member, "totalSize") {
                        totalSize = try reader.unsigned()
                    } else if try reader.equals(member, "sha256") {
                        sha256 = try reader.skipNull() ? nil : String(decoding: try reader.string(), as: UTF8.self)
                    } else if try reader.equals(member, SnapshotLimits.ordersName) {
                        orders = try reader.skipNull() ? nil : String(decoding: try reader.string(), as: UTF8.self)
                    } else if try reader.equals(member, "chunkDigests"), format.isEmpty || !isForeign {
                        chunkDigests = try SnapshotManifest.digests(&reader)
                    } else {
                        try reader.skip()
                    }
                }
            }
        } catch {
            throw StoreError(.snapshotDamaged, "The snapshot cannot be used. \(StoreError.of(error).message)", path: file)
        }
        guard !snapshotID.isEmpty, !format.isEmpty else {
            throw StoreError(
                .snapshotDamaged,
                "\(file) is not the manifest of a snapshot: it has no \"snapshotId\" or no \"format\". Write a new snapshot.", path: file)
        }
        guard
            isForeign
                || (chunkDigests.count == Int(exactly: chunkCount) && chunkDigests.count <= SnapshotLimits.chunkCount
                    && snapshotID.utf8.count == SnapshotLimits.idSize)
        else {
            throw StoreError(
                .snapshotDamaged,
                "\(file) is damaged: its counts do not fit together. Let a store that has all versions write a new one.", path: file)
        }
        guard isForeign || versionCount > 0 else {
            throw StoreError(
                .snapshotDamaged, "\(file) describes a snapshot without versions, which no store writes. Let a store write a new one.",
                path: file)
        }
    }

    /// Reads digests; rejects more or longer ones than a snapshot of this implementation can have.
    private static func digests(_ reader: inout JSONReader) throws -> [String] {
        var digests: [String] = []
        try reader.beginArray()
        while try reader.nextElement() {
            let text: JSONReader.Text
            do { text = try reader.text(atMost: 64) } catch is JSONReader.TooLong {
                throw reader.failure("the digest of a chunk is too long")
            }
            guard digests.count < SnapshotLimits.chunkCount else { throw reader.failure("there are too many chunks") }
            try Memory.grow(&digests, "Reading the manifest of a snapshot")
            digests.append(String(decoding: try reader.string(text), as: UTF8.self))
        }
        return digests
    }

    init(snapshotID: String, createdAt: Double, latestVersionID: String) {
        self.snapshotID = snapshotID; format = Snapshots.format; self.createdAt = createdAt; self.latestVersionID = latestVersionID
        versionCount = 0; chunkCount = 0; totalSize = 0; chunkDigests = []
    }
}
