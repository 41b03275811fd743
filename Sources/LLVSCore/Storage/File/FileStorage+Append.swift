extension FileStorage {
    /// Batches up to this size are written in one call.
    static let scratchSize = 256 << 10

    package func append(_ records: [RecordPieces], ifOrdersAre stamp: UInt64) throws -> [RecordPlace] {
        // An erasure holds this lock exclusively (`RecordsHold`) from before it looks for records, and after its order is stored. This is
        // no such hold, since it costs two system calls for each save.
        let file = try sharedRecordsLock ?? openRecordsLock()
        sharedRecordsLock = file
        if let file {
            do throws(Errno) { try System.lockShared(file.descriptor) } catch { if error.code == EWOULDBLOCK { throw OrdersChanged() } }
        }
        defer { if let file { try? System.unlock(file.descriptor) } }
        guard ordersStamp() == stamp else { throw OrdersChanged() }
        return try append(records)
    }

    package func append(_ records: [RecordPieces]) throws -> [RecordPlace] {
        guard !records.isEmpty else { return [] }
        if isReadOnly { throw StorageRange.readOnly(description) }
        let frameSize = try SegmentWriter.frameSize(records, of: description)
        appending.lock()
        defer { appending.unlock() }
        if let writer = state.withLock({ self.writer }) {
            switch writer.state {
            case .usual: break
            case .gone: try keepOwnSegment(appendingHeld: true)
            case .cutShort: leave(writer)
            }
        }
        let (writer, segment, durable) = try writer(for: frameSize)
        let start = writer.end
        do {
            try expectDescriptor()
            let places = try writer.append(
                records, frameSize: frameSize, segment: segment.index, isSynced: durable >= start, scratch: scratch)
            state.lock()
            segment.position = writer.end
            segment.lastFrame = writer.lastFrame
            counters.bytesWritten &+= writer.end &- start
            state.unlock()
            return places
        } catch {
            // The host closed the descriptor, which released its locks. So no more is appended until the store is opened again.
            if (error as? StoreError)?.systemCode == Errno.lost.code { throw error }
            // Keep the segment: the next save may be smaller, or find more free space, and a new segment would need more space than this
            // one.
            if (error as? StoreError)?.code == .noSpace, writer.isReusable { throw error }
            abandon(writer, segment)
            if writer.end == 0, (error as? StoreError)?.code != .unknownOutcome {
                // No frame in it was ever complete. Remove it, to free its bytes on a full disk.
                try? writer.place.unlink()
            }
            throw error
        }
    }

    /// Checks that a descriptor is free. The sync that follows opens directories and segments of other processes, one at a time. Without a
    /// free descriptor, nothing should be written.
    private func expectDescriptor() throws {
        guard options.durability == .full, state.withLock({ durability.segmentsDirectory || !durability.foreign.isEmpty }) else { return }
        do throws(Errno) { _ = try directory.segmentsFolder.readable() } catch {
            guard [EMFILE, ENFILE].contains(error.code) else { return }
            throw StoreError.posix(error, doing: "Adding versions to", path: directory.path)
        }
    }

    /// Returns the segment to append to, and up to where it is durable. Creates a new one if there is none, or the current one is full.
    /// Precondition: `appending` is held.
    func writer(for frameSize: Int) throws -> (SegmentWriter, Segment, durable: UInt64) {
        state.lock()
        if closed { state.unlock(); throw StorageRange.closed(description) }
        if let writer, let segment = durability.ownSegment, writer.end == 0 || writer.end &+ UInt64(frameSize) <= options.segmentLimit {
            let durable = segment.durable
            state.unlock()
            return (writer, segment, durable)
        }
        let full = writer, fullSegment = durability.ownSegment
        state.unlock()
        if let full, let fullSegment { finish(full, fullSegment) }
        if scratch.count == 0 { scratch = try Memory.allocate(FileStorage.scratchSize, "Adding versions to \(description)") }
        let new = try makeWriter()
        let segment = try state.withLock {
            let segment = try segmentLocked(named: new.id.hex + ".seg")
            segment.id = new.id
            install(new.file, for: segment)
            writer = new
            durability.ownSegment = segment
            durability.segmentsDirectory = true
            return segment
        }
        return (new, segment, 0)
    }

    private func makeWriter() throws -> SegmentWriter {
        try checkPresence("Adding versions to")
        do {
            return try SegmentWriter(directory.segmentsFolder, makesRoom: options.durability == .full, system: options.system)
        } catch let error as StoreError where error.code == .notFound {
            // Syncing programs and version control remove empty directories.
            try directory.make(directory.segmentsFolder, options.system)
            return try SegmentWriter(directory.segmentsFolder, makesRoom: options.durability == .full, system: options.system)
        }
    }

    /// Seals a full segment. Syncs its bytes first: the seal says that they need no checking.
    func finish(_ full: SegmentWriter, _ segment: Segment) {
        do {
            try syncSegment(full.file, full.place)
            countSync()
            state.withLock { segment.durable = segment.position }
            try full.seal()
            state.withLock { segment.complete = true }
            retire()
        } catch {
            Log.write(
                .warning,
                "Sealing the segment \(full.path) failed: \(error). It stays unsealed, and what may not be on the disk is "
                    + "rewritten."
            )
            markUnsynced(full, segment)
        }
    }

    /// Stops appending to a segment after a failed write. Its content is still to be synced. Precondition: `appending` is held.
    func abandon(_ writer: SegmentWriter, _ segment: Segment) {
        state.withLock {
            if segment.durable < segment.position {
                durability.retired.append(DurabilityState.Own(file: writer.file, id: writer.id, path: writer.path, segment: segment))
            }
        }
        retire()
    }

    /// Stops appending to a segment that was truncated by another program. The rest of it stays, and new records go to a new segment.
    /// Precondition: `appending` is held.
    private func leave(_ writer: SegmentWriter) {
        guard let segment = state.withLock({ self.writer === writer ? durability.ownSegment : nil }) else { return }
        Log.write(
            .error,
            "The segment \(writer.path) was cut short while it was being written. Versions that were in it are lost from this store: "
                + "verify the store, "
                + "and retrieve them from a store that has them.")
        abandon(writer, segment)
    }

    /// Marks a segment for rewriting: a sync failed, or the file is no longer the one in the directory. Whatever is not known to be
    /// durable will be written again. (The system may have dropped the bytes, and another sync would succeed all the same.) Precondition:
    /// `appending` is held.
    func markUnsynced(_ writer: SegmentWriter, _ segment: Segment) {
        state.withLock {
            if segment.durable < segment.position {
                durability.unsynced.append(DurabilityState.Own(file: writer.file, id: writer.id, path: writer.path, segment: segment))
            }
        }
        retire()
    }

    private func retire() {
        state.withLock {
            writer = nil; durability.ownSegment = nil
        }
    }
}
