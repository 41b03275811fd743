/// Copies of keys in one run of bytes, for changes gathered from several records.
struct KeyArena {
    private var bytes: [UInt8] = []
    private var changes: [(start: Int, count: Int, entry: MapEntry?)] = []
    var count: Int { changes.count }
    /// Bytes of the keys.
    var size: Int { bytes.count }

    mutating func append(_ key: UnsafeRawBufferPointer, _ entry: MapEntry?) {
        changes.append((bytes.count, key.count, entry))
        bytes.append(contentsOf: key)
    }

    /// A key in two parts, one behind the other.
    mutating func append(_ key: [UInt8], _ rest: UnsafeRawBufferPointer, _ entry: MapEntry?) {
        changes.append((bytes.count, key.count + rest.count, entry))
        bytes.append(contentsOf: key)
        bytes.append(contentsOf: rest)
    }

    /// All keys of another, behind those that are here.
    mutating func append(_ other: KeyArena, _ doing: @autoclosure () -> String) throws {
        try Memory.grow(&bytes, by: other.size, doing())
        try Memory.grow(&changes, by: other.count, doing())
        let start = size
        bytes.append(contentsOf: other.bytes)
        for change in other.changes { changes.append((start + change.start, change.count, change.entry)) }
    }

    /// Asks for the memory of one more key of so many bytes, where there may be any number.
    mutating func makeRoom(for size: Int, _ doing: @autoclosure () -> String) throws {
        try Memory.grow(&bytes, by: size, doing())
        try Memory.grow(&changes, doing())
    }

    /// The change of a key, in changes that were appended in order; nil when there is none.
    func find(_ key: UnsafeRawBufferPointer) -> MapChange? {
        bytes.withUnsafeBytes { bytes in
            var low = 0, high = changes.count
            while low < high {
                let middle = (low + high) >> 1, change = changes[middle]
                let order = Bytes.compare(UnsafeRawBufferPointer(rebasing: bytes[change.start..<change.start + change.count]), key)
                if order == 0 { return MapChange(key: key, entry: change.entry) }
                if order < 0 { low = middle + 1 } else { high = middle }
            }
            return nil
        }
    }

    /// Calls with the changes sorted by key, the last of each key alone. `isSorted`: they were appended so.
    func withChanges<R>(isSorted: Bool, _ body: (ArraySlice<MapChange>) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes { bytes in
            var list: [MapChange] = []
            list.reserveCapacity(changes.count)
            func key(_ i: Int) -> UnsafeRawBufferPointer {
                UnsafeRawBufferPointer(rebasing: bytes[changes[i].start..<changes[i].start + changes[i].count])
            }
            if isSorted {
                for i in changes.indices { list.append(MapChange(key: key(i), entry: changes[i].entry)) }
            } else {
                // Behind what all share, most keys differ in their first bytes.
                let first = changes.isEmpty ? nil : key(0)
                let shared = changes.indices.reduce(first?.count ?? 0) { shared, i in
                    first.map { min(shared, MapNode.commonPrefix($0, key(i))) } ?? 0
                }
                var order = WordOrder(changes.count) { Bytes.word(key($0), at: shared) }
                order.sort { i, j in
                    let c = Bytes.compare(key(i), key(j))
                    return c != 0 ? c < 0 : i < j
                }
                for (_, i) in order.items {
                    let i = Int(i), change = MapChange(key: key(i), entry: changes[i].entry)
                    if let last = list.last, Bytes.equal(last.key, change.key) {
                        list[list.count - 1] = change
                    } else {
                        list.append(change)
                    }
                }
            }
            return try body(list[...])
        }
    }
}
