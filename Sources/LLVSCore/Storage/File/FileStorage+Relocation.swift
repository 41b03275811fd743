/// Where the bytes of a compacted segment are in another segment.
struct Relocation {
    /// The index of the other segment.
    let to: Int
    /// The range of the old segment, and where it is in the other one.
    let from: UInt64
    let size: UInt64
    let at: UInt64
    /// The size of the old segment's file when it was compacted.
    let length: UInt64
}

/// Reads compacted segments (see `CompactionSource`) instead of those that they replace, and finds in them the records of files that are
/// gone.
extension FileStorage {
    /// Reads the new compacted segments before all others: the segments that they replace need not be read then. A damaged or incomplete
    /// one replaces nothing.
    func scanFolded(_ names: [String], _ buffer: ScanBuffer, _ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        var heads: [(segment: Segment, head: CompactedSegment)] = []
        for name in names where name.hasPrefix(CompactionSource.namePrefix) {
            try control.step(0)
            let segment = try state.withLock { try segmentLocked(named: name) }
            if state.withLock({ segment.complete || segment === durability.ownSegment }) { continue }
            if let head = readHead(name) { heads.append((segment, head)) }
        }
        guard !heads.isEmpty else { return }
        let here = Set(names)
        // A segment that was itself compacted into another listed one comes last, since the other may replace it.
        let covered = Set(heads.flatMap { $0.head.sources.map(\.id) })
        heads.sort { a, b in
            let (x, y) = (covered.contains(a.head.id), covered.contains(b.head.id))
            return x != y ? y : a.head.created != b.head.created ? a.head.created < b.head.created : a.head.id < b.head.id
        }
        for (segment, head) in heads {
            if state.withLock({ segment.complete }) { continue }
            let known = try state.withLock { () throws -> [Range<UInt64>] in
                try applyRelocations(of: head, in: segment, here: here)
                return knownRanges(of: head)
            }
            if known.reduce(0, { $0 + UInt64($1.count) }) == head.end - head.data {
                state.withLock {
                    segment.id = head.id
                    segment.position = head.end
                    segment.complete = true
                }
            } else {
                guard try scan(segment, buffer, skipping: known, control, found) == .complete else { continue }
            }
            state.withLock { retire(head, by: segment) }
        }
    }

    /// Returns the sources of the segment of that name; nil if it has none, or cannot be read now.
    func readHead(_ name: String) -> CompactedSegment? {
        do throws(Errno) {
            let file = try OpenFile(directory.segment(name), O_RDONLY)
            state.withLock { filesOpened &+= 1 }
            let status = try System.status(file.descriptor)
            return status.isRegularFile ? try CompactedSegment.read(file, name: name, size: status.size) : nil
        } catch { return nil }
    }

    /// Records where the bytes of compacted segments are in `segment`. Includes segments in which this handle has places, and segments
    /// whose files are in `here`. Precondition: `state` is held.
    func applyRelocations(of head: CompactedSegment, in segment: Segment, here: Set<String>) throws {
        for source in head.sources where source.id != head.id {
            let name = source.id.hex + ".seg"
            guard segmentsByName[name] != nil || here.contains(name) else { continue }
            let old = try segmentLocked(named: name)
            guard old !== durability.ownSegment, !old.relocations.contains(where: { $0.to == Int(segment.index) }) else { continue }
            old.relocations.append(
                Relocation(to: Int(segment.index), from: source.from, size: source.size, at: head.data + source.at, length: source.length))
        }
    }

    /// Returns the ranges of a compacted segment's frames, from `head.data` on, whose records were reported from the old segments.
    /// Precondition: `state` is held.
    private func knownRanges(of head: CompactedSegment) -> [Range<UInt64>] {
        var ranges: [Range<UInt64>] = []
        var reached: UInt64 = 0
        for source in head.sources where source.at >= reached && source.size > 0 {
            guard let index = segmentsByName[source.id.hex + ".seg"] else { continue }
            let old = segments[index]
            guard !old.damaged, old.position >= source.from + source.size else { continue }
            reached = source.at + source.size
            ranges.append(head.data + source.at..<head.data + reached)
        }
        return ranges
    }

    /// Marks the sources of a compacted segment as replaced, once everything in it was reported. Precondition: `state` is held.
    func retire(_ head: CompactedSegment, by segment: Segment) {
        for source in head.sources {
            guard let index = segmentsByName[source.id.hex + ".seg"] else { continue }
            let old = segments[index]
            guard old !== segment, old !== durability.ownSegment, old.relocations.contains(where: { $0.to == Int(segment.index) }),
                old.position <= source.length
            else { continue }
            old.id = source.id
            if source.sealed {
                old.position = source.length
                old.complete = true
                old.replaced = true
            } else {
                // A copy from a syncing program may have more.
                old.position = max(old.position, source.from + source.size)
                old.replaced = true
            }
        }
    }

    /// Returns where else the record may be. Precondition: `state` is held.
    func relocations(of place: RecordPlace) -> [RecordPlace] {
        guard Int(place.segment) < segments.count else { return [] }
        return segments[Int(place.segment)].relocations.compactMap { relocation in
            guard place.offset >= relocation.from, place.offset - relocation.from <= relocation.size,
                place.length <= relocation.size - (place.offset - relocation.from)
            else { return nil }
            return RecordPlace(
                segment: UInt32(truncatingIfNeeded: relocation.to), offset: relocation.at + (place.offset - relocation.from),
                length: place.length)
        }
    }

    package func currentPlace(_ place: RecordPlace) -> RecordPlace {
        state.withLock {
            var place = place
            // Each step leads to a newer segment. An invalid list must not cause an endless loop.
            for _ in 0..<64 {
                guard Int(place.segment) < segments.count, segments[Int(place.segment)].replaced,
                    let next = relocations(of: place).first(where: { segments[Int($0.segment)].complete })
                else { break }
                place = next
            }
            return place
        }
    }

    /// Looks for compacted segments of any process. Reads the heads of known ones again: the segments from which they were made long ago
    /// may have been brought back by a syncing program and deleted by another program.
    /// - Returns: false if a listed segment could not be read: it may have been compacted itself meanwhile.
    @discardableResult
    func discoverFolded() throws -> Bool {
        let names = try segmentNames()
        let here = Set(names)
        var sawAll = true
        for name in names where name.hasPrefix(CompactionSource.namePrefix) {
            guard let head = readHead(name) else {
                sawAll = false
                continue
            }
            try state.withLock {
                try checkOpen()
                try applyRelocations(of: head, in: segmentLocked(named: name), here: here)
            }
        }
        return sawAll
    }

    /// Returns whether the content of the segment of that name is in a segment that is `there`. Precondition: `state` is held.
    func isElsewhere(_ name: String, _ there: Set<String>) -> Bool {
        guard let index = segmentsByName[name] else { return false }
        let old = segments[index]
        return old.replaced || old.relocations.contains { $0.length >= old.position && there.contains(segments[$0.to].name) }
    }
}
