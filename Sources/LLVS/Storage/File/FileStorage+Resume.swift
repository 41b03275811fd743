/// Going on where an earlier process stopped reading.
///
///     mark = segments varint · segment ...
///     segment = size of name varint · name · position varint · state u8: 1 complete, 2 replaced by one that it was folded into
///
/// Bytes once written are never overwritten, and a segment's name is random: a file of that name that reaches as
/// far holds what it held. No row of the history is in a replaced one: it may be gone, and then has no name. One that
/// is gone otherwise was perhaps folded into another since.
extension FileStorage {
    public func scanMark() -> [UInt8]? {
        let names = (try? segmentNames()).map { Set($0) } ?? []
        return state.withLock {
            guard !closed, damageList.isEmpty, durability.lost.isEmpty else { return nil }
            var mark = ByteWriter()
            mark.varint(UInt64(segments.count))
            for segment in segments {
                let name = segment.replaced && !names.contains(segment.name) ? [] : Array(segment.name.utf8)
                mark.varint(UInt64(name.count))
                mark.raw(name)
                mark.varint(segment.pinned == nil ? segment.position : 0)
                mark.integer(UInt8((segment.complete ? 1 : 0) + (segment.replaced ? 2 : 0)))
            }
            return mark.bytes
        }
    }

    public func resume(_ mark: [UInt8]) -> [UInt32]? {
        var known: [(name: String, position: UInt64, complete: Bool, replaced: Bool)] = []
        let isWhole = mark.withUnsafeBytes { raw in
            var reader = ByteReader(raw)
            guard let count = reader.count(atMost: reader.remaining) else { return false }
            for _ in 0..<count {
                guard let size = reader.count(atMost: 255), let name = reader.take(size), Bytes.isValidUTF8(name),
                      let position = reader.varint(), let state = reader.integer(UInt8.self) else { return false }
                known.append((String(decoding: name, as: UTF8.self), position, state & 1 != 0, state & 2 != 0))
            }
            return reader.remaining == 0
        }
        guard isWhole, let names = try? segmentNames() else { return nil }
        let here = Set(names)
        var missing: [String: UInt64] = [:]
        for (name, position, _, replaced) in known where position > 0 && !replaced {
            // A name from a file: it must be one of those that the directory lists, and so is no path.
            guard here.contains(name) else { missing[name] = position; continue }
            guard let status = try? System.status(directory.segments + "/" + name), status.isRegularFile, status.size >= position else { return nil }
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
            var numbers: [UInt32] = []
            for (name, position, complete, replaced) in known {
                guard here.contains(name) || missing[name] != nil else { numbers.append(.max); continue }
                guard let segment = try? segmentLocked(named: name) else { return nil }
                segment.position = position
                segment.complete = complete && position > 0
                segment.id = position > 0 ? RandomName(hex: name.dropLast(4)) : nil
                segment.replaced = replaced || missing[name] != nil
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
}
