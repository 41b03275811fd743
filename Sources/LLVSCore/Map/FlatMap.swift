import CLLVSShims

/// The map of one version as one run of bytes, used in place: a persisted map. If it is in a file it is read from there; an unnamed file is
/// mapped, so that it takes no memory of the process. Opening it checks all bytes once (see `LazyMapReader` for reading less).
///
///     flat map = node ... · padding to 16 · slot × entries, and what `FlatMapFile` adds
///     slot     = storing version u32 · size u32 · offset of the body u64          (a `MapEntry`), in order of the keys
///     node     = kind u8 (0 inner, 1 leaf, 2 leaf with wide ends) · 0 u8 · symbols u16 · entries in its subtree u32
///              · number of the first of them u32 · size of the prefix u32 · body · padding to 4
///     inner    = symbol u16 × symbols · padding to 4 · offset of the child / 4 u32 × symbols · prefix
///     leaf     = end of the key's rest (u16, or u32 when wide) × entries · prefix · rest of each key
///
/// The shape is that of `MapNode`. The prefix is shared by all keys of a subtree; the keys of a leaf are the prefix and their rests.
/// Children precede their parents. Integers are in this machine's byte order. Versions are the numbers of the history index that names the
/// map by its id; without that index the map is meaningless. `init` checks all checksums and that no node exceeds its bounds, so reads need
/// no checks.
///
/// Immutable; safe from all threads.
final class FlatMap: @unchecked Sendable {
    // Sendable: immutable.
    static let namePrefix = CacheDirectory.mapPrefix
    static let headerSize = 16

    let id: RandomName
    let count: Int
    let root: UInt32
    let memory: OpenCache
    private let nodes: UnsafeRawPointer
    let slots: UnsafePointer<MapEntry>
    /// Separate `slots`, if they are not in the file: in memory, or in a file of their own.
    private let ownSlots: UnsafeMutablePointer<MapEntry>?
    private let slotsFile: OpenCache?
    /// The map that owns the nodes, if it is another one.
    let original: FlatMap?

    /// Returns nil if the bytes are invalid. `versionLimit`: the ordinals of storing versions must be below it. O(size).
    init?(_ file: FlatMapFile, versionLimit: Int) {
        guard let base = file.nodes.baseAddress, file.isSound(versionLimit: versionLimit) else { return nil }
        id = file.id
        count = file.count
        root = file.root
        memory = file.memory
        nodes = base
        slots = file.slots
        ownSlots = nil
        slotsFile = nil
        original = nil
    }

    /// Nil also if the bytes are no flat map.
    convenience init?(_ memory: OpenCache, versionLimit: Int) {
        guard let file = FlatMapFile(memory) else { return nil }
        self.init(file, versionLimit: versionLimit)
    }

    /// A map with the same keys and some other entries. `changes` gives entries by their numbers, all below `count`.
    init(_ other: FlatMap, replacing changes: [(number: Int, entry: MapEntry)]) {
        let copy = HugePages.allocate(MapEntry.self, capacity: other.count)
        copy.initialize(from: other.slots, count: other.count)
        for (number, entry) in changes where number < other.count { copy[number] = entry }
        id = other.id
        count = other.count
        root = other.root
        memory = other.memory
        nodes = other.nodes
        slots = UnsafePointer(copy)
        ownSlots = copy
        slotsFile = nil
        original = other.original ?? other
    }

    /// Copies a map with other entries, as the initializer above, but with the slots in a file of their own. Nil if that file is not
    /// mapped. `changes` are sorted by number.
    init?(_ other: FlatMap, replacing changes: [(number: Int, entry: MapEntry)], to writer: any CacheWriter) throws {
        let piece = 4_096, stride = MemoryLayout<MapEntry>.stride
        var next = 0, start = 0
        try withUnsafeTemporaryAllocation(of: MapEntry.self, capacity: piece) { entries in
            while start < other.count {
                let count = min(piece, other.count - start)
                guard let base = entries.baseAddress else { return }
                base.update(from: other.slots + start, count: count)
                while next < changes.count, changes[next].number < start + count {
                    if changes[next].number >= start { entries[changes[next].number - start] = changes[next].entry }
                    next += 1
                }
                try writer.append(UnsafeRawBufferPointer(start: base, count: count * stride))
                start += count
            }
        }
        let file = try writer.finish()
        guard file.isMapped, file.bytes.count == other.count * stride, let base = file.bytes.baseAddress else { return nil }
        other.letGoOfPages()
        id = other.id
        count = other.count
        root = other.root
        memory = other.memory
        nodes = other.nodes
        slots = base.assumingMemoryBound(to: MapEntry.self)
        ownSlots = nil
        slotsFile = file
        original = other.original ?? other
    }

    deinit { ownSlots?.deallocate() }

    /// Bytes of its own memory, and with the memory shared with the map that owns the nodes.
    var ownSize: Int { ownSlots == nil ? 0 : count * MemoryLayout<MapEntry>.stride }
    var size: Int { memory.memory + ownSize }
    /// Releases the resident pages of a mapped file, which count as the process's memory.
    func letGoOfPages() {
        if memory.isMapped { memory.letGo(0..<memory.bytes.count) }
        if let slotsFile { slotsFile.letGo(0..<slotsFile.bytes.count) }
    }

    /// Returns whether both have the same nodes, so that entries can be compared by their numbers.
    func hasNodes(of other: FlatMap) -> Bool { nodes == other.nodes }

    // MARK: Nodes

    func node(_ offset: UInt32) -> Node {
        MapWork.read()
        return Node(at: nodes + Int(offset) * 4)
    }

    /// Returns the number of the key's entry in a subtree; nil if it is absent.
    func find(_ key: UnsafeRawBufferPointer, beneath offset: UInt32) -> Int? {
        guard let leaf = leaf(of: key, beneath: offset) else { return nil }
        prefetch(leaf)
        return leaf.index(of: key).map { leaf.first + $0 }
    }

    /// Returns the leaf that would hold a key. Does not read the leaf.
    @inline(__always)
    func leaf(of key: UnsafeRawBufferPointer, beneath offset: UInt32) -> Node? {
        var node = node(offset)
        while !node.isLeaf {
            let depth = node.prefixCount
            guard key.count >= depth, let i = node.childIndex(MapNode.symbol(of: key, at: depth)) else { return nil }
            node = self.node(node.child(i))
        }
        return node
    }

    /// Prefetches all lines of a leaf that a search reads. Loading them one after the other would dominate its time.
    @inline(__always)
    func prefetch(_ leaf: Node) {
        for i in 1..<6 { llvs_shim_prefetch(leaf.at + i * 64) }
        for i in 0..<min(4, (leaf.count + 3) / 4) { llvs_shim_prefetch(slots + leaf.first + i * 4) }
    }

    /// Calls `body` with each number and key of a subtree in order, until it returns false. Keys are valid during the call.
    @discardableResult
    /// `wanted`: whether to visit entries, by their first number and count; called for whole nodes.
    func forEach(
        beneath offset: UInt32, where wanted: (Int, Int) -> Bool = { _, _ in true }, _ body: (Int, UnsafeRawBufferPointer) throws -> Bool
    ) rethrows -> Bool {
        let top = node(offset)
        guard wanted(top.first, top.count) else { return true }
        if top.isLeaf { return try forEachKey(of: top, 0..<top.count, body) }
        // Walks use explicit stacks, here and below, as in `MapNode`. This stack holds ancestors and the index of their next child, so a
        // node whose children are leaves allocates nothing.
        var above: [(node: UInt32, next: Int)] = [], at = offset, next = 0
        walk: while true {
            let node = node(at)
            while next < node.symbolCount {
                let offset = node.child(next), child = self.node(offset)
                next += 1
                guard wanted(child.first, child.count) else { continue }
                if child.isLeaf {
                    guard try forEachKey(of: child, 0..<child.count, body) else { return false }
                    continue
                }
                if next < node.symbolCount { above.append((at, next)) }
                (at, next) = (offset, 0)
                continue walk
            }
            guard let last = above.popLast() else { return true }
            (at, next) = last
        }
    }

    /// Calls `body` with the keys of some of a leaf's entries, joined from prefix and rest.
    func forEachKey(of leaf: Node, _ range: Range<Int>, isBackwards: Bool = false, _ body: (Int, UnsafeRawBufferPointer) throws -> Bool)
        rethrows -> Bool
    {
        guard !range.isEmpty else { return true }
        let prefix = leaf.prefix
        var longest = 0
        for i in range { longest = max(longest, leaf.rest(i).count) }
        return try withUnsafeTemporaryAllocation(byteCount: prefix.count + longest + 1, alignment: 8) { key in
            key.copyMemory(from: prefix)
            for step in 0..<range.count {
                let i = isBackwards ? range.upperBound - 1 - step : range.lowerBound + step
                let rest = leaf.rest(i)
                UnsafeMutableRawBufferPointer(rebasing: key[prefix.count...]).copyMemory(from: rest)
                guard try body(leaf.first + i, UnsafeRawBufferPointer(rebasing: key[0..<prefix.count + rest.count])) else { return false }
            }
            return true
        }
    }

    /// Calls `body` for the keys from `low` inclusive to `high` exclusive.
    func forEach(
        beneath offset: UInt32, from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?,
        _ body: (Int, UnsafeRawBufferPointer) -> Bool
    ) -> Bool { walk(beneath: offset, from: low, to: high, isBackwards: false, body) }

    /// Calls `body` for the keys backwards: from the last key below `high` to the first not below `low`.
    func forEachBackwards(
        beneath offset: UInt32, from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?,
        _ body: (Int, UnsafeRawBufferPointer) -> Bool
    ) -> Bool { walk(beneath: offset, from: low, to: high, isBackwards: true, body) }

    private func walk(
        beneath offset: UInt32, from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?, isBackwards: Bool,
        _ body: (Int, UnsafeRawBufferPointer) -> Bool
    ) -> Bool {
        func forEachKeyWithin(_ leaf: Node) -> Bool {
            let first = leaf.search(low).index, end = high.map { leaf.search($0).index } ?? leaf.count
            return forEachKey(of: leaf, first..<max(first, end), isBackwards: isBackwards, body)
                && (isBackwards ? first == 0 : end == leaf.count)
        }
        let top = node(offset)
        if top.isLeaf { return forEachKeyWithin(top) }
        return ShortStack<Step>.run { above in
            walk(Step(node: offset), &above, from: low, to: high, isBackwards: isBackwards, forEachKeyWithin, body)
        }
    }

    /// The position of a walk.
    private struct Step: BitwiseCopyable {
        let node: UInt32
        var next = 0
        var isWithin = false
    }

    private func walk(
        _ first: Step, _ above: inout ShortStack<Step>, from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?,
        isBackwards: Bool,
        _ forEachKeyWithin: (Node) -> Bool, _ body: (Int, UnsafeRawBufferPointer) -> Bool
    ) -> Bool {
        var at = first
        walk: while true {
            let node = node(at.node), count = node.symbolCount
            while at.next < count {
                let i = isBackwards ? count - 1 - at.next : at.next
                at.next += 1
                switch at.isWithin ? .within : MapNode.position(ofChildAt: node.symbols[i], of: node.prefix, from: low, to: high) {
                case .before: if isBackwards { return false }
                case .behind: if !isBackwards { return false }
                case let position:
                    let offset = node.child(i), child = self.node(offset)
                    if child.isLeaf {
                        let isThrough =
                            position == .within
                            ? forEachKey(of: child, 0..<child.count, isBackwards: isBackwards, body) : forEachKeyWithin(child)
                        guard isThrough else { return false }
                        continue
                    }
                    if at.next < count { above.push(at) }
                    at = Step(node: offset, isWithin: position == .within)
                    continue walk
                }
            }
            guard let last = above.pop() else { return true }
            at = last
        }
    }

    /// Returns the number of keys in the range within a subtree.
    func count(beneath offset: UInt32, from low: UnsafeRawBufferPointer, to high: UnsafeRawBufferPointer?) -> Int {
        var stack = [offset], total = 0
        while let next = stack.popLast() {
            let node = node(next)
            guard !node.isLeaf else {
                total += max(0, (high.map { node.search($0).index } ?? node.count) - node.search(low).index)
                continue
            }
            children: for i in 0..<node.symbolCount {
                switch MapNode.position(ofChildAt: node.symbols[i], of: node.prefix, from: low, to: high) {
                case .before: continue
                case .behind: break children
                case .within: total += self.node(node.child(i)).count
                case .across: stack.append(node.child(i))
                }
            }
        }
        return total
    }

    /// Calls `body` with the key of an entry; `number` is below `count`. The key is valid during the call.
    func withKey(_ number: Int, _ body: (UnsafeRawBufferPointer) -> Void) {
        var node = node(root)
        while !node.isLeaf {
            var low = 0, high = node.symbolCount
            while high - low > 1 {
                let middle = (low + high) >> 1
                if self.node(node.child(middle)).first <= number { low = middle } else { high = middle }
            }
            node = self.node(node.child(low))
        }
        let i = number - node.first
        guard i >= 0, i < node.count else { return }
        _ = forEachKey(of: node, i..<i + 1) {
            body($1); return true
        }
    }
}
