/// Builds the tree of an index at a version. Used by one thread.
struct IndexMaking {
    private let store: Store
    private let definition: IndexDefinition
    private let control: PacedControl

    /// How many values are read together, and their bytes.
    private static let mostRead = 512, mostReadBytes = 1 << 20
    /// The bytes of entries sorted together, and the bytes of entries from the values of one work item: a few values may have many.
    private static let mostSorted = 16 << 20, mostOfPiece = 2 << 20
    /// Up to this many differences are always applied; more are applied only if they are at most this fraction of the values.
    private static let fewDifferences = 64, largestPart = 4
    /// For this many lookups or more, making a map takes less time than lookups without one.
    private static let fewLookups = 16
    /// Up to this many changes of entries are inserted into the tree at once. More changes form an overlay until another tree is made from
    /// this one.
    private static let fewChanges = 16
    /// If entries share more leading bytes than this, a leaf holds any number of them. It is large enough to separate ids after one long
    /// key.
    static let deepestPrefix = 1_536
    /// Entries carry no data: the id names the value, and the version determines its bytes.
    static let slot = MapEntry(version: 0, size: 0, bodyOffset: 0)

    init(_ store: Store, _ definition: IndexDefinition, _ control: PacedControl) {
        self.store = store
        self.definition = definition
        self.control = control
    }

    /// - Parameter basis: the same index at another version, without an overlay, if there is one.
    /// - Returns: the tree, and the tree that it shares nodes with.
    func tree(_ ordinal: UInt32, from basis: IndexCache.Tree?) throws -> (IndexCache.Tree, IndexCache.Tree?) {
        if let basis, let changed = try changed(basis, to: ordinal) { return (changed, basis) }
        return (try whole(ordinal), nil)
    }

    // MARK: From all values

    /// Builds the tree from all values, ignoring trees of other versions.
    func whole(_ ordinal: UInt32) throws -> IndexCache.Tree {
        let map = try store.maps.map(ordinal, control)
        var root: MapNode?, arena = KeyArena(), values = 0, walk = PrefixWalk(map, definition.prefix)
        func flush() throws {
            try Memory.expect(arena.count * 64, "Making an index")
            root = try arena.withChanges(isSorted: false) { try MapNode.applying($0, to: root, deepest: IndexMaking.deepestPrefix) }
            arena = KeyArena()
        }
        try SharedWork.run(threads: threads, control) {
            let reading = IndexReading(store, definition)
            return try walk.next { try reading.append($0, $1) }.map { found in
                values += found.count
                return (reading, bytes: found.bytes)
            }
        } make: { reading, control in
            (reading, try reading.entries(most: IndexMaking.mostOfPiece, control))
        } take: { reading, entries in
            if let entries {
                try arena.append(entries, "Making an index")
            } else {
                try reading.forEachEntry(control) { key, id in
                    try arena.makeRoom(for: key.count + id.count, "Making an index")
                    arena.append(key, id, IndexMaking.slot)
                    if arena.size >= IndexMaking.mostSorted { try flush() }
                }
            }
            if arena.size >= IndexMaking.mostSorted { try flush() }
        }
        try flush()
        return IndexCache.Tree(definition.digest, ordinal, root, values: values)
    }

    /// The host's callbacks, which compute keys or read values, run on the calling thread.
    private var threads: Int { definition.callback != nil || store.storage is CallbackStorage ? 1 : SharedThreads.most }

    // MARK: From another version

    /// Builds the tree from that of another version by applying the differences; nil if that is no less work, or impossible.
    private func changed(_ basis: IndexCache.Tree, to ordinal: UInt32) throws -> IndexCache.Tree? {
        do {
            let differences = try store.differences(
                from: store.versionID(basis.ordinal), to: store.versionID(ordinal), in: .prefix(definition.prefix), control: control.forPart
            )
            try control.look()
            guard differences.count <= max(IndexMaking.fewDifferences, basis.values / IndexMaking.largestPart) else { return nil }
            return try apply(differences, to: basis, ordinal)
        } catch let error as StoreError where error.code == .damaged {
            // The damaged value may be an old one. Reading the values of the version itself will show.
            return nil
        }
    }

    private func apply(_ differences: [Store.ChangeSummary], to basis: IndexCache.Tree, _ ordinal: UInt32) throws -> IndexCache.Tree? {
        let before =
            differences.count > IndexMaking.fewLookups
            ? Prevailing.map(try store.maps.map(basis.ordinal, control))
            : try store.maps.prevailing(at: basis.ordinal)
        var arena = KeyArena(), values = basis.values, isWhole = true, left = differences[...]
        let root = basis.root
        try SharedWork.run(threads: threads, control) {
            guard isWhole, !left.isEmpty else { return nil }
            let reading = IndexReading(store, definition)
            var count = 0, bytes = 0
            while let difference = left.first, count < IndexMaking.mostRead, bytes < IndexMaking.mostReadBytes {
                let id = difference.id.bytes
                // For each id the old and the new value; one of them may be absent.
                let old = difference.kind == .insert ? nil : try id.withUnsafeBytes { try before.lookup($0) }
                try reading.append(id, old)
                try reading.append(id, difference.entry)
                bytes += Int(clamping: difference.size) * 2
                if difference.kind == .insert { values += 1 }
                if difference.kind == .remove { values -= 1 }
                count += 1
                left.removeFirst()
            }
            return (reading, bytes: bytes)
        } make: { reading, control in
            try IndexMaking.changes(reading, root, control)
        } take: { changes in
            if let changes { try arena.append(changes, "Making an index") } else { isWhole = false }
        }
        guard isWhole else { return nil }
        return try arena.withChanges(isSorted: false) { changes in
            let overlay = changes.count > IndexMaking.fewChanges ? try IndexOverlay(changes) : nil
            let changed =
                changes.isEmpty || overlay != nil
                ? root
                : try MapNode.applying(changes, to: root, deepest: IndexMaking.deepestPrefix)
            return IndexCache.Tree(
                definition.digest, ordinal, changed, overlay, values: values, changes: basis.changes &+ differences.count)
        }
    }

    /// Returns the changes to the tree. Values come in pairs, old and new. Returns nil if a key to remove is absent from the tree, or a key
    /// to add is present: then the tree is wrong. Also returns nil if an old value has no bytes any more.
    private static func changes(_ reading: IndexReading, _ root: MapNode?, _ control: PacedControl) throws -> KeyArena? {
        var arena = KeyArena(), was: [[UInt8]] = [], entry: [UInt8] = [], isWhole = true
        try reading.forEach(control) { i, id, keys in
            guard i % 2 == 1 else {
                was = keys
                // The keys of the old value are unknown if it has no bytes, and the tree may have them.
                if reading.isForgotten(i) { isWhole = false }
                return
            }
            forEachDifference(was, keys) { key, isNew in
                entry.removeAll(keepingCapacity: true)
                entry.append(contentsOf: key)
                entry.append(contentsOf: id)
                if entry.withUnsafeBytes({ root?.lookup($0) != nil }) == isNew { isWhole = false }
                arena.append(entry, isNew ? slot : nil)
            }
        }
        return isWhole ? arena : nil
    }

    /// Calls `body` with the keys that only one of two sorted lists has: `true` for those of the second.
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
