/// Reads a version of a pack from its record: docs/pack-format.md, "A version".
package enum PackedVersion {
    /// The content at the beginning of a version's payload.
    enum Payload {
        /// The payload has the record.
        case inside
        /// The payload is in a blob.
        case outside(BlobReference)
    }

    /// Returns the form of a payload.
    /// - Throws: `PackFault`.
    static func form(_ payload: UnsafeRawBufferPointer) throws -> Payload {
        var cursor = PackCursor(payload)
        switch try cursor.integer(UInt8.self) {
        case 0: return .inside
        case 1:
            let blob = try BlobReference(&cursor, partsLimit: PackFormat.versionParts)
            try cursor.end()
            return .outside(blob)
        default: throw PackFault.damaged("it has a form that does not exist")
        }
    }

    /// The parts of form 0, before any value is read.
    package struct Contents {
        package var header: RecordHeader
        /// The offset of the record, and its size in bytes.
        var start: Int, length: Int
        /// The references of large values, by the digests in their names.
        package var blobs: [PackID: BlobReference]
    }

    /// Reads form 0, from memory or from a blob.
    /// - Parameters:
    ///  - id: the version that the index names.
    ///  - size: the bytes of the whole form.
    ///  - read: fills a buffer from an offset on.
    /// - Throws: `PackFault`, and the errors of `read`.
    static func contents(_ id: VersionID, size: Int, _ read: @escaping (UInt64, UnsafeMutableRawBufferPointer) throws -> Void) throws
        -> Contents
    {
        try contents(id, size: size) { start, length in
            RecordReader(length: UInt64(max(0, length))) { try read(UInt64(start) + $0, $1) }
        }
    }

    /// Reads form 0 from memory.
    /// - Throws: `PackFault`.
    package static func contents(_ id: VersionID, _ payload: [UInt8]) throws -> Contents {
        try contents(id, size: payload.count) { RecordReader(payload, from: $0, length: $1) }
    }

    private static func contents(_ id: VersionID, size: Int, reader: (_ start: Int, _ length: Int) -> RecordReader) throws -> Contents {
        var whole = reader(0, size)
        let (length, start): (UInt64, Int) =
            try whole.with(0, min(size, 11)) { bytes -> (UInt64, Int) in
                var cursor = PackCursor(bytes)
                guard try cursor.integer(UInt8.self) == 0 else { throw PackFault.damaged("it has a form that does not exist") }
                let length = try cursor.varint()
                return (length, bytes.count - cursor.remaining)
            } ?? (0, 0)
        guard start > 0, length <= UInt64(size - start) else { throw PackFault.damaged("its record is cut short") }
        let header = try header(id, reader(start, Int(length)))
        let behind = start + Int(length)
        guard size - behind <= PackFormat.referencesLimit else { throw PackFault.tooLarge("it names too many blobs") }
        let blobs: [PackID: BlobReference] =
            try whole.with(behind, size - behind) { bytes -> [PackID: BlobReference] in
                var cursor = PackCursor(bytes), blobs: [PackID: BlobReference] = [:], last: PackID?
                for _ in 0..<(try cursor.count(size: 73, limit: PackFormat.blobsLimit)) {
                    let blob = try BlobReference(&cursor, partsLimit: PackFormat.valueParts)
                    if let last, !(last < blob.digest) { throw PackFault.damaged("its blobs are out of order") }
                    last = blob.digest
                    blobs[blob.digest] = blob
                }
                try cursor.end()
                return blobs
            } ?? [:]
        guard Set(header.blobs.map { PackID(high: $0.high, low: $0.low) }) == Set(blobs.keys) else {
            throw PackFault.damaged("its record names other blobs")
        }
        return Contents(header: header, start: start, length: Int(length), blobs: blobs)
    }

    private static func header(_ id: VersionID, _ record: RecordReader) throws -> RecordHeader {
        var record = record
        switch try record.header() {
        case .whole(let header):
            guard header.id == id else { throw PackFault.damaged("its record is that of the version \(header.id)") }
            return header
        case .newer(_, let what): throw PackFault.newer("its record has \(what), which this library does not know")
        case .damaged(let why): throw PackFault.damaged("its record \(why)")
        case .needs: throw PackFault.damaged("its record is cut short")
        }
    }

    /// Returns the bytes of the values that are in blobs, each as often as a change has it: the bytes that they take in the store.
    static func largeBytes(_ contents: Contents, _ read: @escaping (UInt64, UnsafeMutableRawBufferPointer) throws -> Void) throws
        -> UInt64
    {
        let start = UInt64(contents.start)
        return try largeBytes(contents, RecordReader(length: UInt64(contents.length)) { try read(start + $0, $1) })
    }
    /// Returns the bytes of the values that are in blobs, for a payload in memory.
    package static func largeBytes(_ contents: Contents, _ payload: [UInt8]) throws -> UInt64 {
        try largeBytes(contents, RecordReader(payload, from: contents.start, length: contents.length))
    }
    private static func largeBytes(_ contents: Contents, _ reader: RecordReader) throws -> UInt64 {
        guard !contents.blobs.isEmpty else { return 0 }
        var table = reader, sum: UInt64 = 0
        // Damage of the table is found when the changes are read.
        _ = try table.forEachChange(contents.header) { entry in
            if entry.blob != nil { sum = SourceAccount.sum(sum, UInt64(max(0, entry.size))) }
        }
        return sum
    }

    /// Returns the bytes of the values that are differences, as values.
    static func differenceBytes(_ contents: Contents, _ read: @escaping (UInt64, UnsafeMutableRawBufferPointer) throws -> Void) throws
        -> UInt64
    {
        let start = UInt64(contents.start)
        return try differenceBytes(contents, RecordReader(length: UInt64(contents.length)) { try read(start + $0, $1) })
    }
    /// Returns the bytes of the values that are differences, for a payload in memory.
    package static func differenceBytes(_ contents: Contents, _ payload: [UInt8]) throws -> UInt64 {
        try differenceBytes(contents, RecordReader(payload, from: contents.start, length: contents.length))
    }
    private static func differenceBytes(_ contents: Contents, _ reader: RecordReader) throws -> UInt64 {
        guard contents.header.hasDifferences else { return 0 }
        var table = reader, sum: UInt64 = 0
        // Damage of the table is found when the changes are read.
        _ = try table.forEachChange(contents.header) { entry in
            if entry.isDifference { sum = SourceAccount.sum(sum, UInt64(max(0, entry.size))) }
        }
        return sum
    }

    /// Returns a version with the changes of a payload that are orders to erase; nil if there are none.
    static func orders(in contents: Contents, _ payload: [UInt8]) throws -> Store.ReceivedVersion? {
        var table = RecordReader(payload, from: contents.start, length: contents.length), ids: [ValueID] = []
        _ = try table.forEachChange(contents.header) { entry in
            if EraseOrder.isNamed(by: entry.id), entry.size <= EraseOrder.mostBytes { ids.append(ValueID(unchecked: entry.id)) }
        }
        guard !ids.isEmpty else { return nil }
        var changes: [Value.Change] = []
        for id in ids {
            let data = try id.bytes.withUnsafeBytes { id in
                try value(id, in: contents, payload) { _, _, _ in throw PackFault.damaged("an order is a difference") }
            }
            if let data { changes.append(.insert(id, data: data)) }
        }
        return Store.ReceivedVersion(version: contents.header.version, changes: changes)
    }

    /// Returns whether a payload has bytes of one of the changes with these indexes.
    static func hasBytes(of indexes: Set<Int>, in contents: Contents, _ payload: [UInt8]) throws -> Bool {
        var table = RecordReader(payload, from: contents.start, length: contents.length), i = -1, has = false
        let isWhole = try table.forEachChange(contents.header) { entry in
            i += 1
            if indexes.contains(i), entry.kind == .insert || entry.kind == .update, !entry.isHollow,
                !entry.id.starts(with: EraseOrder.reserved)
            {
                has = true
            }
        }
        guard isWhole else { throw PackFault.damaged("its table of changes is damaged") }
        return has
    }

    /// Calls with the base of a difference of a value.
    package typealias WithBase = (
        _ id: UnsafeRawBufferPointer, _ difference: ValueDifference, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Void

    /// Returns the version with the changes of its record, of which nothing else was checked yet.
    /// - Parameters:
    ///  - withBase: reads the bases of differences.
    ///  - value: returns the bytes of a value that is a blob, or where they were written.
    /// - Throws: `PackFault`, and the errors of `read`, `withBase` and `value`.
    static func received(
        _ contents: Contents, _ read: @escaping (UInt64, UnsafeMutableRawBufferPointer) throws -> Void, withBase: WithBase,
        value: (BlobReference) throws -> Store.Pulled
    ) throws -> Store.ReceivedVersion {
        let start = UInt64(contents.start), reader = RecordReader(length: UInt64(contents.length)) { try read(start + $0, $1) }
        return try received(contents, reader, withBase: withBase, value: value)
    }

    /// Returns a version whose contents are a payload in memory, as a store receives it.
    package static func received(
        _ contents: Contents, _ payload: [UInt8], withBase: WithBase, value: (BlobReference) throws -> Store.Pulled
    ) throws -> Store.ReceivedVersion {
        try received(contents, RecordReader(payload, from: contents.start, length: contents.length), withBase: withBase, value: value)
    }

    private static func received(
        _ contents: Contents, _ reader: RecordReader, withBase: WithBase, value: (BlobReference) throws -> Store.Pulled
    ) throws -> Store.ReceivedVersion {
        let header = contents.header
        var table = reader, bodies = reader
        var changes: [Value.Change] = [], written: [Int: WrittenValue] = [:]
        let isWhole = try table.forEachChange(header) { entry in
            let id = ValueID(unchecked: entry.id)
            try Memory.grow(&changes, "The changes of a version")
            switch entry.kind {
            case .insert, .update:
                var data: [UInt8] = []
                if let hollow = WrittenValue(hollow: entry) {
                    written[changes.count] = hollow
                } else if let blob = entry.blob {
                    guard let reference = contents.blobs[PackID(high: blob.high, low: blob.low)], reference.size == UInt64(entry.size),
                        let digest = entry.digest, digest.elementsEqual(reference.sha256)
                    else { throw PackFault.damaged("a blob does not match its record") }
                    switch try value(reference) {
                    case .written(let value): written[changes.count] = value
                    case .bytes(let bytes): data = bytes
                    }
                } else if entry.isDifference {
                    data = try made(entry, of: header.id, &bodies, withBase)
                } else {
                    // The block is deflated already. If a value were deflated within it as well, a few bytes could become gigabytes.
                    guard entry.storedSize == entry.size else {
                        throw PackFault.damaged("a value of it is deflated within its record, which no writer does")
                    }
                    data = try self.value(entry, of: header.id, &bodies)
                }
                changes.append(entry.kind == .insert ? .insert(id, data: data) : .update(id, data: data))
            case .remove: changes.append(.remove(id))
            case .preserve:
                changes.append(.preserve(Value.Reference(id: id, version: header.dependencies[entry.dependency])))
            case .preserveRemoval: changes.append(.preserveRemoval(id))
            }
        }
        guard isWhole else { throw PackFault.damaged("its table of changes is damaged") }
        var received = Store.ReceivedVersion(version: header.version, changes: changes)
        received.written = written
        return received
    }

    /// Returns the value that a payload stores under an id, and makes no other one; nil if it stores none within its record.
    static func value(_ id: UnsafeRawBufferPointer, in contents: Contents, _ payload: [UInt8], withBase: WithBase) throws -> [UInt8]? {
        var table = RecordReader(payload, from: contents.start, length: contents.length), bodies = table, found: [UInt8]?
        _ = try table.forEachChange(contents.header) { entry in
            guard found == nil, entry.kind == .insert || entry.kind == .update, entry.blob == nil, !entry.isHollow,
                Bytes.equal(entry.id, id)
            else { return }
            if entry.isDifference {
                found = try made(entry, of: contents.header.id, &bodies, withBase)
            } else if entry.storedSize == entry.size {
                found = try value(entry, of: contents.header.id, &bodies)
            }
        }
        return found
    }

    private static func value(_ entry: RecordTable.Entry, of version: VersionID, _ bodies: inout RecordReader) throws -> [UInt8] {
        let damaged = PackFault.damaged("a value of it is damaged")
        return try bodies.with(entry.bodyOffset, RecordTable.bodyHeaderSize + entry.size, ahead: 64 << 10) { buffer in
            guard let stored = RecordTable.body(buffer, size: entry.size, id: entry.id, version: version), stored.count == entry.size
            else { throw damaged }
            return try Memory.copy(stored, "A value of a pack")
        } ?? { throw damaged }()
    }

    /// Makes a value from its difference.
    private static func made(
        _ entry: RecordTable.Entry, of version: VersionID, _ bodies: inout RecordReader, _ withBase: WithBase
    ) throws -> [UInt8] {
        let damaged = PackFault.damaged("a value of it is a damaged difference")
        return try bodies.with(entry.bodyOffset, RecordTable.bodyHeaderSize + entry.storedSize, ahead: 64 << 10) { buffer in
            guard let stored = RecordTable.difference(buffer, size: entry.size, id: entry.id, version: version),
                stored.count == entry.storedSize
            else { throw damaged }
            switch ValueDifference.read(stored, size: entry.size) {
            case .newer: throw PackFault.newer("a value of it is a difference of a kind that this library does not know")
            case .damaged: throw damaged
            case .difference(let difference):
                // Refused like a deflated value, since the block is deflated already.
                guard !difference.isDeflated else {
                    throw PackFault.damaged("a difference of it is deflated within its record, which no writer does")
                }
                var value: [UInt8]?
                try withBase(entry.id, difference) { base in
                    try Memory.expect(entry.size, "A value of a pack")
                    value = try [UInt8](unsafeUninitializedCapacity: entry.size) { buffer, count in
                        let target = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<entry.size])
                        guard try difference.apply(to: base, into: target) else { throw damaged }
                        count = entry.size
                    }
                }
                guard let value else { throw damaged }
                if !difference.base.hasContentForm {
                    guard let digest = entry.digest, digest.elementsEqual(value.withUnsafeBytes({ SHA256.digest($0) })) else {
                        throw damaged
                    }
                }
                return value
            }
        } ?? { throw damaged }()
    }
}

extension Store.ReceivedVersion {
    /// Returns the value that the version stores under an id; nil if there is none in memory.
    package func value(_ id: UnsafeRawBufferPointer) -> [UInt8]? {
        // Changes of records are in order of their ids.
        var low = 0, high = changes.count
        while low < high {
            let middle = (low + high) / 2
            let order = changes[middle].id.bytes.withUnsafeBytes { Bytes.compare($0, id) }
            if order == 0 { low = middle; break }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        guard low < changes.count, written[low] == nil else { return nil }
        switch changes[low] {
        case .insert(let found, let data), .update(let found, let data):
            return found.bytes.withUnsafeBytes { Bytes.equal($0, id) } ? data : nil
        default: return nil
        }
    }
}

extension Store {
    /// Returns the base of a received difference, from the store; nil if the version of the base is not here.
    /// - Throws: `PackFault` if that version does not hold it; the error of the damage if it is damaged here.
    package func base(of difference: ValueDifference, _ id: UnsafeRawBufferPointer) throws -> [UInt8]? {
        let base = difference.base, size = difference.baseSize
        if let known = records.bases.find(base, id, size: size, checksum: difference.baseChecksum) { return known }
        guard try unknown(among: [base]).isEmpty, let place = recordPlaces(of: base).first else { return nil }
        guard let found = try records.findChange(place, id), found.kind == .insert || found.kind == .update, found.body.size == size
        else { throw PackFault.damaged("a value of it is a difference from what version \(base) does not hold") }
        let unknown = MapEntry(version: 0, size: MapEntry.unknownSize, bodyOffset: 0)
        let value = try records.withBody(place, unknown, id: id, stored: base) { try Memory.copy($0, "A value of a pack") }
        let checksum = value.withUnsafeBytes { Bytes.crc32c($0) }
        if checksum == difference.baseChecksum { records.bases.keep(base, id, value, checksum: checksum) }
        return value
    }
}
