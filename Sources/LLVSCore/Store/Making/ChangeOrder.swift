/// Checks the changes that a caller passed for one version, and finds the order of its ids.
///
/// Ids are anywhere in the caller's memory, so comparing two of them means two cache misses. Therefore this sorts an array with eight
/// bytes of each id (those after the common prefix) and its index. Only if these are equal, it reads the ids again.
package struct ChangeOrder {
    private let changes: BorrowedChanges
    /// Nil if the changes came in order.
    private var order: [RecordChanges.Item]?
    /// The total bytes of the values.
    private(set) var dataSize: UInt64 = 0
    /// The kinds that occur, as bits by raw value.
    private var kinds: UInt8 = 0

    private struct Key {
        var prefix: UInt64
        var item: RecordChanges.Item
    }
    /// Groups of at most this many ids that share eight bytes are sorted by comparing whole ids.
    private static let fewIDs = 32

    /// - Throws: `.tooLarge`, `.invalidValueID`, `.invalidUTF8`, `.duplicateID`.
    /// - Complexity: O(changes × log changes), with 16 bytes for each meanwhile.
    package init(checking changes: BorrowedChanges) throws {
        self.changes = changes
        guard changes.count <= Limits.changesPerVersion else {
            throw StoreError(
                .tooLarge, "A version cannot have \(changes.count) changes; at most \(Limits.changesPerVersion) are allowed. Split it."
            )
        }
        guard !changes.isEmpty else { return }
        let first = changes.bytes(at: 0).id
        var shared = first.count, isSorted = true
        var last = first
        try changes.forEach(changes.indices) { i, change in
            try ValueID.check(change.id)
            if change.size > Limits.valueSize {
                let id = ValueID(unchecked: change.id)
                throw StoreError(
                    .tooLarge, "The value of \"\(id)\" has \(change.size) bytes; at most \(Limits.valueSize) (1 GiB) are allowed.",
                    valueID: id)
            }
            dataSize += UInt64(change.size)
            kinds |= 1 << change.kind.rawValue
            guard i > 0 else { return }
            if shared > 0 { shared = ChangeOrder.sharedBytes(first, change.id, from: 0, atMost: shared) }
            if isSorted { isSorted = Bytes.compare(last, change.id) < 0 }
            last = change.id
        }
        if !isSorted { order = try sorted(behind: shared) }
    }

    /// Returns whether all changes have this kind.
    func areAll(_ kind: Value.Change.Kind) -> Bool { kinds & ~(1 << kind.rawValue) == 0 }

    /// Returns whether a change has this kind.
    func has(_ kind: Value.Change.Kind) -> Bool { kinds & 1 << kind.rawValue != 0 }

    var count: Int { changes.count }
    /// The change with the least id. Precondition: there is one.
    var first: BorrowedChange.Bytes { changes.bytes(at: index(at: 0)) }
    /// The changes in order, with the kinds that the caller passed.
    var sorted: RecordChanges { RecordChanges(changes, order: order) }
    /// Returns the changes in the order and with the kinds of `items`.
    func relabelled(_ items: [RecordChanges.Item]) -> RecordChanges { RecordChanges(changes, order: items) }
    /// Returns the caller's index of the change at a position in the order.
    func index(at position: Int) -> Int { order.map { $0[position].index } ?? position }

    // MARK: Sorting

    private func sorted(behind shared: Int) throws -> [RecordChanges.Item] {
        try Memory.expect(changes.count * MemoryLayout<Key>.stride, "Putting \(changes.count) changes in order")
        let keys = UnsafeMutableBufferPointer<Key>.allocate(capacity: changes.count)
        defer { keys.deallocate() }
        changes.forEach(changes.indices) { i, change in
            keys.initializeElement(at: i, to: Key(prefix: Bytes.word(change.id, at: shared), item: RecordChanges.Item(i, change.kind)))
        }
        try sort(keys, from: shared)
        return keys.map(\.item)
    }

    /// Sorts ids whose first `offset` bytes are equal, and whose next eight are in the keys. Uses an explicit stack: ids that are
    /// prefixes of each other may need 512 levels.
    private func sort(_ keys: UnsafeMutableBufferPointer<Key>, from offset: Int) throws {
        var stack = [(keys: keys, offset: offset)]
        while let (unsorted, offset) = stack.popLast() {
            var keys = unsorted
            keys.sort { $0.prefix < $1.prefix }
            var start = 0
            while start < keys.count {
                var end = start + 1
                while end < keys.count, keys[end].prefix == keys[start].prefix { end += 1 }
                let equal = UnsafeMutableBufferPointer(rebasing: keys[start..<end])
                if end - start > 1, let shared = try sortEqual(equal, at: offset) { stack.append((equal, shared)) }
                start = end
            }
        }
    }

    /// Sorts a few ids whose first `offset` + 8 bytes are equal. If there are many, puts the eight bytes after their common prefix into
    /// the keys, and returns the prefix length: they are still to be sorted.
    private func sortEqual(_ keys: UnsafeMutableBufferPointer<Key>, at offset: Int) throws -> Int? {
        var keys = keys
        let first = id(keys[0])
        // An id that ends within the eight bytes differs from others at most by trailing NULs.
        if keys.count > ChangeOrder.fewIDs, keys.allSatisfy({ id($0).count >= offset + 8 }) {
            let shared = keys.reduce(Int.max) { ChangeOrder.sharedBytes(first, id($1), from: offset + 8, atMost: $0) }
            for i in keys.indices { keys[i].prefix = Bytes.word(id(keys[i]), at: shared) }
            return shared
        }
        keys.sort { Bytes.compare(id($0), id($1)) < 0 }
        for i in 1..<keys.count where Bytes.equal(id(keys[i - 1]), id(keys[i])) {
            let id = ValueID(unchecked: id(keys[i]))
            throw StoreError(.duplicateID, "The value id \"\(id)\" occurs twice in one version. Give each id once.", valueID: id)
        }
        return nil
    }

    @inline(__always)
    private func id(_ key: Key) -> UnsafeRawBufferPointer { changes.bytes(at: key.item.index).id }

    /// Returns the length of the common prefix. The first `from` bytes are known to be equal.
    @inline(__always)
    private static func sharedBytes(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer, from: Int, atMost limit: Int) -> Int {
        let limit = min(limit, a.count, b.count)
        var i = from
        while i < limit, a[i] == b[i] { i += 1 }
        return min(i, limit)
    }
}
