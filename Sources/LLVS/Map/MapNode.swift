#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A node of the map of one version: an ordered, persistent, canonical tree from value ids to entries.
///
/// A radix tree with bucketed leaves. Its shape depends on its contents alone:
///
///     up to 64 keys                  one leaf, keys sorted by bytes
///     more                           an inner node at the longest common prefix of its keys,
///                                    one child per next byte (or "ends here"), in order
///     a common prefix of 512 bytes   one leaf, however many keys, which bounds the depth
///
/// Nodes never change once made and are shared between versions: comparing two versions skips what they share.
/// Lookup, insertion, removal and counting cost O(key length + log n); no prefix is a hot spot, since common prefixes
/// are skipped as a whole. What lies in a checkpoint is one node that stands for all beneath it (`flat`), and is taken
/// apart only along the paths that are changed.
///
///     leaf memory:   [MapEntry × count][end of key, UInt32 × count][key bytes]
///     inner memory:  [symbol UInt16 × symbols][prefix]
final class MapNode: @unchecked Sendable {
    static let leafCapacity = 64
    static let deepestPrefix = 512

    /// Values beneath.
    let count: Int
    /// The leaf's memory; nil for others.
    let leaf: UnsafeMutableRawPointer?
    /// Inner nodes: 0 where a key ends at the prefix, else 1 + the byte behind it; ascending.
    let symbols: UnsafeBufferPointer<UInt16>
    /// Inner nodes: the common prefix of all keys beneath, from their first byte.
    let prefix: UnsafeRawBufferPointer
    let children: ContiguousArray<MapNode>
    /// The checkpoint that this node lies in, and where.
    var flat: FlatMap? { flatReference?.takeUnretainedValue() }
    /// Retained. Looking a value up counts no reference to it: readers on all threads would write that count.
    private let flatReference: Unmanaged<FlatMap>?
    let offset: UInt32

    private static var noSymbols: UnsafeBufferPointer<UInt16> { UnsafeBufferPointer(start: nil, count: 0) }
    private static var noBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }

    /// A leaf of the given entries, sorted by key.
    init(leaf entries: some RandomAccessCollection<(key: UnsafeRawBufferPointer, entry: MapEntry)>) {
        let n = entries.count
        var keyBytes = 0
        for (key, _) in entries { keyBytes += key.count }
        let memory = UnsafeMutableRawPointer.allocate(byteCount: max(1, n * 20 + keyBytes), alignment: 8)
        let slots = memory.bindMemory(to: MapEntry.self, capacity: max(1, n))
        let ends = (memory + n * 16).bindMemory(to: UInt32.self, capacity: max(1, n))
        let keys = memory + n * 20
        var at = 0, i = 0
        for (key, entry) in entries {
            slots[i] = entry
            if let source = key.baseAddress { memcpy(keys + at, source, key.count) }
            at += key.count
            ends[i] = UInt32(truncatingIfNeeded: at)
            i += 1
        }
        count = n
        leaf = memory
        prefix = MapNode.noBytes
        symbols = MapNode.noSymbols
        children = []
        flatReference = nil
        offset = 0
        MapWork.made()
    }

    init(prefix: UnsafeRawBufferPointer, symbols: some Collection<UInt16>, children: ContiguousArray<MapNode>) {
        var n = 0
        for child in children { n += child.count }
        count = n
        leaf = nil
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

    /// What lies in a checkpoint at `offset`.
    init(_ flat: FlatMap, at offset: UInt32) {
        count = flat.node(offset).count
        leaf = nil
        prefix = MapNode.noBytes
        symbols = MapNode.noSymbols
        children = []
        flatReference = .passRetained(flat)
        self.offset = offset
        MapWork.made()
    }

    /// The map that a checkpoint is of.
    convenience init(_ flat: FlatMap) { self.init(flat, at: flat.root) }

    /// A leaf that differs from another by the entry of one key: replaced, inserted, or removed.
    fileprivate init(memory: UnsafeMutableRawPointer, count: Int) {
        self.count = count
        leaf = memory
        prefix = MapNode.noBytes
        symbols = MapNode.noSymbols
        children = []
        flatReference = nil
        offset = 0
        MapWork.made()
    }

    deinit {
        leaf?.deallocate()
        symbols.baseAddress.map { UnsafeMutableRawPointer(mutating: $0).deallocate() }
        flatReference?.release()
    }

    /// The node itself, or one like it that is not in a checkpoint: its keys copied, its children in the checkpoint still.
    var opened: MapNode {
        guard let flat else { return self }
        let node = flat.node(offset)
        guard node.isLeaf else {
            var children = ContiguousArray<MapNode>()
            children.reserveCapacity(node.symbolCount)
            for i in 0..<node.symbolCount { children.append(MapNode(flat, at: node.child(i))) }
            return MapNode(prefix: node.prefix, symbols: node.symbols, children: children)
        }
        var keyBytes = node.count * node.prefixCount
        for i in 0..<node.count { keyBytes += node.rest(i).count }
        let n = node.count
        let memory = UnsafeMutableRawPointer.allocate(byteCount: n * 20 + keyBytes, alignment: 8)
        memory.bindMemory(to: MapEntry.self, capacity: n).initialize(from: flat.slots + node.first, count: n)
        let ends = (memory + n * 16).bindMemory(to: UInt32.self, capacity: n)
        var at = memory + n * 20
        for i in 0..<n {
            let rest = node.rest(i)
            if let source = node.prefix.baseAddress { memcpy(at, source, node.prefixCount) }
            if let source = rest.baseAddress { memcpy(at + node.prefixCount, source, rest.count) }
            at += node.prefixCount + rest.count
            ends[i] = UInt32(truncatingIfNeeded: at - (memory + n * 20))
        }
        return MapNode(memory: memory, count: n)
    }

    /// Whether both are known to have the same contents, without looking further.
    static func isSame(_ a: MapNode, _ b: MapNode) -> Bool {
        if a === b { return true }
        guard a.count == b.count, let x = a.flat, let y = b.flat, a.offset == b.offset, x.hasNodes(of: y) else { return false }
        let first = x.node(a.offset).first
        return x.slots == y.slots || memcmp(x.slots + first, y.slots + first, a.count * MemoryLayout<MapEntry>.stride) == 0
    }

    /// About how much memory the node itself takes.
    var ownSize: Int {
        if flat != nil { return 112 }
        guard leaf != nil else { return 160 + prefix.count + 10 * symbols.count }
        return 112 + 20 * count + (count > 0 ? Int(end(count - 1)) : 0)
    }

    // MARK: Leaves

    @inline(__always) func entry(_ i: Int) -> MapEntry {
        leaf.map { $0.load(fromByteOffset: i * 16, as: MapEntry.self) } ?? MapEntry(version: 0, size: 0, bodyOffset: 0)
    }
    @inline(__always) func end(_ i: Int) -> UInt32 {
        leaf.map { $0.load(fromByteOffset: count * 16 + i * 4, as: UInt32.self) } ?? 0
    }
    @inline(__always) func key(_ i: Int) -> UnsafeRawBufferPointer {
        guard let leaf else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let ends = (leaf + count * 16).assumingMemoryBound(to: UInt32.self)
        let start = i == 0 ? 0 : Int(ends[i - 1])
        return UnsafeRawBufferPointer(start: leaf + count * 20 + start, count: Int(ends[i]) - start)
    }

    /// The first index whose key is not below `key`, and whether it is that key.
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

    /// A copy of a leaf with one entry replaced (`found`) or inserted at `index`.
    func leafSetting(_ key: UnsafeRawBufferPointer, _ entry: MapEntry, at index: Int, found: Bool) -> MapNode {
        guard let leaf else { return self }
        let keyBytes = count > 0 ? Int(end(count - 1)) : 0
        if found {
            let size = count * 20 + keyBytes
            let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 8)
            memcpy(memory, leaf, size)
            memory.storeBytes(of: entry, toByteOffset: index * 16, as: MapEntry.self)
            return MapNode(memory: memory, count: count)
        }
        let n = count + 1
        let memory = UnsafeMutableRawPointer.allocate(byteCount: n * 20 + keyBytes + key.count, alignment: 8)
        memcpy(memory, leaf, index * 16)
        memory.storeBytes(of: entry, toByteOffset: index * 16, as: MapEntry.self)
        memcpy(memory + (index + 1) * 16, leaf + index * 16, (count - index) * 16)
        let before = index == 0 ? 0 : Int(end(index - 1))
        let ends = (memory + n * 16).bindMemory(to: UInt32.self, capacity: n)
        memcpy(ends, leaf + count * 16, index * 4)
        ends[index] = UInt32(truncatingIfNeeded: before + key.count)
        for i in index..<count { ends[i + 1] = end(i) &+ UInt32(truncatingIfNeeded: key.count) }
        let keys = memory + n * 20, source = leaf + count * 20
        memcpy(keys, source, before)
        if let bytes = key.baseAddress { memcpy(keys + before, bytes, key.count) }
        memcpy(keys + before + key.count, source + before, keyBytes - before)
        return MapNode(memory: memory, count: n)
    }

    // MARK: Inner nodes

    /// The symbol of a key that begins with the first `depth` bytes of this node's prefix.
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

    /// What prevails for the key; nil when nothing does.
    func lookup(_ key: UnsafeRawBufferPointer) -> MapEntry? {
        var node = Unmanaged.passUnretained(self)
        while true {
            MapWork.read()
            let next: Unmanaged<MapNode>? = node._withUnsafeGuaranteedRef { node in
                guard !node.children.isEmpty, key.count >= node.prefix.count,
                      let i = node.childIndex(MapNode.symbol(of: key, at: node.prefix.count)) else { return nil }
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

    /// Calls with what prevails for each of some keys, in order; `key` gives them by their numbers. As `lookup`, but memory that
    /// several need is fetched for all of them at the same time.
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
                        if let leaf { flat.askFor(leaf) }
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

    /// Checks every rule of the shape; for tests and debug builds. Returns what is wrong.
    func checkInvariants(isRoot: Bool = true) -> String? {
        if flat != nil { return opened.checkInvariants(isRoot: isRoot) }
        if leaf != nil {
            if count == 0 { return "an empty leaf" }
            for i in 1..<max(1, count) where Bytes.compare(key(i - 1), key(i)) >= 0 { return "keys out of order" }
            if count > MapNode.leafCapacity, MapNode.commonPrefix(key(0), key(count - 1)) < MapNode.deepestPrefix { return "a leaf of \(count)" }
            return nil
        }
        if children.count < 2 || count <= MapNode.leafCapacity { return "an inner node that should not be" }
        if symbols.count != children.count { return "symbols and children differ in number" }
        for i in 1..<symbols.count where symbols[i - 1] >= symbols[i] { return "symbols out of order" }
        for (symbol, child) in zip(symbols, children) {
            var wrong: String?
            child.forEach { key, _ in
                let good = key.count >= prefix.count && Bytes.equal(UnsafeRawBufferPointer(rebasing: key[0..<prefix.count]), prefix)
                    && MapNode.symbol(of: key, at: prefix.count) == symbol
                if !good { wrong = "a key under a prefix that is not its own" }
                return good
            }
            if let wrong = wrong ?? child.checkInvariants(isRoot: false) { return wrong }
        }
        return nil
    }

    static func commonPrefix(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        let n = min(a.count, b.count)
        var i = 0
        while i < n, a[i] == b[i] { i += 1 }
        return i
    }
}
