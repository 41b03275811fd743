extension FileStorage {
    package func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        _ = try StorageRange.check(offset, buffer.count, within: place.length, of: description)
        guard !place.offset.addingReportingOverflow(place.length).overflow else { throw StorageRange.unknownPlace(description) }
        if try readOpen(place.segment, buffer, at: place.offset + offset) == buffer.count { return }
        var (file, found) = try locate(place)
        if try fill(buffer, file, found.offset + offset, found) { return }
        // The file is shorter than before. Another file may have been put in its place: open it again by path.
        state.withLock {
            if Int(found.segment) < segments.count, segments[Int(found.segment)].file === file { forget(segments[Int(found.segment)]) }
        }
        (file, found) = try locate(place)
        if try fill(buffer, file, found.offset + offset, found) { return }
        // A syncing program may have brought back a shorter copy of a segment that was compacted and deleted.
        if let (whole, elsewhere) = try? locate(place, without: found.segment),
            try fill(buffer, whole, elsewhere.offset + offset, elsewhere)
        {
            return
        }
        let path = path(of: found), position = found.offset + offset
        throw StoreError(
            .damaged,
            "Reading \(buffer.count) bytes at \(position) of the segment \(path) failed: it has become shorter than it was. "
                + "Restore the longer copy, or exchange with a store that has the versions.",
            path: path)
    }

    package func readSegment(_ segment: UInt32, at position: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        if let count = try readOpen(segment, buffer, at: position) { return count }
        guard let file = try file(of: segment) else { return 0 }
        do throws(Errno) { return try System.pread(file.descriptor, buffer, at: position) } catch {
            let path = path(of: RecordPlace(segment: segment, offset: position, length: 0))
            throw StoreError.posix(error, doing: "Reading the segment", path: path)
        }
    }

    /// Reads from an open segment without a lock. Returns nil if it is not open.
    @inline(__always)
    private func readOpen(_ segment: UInt32, _ buffer: UnsafeMutableRawBufferPointer, at position: UInt64) throws -> Int? {
        do throws(Errno) { return try descriptors.read(segment, buffer, at: position) } catch {
            throw StoreError.posix(
                error, doing: "Reading the segment", path: path(of: RecordPlace(segment: segment, offset: position, length: 0)))
        }
    }

    /// Returns the record's opened file and the record's place in it: the original one, or the one that it was compacted to.
    /// - Parameter without: a segment that no longer has the record.
    private func locate(_ place: RecordPlace, without short: UInt32? = nil) throws -> (OpenFile, RecordPlace) {
        if place.segment != short, let file = try file(of: place.segment) { return (file, place) }
        var known = 0
        for attempt in 0..<10 {
            // Another process may have compacted it since the last look, and may have compacted the result again meanwhile.
            if attempt > 0 {
                let sawAll = try discoverFolded()
                let found = state.withLock { segments.reduce(0) { $0 + $1.relocations.count } }
                if attempt > 1, sawAll, found == known { break }
                known = found
            }
            var places = [place], seen: Set<UInt32> = []
            while let next = places.popLast() {
                guard seen.insert(next.segment).inserted else { continue }
                if next.segment != short, let file = try file(of: next.segment, evenIfGone: attempt > 0) { return (file, next) }
                places += state.withLock { relocations(of: next) }
            }
        }
        let path = path(of: place)
        throw StoreError(
            .damaged, "Reading the segment \(path) failed: the file is gone. Restore it, or exchange with a store that has the versions.",
            path: path)
    }

    private func fill(_ buffer: UnsafeMutableRawBufferPointer, _ file: OpenFile, _ position: UInt64, _ place: RecordPlace) throws -> Bool {
        do throws(Errno) { return try System.pread(file.descriptor, buffer, at: position) == buffer.count } catch {
            throw StoreError.posix(error, doing: "Reading the segment", path: path(of: place))
        }
    }

    package func location(_ place: RecordPlace) -> (file: String, offset: UInt64) { (path(of: place), place.offset) }

    private func path(of place: RecordPlace) -> String {
        state.withLock {
            Int(place.segment) < segments.count ? directory.segments + "/" + segments[Int(place.segment)].name : directory.segments
        }
    }

    /// Opens the segment's file; nil if it is gone.
    /// - Parameter evenIfGone: whether to try also a segment that was compacted and was gone at the last look. Merging a store with a
    ///   copy brings such files back, and the segment with its records may have been compacted and removed meanwhile.
    private func file(of index: UInt32, evenIfGone: Bool = false) throws -> OpenFile? {
        state.lock()
        guard !closed else { state.unlock(); throw StorageRange.closed(description) }
        guard Int(index) < segments.count else { state.unlock(); throw StorageRange.unknownPlace(description) }
        let segment = segments[Int(index)]
        useClock &+= 1
        segment.lastUse = useClock
        if let file = segment.pinned ?? segment.file {
            state.unlock()
            if file.isOurs { return file }
            // The host closed it: open it again.
            state.lock()
            if segment.pinned === file { segment.pinned = nil }
            forget(segment)
        }
        if segment.gone, !segment.relocations.isEmpty, !evenIfGone { state.unlock(); return nil }
        let (name, id) = (segment.name, segment.id)
        filesOpened &+= 1
        state.unlock()

        let place = directory.segment(name), path = place.path
        let file: OpenFile
        do throws(Errno) {
            file = try OpenFile(place, O_RDONLY)
        } catch {
            guard error.code == ENOENT else { throw StoreError.posix(error, doing: "Opening the segment", path: path) }
            state.withLock { segment.gone = true }
            return nil
        }
        var header = [UInt8](repeating: 0, count: FrameFormat.segmentHeaderSize)
        let found = try posix("Reading the segment", path) { () throws(Errno) in
            try header.filled { (b) throws(Errno) in
                try System.pread(file.descriptor, b, at: 0) == b.count ? FrameFormat.segmentHeader(UnsafeRawBufferPointer(b)) : nil
            }
        }
        if let found, let id, found.id != id {
            throw StoreError(
                .damaged,
                "Reading the segment \(path) failed: another segment has its name. "
                    + "Restore it, or exchange with a store that has the versions.",
                path: path)
        }
        return try state.withLock {
            try checkOpen()
            if let other = segment.file { return other }
            segment.gone = false
            install(file, for: segment)
            return file
        }
    }

    /// Caches an open file for reading, and evicts the least recently used one if there are too many. Precondition: `state` is held.
    func install(_ file: OpenFile, for segment: Segment) {
        useClock &+= 1
        segment.lastUse = useClock
        if segment.file == nil { opened.append(Int(segment.index)) }
        let before = segment.file
        // When this returns, no thread reads from the previous file.
        descriptors.set(segment.index, segment.pinned ?? file)
        withExtendedLifetime(before) { segment.file = file }
        while opened.count > max(1, options.openFiles) {
            var oldest = 0
            for i in opened.indices {
                if descriptors.takeUse(segments[opened[i]].index) { segments[opened[i]].lastUse = useClock }
                if segments[opened[i]].lastUse < segments[opened[oldest]].lastUse { oldest = i }
            }
            let segment = segments[opened[oldest]]
            opened.remove(at: oldest)
            close(segment)
        }
    }

    /// Keeps this process's own file open for a segment, whatever file has its name. Precondition: `state` is held.
    func pin(_ file: OpenFile, for segment: Segment) {
        descriptors.set(segment.index, file)
        segment.pinned = file
    }

    /// Precondition: `state` is held.
    func forget(_ segment: Segment) {
        close(segment)
        opened.removeAll { $0 == Int(segment.index) }
    }

    private func close(_ segment: Segment) {
        if segment.pinned == nil { descriptors.remove(segment.index) }
        segment.file = nil
    }
}
