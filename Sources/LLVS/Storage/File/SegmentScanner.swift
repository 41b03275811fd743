import CLLVSShims

/// Walks the frames of one segment, tells tails from damage, and hands out whole records.
///
/// A frame that is not whole is a *tail* while nothing valid lies behind it: it is being written, or
/// its writer died; not there yet. With a valid frame behind it is *damage*: reported and skipped. Of frames that were whole
/// once, as all of a sealed segment, and all before one that says so, damage is told record by record, and a record
/// of which only values are damaged is handed out all the same.
struct SegmentScanner {
    let file: OpenFile
    let path: String
    let id: RandomName
    /// The file's size when the scan began. What lies beyond was not there yet.
    let size: UInt64
    /// Whether the segment ends in a seal. Its large records are then trusted unless `thorough`.
    let sealed: Bool
    /// Whether every byte is to be read and checked.
    let thorough: Bool
    let inspector: RecordInspector?
    let buffer: ScanBuffer
    /// Called with where a record may be that is not handed out, since its frame, or it, is damaged. Frames are then taken also
    /// where they lie elsewhere than they were written: bytes were inserted or removed before them.
    var suspect: ((_ offset: UInt64, _ length: UInt64) throws -> Void)?
    /// Whether a frame was met of a kind that this library does not know.
    private(set) var metUnknown = false
    /// Called with each frame that was passed: whole, but for records that are told as damaged.
    var passed: ((Range<UInt64>) -> Void)?
    /// Called with how far the scan has come, at least once per MiB read.
    var progress: (UInt64) throws -> Void = { _ in }

    /// The header was no good: without a frame that begins before here the file is given up, whatever size it claims.
    var givesUpAt: UInt64 = .max

    /// Where the next frame begins. Everything before was handed out or reported.
    private(set) var position: UInt64
    /// Where the last frame that was passed begins; 0: none was.
    private(set) var lastFrame: UInt64 = 0
    /// Whether the seal was reached.
    private(set) var finished = false
    private(set) var records: UInt64 = 0
    /// Where the first frame begins that is not whole while the medium could not be read: it may be whole on another day.
    private(set) var doubtful: UInt64?

    init(
        file: OpenFile, path: String, id: RandomName, from position: UInt64, size: UInt64, sealed: Bool, thorough: Bool,
        inspector: RecordInspector?, buffer: ScanBuffer
    ) {
        self.file = file; self.path = path; self.id = id; self.position = position; self.size = size
        self.sealed = sealed; self.thorough = thorough; self.inspector = inspector; self.buffer = buffer
        buffer.forget()
    }

    /// - Parameter isDamaged: values of it are; never with `thorough`.
    typealias Found = (_ offset: UInt64, _ length: UInt64, _ prefix: UnsafeRawBufferPointer, _ isDamaged: Bool) throws -> Void
    typealias Damage = (StorageDamage) throws -> Void

    private enum Frame {
        /// Whole, or with its damage reported; the next begins there.
        case passed(UInt64)
        case seal(UInt64)
        /// Not whole. A valid frame can begin at `next` or behind it only; nil: the file ends first.
        case bad(String, next: UInt64?)
    }

    mutating func run(found: Found, damage: Damage) throws {
        var looked: UInt64?
        // Frames before this place were whole once.
        var whole: UInt64 = sealed ? .max : 0
        /// Up to where the frames were walked over to tell that.
        var walked: UInt64 = 0
        while position < size, !finished {
            switch try frame(at: position, wasWhole: position < whole, found, damage) {
            case .passed(let next):
                givesUpAt = .max
                passed?(position..<next)
                lastFrame = position
                position = next
            case .seal(let next):
                position = next
                finished = true
            case .bad(let reason, let from):
                noteDoubt()
                let next = try from.flatMap { try validFrame(from: $0) }
                let moved = next == nil && suspect == nil && givesUpAt == .max ? try validFrame(from: position + 1, elsewhere: true) : nil
                guard next != nil || moved != nil else { return try reportSuspects(at: position, upTo: nil) }
                // Perhaps the frame was being written when we read it, and the one behind it since: look once more before
                // calling it damaged. What lies before frames that were met then is not read a third time.
                if looked != position, position >= walked {
                    looked = position
                    if let next { whole = max(whole, try syncedEnd(from: next, &walked)) }
                    buffer.forget()
                    continue
                }
                guard let next else { return try endInTail(reason, movedTo: moved, damage) }
                try reportLost(at: position, reason, damage)
                try reportSuspects(at: position, upTo: next)
                position = next
            }
        }
    }

    /// Nothing valid follows where it was written, but frames that lie elsewhere perhaps.
    private func endInTail(_ reason: String, movedTo moved: UInt64?, _ damage: Damage) throws {
        if let moved {
            try damage(
                StorageDamage(
                    file: path, offset: position,
                    message:
                        "Versions are damaged: \(reason), and the frames behind, from byte \(moved) on, do not lie where they were "
                            + "written. Bytes were inserted or removed. Salvage the store, or put back a good copy of the file."
                ))
        }
        try reportSuspects(at: position, upTo: nil)
    }

    // MARK: One frame

    private mutating func frame(at start: UInt64, wasWhole: Bool, _ found: Found, _ damage: Damage) throws -> Frame {
        let headerSize = UInt64(FrameFormat.frameHeaderSize)
        guard let head = try bytes(at: start, FrameFormat.frameHeaderSize) else {
            return .bad("the segment ends within a frame's header", next: nil)
        }
        guard let header = FrameFormat.frameHeader(head, id: id, offset: suspect == nil ? start : nil) else {
            return .bad("a frame's header does not match its checksum", next: start + 1)
        }
        guard header.bodySize <= size - start - headerSize else { return .bad("the segment ends within a frame", next: nil) }
        let body = start + headerSize, end = body + header.bodySize
        switch FrameFormat.Kind(rawValue: header.kind) {
        case .seal:
            guard let all = try bytes(at: start, FrameFormat.sealSize),
                FrameFormat.isSeal(all, id: id, offset: suspect == nil ? start : nil)
            else { return .bad("a seal does not match its checksum", next: end) }
            return .seal(end)
        case .batch:
            return try batch(at: body, end: end, checksum: header.tableChecksum, wasWhole: wasWhole, found, damage)
        case .sources:
            guard header.bodySize <= FrameFormat.maxOriginsSize, let list = try bytes(at: body, Int(header.bodySize)),
                Bytes.crc32c(list) == header.tableChecksum
            else {
                if !wasWhole { return .bad("the list of compacted segments does not match its checksum", next: end) }
                try damage(
                    StorageDamage(
                        file: path, offset: start,
                        message: "The list of the segments that were compacted into this one is damaged. The versions are not affected.",
                        lost: .nothing))
                return .passed(end)
            }
            return .passed(end)
        case nil:
            return try unknown(header, start, end, wasWhole: wasWhole, damage)
        }
    }

    /// A frame of a kind that this library does not know: another than a batch, so that its checksum covers all of its body.
    private mutating func unknown(_ header: FrameFormat.FrameHeader, _ start: UInt64, _ end: UInt64, wasWhole: Bool, _ damage: Damage)
        throws -> Frame
    {
        let isIgnorable = header.kind >= FrameFormat.ignorableKinds
        let body = start + UInt64(FrameFormat.frameHeaderSize)
        let isWhole = try isWhole(Entry(offset: body, length: end - body, checksum: header.tableChecksum))
        guard isWhole || (wasWhole && isIgnorable) else {
            return .bad("a frame of kind \(header.kind) does not match its checksum", next: end)
        }
        metUnknown = true
        if !isWhole {
            try damage(
                StorageDamage(
                    file: path, offset: start,
                    message: "What a newer version of the library wrote beside the versions is damaged. The versions are not affected.",
                    lost: .nothing))
        } else if !isIgnorable {
            try damage(
                StorageDamage(
                    file: path, offset: start,
                    message:
                        "A newer version of the library wrote this (a frame of kind \(header.kind)), and this version cannot read it. "
                            + "Use a newer version of the library."
                ))
        }
        return .passed(end)
    }

    /// Up to where all frames were synced, as the frames from a valid one on tell: 0 when none does.
    private func syncedEnd(from start: UInt64, _ at: inout UInt64) throws -> UInt64 {
        var synced: UInt64 = 0
        at = start
        let headerSize = UInt64(FrameFormat.frameHeaderSize)
        while let head = try bytes(at: at, FrameFormat.frameHeaderSize),
            let header = FrameFormat.frameHeader(head, id: id, offset: suspect == nil ? at : nil)
        {
            if header.marks & FrameFormat.isBehindSynced != 0 || header.kind == FrameFormat.Kind.seal.rawValue { synced = at }
            guard header.bodySize <= size - at - headerSize else { break }
            at += headerSize + header.bodySize
        }
        return synced
    }

    private struct Entry { var offset: UInt64; var length: UInt64; var checksum: UInt32 }

    private mutating func batch(at body: UInt64, end: UInt64, checksum: UInt32, wasWhole: Bool, _ found: Found, _ damage: Damage) throws
        -> Frame
    {
        let bad = Frame.bad("a frame's table does not match its checksum", next: end)
        guard end - body >= 4, let first = try bytes(at: body, 4) else { return bad }
        let count = Int(FrameFormat.load(first, 0, UInt32.self))
        let tableSize = 4 + count * FrameFormat.entrySize
        guard count <= FrameFormat.maxRecords, UInt64(tableSize) <= end - body, let table = try bytes(at: body, tableSize),
              Bytes.crc32c(table) == checksum else { return bad }

        // Most frames hold one small record and lie wholly in the buffer.
        if count == 1 {
            let entry = Entry(
                offset: body + UInt64(tableSize), length: FrameFormat.load(table, 4, UInt64.self),
                checksum: FrameFormat.load(table, 12, UInt32.self))
            guard entry.length == end - entry.offset else { return bad }
            return try records([entry], end, wasWhole: wasWhole, found, damage)
        }
        var entries: [Entry] = []
        entries.reserveCapacity(count)
        var offset = body + UInt64(tableSize)
        for i in 0..<count {
            let at = 4 + i * FrameFormat.entrySize
            let entry = Entry(
                offset: offset, length: FrameFormat.load(table, at, UInt64.self), checksum: FrameFormat.load(table, at + 8, UInt32.self))
            guard entry.length <= end - offset else { return bad }
            offset += entry.length
            entries.append(entry)
        }
        guard offset == end else { return bad }
        return try records(entries, end, wasWhole: wasWhole, found, damage)
    }

    private mutating func records(_ entries: [Entry], _ end: UInt64, wasWhole: Bool, _ found: Found, _ damage: Damage) throws -> Frame {
        if !wasWhole {
            // All or nothing: whether the batch is whole must be known before any of it is handed out.
            if entries.count > 1 || (entries.first?.length ?? 0) > UInt64(ScannedRecord.prefixSize) {
                for entry in entries where try !isWhole(entry) { return .bad("a record does not match its checksum", next: end) }
            }
        }
        for entry in entries {
            let prefixSize = Int(min(entry.length, UInt64(ScannedRecord.prefixSize)))
            let small = UInt64(prefixSize) == entry.length
            // The bytes of a large record are trusted in a sealed segment, unless all are to be looked at.
            if wasWhole, !small, thorough || !sealed, try !isWhole(entry) {
                try reportDamaged(entry, found, damage)
                continue
            }
            guard let prefix = try bytes(at: entry.offset, prefixSize) else { return .bad("the segment ends within a record", next: nil) }
            if small, Bytes.crc32c(prefix) != entry.checksum {
                if !wasWhole { return .bad("a record does not match its checksum", next: end) }
                try reportDamaged(entry, found, damage)
                continue
            }
            records &+= 1
            try found(entry.offset, entry.length, prefix, false)
        }
        return .passed(end)
    }

    private func isWhole(_ entry: Entry) throws -> Bool {
        var crc: UInt32 = 0
        var done: UInt64 = 0
        while done < entry.length {
            let here = entry.offset + done, count = Int(min(entry.length - done, UInt64(ScanBuffer.chunk)))
            if count == ScanBuffer.chunk {
                // What a hole claims to be costs nothing.
                let hole = min(System.nextData(file.descriptor, from: here) ?? .max, entry.offset + entry.length) - here
                if hole > UInt64(count) {
                    crc = Bytes.crc32c(zeros: hole, from: crc)
                    done += hole
                    continue
                }
            }
            guard let piece = try bytes(at: here, count) else { return false }
            crc = Bytes.crc32c(piece, from: crc)
            done += UInt64(count)
        }
        return crc == entry.checksum
    }

    // MARK: Damage

    private mutating func noteDoubt() { if buffer.metUnreadable, doubtful == nil { doubtful = position } }

    /// Reports a record that was whole once; and hands it out where only values of it are damaged.
    private mutating func reportDamaged(_ entry: Entry, _ found: Found, _ damage: Damage) throws {
        noteDoubt()
        let prefix = try bytes(at: entry.offset, Int(min(entry.length, UInt64(ScannedRecord.prefixSize))))
        let version = prefix.flatMap { inspector?($0) }
        let tellsVersion = try version != nil && self.tellsVersion(entry)
        let what = "a record does not match its checksum"
        try damage(StorageDamage(
                file: path, offset: entry.offset, message: tellsVersion ? messageOfValues(what, version) : message(what, version),
                version: version,
            lost: tellsVersion ? .value : .version))
        try suspect?(entry.offset, entry.length)
        guard tellsVersion, !thorough, suspect == nil,
            let prefix = try bytes(at: entry.offset, Int(min(entry.length, UInt64(ScannedRecord.prefixSize))))
        else { return }
        records &+= 1
        try found(entry.offset, entry.length, prefix, true)
    }

    /// Whether what tells the version is whole.
    private func tellsVersion(_ entry: Entry) throws -> Bool {
        try withoutActuallyEscaping({ (offset: UInt64, buffer: UnsafeMutableRawBufferPointer) in
            guard let piece = try bytes(at: entry.offset + offset, buffer.count) else {
                throw StoreError(.damaged, "The segment \(path) ends within a record.", path: path)
            }
            buffer.copyMemory(from: piece)
        }) { read in
            var reader = RecordReader(length: entry.length, read: read)
            return try reader.tellsVersion()
        }
    }

    /// Reports a frame that is skipped, once for each of its records that can still be told.
    private func reportLost(at start: UInt64, _ reason: String, _ damage: Damage) throws {
        // How many of its records can be told, and how many it says that it has.
        var named = 0, told = 1
        if let head = try bytes(at: start, FrameFormat.frameHeaderSize + 4) {
            // The header may be what is damaged: then this is a guess, and the inspector has the last word.
            let count = Int(FrameFormat.load(head, FrameFormat.frameHeaderSize, UInt32.self))
            let table = start + UInt64(FrameFormat.frameHeaderSize + 4)
            if count >= 1, count <= FrameFormat.maxRecords, UInt64(count * FrameFormat.entrySize) <= size - table {
                told = count
                var offset = table + UInt64(count * FrameFormat.entrySize)
                for i in 0..<count {
                    guard let entry = try bytes(at: table + UInt64(i * FrameFormat.entrySize), FrameFormat.entrySize) else { break }
                    let length = FrameFormat.load(entry, 0, UInt64.self)
                    guard offset <= size, length <= size - offset else { break }
                    guard let prefix = try bytes(at: offset, Int(min(length, UInt64(ScannedRecord.prefixSize)))) else { break }
                    if let version = inspector?(prefix) {
                        named += 1
                        try damage(StorageDamage(file: path, offset: offset, message: message(reason, version), version: version))
                    }
                    offset += length
                }
            }
        }
        if named < told { try damage(StorageDamage(file: path, offset: start, message: message(reason, nil))) }
    }

    /// Reports where the records of a frame that is not whole may be. By its table, when that is whole; else where a record
    /// begins that says itself how long it is, and others follow up to the next frame: bytes within a value are never taken
    /// for a record.
    /// - Parameter next: where the next frame begins; nil: this one is the last, and may have been cut short.
    private func reportSuspects(at start: UInt64, upTo next: UInt64?) throws {
        guard let suspect else { return }
        let end = next ?? size, table = start + UInt64(FrameFormat.frameHeaderSize)
        guard table <= end, end - table >= 4 else { return }
        if let head = try bytes(at: start, FrameFormat.frameHeaderSize + 4), let header = FrameFormat.frameHeader(head, id: id, offset: nil)
        {
            let count = FrameFormat.load(head, FrameFormat.frameHeaderSize, UInt32.self),
                tableSize = 4 + UInt64(count) * UInt64(FrameFormat.entrySize)
            if count <= FrameFormat.maxRecords, tableSize <= end - table, let entries = try bytes(at: table, Int(tableSize)),
                Bytes.crc32c(entries) == header.tableChecksum
            {
                let lengths = (0..<Int(count)).map { FrameFormat.load(entries, 4 + $0 * FrameFormat.entrySize, UInt64.self) }
                var at = table + tableSize
                for length in lengths where at < end {
                    try suspect(at, length)
                    let (behind, overflow) = at.addingReportingOverflow(length)
                    guard !overflow else { return }
                    at = behind
                }
                return
            }
        }
        var first = table + 4 + UInt64(FrameFormat.entrySize), count = 1
        var effort = 8 * (end - table) + (64 << 20)
        while first < end, count <= FrameFormat.maxRecords {
            var found: [(UInt64, UInt64)] = [], at = first
            while found.count < count, at < end, let length = try recordLength(at: at, &effort) {
                found.append((at, length))
                let (behind, overflow) = at.addingReportingOverflow(length)
                guard !overflow else { break }
                at = behind
            }
            if next == nil ? found.count == count || (!found.isEmpty && at >= end) : at == end && found.count == count {
                for (offset, length) in found { try suspect(offset, length) }
                return
            }
            first += UInt64(FrameFormat.entrySize)
            count += 1
        }
    }

    /// How long the record says that it is whose header begins there; nil when there is none that is whole. Any bytes may be
    /// there: their sizes are believed once the checksum over them matches, and it is computed piece by piece.
    /// - Parameter effort: bytes that may still be looked at, so that bytes that look like many large headers cost no hours.
    private func recordLength(at offset: UInt64, _ effort: inout UInt64) throws -> UInt64? {
        let preludeSize = RecordHeader.preludeSize
        guard let start = try bytes(at: offset, min(preludeSize, Int(clamping: size - offset))), start.count == preludeSize,
              start[0] == RecordHeader.format else { return nil }
        let headerSize = UInt64(FrameFormat.load(start, 4, UInt32.self)), checksum = FrameFormat.load(start, 24, UInt32.self)
        let tableSize = FrameFormat.load(start, 8, UInt64.self), bodiesSize = FrameFormat.load(start, 16, UInt64.self),
            largest = UInt64(Int64.max / 4)
        guard tableSize <= largest, bodiesSize <= largest, headerSize <= size - offset - UInt64(preludeSize), headerSize <= effort else {
            return nil
        }
        effort -= headerSize
        var crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: start[..<24]))
        var done: UInt64 = 0
        while done < headerSize {
            let count = Int(min(headerSize - done, UInt64(ScanBuffer.chunk / 4)))
            guard let piece = try bytes(at: offset + UInt64(preludeSize) + done, count) else { return nil }
            crc = Bytes.crc32c(piece, from: crc)
            done += UInt64(count)
        }
        return crc == checksum ? UInt64(preludeSize) + headerSize + tableSize + bodiesSize : nil
    }

    private func messageOfValues(_ reason: String, _ version: VersionID?) -> String {
        "Values that version \(version.map(\.description) ?? "") stored are damaged: \(reason). "
            + "Bytes were changed after they were written. The version and its other values can be read. "
            + "An exchange with a store that has the version brings them back."
    }

    private func message(_ reason: String, _ version: VersionID?) -> String {
        let lost = version.map { "Version \($0) (as far as its bytes can be trusted)" } ?? "A version that cannot be named any more"
        return
            "\(lost) is damaged: \(reason). Bytes were changed after they were written. "
                + "An exchange with a store that has the version brings it back."
    }

    /// Where the first frame header of this segment at or behind `from` is.
    /// - Parameter elsewhere: also one that does not lie where it was written.
    private func validFrame(from: UInt64, elsewhere: Bool = false) throws -> UInt64? {
        let anywhere = elsewhere || suspect != nil
        var at = from
        while at < min(size, givesUpAt), size - at >= UInt64(FrameFormat.frameHeaderSize) {
            // A header does not begin in a hole.
            guard let data = System.nextData(file.descriptor, from: at) else { return nil }
            at = data
            guard at < min(size, givesUpAt), size - at >= UInt64(FrameFormat.frameHeaderSize) else { return nil }
            // What is in the buffer first: between frames that are not whole there may be little.
            let buffered = buffer.available(at)
            let count = Int(min(size - at, UInt64(buffered >= FrameFormat.frameHeaderSize ? buffered : ScanBuffer.chunk)))
            guard let piece = try bytes(at: at, count), let base = piece.baseAddress else { return nil }
            var i = 0
            while i + FrameFormat.frameHeaderSize <= count {
                guard let hit = memchr(base + i, Int32(FrameFormat.magicFirstByte), count - FrameFormat.frameHeaderSize - i + 1) else {
                    break
                }
                i = UnsafeRawPointer(hit) - base
                if FrameFormat.frameHeader(UnsafeRawBufferPointer(rebasing: piece[i...]), id: id, offset: anywhere ? nil : at + UInt64(i))
                    != nil
                {
                    return at + UInt64(i)
                }
                i += 1
            }
            // A header may straddle two pieces.
            at += UInt64(count - FrameFormat.frameHeaderSize + 1)
        }
        return nil
    }

    /// `count` bytes at `offset`, valid until the next call; nil when the file ends before.
    @inline(__always)
    private func bytes(at offset: UInt64, _ count: Int) throws -> UnsafeRawBufferPointer? {
        if let hit = buffer.hit(offset, count) { return hit }
        try progress(offset)
        return try posix("Reading the segment", path) { () throws(Errno) in try buffer.fill(file.descriptor, offset, count, size: size) }
    }
}

/// The window of a file that a scan looks through, filled in large pieces.
final class ScanBuffer {
    /// How much is read at once while going forward; a quarter after a jump.
    static let chunk = 1 << 20
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var start: UInt64 = 0
    private var count = 0
    /// Since `forget`, bytes were met that the medium does not give out.
    private(set) var metUnreadable = false

    deinit { free(memory.baseAddress) }
    func forget() { count = 0; start = 0; metUnreadable = false }

    @inline(__always)
    func hit(_ offset: UInt64, _ wanted: Int) -> UnsafeRawBufferPointer? {
        guard offset >= start, offset - start <= UInt64(count), wanted <= count - Int(offset - start) else { return nil }
        let from = Int(offset - start)
        return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory)[from..<from + wanted])
    }

    /// How many bytes from `offset` on are in the buffer.
    func available(_ offset: UInt64) -> Int { offset >= start && offset - start <= UInt64(count) ? count - Int(offset - start) : 0 }

    func fill(_ fd: Int32, _ offset: UInt64, _ wanted: Int, size: UInt64) throws(Errno) -> UnsafeRawBufferPointer? {
        guard offset <= size, UInt64(wanted) <= size - offset else { return nil }
        let forward = count == 0 || (offset >= start && offset - start <= UInt64(count))
        let ahead = forward ? ScanBuffer.chunk : ScanBuffer.chunk / 4
        let filling = Int(min(size - offset, UInt64(max(wanted, ahead))))
        if memory.count < filling {
            free(memory.baseAddress)
            memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
            // What was in it is gone, also when there is no other.
            count = 0
            // A small file gets a small buffer; a longer one the full one at once.
            let room = max(filling, min(ScanBuffer.chunk, filling * 4))
            guard let bytes = llvs_shim_allocate(room) else { throw Errno(ENOMEM) }
            memory = UnsafeMutableRawBufferPointer(start: bytes, count: room)
        }
        count = 0
        let target = UnsafeMutableRawBufferPointer(rebasing: memory[0..<filling])
        let got: Int
        do throws(Errno) {
            got = try System.pread(fd, target, at: offset)
        } catch {
            guard error.code == EIO else { throw error }
            got = readAround(fd, target, at: offset)
        }
        start = offset
        count = got
        return hit(offset, wanted)
    }

    /// A medium with a bad sector: what cannot be read counts as zeros, so that it costs the frames it
    /// lies in and no others.
    private func readAround(_ fd: Int32, _ target: UnsafeMutableRawBufferPointer, at offset: UInt64) -> Int {
        var done = 0
        while done < target.count {
            let piece = UnsafeMutableRawBufferPointer(rebasing: target[done..<min(target.count, done + 4096)])
            let got = try? System.pread(fd, piece, at: offset &+ UInt64(done))
            if got == nil {
                piece.initializeMemory(as: UInt8.self, repeating: 0)
                metUnreadable = true
            }
            let count = got ?? piece.count
            done += count
            if count < piece.count { break }
        }
        return done
    }
}
