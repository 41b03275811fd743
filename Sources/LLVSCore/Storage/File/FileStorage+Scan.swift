extension FileStorage {
    package func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        try state.withLock { try checkOpen() }
        let buffer = ScanBuffer()
        var names =
            try state.withLock {
                let listed = self.listed; self.listed = nil; return listed
            } ?? segmentNames(control)
        var isAgain = false
        while true {
            let vanished = try scan(names, buffer, control, anew: isAgain, found)
            if vanished.isEmpty { break }
            isAgain = true
            // Other processes compacted and deleted them since they were listed: a segment that was created later has their content.
            names = try segmentNames(control)
            if vanished.isSubset(of: names) { break }
        }
        try keepOwnSegment()
    }

    /// Reports the new records in the segments of these names. Returns the names that no longer exist.
    /// - Parameter anew: whether to read segments whose times say that they did not change: they may have changed in the same moment.
    private func scan(
        _ all: [String], _ buffer: ScanBuffer, _ control: PacedControl, anew: Bool, _ found: (ScannedRecord) throws -> Void
    ) throws -> Set<String> {
        var changed: [(segment: Segment, modified: Int64)] = [], vanished: Set<String> = []
        let passedOver = state.withLock { self.passedOver }
        let names = passedOver.isEmpty ? all : all.filter { !passedOver.contains($0) }
        try scanFolded(names, buffer, control, found)
        for name in names {
            try control.step(0)
            let (segment, skip, look, isDue) = try state.withLock {
                try checkOpen()
                let segment = try segmentLocked(named: name)
                let now = System.now, isDue = segment.due.map { now >= $0 || now < $0 &- Segment.longestWait } ?? false
                return (segment, segment.complete || segment === durability.ownSegment, segment.look, isDue)
            }
            if skip { continue }
            let place = directory.segment(name)
            let status: System.Status
            do throws(Errno) { status = try place.status() } catch {
                if error.code == ENOENT { vanished.insert(name); continue }
                throw StoreError.posix(error, doing: "Examining the segment", path: place.path)
            }
            if anew || status != look || isDue, status.isRegularFile { changed.append((segment, status.modified)) }
        }
        // Oldest first: so versions mostly come after their predecessors.
        changed.sort { $0.modified != $1.modified ? $0.modified < $1.modified : $0.segment.name < $1.segment.name }
        for (segment, _) in changed {
            try control.step(0)
            if try scan(segment, buffer, skipping: [], control, found) == .gone { vanished.insert(segment.name) }
            // A file that is being erased is renamed first. What was read may have been zeros already.
            let place = directory.segment(segment.name)
            do throws(Errno) { _ = try place.status() } catch {
                guard error.code == ENOENT else { continue }
                state.withLock { damageList.removeAll { $0.file == place.path && damageSet.remove($0) != nil } }
                vanished.insert(segment.name)
            }
        }
        return vanished
    }

    /// Returns the files in `segments/`. A file that a syncing program renamed ("x (conflict).seg") counts, since it may have more records
    /// than the original. Hidden files do not count: they are in transit.
    /// - Parameter control: checked on the way, like the checks of this thread's waits.
    func segmentNames(_ control: PacedControl = .none) throws -> [String] {
        do {
            let suffix: [UInt8] = Array(".seg".utf8)
            return try directory.segmentsFolder.names(control) { name in
                name.count >= suffix.count && name.suffix(suffix.count).elementsEqual(suffix) && name.first != UInt8(ascii: ".")
            }
        } catch let error as Errno {
            if error.code == ENOENT, state.withLock({ segments.isEmpty }) { return [] }
            throw StoreError.posix(error, doing: "Listing the segments in", path: directory.segments)
        }
    }

    /// Returns the segment of that name, and creates it if it is not known. Precondition: `state` is held.
    func segmentLocked(named name: String) throws -> Segment {
        if let index = segmentsByName[name] { return segments[index] }
        guard let index = UInt32(exactly: segments.count) else {
            throw StoreError(
                .tooLarge,
                "\(description) has too many segments. Compact it with an earlier version of the library, or salvage it into "
                    + "a new store.",
                path: directory.segments)
        }
        let segment = Segment(index: index, name: name)
        segmentsByName[name] = segments.count
        segments.append(segment)
        return segment
    }

    enum ScanOutcome {
        /// The segment was read up to its seal, and everything is valid.
        case complete
        /// More may follow, or something is wrong with it.
        case open
        /// The file of the segment does not exist.
        case gone
    }

    /// Reports the new records in a segment, except those in the ranges `skipping`, which are in order.
    func scan(
        _ segment: Segment, _ buffer: ScanBuffer, skipping: [Range<UInt64>], _ control: PacedControl,
        _ found: (ScannedRecord) throws -> Void
    ) throws -> ScanOutcome {
        // An error of the caller's closure is not damage of the segment, whatever its code.
        var callback: (any Error)?
        func asCaller(_ body: () throws -> Void) throws {
            do { try body() } catch {
                callback = error
                throw error
            }
        }
        var skipped = 0
        let began = System.now, place = directory.segment(segment.name), path = place.path
        do {
            // Open it by name each time: a syncing program may have replaced the file.
            let file = try posix("Opening the segment", path) { () throws(Errno) in try OpenFile(place, O_RDONLY) }
            state.withLock { filesOpened &+= 1 }
            let status = try posix("Examining the segment", path) { () throws(Errno) in try System.status(file.descriptor) }
            guard let (id, start, problem) = try begin(segment, file, path, status.size) else {
                state.withLock { segment.look = status }
                return .open
            }
            var scanner = SegmentScanner(
                file: file, path: path, id: id, from: start, size: status.size, sealed: try isSealed(file, path, id, status.size),
                thorough: false, inspector: options.inspector, buffer: buffer)
            scanner.progress = { _ in try asCaller(control.look) }
            if problem != nil, !scanner.sealed { scanner.givesUpAt = start + UInt64(ScanBuffer.chunk) }
            var reported = false
            defer {
                // Unreadable bytes are read again later: the medium may recover.
                let position = scanner.unreadableFrom ?? scanner.position, finished = scanner.finished && scanner.unreadableFrom == nil
                // A damaged header does not matter while the frames are valid. Without any frame, the segment is not complete yet.
                if problem == nil || position > start {
                    state.withLock {
                        segment.id = id
                        segment.position = position
                        if scanner.lastFrame > 0 { segment.lastFrame = scanner.lastFrame }
                        segment.complete = finished
                        // The file has records that were not compacted, so it is still needed.
                        if reported { segment.replaced = false }
                        if reported, !isReadOnly {
                            durability.foreign.insert(Int(segment.index))
                            durability.segmentsDirectory = true
                        }
                        if let problem { remember(problem) }
                    }
                }
            }
            try scanner.run(
                found: { offset, length, prefix, isDamaged in
                    while skipped < skipping.count, offset >= skipping[skipped].upperBound { skipped += 1 }
                    if skipped < skipping.count, offset >= skipping[skipped].lowerBound { return }
                    reported = true
                    let place = RecordPlace(segment: segment.index, offset: offset, length: length)
                    try asCaller {
                        try control.step(bytes: prefix.count)
                        try found(ScannedRecord(place: place, prefix: prefix, isDamaged: isDamaged))
                    }
                },
                damage: { damage in
                    state.withLock {
                        segment.damaged = true
                        remember(damage)
                    }
                    Log.write(.warning, "\(damage.file) at \(damage.offset): \(damage.message)")
                })
            state.withLock {
                segment.look = Segment.isTelling(status, readTo: scanner.position) ? status : nil
                segment.due = scanner.unreadableFrom.map { _ in Segment.nextLook(began: began) }
                install(file, for: segment)
            }
            return scanner.finished && scanner.unreadableFrom == nil && !segment.damaged ? .complete : .open
        } catch let error as StoreError where callback == nil {
            switch error.code {
            case .notFound: return .gone
            case .io, .permission:
                // One unreadable file must not prevent the opening of the others.
                state.withLock { remember(StorageDamage(file: path, offset: segment.position, message: error.message)) }
                return .open
            default: throw error
            }
        }
    }

    /// Returns the segment's id, where to continue, and what is wrong with its header; nil if there is nothing to read (yet).
    private func begin(_ segment: Segment, _ file: OpenFile, _ path: String, _ size: UInt64) throws -> (RandomName, UInt64, StorageDamage?)?
    {
        let (known, position) = state.withLock { (segment.id, segment.position) }
        if let known, position > 0 {
            // The file became shorter: an older copy replaced it. Either the longer one comes back, or reading reports what is missing.
            return size > position ? (known, position, nil) : nil
        }
        return try SegmentFile.begin(file, path, name: segment.name, size: size) { damage in state.withLock { remember(damage) } }
    }

    private func isSealed(_ file: OpenFile, _ path: String, _ id: RandomName, _ size: UInt64) throws -> Bool {
        try posix("Reading the segment", path) { () throws(Errno) in try SegmentFile.isSealed(file, id, size) }
    }

    /// Checks whether this process's segment is still the file of its name. If a syncing program replaced it with an older copy, appended
    /// records would never be found: then all of it is rewritten.
    func keepOwnSegment(appendingHeld: Bool = false) throws {
        guard let writer = state.withLock({ (durability.ownSegment?.position ?? 0) > 0 ? writer : nil }), writer.isGone else { return }
        if !appendingHeld { appending.lock() }
        defer { if !appendingHeld { appending.unlock() } }
        guard let segment = state.withLock({ self.writer === writer ? durability.ownSegment : nil }) else { return }
        // If the whole store was removed, its writers do not bring it back.
        try checkPresence("Rewriting what was added to")
        Log.write(.warning, "The segment \(writer.path) was replaced or removed while it was being written. Its content is rewritten.")
        state.withLock {
            segment.durable = 0
            pin(writer.file, for: segment)
        }
        markUnsynced(writer, segment)
        try rewriteUnsynced()
    }
}

/// Reads the two ends of a segment's file.
enum SegmentFile {
    /// Returns the segment's id, where its frames begin, and what is wrong with its header (retained only if frames are found). Returns
    /// nil if there is nothing to read. If that is permanent, `damage` is called with the reason.
    static func begin(_ file: OpenFile, _ path: String, name: String, size: UInt64, damage: (StorageDamage) -> Void) throws -> (
        RandomName, UInt64, StorageDamage?
    )? {
        let headerSize = UInt64(FrameFormat.segmentHeaderSize)
        guard size >= headerSize else { return nil }
        var bytes = [UInt8](repeating: 0, count: FrameFormat.segmentHeaderSize)
        let header = try posix("Reading the segment", path) { () throws(Errno) in
            try bytes.filled { (b) throws(Errno) in
                try System.pread(file.descriptor, b, at: 0) == b.count ? FrameFormat.segmentHeader(UnsafeRawBufferPointer(b)) : nil
            }
        }
        let named = RandomName(hex: name.dropLast(4))
        guard let header else {
            // The frames have the id, too. So with the id from the file's name they can be read without the header.
            return named.map {
                (
                    $0, headerSize,
                    StorageDamage(
                        file: path, offset: 0, message: "The segment's header is damaged. The versions after it are not affected.",
                        lost: .nothing)
                )
            }
        }
        guard header.format == FrameFormat.format else {
            damage(
                StorageDamage(
                    file: path, offset: 0,
                    message:
                        "The segment has format \(header.format), which this version of the library does not know. "
                        + "Use a newer version of the library."
                ))
            return nil
        }
        if let named, named != header.id {
            damage(
                StorageDamage(
                    file: path, offset: 0,
                    message:
                        "The file is a segment of another name, \(header.id.hex).seg; it was renamed or copied. It is not read: "
                        + "restore its name."
                ))
            return nil
        }
        return (header.id, headerSize, nil)
    }

    static func isSealed(_ file: OpenFile, _ id: RandomName, _ size: UInt64) throws(Errno) -> Bool {
        let sealSize = UInt64(FrameFormat.sealSize)
        guard size >= UInt64(FrameFormat.segmentHeaderSize) + sealSize else { return false }
        var bytes = [UInt8](repeating: 0, count: FrameFormat.sealSize)
        return try bytes.filled { (b) throws(Errno) in
            try System.pread(file.descriptor, b, at: size - sealSize) == b.count
                && FrameFormat.isSeal(UnsafeRawBufferPointer(b), id: id, offset: size - sealSize)
        }
    }
}
