import CLLVSShims

/// Makes a record from a version and its changes.
///
/// It works in two passes, so that a large record is never completely in memory. The first pass computes sizes and checksums, because these
/// precede the bytes that they describe. The second pass returns the bytes, piece by piece. The encoder retains small results of the first
/// pass for the second: small records, tables and deflated values. Otherwise it retains sixteen bytes for each change, and reads the values
/// again from the caller's memory.
///
/// An encoder makes one record at a time. It can be used again, and then reuses its buffers. Used by one thread at a time.
package final class RecordEncoder {
    /// The result of the first pass for the body of a change.
    struct Body {
        private static let deflated: UInt32 = 1 << 31
        /// Flags that are set together with `deflated`, whose sizes are below 1 GiB: the body is a difference; its entry has a digest.
        private static let difference: UInt32 = 1 << 30, digest: UInt32 = 1 << 29
        private static let none = UInt32.max
        /// The size of a value of which the record has only the size and the digest.
        private static let hollow = UInt32.max - 1
        private var sizeField = Body.none
        let checksum: UInt32
        /// The value in the caller's memory.
        let data: UnsafeRawPointer?

        /// Creates the result for a change without a body in the record.
        init(isHollow: Bool = false) { checksum = 0; data = nil; sizeField = isHollow ? Body.hollow : Body.none }
        /// Creates the result for a value that is stored in `size` bytes, as it is or deflated.
        init(checksum: UInt32, size: Int, isDeflated: Bool, of data: UnsafeRawBufferPointer) {
            self.checksum = checksum
            sizeField = UInt32(truncatingIfNeeded: size) | (isDeflated ? Body.deflated : 0)
            self.data = data.baseAddress
        }
        /// Creates the result for a difference of `size` stored bytes.
        init(checksum: UInt32, difference size: Int, hasDigest: Bool) {
            self.checksum = checksum
            sizeField = UInt32(truncatingIfNeeded: size) | Body.deflated | Body.difference | (hasDigest ? Body.digest : 0)
            data = nil
        }
        var isNone: Bool { sizeField >= Body.hollow }
        var isHollow: Bool { sizeField == Body.hollow }
        var isDifference: Bool { !isNone && sizeField & (Body.deflated | Body.difference) == Body.deflated | Body.difference }
        /// Whether the entry has a digest although the value is small.
        var hasDigest: Bool { isDifference && sizeField & Body.digest != 0 }
        /// Whether the encoder retains the stored bytes, because they are deflated or a difference.
        var isDeflated: Bool { !isNone && sizeField & Body.deflated != 0 }
        /// The number of stored bytes, at most 1 GiB.
        var size: Int {
            if isNone { return 0 }
            return Int(sizeField & ~(isDifference ? Body.deflated | Body.difference | Body.digest : Body.deflated))
        }
        /// The size field of the body in the record.
        var storedField: UInt32 { UInt32(truncatingIfNeeded: size) | (isDifference ? RecordTable.differenceBit : 0) }
        /// The size of the body in the record, with its header.
        var sizeInRecord: Int { isNone ? 0 : RecordTable.bodyHeaderSize + size }
    }

    /// How far the table, or the bodies, have been written.
    struct Cursor {
        var bodies = 0
        var blob = 0
        var digest = 0
        var deflated = 0
    }

    /// How much the encoder holds in memory, in bytes.
    package struct Sizes {
        /// The approximate size of a piece.
        var piece = 256 << 10
        /// A value larger than this is passed from the caller's memory without a copy.
        var largeValue = 32 << 10
        /// A record is retained whole if its table and its bodies each have at most this size.
        var whole = 64 << 10
        /// A larger table is rebuilt in the second pass.
        var table = 8 << 20
        /// Deflated values beyond this total are deflated again in the second pass.
        var deflated = 8 << 20
    }
    let sizes: Sizes

    /// The prelude and the header. If the record is retained whole, also the rest of it.
    var head = RecordBuffer()
    var table = RecordBuffer()
    /// The current piece: bodies in the first pass, any part of the record in the second.
    var piece = RecordBuffer()
    var deflated = RecordBuffer()
    /// The deflated bytes of the changes before this index are in `deflated`.
    private(set) var deflatedEnd = Int.max
    private(set) var bodies: [Body] = []
    /// The blobs that the last prepared record names.
    private(set) var blobs: [BlobID] = []
    /// The SHA-256 of each value whose entry has one, one after another.
    private var digests: [UInt8] = []
    /// The digests that the caller gave, and how many of their bytes were used.
    private var known: [UInt8] = []
    private var knownTaken = 0
    private var dependencies: [VersionID] = []
    private var dependencyIndex: [VersionID: Int] = [:]
    /// Where each page begins in the table.
    var directory: [UInt64] = []
    /// The text of the version id. The checksum of each body covers it.
    private var versionText = RecordBuffer()

    /// Whether a value of the record is a difference.
    private(set) var hasDifferences = false
    /// Whether a value of the record has no bytes.
    private var hasHollow = false
    /// Whether the record has a change under `__llvs_forget/`.
    private(set) var hasForgetValues = false
    private(set) var isTableKept = true
    private(set) var isWhole = true
    private var tableSize = 0
    private var bodiesSize = 0
    private var tableChecksum: UInt32 = 0
    private var bodiesChecksum: UInt32 = 0
    /// The offset of the bodies in the last prepared record.
    private(set) var bodiesStart = 0
    /// The checksum of the last prepared header.
    package private(set) var checksum: UInt32 = 0
    /// The checksum of all bytes of the last prepared record; nil if the record is retained whole.
    private(set) var recordChecksum: UInt32?
    /// The size of the last prepared record in bytes.
    var recordSize: Int { bodiesStart + bodiesSize }
    /// The approximate size of the retained buffers in bytes.
    var memory: Int {
        head.capacity + table.capacity + piece.capacity + deflated.capacity + bodies.capacity * 16 + blobs.capacity * 16 + digests.capacity
            + directory.capacity * 8
    }

    package init(_ sizes: Sizes = Sizes()) { self.sizes = sizes }

    /// Prepares the record of `version`. `changes` are sorted by id bytes and valid. `blobThreshold` and
    /// `storeBlob` are the storage's.
    /// - Parameters:
    ///   - startsStore: whether the record says that descendants may have differences.
    ///   - difference: makes differences.
    /// - Parameter given: the digests of the values above `RecordTable.digestThreshold` that have no file yet, in order; empty if they are
    ///   not known.
    package func encode(
        _ version: Version, _ changes: RecordChanges, digests given: [UInt8] = [], storedAt: Double? = nil, blobThreshold: Int?,
        startsStore: Bool = false, difference: MakingDifferences = { _, _, _, _ in nil },
        storeBlob: (UnsafeRawBufferPointer, _ digest: [UInt8]) throws -> BlobID
    ) throws {
        removeAll()
        known = given
        bodies.reserveCapacity(changes.count)
        try versionText.reserve(Limits.versionIDSize)
        version.id.withASCII { versionText.raw($0) }
        let blobThreshold = blobThreshold ?? Int.max
        var cursor = Cursor()
        try changes.forEachRun(of: RecordTable.changesPerPage, withData: true) { first, page in
            for i in page.indices {
                if page[i].id.first == UInt8(ascii: "_"), page[i].id.starts(with: EraseOrder.reserved) { hasForgetValues = true }
                if let written = page[i].written {
                    try written._withUnsafeGuaranteedRef { try take($0) }
                } else if page[i].hasData {
                    if deflatedEnd == .max, let made = try difference(page[i].kind, page[i].id, page[i].data, first + i),
                        made.stored.count <= sizes.deflated - deflated.count
                    {
                        try prepareDifference(page[i].id, page[i].data, made.stored, hasDigest: made.hasDigest)
                    } else if page[i].data.count > blobThreshold {
                        let digest = self.digest(page[i].data)
                        blobs.append(try storeBlob(page[i].data, digest))
                        digests.append(contentsOf: digest)
                        bodies.append(Body())
                    } else {
                        try prepareBody(page[i].id, page[i].data)
                    }
                } else {
                    if page[i].kind == .preserve, let stored = changes.storedVersion(at: first + i) { noteDependency(stored) }
                    bodies.append(Body())
                }
            }
            directory.append(UInt64(tableSize + table.count))
            try writePage(changes, page, first, &cursor, into: &table)
            if table.count > sizes.table { isTableKept = false; isWhole = false }
            if !isTableKept, table.count > sizes.piece { foldTable() }
        }
        try writeDirectory(into: &table)
        try writeHeader(version, changes.count, storedAt: storedAt, startsStore: startsStore)
        try finish(bodiesSize: cursor.bodies)
    }

    private func removeAll() {
        head.removeAll(keepingAtMost: sizes.piece)
        table.removeAll(keepingAtMost: sizes.piece)
        piece.removeAll()
        deflated.removeAll(keepingAtMost: sizes.piece)
        deflatedEnd = .max
        bodies.removeAll(keepingCapacity: true)
        blobs.removeAll(keepingCapacity: true)
        digests.removeAll(keepingCapacity: true)
        knownTaken = 0
        if !dependencies.isEmpty { dependencies = []; dependencyIndex = [:] }
        directory.removeAll(keepingCapacity: true)
        versionText.removeAll()
        hasDifferences = false
        hasHollow = false
        hasForgetValues = false
        isTableKept = true
        isWhole = true
        tableSize = 0
        tableChecksum = 0
        bodiesChecksum = 0
    }

    private func finish(bodiesSize: Int) throws {
        let headSize = head.count
        self.bodiesSize = bodiesSize
        if table.count > sizes.whole { isWhole = false }
        if isWhole {
            try head.reserve(table.count + piece.count)
            tableSize = table.count
        } else {
            tableChecksum = Bytes.crc32c(table.bytes, from: tableChecksum)
            tableSize += table.count
            foldBodies()
        }
        bodiesStart = headSize + tableSize
        head.patch(UInt32(truncatingIfNeeded: headSize - RecordHeader.preludeSize), at: 4)
        head.patch(UInt64(tableSize), at: 8)
        head.patch(UInt64(bodiesSize), at: 16)
        let header = UnsafeRawBufferPointer(rebasing: head.bytes[RecordHeader.preludeSize..<headSize])
        checksum = Bytes.crc32c(header, from: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: head.bytes[0..<24])))
        head.patch(checksum, at: 24)
        if isWhole {
            head.raw(table.bytes)
            head.raw(piece.bytes)
            recordChecksum = nil
        } else {
            let throughTable = llvs_shim_crc32c_combine(Bytes.crc32c(head.bytes), tableChecksum, UInt64(tableSize))
            recordChecksum = llvs_shim_crc32c_combine(throughTable, bodiesChecksum, UInt64(bodiesSize))
        }
    }

    private func writeHeader(_ version: Version, _ changeCount: Int, storedAt: Double?, startsStore: Bool) throws {
        var size = 1_024 + 130 * dependencies.count + 16 * blobs.count
        for entry in version.metadata.entries { size += 20 + entry.key.count + entry.value.count }
        try head.reserve(size)
        let flags =
            (storedAt == nil ? 0 : RecordHeader.hasExtensions) | (hasDifferences ? RecordHeader.hasDifferencesFlag : 0)
            | (startsStore ? RecordHeader.mayHaveDifferencesFlag : 0) | (hasHollow ? RecordHeader.hasHollowFlag : 0)
            | (hasForgetValues ? RecordHeader.hasForgetValuesFlag : 0)
        head.integer(UInt32(RecordHeader.format) | UInt32(flags) << 8)
        head.integer(UInt32(0))
        head.integer(UInt64(0))
        head.integer(UInt64(0))
        head.integer(UInt32(0))
        head.versionID(version.id)
        head.varint(UInt64(version.predecessors.count))
        for predecessor in version.predecessors { head.versionID(predecessor) }
        head.integer(version.timestamp.bitPattern)
        head.varint(version.valueDataSize)
        head.varint(UInt64(changeCount))
        head.varint(UInt64(RecordTable.pages(forChanges: changeCount)))
        head.varint(UInt64(dependencies.count))
        for dependency in dependencies { head.versionID(dependency) }
        head.varint(UInt64(blobs.count))
        for blob in blobs { head.blobID(blob) }
        head.varint(UInt64(version.metadata.entries.count))
        for entry in version.metadata.entries {
            head.varint(UInt64(entry.key.count))
            entry.key.withUnsafeBytes { head.raw($0) }
            head.varint(UInt64(entry.value.count))
            entry.value.withUnsafeBytes { head.raw($0) }
        }
        guard let storedAt else { return }
        head.varint(RecordHeader.storedAtTag)
        head.varint(8)
        head.integer(storedAt.bitPattern)
    }

    /// Returns the stored bytes of the value as a difference (`ValueDifference`), and whether its entry needs a digest; nil if the value is
    /// to be stored whole. `index` is the index of the change.
    package typealias MakingDifferences = (
        _ kind: Value.Change.Kind, _ id: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer, _ index: Int
    ) throws -> (stored: [UInt8], hasDigest: Bool)?

    // MARK: The table

    /// Appends one page with the changes from index `first`. Their bodies are prepared.
    func writePage(
        _ changes: RecordChanges, _ page: UnsafeBufferPointer<BorrowedChange.Bytes>, _ first: Int, _ cursor: inout Cursor,
        into out: inout RecordBuffer
    ) throws {
        let start = out.count
        try out.reserve(64)
        out.integer(UInt64(0))
        out.varint(UInt64(first / RecordTable.changesPerPage))
        out.varint(UInt64(cursor.bodies))
        for i in page.indices {
            let kind = page[i].kind, id = page[i].id
            try out.reserve(128 + id.count)
            if page[i].hasData {
                try writeEntry(kind, id, page[i].size, bodies[first + i], &cursor, into: &out)
            } else {
                out.integer(kind.rawValue)
                out.varint(UInt64(id.count))
                out.raw(id)
                if kind == .preserve { out.varint(UInt64(changes.storedVersion(at: first + i).flatMap { dependencyIndex[$0] } ?? 0)) }
            }
        }
        out.patch(UInt32(truncatingIfNeeded: out.count - start - RecordTable.pageHeaderSize), at: start + 4)
        out.patch(Bytes.crc32c(UnsafeRawBufferPointer(rebasing: out.bytes[(start + 4)...])), at: start)
    }

    /// Appends the entry of a change that stores a value of `size` bytes.
    @inline(__always)
    private func writeEntry(
        _ kind: Value.Change.Kind, _ id: UnsafeRawBufferPointer, _ size: Int, _ body: Body, _ cursor: inout Cursor,
        into out: inout RecordBuffer
    ) throws {
        let hasDigest = body.isNone || size > RecordTable.digestThreshold || body.hasDigest
        guard !body.isNone || body.isHollow || cursor.blob < blobs.count, !hasDigest || cursor.digest + 32 <= digests.count else {
            throw RecordPieces.changed
        }
        let encoding =
            body.isHollow ? RecordTable.Encoding.hollow : body.isNone ? .blob : body.isDeflated && !body.isDifference ? .deflate : .raw
        out.integer(kind.rawValue | encoding.rawValue << 3 | (hasDigest ? 32 : 0) | (body.isDifference ? 128 : 0))
        out.varint(UInt64(id.count))
        out.raw(id)
        out.varint(UInt64(size))
        if body.isDeflated { out.varint(UInt64(body.size)) }
        if body.isNone, !body.isHollow {
            out.blobID(blobs[cursor.blob])
            cursor.blob += 1
        }
        cursor.bodies += body.sizeInRecord
        if hasDigest {
            digests.withUnsafeBytes { out.raw(UnsafeRawBufferPointer(rebasing: $0[cursor.digest..<cursor.digest + 32])) }
            cursor.digest += 32
        }
    }

    /// Appends the offsets of the pages, if there are two or more.
    func writeDirectory(into out: inout RecordBuffer) throws {
        guard directory.count > 1 else { return }
        try out.reserve(8 * directory.count)
        for offset in directory { out.integer(offset) }
    }

    /// Adds a value that is already stored in a blob, or is nowhere.
    private func take(_ written: WrittenValue) throws {
        if written.isHollow {
            hasHollow = true
            digests.append(contentsOf: written.digest)
            bodies.append(Body(isHollow: true))
            return
        }
        blobs.append(written.blob)
        digests.append(contentsOf: written.digest)
        bodies.append(Body())
    }

    private func foldTable() {
        tableChecksum = Bytes.crc32c(table.bytes, from: tableChecksum)
        tableSize += table.count
        table.removeAll(keepingAtMost: 2 * sizes.piece)
    }

    private func noteDigest(_ data: UnsafeRawBufferPointer) {
        if data.count > RecordTable.digestThreshold { digests.append(contentsOf: digest(data)) }
    }

    /// Returns the next of the given digests, or computes the digest if none is given.
    private func digest(_ data: UnsafeRawBufferPointer) -> [UInt8] {
        guard data.count > RecordTable.digestThreshold, known.count - knownTaken >= 32 else { return SHA256.digest(data) }
        knownTaken += 32
        return Array(known[knownTaken - 32..<knownTaken])
    }

    // MARK: Bodies

    private func noteDependency(_ stored: VersionID) {
        guard dependencyIndex[stored] == nil else { return }
        dependencyIndex[stored] = dependencies.count
        dependencies.append(stored)
    }

    private func prepareDifference(
        _ id: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer, _ difference: [UInt8], hasDigest: Bool
    ) throws {
        noteDigest(data)
        if hasDigest, data.count <= RecordTable.digestThreshold { digests.append(contentsOf: SHA256.digest(data)) }
        hasDifferences = true
        let start = deflated.count
        try deflated.reserve(difference.count)
        difference.withUnsafeBytes { deflated.raw($0) }
        let stored = UnsafeRawBufferPointer(rebasing: deflated.bytes[start...])
        let field = UInt32(truncatingIfNeeded: stored.count) | RecordTable.differenceBit
        let checksum = RecordTable.bodyChecksum(sizeField: field, id: id, versionText: versionText.bytes, stored: stored)
        try prepare(Body(checksum: checksum, difference: stored.count, hasDigest: hasDigest), stored)
    }

    private func prepareBody(_ id: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer) throws {
        noteDigest(data)
        if data.count > RecordTable.deflateThreshold, try prepareDeflated(id, data) { return }
        let checksum = bodyChecksum(id, size: data.count, data)
        try prepare(Body(checksum: checksum, size: data.count, isDeflated: false, of: data), data)
    }

    /// Prepares a value as deflated bytes. Returns false if deflate does not make it sufficiently smaller.
    private func prepareDeflated(_ id: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer) throws -> Bool {
        guard let source = data.baseAddress, llvs_shim_may_deflate(source, data.count) == 1 else { return false }
        let room = RecordTable.deflatedRoom(data.count)
        if deflatedEnd == .max, deflated.count + room <= sizes.deflated {
            let start = deflated.count
            try deflated.reserve(room)
            deflated.withRoom { llvs_shim_deflate(source, data.count, $0.baseAddress, room) }
            guard deflated.count > start else { return false }
            let stored = UnsafeRawBufferPointer(rebasing: deflated.bytes[start...])
            try prepare(
                Body(checksum: bodyChecksum(id, size: stored.count, stored), size: stored.count, isDeflated: true, of: data), stored)
            return true
        }
        if deflatedEnd == .max { deflatedEnd = bodies.count }
        isWhole = false
        foldBodies()
        var size = 0
        var stored: UInt32 = 0
        let isWholly = try forEachDeflated(data) { bytes in
            size += bytes.count
            stored = Bytes.crc32c(bytes, from: stored)
            return size <= room
        }
        guard isWholly else { return false }
        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
        let checksum = llvs_shim_crc32c_combine(bodyChecksum(id, size: size, empty), stored, UInt64(size))
        try prepare(Body(checksum: checksum, size: size, isDeflated: true, of: data), empty)
        foldBodies()
        bodiesChecksum = llvs_shim_crc32c_combine(bodiesChecksum, stored, UInt64(size))
        return true
    }

    /// Calls with the deflated bytes, piece by piece, until the body returns false. Each piece is in `piece`, which must be empty at first.
    /// - Returns: whether the body was called with all bytes, and never returned false.
    func forEachDeflated(_ data: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Bool) throws -> Bool {
        guard llvs_shim_deflate_begin(data.baseAddress, data.count) == 1 else { return false }
        try piece.reserve(sizes.piece)
        defer { piece.removeAll() }
        var done: Int32 = 0
        while done == 0 {
            piece.removeAll()
            piece.withRoom { llvs_shim_deflate_more($0.baseAddress, sizes.piece, &done) }
            guard piece.count > 0 || done != 0, try body(piece.bytes) else { return false }
        }
        return true
    }

    private func bodyChecksum(_ id: UnsafeRawBufferPointer, size: Int, _ stored: UnsafeRawBufferPointer) -> UInt32 {
        RecordTable.bodyChecksum(sizeField: UInt32(truncatingIfNeeded: size), id: id, versionText: versionText.bytes, stored: stored)
    }

    /// Adds a body. `stored` has its stored bytes, or is empty if they are added later.
    private func prepare(_ body: Body, _ stored: UnsafeRawBufferPointer) throws {
        bodies.append(body)
        let size = RecordTable.bodyHeaderSize + stored.count
        if isWhole, piece.count + size > sizes.whole { isWhole = false }
        if !isWhole, piece.count + size > sizes.piece { foldBodies() }
        try writeBodyHeader(body)
        if isWhole || stored.count <= sizes.largeValue {
            try piece.reserve(stored.count)
            piece.raw(stored)
        } else {
            foldBodies()
            bodiesChecksum = Bytes.crc32c(stored, from: bodiesChecksum)
        }
    }

    func writeBodyHeader(_ body: Body) throws {
        try piece.reserve(RecordTable.bodyHeaderSize)
        piece.integer(body.checksum)
        piece.integer(body.storedField)
    }

    private func foldBodies() {
        bodiesChecksum = Bytes.crc32c(piece.bytes, from: bodiesChecksum)
        piece.removeAll()
    }
}
