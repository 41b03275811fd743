/// Rewrites bytes whose sync failed.
///
/// The system may have dropped them and still regard them as written, so a later sync would succeed (Linux marks the pages clean). But it
/// may have them in memory, or they may be on the medium after all. So they are read back, checked, and written elsewhere. Readers ignore
/// the second copy of a record.
extension FileStorage {
    /// Writes the frames whose sync failed to another segment. Precondition: `appending` is held.
    func rewriteUnsynced() throws {
        while let own = state.withLock({ durability.unsynced.first }) {
            let (from, end) = state.withLock { (max(own.segment.durable, UInt64(FrameFormat.segmentHeaderSize)), own.segment.position) }
            let unreadable = StoreError(
                .io,
                "Versions appended to \(own.path) cannot be read back to be rewritten. The medium fails: copy the store to another.",
                path: own.path)
            // Frames that were damaged before the sync failed were not lost by it: they stay where they are. So do frames in a sealed
            // segment that do not match, since its writer has synced it.
            let (isSealed, known) = state.withLock {
                (own.segment.complete, Set(damageList.compactMap { $0.file == own.path ? $0.offset : nil }))
            }
            var frames: [Range<UInt64>] = [], damaged: [UInt64] = []
            var check = SegmentScanner(
                file: own.file, path: own.path, id: own.id, from: from, size: end, sealed: isSealed, thorough: true,
                inspector: options.inspector, buffer: ScanBuffer())
            check.passed = { frames.append($0) }
            try check.run(
                found: { _, _, _, _ in },
                damage: { damage in
                    guard isSealed || known.contains(damage.offset) else { throw unreadable }
                    damaged.append(damage.offset)
                })
            guard isSealed || check.position == end else { throw unreadable }
            var left = damaged[...]
            for frame in frames {
                while let first = left.first, first < frame.lowerBound { left.removeFirst() }
                if let first = left.first, first < frame.upperBound { continue }
                let header = try posix("Reading the segment", own.path) { () throws(Errno) in try frameHeader(own, frame.lowerBound) }
                guard let header else { throw unreadable }
                // The list of another process's compaction belongs to its segment.
                guard header.kind == FrameFormat.Kind.batch.rawValue else { continue }
                let (writer, segment, _) = try writer(for: 0)
                do throws(Errno) {
                    _ = try writer.copyFrame(from: own.file, sourceID: own.id, at: frame.lowerBound, scratch: scratch)
                } catch {
                    abandon(writer, segment)
                    if writer.end == 0 { try? writer.place.unlink() }
                    throw StoreError.posix(error, doing: "Rewriting versions to the segment", path: writer.path)
                }
                state.withLock {
                    segment.position = writer.end
                    segment.lastFrame = writer.lastFrame
                }
            }
            state.withLock {
                durability.unsynced.removeAll { $0.segment === own.segment }
                // If the segment is another process's, its rewritten bytes no longer need a sync.
                if durability.foreign.contains(Int(own.segment.index)) { own.segment.durable = max(own.segment.durable, end) }
                if own.segment.durable >= own.segment.position { durability.foreign.remove(Int(own.segment.index)) }
            }
        }
    }

    /// Reads the header of a frame. The frame was checked, so its size is valid.
    private func frameHeader(_ own: DurabilityState.Own, _ at: UInt64) throws(Errno) -> FrameFormat.FrameHeader? {
        var bytes = [UInt8](repeating: 0, count: FrameFormat.frameHeaderSize)
        return try bytes.filled { (b) throws(Errno) in
            try System.pread(own.file.descriptor, b, at: at) == b.count
                ? FrameFormat.frameHeader(UnsafeRawBufferPointer(b), id: own.id, offset: at) : nil
        }
    }

    /// Marks segments of other processes whose sync failed: this process rewrites what is not known to be durable.
    func markForeignUnsynced(_ indices: [Int], haveBlobs: Bool) {
        if haveBlobs { blobs.isSyncUncertain = true }
        for index in indices {
            guard let name = state.withLock({ index < segments.count ? segments[index].name : nil }) else { continue }
            let place = directory.segment(name), path = place.path
            guard let file = try? OpenFile(place, O_RDONLY) else { continue }
            state.withLock {
                let segment = segments[index]
                guard let id = segment.id, segment.durable < segment.position,
                    !durability.unsynced.contains(where: { $0.segment === segment })
                else { return }
                durability.unsynced.append(DurabilityState.Own(file: file, id: id, path: path, segment: segment))
            }
        }
    }
}

extension BlobDirectory {
    /// Older blobs are on the medium, whatever a sync reports: systems write back within minutes.
    private static let syncUncertainAge: Int64 = 86_400 * 1_000_000_000

    /// Rewrites the blobs in the directory, except old ones, if a sync of it failed.
    func rewriteUncertain() throws {
        guard isSyncUncertain else { return }
        let since = System.now &- BlobDirectory.syncUncertainAge
        for name in (try? folder.names()) ?? [] where name.hasSuffix(".blob") {
            guard RandomName(hex: name.dropLast(5)) != nil, let status = try? folder.place(name).status(), status.isRegularFile,
                status.modified >= since
            else { continue }
            try rewrite(folder.place(name), size: status.size)
        }
        try store.syncDirectory(folder, system)
        isSyncUncertain = false
    }

    /// Writes the same bytes to a new file of the same name.
    private func rewrite(_ blob: DirectoryEntry, size: UInt64) throws {
        try posix("Rewriting", blob.path) { () throws(Errno) in
            let aside = try folder.place(".again-" + RandomName.random().hex + ".tmp")
            let source = try OpenFile(blob, O_RDONLY)
            let copy = try OpenFile(aside, O_WRONLY | O_CREAT | O_EXCL, mode: system.mode)
            do throws(Errno) {
                var buffer = [UInt8](repeating: 0, count: 256 << 10)
                var at: UInt64 = 0
                while at < size {
                    let count = try buffer.filled { (b) throws(Errno) in try System.pread(source.descriptor, b, at: at) }
                    if count == 0 { break }
                    try buffer.borrowed { (b) throws(Errno) in
                        try system.write(copy, UnsafeRawBufferPointer(rebasing: b[0..<count]), at: at)
                    }
                    at += UInt64(count)
                }
                try system.sync(copy)
                try system.rename(aside, blob)
            } catch {
                try? aside.unlink()
                throw error
            }
        }
    }
}
