/// The entries by which an index differs from the tree of another version, in order. Lookups in both take hardly longer than in a tree,
/// whereas inserting a thousand entries would dominate the first query at a distant version.
final class IndexOverlay: @unchecked Sendable {
    // Sendable: immutable.
    /// Keys that lie in `memory`, each once. A change without an entry is a removal.
    let changes: [MapChange]
    /// For each position the additions minus the removals before it; the last entry is the total.
    private let more: [Int32]
    private let memory: UnsafeMutableRawBufferPointer
    /// The bytes that it takes.
    let cost: Int

    /// - Parameter sorted: the changes, each of which differs from the tree.
    init(_ sorted: ArraySlice<MapChange>) throws {
        let size = sorted.reduce(0) { $0 + $1.key.count }
        try Memory.expect(sorted.count * (MemoryLayout<MapChange>.stride + 4), "Comparing two versions of an index")
        memory = try Memory.allocate(size, "Comparing two versions of an index")
        var changes: [MapChange] = [], more: [Int32] = [0], at = 0
        changes.reserveCapacity(sorted.count)
        more.reserveCapacity(sorted.count + 1)
        for change in sorted {
            let key = UnsafeMutableRawBufferPointer(rebasing: memory[at..<at + change.key.count])
            key.copyMemory(from: change.key)
            at += key.count
            changes.append(MapChange(key: UnsafeRawBufferPointer(key), entry: change.entry))
            more.append((more.last ?? 0) &+ (change.entry == nil ? -1 : 1))
        }
        (self.changes, self.more) = (changes, more)
        cost = size + sorted.count * (MemoryLayout<MapChange>.stride + 4)
    }
    deinit { Memory.release(memory) }

    /// Returns the range of changes within the bounds.
    fileprivate func range(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?) -> Range<Int> {
        let start = first(notBelow: low), end = high.map { first(notBelow: $0) } ?? changes.count
        return start..<max(start, end)
    }

    private func first(notBelow key: UnsafeRawBufferPointer) -> Int {
        var low = 0, high = changes.count
        while low < high {
            let middle = (low + high) >> 1
            if Bytes.compare(changes[middle].key, key) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns how many more entries lie within the bounds than in the tree.
    fileprivate func more(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?) -> Int {
        let range = range(from: low, to: high)
        return Int(more[range.upperBound]) - Int(more[range.lowerBound])
    }
}

/// The entries of an index, from its tree and overlay.
extension IndexCache.Tree {
    /// Returns the number of entries within the bounds. O(key length + log n).
    func count(from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?) -> Int {
        (root?.count(from: low, to: high) ?? 0) + (overlay?.more(from: low, to: high) ?? 0)
    }

    /// Calls `body` with each entry within the bounds, in order or backwards, until it returns false.
    func forEach(
        from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, isBackwards: Bool, _ body: (UnsafeRawBufferPointer) -> Bool
    ) {
        guard let overlay else { return walk(root, from: low, to: high, isBackwards: isBackwards, body) }
        var left = overlay.range(from: low, to: high), goesOn = true
        /// The next change, in the order of the walk.
        func next() -> MapChange? { left.isEmpty ? nil : overlay.changes[isBackwards ? left.upperBound - 1 : left.lowerBound] }
        func pass() { left = isBackwards ? left.dropLast() : left.dropFirst() }
        walk(root, from: low, to: high, isBackwards: isBackwards) { key in
            while let change = next() {
                let order = Bytes.compare(change.key, key)
                guard isBackwards ? order >= 0 : order <= 0 else { break }
                pass()
                if change.entry != nil { goesOn = body(change.key) }
                if order == 0 { return goesOn }
                if !goesOn { return false }
            }
            goesOn = body(key)
            return goesOn
        }
        while goesOn, let change = next() {
            pass()
            if change.entry != nil { goesOn = body(change.key) }
        }
    }

    @inline(__always)
    private func walk(
        _ root: MapNode?, from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, isBackwards: Bool,
        _ body: (UnsafeRawBufferPointer) -> Bool
    ) {
        if isBackwards {
            root?.forEachBackwards(from: low, to: high) { key, _ in body(key) }
        } else {
            root?.forEach(from: low, to: high) { key, _ in body(key) }
        }
    }

    /// Returns the same tree with all entries in its nodes.
    func withoutOverlay() throws -> IndexCache.Tree {
        guard let overlay else { return self }
        try Memory.expect(overlay.changes.count * 64, "Making an index")
        let whole = try MapNode.applying(overlay.changes[...], to: root, deepest: IndexMaking.deepestPrefix)
        return IndexCache.Tree(digest, ordinal, whole, values: values, changes: changes)
    }
}
