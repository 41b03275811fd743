/// A node of the map of one version: an ordered, persistent, canonical tree from value ids to entries.
///
/// A radix tree with bucketed leaves. Its shape depends on its contents alone:
///
///     up to 64 keys, 8 KiB of them   one leaf, keys sorted by bytes
///     more                           an inner node at the longest common prefix of its keys,
///                                    one child per next byte (or "ends here"), in order
///     a common prefix of 512 bytes   one leaf, however many keys, which bounds the depth
///
/// Nodes are immutable and shared between versions: comparing two versions skips shared nodes. Lookup, insertion, removal and counting cost
/// O(key length + log n). No prefix is a hot spot, since common prefixes are skipped as a whole. A subtree in a persisted map is
/// represented by one node (`flat`), and opened only along changed paths.
///
/// If only entries of a leaf change, the new leaf shares its keys, so the cost of copying does not depend on the length of ids.
///
///     leaf memory:   MapEntry × count                         (its keys: see `Keys`)
///     inner memory:  [symbol UInt16 × symbols][prefix]
package final class MapNode: @unchecked Sendable {
    // Sendable: immutable until its last reference is gone.
    static let leafCapacity = 64
    /// The most bytes of the keys of a leaf, which bounds the cost of adding a key. At least the length of the longest id.
    static let leafBytes = 8 << 10
    static let deepestPrefix = 512

    /// The number of values in the subtree.
    package let count: Int
    /// The leaf's entries; nil for other nodes.
    let leaf: UnsafeMutablePointer<MapEntry>?
    /// The leaf's keys; nil for other nodes. They are read through the two pointers, since readers on all threads would contend for their
    /// reference count.
    let keys: Keys?
    private let keyEnds: UnsafePointer<UInt32>?
    private let keyBytes: UnsafeRawPointer?
    /// Bytes of the node and its subtree in memory, without persisted maps.
    let memory: Int
    /// Inner nodes: 0 if a key ends at the prefix, otherwise 1 + the byte after it; ascending.
    let symbols: UnsafeBufferPointer<UInt16>
    /// Inner nodes: the common prefix of all keys of the subtree, from their first byte.
    let prefix: UnsafeRawBufferPointer
    @exclusivity(unchecked) private(set) var children: ContiguousArray<MapNode>
    /// The persisted map that contains this node.
    var flat: FlatMap? { flatReference?.takeUnretainedValue() }
    /// A persisted map that contains nodes on the first path down; nil if there is none.
    var someFlat: FlatMap? {
        var node = self
        while true {
            if let flat = node.flat ?? node.children.lazy.compactMap(\.flat).first { return flat }
            guard let child = node.children.first else { return nil }
            node = child
        }
    }
    /// Retained. Lookups count no reference to it, since readers on all threads would contend for the count.
    private let flatReference: Unmanaged<FlatMap>?
    let offset: UInt32

    private static var noSymbols: UnsafeBufferPointer<UInt16> { UnsafeBufferPointer(start: nil, count: 0) }
    private static var noBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    /// The keys of a leaf, shared by successive versions.
    ///
    ///     memory: [end of key, UInt32 × count][key bytes]
    final class Keys: @unchecked Sendable {
        // Sendable: filled before it is shared.
        let ends: UnsafeMutablePointer<UInt32>
        let bytes: UnsafeMutableRawPointer
        let size: Int

        /// Allocates without filling.
        init(count: Int, bytes size: Int) {
            let memory = UnsafeMutableRawPointer.allocate(byteCount: max(1, count * 4 + size), alignment: 4)
            ends = memory.bindMemory(to: UInt32.self, capacity: max(1, count))
            bytes = memory + count * 4
            self.size = count * 4 + size
        }
        deinit { UnsafeMutableRawPointer(ends).deallocate() }
    }

    /// A leaf of the given entries, sorted by key.
    convenience init(leaf entries: some RandomAccessCollection<(key: UnsafeRawBufferPointer, entry: MapEntry)>) {
        let n = entries.count
        let keys = Keys(count: n, bytes: entries.reduce(0) { $0 + $1.key.count })
        let slots = UnsafeMutablePointer<MapEntry>.allocate(capacity: max(1, n))
        var at = 0, i = 0
        for (key, entry) in entries {
            slots[i] = entry
            if let source = key.baseAddress { memcpy(keys.bytes + at, source, key.count) }
            at += key.count
            keys.ends[i] = UInt32(truncatingIfNeeded: at)
            i += 1
        }
        self.init(slots, keys, count: n)
    }

    private init(_ slots: UnsafeMutablePointer<MapEntry>, _ keys: Keys, count: Int) {
        self.count = count
        leaf = slots
        self.keys = keys
        keyEnds = UnsafePointer(keys.ends)
        keyBytes = UnsafeRawPointer(keys.bytes)
        memory = MapNode.leafOverhead + count * MemoryLayout<MapEntry>.stride + keys.size
        prefix = MapNode.noBytes
        symbols = MapNode.noSymbols
        children = []
        flatReference = nil
        offset = 0
        MapWork.made()
    }

    init(prefix: UnsafeRawBufferPointer, symbols: some Collection<UInt16>, children: ContiguousArray<MapNode>) {
        var n = 0, size = 0
        for child in children {
            n += child.count
            size += child.memory
        }
        count = n
        leaf = nil
        keys = nil
        keyEnds = nil
        keyBytes = nil
        self.memory = size + MapNode.innerMemory(prefix: prefix.count, symbols: symbols.count)
        let symbolBytes = symbols.count * 2
        let memory = UnsafeMutableRawPointer.allocate(byteCount: symbolBytes + prefix.count + 1, alignment: 8)
        let list = UnsafeMutableBufferPointer(start: memory.bindMemory(to: UInt16.self, capacity: symbols.count), count: symbols.count)
        _ = list.initialize(fromContentsOf: symbols)
        if let source = prefix.baseAddress { memcpy(memory + symbolBytes, source, prefix.count) }
        self.symbols = UnsafeBufferPointer(list)
        self.prefix = UnsafeRawBufferPointer(start: memory + symbolBytes, count: prefix.count)
        self.children = children
        flatReference = nil
        offset = 0
        MapWork.made()
    }

    /// The node at `offset` of a persisted map.
    init(_ flat: FlatMap, at offset: UInt32) {
        count = flat.node(offset).count
        leaf = nil
        keys = nil
        keyEnds = nil
        keyBytes = nil
        memory = MapNode.flatOverhead
        prefix = MapNode.noBytes
        symbols = MapNode.noSymbols
        children = []
        flatReference = .passRetained(flat)
        self.offset = offset
        MapWork.made()
    }

    /// The root of a persisted map.
    convenience init(_ flat: FlatMap) { self.init(flat, at: flat.root) }

    deinit {
        leaf?.deallocate()
        symbols.baseAddress.map { UnsafeMutableRawPointer(mutating: $0).deallocate() }
        flatReference?.release()
        MapNode.letGo(of: &children)
    }

    /// Releases nodes and their uniquely held subtrees iteratively: a map may be 512 nodes deep, and releasing would recurse that deep.
    private static func letGo(of children: inout ContiguousArray<MapNode>) {
        var stack: ContiguousArray<MapNode> = []
        take(&children, &stack)
        while let node = stack.popLast() { take(&node.children, &stack) }
    }

    private static func take(_ children: inout ContiguousArray<MapNode>, _ stack: inout ContiguousArray<MapNode>) {
        for i in children.indices where !children[i].children.isEmpty && isKnownUniquelyReferenced(&children[i]) {
            stack.append(children[i])
        }
        children = []
    }

    /// The node itself; or, for a node in a persisted map, an equal one in memory: its keys copied, its children still in the persisted
    /// map.
    var opened: MapNode {
        guard let flat else { return self }
        let node = flat.node(offset)
        guard node.isLeaf else {
            var children = ContiguousArray<MapNode>()
            children.reserveCapacity(node.symbolCount)
            for i in 0..<node.symbolCount { children.append(MapNode(flat, at: node.child(i))) }
            return MapNode(prefix: node.prefix, symbols: node.symbols, children: children)
        }
        let n = node.count, keys = Keys(count: n, bytes: n * node.prefixCount + node.end(n - 1))
        let slots = UnsafeMutablePointer<MapEntry>.allocate(capacity: n)
        slots.initialize(from: flat.slots + node.first, count: n)
        var at = 0
        for i in 0..<n {
            let rest = node.rest(i)
            if let source = node.prefix.baseAddress { memcpy(keys.bytes + at, source, node.prefixCount) }
            if let source = rest.baseAddress { memcpy(keys.bytes + at + node.prefixCount, source, rest.count) }
            at += node.prefixCount + rest.count
            keys.ends[i] = UInt32(truncatingIfNeeded: at)
        }
        return MapNode(slots, keys, count: n)
    }

    /// Returns whether both are known to have the same contents, without comparing children.
    static func isSame(_ a: MapNode, _ b: MapNode) -> Bool {
        if a === b { return true }
        guard a.count == b.count, let x = a.flat, let y = b.flat, a.offset == b.offset, x.hasNodes(of: y) else { return false }
        let first = x.node(a.offset).first
        return x.slots == y.slots || memcmp(x.slots + first, y.slots + first, a.count * MemoryLayout<MapEntry>.stride) == 0
    }

    // MARK: Leaves

    /// The bytes of all keys of a leaf.
    var keySize: Int { count > 0 ? keyEnds.map { Int($0[count - 1]) } ?? 0 : 0 }

    @inline(__always) func entry(_ i: Int) -> MapEntry { leaf.map { $0[i] } ?? MapEntry(version: 0, size: 0, bodyOffset: 0) }
    @inline(__always) func key(_ i: Int) -> UnsafeRawBufferPointer {
        guard let keyEnds, let keyBytes else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let start = i == 0 ? 0 : Int(keyEnds[i - 1])
        return UnsafeRawBufferPointer(start: keyBytes + start, count: Int(keyEnds[i]) - start)
    }

    /// Returns the first index whose key is not below `key`, and whether it is that key.
    @inline(__always) func search(_ key: UnsafeRawBufferPointer) -> (index: Int, found: Bool) {
        var low = 0, high = count
        while low < high {
            let middle = (low + high) >> 1
            let order = Bytes.compare(self.key(middle), key)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }

    /// Returns whether a key of this many bytes can be added to a leaf.
    func hasRoom(for key: Int) -> Bool { count < MapNode.leafCapacity && keySize + key <= MapNode.leafBytes }

    /// Returns a copy of a leaf with one entry replaced (`found`) or inserted at `index`.
    func leafSetting(_ key: UnsafeRawBufferPointer, _ entry: MapEntry, at index: Int, found: Bool) -> MapNode {
        guard let leaf, let keys else { return self }
        let n = found ? count : count + 1
        let slots = UnsafeMutablePointer<MapEntry>.allocate(capacity: n)
        if found {
            slots.initialize(from: leaf, count: n)
            slots[index] = entry
            return MapNode(slots, keys, count: n)
        }
        slots.initialize(from: leaf, count: index)
        slots[index] = entry
        (slots + index + 1).initialize(from: leaf + index, count: count - index)
        let new = Keys(count: n, bytes: keySize + key.count), before = index == 0 ? 0 : Int(keys.ends[index - 1])
        memcpy(new.ends, keys.ends, index * 4)
        new.ends[index] = UInt32(truncatingIfNeeded: before + key.count)
        for i in index..<count { new.ends[i + 1] = keys.ends[i] &+ UInt32(truncatingIfNeeded: key.count) }
        memcpy(new.bytes, keys.bytes, before)
        if let bytes = key.baseAddress { memcpy(new.bytes + before, bytes, key.count) }
        memcpy(new.bytes + before + key.count, keys.bytes + before, keySize - before)
        return MapNode(slots, new, count: n)
    }

    // MARK: Inner nodes

    /// Returns the symbol of a key that begins with the first `depth` bytes of this node's prefix.
    @inline(__always) static func symbol(of key: UnsafeRawBufferPointer, at depth: Int) -> UInt16 {
        key.count > depth ? UInt16(key[depth]) + 1 : 0
    }

    @inline(__always) func childIndex(_ symbol: UInt16) -> Int? {
        var low = 0, high = symbols.count
        while low < high {
            let middle = (low + high) >> 1
            if symbols[middle] < symbol { low = middle + 1 } else { high = middle }
        }
        return low < symbols.count && symbols[low] == symbol ? low : nil
    }

    // MARK: Reading

    /// Returns the entry that prevails for the key; nil if there is none.
    package func lookup(_ key: UnsafeRawBufferPointer) -> MapEntry? {
        var node = Unmanaged.passUnretained(self)
        while true {
            MapWork.read()
            let next: Unmanaged<MapNode>? = node._withUnsafeGuaranteedRef { node in
                guard !node.children.isEmpty, key.count >= node.prefix.count,
                    let i = node.childIndex(MapNode.symbol(of: key, at: node.prefix.count))
                else { return nil }
                return node.children.withUnsafeBufferPointer { Unmanaged.passUnretained($0[i]) }
            }
            if let next { node = next; continue }
            return node._withUnsafeGuaranteedRef { node in
                if let flat = node.flatReference {
                    return flat._withUnsafeGuaranteedRef { flat in flat.find(key, beneath: node.offset).map { flat.slots[$0] } }
                }
                guard node.leaf != nil else { return nil }
                let (i, found) = node.search(key)
                return found ? node.entry(i) : nil
            }
        }
    }

    /// Calls `body` with the entry for each of some keys, in order; `key` returns them by number. As `lookup`, but the memory that several
    /// lookups need is prefetched for all of them at once.
    func lookup(_ count: Int, key: (Int) -> UnsafeRawBufferPointer, _ body: (Int, MapEntry?) -> Void) {
        guard let flat = flatReference else {
            for i in 0..<count { body(i, lookup(key(i))) }
            return
        }
        let window = 16
        flat._withUnsafeGuaranteedRef { flat in
            withUnsafeTemporaryAllocation(of: FlatMap.Node?.self, capacity: window) { leaves in
                for start in stride(from: 0, to: count, by: window) {
                    let end = min(start + window, count)
                    for i in start..<end {
                        let leaf = flat.leaf(of: key(i), beneath: offset)
                        if let leaf { flat.prefetch(leaf) }
                        leaves.initializeElement(at: i - start, to: leaf)
                    }
                    for i in start..<end {
                        let leaf = leaves[i - start]
                        body(i, leaf.flatMap { leaf in leaf.index(of: key(i)).map { flat.slots[leaf.first + $0] } })
                    }
                }
            }
        }
    }

    /// Checks every rule of the shape; for tests and debug builds. Returns the first violation.
    func checkInvariants(isRoot: Bool = true) -> String? {
        if flat != nil { return opened.checkInvariants(isRoot: isRoot) }
        if leaf != nil {
            if count == 0 { return "an empty leaf" }
            for i in 1..<max(1, count) where Bytes.compare(key(i - 1), key(i)) >= 0 { return "keys out of order" }
            if count > 1, fewKeyBytes == nil, MapNode.commonPrefix(key(0), key(count - 1)) < MapNode.deepestPrefix {
                return "a leaf of \(count)"
            }
            return nil
        }
        if children.count < 2 || MapNode.fitIntoLeaf(children) { return "an inner node that should not be" }
        if symbols.count != children.count { return "symbols and children differ in number" }
        for i in 1..<symbols.count where symbols[i - 1] >= symbols[i] { return "symbols out of order" }
        for (symbol, child) in zip(symbols, children) {
            var wrong: String?
            child.forEach { key, _ in
                let good =
                    key.count >= prefix.count && Bytes.equal(UnsafeRawBufferPointer(rebasing: key[0..<prefix.count]), prefix)
                    && MapNode.symbol(of: key, at: prefix.count) == symbol
                if !good { wrong = "a key under a prefix that is not its own" }
                return good
            }
            if let wrong = wrong ?? child.checkInvariants(isRoot: false) { return wrong }
        }
        return nil
    }

    package static func commonPrefix(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        let n = min(a.count, b.count)
        guard n > 0, let x = a.baseAddress, let y = b.baseAddress else { return 0 }
        var i = 0
        while i + 8 <= n {
            let difference = (x + i).loadUnaligned(as: UInt64.self).littleEndian ^ (y + i).loadUnaligned(as: UInt64.self).littleEndian
            if difference != 0 { return i + difference.trailingZeroBitCount / 8 }
            i += 8
        }
        while i < n, a[i] == b[i] { i += 1 }
        return i
    }
}
