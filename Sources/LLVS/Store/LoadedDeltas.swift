/// The changes of small versions, gathered while a store is opened: the records pass by anyway, and the first
/// map that is asked for would have to read them all again.
///
/// Holds the newest few megabytes; let go of once a map was made. Guarded by the store's lock.
struct LoadedDeltas {
    private static let capacity = 8 << 20
    /// A record larger than this is read again when it is needed.
    static let largestRecord = 4_096

    private var bytes = ByteWriter()
    /// By ordinal − `firstOrdinal`: where the delta begins; `absent` when it was not kept.
    private var starts: [UInt32] = []
    private var firstOrdinal: UInt32 = 0
    private static let absent = UInt32.max

    var isEmpty: Bool { starts.isEmpty }

    /// Keeps the delta of a version, whose whole record is given, unless it preserves or is damaged.
    mutating func append(_ ordinal: UInt32, _ header: RecordHeader, _ record: UnsafeRawBufferPointer) {
        if bytes.bytes.count > LoadedDeltas.capacity || starts.count > LoadedDeltas.capacity / 16 || ordinal < firstOrdinal { removeAll() }
        if starts.isEmpty { firstOrdinal = ordinal }
        while starts.count < Int(ordinal - firstOrdinal) { starts.append(LoadedDeltas.absent) }
        guard starts.count == Int(ordinal - firstOrdinal) else { return }
        let start = bytes.bytes.count
        starts.append(UInt32(truncatingIfNeeded: start))
        guard header.pageCount <= 1, header.dependencies.isEmpty, record.count == header.recordSize else {
            starts[starts.count - 1] = LoadedDeltas.absent
            return
        }
        bytes.varint(UInt64(header.changeCount))
        guard header.pageCount == 1 else { return }
        var needs: Int?
        let table = UnsafeRawBufferPointer(rebasing: record[header.tableOffset..<header.bodiesOffset])
        let read = try? RecordTable.readPage(table, number: 0, of: header, needs: &needs) { entry in
            let sets = entry.kind == .insert || entry.kind == .update
            bytes.varint(UInt64(entry.id.count))
            bytes.raw(entry.id)
            bytes.varint(sets ? UInt64(entry.size) + 1 : 0)
            if sets { bytes.varint(UInt64(entry.bodyOffset)) }
        }
        if read == nil || read == .some(nil) {
            bytes.bytes.removeLast(bytes.bytes.count - start)
            starts[starts.count - 1] = LoadedDeltas.absent
        }
    }

    mutating func removeAll() {
        bytes = ByteWriter()
        starts = []
    }

    /// Adds the changes of a version to `arena`; false when they were not kept.
    func appendChanges(of ordinal: UInt32, to arena: inout KeyArena) -> Bool {
        guard ordinal >= firstOrdinal, Int(ordinal - firstOrdinal) < starts.count else { return false }
        let start = starts[Int(ordinal - firstOrdinal)]
        guard start != LoadedDeltas.absent else { return false }
        return bytes.bytes.withUnsafeBytes { all in
            var reader = ByteReader(UnsafeRawBufferPointer(rebasing: all[Int(start)...]))
            guard let count = reader.varint() else { return false }
            for _ in 0..<count {
                guard let size = reader.count(atMost: Limits.valueIDSize), let key = reader.take(size), let length = reader.varint() else { return false }
                if length == 0 {
                    arena.append(key, nil)
                } else {
                    guard let offset = reader.varint() else { return false }
                    arena.append(key, MapEntry(version: ordinal, size: UInt32(truncatingIfNeeded: length - 1), bodyOffset: offset))
                }
            }
            return true
        }
    }
}
