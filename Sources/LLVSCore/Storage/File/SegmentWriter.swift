/// Appends frames to the one segment that this handle writes at a time.
///
/// Used under the storage's append lock. The bytes of a complete frame are never overwritten or truncated. After a failure the segment is
/// abandoned as it is. Only on a full medium, the incomplete frame is removed and its place used again.
///
/// A file system syncs the size and the blocks of a file through its journal, which takes about as long as the bytes themselves. So if
/// every frame is synced, the file ends in zeros, and most frames are written over them. Sealing removes the zeros.
final class SegmentWriter {
    let id: RandomName
    let place: DirectoryEntry
    let path: String
    let file: OpenFile
    private let identity: FileIdentity?
    /// Where the next frame goes. Everything before was written completely.
    private(set) var end: UInt64 = 0
    /// Where the last frame begins; 0 if there is none.
    private(set) var lastFrame: UInt64 = 0
    /// The size of the file if it is larger than `end`.
    private var room: UInt64 = 0
    private let makesRoom: Bool
    private var frames: UInt64 = 0
    /// Nil once a frame was copied without counting its records.
    private var records: UInt64? = 0
    private let system: FileSystem

    /// Creates the segment's file and locks it. Its header is written with the first frame.
    /// - Parameter makesRoom: whether each frame will be synced.
    init(_ directory: Folder, makesRoom: Bool = false, system: FileSystem) throws {
        let id = try posix("Naming a new segment in", directory.path) { () throws(Errno) in try RandomName.random() }
        let place = directory.place(id.hex + ".seg"), path = place.path
        // Another directory may have been put there since.
        directory.renew()
        let file = try posix("Making the segment", path) { () throws(Errno) in
            try OpenFile(place, O_RDWR | O_CREAT | O_EXCL, mode: system.mode)
        }
        do {
            try System.lockExclusively(file.descriptor)
        } catch {
            // On a file system without locks, no process can find out whether this one is alive, so none assumes that it is dead. But a
            // process that holds this lock assumes that the writer is dead.
            if error.code == EWOULDBLOCK { throw StoreError.posix(error, doing: "Locking the segment", path: path) }
            Log.write(.info, "Locking the segment \(path) failed: \(error). Continuing without the lock.")
        }
        identity = (try? System.status(file.descriptor)).map(FileIdentity.init)
        self.id = id; self.place = place; self.path = path; self.file = file; self.system = system; self.makesRoom = makesRoom
    }

    /// The state of the file while it is being written.
    enum State {
        /// The file is the one that is being written, and has all that was written.
        case usual
        /// The path of the file names another file: the file, or a directory above it, was removed, renamed or replaced.
        case gone
        /// Another program truncated the file. Frames appended now would follow a hole, and without the header they would be lost.
        case cutShort
    }

    /// Takes one system call.
    var state: State {
        switch identity?.look(at: path) {
        case .gone?: .gone
        // On a network file system, what a path reports may be old.
        case .same(let size)? where size < end && (try? System.status(file.descriptor)).map { $0.size < end } ?? false: .cutShort
        default: .usual
        }
    }
    var isGone: Bool { state == .gone }

    /// Returns the size of a frame with these records.
    static func frameSize(_ records: [RecordPieces], of store: String) throws -> Int {
        guard records.count <= FrameFormat.maxRecords else {
            throw StoreError(
                .tooLarge,
                "Adding \(records.count) records at once to \(store) failed: at most \(FrameFormat.maxRecords) fit into one batch. "
                    + "Add them in several batches."
            )
        }
        var size = FrameFormat.frameHeaderSize + 4 + records.count * FrameFormat.entrySize
        for record in records {
            let (sum, overflow) = size.addingReportingOverflow(record.length)
            guard !overflow, sum < Int.max / 2 else {
                throw StoreError(
                    .tooLarge,
                    "Adding \(records.count) records to \(store) failed: together they are too large. Add them in several batches.")
            }
            size = sum
        }
        return size
    }

    /// Appends the records as one frame.
    /// - Parameters:
    ///   - segment: the number of this segment in places.
    ///   - isSynced: whether everything before the frame is durable.
    /// - Throws: `.unknownOutcome` if the frame may be in the file all the same, else the error that prevented it. After either, this
    ///   writer must not be used again, unless `isReusable`.
    func append(_ batch: [RecordPieces], frameSize: Int, segment: UInt32, isSynced: Bool = false, scratch: UnsafeMutableRawBufferPointer)
        throws -> [RecordPlace]
    {
        let marks = isSynced && end > 0 ? FrameFormat.isBehindSynced : 0
        let preamble = end == 0 ? FrameFormat.segmentHeaderSize : 0
        let start = end &+ UInt64(preamble)
        if preamble > 0 { FrameFormat.storeSegmentHeader(in: scratch, id: id, created: System.now, writer: .current) }
        let table = FrameFormat.frameHeaderSize + 4
        var offset = start &+ UInt64(table + batch.count * FrameFormat.entrySize)
        let places = batch.map { record in
            let place = RecordPlace(segment: segment, offset: offset, length: UInt64(record.length))
            offset &+= place.length
            return place
        }
        do {
            if preamble + frameSize <= scratch.count {
                try writeSmall(batch, places, preamble, frameSize, start, marks, scratch)
            } else {
                try writeLarge(batch, places, preamble, frameSize, start, marks, scratch)
            }
        } catch {
            let failure = outcome(of: error, start, frameSize, scratch)
            if failure.code == .noSpace { giveBack() }
            throw failure
        }
        end = start &+ UInt64(frameSize)
        lastFrame = start
        preallocate()
        frames &+= 1
        records = records.map { $0 &+ UInt64(batch.count) }
        return places
    }

    /// Whether another frame may follow a failed write: the medium was full, and the incomplete frame was removed.
    private(set) var isReusable = false

    /// Removes what a write on a full medium left after the last complete frame. It was never acknowledged, and no reader used it, since
    /// only complete frames count. So the next frame may begin in the same place.
    private func giveBack() {
        isReusable = false
        guard end > 0 else { return }
        do throws(Errno) {
            try system.truncate(file, to: end)
            room = 0
            isReusable = true
        } catch { Log.write(.info, "The incomplete frame in the segment \(path) could not be removed: \(error).") }
    }

    /// Writes zeros after the frames, except after the first one, since many handles write no other. If that fails, the file just ends
    /// with its frames, or with some zeros.
    private func preallocate() {
        guard makesRoom, frames > 0, end > room else { return }
        let step = end < SegmentWriter.longRoom ? SegmentWriter.blockSize : SegmentWriter.longRoom
        room = (end &+ (step - 1)) / step * step
        guard room > end else { return }
        do throws(Errno) {
            if step == SegmentWriter.blockSize {
                // The room lies within the last frame's block, which is allocated already.
                try system.truncate(file, to: room)
            } else {
                // Write real zeros: blocks that were never written would go through the journal again when they are.
                let zeros = [UInt8](repeating: 0, count: Int(room - end))
                try zeros.borrowed { (b) throws(Errno) in try system.write(file, b, at: end) }
            }
        } catch {
            room = (try? System.status(file.descriptor).size) ?? room
        }
    }
    /// The block size of most file systems.
    private static let blockSize: UInt64 = 4096
    /// The room in a longer segment.
    private static let longRoom: UInt64 = 64 << 10

    /// Writes the whole frame, with the segment's header before the first one, from one buffer in one call.
    private func writeSmall(
        _ batch: [RecordPieces], _ places: [RecordPlace], _ preamble: Int, _ frameSize: Int, _ start: UInt64, _ marks: UInt8,
        _ scratch: UnsafeMutableRawBufferPointer
    ) throws {
        let frame = UnsafeMutableRawBufferPointer(rebasing: scratch[preamble..<preamble + frameSize])
        let table = FrameFormat.frameHeaderSize
        let tableSize = 4 + batch.count * FrameFormat.entrySize
        frame.storeBytes(of: UInt32(batch.count).littleEndian, toByteOffset: table, as: UInt32.self)
        var at = table + tableSize
        for i in batch.indices {
            let record = UnsafeMutableRawBufferPointer(rebasing: frame[at..<at + batch[i].length])
            try batch[i].copy(to: record)
            at += record.count
            let crc = Bytes.crc32c(UnsafeRawBufferPointer(record))
            FrameFormat.storeEntry(in: frame, at: table + 4 + i * FrameFormat.entrySize, length: places[i].length, checksum: crc)
        }
        let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: frame[table..<table + tableSize]))
        FrameFormat.storeFrameHeader(
            in: frame, at: 0, kind: .batch, marks: marks, id: id, offset: start, bodySize: UInt64(frameSize - FrameFormat.frameHeaderSize),
            tableChecksum: crc)
        try system.write(file, UnsafeRawBufferPointer(rebasing: scratch[0..<preamble + frameSize]), at: end)
    }

    /// Writes a frame larger than the buffer: checksums first, then its pieces as they come, and large pieces without a copy. If the
    /// pieces turn out shorter than the frame, it stays incomplete.
    private func writeLarge(
        _ batch: [RecordPieces], _ places: [RecordPlace], _ preamble: Int, _ frameSize: Int, _ start: UInt64, _ marks: UInt8,
        _ scratch: UnsafeMutableRawBufferPointer
    ) throws {
        var table = [UInt8](repeating: 0, count: 4 + batch.count * FrameFormat.entrySize)
        var header = [UInt8](repeating: 0, count: FrameFormat.frameHeaderSize)
        try table.withUnsafeMutableBytes { table in
            table.storeBytes(of: UInt32(batch.count).littleEndian, as: UInt32.self)
            for i in batch.indices {
                FrameFormat.storeEntry(
                    in: table, at: 4 + i * FrameFormat.entrySize, length: places[i].length, checksum: try batch[i].checksum())
            }
            let crc = Bytes.crc32c(UnsafeRawBufferPointer(table))
            header.withUnsafeMutableBytes {
                FrameFormat.storeFrameHeader(
                    in: $0, at: 0, kind: .batch, marks: marks, id: id, offset: start,
                    bodySize: UInt64(frameSize - FrameFormat.frameHeaderSize), tableChecksum: crc)
            }
        }
        var output = BufferedOutput(file: file, system: system, buffer: scratch, filled: preamble, offset: end)
        try header.borrowed { (b) throws(Errno) in try output.put(b) }
        try table.borrowed { (b) throws(Errno) in try output.put(b) }
        for record in batch { try record.forEach { try output.put($0) } }
        try output.flush()
    }

    /// Records that no frame follows. The data must be durable before.
    func seal() throws(Errno) {
        guard end > 0 else { return }
        // A seal must be at the end of the file.
        if room > end { try system.truncate(file, to: end) }
        room = 0
        var bytes = [UInt8](repeating: 0, count: FrameFormat.sealSize)
        bytes.withUnsafeMutableBytes { FrameFormat.storeSeal(in: $0, id: id, offset: end, frames: frames, records: records ?? 0) }
        try bytes.borrowed { (b) throws(Errno) in try system.write(file, b, at: end) }
        end &+= UInt64(FrameFormat.sealSize)
    }

    /// Appends a frame of another segment at `offset`, which was checked before, with a header of this segment. Returns where the next
    /// frame begins in the other segment.
    func copyFrame(from source: OpenFile, sourceID: RandomName, at offset: UInt64, scratch: UnsafeMutableRawBufferPointer) throws(Errno)
        -> UInt64
    {
        let preamble = end == 0 ? FrameFormat.segmentHeaderSize : 0
        let start = end &+ UInt64(preamble)
        let head = UnsafeMutableRawBufferPointer(rebasing: scratch[preamble..<preamble + FrameFormat.frameHeaderSize])
        guard try System.pread(source.descriptor, head, at: offset) == head.count,
            let header = FrameFormat.frameHeader(UnsafeRawBufferPointer(head), id: sourceID, offset: offset)
        else { throw Errno(EIO) }
        if preamble > 0 { FrameFormat.storeSegmentHeader(in: scratch, id: id, created: System.now, writer: .current) }
        FrameFormat.storeFrameHeader(
            in: scratch, at: preamble, kind: .batch, id: id, offset: start, bodySize: header.bodySize, tableChecksum: header.tableChecksum)
        try system.write(file, UnsafeRawBufferPointer(rebasing: scratch[0..<preamble + head.count]), at: end)
        var done: UInt64 = 0
        let body = offset &+ UInt64(head.count), target = start &+ UInt64(head.count)
        while done < header.bodySize {
            let piece = UnsafeMutableRawBufferPointer(rebasing: scratch[0..<Int(min(UInt64(scratch.count), header.bodySize - done))])
            guard try System.pread(source.descriptor, piece, at: body &+ done) == piece.count else { throw Errno(EIO) }
            try system.write(file, UnsafeRawBufferPointer(piece), at: target &+ done)
            done &+= UInt64(piece.count)
        }
        end = target &+ header.bodySize
        lastFrame = start
        frames &+= 1
        records = nil
        return body &+ header.bodySize
    }

    /// Returns the error for a failed write. Nothing follows in this segment, so a frame that is shorter than its size never counts. A
    /// complete frame may count, whatever the system reported.
    private func outcome(of error: any Error, _ start: UInt64, _ frameSize: Int, _ scratch: UnsafeMutableRawBufferPointer) -> StoreError {
        let failure =
            (error as? Errno).map { StoreError.posix($0, doing: "Writing to the segment", path: path) }
            ?? (error as? StoreError) ?? StoreError(.internal, "Writing to the segment \(path) failed: \(error).")
        // Nothing was written, and the descriptor may be of another file by now.
        if (error as? Errno) == .lost { return failure }
        do throws(Errno) {
            if start &+ UInt64(frameSize) <= room {
                // The frame fit into the room, so it is small, and the buffer has all of it to compare.
                var there = [UInt8](repeating: 0, count: frameSize)
                let count = try there.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: start) }
                if count < frameSize
                    || !there.withUnsafeBytes({ Bytes.equal($0, UnsafeRawBufferPointer(rebasing: scratch[0..<frameSize])) })
                {
                    return failure
                }
            } else if try System.status(file.descriptor).size < start &+ UInt64(frameSize) {
                return failure
            }
        } catch {}
        return StoreError(
            .unknownOutcome,
            failure.message
                + " It is not known whether it was stored all the same: check after the next reload, or store it again under the same "
                + "version id.",
            path: path, systemCode: failure.systemCode)
    }
}

/// Collects small pieces into writes of a buffer's size, and writes large ones without a copy.
struct BufferedOutput {
    let file: OpenFile
    let system: FileSystem
    let buffer: UnsafeMutableRawBufferPointer
    var filled: Int
    var offset: UInt64
    /// The most bytes of one write.
    static let writeSize = 8 << 20

    mutating func put(_ piece: UnsafeRawBufferPointer) throws(Errno) {
        guard let source = piece.baseAddress, piece.count > 0 else { return }
        if piece.count > buffer.count - filled { try flush() }
        if piece.count > buffer.count / 2 {
            try flush()
            var done = 0
            while done < piece.count {
                let n = min(BufferedOutput.writeSize, piece.count - done)
                try system.write(file, UnsafeRawBufferPointer(start: source + done, count: n), at: offset)
                offset &+= UInt64(n)
                done += n
            }
        } else if let base = buffer.baseAddress {
            memcpy(base + filled, source, piece.count)
            filled += piece.count
        }
    }

    mutating func flush() throws(Errno) {
        guard filled > 0 else { return }
        try system.write(file, UnsafeRawBufferPointer(rebasing: buffer[0..<filled]), at: offset)
        offset &+= UInt64(filled)
        filled = 0
    }
}
