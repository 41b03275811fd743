/// A segment that may be compacted: it was read to its end and is valid.
struct CompactionInput {
    let id: RandomName
    let place: DirectoryEntry
    var path: String { place.path }
    let length: UInt64
    let sealed: Bool
    let created: Int64
    /// The range of its frames with records.
    let from: UInt64
    let size: UInt64
    let records: UInt64
    /// The sources of this source, if it was compacted itself. Their `at` counts from `from`.
    let sources: [CompactionSource]
}

/// Writes one segment with the frames of several, and checks it.
struct SegmentCompaction {
    let system: FileSystem
    let buffer = ScanBuffer()
    /// Called at least once per MiB.
    let check: () throws -> Void

    /// The result of reading the beginning and the end of a file to which no process will append any more.
    struct Summary { let id: RandomName; let size: UInt64; let created: Int64; let sealed: Bool }

    /// Returns nil if the segment may not be compacted, or not now.
    static func summary(_ place: DirectoryEntry) -> Summary? {
        guard let named = RandomName(hex: place.name.dropLast(4)), let file = try? OpenFile(place, O_RDONLY),
            let status = try? System.status(file.descriptor), status.isRegularFile
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: FrameFormat.segmentHeaderSize)
        let header = try? bytes.filled { (b) throws(Errno) in
            try System.pread(file.descriptor, b, at: 0) == b.count ? FrameFormat.segmentHeader(UnsafeRawBufferPointer(b)) : nil
        }
        guard let header, header.format == FrameFormat.format, header.id == named else { return nil }
        let sealed = (try? SegmentFile.isSealed(file, named, status.size)) ?? false
        if !sealed {
            // The writer of the segment holds the lock as long as it lives. That is visible only if it ran on this machine.
            guard header.writer == .current, header.writer.boot != 0 else { return nil }
            do throws(Errno) { try System.lockExclusively(file.descriptor) } catch { return nil }
            try? System.unlock(file.descriptor)
        }
        return Summary(id: named, size: status.size, created: header.created, sealed: sealed)
    }

    /// Reads all of the segment. Returns nil if anything in it is invalid, or it is empty. Damaged segments are not compacted.
    func examine(_ place: DirectoryEntry, _ summary: Summary) throws -> CompactionInput? {
        guard let file = try? OpenFile(place, O_RDONLY) else { return nil }
        let compacted = try? CompactedSegment.read(file, name: place.name, size: summary.size)
        let from = compacted?.data ?? UInt64(FrameFormat.segmentHeaderSize)
        var isWhole = true
        var scanner = SegmentScanner(
            file: file, path: place.path, id: summary.id, from: from, size: summary.size, sealed: summary.sealed, thorough: true,
            inspector: nil, buffer: buffer)
        try run(&scanner) { _ in isWhole = false }
        let end = scanner.finished ? scanner.position - UInt64(FrameFormat.sealSize) : scanner.position
        // A power cut can leave unused room after a seal, which was about to be truncated.
        guard isWhole, !scanner.metUnknown, scanner.finished || !summary.sealed, end > from else { return nil }
        return CompactionInput(
            id: summary.id, place: place, length: summary.size, sealed: summary.sealed, created: compacted?.created ?? summary.created,
            from: from, size: end - from, records: scanner.records, sources: compacted?.sources ?? [])
    }

    /// Returns whether all of the segment is valid.
    func isWhole(_ place: DirectoryEntry, _ id: RandomName, size: UInt64) throws -> Bool {
        guard let file = try? OpenFile(place, O_RDONLY) else { return false }
        var isWhole = true
        var scanner = SegmentScanner(
            file: file, path: place.path, id: id, from: UInt64(FrameFormat.segmentHeaderSize), size: size, sealed: true, thorough: true,
            inspector: nil, buffer: buffer)
        try run(&scanner) { _ in isWhole = false }
        return isWhole && scanner.finished
    }

    private func run(_ scanner: inout SegmentScanner, damage: (StorageDamage) throws -> Void) throws {
        // The closure is called only during `run`.
        try withoutActuallyEscaping({ (_: UInt64) in try check() }) { progress in
            scanner.progress = progress
            defer { scanner.progress = { _ in } }
            try scanner.run(found: { _, _, _, _ in }, damage: damage)
        }
    }

    // MARK: Writing

    /// Returns the segments in the order of their frames in the compacted one: by creation, so that versions mostly come after their
    /// predecessors. It depends only on the inputs.
    static func inOrder(_ inputs: [CompactionInput]) -> [CompactionInput] {
        inputs.sorted { $0.created != $1.created ? $0.created < $1.created : $0.id < $1.id }
    }

    static func id(of inputs: [CompactionInput]) -> RandomName { CompactionSource.id(compacting: inputs.map { ($0.id, $0.length) }) }

    /// Returns the list of sources for a segment into which these are compacted, in order.
    static func sources(of inputs: [CompactionInput]) -> [CompactionSource] {
        var sources: [CompactionSource] = []
        var at: UInt64 = 0
        for input in inputs {
            sources.append(
                CompactionSource(id: input.id, length: input.length, sealed: input.sealed, from: input.from, size: input.size, at: at))
            for var inner in input.sources {
                inner.at += at
                sources.append(inner)
            }
            at += input.size
        }
        return sources
    }

    /// Writes the segment under a temporary name, syncs it, and renames it. Returns its size. Until it is renamed, no reader uses it. If
    /// this stops at any point, all old segments still exist.
    func write(_ inputs: [CompactionInput], in directory: StoreDirectory) throws -> UInt64 {
        let inputs = SegmentCompaction.inOrder(inputs), id = SegmentCompaction.id(of: inputs)
        let place = directory.segment(id.hex + ".seg")
        let random = try posix("Compacting segments in", directory.segments) { () throws(Errno) in try RandomName.random() }
        let aside = directory.segment(SegmentCompaction.asidePrefix + random.hex + ".tmp")
        do {
            let file = try posix("Making the segment", aside.path) { () throws(Errno) in
                try OpenFile(aside, O_RDWR | O_CREAT | O_EXCL, mode: system.mode)
            }
            // The lock shows other processes that this one is alive, so that they do not remove the file.
            try? System.lockExclusively(file.descriptor)
            let size = try write(inputs, id, to: file, aside.path)
            try posix("Syncing the segment", aside.path) { () throws(Errno) in try system.sync(file) }
            try posix("Naming the segment", place.path) { () throws(Errno) in try system.rename(aside, place) }
            try directory.syncDirectory(directory.segmentsFolder, system)
            return size
        } catch {
            try? system.unlink(aside)
            throw error
        }
    }

    static let asidePrefix = ".fold-"

    /// Thrown if an input disappeared or became shorter after it was examined: another process compacted and removed it, or a syncing
    /// program is replacing it. Nothing was changed before all inputs are copied.
    struct Vanished: Error {}

    private func write(_ inputs: [CompactionInput], _ id: RandomName, to file: OpenFile, _ path: String) throws -> UInt64 {
        let memory = try Memory.allocate(256 << 10, "Compacting \(inputs.count) segments into one")
        defer { Memory.release(memory) }
        var output = BufferedOutput(file: file, system: system, buffer: memory, filled: 0, offset: 0)
        let doing = "Writing the segment"
        let list = CompactionSource.encode(SegmentCompaction.sources(of: inputs))
        guard list.count <= FrameFormat.maxSourcesSize else {
            throw StoreError(
                .tooLarge,
                "Compacting \(inputs.count) segments into one failed: too many were compacted into them before. "
                    + "They stay as they are, which costs time at opening only.",
                path: path)
        }
        var head = [UInt8](repeating: 0, count: FrameFormat.segmentHeaderSize + FrameFormat.frameHeaderSize)
        head.withUnsafeMutableBytes { b in
            FrameFormat.storeSegmentHeader(in: b, id: id, created: inputs.first?.created ?? 0, writer: .unknown)
            FrameFormat.storeFrameHeader(
                in: b, at: FrameFormat.segmentHeaderSize, kind: .sources, id: id, offset: UInt64(FrameFormat.segmentHeaderSize),
                bodySize: UInt64(list.count),
                tableChecksum: list.withUnsafeBytes { Bytes.crc32c($0) })
        }
        try posix(doing, path) { () throws(Errno) in
            try head.borrowed { (b) throws(Errno) in try output.put(b) }
            try list.borrowed { (b) throws(Errno) in try output.put(b) }
        }
        var end = UInt64(head.count + list.count), frames: UInt64 = 1
        for input in inputs {
            let source = try posix("Opening the segment", input.path) { () throws(Errno) -> OpenFile? in
                do throws(Errno) { return try OpenFile(input.place, O_RDONLY) } catch {
                    if error.code == ENOENT { return nil }; throw error
                }
            }
            guard let source else { throw Vanished() }
            buffer.forget()
            try forEachFrame(of: source, input.path, input.id, input.from, input.size) { header, body in
                var frame = [UInt8](repeating: 0, count: FrameFormat.frameHeaderSize)
                frame.withUnsafeMutableBytes {
                    FrameFormat.storeFrameHeader(
                        in: $0, at: 0, kind: .batch, id: id, offset: end, bodySize: header.bodySize, tableChecksum: header.tableChecksum)
                }
                try posix(doing, path) { () throws(Errno) in try frame.borrowed { (b) throws(Errno) in try output.put(b) } }
                try forEachPiece(of: source, input.path, body, header.bodySize, limit: input.length) { piece, _ in
                    try posix(doing, path) { () throws(Errno) in try output.put(piece) }
                }
                end += UInt64(FrameFormat.frameHeaderSize) + header.bodySize
                frames += 1
            }
        }
        var seal = [UInt8](repeating: 0, count: FrameFormat.sealSize)
        seal.withUnsafeMutableBytes {
            FrameFormat.storeSeal(in: $0, id: id, offset: end, frames: frames, records: inputs.reduce(0) { $0 + $1.records })
        }
        try posix(doing, path) { () throws(Errno) in
            try seal.borrowed { (b) throws(Errno) in try output.put(b) }
            try output.flush()
        }
        return end + UInt64(seal.count)
    }

    // MARK: Comparing

    /// Returns whether the compacted segment holds the bytes of the old one that its list claims.
    func holds(
        _ source: CompactionSource, at start: UInt64, in compacted: OpenFile, _ compactedPath: String, _ id: RandomName, _ old: OpenFile,
        _ oldPath: String
    ) throws -> Bool {
        let other = ScanBuffer()
        buffer.forget()
        let shift = start &- source.from
        do {
            try forEachFrame(of: old, oldPath, source.id, source.from, source.size) { header, body in
                let place = body &- UInt64(FrameFormat.frameHeaderSize) &+ shift
                let limit = start + source.size
                guard
                    let copy = try posix(
                        "Reading the segment", compactedPath,
                        { () throws(Errno) in try other.bytes(compacted.descriptor, place, FrameFormat.frameHeaderSize, size: limit) }),
                    let there = FrameFormat.frameHeader(copy, id: id, offset: place), there.kind == FrameFormat.Kind.batch.rawValue,
                    there.bodySize == header.bodySize, there.tableChecksum == header.tableChecksum
                else { throw Differs() }
                try forEachPiece(of: old, oldPath, body, header.bodySize, limit: source.length) { piece, offset in
                    let at = place + UInt64(FrameFormat.frameHeaderSize) + offset
                    guard
                        let same = try posix(
                            "Reading the segment", compactedPath,
                            { () throws(Errno) in try other.bytes(compacted.descriptor, at, piece.count, size: limit) }),
                        let a = same.baseAddress, let b = piece.baseAddress, memcmp(a, b, piece.count) == 0
                    else { throw Differs() }
                }
            }
            return true
        } catch is Differs { return false } catch is Vanished { return false }
    }

    private struct Differs: Error {}

    /// Calls with each frame of a range that consists of whole frames with records, and where its body begins.
    private func forEachFrame(
        of file: OpenFile, _ path: String, _ id: RandomName, _ from: UInt64, _ size: UInt64,
        _ body: (FrameFormat.FrameHeader, UInt64) throws -> Void
    ) throws {
        let headerSize = UInt64(FrameFormat.frameHeaderSize)
        var at = from
        let end = from + size
        while at < end {
            let bytes = try posix("Reading the segment", path) { () throws(Errno) in
                try buffer.bytes(file.descriptor, at, FrameFormat.frameHeaderSize, size: end)
            }
            guard let bytes, let header = FrameFormat.frameHeader(bytes, id: id, offset: at),
                header.kind == FrameFormat.Kind.batch.rawValue,
                header.bodySize <= end - at - headerSize
            else { throw Vanished() }
            try body(header, at + headerSize)
            at += headerSize + header.bodySize
        }
    }

    private func forEachPiece(
        of file: OpenFile, _ path: String, _ from: UInt64, _ size: UInt64, limit: UInt64,
        _ body: (UnsafeRawBufferPointer, UInt64) throws -> Void
    ) throws {
        var done: UInt64 = 0
        while done < size {
            try check()
            let count = Int(min(size - done, 256 << 10))
            let piece = try posix("Reading the segment", path) { () throws(Errno) in
                try buffer.bytes(file.descriptor, from + done, count, size: limit)
            }
            guard let piece else { throw Vanished() }
            try body(piece, done)
            done += UInt64(count)
        }
    }
}

extension ScanBuffer {
    /// Returns `count` bytes at `offset`, valid until the next call; nil if `size` or the file ends before.
    func bytes(_ fd: Int32, _ offset: UInt64, _ count: Int, size: UInt64) throws(Errno) -> UnsafeRawBufferPointer? {
        if let hit = hit(offset, count) { return hit }
        return try fill(fd, offset, count, size: size)
    }
}
