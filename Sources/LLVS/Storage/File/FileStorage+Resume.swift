/// Going on where an earlier process stopped reading.
///
///     mark = segments varint · segment ...
///     segment = size of name varint · name · position varint · state u8: 0, 1 complete, 3 passed over
///
/// Bytes once written are never overwritten, and a segment's name is random: a file of that name that reaches as
/// far holds what it held. One that is passed over was folded into another, and `currentPlace` leads no row of the
/// history to it: it may be gone, then it has no name. One that is gone otherwise was perhaps folded since.
extension FileStorage {
    public func scanMark() -> [UInt8]? {
        let names = (try? segmentNames()).map { Set($0) } ?? []
        return state.withLock {
            guard !closed, damageList.isEmpty, durability.lost.isEmpty, !segments.contains(where: { $0.pinned != nil }) else { return nil }
            var mark = ByteWriter()
            let others = passedOver.filter { segmentsByName[$0] == nil && names.contains($0) }
            mark.varint(UInt64(segments.count + others.count))
            for segment in segments {
                let isGone = segment.replaced && !names.contains(segment.name)
                // One that was never sealed is looked at again while it is there.
                let isPassedOver = segment.replaced && (isGone || segment.complete)
                guard !isPassedOver || segment.forwards.contains(where: { segments[$0.to].complete && $0.length >= segment.position }) else { return nil }
                let name = isGone ? [] : Array(segment.name.utf8)
                mark.varint(UInt64(name.count))
                mark.raw(name)
                mark.varint(segment.position)
                mark.integer(UInt8(isPassedOver ? 3 : segment.complete ? 1 : 0))
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

    public func resume(_ mark: [UInt8]) -> [UInt32]? {
        var passed: Set<String> = []
        var known: [(name: String, position: UInt64, complete: Bool)] = []
        let isWhole = mark.withUnsafeBytes { raw in
            var reader = ByteReader(raw)
            guard let count = reader.count(atMost: reader.remaining) else { return false }
            for _ in 0..<count {
                guard let size = reader.count(atMost: 255), let name = reader.take(size), Bytes.isValidUTF8(name),
                      let position = reader.varint(), let state = reader.integer(UInt8.self) else { return false }
                let text = String(decoding: name, as: UTF8.self)
                if state == 3, size > 0 { passed.insert(text) }
                known.append((state == 3 ? "" : text, state == 3 ? 0 : position, state == 1))
            }
            return reader.remaining == 0
        }
        guard isWhole, let names = try? segmentNames() else { return nil }
        let here = Set(names.lazy.filter { !passed.contains($0) })
        var missing: [String: UInt64] = [:]
        for (name, position, _) in known where position > 0 {
            // A name from a file: it must be one of those that the directory lists, and so is no path.
            guard here.contains(name) else { missing[name] = position; continue }
            guard let status = try? directory.segment(name).status(), status.isRegularFile, status.size >= position else { return nil }
        }
        var heads: [(name: String, head: FoldedSegment)] = []
        if !missing.isEmpty {
            for name in names where name.hasPrefix(Origin.namePrefix) { if let head = readHead(name) { heads.append((name, head)) } }
            var found = missing
            for origin in heads.flatMap(\.head.origins) { if let end = found[origin.id.hex + ".seg"], end <= origin.length { found[origin.id.hex + ".seg"] = nil } }
            guard found.isEmpty else { return nil }
        }
        return state.withLock {
            guard !closed, segments.isEmpty else { return nil }
            passedOver = passed
            listed = names
            var numbers: [UInt32] = []
            numbers.reserveCapacity(known.count)
            for (name, position, complete) in known {
                guard here.contains(name) || missing[name] != nil else { numbers.append(.max); continue }
                guard let segment = try? segmentLocked(named: name) else { return nil }
                segment.position = position
                segment.complete = complete && position > 0
                segment.id = position > 0 ? RandomName(hex: name.dropLast(4)) : nil
                segment.replaced = missing[name] != nil
                segment.gone = missing[name] != nil
                if position > 0, !segment.replaced, !isReadOnly {
                    durability.foreign.insert(Int(segment.index))
                    durability.segmentsDirectory = true
                    durability.serial &+= 1
                }
                numbers.append(segment.index)
            }
            for (name, head) in heads {
                guard let segment = try? segmentLocked(named: name), (try? applyForwards(of: head, in: segment, here: here)) != nil else { return nil }
            }
            return numbers
        }
    }

    public func forgetResumed() {
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
