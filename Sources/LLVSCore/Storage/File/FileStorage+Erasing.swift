import CLLVSShims

/// Replaces records so that the old bytes are gone from the medium: docs/format.md, "Making changes hollow".
///
/// If a segment has a record to replace, all its records are appended to the segment of this handle, and synced. Then the old file is
/// renamed, so that no reader finds it, overwritten, and removed. Each step may be repeated: after a crash the same orders are followed
/// again.
extension FileStorage {
    package var canErase: Bool { true }
    package func openRecordsLock() throws -> OpenFile? {
        try posix("Opening", directory.segments) { () throws(Errno) in try directory.segmentsFolder.readable() }
    }
    /// The prefix of the names of files that are being removed.
    static let erasePrefix = ".erase-"
    /// Records are appended in batches of about this many bytes.
    private static let eraseBatch = 1 << 20
    /// How often the lock for changing the orders is tried, with 2 ms between.
    private static let eraseTries = 2_500

    /// A segment that has bytes to erase.
    private struct Erased {
        let name: String
        let file: OpenFile
        let size: UInt64
        let segment: Segment
        var places: [(place: RecordPlace, isConcerned: Bool)]
        /// Why the segment must stay; nil if it can be removed.
        var waits: String?
    }

    package func erase(_ erasure: any StorageErasure, _ control: PacedControl) throws -> [String] {
        try checkWritable()
        try checkPresence("Erasing values in")
        // A caller of `append` must not add to a segment that is about to be removed.
        try leaveOwnSegment()
        var namedBlobs: Set<BlobID> = []
        var found = try erasedSegments(erasure, &namedBlobs, control)
        var freed: [BlobID] = [], moved: [RecordPlace: RecordPlace] = [:]
        try appendAnew(&found, erasure, &freed, &moved)
        try sync()
        try erasure.moved(moved)
        // Records that name the blobs are removed first: a version whose blob is missing would wait for it.
        let gone = found.filter { $0.waits == nil }
        for erased in gone { try setAside(erased) }
        // This includes files that an earlier attempt has renamed.
        try directory.syncDirectory(directory.segmentsFolder, options.system)
        try eraseBlobs(freed, erasure, namedBlobs)
        for erased in gone {
            let aside = directory.segment(FileStorage.erasePrefix + erased.name)
            try FileErasing.remove(erased.file, erased.size, aside, options.system, overwriting: erasure.overwrites)
            if erasure.overwrites { countSync() }
        }
        try removeErased()
        return found.compactMap(\.waits)
    }

    /// Returns false if another handle keeps the lock. On a medium without locks it returns true.
    private func waitForLock(_ file: OpenFile) -> Bool {
        var tries = 0
        while true {
            do throws(Errno) { try System.lockExclusively(file.descriptor); return true } catch {
                guard error.code == EWOULDBLOCK else { return true }
                tries += 1
                if tries > FileStorage.eraseTries { return false }
                usleep(2_000)
            }
        }
    }

    /// Begins another segment with the next append, since the bytes in this one may have to be erased.
    private func leaveOwnSegment() throws {
        appending.lock()
        defer { appending.unlock() }
        try leaveOwnSegmentLocked()
    }
    /// Precondition: `appending` is held.
    private func leaveOwnSegmentLocked() throws {
        guard
            let (writer, segment) = state.withLock({ () -> (SegmentWriter, Segment)? in
                guard let writer = self.writer, let segment = durability.ownSegment, writer.end > 0 else { return nil }
                return (writer, segment)
            })
        else { return }
        if writer.state == .usual { finish(writer, segment) } else { abandon(writer, segment) }
        // The lock of the segment is released with its last descriptor.
        state.withLock { if segment.pinned == nil { forget(segment) } }
    }

    /// Reads all segments for records to replace.
    private func erasedSegments(_ erasure: any StorageErasure, _ blobs: inout Set<BlobID>, _ control: PacedControl) throws -> [Erased] {
        var found: [Erased] = []
        let buffer = ScanBuffer()
        for name in try segmentNames(control).sorted() {
            let place = directory.segment(name)
            guard let file = try? OpenFile(place, O_RDWR) else { continue }
            // A new segment gets its header with its first frame. Its writer may be about to lock it.
            guard let size = try? System.status(file.descriptor).size, size >= UInt64(FrameFormat.segmentHeaderSize) else { continue }
            // Before anything is read: otherwise its writer could add records, and leave it, after it was read to its end.
            let isUnlocked = isUnlocked(file)
            guard let status = try? System.status(file.descriptor), status.isRegularFile,
                let (id, start, problem) = try SegmentFile.begin(file, place.path, name: name, size: status.size, damage: { _ in })
            else { continue }
            let sealed = try posix("Reading the segment", place.path) { () throws(Errno) in
                try SegmentFile.isSealed(file, id, status.size)
            }
            let segment = try state.withLock { try segmentLocked(named: name) }
            var scanner = SegmentScanner(
                file: file, path: place.path, id: id, from: start, size: status.size, sealed: sealed, thorough: false,
                inspector: options.inspector, buffer: buffer)
            var erased = Erased(name: name, file: file, size: status.size, segment: segment, places: [])
            var isConcerned = false, isDamaged = problem != nil, own: Set<BlobID> = []
            try scanner.run(
                found: { offset, length, prefix, damaged in
                    let place = RecordPlace(segment: segment.index, offset: offset, length: length)
                    let concerns = try erasure.concerns(ScannedRecord(place: place, prefix: prefix, isDamaged: damaged))
                    isConcerned = isConcerned || concerns
                    erased.places.append((place, concerns))
                    guard case .whole(let header) = RecordHeader.read(prefix, recordLength: length) else { return }
                    if concerns { own.formUnion(header.blobs) } else { blobs.formUnion(header.blobs) }
                },
                damage: { _ in isDamaged = true })
            let isFree = sealed || isUnlocked
            // Bytes that a killed writer left after the last frame may be a part of an erased value.
            if !isConcerned, erasure.overwrites, !scanner.finished, isFree {
                isConcerned = try hasTail(file, place.path, scanner.position, status.size)
            }
            guard isConcerned else { continue }
            if state.withLock({ segment.pinned != nil }) {
                erased.waits = "The segment \(place.path) was replaced by another program while this handle wrote it. Close the store."
            } else if !isFree {
                erased.waits = "Another handle of this store is writing \(place.path). It must look for new versions, or be closed."
            } else if isDamaged || scanner.unreadableFrom != nil {
                erased.waits = "The segment \(place.path) is damaged, and may have versions that can be saved. Repair or salvage the store."
            }
            // As long as the old record exists, the blobs that it names must exist, too.
            if erased.waits != nil { blobs.formUnion(own) }
            found.append(erased)
        }
        return found
    }

    private func isUnlocked(_ file: OpenFile) -> Bool {
        do throws(Errno) {
            try System.lockExclusively(file.descriptor)
            return true
        } catch { return error.code != EWOULDBLOCK }
    }

    /// Returns whether a file has bytes other than zeros from an offset on.
    private func hasTail(_ file: OpenFile, _ path: String, _ from: UInt64, _ size: UInt64) throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 64 << 10), at = from
        while at < size {
            let count = try posix("Reading the segment", path) { () throws(Errno) in
                try buffer.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: at) }
            }
            if count == 0 { return false }
            if buffer[..<count].contains(where: { $0 != 0 }) { return true }
            at += UInt64(count)
        }
        return false
    }

    /// Appends the records of the segments, the new ones instead of those that are to be replaced. Of segments that stay for now, only
    /// the new ones.
    private func appendAnew(
        _ found: inout [Erased], _ erasure: any StorageErasure, _ freed: inout [BlobID], _ moved: inout [RecordPlace: RecordPlace]
    ) throws {
        var batch: [(bytes: [UInt8], digest: [UInt8], from: [RecordPlace])] = [], size = 0
        var inBatch: [[UInt8]: Int] = [:], appended: [[UInt8]: RecordPlace] = [:]
        func flush() throws {
            guard !batch.isEmpty else { return }
            var pieces: [RecordPieces] = []
            for record in batch {
                // The bytes are borrowed from an array that outlives the call.
                pieces.append(
                    RecordPieces(length: record.bytes.count, checksum: record.bytes.withUnsafeBytes { Bytes.crc32c($0) }) { sink in
                        try record.bytes.withUnsafeBytes(sink)
                    })
            }
            for (record, place) in zip(batch, try append(pieces)) {
                appended[record.digest] = place
                for from in record.from { moved[from] = place }
            }
            (batch, inBatch, size) = ([], [:], 0)
        }
        for erased in found {
            for (place, isConcerned) in erased.places where isConcerned || erased.waits == nil {
                let bytes: [UInt8]
                if isConcerned {
                    // Other handles find the new record after the old one, whatever they have read before.
                    guard let new = try erasure.rewritten(place, isLast: erased.waits == nil) else { continue }
                    bytes = new.bytes
                    freed += new.freed
                } else {
                    bytes = try self.bytes(of: place, in: erased)
                }
                let digest = bytes.withUnsafeBytes { SHA256.digest($0) }
                // Copies and compacted segments have a record more than once.
                if let known = appended[digest] { moved[place] = known; continue }
                if let known = inBatch[digest] { batch[known].from.append(place); continue }
                inBatch[digest] = batch.count
                batch.append((bytes, digest, [place]))
                size += bytes.count
                if size >= FileStorage.eraseBatch { try flush() }
            }
        }
        try flush()
    }

    private func bytes(of place: RecordPlace, in erased: Erased) throws -> [UInt8] {
        let size = Int(clamping: place.length)
        try Memory.expect(2 * size, "Moving a record")
        var bytes = [UInt8](repeating: 0, count: size)
        let count = try posix("Reading the segment", directory.segments + "/" + erased.name) { () throws(Errno) in
            try bytes.filled { (b) throws(Errno) in try System.pread(erased.file.descriptor, b, at: place.offset) }
        }
        guard count == size else {
            throw StoreError(.io, "The segment \(erased.name) became shorter while it was read. Try again.", path: directory.segments)
        }
        return bytes
    }

    /// Renames a segment all of whose records are durable in another segment. From then on no reader finds it.
    private func setAside(_ erased: Erased) throws {
        state.withLock {
            let segment = erased.segment
            forget(segment)
            segment.isErased = true
            segment.gone = true
            segment.complete = true
            segment.relocations = []
            damageList.removeAll { $0.file == directory.segments + "/" + erased.name && damageSet.remove($0) != nil }
            passedOver.remove(erased.name)
        }
        let place = directory.segment(erased.name), aside = directory.segment(FileStorage.erasePrefix + erased.name)
        try posix("Renaming the segment", place.path) { () throws(Errno) in try options.system.rename(place, aside) }
    }

    /// Removes files that killed handles left while they erased or compacted segments. The caller holds the lock on the directory.
    private func removeErased() throws {
        for name in (try? directory.segmentsFolder.names()) ?? [] {
            let place = directory.segment(name)
            guard name.hasPrefix(FileStorage.erasePrefix) || name.hasPrefix(SegmentCompaction.asidePrefix),
                let file = try? OpenFile(place, O_RDWR), let status = try? System.status(file.descriptor), status.isRegularFile,
                isUnlocked(file)
            else { continue }
            try FileErasing.overwrite(file, status.size, place, options.system)
        }
        try directory.syncDirectory(directory.segmentsFolder, options.system)
        countSync()
    }

    package func hasErasedFiles() -> Bool {
        [directory.segmentsFolder, blobs.folder].contains { folder in
            ((try? folder.names()) ?? []).contains { $0.hasPrefix(FileStorage.erasePrefix) }
        }
    }

    package func isGone(_ place: RecordPlace) -> Bool {
        var places = [place], seen: Set<UInt32> = []
        while let next = places.popLast() {
            guard seen.insert(next.segment).inserted else { continue }
            let name = state.withLock { () -> String? in
                guard !closed, Int(next.segment) < segments.count else { return nil }
                let segment = segments[Int(next.segment)]
                guard segment !== durability.ownSegment, segment.pinned == nil else { return nil }
                // It may have been compacted before.
                places += relocations(of: next)
                return segment.name
            }
            guard let name else { return false }
            do throws(Errno) {
                _ = try directory.segment(name).status()
                return false
            } catch { if error.code != ENOENT { return false } }
        }
        return true
    }
    package func noteUsed(_ used: Set<UInt32>) {
        let unused = state.withLock {
            segments.filter {
                $0.position > 0 && !$0.isErased && !$0.replaced && $0.pinned == nil && $0 !== durability.ownSegment
                    && !used.contains($0.index)
            }.map { RecordPlace(segment: $0.index, offset: 0, length: 0) }
        }
        for place in unused where isGone(place) { noteErased(place) }
    }
    package func forgetScanned() {
        state.withLock {
            for segment in segments
            where segment !== durability.ownSegment && segment.pinned == nil && !segment.isErased && !segment.replaced && !segment.gone {
                (segment.position, segment.lastFrame, segment.complete, segment.look) = (0, 0, false, nil)
            }
        }
    }
    package func noteErased(_ place: RecordPlace) {
        state.withLock {
            guard Int(place.segment) < segments.count else { return }
            let segment = segments[Int(place.segment)]
            segment.isErased = true
            segment.gone = true
            segment.complete = true
            forget(segment)
        }
    }

    // MARK: Blobs

    private func eraseBlobs(_ freed: [BlobID], _ erasure: any StorageErasure, _ named: Set<BlobID>) throws {
        var gone = Set(freed).subtracting(named)
        // Killed writers leave files that no record names.
        let names = (try? blobs.folder.names()) ?? []
        for name in names where name.hasSuffix(".blob") {
            guard let random = RandomName(hex: name.dropLast(5)) else { continue }
            let id = BlobID(high: random.high, low: random.low)
            guard !named.contains(id), let digest = blobs.tells(id), erasure.concerns(blobWithDigest: digest) else { continue }
            // A version that names it may be about to be stored. An erasure removes what it is told all the same.
            if erasure.overwrites || isLeftover(blobs.folder.place(name)) { gone.insert(id) }
        }
        // The files are renamed first, so that the next erasure recognizes them after a crash.
        var places: [DirectoryEntry] = []
        for id in gone {
            blobs.forgetOpen(id)
            let place = blobs.place(of: RandomName(id)), aside = blobs.folder.place(FileStorage.erasePrefix + RandomName(id).hex)
            do throws(Errno) {
                try options.system.rename(place, aside)
                places.append(aside)
            } catch { if error.code != ENOENT { throw StoreError.posix(error, doing: "Renaming the value", path: place.path) } }
        }
        for name in names where erasure.overwrites && name.hasSuffix(".new") || name.hasPrefix(FileStorage.erasePrefix) {
            places.append(blobs.folder.place(name))
        }
        guard !places.isEmpty else { return }
        try directory.syncDirectory(blobs.folder, options.system)
        for place in places {
            guard let file = try? OpenFile(place, O_RDWR), let status = try? System.status(file.descriptor), status.isRegularFile,
                isUnlocked(file)
            else { continue }
            try FileErasing.remove(file, status.size, place, options.system, overwriting: erasure.overwrites)
        }
        try directory.syncDirectory(blobs.folder, options.system)
        countSync()
    }

    /// Whether no process is storing the file any more.
    private func isLeftover(_ place: DirectoryEntry) -> Bool {
        guard let status = try? place.status() else { return false }
        return System.now &- status.modified > 3_600 * 1_000_000_000
    }

    // MARK: Caches

    package func cacheNames() throws -> [String] {
        let all = (try? caches.folder.names()) ?? []
        return all.filter { $0.hasSuffix(".cache") }.map { String($0.dropLast(6)) } + caches.namesInMemory
    }
    package func cacheErase(_ name: String) throws {
        let place = caches.file(name)
        if caches.isWritable, let file = try? OpenFile(place, O_RDWR), let status = try? System.status(file.descriptor),
            status.isRegularFile
        {
            try FileErasing.overwrite(file, status.size, place, options.system)
        }
        try cacheDelete(name)
    }
    package func hasCache(_ name: String) -> Bool {
        guard caches.keptInMemory(name) == nil else { return true }
        do throws(Errno) { _ = try caches.file(name).status() } catch { return false }
        return true
    }

    // MARK: Orders

    package func orders() throws -> [[UInt8]] {
        try state.withLock { try checkOpen() }
        if let found = try ordersFile.get(ErasureNote.name) { return [found] }
        // A file that could not be opened has orders all the same.
        let place = ordersFile.file(ErasureNote.name)
        do throws(Errno) { _ = try OpenFile(place, O_RDONLY) } catch {
            if error.code == ENOENT { return [] }
            throw StoreError.posix(error, doing: "Reading the orders to erase", path: place.path)
        }
        return try ordersFile.get(ErasureNote.name).map { [$0] } ?? []
    }
    package func changeOrders(_ change: ([[UInt8]]) throws -> [UInt8]) throws {
        try state.withLock { try checkOpen() }
        try checkPresence("Writing the orders to erase of")
        let lock = try posix("Opening", path) { () throws(Errno) in try directory.root.readable() }
        guard waitForLock(lock) else {
            throw StoreError(
                .busy, "Changing the orders to erase values in \(description) failed: another handle does the same. Try again.")
        }
        defer { try? System.unlock(lock.descriptor) }
        try ordersFile.put(ErasureNote.name, change(orders()), durably: true)
        try directory.syncDirectory(directory.root, options.system)
    }
    package func touchOrders() { ordersFile.file(ErasureNote.name).touch() }
    package func ordersStamp() -> UInt64 {
        (try? ordersFile.file(ErasureNote.name).status())?.stamp ?? 0
    }
}

/// Removes files so that their bytes are gone.
enum FileErasing {
    /// Removes a file.
    static func remove(_ file: OpenFile, _ size: UInt64, _ place: DirectoryEntry, _ system: FileSystem, overwriting: Bool) throws {
        if overwriting { return try overwrite(file, size, place, system) }
        try posix("Removing", place.path) { () throws(Errno) in
            do throws(Errno) { try system.unlink(place) } catch { if error.code != ENOENT { throw error } }
        }
    }
    /// Overwrites a file with zeros, syncs it, and removes it.
    static func overwrite(_ file: OpenFile, _ size: UInt64, _ place: DirectoryEntry, _ system: FileSystem) throws {
        let zeros = [UInt8](repeating: 0, count: 256 << 10)
        try posix("Erasing", place.path) { () throws(Errno) in
            var at: UInt64 = 0
            while at < size {
                let count = Int(min(size - at, UInt64(zeros.count)))
                try zeros.borrowed { (b) throws(Errno) in
                    try system.write(file, UnsafeRawBufferPointer(rebasing: b[..<count]), at: at)
                }
                at += UInt64(count)
            }
            try system.sync(file)
            do throws(Errno) { try system.unlink(place) } catch { if error.code != ENOENT { throw error } }
        }
    }
}
