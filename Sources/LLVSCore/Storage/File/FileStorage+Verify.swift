extension FileStorage {
    /// Reads every byte of every segment and blob. Does not change the state of `scan`, so readers may run at the same time.
    package func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        let known = try state.withLock {
            try checkOpen(); return segments.filter { $0.position > 0 && !$0.isErased }.map { (name: $0.name, end: $0.position) }
        }
        // Open files may have been replaced or removed. Open them again by name.
        blobs.letGo()
        for old in state.withLock({ damageList }) where old.file == directory.marker { try damage(old) }

        let paced = control.paced(.verifying, doing: "Verifying \(description)")
        let names = try segmentNames(paced).sorted()
        var total = 0
        for place in try names.map(directory.segment) + blobs.names(paced).map(directory.blobsFolder.place) {
            try paced.step(0)
            total = total &+ Int(clamping: (try? place.status())?.size ?? 0)
        }
        var done = 0
        let what = "Verifying \(description)"
        let there = Set(names), ends = Dictionary(known.map { ($0.name, $0.end) }) { first, _ in first }
        let missing = known.filter { !there.contains($0.name) }
        if !missing.isEmpty { try discoverFolded() }
        for segment in missing where !state.withLock({ isElsewhere(segment.name, there) }) {
            try damage(
                StorageDamage(
                    file: directory.segments + "/" + segment.name, offset: 0,
                    message: "The segment is gone. Restore it, or exchange with a store that has the versions."))
        }
        let buffer = ScanBuffer()
        var left = names, read: Set<String> = []
        while !left.isEmpty {
            var vanished: [(name: String, damage: StorageDamage)] = []
            for name in left where read.insert(name).inserted {
                try control.check(.verifying, done, of: total, doing: what)
                let end = ends[name] ?? 0
                done =
                    done
                    &+ Int(
                        clamping: try verify(name, knownTo: end, buffer, found, damage, vanished: { vanished.append((name, $0)) }) { at in
                            try control.check(.verifying, done &+ Int(clamping: at), of: total, doing: what)
                        })
            }
            left = []
            guard !vanished.isEmpty else { break }
            // Other processes have compacted these segments since they were listed: read the compacted segments instead.
            let compacted = try segmentNames(paced).filter { $0.hasPrefix(CompactionSource.namePrefix) }.sorted()
            for (name, missing) in vanished where !isFolded(name, upTo: ends[name] ?? 0) { try damage(missing) }
            left = compacted.filter { !read.contains($0) }
        }
        try blobs.verify(
            paced, progress: { try control.check(.verifying, done &+ Int(clamping: $0), of: total, doing: what) }, damage: damage)
        try control.check(.verifying, total, of: total, doing: what)
    }

    /// Returns whether a segment exists into which that one was compacted, with everything before `end`.
    private func isFolded(_ name: String, upTo end: UInt64) -> Bool {
        // A listed segment may be compacted itself and deleted before it is read. Then another one has its content.
        for _ in 0..<8 {
            let compacted = ((try? segmentNames()) ?? []).filter { $0.hasPrefix(CompactionSource.namePrefix) && $0 != name }
            var areAllThere = true
            for other in compacted {
                guard let head = readHead(other) else { areAllThere = false; continue }
                if head.sources.contains(where: { $0.id.hex + ".seg" == name && $0.length >= end }) { return true }
            }
            if areAllThere { return false }
        }
        return false
    }

    /// Verifies a segment, and returns its size.
    private func verify(
        _ name: String, knownTo end: UInt64, _ buffer: ScanBuffer, _ found: (ScannedRecord) throws -> Void,
        _ damage: (StorageDamage) throws -> Void, vanished: (StorageDamage) -> Void, _ progress: @escaping (UInt64) throws -> Void
    ) throws -> UInt64 {
        let place = directory.segment(name), path = place.path
        let file: OpenFile
        let status: System.Status
        do throws(Errno) {
            file = try OpenFile(place, O_RDONLY)
            status = try System.status(file.descriptor)
        } catch {
            let problem = StorageDamage(
                file: path, offset: 0, message: StoreError.posix(error, doing: "Opening the segment", path: path).message)
            if error.code == ENOENT { vanished(problem) } else { try damage(problem) }
            return 0
        }
        guard status.isRegularFile else { return 0 }
        // A short file may be an old copy: a syncing program brings one back after the complete file was compacted and deleted.
        if status.size < end, !isFolded(name, upTo: end) {
            try damage(
                StorageDamage(
                    file: path, offset: status.size,
                    message:
                        "The segment has become shorter than it was: \(end) bytes were read from it before. "
                        + "Restore the longer copy, or exchange with a store that has the versions."
                ))
        }
        var met: [StorageDamage] = []
        guard let (id, start, problem) = try SegmentFile.begin(file, path, name: name, size: status.size, damage: { met.append($0) }) else {
            for one in met { try damage(one) }
            if met.isEmpty { try damage(unfinished(path, 0)) }
            return status.size
        }
        let sealed = try posix("Reading the segment", path) { () throws(Errno) in try SegmentFile.isSealed(file, id, status.size) }
        var scanner = SegmentScanner(
            file: file, path: path, id: id, from: start, size: status.size, sealed: sealed, thorough: true, inspector: options.inspector,
            buffer: buffer)
        let segment = try state.withLock {
            try checkOpen(); return try segmentLocked(named: name).index
        }
        // The closures are called only during `run`.
        try withoutActuallyEscaping(progress) { progress in
            scanner.progress = progress
            defer { scanner.progress = { _ in } }
            try scanner.run(
                found: { offset, length, prefix, _ in
                    try found(ScannedRecord(place: RecordPlace(segment: segment, offset: offset, length: length), prefix: prefix))
                }, damage: damage)
        }
        if let problem, scanner.position > start { try damage(problem) }
        if !scanner.finished, !isBeingWritten(name, file) { try damage(unfinished(path, scanner.position)) }
        if scanner.position < end, status.size >= end {
            try damage(
                StorageDamage(
                    file: path, offset: scanner.position,
                    message:
                        "The segment's end is damaged: whole versions were read from there before. Exchange with a store that has them."))
        }
        return status.size
    }

    private func unfinished(_ path: String, _ offset: UInt64) -> StorageDamage {
        StorageDamage(
            file: path, offset: offset,
            message:
                "The segment does not end as a closed segment does: its writer was killed or is still writing, or the file was cut "
                + "short or damaged at its end. The file does not show whether versions are lost. "
                + "If they are, a copy of the file, an exchange with a store that has them, or a salvage may restore them.",
            lost: .unfinished)
    }

    /// Returns whether the segment is being written: by this process, or by a process of this machine, which holds a lock on it.
    private func isBeingWritten(_ name: String, _ file: OpenFile) -> Bool {
        if state.withLock({ durability.ownSegment?.name == name }) { return true }
        do throws(Errno) {
            try System.lockExclusively(file.descriptor)
            try? System.unlock(file.descriptor)
            return false
        } catch { return error.code == EWOULDBLOCK }
    }

    // MARK: Salvaging

    /// Reads every segment for anything that may be a record.
    package func salvage(_ control: OperationControl, found: (RecordPlace) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        for old in state.withLock({ damageList }) where old.file == directory.marker { try damage(old) }
        let paced = control.paced(.verifying, doing: "Salvaging \(description)")
        let names = try segmentNames(paced).sorted(), buffer = ScanBuffer()
        var done = 0, total = 0
        for name in names {
            try paced.step(0)
            total = total &+ Int(clamping: (try? directory.segment(name).status())?.size ?? 0)
        }
        for name in names {
            try control.check(.verifying, done, of: total, doing: "Salvaging \(description)")
            let place = directory.segment(name), path = place.path
            do {
                let file = try posix("Opening the segment", path) { () throws(Errno) in try OpenFile(place, O_RDONLY) }
                let status = try posix("Examining the segment", path) { () throws(Errno) in try System.status(file.descriptor) }
                guard status.isRegularFile else { continue }
                try salvage(name, file, path, status.size, buffer, found, damage) { at in
                    try control.check(.verifying, done &+ Int(clamping: at), of: total, doing: "Salvaging \(self.description)")
                }
                done = done &+ Int(clamping: status.size)
            } catch let error as StoreError where error.code == .io || error.code == .permission || error.code == .notFound {
                try damage(StorageDamage(file: path, offset: 0, message: error.message))
            }
        }
    }

    private func salvage(
        _ name: String, _ file: OpenFile, _ path: String, _ size: UInt64, _ buffer: ScanBuffer, _ found: (RecordPlace) throws -> Void,
        _ damage: (StorageDamage) throws -> Void, _ progress: @escaping (UInt64) throws -> Void
    ) throws {
        guard let id = try idForSalvage(name, file, path) else { return try damage(unfinished(path, 0)) }
        let sealed = try posix("Reading the segment", path) { () throws(Errno) in try SegmentFile.isSealed(file, id, size) }
        let segment = try state.withLock {
            try checkOpen(); return try segmentLocked(named: name).index
        }
        var scanner = SegmentScanner(
            file: file, path: path, id: id, from: UInt64(FrameFormat.segmentHeaderSize), size: size, sealed: sealed, thorough: false,
            inspector: options.inspector, buffer: buffer)
        try withoutActuallyEscaping(progress) { progress in
            try withoutActuallyEscaping(found) { found in
                scanner.progress = progress
                scanner.suspect = { try found(RecordPlace(segment: segment, offset: $0, length: $1)) }
                defer { scanner.progress = { _ in }; scanner.suspect = nil }
                try scanner.run(
                    found: { offset, length, _, _ in
                        try found(RecordPlace(segment: segment, offset: offset, length: length))
                    }, damage: damage)
            }
        }
        if !scanner.finished, !isBeingWritten(name, file) { try damage(unfinished(path, scanner.position)) }
    }

    /// Returns the segment's id from its header, its name or its first frame; nil if none has it, or its format is newer.
    private func idForSalvage(_ name: String, _ file: OpenFile, _ path: String) throws -> RandomName? {
        var bytes = [UInt8](repeating: 0, count: FrameFormat.segmentHeaderSize + FrameFormat.frameHeaderSize)
        let got = try posix("Reading the segment", path) { () throws(Errno) in
            try bytes.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: 0) }
        }
        return bytes.withUnsafeBytes { b in
            let there = UnsafeRawBufferPointer(rebasing: b[..<got])
            if let header = FrameFormat.segmentHeader(there) { return header.format == FrameFormat.format ? header.id : nil }
            if let named = RandomName(hex: name.dropLast(4)) { return named }
            return got == bytes.count && FrameFormat.load(there, FrameFormat.segmentHeaderSize, UInt32.self) == FrameFormat.frameMagic
                ? RandomName(loading: there, at: FrameFormat.segmentHeaderSize + 8) : nil
        }
    }
}
