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
/// Nodes never change once made and are shared between versions; equal contents have equal digests, so
/// comparing two versions skips what they share. Lookup, insertion, removal and counting cost
/// O(key length + log n); no prefix is a hot spot, since common prefixes are skipped as a whole.
///
///     leaf memory:  [MapEntry × count][end of key, UInt32 × count][key bytes]
final class MapNode: @unchecked Sendable {
    static let leafCapacity = 64
    static let deepestPrefix = 512

    /// Values beneath.
    let count: Int
    let digest: MapDigest
    /// The leaf's memory; nil for inner nodes.
    let leaf: UnsafeMutableRawPointer?
    /// Inner nodes: the common prefix of all keys beneath, from their first byte.
    let prefix: [UInt8]
    /// Inner nodes: 0 where a key ends at the prefix, else 1 + the byte behind it; ascending.
    let symbols: ContiguousArray<UInt16>
    let children: ContiguousArray<MapNode>

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
        var sum = MapDigest()
        for (key, entry) in entries {
            slots[i] = entry
            if let source = key.baseAddress { memcpy(keys + at, source, key.count) }
            at += key.count
            ends[i] = UInt32(truncatingIfNeeded: at)
            sum = sum + MapDigest(key: key, version: entry.version)
            i += 1
        }
        count = n
        digest = sum
        leaf = memory
        prefix = []
        symbols = []
        children = []
    }

    init(prefix: [UInt8], symbols: ContiguousArray<UInt16>, children: ContiguousArray<MapNode>) {
        var n = 0
        var sum = MapDigest()
        for child in children { n += child.count; sum = sum + child.digest }
        count = n
        digest = sum
        leaf = nil
        self.prefix = prefix
        self.symbols = symbols
        self.children = children
    }

    /// A leaf that differs from `other` by the entry of one key: replaced, inserted, or removed.
    fileprivate init(_ other: MapNode, memory: UnsafeMutableRawPointer, count: Int, digest: MapDigest) {
        self.count = count
        self.digest = digest
        leaf = memory
        prefix = []
        symbols = []
        children = []
    }

    deinit { leaf?.deallocate() }

    /// About how much memory the node itself takes.
    var ownSize: Int {
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
        if found {
            let size = count * 20 + Int(end(count - 1))
            let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 8)
            memcpy(memory, leaf, size)
            let old = self.entry(index)
            memory.storeBytes(of: entry, toByteOffset: index * 16, as: MapEntry.self)
            let was = MapDigest(key: key, version: old.version), now = MapDigest(key: key, version: entry.version)
            return MapNode(self, memory: memory, count: count, digest: MapDigest(a: digest.a &- was.a &+ now.a, b: digest.b &- was.b &+ now.b))
        }
        var entries: [(key: UnsafeRawBufferPointer, entry: MapEntry)] = []
        entries.reserveCapacity(count + 1)
        for i in 0..<index { entries.append((self.key(i), self.entry(i))) }
        entries.append((key, entry))
        for i in index..<count { entries.append((self.key(i), self.entry(i))) }
        return MapNode(leaf: entries)
    }

    // MARK: Inner nodes

    /// The symbol of a key that begins with the first `depth` bytes of this node's prefix.
    @inline(__always) static func symbol(of key: UnsafeRawBufferPointer, at depth: Int) -> UInt16 {
        key.count > depth ? UInt16(key[depth]) + 1 : 0
    }

    @inline(__always) func childIndex(_ symbol: UInt16) -> Int? {
        symbols.withUnsafeBufferPointer { symbols in
            var low = 0, high = symbols.count
            while low < high {
                let middle = (low + high) >> 1
                if symbols[middle] < symbol { low = middle + 1 } else { high = middle }
            }
            return low < symbols.count && symbols[low] == symbol ? low : nil
        }
    }

    // MARK: Reading

    /// What prevails for the key; nil when nothing does.
    func lookup(_ key: UnsafeRawBufferPointer) -> MapEntry? {
        var node = Unmanaged.passUnretained(self)
        while true {
            let next: Unmanaged<MapNode>? = node._withUnsafeGuaranteedRef { node in
                guard node.leaf == nil, key.count >= node.prefix.count,
                      let i = node.childIndex(MapNode.symbol(of: key, at: node.prefix.count)) else { return nil }
                return node.children.withUnsafeBufferPointer { Unmanaged.passUnretained($0[i]) }
            }
            if let next { node = next; continue }
            return node._withUnsafeGuaranteedRef { node in
                guard node.leaf != nil else { return nil }
                let (i, found) = node.search(key)
                return found ? node.entry(i) : nil
            }
        }
    }

    /// Checks every rule of the shape; for tests and debug builds. Returns what is wrong.
    func checkInvariants(isRoot: Bool = true) -> String? {
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
                let good = key.count >= prefix.count && Bytes.equal(UnsafeRawBufferPointer(rebasing: key[0..<prefix.count]), prefix.withUnsafeBytes { $0 })
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
