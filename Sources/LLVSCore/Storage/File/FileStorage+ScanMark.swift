/// Continues where an earlier process stopped reading.
///
///     mark = segments varint · segment ...
///     segment = size of name varint · name · position varint
///             · state u8: 0 not read, 1 complete, 3 skipped, 4 open · last frame varint, of one that is open
///
/// Bytes in a segment are never overwritten, and its name is random. So if a file of that name has the last frame before the position
/// (`last frame` is where it begins, 0 for none), or the seal, it has the same content as before. Its length does not prove that: an
/// older copy may be as long, with unused room at its end. A skipped segment was compacted into another, and `currentPlace` leads no row
/// of the history to it: it may be gone, and then has no name. Any other missing segment may have been compacted since.
extension FileStorage {
    package func scanMark() -> [UInt8]? {
        let names = (try? segmentNames()).map { Set($0) } ?? []
        return state.withLock {
            guard !closed, damageList.isEmpty, durability.unsynced.isEmpty, !segments.contains(where: { $0.pinned != nil }) else {
                return nil
            }
            var mark = ByteWriter()
            let others = passedOver.filter { segmentsByName[$0] == nil && names.contains($0) }
            mark.varint(UInt64(segments.count + others.count))
            for segment in segments {
                let isGone = segment.isErased || segment.replaced && !names.contains(segment.name)
                // A segment that was never sealed is read again while it exists.
                let isPassedOver = segment.isErased || segment.replaced && (isGone || segment.complete)
                guard
                    !isPassedOver || segment.isErased
                        || segment.relocations.contains(where: { segments[$0.to].complete && $0.length >= segment.position })
                else { return nil }
                let name = isGone ? [] : Array(segment.name.utf8)
                mark.varint(UInt64(name.count))
                mark.raw(name)
                mark.varint(segment.position)
                let state: UInt8 = isPassedOver ? 3 : segment.complete ? 1 : segment.position == 0 ? 0 : 4
                mark.integer(state)
                if state == 4 { mark.varint(segment.lastFrame) }
            }
            for name in others {
                mark.varint(UInt64(name.utf8.count))
                mark.raw(Array(name.utf8))
                mark.varint(0)
                mark.integer(UInt8(3))
            }
            return mark.bytes
        }
    }

    package func resume(_ mark: [UInt8]) -> [UInt32]? {
        var passed: Set<String> = []
        var known: [Known] = []
        let isWhole = mark.withUnsafeBytes { raw in
            var reader = ByteReader(raw)
            guard let count = reader.count(atMost: reader.remaining) else { return false }
            for _ in 0..<count {
                guard let size = reader.count(atMost: 255), let name = reader.take(size), Bytes.isValidUTF8(name),
                    let position = reader.varint(), let state = reader.integer(UInt8.self)
                else { return false }
                let text = String(decoding: name, as: UTF8.self)
                if state == 3, size > 0 { passed.insert(text) }
                guard let last = state == 4 ? reader.varint() : 0, state != 0 || position == 0 else { return false }
                let isPassed = state == 3
                known.append(Known(name: isPassed ? "" : text, position: isPassed ? 0 : position, lastFrame: last, complete: state == 1))
            }
            return reader.remaining == 0
        }
        guard isWhole, let names = try? segmentNames() else { return nil }
        let here = Set(names.lazy.filter { !passed.contains($0) })
        var missing: [String: UInt64] = [:]
        for i in known.indices where known[i].position > 0 {
            // A name from a file: since it must be one that the directory lists, it is not a path.
            guard here.contains(known[i].name) else { missing[known[i].name] = known[i].position; continue }
            guard isThere(&known[i]) else { return nil }
        }
        var heads: [(name: String, head: CompactedSegment)] = []
        if !missing.isEmpty {
            for name in names where name.hasPrefix(CompactionSource.namePrefix) {
                if let head = readHead(name) { heads.append((name, head)) }
            }
            var found = missing
            for source in heads.flatMap(\.head.sources) {
                if let end = found[source.id.hex + ".seg"], end <= source.length { found[source.id.hex + ".seg"] = nil }
            }
            guard found.isEmpty else { return nil }
        }
        return state.withLock {
            guard !closed, segments.isEmpty else { return nil }
            passedOver = passed
            listed = names
            var numbers: [UInt32] = []
            numbers.reserveCapacity(known.count)
            for found in known {
                let name = found.name, position = found.position
                guard here.contains(name) || missing[name] != nil else { numbers.append(.max); continue }
                guard let segment = try? segmentLocked(named: name) else { return nil }
                segment.position = position
                segment.lastFrame = found.lastFrame
                segment.complete = found.complete && position > 0
                if let file = found.file { install(file, for: segment) }
                segment.id = position > 0 ? RandomName(hex: name.dropLast(4)) : nil
                segment.replaced = missing[name] != nil
                segment.gone = missing[name] != nil
                if position > 0, !segment.replaced, !isReadOnly {
                    durability.foreign.insert(Int(segment.index))
                    durability.segmentsDirectory = true
                }
                numbers.append(segment.index)
            }
            for (name, head) in heads {
                guard let segment = try? segmentLocked(named: name), (try? applyRelocations(of: head, in: segment, here: here)) != nil
                else {
                    return nil
                }
            }
            return numbers
        }
    }

    /// A segment according to the mark.
    private struct Known {
        var name: String
        var position: UInt64
        var lastFrame: UInt64
        var complete: Bool
        /// Opened for the check, and read up to its seal.
        var file: OpenFile?
    }

    /// Returns whether the file of a segment still has what was read of it. If it was sealed since, it is read to its end.
    private func isThere(_ known: inout Known) -> Bool {
        let place = directory.segment(known.name), sealSize = UInt64(FrameFormat.sealSize)
        guard let status = try? place.status(), status.isRegularFile, status.size >= known.position else { return false }
        let (sealed, overflow) = known.position.addingReportingOverflow(sealSize)
        guard !overflow else { return false }
        // If another process sealed it, the position is after the seal. A file with unused room ends at the end of a block.
        if known.complete, known.position == status.size || sealed == status.size, status.size % 4096 != 0 { return true }
        guard let id = RandomName(hex: known.name.dropLast(4)), let file = try? OpenFile(place, O_RDONLY) else { return false }
        state.withLock { filesOpened &+= 1 }
        if known.complete || sealed == status.size {
            if (try? SegmentFile.isSealed(file, id, status.size)) == true {
                if !known.complete { (known.position, known.complete, known.file) = (sealed, true, file) }
                return true
            }
            if known.complete { return false }
        }
        guard known.lastFrame > 0 else { return true }
        var bytes = [UInt8](repeating: 0, count: FrameFormat.frameHeaderSize)
        let size = try? bytes.filled { (b) throws(Errno) in
            guard try System.pread(file.descriptor, b, at: known.lastFrame) == b.count else { return UInt64?.none }
            return FrameFormat.frameHeader(UnsafeRawBufferPointer(b), id: id, offset: known.lastFrame)?.bodySize
        }
        guard let size = size ?? nil else { return false }
        return known.lastFrame &+ UInt64(FrameFormat.frameHeaderSize) &+ size == known.position
    }

    package func forgetResumed() {
        state.withLock {
            descriptors.removeAll()
            segments = []
            segmentsByName = [:]
            opened = []
            passedOver = []
            listed = nil
            durability = DurabilityState()
        }
    }
}
