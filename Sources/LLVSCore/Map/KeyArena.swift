/// Copies of keys in one run of bytes, for changes gathered from several records.
package struct KeyArena {
    private var bytes: [UInt8] = []
    private var changes: [(start: Int, count: Int, entry: MapEntry?)] = []
    package init() {}
    package var count: Int { changes.count }
    /// The bytes of the keys.
    package var size: Int { bytes.count }

    package mutating func append(_ key: UnsafeRawBufferPointer, _ entry: MapEntry?) {
        changes.append((bytes.count, key.count, entry))
        bytes.append(contentsOf: key)
    }

    /// Appends a key in two parts.
    package mutating func append(_ key: [UInt8], _ rest: UnsafeRawBufferPointer, _ entry: MapEntry?) {
        changes.append((bytes.count, key.count + rest.count, entry))
        bytes.append(contentsOf: key)
        bytes.append(contentsOf: rest)
    }

    /// Appends all keys of another arena.
    package mutating func append(_ other: KeyArena, _ doing: @autoclosure () -> String) throws {
        try Memory.grow(&bytes, by: other.size, doing())
        try Memory.grow(&changes, by: other.count, doing())
        let start = size
        bytes.append(contentsOf: other.bytes)
        for change in other.changes { changes.append((start + change.start, change.count, change.entry)) }
    }

    /// Reserves memory for one more key of `size` bytes; for arenas that may grow without bound.
    package mutating func makeRoom(for size: Int, _ doing: @autoclosure () -> String) throws {
        try Memory.grow(&bytes, by: size, doing())
        try Memory.grow(&changes, doing())
    }

    /// Returns the change of a key; nil if there is none. The changes must have been appended in order.
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

    /// Calls `body` with the changes sorted by key, only the last for each key. `isSorted`: they were appended in order.
    package func withChanges<R>(isSorted: Bool, _ body: (ArraySlice<MapChange>) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes { bytes in
            var list: [MapChange] = []
            list.reserveCapacity(changes.count)
            func key(_ i: Int) -> UnsafeRawBufferPointer {
                UnsafeRawBufferPointer(rebasing: bytes[changes[i].start..<changes[i].start + changes[i].count])
            }
            if isSorted {
                for i in changes.indices { list.append(MapChange(key: key(i), entry: changes[i].entry)) }
            } else {
                // After the common prefix most keys differ in their first bytes.
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
