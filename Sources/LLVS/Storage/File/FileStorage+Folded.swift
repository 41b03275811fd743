/// Where bytes of a segment are that was folded into another.
struct Forward {
    /// The other's index.
    let to: Int
    /// The range of the old segment that is there, and where.
    let from: UInt64
    let size: UInt64
    let at: UInt64
    /// Bytes of the old segment's file when it was folded.
    let length: UInt64
}

/// Segments that others were folded into (see `Origin`): reading them instead of those that they replace, and
/// finding in them what was in a file that is gone.
extension FileStorage {
    /// Reads the new ones among the segments, before all others: those that they stand for need not be read then.
    /// One that is damaged, or not wholly here, stands for nothing.
    func scanFolded(_ names: [String], _ buffer: ScanBuffer, _ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {
        var heads: [(segment: Segment, head: FoldedSegment)] = []
        for name in names where name.hasPrefix(Origin.namePrefix) {
            try control.step(0)
            let segment = try state.withLock { try segmentLocked(named: name) }
            if state.withLock({ segment.complete || segment === durability.ownSegment }) { continue }
            if let head = readHead(name) { heads.append((segment, head)) }
        }
        guard !heads.isEmpty else { return }
        let here = Set(names)
        // One that was folded into another of them last: it may turn out to be covered.
        let covered = Set(heads.flatMap { $0.head.origins.map(\.id) })
        heads.sort { a, b in
            let (x, y) = (covered.contains(a.head.id), covered.contains(b.head.id))
            return x != y ? y : a.head.created != b.head.created ? a.head.created < b.head.created : a.head.id < b.head.id
        }
        for (segment, head) in heads {
            if state.withLock({ segment.complete }) { continue }
            let known = try state.withLock { () throws -> [Range<UInt64>] in
                try applyForwards(of: head, in: segment, here: here)
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

    /// What the segment of that name was folded from; nil when it was not, or cannot be read now.
    func readHead(_ name: String) -> FoldedSegment? {
        do throws(Errno) {
            let file = try OpenFile(directory.segment(name), O_RDONLY)
            state.withLock { filesOpened &+= 1 }
            let status = try System.status(file.descriptor)
            return status.isRegularFile ? try FoldedSegment.read(file, name: name, size: status.size) : nil
        } catch { return nil }
    }

    /// Remembers where the bytes of the segments are that were folded into `segment`: of those that this handle has
    /// places in, and those whose files are `here`. Under `state`.
    func applyForwards(of head: FoldedSegment, in segment: Segment, here: Set<String>) throws {
        for origin in head.origins where origin.id != head.id {
            let name = origin.id.hex + ".seg"
            guard segmentsByName[name] != nil || here.contains(name) else { continue }
            let old = try segmentLocked(named: name)
            guard old !== durability.ownSegment, !old.forwards.contains(where: { $0.to == Int(segment.index) }) else { continue }
            old.forwards.append(
                Forward(to: Int(segment.index), from: origin.from, size: origin.size, at: head.data + origin.at, length: origin.length))
        }
    }

    /// The ranges of a folded segment's frames, from `head.data` on, whose records were reported from where they were. Under `state`.
    private func knownRanges(of head: FoldedSegment) -> [Range<UInt64>] {
        var ranges: [Range<UInt64>] = []
        var reached: UInt64 = 0
        for origin in head.origins where origin.at >= reached && origin.size > 0 {
            guard let index = segmentsByName[origin.id.hex + ".seg"] else { continue }
            let old = segments[index]
            guard !old.damaged, old.position >= origin.from + origin.size else { continue }
            reached = origin.at + origin.size
            ranges.append(head.data + origin.at..<head.data + reached)
        }
        return ranges
    }

    /// All that the folded segment holds was reported: those that it stands for need not be read any more. Under `state`.
    func retire(_ head: FoldedSegment, by segment: Segment) {
        for origin in head.origins {
            guard let index = segmentsByName[origin.id.hex + ".seg"] else { continue }
            let old = segments[index]
            guard old !== segment, old !== durability.ownSegment, old.forwards.contains(where: { $0.to == Int(segment.index) }),
                old.position <= origin.length
            else { continue }
            old.id = origin.id
            if origin.sealed {
                old.position = origin.length
                old.complete = true
                old.replaced = true
            } else {
                // A copy that a syncing program brings may yet hold more.
                old.position = max(old.position, origin.from + origin.size)
                old.replaced = true
            }
        }
    }

    /// Where the record may be as well. Under `state`.
    func forwards(of place: RecordPlace) -> [RecordPlace] {
        guard Int(place.segment) < segments.count else { return [] }
        return segments[Int(place.segment)].forwards.compactMap { forward in
            guard place.offset >= forward.from, place.offset - forward.from <= forward.size,
                place.length <= forward.size - (place.offset - forward.from)
            else { return nil }
            return RecordPlace(
                segment: UInt32(truncatingIfNeeded: forward.to), offset: forward.at + (place.offset - forward.from), length: place.length)
        }
    }

    public func currentPlace(_ place: RecordPlace) -> RecordPlace {
        state.withLock {
            var place = place
            // Each step leads to a segment made later; a list that says otherwise must not keep us here.
            for _ in 0..<64 {
                guard Int(place.segment) < segments.count, segments[Int(place.segment)].replaced,
                      let next = forwards(of: place).first(where: { segments[Int($0.segment)].complete }) else { break }
                place = next
            }
            return place
        }
    }

    /// Looks for segments that were folded from others, by this or another process. Also those that are known are asked again: a
    /// syncing program may have brought back, and somebody deleted, what they had been folded from long ago.
    func discoverFolded() throws {
        let names = try segmentNames()
        let here = Set(names)
        for name in names where name.hasPrefix(Origin.namePrefix) {
            guard let head = readHead(name) else { continue }
            try state.withLock {
                try checkOpen()
                try applyForwards(of: head, in: segmentLocked(named: name), here: here)
            }
        }
    }

    /// Whether what the segment of that name held is in a segment that is `there`. Under `state`.
    func isElsewhere(_ name: String, _ there: Set<String>) -> Bool {
        guard let index = segmentsByName[name] else { return false }
        let old = segments[index]
        return old.replaced || old.forwards.contains { $0.length >= old.position && there.contains(segments[$0.to].name) }
    }
}
