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
    var metUnknown = false
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
    var records: UInt64 = 0
    /// Where the first frame begins that is not whole while the medium could not be read: it may be whole on another day.
    var unreadableFrom: UInt64?

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

    enum Frame {
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
                noteUnreadable()
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
    func endInTail(_ reason: String, movedTo moved: UInt64?, _ damage: Damage) throws {
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

    /// Up to where all frames were synced, as the frames from a valid one on tell: 0 when none does.
    func syncedEnd(from start: UInt64, _ at: inout UInt64) throws -> UInt64 {
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

    /// Where the first frame header of this segment at or behind `from` is.
    /// - Parameter elsewhere: also one that does not lie where it was written.
    func validFrame(from: UInt64, elsewhere: Bool = false) throws -> UInt64? {
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
    func bytes(at offset: UInt64, _ count: Int) throws -> UnsafeRawBufferPointer? {
        if let hit = buffer.hit(offset, count) { return hit }
        try progress(offset)
        return try posix("Reading the segment", path) { () throws(Errno) in try buffer.fill(file.descriptor, offset, count, size: size) }
    }
}
