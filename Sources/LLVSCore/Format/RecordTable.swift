/// The change table of a record. It has the changes in order of their ids, in pages that can be read one by one.
///
///     table     = page · page ... · directory
///     page      = checksum u32 · size u32 · page number varint · offset of its first body varint · entry ...
///     directory = (only with two pages or more) per page: offset in the table u64
///     entry     = tag u8 · id (varint size, bytes) · by kind:
///         insert, update   size varint · [stored size varint, when deflated or a difference] · [blob 16]
///                          · [SHA-256 32, of a blob or over 64 KiB]
///         preserve         index into the header's dependencies varint
///         remove, preserveRemoval   nothing
///     tag       = kind (bits 0-2) · encoding (bits 3-4: 0 as is, 1 deflated, 2 blob, 3 hollow) · digest (bit 5) · ignorable (bit 6)
///               · difference (bit 7; only in a record with the flag for differences)
///     body      = checksum u32 · stored size u32, bit 31 set: a difference · the stored bytes
///
/// The checksum of a page covers all bytes of the page behind it. The checksum of a body covers its stored size field, the value id, the
/// text of the version id and the stored bytes. So the body of another value does not match.
package enum RecordTable {
    package static let changesPerPage = 64
    package static let pageHeaderSize = 8
    package static let bodyHeaderSize = 8
    /// Values up to this size are never deflated. A larger value is deflated if a sample looks compressible and the result is smaller.
    static let deflateThreshold = 256
    /// Up to this size, deflate must make a value an eighth smaller, because inflating takes longer than the rest of reading it.
    static let smallValue = 512
    /// Returns the most bytes that a deflated value of `size` bytes may have.
    static func deflatedRoom(_ size: Int) -> Int { size <= smallValue ? size - size / 8 : size - 1 }
    /// The most bytes that one deflated byte can inflate to: a match of 258 bytes takes at least two bits. A reader rejects a larger claim
    /// before it reserves memory.
    static let deflateRatio = 1032
    /// Values larger than this, and all blobs, have their SHA-256 in the table, so that equal values are found without reading them.
    package static let digestThreshold = 64 << 10

    static func pages(forChanges count: Int) -> Int { (count + changesPerPage - 1) / changesPerPage }

    package enum Encoding: UInt8 { case raw = 0, deflate, blob, hollow }

    /// One change of the table. Its pointers are valid as long as the table's bytes are.
    package struct Entry {
        package var kind: Value.Change.Kind
        package var id: UnsafeRawBufferPointer
        var encoding = Encoding.raw
        package var size = 0
        package var storedSize = 0
        /// Whether the body is a difference from an earlier value of the same id: `ValueDifference`.
        package var isDifference = false
        /// The offset of the body in the record; 0 if there is no body.
        package var bodyOffset = 0
        package var blob: BlobID?
        package var digest: UnsafeRawBufferPointer?
        package var dependency = 0
        /// Whether the record has the size and the digest of the value, but not its bytes. Then `storedSize` is 0.
        package var isHollow: Bool { encoding == .hollow }
        /// Returns the entry without the bytes of its value. The digest must outlive it.
        package func hollowed(_ digest: UnsafeRawBufferPointer) -> Entry {
            var entry = self
            (entry.encoding, entry.digest, entry.storedSize, entry.bodyOffset) = (.hollow, digest, 0, 0)
            (entry.isDifference, entry.blob) = (false, nil)
            return entry
        }
    }

    package static func bodyChecksum(sizeField: UInt32, id: UnsafeRawBufferPointer, version: VersionID, stored: UnsafeRawBufferPointer)
        -> UInt32
    {
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

    /// Returns the stored bytes of the body at the start of the buffer, for a value of `size` bytes. They are deflated if they are fewer
    /// than `size`. Returns nil if they do not match their checksum, or are not completely in the buffer.
    @inline(__always)
    package static func body(_ buffer: UnsafeRawBufferPointer, size: Int, id: UnsafeRawBufferPointer, version: VersionID)
        -> UnsafeRawBufferPointer?
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

    /// Bit 31 of the stored size field. It is set if the body is a difference.
    package static let differenceBit: UInt32 = 1 << 31
    /// Returns the number of stored bytes by the size field of a body, and whether they are a difference. Returns nil if the unknown bit 30
    /// of a difference is set.
    static func storedSize(ofField field: UInt32) -> (size: Int, isDifference: Bool)? {
        guard field & differenceBit != 0 else { return (Int(field), false) }
        return field & 1 << 30 == 0 ? (Int(field & ~differenceBit), true) : nil
    }

    /// Returns the stored bytes of the difference whose body is at the start of the buffer. Returns nil if the body is no difference, or
    /// the bytes do not match their checksum or are not completely in the buffer.
    package static func difference(_ buffer: UnsafeRawBufferPointer, size: Int, id: UnsafeRawBufferPointer, version: VersionID)
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

    /// The most bytes of a page. A page that claims more is damaged.
    static let pageSizeMax = changesPerPage * (Limits.valueIDSize + 128) + 64

    /// Reads the entries of one page, whose bytes match their checksum, one after another.
    struct Page {
        private var reader: ByteReader
        private var bodyOffset: Int
        private var left: Int
        private var last: UnsafeRawBufferPointer?
        /// The size of the page in bytes.
        let size: Int

        /// Reads the page at the start of `bytes`. Returns nil if it is damaged. If the page continues behind `bytes`, returns nil and sets
        /// `needs` to how many bytes are needed.
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

        /// Returns the next entry; nil at the end, or if the page is damaged (then `isAtEnd` is false). The ids must ascend, because maps
        /// are built from them in this order, and an id that occurs twice would make a map nest without end.
        @inline(__always)
        mutating func next(_ header: RecordHeader) -> Entry? {
            guard left > 0, let entry = readEntry(&reader, header, &bodyOffset) else { return nil }
            if let last, Bytes.compare(last, entry.id) >= 0 { return nil }
            last = entry.id
            left -= 1
            return entry
        }

        /// Whether all entries were read, and no bytes are left.
        var isAtEnd: Bool { left == 0 && reader.remaining == 0 }
        /// The offset at which the bodies of this page end, from the start of all bodies. Valid after all entries were read.
        var bodiesEnd: Int { bodyOffset }
    }

    /// Reads the page at the start of `bytes`, and calls with each entry. Returns the size of the page and where its bodies end; nil if it
    /// is damaged. If the page continues behind `bytes`, returns nil and sets `needs` to how many bytes are needed.
    static func readPage(
        _ bytes: UnsafeRawBufferPointer, number: Int, of header: RecordHeader, needs: inout Int?, _ body: (Entry) throws -> Void
    ) throws -> (size: Int, bodiesEnd: Int)? {
        guard var page = Page(bytes, number: number, of: header, needs: &needs) else { return nil }
        while let entry = page.next(header) { try body(entry) }
        return page.isAtEnd ? (page.size, page.bodiesEnd) : nil
    }

    /// Returns the first id of the page at the start of `bytes`, without checking the page's checksum. Returns nil if the bytes do not
    /// begin like that page. If the id continues behind `bytes`, returns nil and sets `needs` to how many bytes are needed.
    static func firstID(_ bytes: UnsafeRawBufferPointer, number: Int, of header: RecordHeader, needs: inout Int?) -> UnsafeRawBufferPointer?
    {
        var reader = ByteReader(bytes)
        guard reader.take(pageHeaderSize) != nil, reader.varint() == UInt64(number), reader.count(atMost: header.bodiesSize) != nil,
            reader.integer(UInt8.self) != nil, let size = reader.count(atMost: Limits.valueIDSize), size > 0
        else { return nil }
        if reader.remaining < size { needs = reader.position + size }
        return reader.take(size)
    }
    /// How many bytes of a page are enough for `firstID`, unless the id is long.
    static let firstIDSize = pageHeaderSize + 10 + 10 + 1 + 2 + 64

    @inline(__always)
    fileprivate static func readEntry(_ reader: inout ByteReader, _ header: RecordHeader, _ bodyOffset: inout Int) -> Entry? {
        guard let tag = reader.integer(UInt8.self), tag < 128 || header.hasDifferences, let kind = Value.Change.Kind(rawValue: tag & 7),
            let encoding = Encoding(rawValue: (tag >> 3) & 3),
            // Hollow: only of an insert or update, with a digest, and with the flag.
            encoding != .hollow || (header.hasHollow && tag & 32 != 0 && (kind == .insert || kind == .update)),
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
            } else if encoding == .hollow {
                entry.storedSize = 0
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
