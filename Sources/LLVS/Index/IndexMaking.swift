/// Makes the tree of an index at a version. Used by one thread.
struct IndexMaking {
    private let store: Store
    private let definition: IndexDefinition
    private let control: PacedControl

    /// Values that are read together, and bytes of them.
    private static let mostRead = 1_024, mostReadBytes = 1 << 20
    /// Bytes of entries that are sorted together.
    private static let mostSorted = 16 << 20
    /// So few differences are always gone through; more only up to a part of the values.
    private static let fewDifferences = 64, largestPart = 4
    /// From so many lookups on a map pays.
    private static let fewLookups = 16
    /// Common bytes of entries from which on a leaf holds any number of them: ids behind one long key are to be told apart.
    static let deepestPrefix = 1_536
    /// Entries lead to nothing: an id says which value, and the version which bytes.
    static let slot = MapEntry(version: 0, size: 0, bodyOffset: 0)

    init(_ store: Store, _ definition: IndexDefinition, _ control: PacedControl) {
        self.store = store
        self.definition = definition
        self.control = control
    }

    /// - Parameter basis: the same index at another version, if there is one.
    /// - Returns: the tree, and what it shares nodes with.
    func tree(_ ordinal: UInt32, from basis: IndexCache.Tree?) throws -> (IndexCache.Tree, IndexCache.Tree?) {
        if let basis, let changed = try changed(basis, to: ordinal) { return (changed, basis) }
        return (try whole(ordinal), nil)
    }

    // MARK: From all values

    /// Whatever is there of other versions.
    func whole(_ ordinal: UInt32) throws -> IndexCache.Tree {
        let map = try store.maps.map(ordinal, control)
        var root: MapNode?, arena = KeyArena(), bytes = 0, values = 0
        func flush() throws {
            try Memory.expect(arena.count * 64, "Making an index")
            root = try arena.withChanges(isSorted: false) { try MapNode.applying($0, to: root, deepest: IndexMaking.deepestPrefix) }
            arena = KeyArena()
            bytes = 0
        }
        try IndexMaking.forEachStretch(of: map, definition.prefix) { stretch in
            values += stretch.count
            let reading = IndexReading(store, definition, control)
            for (id, entry) in stretch { try reading.append(id, entry) }
            try reading.forEach { _, id, keys in
                for key in keys {
                    let entry = key + id
                    try arena.makeRoom(for: entry.count, "Making an index")
                    arena.append(entry, IndexMaking.slot)
                    bytes += entry.count
                }
                if bytes >= IndexMaking.mostSorted { try flush() }
            }
        }
        try flush()
        return IndexCache.Tree(definition.digest, ordinal, root, values: values)
    }

    /// Calls with the ids under a prefix and what prevails for them, some at a time, in order.
    static func forEachStretch(
        of map: MapNode?, _ prefix: [UInt8], _ body: ([(id: [UInt8], entry: MapEntry)]) throws -> Void
    ) throws {
        guard let map else { return }
        var (low, high) = IDRange.prefix(prefix).bounds
        var isAll = false
        while !isAll {
            var stretch: [(id: [UInt8], entry: MapEntry)] = [], bytes = 0
            isAll = low.withUnsafeBytes { low in
                func walk(_ high: UnsafeRawBufferPointer?) -> Bool {
                    map.forEach(from: low, to: high) { id, entry in
                        stretch.append((Array(id), entry))
                        bytes += entry.size == MapEntry.unknownSize ? 0 : Int(entry.size)
                        return stretch.count < mostRead && bytes < mostReadBytes
                    }
                }
                return high.map { $0.withUnsafeBytes { walk($0) } } ?? walk(nil)
            }
            guard let last = stretch.last else { return }
            low = last.id + [0]
            try body(stretch)
        }
    }

    // MARK: From another version

    /// The tree at another version by what differs; nil when that is no less work, or cannot be.
    private func changed(_ basis: IndexCache.Tree, to ordinal: UInt32) throws -> IndexCache.Tree? {
        do {
            let differences = try store.differences(
                from: store.versionID(basis.ordinal), to: store.versionID(ordinal), in: .prefix(definition.prefix), control.forPart)
            try control.look()
            guard differences.count <= max(IndexMaking.fewDifferences, basis.values / IndexMaking.largestPart) else { return nil }
            return try apply(differences, to: basis, ordinal)
        } catch let error as StoreError where error.code == .damaged {
            // An old value perhaps: those of the version itself will tell.
            return nil
        }
    }

    private func apply(_ differences: [Store.ChangeSummary], to basis: IndexCache.Tree, _ ordinal: UInt32) throws -> IndexCache.Tree? {
        let before = differences.count > IndexMaking.fewLookups ? Prevailing.map(try store.maps.map(basis.ordinal, control))
            : try store.maps.prevailing(at: basis.ordinal)
        var arena = KeyArena(), values = basis.values, start = 0
        while start < differences.count {
            let reading = IndexReading(store, definition, control)
            var end = start, bytes = 0
            while end < differences.count, end - start < IndexMaking.mostRead / 2, bytes < IndexMaking.mostReadBytes {
                let difference = differences[end], id = difference.id.bytes
                // Of each id what was, and what is: one of both may not be there.
                let old = difference.kind == .insert ? nil : try id.withUnsafeBytes { try before.lookup($0) }
                try reading.append(id, old)
                try reading.append(id, difference.entry)
                bytes += Int(clamping: difference.size) * 2
                if difference.kind == .insert { values += 1 }
                if difference.kind == .remove { values -= 1 }
                end += 1
            }
            var was: [[UInt8]] = [], isWhole = true
            try reading.forEach { i, id, keys in
                guard i % 2 == 1 else { was = keys; return }
                IndexMaking.forEachDifference(was, keys) { key, isNew in
                    let entry = key + id
                    // What is not there cannot be taken away: the tree is not what it should be.
                    if !isNew, entry.withUnsafeBytes({ basis.root?.lookup($0) == nil }) { isWhole = false }
                    arena.append(entry, isNew ? IndexMaking.slot : nil)
                }
            }
            guard isWhole else { return nil }
            start = end
        }
        let root = try arena.withChanges(isSorted: false) { changes in
            changes.isEmpty ? basis.root : try MapNode.applying(changes, to: basis.root, deepest: IndexMaking.deepestPrefix)
        }
        return IndexCache.Tree(definition.digest, ordinal, root, values: values, changes: basis.changes &+ differences.count)
    }

    /// Calls with the keys that are in one list alone, which are both in order: `true` for those of the second.
    private static func forEachDifference(_ a: [[UInt8]], _ b: [[UInt8]], _ body: ([UInt8], Bool) -> Void) {
        var i = 0, j = 0
        while i < a.count || j < b.count {
            let order = i == a.count ? 1 : j == b.count ? -1 : Bytes.compare(a[i], b[j])
            if order < 0 { body(a[i], false) } else if order > 0 { body(b[j], true) }
            if order <= 0 { i += 1 }
            if order >= 0 { j += 1 }
        }
    }
}

extension KeyArena {
    fileprivate mutating func append(_ key: [UInt8], _ entry: MapEntry?) { key.withUnsafeBytes { append($0, entry) } }
}
