/// Reads parts of one record through a window, so that a large record is never in memory as a whole.
package struct RecordReader {
    private let read: (UInt64, UnsafeMutableRawBufferPointer) throws -> Void
    private let length: Int
    private var window: [UInt8]
    private var windowStart = 0

    package init(length: UInt64, read: @escaping (UInt64, UnsafeMutableRawBufferPointer) throws -> Void) {
        self.length = Int(clamping: length)
        self.read = read
        window = []
    }

    /// Calls with `count` bytes from `offset` on. Reads up to `ahead` more bytes in advance. Returns nil if the record ends before.
    package mutating func with<R>(_ offset: Int, _ count: Int, ahead: Int = 0, _ body: (UnsafeRawBufferPointer) throws -> R) throws -> R? {
        guard offset >= 0, count >= 0, offset <= length, count <= length - offset else { return nil }
        if offset < windowStart || offset + count > windowStart + window.count {
            let size = min(length - offset, count + ahead)
            try Memory.expect(size, "Reading a record")
            window = try [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
                try read(UInt64(offset), UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[0..<size]))
                filled = size
            }
            windowStart = offset
        }
        return try window.withUnsafeBytes {
            try body(UnsafeRawBufferPointer(rebasing: $0[(offset - windowStart)..<min($0.count, length - windowStart)]))
        }
    }
}

extension RecordReader {
    /// Creates a reader of a record that is in memory, with `length` bytes from `start` on.
    package init(_ bytes: [UInt8], from start: Int = 0, length: Int) {
        self.length = max(0, min(length, bytes.count - start))
        read = { _, _ in }
        // The window has the whole record from the beginning.
        (window, windowStart) = (bytes, -start)
    }
}

/// The parts of a record, each checked.
extension RecordReader {
    /// The header of the record.
    package mutating func header() throws -> RecordHeader.Reading {
        let length = length
        var size = min(4_096, length)
        while true {
            let result = try with(0, size) { RecordHeader.read($0, recordLength: UInt64(length)) } ?? .damaged("is cut short")
            guard case .needs(let more) = result else { return result }
            guard more > size, more <= length else { return .damaged("is cut short") }
            size = more
        }
    }

    /// Calls with each change, in order of the ids. Returns false if the table is damaged; the changes before the damage were passed then.
    package mutating func forEachChange(_ header: RecordHeader, _ body: (RecordTable.Entry) throws -> Void) throws -> Bool {
        var offset = header.tableOffset, bodiesEnd = 0
        var starts: [UInt64] = []
        var last: [UInt8] = [] // of the previous page: ids ascend over all pages
        for page in 0..<header.pageCount {
            try Memory.check()
            let before = last
            var met = 0, ascends = true
            var size = min(header.bodiesOffset - offset, 16 << 10)
            while true {
                var needs: Int?
                let used = try with(offset, size, ahead: min(header.bodiesOffset - offset - size, 256 << 10)) {
                    try RecordTable.readPage($0, number: page, of: header, needs: &needs) { entry in
                        if met == 0 { ascends = before.withUnsafeBytes { Bytes.compare($0, entry.id) } < 0 }
                        guard ascends else { return }
                        try body(entry)
                        met += 1
                        if met == RecordTable.changesPerPage { last = Array(entry.id) }
                    }
                }
                guard ascends else { return false }
                if let (used, end) = used ?? nil {
                    starts.append(UInt64(offset - header.tableOffset))
                    offset += used
                    bodiesEnd = end
                    break
                }
                guard let needs, needs > size, needs <= header.bodiesOffset - offset else { return false }
                size = needs
            }
        }
        // The directory has no checksum: if it does not match the pages, it is damaged.
        let directory = starts.count > 1 ? starts : []
        guard offset + 8 * directory.count == header.bodiesOffset, bodiesEnd == header.bodiesSize else { return false }
        guard !directory.isEmpty else { return true }
        return try with(offset, 8 * directory.count) { bytes in
            directory.indices.allSatisfy {
                UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self)) == directory[$0]
            }
        } ?? false
    }

    /// Returns whether header and table are undamaged. If so, the version is known, even if its values are damaged.
    mutating func tellsVersion() throws -> Bool {
        guard case .whole(let header) = try header() else { return false }
        return try forEachChange(header) { _ in }
    }
}

extension RecordReader {
    /// Creates a reader of a record that is in memory.
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init(length: UInt64(bytes.count)) { offset, buffer in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[Int(offset)..<Int(offset) + buffer.count]))
        }
    }
}
