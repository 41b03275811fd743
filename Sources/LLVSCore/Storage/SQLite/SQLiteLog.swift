/// The write-ahead log of a database, as SQLite reads it (https://www.sqlite.org/fileformat2.html#walformat): up to the first invalid
/// frame, and of that up to the last commit. SQLite regards what follows as never written. A changed byte has the same effect.
package struct SQLiteLog {
    static let headerSize = 32, frameHeaderSize = 24
    package let file: OpenFile
    let size: UInt64
    package let pageSize: Int
    private(set) var salt: UInt64
    private let checksumIsBigEndian: Bool
    private let headerIsWhole: Bool
    private var seed: (UInt32, UInt32)

    /// Nil if there is no log, or it is empty.
    /// - Parameter pageSize: the page size of the database, for a log whose header is damaged.
    package init?(_ path: String, pageSize: Int?) {
        guard let file = try? OpenFile(DirectoryEntry(path), O_RDONLY), let status = try? System.status(file.descriptor),
            status.isRegularFile, status.size > 0
        else { return nil }
        self.file = file
        size = status.size
        var head = [UInt8](repeating: 0, count: SQLiteLog.headerSize + SQLiteLog.frameHeaderSize)
        _ = try? head.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: 0) }
        let magic = SQLiteLog.word(head, 0)
        checksumIsBigEndian = magic & 1 == 1
        var sums: (UInt32, UInt32) = (0, 0)
        SQLiteLog.add(head[0..<24], magic & 1 == 1, to: &sums)
        let told = SQLiteLog.word(head, 8)
        headerIsWhole =
            size >= UInt64(SQLiteLog.headerSize) && magic & 0xFFFF_FFFE == 0x377F_0682
            && sums == (SQLiteLog.word(head, 24), SQLiteLog.word(head, 28))
            && SQLiteLog.isPageSize(Int(told))
        guard let pageSize = headerIsWhole ? Int(told) : pageSize else { return nil }
        self.pageSize = pageSize
        seed = sums
        // If the header is damaged, the first frame has it, too.
        let at = headerIsWhole ? 16 : SQLiteLog.headerSize + 8
        salt = UInt64(SQLiteLog.word(head, at)) << 32 | UInt64(SQLiteLog.word(head, at + 4))
    }

    package static func isPageSize(_ size: Int) -> Bool { size >= 512 && size <= 65_536 && size & (size - 1) == 0 }

    /// Reads the whole log. Returns the beginning of bytes that belong to the log and that SQLite ignores; nil if there are none.
    package func unusedFrom() -> UInt64? {
        guard headerIsWhole else { return 0 }
        var used = UInt64(SQLiteLog.headerSize), at = used, sums = seed
        var frame = [UInt8](repeating: 0, count: SQLiteLog.frameHeaderSize + pageSize)
        while at < size, let got = try? frame.filled({ (b) throws(Errno) in try System.pread(file.descriptor, b, at: at) }),
            got == frame.count
        {
            SQLiteLog.add(frame[0..<8], checksumIsBigEndian, to: &sums)
            SQLiteLog.add(frame[SQLiteLog.frameHeaderSize...], checksumIsBigEndian, to: &sums)
            guard saltOf(frame) == salt, sums == (SQLiteLog.word(frame, 16), SQLiteLog.word(frame, 20)) else { break }
            at += UInt64(frame.count)
            if SQLiteLog.word(frame, 4) != 0 { used = at }
        }
        // Frames of an earlier round of the log have another salt. If there is no valid frame, the header's own salt may be damaged.
        if used == UInt64(SQLiteLog.headerSize) { return used }
        return frameStart(from: used) == nil ? nil : used
    }

    private func saltOf(_ frame: [UInt8]) -> UInt64 { UInt64(SQLiteLog.word(frame, 8)) << 32 | UInt64(SQLiteLog.word(frame, 12)) }

    /// Returns where the first frame of this round begins, at or after an offset. It is found by its salt, also if frames were moved.
    private func frameStart(from offset: UInt64) -> UInt64? {
        let wanted = withUnsafeBytes(of: salt.bigEndian) { Array($0) }, chunk = 1 << 18
        var buffer = [UInt8](repeating: 0, count: chunk), at = offset + 8
        while at + 8 <= size {
            guard let got = try? buffer.filled({ (b) throws(Errno) in try System.pread(file.descriptor, b, at: at) }), got >= 8 else {
                return nil
            }
            let found: Int? = buffer.withUnsafeBytes { b in
                guard let base = b.baseAddress else { return nil }
                var i = 0
                while i + wanted.count <= got, let hit = memchr(base + i, Int32(wanted[0]), got - wanted.count - i + 1) {
                    i = UnsafeRawPointer(hit) - base
                    if memcmp(hit, wanted, wanted.count) == 0 { return i }
                    i += 1
                }
                return nil
            }
            if let found { return at + UInt64(found) - 8 }
            at += UInt64(got - 7)
        }
        return nil
    }

    /// Where an image of a page is: in the log or in the database.
    package struct PageImage {
        package let isInLog: Bool; package let offset: UInt64; package let number: UInt32
        package init(isInLog: Bool, offset: UInt64, number: UInt32) {
            self.isInLog = isInLog; self.offset = offset; self.number = number
        }
    }

    /// Returns the images of pages that transactions in the log committed, oldest first, also those with wrong checksums.
    package func committedImages() -> [PageImage] {
        var images: [PageImage] = [], committed = 0, at = UInt64(SQLiteLog.headerSize)
        var head = [UInt8](repeating: 0, count: SQLiteLog.frameHeaderSize)
        while let start = frameStart(from: at) {
            guard let got = try? head.filled({ (b) throws(Errno) in try System.pread(file.descriptor, b, at: start) }), got == head.count
            else { break }
            let number = SQLiteLog.word(head, 0)
            if number > 0 {
                images.append(PageImage(isInLog: true, offset: start + UInt64(SQLiteLog.frameHeaderSize), number: number))
                if SQLiteLog.word(head, 4) != 0 { committed = images.count }
            }
            at = start + UInt64(SQLiteLog.frameHeaderSize + pageSize)
        }
        return Array(images.prefix(committed))
    }

    private static func word(_ bytes: [UInt8], _ at: Int) -> UInt32 { bytes[at..<(at + 4)].reduce(0) { $0 << 8 | UInt32($1) } }

    private static func add(_ bytes: ArraySlice<UInt8>, _ isBigEndian: Bool, to sums: inout (UInt32, UInt32)) {
        bytes.withUnsafeBytes { b in
            var at = 0
            while at + 8 <= b.count {
                let x = b.loadUnaligned(fromByteOffset: at, as: UInt32.self), y = b.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self)
                sums.0 &+= (isBigEndian ? UInt32(bigEndian: x) : UInt32(littleEndian: x)) &+ sums.1
                sums.1 &+= (isBigEndian ? UInt32(bigEndian: y) : UInt32(littleEndian: y)) &+ sums.0
                at += 8
            }
        }
    }
}
