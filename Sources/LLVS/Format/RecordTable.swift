/// The change table of a record: its changes in order of their ids, in pages that can be read one by one.
///
///     table     = page · page ... · directory
///     page      = checksum u32 · size u32 · page number varint · offset of its first body varint · entry ...
///     directory = (only with two pages or more) per page: offset in the table u64
///     entry     = tag u8 · id (varint size, bytes) · by kind:
///         insert, update   size varint · [stored size varint, when deflated or a difference] · [blob 16]
///                          · [SHA-256 32, of a blob or over 64 KiB]
///         preserve         index into the header's dependencies varint
///         remove, preserveRemoval   nothing
///     tag       = kind (bits 0-2) · encoding (bits 3-4: 0 as is, 1 deflated, 2 blob) · digest (bit 5) · ignorable (bit 6)
///               · difference (bit 7; only in a record whose header says that there are some)
///     body      = checksum u32 · stored size u32, bit 31 set: a difference · the stored bytes
///
/// A page's checksum covers all of the page behind it; a body's covers its stored size field, the value id,
/// the text of the version id and the stored bytes: bytes of another value are never taken for these.
enum RecordTable {
    static let changesPerPage = 64
    static let pageHeaderSize = 8
    static let bodyHeaderSize = 8
    /// Values larger than this are deflated when they look as if that made them smaller, and it does.
    static let deflateThreshold = 256
    /// Of values up to this size deflate must take an eighth away: to inflate one takes longer than all else that is done to read it.
    static let smallValue = 512
    /// How many bytes a value of that size may have deflated at most.
    static func deflatedRoom(_ size: Int) -> Int { size <= smallValue ? size - size / 8 : size - 1 }
    /// Bytes that one deflated byte stands for at most: a quarter of it is a match of 258 bytes. Who claims more would have
    /// memory reserved for what never comes.
    static let deflateRatio = 1032
    /// Values larger than this carry their SHA-256, so that equal ones are found without reading them. So do all in blobs.
    static let digestThreshold = 64 << 10

    static func pages(forChanges count: Int) -> Int { (count + changesPerPage - 1) / changesPerPage }

    enum Encoding: UInt8 { case raw = 0, deflate, blob }

    /// One change as the table has it; pointers are good as long as the table's bytes are.
    struct Entry {
        var kind: Value.Change.Kind
        var id: UnsafeRawBufferPointer
        var encoding = Encoding.raw
        var size = 0
        var storedSize = 0
        /// The body is a difference from an earlier value of the same id: `ValueDifference`.
        var isDifference = false
        /// Where the body begins, from the start of the record; 0 when there is none.
        var bodyOffset = 0
        var blob: BlobID?
        var digest: UnsafeRawBufferPointer?
        var dependency = 0
    }

    static func bodyChecksum(sizeField: UInt32, id: UnsafeRawBufferPointer, version: VersionID, stored: UnsafeRawBufferPointer) -> UInt32 {
        version.withASCII { bodyChecksum(sizeField: sizeField, id: id, versionText: $0, stored: stored) }
    }

    @inline(__always)
    static func bodyChecksum(
        sizeField: UInt32, id: UnsafeRawBufferPointer, versionText: UnsafeRawBufferPointer, stored: UnsafeRawBufferPointer
    ) -> UInt32 {
        var crc = withUnsafeBytes(of: sizeField.littleEndian) { Bytes.crc32c($0) }
        crc = Bytes.crc32c(id, from: crc)
        crc = Bytes.crc32c(versionText, from: crc)
        return Bytes.crc32c(stored, from: crc)
    }

    /// The stored bytes of the body that the buffer begins with, of a value of `size` bytes; nil when they are not what its
    /// checksum says, or not all in the buffer. They are deflated when they are fewer than `size`.
    @inline(__always)
    static func body(_ buffer: UnsafeRawBufferPointer, size: Int, id: UnsafeRawBufferPointer, version: VersionID) -> UnsafeRawBufferPointer?
    {
        version.withASCII { body(buffer, size: size, id: id, versionText: $0) }
    }

    @inline(__always)
    static func body(_ buffer: UnsafeRawBufferPointer, size: Int, id: UnsafeRawBufferPointer, versionText: UnsafeRawBufferPointer)
        -> UnsafeRawBufferPointer?
    {
        guard buffer.count >= bodyHeaderSize else { return nil }
        let checksum = UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: 0, as: UInt32.self))
        let sizeField = UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
        let stored = Int(sizeField)
        guard stored <= size, stored <= buffer.count - bodyHeaderSize, stored == size || size / deflateRatio <= stored else { return nil }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[bodyHeaderSize..<bodyHeaderSize + stored])
        return bodyChecksum(sizeField: sizeField, id: id, versionText: versionText, stored: bytes) == checksum ? bytes : nil
    }

    /// Bit 31 of the stored size: the body is a difference.
    static let differenceBit: UInt32 = 1 << 31
    /// How many bytes a body says that it stores, and whether they are a difference; nil when bit 30 says what nobody knows.
    static func storedSize(ofField field: UInt32) -> (size: Int, isDifference: Bool)? {
        guard field & differenceBit != 0 else { return (Int(field), false) }
        return field & 1 << 30 == 0 ? (Int(field & ~differenceBit), true) : nil
    }

    /// The stored bytes of a difference whose body the buffer begins with; nil when it is none, they are not what its checksum says, or not
    /// all in the buffer.
    static func difference(_ buffer: UnsafeRawBufferPointer, size: Int, id: UnsafeRawBufferPointer, version: VersionID)
        -> UnsafeRawBufferPointer?
    {
        guard buffer.count >= bodyHeaderSize else { return nil }
        let checksum = UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: 0, as: UInt32.self))
        let field = UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
        guard let (stored, isDifference) = storedSize(ofField: field), isDifference, stored <= ValueDifference.largestStored(of: size),
            stored <= buffer.count - bodyHeaderSize
        else { return nil }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[bodyHeaderSize..<bodyHeaderSize + stored])
        return bodyChecksum(sizeField: field, id: id, version: version, stored: bytes) == checksum ? bytes : nil
    }

    /// Bytes that a page may have at most: what claims more is damaged.
    static let pageSizeMax = changesPerPage * (Limits.valueIDSize + 128) + 64

    /// One page, whose bytes match their checksum, and its entries one after another.
    struct Page {
        private var reader: ByteReader
        private var bodyOffset: Int
        private var left: Int
        private var last: UnsafeRawBufferPointer?
        /// Bytes of the page.
        let size: Int

        /// The page that begins at the front of `bytes`; nil when it is damaged. `needs` is set when it goes on behind them.
        init?(_ bytes: UnsafeRawBufferPointer, number: Int, of header: RecordHeader, needs: inout Int?) {
            Work.pages.count()
            var frame = ByteReader(bytes)
            guard let checksum = frame.integer(UInt32.self), let size = frame.integer(UInt32.self) else {
                needs = pageHeaderSize; return nil
            }
            let total = pageHeaderSize + Int(size)
            guard total <= header.tableSize else { return nil }
            guard bytes.count >= total else { needs = total; return nil }
            guard Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[4..<total])) == checksum else { return nil }
            reader = ByteReader(UnsafeRawBufferPointer(rebasing: bytes[pageHeaderSize..<total]))
            guard reader.varint() == UInt64(number), let firstBody = reader.count(atMost: header.bodiesSize) else { return nil }
            bodyOffset = firstBody
            left = min(changesPerPage, header.changeCount - number * changesPerPage)
            guard left > 0 else { return nil }
            self.size = total
        }

        /// The next entry; nil at the end, or where the page is damaged (then `isAtEnd` is false). The ids must ascend: maps
        /// are built from them as they come, and one that is there twice would make them nest without an end.
        @inline(__always)
        mutating func next(_ header: RecordHeader) -> Entry? {
            guard left > 0, let entry = readEntry(&reader, header, &bodyOffset) else { return nil }
            if let last, Bytes.compare(last, entry.id) >= 0 { return nil }
            last = entry.id
            left -= 1
            return entry
        }

        /// Whether all entries were read, and nothing is behind them.
        var isAtEnd: Bool { left == 0 && reader.remaining == 0 }
        /// Where the bodies of this page end, from the start of the bodies, once all entries were read.
        var bodiesEnd: Int { bodyOffset }
    }

    /// Reads one page that begins at the front of `bytes`. Answers how many bytes the page has and where its bodies end, or nil
    /// when it is damaged; `needs` is set when the page goes on behind the bytes.
    static func readPage(
        _ bytes: UnsafeRawBufferPointer, number: Int, of header: RecordHeader, needs: inout Int?, _ body: (Entry) throws -> Void
    ) throws -> (size: Int, bodiesEnd: Int)? {
        guard var page = Page(bytes, number: number, of: header, needs: &needs) else { return nil }
        while let entry = page.next(header) { try body(entry) }
        return page.isAtEnd ? (page.size, page.bodiesEnd) : nil
    }

    /// The id that the page at the front of `bytes` begins with, as it is there: its checksum is not looked at. Nil when
    /// they do not begin like that page; `needs` is set when the id goes on behind them.
    static func firstID(_ bytes: UnsafeRawBufferPointer, number: Int, of header: RecordHeader, needs: inout Int?) -> UnsafeRawBufferPointer?
    {
        var reader = ByteReader(bytes)
        guard reader.take(pageHeaderSize) != nil, reader.varint() == UInt64(number), reader.count(atMost: header.bodiesSize) != nil,
            reader.integer(UInt8.self) != nil, let size = reader.count(atMost: Limits.valueIDSize), size > 0
        else { return nil }
        if reader.remaining < size { needs = reader.position + size }
        return reader.take(size)
    }
    /// Enough bytes of a page for `firstID`, unless the id is long.
    static let firstIDSize = pageHeaderSize + 10 + 10 + 1 + 2 + 64

    @inline(__always)
    fileprivate static func readEntry(_ reader: inout ByteReader, _ header: RecordHeader, _ bodyOffset: inout Int) -> Entry? {
        guard let tag = reader.integer(UInt8.self), tag < 128 || header.hasDifferences, let kind = Value.Change.Kind(rawValue: tag & 7),
            let encoding = Encoding(rawValue: (tag >> 3) & 3),
            let idSize = reader.count(atMost: Limits.valueIDSize), idSize > 0, let id = reader.take(idSize), Bytes.isValidUTF8(id)
        else { return nil }
        var entry = Entry(kind: kind, id: id)
        switch kind {
        case .insert, .update:
            guard let size = reader.count(atMost: Limits.valueSize) else { return nil }
            entry.encoding = encoding
            entry.size = size
            entry.storedSize = size
            if tag & 128 != 0 {
                guard encoding == .raw, size <= ValueDifference.largestValue,
                    let stored = reader.count(atMost: ValueDifference.largestStored(of: size))
                else { return nil }
                entry.isDifference = true
                entry.storedSize = stored
            } else if encoding == .deflate {
                guard let stored = reader.count(atMost: size), stored < size, size / deflateRatio <= stored else { return nil }
                entry.storedSize = stored
            }
            if encoding == .blob {
                guard let blob = reader.blobID() else { return nil }
                entry.blob = blob
            } else {
                guard bodyOffset + bodyHeaderSize + entry.storedSize <= header.bodiesSize else { return nil }
                entry.bodyOffset = header.bodiesOffset + bodyOffset
                bodyOffset += bodyHeaderSize + entry.storedSize
            }
            if tag & 32 != 0 {
                guard let digest = reader.take(32) else { return nil }
                entry.digest = digest
            }
        case .preserve:
            guard tag < 128, let index = reader.count(atMost: max(0, header.dependencies.count - 1)), index < header.dependencies.count
            else { return nil }
            entry.dependency = index
        case .remove, .preserveRemoval:
            guard tag < 128 else { return nil }
        }
        return entry
    }
}
