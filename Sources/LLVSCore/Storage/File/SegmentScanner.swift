/// Reads the frames of one segment, distinguishes tails from damage, and delivers valid records.
///
/// An invalid frame is a *tail* if no valid frame follows: it is being written, or its writer died. It counts as not written yet. If a
/// valid frame follows, it is *damage*: reported and skipped. Some frames are known to have been complete once: all in a sealed segment,
/// and all before a frame that says so. Damage of these is reported record by record, and a record of which only values are damaged is
/// delivered all the same.
struct SegmentScanner {
    let file: OpenFile
    let path: String
    let id: RandomName
    /// The file's size when the scan began. Later bytes are not read.
    let size: UInt64
    /// Whether the segment ends in a seal. Its large records are then trusted unless `thorough`.
    let sealed: Bool
    /// Whether every byte must be read and checked.
    let thorough: Bool
    let inspector: RecordInspector?
    let buffer: ScanBuffer
    /// Called with where a record may be that is not delivered, since it or its frame is damaged. If it is set, frames are also accepted
    /// at other offsets than they were written at: bytes may have been inserted or removed before them.
    var suspect: ((_ offset: UInt64, _ length: UInt64) throws -> Void)?
    /// Whether a frame of an unknown kind was found.
    var metUnknown = false
    /// Called with each frame that was passed: a valid one, except for records that were reported as damaged.
    var passed: ((Range<UInt64>) -> Void)?
    /// Called with the progress of the scan, at least once per MiB read.
    var progress: (UInt64) throws -> Void = { _ in }

    /// Set if the header is invalid: if no frame begins before this offset, the scan gives up, whatever size the file claims.
    var givesUpAt: UInt64 = .max

    /// Where the next frame begins. Everything before was delivered or reported.
    private(set) var position: UInt64
    /// Where the last frame that was passed begins; 0 if there is none.
    private(set) var lastFrame: UInt64 = 0
    /// Whether the seal was reached.
    private(set) var finished = false
    var records: UInt64 = 0
    /// Where the first frame begins that was invalid while the medium could not be read: it may be valid another time.
    var unreadableFrom: UInt64?

    init(
        file: OpenFile, path: String, id: RandomName, from position: UInt64, size: UInt64, sealed: Bool, thorough: Bool,
        inspector: RecordInspector?, buffer: ScanBuffer
    ) {
        self.file = file; self.path = path; self.id = id; self.position = position; self.size = size
        self.sealed = sealed; self.thorough = thorough; self.inspector = inspector; self.buffer = buffer
        buffer.forget()
    }

    /// - Parameter isDamaged: whether values of it are damaged; never with `thorough`.
    typealias Found = (_ offset: UInt64, _ length: UInt64, _ prefix: UnsafeRawBufferPointer, _ isDamaged: Bool) throws -> Void
    typealias Damage = (StorageDamage) throws -> Void

    enum Frame {
        /// Valid, or with its damage reported. The next frame begins at this offset.
        case passed(UInt64)
        /// The last frame of a closed segment, which ends at this offset.
        case seal(UInt64)
        /// Invalid. A valid frame can only begin at or after `next`; nil if the file ends first.
        case bad(String, next: UInt64?)
    }

    mutating func run(found: Found, damage: Damage) throws {
        var looked: UInt64?
        // Frames before this offset were complete once.
        var whole: UInt64 = sealed ? .max : 0
        /// Up to where frames were walked to determine that.
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
                // The frame may have been read while it was being written, and the next one written since: read it once more before
                // reporting damage. Frames up to `walked` are not read again: the headers after the frame led to there.
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

    /// No valid frame follows in its place, but frames may follow at other offsets.
    func endInTail(_ reason: String, movedTo moved: UInt64?, _ damage: Damage) throws {
        if let moved {
            try damage(
                StorageDamage(
                    file: path, offset: position,
                    message:
                        "Versions are damaged: \(reason), and the frames from byte \(moved) on are not where they were "
                        + "written. Bytes were inserted or removed. Salvage the store, or restore a good copy of the file."
                ))
        }
        try reportSuspects(at: position, upTo: nil)
    }

    /// Returns up to where all frames were synced, according to the frames from a valid one on; 0 if none says so.
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

    /// Returns the offset of the first frame header of this segment at or after `from`.
    /// - Parameter elsewhere: whether to accept a header at another offset than it was written at.
    func validFrame(from: UInt64, elsewhere: Bool = false) throws -> UInt64? {
        let anywhere = elsewhere || suspect != nil
        var at = from
        while at < min(size, givesUpAt), size - at >= UInt64(FrameFormat.frameHeaderSize) {
            // A header does not begin in a hole.
            guard let data = System.nextData(file.descriptor, from: at) else { return nil }
            at = data
            guard at < min(size, givesUpAt), size - at >= UInt64(FrameFormat.frameHeaderSize) else { return nil }
            // Read what is in the buffer first: the next valid frame may be near.
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

    /// Returns `count` bytes at `offset`, valid until the next call; nil if the file ends before.
    @inline(__always)
    func bytes(at offset: UInt64, _ count: Int) throws -> UnsafeRawBufferPointer? {
        if let hit = buffer.hit(offset, count) { return hit }
        try progress(offset)
        return try posix("Reading the segment", path) { () throws(Errno) in try buffer.fill(file.descriptor, offset, count, size: size) }
    }
}
