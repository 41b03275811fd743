/// Going on where an earlier process stopped reading.
///
///     mark = segments varint · segment ...
///     segment = size of name varint · name · position varint · complete u8
///
/// Bytes once written are never overwritten, and a segment's name is random: a file of that name that reaches as
/// far holds what it held.
extension FileStorage {
    public func scanMark() -> [UInt8]? {
        state.withLock {
            guard !closed, damageList.isEmpty, durability.lost.isEmpty else { return nil }
            var mark = ByteWriter()
            mark.varint(UInt64(segments.count))
            for segment in segments {
                let name = Array(segment.name.utf8)
                mark.varint(UInt64(name.count))
                mark.raw(name)
                mark.varint(segment.pinned == nil ? segment.position : 0)
                mark.integer(UInt8(segment.complete ? 1 : 0))
            }
            return mark.bytes
        }
    }

    public func resume(_ mark: [UInt8]) -> [UInt32]? {
        var known: [(name: String, position: UInt64, complete: Bool)] = []
        let isWhole = mark.withUnsafeBytes { raw in
            var reader = ByteReader(raw)
            guard let count = reader.count(atMost: reader.remaining) else { return false }
            for _ in 0..<count {
                guard let size = reader.count(atMost: 255), let name = reader.take(size), Bytes.isValidUTF8(name),
                      let position = reader.varint(), let complete = reader.integer(UInt8.self) else { return false }
                known.append((String(decoding: name, as: UTF8.self), position, complete == 1))
            }
            return reader.remaining == 0
        }
        guard isWhole, let names = try? segmentNames() else { return nil }
        let here = Set(names)
        for (name, position, _) in known where position > 0 {
            // A name from a file: it must be one of those that the directory lists, and so is no path.
            guard here.contains(name), let status = try? System.status(directory.segments + "/" + name), status.isRegularFile, status.size >= position else { return nil }
        }
        return state.withLock {
            guard !closed, segments.isEmpty else { return nil }
            var numbers: [UInt32] = []
            for (name, position, complete) in known {
                guard here.contains(name) else { numbers.append(.max); continue }
                guard let segment = try? segmentLocked(named: name) else { return nil }
                segment.position = position
                segment.complete = complete && position > 0
                segment.id = position > 0 ? RandomName(hex: name.dropLast(4)) : nil
                if position > 0, !isReadOnly {
                    durability.foreign.insert(Int(segment.index))
                    durability.segmentsDirectory = true
                    durability.serial &+= 1
                }
                numbers.append(segment.index)
            }
            return numbers
        }
    }
}
