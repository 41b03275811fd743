import CLLVSShims

/// The entries of a zip file (APPNOTE 6.3), by name; for reading. No name in it is ever used as a path.
///
/// Strict: the central directory must describe the file to the byte, and entries must not overlap. Reads stored and deflated entries, also
/// of zip64; reading others throws. In memory are the names and places of the entries, and one entry at a time.
final class ZipArchive {
    /// The source of the archive, for messages.
    let source: String
    private let file: OpenFile
    /// The bytes of the file.
    let size: UInt64
    /// Where the central directory begins. Entries lie before it.
    private var directoryStart: UInt64 = 0
    private(set) var entries: [[UInt8]: Entry] = [:]

    struct Entry {
        fileprivate var header: UInt64
        fileprivate var compressedSize: UInt64
        /// Bytes after inflating.
        var size: UInt64
        fileprivate var method: UInt16
        fileprivate var flags: UInt16
        fileprivate var checksum: UInt32
    }

    private static let endSize = 22, recordSize = 46, localSize = 30, locatorSize = 20, end64Size = 56
    /// The most bytes that one deflated byte can yield.
    private static let mostPerByte: UInt64 = 1_032

    /// - Parameter size: bytes of the file.
    /// - Throws: `.snapshotDamaged`, `.foreignSnapshot` for an archive in several parts, `.io`.
    init(_ file: OpenFile, size: UInt64, source: String, _ control: PacedControl = .none) throws {
        self.file = file; self.source = source; self.size = size
        try readDirectory(size, control)
    }

    private func damaged(_ why: String) -> StoreError {
        StoreError(
            .snapshotDamaged, "The zip in \(source) is damaged: \(why). Let a store that has all versions write a new one.", path: source
        )
    }
    private func unsupported(_ why: String) -> StoreError {
        StoreError(.foreignSnapshot, "The zip in \(source) \(why), which cannot be read here. Use an exchange.", path: source)
    }

    // MARK: The directory

    private func readDirectory(_ size: UInt64, _ control: PacedControl) throws {
        let tail = try bytes(at: size - min(size, UInt64(ZipArchive.endSize + 0xFFFF)), Int(min(size, UInt64(ZipArchive.endSize + 0xFFFF))))
        let tailStart = size - UInt64(tail.count)
        guard let at = tail.withUnsafeBytes(ZipArchive.end) else { throw damaged("it does not end as a zip does") }
        guard var end = tail.withUnsafeBytes({ ByteReader(UnsafeRawBufferPointer(rebasing: $0[(at + 4)...])).endRecord() }) else {
            throw unsupported("is one part of several")
        }
        var endStart = tailStart + UInt64(at)
        // A writer that does not know the sizes beforehand writes the zip64 end even if the short one has room.
        if let place = try locator(before: endStart) {
            endStart -= UInt64(ZipArchive.locatorSize)
            guard place <= endStart, endStart - place >= UInt64(ZipArchive.end64Size) else { throw damaged("its end is outside of it") }
            let record = try bytes(at: place, ZipArchive.end64Size)
            guard let long = record.withUnsafeBytes({ ByteReader($0).end64Record() }), long.recordSize == endStart - place,
                end.agrees(with: long)
            else { throw damaged("its end contradicts itself") }
            (end, endStart) = (long, place)
        }
        guard end.offset <= endStart, endStart - end.offset == end.size, end.count <= end.size / UInt64(ZipArchive.recordSize) else {
            throw damaged("its directory is not where it says")
        }
        directoryStart = end.offset
        try Memory.expect(Int(min(end.count, 1 << 20)) * 2 * MemoryLayout<Entry>.stride, "Reading the directory of \(source)")
        entries.reserveCapacity(Int(min(end.count, 1 << 20)))
        var position = end.offset, left = end.count
        while left > 0 {
            // A window of records; a record has at most 46 bytes and three fields of 64 KiB.
            let window = try bytes(at: position, Int(min(endStart - position, 256 << 10)))
            let used = try window.withUnsafeBytes { raw -> Int in
                var reader = ByteReader(raw), used = 0
                while left > 0, let (name, entry) = try record(&reader) {
                    try control.step()
                    guard entries.updateValue(entry, forKey: name) == nil else { throw damaged("two entries have one name") }
                    used = reader.position
                    left -= 1
                }
                return used
            }
            guard used > 0 else { throw damaged("its directory is cut short") }
            position += UInt64(used)
        }
        guard position == endStart else { throw damaged("something follows its directory") }
        try checkPlaces()
    }

    /// Returns the offset of the zip64 end record; nil if there is none.
    private func locator(before end: UInt64) throws -> UInt64? {
        guard end >= UInt64(ZipArchive.locatorSize) else { return nil }
        return try bytes(at: end - UInt64(ZipArchive.locatorSize), ZipArchive.locatorSize).withUnsafeBytes { ByteReader($0).locator() }
    }

    /// Returns the offset of the end record, whose comment ends with the file.
    private static func end(_ tail: UnsafeRawBufferPointer) -> Int? {
        guard tail.count >= endSize else { return nil }
        return stride(from: tail.count - endSize, through: 0, by: -1).first { i in
            guard tail[i] == 0x50, tail[i + 1] == 0x4B, tail[i + 2] == 5, tail[i + 3] == 6 else { return false }
            return Int(tail[i + 20]) | Int(tail[i + 21]) << 8 == tail.count - i - endSize
        }
    }

    /// Reads a record of the directory; nil if the reader does not hold it whole.
    private func record(_ reader: inout ByteReader) throws -> ([UInt8], Entry)? {
        guard reader.remaining >= ZipArchive.recordSize else { return nil }
        var next = reader
        guard next.integer(UInt32.self) == 0x0201_4B50, next.take(4) != nil, let flags = next.integer(UInt16.self),
            let method = next.integer(UInt16.self),
            next.take(4) != nil, let checksum = next.integer(UInt32.self), let compressed = next.integer(UInt32.self),
            let size = next.integer(UInt32.self),
            let nameSize = next.integer(UInt16.self), let extraSize = next.integer(UInt16.self),
            let commentSize = next.integer(UInt16.self),
            next.integer(UInt16.self) != nil, next.take(6) != nil, let header = next.integer(UInt32.self)
        else { throw damaged("its directory is not valid") }
        guard let name = next.take(Int(nameSize)), let extra = next.take(Int(extraSize)), next.take(Int(commentSize)) != nil else {
            return nil
        }
        var entry = Entry(
            header: UInt64(header), compressedSize: UInt64(compressed), size: UInt64(size), method: method, flags: flags, checksum: checksum
        )
        if size == .max || compressed == .max || header == .max {
            var fields = ByteReader(extra), large: ByteReader?
            while large == nil, let kind = fields.integer(UInt16.self), let count = fields.integer(UInt16.self),
                let field = fields.take(Int(count))
            {
                if kind == 1 { large = ByteReader(field) }
            }
            guard var large else { throw damaged("an entry has no size") }
            func field(_ value: inout UInt64, _ short: UInt32) throws {
                guard short == .max else { return }
                guard let long = large.integer(UInt64.self) else { throw damaged("an entry has no size") }
                value = long
            }
            try field(&entry.size, size)
            try field(&entry.compressedSize, compressed)
            try field(&entry.header, header)
        }
        reader = next
        return (Array(name), entry)
    }

    /// Checks that each entry lies before the directory and after the one before.
    private func checkPlaces() throws {
        var end: UInt64 = 0
        for (name, entry) in entries.sorted(by: { $0.value.header < $1.value.header }) {
            let least = UInt64(ZipArchive.localSize + name.count)
            guard entry.header >= end, entry.header <= directoryStart, entry.compressedSize <= directoryStart,
                directoryStart - entry.header >= least, directoryStart - entry.header - least >= entry.compressedSize
            else {
                throw damaged("its entries overlap, or are outside of it")
            }
            end = entry.header + least + entry.compressedSize
        }
    }

    // MARK: Entries

    /// Returns the bytes of an entry; nil if there is none of that name.
    /// - Throws: `.snapshotDamaged`, `.foreignSnapshot` for one that is encrypted or compressed in another way, `.tooLarge`,
    ///   `.outOfMemory`, `.io`.
    /// - Parameter control: checked for each MiB.
    func read(_ name: [UInt8], atMost limit: Int, _ control: PacedControl = .none) throws -> [UInt8]? {
        guard let entry = entries[name] else { return nil }
        guard entry.size <= UInt64(limit) else {
            throw StoreError(
                .tooLarge,
                "\"\(String(decoding: name, as: UTF8.self))\" in the zip in \(source) has \(entry.size) bytes; at most \(limit) are read.",
                path: source)
        }
        let compressed = try bytes(at: try dataStart(name, entry), Int(entry.compressedSize), control)
        let data = entry.method == 8 ? try inflated(compressed, Int(entry.size), name, control) : compressed
        guard data.withUnsafeBytes({ llvs_shim_crc32($0.baseAddress, $0.count) }) == entry.checksum else {
            throw damaged("\"\(String(decoding: name, as: UTF8.self))\" does not match its checksum")
        }
        return data
    }

    private func inflated(_ compressed: [UInt8], _ size: Int, _ name: [UInt8], _ control: PacedControl) throws -> [UInt8] {
        let wrong = damaged("\"\(String(decoding: name, as: UTF8.self))\" does not inflate")
        try Memory.expect(size, "Reading from \(source)")
        guard let inflater = llvs_shim_inflater_make() else {
            throw StoreError(.outOfMemory, "Reading from \(source) failed: there is not enough memory. Free some, and try again.")
        }
        defer { llvs_shim_inflater_free(inflater) }
        return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            try compressed.withUnsafeBytes { from in
                var read = 0, done: Int32 = 0, probe: UInt8 = 0
                while done == 0 {
                    let rest = UnsafeRawBufferPointer(rebasing: from[read...]), room = min(size - count, OperationControl.bytesPerCheck)
                    var taken = 0
                    // After the last byte only the end of the stream may follow.
                    let made =
                        room > 0
                        ? llvs_shim_inflate_more(
                            inflater, rest.baseAddress, rest.count, &taken, buffer.baseAddress.map { $0 + count }, room, &done)
                        : llvs_shim_inflate_more(inflater, rest.baseAddress, rest.count, &taken, &probe, 1, &done)
                    guard made >= 0, room > 0 || made == 0, made > 0 || taken > 0 || done != 0 else { throw wrong }
                    read += taken
                    count += room > 0 ? Int(made) : 0
                    try control.look()
                }
                guard count == size, read == from.count else { throw wrong }
            }
        }
    }

    /// Returns where the bytes of an entry begin. Throws if they cannot be read.
    private func dataStart(_ name: [UInt8], _ entry: Entry) throws -> UInt64 {
        let shown = String(decoding: name, as: UTF8.self)
        guard entry.flags & 0x2041 == 0 else { throw unsupported("holds \"\(shown)\" encrypted") }
        switch entry.method {
        case 0: guard entry.size == entry.compressedSize else { throw damaged("\"\(shown)\" has two sizes") }
        case 8:
            guard entry.size / ZipArchive.mostPerByte <= entry.compressedSize else {
                throw damaged("\"\(shown)\" claims a size that it cannot have")
            }
        default: throw unsupported("holds \"\(shown)\" compressed by method \(entry.method)")
        }
        let local = try bytes(at: entry.header, ZipArchive.localSize)
        let (isHeader, flags, method, nameSize, extraSize) = local.withUnsafeBytes { raw in
            func field(_ at: Int) -> UInt16 { UInt16(raw[at]) | UInt16(raw[at + 1]) << 8 }
            return (field(0) == 0x4B50 && field(2) == 0x0403, field(6), field(8), Int(field(26)), Int(field(28)))
        }
        guard isHeader, flags & 0x2041 == 0, method == entry.method, nameSize == name.count else {
            throw damaged("\"\(shown)\" is not where the directory says")
        }
        let start = entry.header + UInt64(ZipArchive.localSize + nameSize + extraSize)
        guard start <= directoryStart, directoryStart - start >= entry.compressedSize,
            try bytes(at: entry.header + UInt64(ZipArchive.localSize), nameSize) == name
        else { throw damaged("\"\(shown)\" is not where the directory says") }
        return start
    }

    private func bytes(at offset: UInt64, _ count: Int, _ control: PacedControl = .none) throws -> [UInt8] {
        try Memory.expect(count, "Reading from \(source)")
        let read = try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let whole = UnsafeMutableRawBufferPointer(buffer)
            while filled < count {
                if filled > 0 { try control.look() }
                let part = UnsafeMutableRawBufferPointer(rebasing: whole[filled..<min(count, filled + OperationControl.bytesPerCheck)])
                let got = try posix("Reading the snapshot", source) { () throws(Errno) in
                    try System.pread(file.descriptor, part, at: offset + UInt64(filled))
                }
                if got == 0 { return }
                filled += got
            }
        }
        guard read.count == count else { throw damaged("it is cut short") }
        return read
    }
}

/// The fields of an end record about the directory.
private struct ZipEnd {
    var count: UInt64, size: UInt64, offset: UInt64
    /// Bytes of the record itself, if it has that field.
    var recordSize: UInt64 = 0

    /// Returns whether the zip64 record agrees with this one, in the fields that fit here.
    func agrees(with long: ZipEnd) -> Bool {
        (count == UInt16.max || count == long.count) && (size == UInt32.max || size == long.size)
            && (offset == UInt32.max || offset == long.offset)
    }
}

extension ByteReader {
    /// Reads an end record after its signature. Nil for a zip of several parts.
    fileprivate func endRecord() -> ZipEnd? {
        var reader = self
        guard let disk = reader.integer(UInt16.self), let first = reader.integer(UInt16.self), let here = reader.integer(UInt16.self),
            let count = reader.integer(UInt16.self),
            let size = reader.integer(UInt32.self), let offset = reader.integer(UInt32.self)
        else { return nil }
        let needs64 = disk == .max || first == .max || count == .max || size == .max || offset == .max
        guard needs64 || (disk == 0 && first == 0 && here == count) else { return nil }
        return ZipEnd(count: UInt64(count), size: UInt64(size), offset: UInt64(offset))
    }
    /// Reads a zip64 locator: returns the offset of the zip64 end record.
    fileprivate func locator() -> UInt64? {
        var reader = self
        guard reader.integer(UInt32.self) == 0x0706_4B50, reader.integer(UInt32.self) == 0, let place = reader.integer(UInt64.self),
            let disks = reader.integer(UInt32.self), disks <= 1
        else { return nil }
        return place
    }
    fileprivate func end64Record() -> ZipEnd? {
        var reader = self
        guard reader.integer(UInt32.self) == 0x0606_4B50, let rest = reader.integer(UInt64.self), rest <= 1 << 20, reader.take(4) != nil,
            reader.integer(UInt32.self) == 0, reader.integer(UInt32.self) == 0, let here = reader.integer(UInt64.self),
            let count = reader.integer(UInt64.self), here == count,
            let size = reader.integer(UInt64.self), let offset = reader.integer(UInt64.self)
        else { return nil }
        return ZipEnd(count: count, size: size, offset: offset, recordSize: rest + 12)
    }
}
