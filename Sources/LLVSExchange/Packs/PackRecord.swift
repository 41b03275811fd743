/// Writes the record of a stored version in the form of packs. Values are uncompressed, and large values are named by their content. The
/// record is created while the stored record is read, so that a large record is never completely in memory.
package struct PackRecord {
    let id: VersionID
    private let records: Records
    let place: RecordPlace
    let header: RecordHeader
    /// The whole record if it is small, so that it is read only once.
    private let whole: [UInt8]?
    private static let small: UInt64 = 64 << 10
    /// The indexes of changes whose bytes are sent to nobody, and whether the store has any.
    private let withheld: Set<Int>, isWithholding: Bool
    /// The blobs of the changes, by the index of the change.
    package var blobs: [Int: BlobReference] = [:]

    package init(_ id: VersionID, of store: Store) throws {
        self.id = id
        records = store.records
        place = store.place(of: try store.requireOrdinal(id))
        withheld = try store.orders.withheld(of: id)
        isWithholding = try store.orders.isWithholding
        whole = place.length > PackRecord.small ? nil : try records.bytes(of: place)
        var reader = PackRecord.reader(whole, place, records)
        header = try records.header(&reader, place)
    }

    /// Checks that the record has the bytes of all values, for a reader that does not know hollow changes, or a pack that must have them.
    /// - Parameter erased: indexes of changes that need no bytes.
    /// - Throws: `.forgotten` or `.erased` for the first value without bytes.
    package func requireBytes(except erased: [Int] = []) throws {
        guard header.hasHollow || !withheld.isEmpty else { return }
        let erased = Set(erased)
        try forEachChange { index, entry in if entry.isHollow, !erased.contains(index) { throw records.forgotten(entry.id, id) } }
    }

    private static func reader(_ whole: [UInt8]?, _ place: RecordPlace, _ records: Records) -> RecordReader {
        whole.map { RecordReader($0, length: $0.count) } ?? records.reader(place)
    }

    /// Calls with each change and its index.
    package func forEachChange(_ body: (Int, RecordTable.Entry) throws -> Void) throws {
        var index = 0, reader = PackRecord.reader(whole, place, records)
        let isWhole = try reader.forEachChange(header) { entry in
            defer { index += 1 }
            guard withheld.contains(index), !entry.isHollow, entry.kind == .insert || entry.kind == .update,
                !entry.id.starts(with: EraseOrder.reserved)
            else { return try body(index, entry) }
            try digest(entry).withUnsafeBytes { try body(index, entry.hollowed($0)) }
        }
        guard isWhole else { throw records.damaged(place, "has a damaged table of changes", version: header.id) }
    }

    /// Calls with the bytes of a value that is not a blob in the pack.
    private func withValue<R>(_ entry: RecordTable.Entry, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R {
        let found: R?? = try whole?.withUnsafeBytes { (bytes) -> R? in
            guard entry.bodyOffset > 0, entry.bodyOffset <= bytes.count else { return nil }
            let rest = UnsafeRawBufferPointer(rebasing: bytes[entry.bodyOffset...])
            // Compressed values, differences and damaged values are read through `records`.
            guard let value = RecordTable.body(rest, size: entry.size, id: entry.id, version: id), value.count == entry.size else {
                return nil
            }
            return try body(value)
        }
        if case .some(.some(let result)) = found { return result }
        let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
        return try records.withBody(place, located, id: entry.id, stored: id, body)
    }

    /// Returns a reader for the value of a change.
    package func reader(_ entry: RecordTable.Entry, of store: Store) throws -> ValueReader {
        let located = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: entry.size), bodyOffset: UInt64(entry.bodyOffset))
        return try ValueReader(store, Store.Located(entry: located, stored: id, place: place), id: entry.id)
    }

    /// Returns the SHA-256 of a value.
    package func digest(_ entry: RecordTable.Entry) throws -> [UInt8] {
        if let digest = entry.digest { return Array(digest) }
        return try withValue(entry) { SHA256.digest($0) }
    }

    /// Returns the first 8 bytes of the identity digest.
    func identity(_ control: PacedControl) throws -> UInt64 { try records.identityDigest(place, control).first8 }

    /// The most bytes that the record has without its changes.
    package var fixedSize: Int {
        let metadata = header.metadata.entries.reduce(0) { $0 + 20 + $1.key.count + $1.value.count }
        return 256 + 130 * (header.predecessors.count + header.dependencies.count) + metadata + 40 * header.pageCount
    }

    /// Returns the most bytes that a change takes, in the record and after it.
    package static func size(_ entry: RecordTable.Entry, isBlob: Bool) -> Int {
        let head = 16 + entry.id.count
        guard entry.kind == .insert || entry.kind == .update else { return head }
        if entry.isHollow { return head + 32 }
        if isBlob { return head + 16 + 32 + 16 + 64 + PackID.size * (entry.size / PackFormat.partSize + 1) }
        return head + (entry.size > RecordTable.digestThreshold ? 32 : 0) + RecordTable.bodyHeaderSize + entry.size
    }

    // MARK: The bytes

    /// Returns form 0 of the payload and the first 8 bytes of the identity digest, in one pass. For small records.
    /// - Parameter differences: makes values differences; nil if all values are to be whole.
    func payload(_ differences: inout PackDifferences?) throws -> (payload: [UInt8], identity: UInt64) {
        var hasher: IdentityHasher? = IdentityHasher(.identity)
        hasher?.add(header.version, changeCount: header.changeCount)
        let payload = try payload(hashedBy: &hasher) { try differences?.difference($0, $1, of: self) }
        return (payload, hasher?.finish().first8 ?? 0)
    }

    /// Returns form 0 of the payload, for a link.
    /// - Parameter account: what values that are differences in the store, and are sent so, may take; nil if all are sent whole.
    package func bytes(differences account: SourceAccount?) throws -> [UInt8] {
        var none: IdentityHasher?
        let account = isWithholding ? nil : account
        return try payload(hashedBy: &none) { try storedDifference($0, $1, account) }
    }

    /// Returns the difference as which the store has the value, with its streams uncompressed; nil if the value is to be sent whole.
    private func storedDifference(
        _ entry: RecordTable.Entry, _ data: UnsafeRawBufferPointer, _ account: SourceAccount?
    ) throws -> [UInt8]? {
        guard let account, entry.isDifference else { return nil }
        let found: [UInt8]?? = try records.withStored(
            place, at: UInt64(entry.bodyOffset), size: entry.size, id: entry.id, stored: id, anew: false
        ) { form -> [UInt8]? in
            guard case .difference(let bytes) = form, case .difference(let difference) = ValueDifference.read(bytes, size: entry.size),
                // If the id is not a content id, the other side may have recorded another value under it.
                difference.base.hasContentForm, difference.checksum == Bytes.crc32c(data)
            else { return nil }
            let plain = try difference.plain(
                ValueDifference.Link(
                    version: difference.base, body: 0, place: difference.place, wayBefore: difference.waySize - bytes.count),
                size: data.count, atMost: data.count - 64)
            let costs = SourceAccount.sum(UInt64(clamping: data.count), UInt64(clamping: difference.baseSize))
            return plain != nil && account.spend(differences: costs) ? plain : nil
        }
        return found ?? nil
    }

    private func payload(
        hashedBy hasher: inout IdentityHasher?, _ difference: (RecordTable.Entry, UnsafeRawBufferPointer) throws -> [UInt8]?
    ) throws -> [UInt8] {
        var table = PackTable(changeCount: header.changeCount), pages: [UInt8] = [], bodies = ByteWriter(), hasDifferences = false
        var hasHollow = false
        try forEachChange { index, entry in
            if entry.isHollow, let hollow = WrittenValue(hollow: entry) {
                hasHollow = true
                hollow.digest.withUnsafeBytes { hasher?.add(setting: entry.id, size: entry.size, digest: $0) }
                if let page = table.add(entry, digest: hollow.digest) { pages += page }
                return
            }
            guard entry.kind == .insert || entry.kind == .update else {
                hasher?.add(entry.kind, entry.id, stored: entry.kind == .preserve ? header.dependencies[entry.dependency] : nil)
                if let page = table.add(entry) { pages += page }
                return
            }
            if let blob = blobs[index] {
                blob.sha256.withUnsafeBytes { hasher?.add(setting: entry.id, size: entry.size, digest: $0) }
                if let page = table.add(entry, blob: blob.blobID, digest: blob.sha256) { pages += page }
                return
            }
            try withValue(entry) { data in
                let made = try difference(entry, data)
                let isTold = entry.size > RecordTable.digestThreshold
                let digest = isTold || hasher != nil ? SHA256.digest(data) : []
                digest.withUnsafeBytes { hasher?.add(setting: entry.id, size: entry.size, digest: $0) }
                if let page = table.add(entry, digest: isTold ? digest : nil, difference: made?.count) { pages += page }
                let size = made?.count ?? data.count
                try Memory.grow(&bodies.bytes, by: RecordTable.bodyHeaderSize + size, "Packing a version")
                if let made {
                    hasDifferences = true
                    made.withUnsafeBytes { appendDifference(entry, $0, to: &bodies) }
                } else {
                    appendBody(entry, data, to: &bodies)
                }
            }
        }
        pages += table.directory
        let record = start(tableSize: pages.count, bodiesSize: bodies.bytes.count, hasDifferences: hasDifferences, hasHollow: hasHollow)
        let references = references
        var out = ByteWriter()
        let size = record.count + pages.count + bodies.bytes.count
        try Memory.grow(&out.bytes, by: 16 + size + references.count, "Packing a version")
        out.bytes.append(0)
        out.varint(UInt64(size))
        out.raw(record)
        out.raw(pages)
        out.raw(bodies.bytes)
        out.raw(references)
        return out.bytes
    }

    /// Calls with form 0 of the payload in pieces, which are the same each time. For large records.
    func forEachPiece(_ control: PacedControl, _ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
        func isValue(_ entry: RecordTable.Entry) -> Bool { entry.kind == .insert || entry.kind == .update }
        let none = [UInt8](repeating: 0, count: 32)
        var sizes = PackTable(changeCount: header.changeCount), tableSize = 0, hasHollow = false
        try forEachChange { index, entry in
            try control.step(0)
            hasHollow = hasHollow || entry.isHollow
            let blob = blobs[index], hasDigest = blob != nil || entry.isHollow || entry.size > RecordTable.digestThreshold
            let page = sizes.add(entry, blob: blob?.blobID, digest: isValue(entry) && hasDigest ? none : nil)
            tableSize += page?.count ?? 0
        }
        tableSize += sizes.directory.count
        let record = start(tableSize: tableSize, bodiesSize: sizes.bodiesSize, hasHollow: hasHollow)
        var out = ByteWriter()
        out.bytes.append(0)
        out.varint(UInt64(record.count + tableSize + sizes.bodiesSize))
        out.raw(record)
        try out.bytes.withUnsafeBytes(sink)
        var table = PackTable(changeCount: header.changeCount)
        try forEachChange { index, entry in
            try control.step(0)
            var digest = blobs[index]?.sha256
            if digest == nil, isValue(entry), entry.isHollow || entry.size > RecordTable.digestThreshold {
                digest = try self.digest(entry)
            }
            try table.add(entry, blob: blobs[index]?.blobID, digest: digest)?.withUnsafeBytes(sink)
        }
        try table.directory.withUnsafeBytes(sink)
        try forEachChange { index, entry in
            guard isValue(entry), blobs[index] == nil, !entry.isHollow else { return }
            try control.step(0, bytes: entry.size)
            try withValue(entry) { data in
                var body = ByteWriter()
                appendBody(entry, UnsafeRawBufferPointer(start: nil, count: 0), checksumOf: data, to: &body)
                try body.bytes.withUnsafeBytes(sink)
                try sink(data)
            }
        }
        try references.withUnsafeBytes(sink)
    }

    /// The references to blobs after the record, without duplicates.
    private var references: [UInt8] {
        var once: [PackID: BlobReference] = [:]
        for blob in blobs.values { once[blob.digest] = blob }
        var out = ByteWriter()
        out.varint(UInt64(once.count))
        for blob in once.values.sorted(by: { $0.digest < $1.digest }) { blob.write(into: &out) }
        return out.bytes
    }

    private func appendBody(
        _ entry: RecordTable.Entry, _ data: UnsafeRawBufferPointer, checksumOf covered: UnsafeRawBufferPointer? = nil,
        to out: inout ByteWriter
    ) {
        let size = UInt32(truncatingIfNeeded: entry.size)
        out.integer(RecordTable.bodyChecksum(sizeField: size, id: entry.id, version: id, stored: covered ?? data))
        out.integer(size)
        out.raw(data)
    }

    private func appendDifference(_ entry: RecordTable.Entry, _ stored: UnsafeRawBufferPointer, to out: inout ByteWriter) {
        let field = UInt32(truncatingIfNeeded: stored.count) | RecordTable.differenceBit
        out.integer(RecordTable.bodyChecksum(sizeField: field, id: entry.id, version: id, stored: stored))
        out.integer(field)
        out.raw(stored)
    }

    /// Returns the prelude and the version header.
    private func start(tableSize: Int, bodiesSize: Int, hasDifferences: Bool = false, hasHollow: Bool) -> [UInt8] {
        var out = ByteWriter()
        out.versionID(id)
        out.varint(UInt64(header.predecessors.count))
        for predecessor in header.predecessors { out.versionID(predecessor) }
        out.integer(header.timestamp.bitPattern)
        out.varint(header.valueDataSize)
        out.varint(UInt64(header.changeCount))
        out.varint(UInt64(header.pageCount))
        out.varint(UInt64(header.dependencies.count))
        for dependency in header.dependencies { out.versionID(dependency) }
        let named = Set(blobs.values.map(\.digest)).sorted()
        out.varint(UInt64(named.count))
        for blob in named { out.raw(blob.bytes) }
        out.varint(UInt64(header.metadata.entries.count))
        for entry in header.metadata.entries {
            out.varint(UInt64(entry.key.count))
            out.raw(entry.key)
            out.varint(UInt64(entry.value.count))
            out.raw(entry.value)
        }
        var prelude = ByteWriter()
        let flags = (hasDifferences ? RecordHeader.hasDifferencesFlag : 0) | (hasHollow ? RecordHeader.hasHollowFlag : 0)
        prelude.integer(UInt32(RecordHeader.format) | UInt32(flags) << 8)
        prelude.integer(UInt32(truncatingIfNeeded: out.bytes.count))
        prelude.integer(UInt64(tableSize))
        prelude.integer(UInt64(bodiesSize))
        let checksum = out.bytes.withUnsafeBytes { header in
            Bytes.crc32c(header, from: prelude.bytes.withUnsafeBytes { Bytes.crc32c($0) })
        }
        prelude.integer(checksum)
        return prelude.bytes + out.bytes
    }
}

/// Builds the table of changes of a record, page by page.
private struct PackTable {
    private let changeCount: Int
    private var page = ByteWriter()
    private var added = 0
    private var offset = 0
    private var starts = ByteWriter()
    /// The bytes of the bodies of the changes so far.
    private(set) var bodiesSize = 0

    init(changeCount: Int) { self.changeCount = changeCount }

    /// Adds a change. Returns a page when it is full, or is the last.
    /// - Parameter difference: the size of the stored bytes, if the value is a difference.
    mutating func add(_ entry: RecordTable.Entry, blob: BlobID? = nil, digest: [UInt8]? = nil, difference: Int? = nil) -> [UInt8]? {
        if added % RecordTable.changesPerPage == 0 {
            page = ByteWriter()
            page.integer(UInt64(0))
            page.varint(UInt64(added / RecordTable.changesPerPage))
            page.varint(UInt64(bodiesSize))
        }
        added += 1
        let encoding = entry.isHollow ? RecordTable.Encoding.hollow : blob == nil ? .raw : .blob
        page.bytes.append(entry.kind.rawValue | encoding.rawValue << 3 | (digest == nil ? 0 : 32) | (difference == nil ? 0 : 128))
        page.varint(UInt64(entry.id.count))
        page.raw(entry.id)
        switch entry.kind {
        case .insert, .update:
            page.varint(UInt64(entry.size))
            if let difference { page.varint(UInt64(difference)) }
            if let blob {
                page.blobID(blob)
            } else if !entry.isHollow {
                bodiesSize += RecordTable.bodyHeaderSize + (difference ?? entry.size)
            }
            if let digest { page.raw(digest) }
        case .preserve: page.varint(UInt64(entry.dependency))
        case .remove, .preserveRemoval: break
        }
        guard added % RecordTable.changesPerPage == 0 || added == changeCount else { return nil }
        page.patch(UInt32(truncatingIfNeeded: page.bytes.count - RecordTable.pageHeaderSize), at: 4)
        page.patch(page.bytes.withUnsafeBytes { Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[4...])) }, at: 0)
        starts.integer(UInt64(offset))
        offset += page.bytes.count
        return page.bytes
    }

    /// The offsets of the pages, if there are two or more; else empty.
    var directory: [UInt8] { changeCount > RecordTable.changesPerPage ? starts.bytes : [] }
}

extension [UInt8] {
    /// The first eight bytes of a digest, as a number.
    package var first8: UInt64 { prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}
