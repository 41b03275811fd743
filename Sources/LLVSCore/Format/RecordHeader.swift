/// The version header of a record. It has everything that the history needs, but not the changes.
///
///     record  = prelude (28) · version header · change table · bodies
///     prelude = format u8 (1) · flags u8 · more flags u16 (0) · size of version header u32
///             · size of change table u64 · size of bodies u64 · checksum u32
///
/// The checksum is the CRC-32C of the 24 bytes before it and of the version header. docs/format.md is normative.
package struct RecordHeader {
    package static let preludeSize = 28
    package static let format: UInt8 = 1
    /// The header has extensions behind the metadata.
    static let hasExtensions: UInt8 = 0x10
    /// The record may have values without bytes: hollow changes.
    package static let hasHollowFlag: UInt8 = 0x01
    /// The record has a change under `__llvs_forget/`. Ignorable.
    static let hasForgetValuesFlag: UInt8 = 0x20
    /// The record has values that are differences from earlier values.
    package static let hasDifferencesFlag: UInt8 = 0x02
    /// Descendants of the version may have values that are differences. Readers may ignore this flag.
    static let mayHaveDifferencesFlag: UInt8 = 0x40
    /// Critical flags that this library does not know. It ignores all other unknown flags.
    static let criticalFlags: UInt8 = 0x0C
    /// The tag of the extension with the clock time at which the device stored the record.
    static let storedAtTag: UInt64 = 1

    package var id: VersionID
    package var predecessors: [VersionID]
    /// Seconds since 2001.
    package var timestamp: Double
    package var valueDataSize: UInt64
    package var changeCount: Int
    /// How many pages the change table has.
    package var pageCount: Int
    /// The distinct versions that preserves name, in order of first use.
    package var dependencies: [VersionID]
    /// The blobs that the changes name.
    package var blobs: [BlobID]
    package var metadata: Metadata
    /// The clock time at which the device stored the record, in seconds since 2001. It is only present if it limits when the version, or an
    /// ancestor, was made.
    var storedAt: Double?
    /// Whether the record may have hollow changes: values without bytes.
    package var hasHollow = false
    /// Whether the record has a change under `__llvs_forget/`.
    var hasForgetValues = false
    /// Whether the record may have values that are differences.
    package var hasDifferences = false
    /// Whether descendants of the version may have values that are differences.
    var mayHaveDifferences = false

    /// The offset of the change table in the record.
    var tableOffset: Int
    var tableSize: Int
    var bodiesOffset: Int { tableOffset + tableSize }
    var bodiesSize: Int
    /// The size of the whole record.
    var recordSize: Int { bodiesOffset + bodiesSize }
    /// The stored checksum. Together with the size it cheaply distinguishes records of one version.
    package var checksum: UInt32

    package enum Reading {
        case whole(RecordHeader)
        /// The header continues behind the given bytes; this many bytes are needed.
        case needs(Int)
        /// A newer version of this library made the record. Has the id of the version, if it can be read, and what is new.
        case newer(VersionID?, String)
        case damaged(String)
    }

    /// Reads a header from the first bytes of a record.
    /// - Parameter recordLength: the length of the record; nil if it is not known, and then it is not checked.
    package static func read(_ bytes: UnsafeRawBufferPointer, recordLength: UInt64?) -> Reading {
        var reader = ByteReader(bytes)
        guard let format = reader.integer(UInt8.self), let flags = reader.integer(UInt8.self),
            let moreFlags = reader.integer(UInt16.self), let headerSize = reader.integer(UInt32.self),
            let tableSize = reader.integer(UInt64.self), let bodiesSize = reader.integer(UInt64.self),
            let checksum = reader.integer(UInt32.self)
        else { return (recordLength ?? .max) < UInt64(preludeSize) ? .damaged("is too short to hold a record") : .needs(preludeSize) }
        let tableOffset = preludeSize + Int(headerSize)
        let largest = UInt64(Int64.max / 4)
        guard tableSize <= largest, bodiesSize <= largest,
            recordLength ?? (UInt64(tableOffset) + tableSize + bodiesSize) == UInt64(tableOffset) + tableSize + bodiesSize
        else { return .damaged("has sizes that do not add up") }
        guard bytes.count >= tableOffset else { return .needs(tableOffset) }

        var crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[0..<24]))
        crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[preludeSize..<tableOffset]), from: crc)
        guard crc == checksum else { return .damaged("has a header that does not match its checksum") }
        var body = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[preludeSize..<tableOffset]))
        guard format == Self.format else {
            return format == 0 ? .damaged("has the format 0, which does not exist") : .newer(body.versionID(), "format \(format)")
        }
        guard flags & criticalFlags == 0, moreFlags == 0 else { return .newer(body.versionID(), "the flags \(flags) and \(moreFlags)") }
        guard let id = body.versionID(), let predecessorCount = body.count(atMost: 2) else {
            return .damaged("has a version header that cannot be read")
        }
        var predecessors: [VersionID] = []
        for _ in 0..<predecessorCount {
            guard let predecessor = body.versionID(), predecessor != id, !predecessors.contains(predecessor)
            else { return .damaged("has predecessors that cannot be read") }
            predecessors.append(predecessor)
        }
        guard let bits = body.integer(UInt64.self), Double(bitPattern: bits).isFinite,
            let valueDataSize = body.varint(),
            let changeCount = body.count(atMost: Limits.changesPerVersion),
            let pageCount = body.count(atMost: Limits.changesPerVersion),
            pageCount == RecordTable.pages(forChanges: changeCount),
            let dependencyCount = body.count(atMost: changeCount)
        else { return .damaged("has a version header that cannot be read") }
        var dependencies: [VersionID] = []
        for _ in 0..<dependencyCount {
            guard let dependency = body.versionID() else { return .damaged("has dependencies that cannot be read") }
            dependencies.append(dependency)
        }
        guard let blobCount = body.count(atMost: changeCount) else { return .damaged("has a version header that cannot be read") }
        var blobs: [BlobID] = []
        for _ in 0..<blobCount {
            guard let blob = body.blobID() else { return .damaged("has blobs that cannot be read") }
            blobs.append(blob)
        }
        guard let metadata = readMetadata(&body) else { return .damaged("has metadata that cannot be read") }
        var storedAt: Double?
        switch readExtensions(&body, areThere: flags & hasExtensions != 0) {
        case .known(let told): storedAt = told
        case .critical(let tag): return .newer(id, "the extension \(tag)")
        case .damaged: return .damaged("has extensions that cannot be read")
        }
        guard id != EmptyRoot.id || (predecessors.isEmpty && bits == 0 && valueDataSize == 0 && changeCount == 0 && metadata.isEmpty) else {
            return .damaged("is under the id of the empty root, and is not the empty root, which is the same everywhere")
        }
        return .whole(
            RecordHeader(
                id: id, predecessors: predecessors, timestamp: Double(bitPattern: bits), valueDataSize: valueDataSize,
                changeCount: changeCount, pageCount: pageCount, dependencies: dependencies, blobs: blobs, metadata: metadata,
                storedAt: storedAt, hasHollow: flags & hasHollowFlag != 0, hasForgetValues: flags & hasForgetValuesFlag != 0,
                hasDifferences: flags & hasDifferencesFlag != 0,
                mayHaveDifferences: flags & mayHaveDifferencesFlag != 0,
                tableOffset: tableOffset, tableSize: Int(tableSize), bodiesSize: Int(bodiesSize), checksum: checksum))
    }

    private enum Extensions { case known(storedAt: Double?), critical(UInt64), damaged }

    /// Reads the extensions, and skips unknown ones that are not critical.
    private static func readExtensions(_ reader: inout ByteReader, areThere: Bool) -> Extensions {
        guard areThere || reader.remaining == 0 else { return .damaged }
        var last: UInt64?, critical: UInt64?, storedAt: Double?
        while reader.remaining > 0 {
            guard let tag = reader.varint(), last.map({ $0 < tag }) ?? true, let size = reader.count(atMost: reader.remaining),
                let content = reader.take(size)
            else { return .damaged }
            last = tag
            if tag == storedAtTag {
                var inside = ByteReader(content)
                storedAt = inside.integer(UInt64.self).map { Double(bitPattern: $0) }
                if inside.remaining > 0 || !(storedAt?.isFinite ?? true) { storedAt = nil }
            }
            if tag & 1 == 0 { critical = critical ?? tag }
        }
        return critical.map { .critical($0) } ?? .known(storedAt: storedAt)
    }

    private static func readMetadata(_ reader: inout ByteReader) -> Metadata? {
        guard let count = reader.count(atMost: reader.remaining) else { return nil }
        if count == 0 { return Metadata() }
        var pairs: [(key: [UInt8], value: [UInt8])] = []
        for _ in 0..<count {
            guard let keySize = reader.count(atMost: Limits.metadataKeySize), let key = reader.take(keySize),
                let valueSize = reader.count(atMost: Limits.metadataSize), let value = reader.take(valueSize)
            else { return nil }
            if let last = pairs.last, last.key.withUnsafeBytes({ Bytes.compare($0, key) }) >= 0 { return nil }
            pairs.append((Array(key), Array(value)))
        }
        return try? Metadata(pairs)
    }

    package var version: Version {
        Version(id: id, predecessors: predecessors, timestamp: timestamp, valueDataSize: valueDataSize, metadata: metadata)
    }
}
