/// The data that is not known to be durable. Guarded by the storage's `state`.
struct DurabilityState {
    /// A segment of this process that is no longer written, or a segment of another process up to where it was read.
    struct Own { let file: OpenFile; let id: RandomName; let path: String; let segment: Segment }

    /// The segment that the writer writes.
    var ownSegment: Segment?
    /// Segments to sync.
    var retired: [Own] = []
    /// Segments whose sync failed: to be rewritten from `durable` to `position`.
    var unsynced: [Own] = []
    /// Other processes' segments whose records `scan` reported.
    var foreign: Set<Int> = []
    /// Whether any process created a file in `segments/`.
    var segmentsDirectory = false
}

extension FileStorage {
    package func sync() throws {
        try state.withLock { try checkOpen() }
        if isReadOnly { return }
        // A call that waits for another's sync finds nothing left to do. Concurrent commits share one sync: `GroupCommit` in the store.
        try syncing.withLock { try makeDurable(foreign: true, appendingHeld: false) }
    }

    /// Syncs everything that is not known to be durable.
    /// - Parameter foreign: whether to sync also what other processes wrote.
    func makeDurable(foreign: Bool, appendingHeld: Bool, isClosing: Bool = false) throws {
        do {
            let (writer, isDurable) = state.withLock { () -> (SegmentWriter?, Bool) in
                guard let segment = durability.ownSegment else { return (nil, true) }
                return (self.writer, segment.durable >= segment.position)
            }
            // On closing, synced records are checked, too: the next process to open the store follows its path. If the whole store was
            // deleted, nothing is left to lose.
            if let writer, !isDurable || isClosing, writer.isGone, !isDurable || (try? checkPresence("Closing")) != nil {
                try keepOwnSegment(appendingHeld: appendingHeld)
            }
            if state.withLock({ !durability.unsynced.isEmpty }) {
                if !appendingHeld { appending.lock() }
                defer { if !appendingHeld { appending.unlock() } }
                try rewriteUnsynced()
            }
            try blobs.rewriteUncertain()
            // Sync blobs before the records that name them, and records of other processes before this process's versions that build on
            // them.
            for _ in 0..<(try blobs.sync()) { countSync() }
            if foreign { try syncForeign(appendingHeld: appendingHeld) }
            try syncRetired()
            try syncWriter(appendingHeld: appendingHeld)
            if state.withLock({
                let dirty = durability.segmentsDirectory; durability.segmentsDirectory = false; return dirty
            }) {
                do {
                    try directory.syncDirectory(directory.segmentsFolder, options.system)
                    countSync()
                } catch {
                    state.withLock { durability.segmentsDirectory = true }
                    throw error
                }
            }
        } catch let error as StoreError {
            throw StoreError(
                .unknownOutcome,
                "\(error.message) It is not known whether the last additions to \(description) are stored and would survive a power cut. "
                    + "Making the same version again under its id is harmless.",
                path: error.path ?? directory.path, systemCode: error.systemCode)
        }
    }

    /// Syncs a segment's file. If the host has closed the descriptor, opens the file again by its name: a sync covers the file, whichever
    /// process wrote it.
    func syncSegment(_ file: OpenFile, _ place: DirectoryEntry) throws(Errno) {
        if file.isOurs { return try options.system.fdatasync(file.descriptor) }
        let again = try OpenFile(place, O_RDONLY)
        guard again.identity == file.identity else { throw Errno.lost }
        try options.system.fdatasync(again.descriptor)
    }

    private func syncWriter(appendingHeld: Bool) throws {
        state.lock()
        guard let writer, let segment = durability.ownSegment, segment.durable < segment.position else { state.unlock(); return }
        let end = segment.position
        state.unlock()
        do throws(Errno) {
            try syncSegment(writer.file, writer.place)
            countSync()
            state.withLock { segment.durable = max(segment.durable, end) }
        } catch {
            markUnsynced(writer, segment, appendingHeld: appendingHeld)
            throw StoreError.posix(error, doing: "Syncing the segment", path: writer.path)
        }
    }

    private func markUnsynced(_ writer: SegmentWriter, _ segment: Segment, appendingHeld: Bool) {
        if !appendingHeld { appending.lock() }
        // Unless an append has abandoned it meanwhile.
        if state.withLock({ self.writer === writer }) { markUnsynced(writer, segment) } else { moveToUnsynced(segment) }
        if !appendingHeld { appending.unlock() }
    }

    /// Marks this process's segments: a failed sync of the whole file system may have failed on them.
    private func markOwnUnsynced(appendingHeld: Bool) {
        let (writer, segment, retired) = state.withLock { (self.writer, durability.ownSegment, durability.retired.map(\.segment)) }
        if let writer, let segment { markUnsynced(writer, segment, appendingHeld: appendingHeld) }
        for segment in retired { moveToUnsynced(segment) }
    }

    private func syncRetired() throws {
        while let own = state.withLock({ durability.retired.first }) {
            let end = state.withLock { own.segment.position }
            do throws(Errno) {
                try syncSegment(own.file, directory.segment(own.segment.name))
                countSync()
            } catch {
                moveToUnsynced(own.segment)
                throw StoreError.posix(error, doing: "Syncing the segment", path: own.path)
            }
            state.withLock {
                own.segment.durable = max(own.segment.durable, end)
                durability.retired.removeAll { $0.segment === own.segment }
            }
        }
    }

    private func moveToUnsynced(_ segment: Segment) {
        state.withLock {
            durability.unsynced += durability.retired.filter { $0.segment === segment }
            durability.retired.removeAll { $0.segment === segment }
        }
    }

    /// Syncs other processes' segments, and the blobs that they name.
    private func syncForeign(appendingHeld: Bool) throws {
        let pending = state.withLock {
            durability.foreign.filter { $0 < segments.count }.map { (index: $0, name: segments[$0].name, end: segments[$0].position) }
        }
        guard !pending.isEmpty else { return }
        let haveBlobs = (try? directory.blobsFolder.held()) != nil
        do { try syncForeign(pending, haveBlobs: haveBlobs) } catch {
            markForeignUnsynced(pending.map(\.index), haveBlobs: haveBlobs)
            markOwnUnsynced(appendingHeld: appendingHeld)
            throw error
        }
        state.withLock {
            for segment in pending where segment.index < segments.count {
                let known = segments[segment.index]
                known.durable = max(known.durable, segment.end)
                if known.durable >= known.position { durability.foreign.remove(segment.index) }
            }
        }
    }

    private func syncForeign(_ pending: [(index: Int, name: String, end: UInt64)], haveBlobs: Bool) throws {
        // Each sync flushes the disk, even if there is nothing to write. For many files, one call for the whole file system is faster.
        var wholesale = false
        if haveBlobs || pending.count > 4 {
            wholesale = try posix("Syncing", directory.path) { () throws(Errno) in
                // Only this scope keeps the descriptor open.
                let root = try directory.root.readable()
                defer { withExtendedLifetime(root) {} }
                return try System.syncfs(root.descriptor)
            }
            countSync()
        }
        if !wholesale {
            for segment in pending { try syncFile(directory.segment(segment.name)) }
            if haveBlobs {
                for name in (try? directory.blobsFolder.names()) ?? [] where name.hasSuffix(".blob") {
                    try syncFile(directory.blobsFolder.place(name))
                }
                try directory.syncDirectory(directory.blobsFolder, options.system)
            }
        }
    }

    private func syncFile(_ place: DirectoryEntry) throws {
        do throws(Errno) {
            let file = try OpenFile(place, O_RDONLY)
            try options.system.fdatasync(file.descriptor)
            countSync()
        } catch {
            // The file is gone: another program moved it.
            if error.code != ENOENT { throw StoreError.posix(error, doing: "Syncing", path: place.path) }
        }
    }
}
