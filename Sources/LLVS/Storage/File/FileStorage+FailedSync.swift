/// What becomes of bytes whose sync failed.
///
/// The system may have dropped them while it takes them for written, so that a later sync would say that all is well
/// (Linux marks the pages clean). But it has them still in memory, or they are on the medium after all: so they are read
/// back, checked, and written elsewhere. Who meets a record twice takes it once.
extension FileStorage {
    /// Writes anew, in a segment that works, the frames whose sync failed. Under `appending`.
    func rewriteUnsynced() throws {
        while let own = state.withLock({ durability.unsynced.first }) {
            let (from, end) = state.withLock { (max(own.segment.durable, UInt64(FrameFormat.segmentHeaderSize)), own.segment.position) }
            let unreadable = StoreError(
                .io,
                "Versions appended to \(own.path) cannot be read back to be written anew. The medium fails: copy the store to another.",
                path: own.path)
            // What was damaged before the sync failed is not what that lost: it stays where it is. So is what does not match in
            // a segment that was sealed, since whoever seals one has synced it.
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
                // The list of what somebody else compacted belongs to his segment.
                guard header.kind == FrameFormat.Kind.batch.rawValue else { continue }
                let (writer, segment, _) = try writer(for: 0)
                do throws(Errno) {
                    _ = try writer.copyFrame(from: own.file, sourceID: own.id, at: frame.lowerBound, scratch: scratch)
                } catch {
                    abandon(writer, segment)
                    if writer.end == 0 { try? writer.place.unlink() }
                    throw StoreError.posix(error, doing: "Writing versions anew to the segment", path: writer.path)
                }
                state.withLock {
                    segment.position = writer.end
                    segment.lastFrame = writer.lastFrame
                }
            }
            state.withLock {
                durability.unsynced.removeAll { $0.segment === own.segment }
                // Another's: what we wrote of it need not be synced there any more.
                if durability.foreign.contains(Int(own.segment.index)) { own.segment.durable = max(own.segment.durable, end) }
                if own.segment.durable >= own.segment.position { durability.foreign.remove(Int(own.segment.index)) }
            }
        }
    }

    /// The frame's header; it was checked, so its size is one that fits.
    private func frameHeader(_ own: DurabilityState.Own, _ at: UInt64) throws(Errno) -> FrameFormat.FrameHeader? {
        var bytes = [UInt8](repeating: 0, count: FrameFormat.frameHeaderSize)
        return try bytes.filled { (b) throws(Errno) in
            try System.pread(own.file.descriptor, b, at: at) == b.count
                ? FrameFormat.frameHeader(UnsafeRawBufferPointer(b), id: own.id, offset: at) : nil
        }
    }

    /// A sync of what others wrote failed: we write it ourselves, as far as it is not known to be durable.
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
    /// Blobs written longer ago than this are on the medium, whatever a sync says now: systems write back within minutes.
    private static let syncUncertainAge: Int64 = 86_400 * 1_000_000_000

    /// Writes anew what is in the directory, but for old blobs, when a sync of it failed.
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

    /// The same bytes in a file of the same name.
    private func rewrite(_ blob: DirectoryEntry, size: UInt64) throws {
        try posix("Writing anew", blob.path) { () throws(Errno) in
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
