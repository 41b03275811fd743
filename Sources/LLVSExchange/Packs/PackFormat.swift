/// The numbers of docs/pack-format.md.
package enum PackFormat {
    static let magic = Array("LLVSPK1\n".utf8)
    static let end = Array("LLVSEND\n".utf8)
    static let format: UInt8 = 1
    static let headerSize = 64
    static let trailerSize = 160
    /// The size of the header before the bytes of a block.
    static let blockHeaderSize = 9

    // Limits of readers.
    static func fileLimit(_ kind: PackKind) -> Int {
        switch kind {
        case .log, .base: 64 << 20
        case .blob: 9 << 20
        case .root: 64 << 10
        }
    }
    static let rawLimit: UInt64 = 1 << 30
    static let blockLimit = 256 << 10
    static let recordLimit = 4 << 20
    static let indexLimit = 8 << 20
    static let blocksLimit = 65_536
    static let versionsLimit = 200_000
    static let servicesLimit = 16
    static let entriesLimit = 4_096
    package static let blobsLimit = 65_536
    /// The most bytes of all blob references of a version.
    static let referencesLimit = 16 << 20
    /// The most bytes of values that are differences: of a version, and of a pack.
    package static let versionDifferences: UInt64 = 64 << 20, packDifferences: UInt64 = 4 << 30
    package static let partSize = 8 << 20
    /// The most parts of a blob with a value, and of one with a version of form 1.
    static let valueParts = 128, versionParts = 512

    // Limits of writers.
    static let writtenFile = 16 << 20
    static let writtenVersions = 200_000
    static let writtenRaw = 256 << 20
    static let writtenIndex = 7 << 20
    static let writtenDifferences = 1 << 30
    /// Larger values are blobs. Values above `smallestBlob` may be, too, if a record would be too large.
    package static let inlineValue = 1 << 20
    package static let smallestBlob = 64 << 10
    /// The most bytes of a version of form 1.
    static let writtenBody = 1 << 30
}

/// The types of records in packs.
enum PackRecordType {
    static let version: UInt8 = 1
    static let seen: UInt8 = 2
    static let replaces: UInt8 = 3
    static let notice: UInt8 = 5
    static let covers: UInt8 = 6
    /// Readers may skip unknown types from this one on.
    static let ignorable: UInt8 = 128
}

/// An error in a file of the packed layout.
package struct PackFault: Error {
    enum Kind {
        /// The file may still be in transit: it is truncated, or its bytes do not match its name.
        case notThere
        /// The file's bytes match its name, and break a rule.
        case damaged
        /// A newer version of the library made it.
        case newer
        /// It exceeds a limit.
        case tooLarge
        /// The pack's store id is not the store id of any root.
        case otherStore
        /// The pack is encrypted with keys that are missing.
        case keyMissing
    }
    let kind: Kind
    /// A clause without a full stop: "its digest is wrong".
    package let why: String
    /// The service refuses to return it, for a reason of its own. This is reported at once.
    var refusal: StoreError.Code?

    static func notThere(_ why: String) -> PackFault { PackFault(kind: .notThere, why: why) }
    package static func damaged(_ why: String) -> PackFault { PackFault(kind: .damaged, why: why) }
    package static func newer(_ why: String) -> PackFault { PackFault(kind: .newer, why: why) }
    static func tooLarge(_ why: String) -> PackFault { PackFault(kind: .tooLarge, why: why) }
    static func otherStore(_ why: String) -> PackFault { PackFault(kind: .otherStore, why: why) }

    /// Returns the error to throw, or to report as a problem.
    /// - Parameters:
    ///   - what: the file being read: "The pack x in y".
    ///   - version: the version that it is about, if it is one.
    func error(_ what: String, version: VersionID? = nil) -> StoreError {
        let (code, advice): (StoreError.Code, String) =
            switch kind {
            case .notThere: (.cutShort, "Fetch it again; its maker may have to make it again.")
            case .damaged: (.damaged, "Nothing of it was stored. Fetch it again, or let a device that has the versions send them again.")
            case .newer: (.newerFormat, "Nothing of it was stored. Update this library, and read it again.")
            case .tooLarge: (.tooLarge, "Nothing of it was stored: no writer makes such a file.")
            case .otherStore:
                (
                    .identifierMismatch,
                    "Nothing of it was stored. Leave it there: it is read once the root of that store is there. A device that has "
                        + "exchanged there before restores the root within a day."
                )
            case .keyMissing:
                (.keyMissing, "It is read once they are: they may come with the next exchange, or this device was removed.")
            }
        return StoreError(refusal ?? code, "\(what) was not received: \(why). \(advice)", versionID: version?.description)
    }
}

/// Reads the content of packs. Varints must have the shortest form, and every error has a reason.
struct PackCursor {
    private var reader: ByteReader
    init(_ bytes: UnsafeRawBufferPointer) { reader = ByteReader(bytes) }
    var remaining: Int { reader.remaining }
    private static let short = PackFault.damaged("a list in it ends too early")

    mutating func varint() throws -> UInt64 {
        let before = reader.position
        guard let value = reader.varint() else { throw PackCursor.short }
        let shortest = max(1, (UInt64.bitWidth - value.leadingZeroBitCount + 6) / 7)
        guard reader.position - before == shortest else { throw PackFault.damaged("a number in it is not in its shortest form") }
        return value
    }
    /// Reads a number of at most `limit`.
    mutating func number(atMost limit: Int, _ tooLarge: (UInt64) -> PackFault) throws -> Int {
        let value = try varint()
        guard value <= UInt64(limit) else { throw tooLarge(value) }
        return Int(value)
    }
    /// Reads the count of items of at least `size` bytes each.
    mutating func count(size: Int, limit: Int) throws -> Int {
        let count = try number(atMost: limit) { .tooLarge("a list in it has \($0) entries; at most \(limit) are read") }
        guard count <= reader.remaining / size else { throw PackFault.damaged("a list in it has more entries than there is room for") }
        return count
    }
    mutating func integer<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
        guard let value = reader.integer(type) else { throw PackCursor.short }
        return value
    }
    /// Reads eight bytes as a number with the same order.
    mutating func word() throws -> UInt64 { try integer(UInt64.self).byteSwapped }
    mutating func id() throws -> PackID { PackID(high: try word(), low: try word()) }
    mutating func take(_ count: Int) throws -> UnsafeRawBufferPointer {
        guard let bytes = reader.take(count) else { throw PackCursor.short }
        return bytes
    }
    mutating func versionID() throws -> VersionID {
        guard let id = reader.versionID() else { throw PackFault.damaged("an id of a version in it cannot be one") }
        return id
    }
    func end() throws {
        guard reader.remaining == 0 else { throw PackFault.damaged("bytes are left over at the end of a list in it") }
    }
}
