/// Writes a flat map from sorted keys. In memory are the slots (16 bytes per entry; if there are many and a file can hold them, only some),
/// and the keys of unfinished leaves.
///
/// The shape of a node, whether more keys share its prefix than fit a leaf, must be known before it is written. Source of the method: the
/// bottom-up traversal of longest-common-prefix intervals, M. Abouelhoda, S. Kurtz, E. Ohlebusch, "Replacing suffix trees with enhanced
/// suffix arrays" (2004). An interval with few keys is not written but left to the enclosing one.
struct FlatMapBuilder {
    /// Keys that share a prefix of `depth` bytes and end with the newest key.
    private struct Interval {
        var depth: Int
        /// Where the node's keys begin among the waiting keys.
        var start: Int
        /// Written subtrees, and the number of waiting keys before each.
        var built: [(before: Int, subtree: Subtree)] = []
    }
    /// A written node.
    private struct Subtree {
        var offset: UInt32
        var first: Int
        var count: Int
        var prefix: [UInt8]
    }
    /// A key that waits until its leaf is complete.
    private struct Waiting {
        var start: Int
        var size: Int
        var number: Int
    }

    private let writer: any CacheWriter
    private var slots: [MapEntry] = []
    /// The slots that will be written after the nodes, and their number.
    private let aside: (any CacheWriter)?
    private var slotsAside = 0
    private static let mostSlots = 1 << 16
    private var stack: [Interval] = []
    private var waiting: [Waiting] = []
    private var bytes: [UInt8] = []
    private var nodesSize = 0
    private var node: [UInt8] = []
    /// The checksums of complete blocks, and of the current block, with its size.
    private var checksums: [UInt32] = []
    private var checksum: UInt32 = 0
    private var inBlock = 0
    /// The outermost subtree, once all intervals are closed.
    private var top: Subtree?

    /// - Parameters:
    ///   - expected: the approximate number of entries.
    ///   - aside: another cache, which holds the slots if there are many.
    init(_ writer: any CacheWriter, expected: Int, aside: (any CacheWriter)? = nil) {
        self.writer = writer
        self.aside = aside
        let expected = aside == nil ? expected : min(expected, FlatMapBuilder.mostSlots)
        // If this fails the array grows step by step, and `append` throws if it cannot.
        if (try? Memory.expect(expected * MemoryLayout<MapEntry>.stride, "")) != nil { slots.reserveCapacity(expected) }
    }

    var count: Int { slotsAside + slots.count }

    /// Adds an entry. Its key must be above all before.
    /// - Throws: `.internal` if it is not; errors of the writer.
    mutating func append(_ key: UnsafeRawBufferPointer, _ entry: MapEntry) throws {
        if let last = waiting.last {
            let depth = try bytes.withUnsafeBytes { bytes in
                let last = UnsafeRawBufferPointer(rebasing: bytes[last.start..<last.start + last.size])
                let shared = MapNode.commonPrefix(last, key)
                guard shared < key.count, shared == last.count || last[shared] < key[shared] else {
                    throw StoreError(.internal, "The entries of a map came out of order.")
                }
                return shared
            }
            try close(to: depth)
        }
        try Memory.grow(&slots, "Making a map of many values")
        try Memory.grow(&bytes, by: key.count, "Making a map of many values")
        waiting.append(Waiting(start: bytes.count, size: key.count, number: count))
        bytes.append(contentsOf: key)
        slots.append(entry)
        if slots.count == FlatMapBuilder.mostSlots { try putAside() }
    }

    private mutating func putAside() throws {
        guard let aside else { return }
        try slots.withUnsafeBytes { try aside.append($0) }
        slotsAside += slots.count
        slots.removeAll(keepingCapacity: true)
    }

    private mutating func writeSlots() throws {
        guard slotsAside > 0, let aside else { return try slots.withUnsafeBytes { try write($0) } }
        try putAside()
        let all = try aside.finish(), piece = 1 << 20
        for start in stride(from: 0, to: all.bytes.count, by: piece) {
            let range = start..<min(start + piece, all.bytes.count)
            try write(UnsafeRawBufferPointer(rebasing: all.bytes[range]))
            all.letGo(range)
        }
    }

    /// Closes the intervals deeper than `depth`, and opens one of exactly that depth if there is none.
    private mutating func close(to depth: Int) throws {
        var start = waiting.count - 1
        var carried: Subtree?
        while let top = stack.last, top.depth > depth {
            stack.removeLast()
            start = top.start
            carried = try finish(top)
            if let subtree = carried, let outer = stack.last, outer.depth >= depth {
                stack[stack.count - 1].built.append((start, subtree))
                carried = nil
            }
        }
        if depth < 0 { top = carried }
        guard depth >= 0, (stack.last?.depth ?? -1) < depth else { return }
        stack.append(Interval(depth: depth, start: start, built: carried.map { [(start, $0)] } ?? []))
    }

    /// Writes an interval if its keys do not fit a leaf, and removes them from the waiting keys.
    private mutating func finish(_ interval: Interval) throws -> Subtree? {
        let count = interval.built.reduce(waiting.count - interval.start) { $0 + $1.subtree.count }
        // Subtrees were written because they did not fit a leaf.
        let isLeaf =
            interval.built.isEmpty && count <= MapNode.leafCapacity && bytes.count - waiting[interval.start].start <= MapNode.leafBytes
        guard !isLeaf, interval.depth < MapNode.deepestPrefix else { return nil }
        var symbols: [UInt16] = [], children: [Subtree] = []
        var at = interval.start, next = 0
        while at < waiting.count || next < interval.built.count {
            if next < interval.built.count, interval.built[next].before == at {
                let subtree = interval.built[next].subtree
                symbols.append(UInt16(subtree.prefix[interval.depth]) + 1)
                children.append(subtree)
                next += 1
                continue
            }
            let limit = next < interval.built.count ? interval.built[next].before : waiting.count
            let symbol = self.symbol(of: waiting[at], at: interval.depth)
            var end = at + 1
            while end < limit, self.symbol(of: waiting[end], at: interval.depth) == symbol { end += 1 }
            symbols.append(symbol)
            children.append(try writeLeaf(at..<end))
            at = end
        }
        let prefix: [UInt8]
        if let first = children.first { prefix = Array(first.prefix.prefix(interval.depth)) } else { prefix = [] }
        node.removeAll(keepingCapacity: true)
        let first = children.first?.first ?? 0
        beginNode(kind: 0, symbols: symbols.count, count: count, first: first, prefix: prefix.count)
        for symbol in symbols { put(symbol) }
        pad()
        for child in children { put(child.offset) }
        node.append(contentsOf: prefix)
        let offset = try writeNode()
        if let start = interval.start < waiting.count ? waiting[interval.start].start : nil {
            waiting.removeLast(waiting.count - interval.start)
            bytes.removeLast(bytes.count - start)
        }
        return Subtree(offset: offset, first: first, count: count, prefix: prefix)
    }

    private func symbol(of key: Waiting, at depth: Int) -> UInt16 { key.size > depth ? UInt16(bytes[key.start + depth]) + 1 : 0 }

    private mutating func writeLeaf(_ range: Range<Int>) throws -> Subtree {
        let a = waiting[range.lowerBound], b = waiting[range.upperBound - 1]
        let shared =
            range.count == 1
            ? a.size
            : bytes.withUnsafeBytes {
                MapNode.commonPrefix(
                    UnsafeRawBufferPointer(rebasing: $0[a.start..<a.start + a.size]),
                    UnsafeRawBufferPointer(rebasing: $0[b.start..<b.start + b.size]))
            }
        let size = range.reduce(0) { $0 + waiting[$1].size - shared }
        let isWide = size > Int(UInt16.max)
        node.removeAll(keepingCapacity: true)
        beginNode(kind: isWide ? 2 : 1, symbols: 0, count: range.count, first: a.number, prefix: shared)
        var end = 0
        for i in range {
            end += waiting[i].size - shared
            if isWide { put(UInt32(truncatingIfNeeded: end)) } else { put(UInt16(truncatingIfNeeded: end)) }
        }
        node.append(contentsOf: bytes[a.start..<a.start + shared])
        for i in range { node.append(contentsOf: bytes[waiting[i].start + shared..<waiting[i].start + waiting[i].size]) }
        return Subtree(offset: try writeNode(), first: a.number, count: range.count, prefix: Array(bytes[a.start..<a.start + shared]))
    }

    private mutating func beginNode(kind: UInt8, symbols: Int, count: Int, first: Int, prefix: Int) {
        node.append(kind)
        node.append(0)
        put(UInt16(truncatingIfNeeded: symbols))
        put(UInt32(truncatingIfNeeded: count))
        put(UInt32(truncatingIfNeeded: first))
        put(UInt32(truncatingIfNeeded: prefix))
    }

    private mutating func put<T: FixedWidthInteger>(_ value: T) { withUnsafeBytes(of: value) { node.append(contentsOf: $0) } }
    private mutating func pad() { while node.count & 3 != 0 { node.append(0) } }

    private mutating func writeNode() throws -> UInt32 {
        pad()
        guard let offset = UInt32(exactly: nodesSize / 4) else {
            throw StoreError(.tooLarge, "A map has more nodes than a flat map can hold (16 GiB).")
        }
        try node.withUnsafeBytes { try write($0) }
        nodesSize += node.count
        return offset
    }

    /// Writes bytes that are part of blocks.
    private mutating func write(_ bytes: UnsafeRawBufferPointer) throws {
        try writer.append(bytes)
        var at = 0
        while at < bytes.count {
            let count = min(bytes.count - at, FlatMapFile.blockSize - inBlock)
            checksum = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[at..<at + count]), from: checksum)
            at += count
            inBlock += count
            if inBlock == FlatMapFile.blockSize { endBlock() }
        }
    }

    private mutating func endBlock() {
        checksums.append(checksum)
        checksum = 0
        inBlock = 0
    }

    /// Writes the rest. Returns the bytes; nil if there were no entries.
    mutating func finish(_ id: RandomName) throws -> OpenCache? {
        guard !waiting.isEmpty || !stack.isEmpty else { return nil }
        try close(to: -1)
        // The subtree of the last interval is the root; if keys still wait they form one leaf.
        let root: UInt32
        if let top { root = top.offset } else { root = try writeLeaf(0..<waiting.count).offset }
        let padding = [UInt8](repeating: 0, count: (16 - nodesSize & 15) & 15)
        try padding.withUnsafeBytes { try write($0) }
        nodesSize += padding.count
        let count = count
        try writeSlots()
        if inBlock > 0 { endBlock() }
        node.removeAll(keepingCapacity: true)
        for checksum in checksums { put(checksum) }
        let footer = node.count
        put(FlatMapFile.magic)
        node.append(contentsOf: [UInt8](repeating: 0, count: 16))
        node.withUnsafeMutableBytes { id.store(in: $0, at: footer + 8) }
        put(UInt64(nodesSize))
        put(UInt64(count))
        put(root)
        put(node.withUnsafeBytes { Bytes.crc32c($0) })
        try node.withUnsafeBytes { try writer.append($0) }
        slots = []
        return try writer.finish()
    }
}
