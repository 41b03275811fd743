/// The bytes of a flat map in place, and which of them were verified. Each block has a checksum, so a lookup verifies only the blocks that
/// it reads.
///
///     file   = what `FlatMap` describes · checksum u32 × blocks · footer
///     footer = magic u64 · id (16 bytes) · size of the nodes u64 · entries u64 · offset of the root / 4 u32
///              · checksum of the checksums and of the footer so far u32
///
/// A checksum detects damage by a medium, but not forged bytes. So every number that is read is checked against its bounds.
///
/// Immutable; safe from all threads, except that `extent` and `isGood` may be called by one thread at a time.
final class FlatMapFile: @unchecked Sendable {
    // Sendable: its user, `LazyMapReader`, has a lock; before that, only one thread has the file.
    static let magic: UInt64 = 0x3354_414C_4653_564C
    static let blockSize = 16 << 10
    static let footerSize = 48

    let id: RandomName
    /// The number of entries; at least one.
    let count: Int
    /// The offset of the root, in units of four bytes. Not checked.
    let root: UInt32
    let memory: OpenCache
    let nodes: UnsafeRawBufferPointer
    let slots: UnsafePointer<MapEntry>
    private let covered: UnsafeRawBufferPointer
    private let checksums: UnsafeRawBufferPointer
    /// The blocks that were verified.
    private var checked: [Bool]
    /// The bytes of the verified blocks.
    private(set) var checkedBytes = 0

    /// Nil if the bytes are no flat map, incomplete, or unreadable. O(blocks).
    init?(_ memory: OpenCache) {
        let bytes = memory.bytes
        guard bytes.count >= FlatMapFile.footerSize, let base = bytes.baseAddress, Int(bitPattern: base) & 7 == 0 else { return nil }
        let end = bytes.count - FlatMapFile.footerSize, footer = base + end
        guard memory.fill(end..<bytes.count), footer.loadUnaligned(as: UInt64.self) == FlatMapFile.magic,
            let nodesSize = Int(exactly: footer.loadUnaligned(fromByteOffset: 24, as: UInt64.self)),
            let count = Int(exactly: footer.loadUnaligned(fromByteOffset: 32, as: UInt64.self)),
            count > 0, count <= Int(UInt32.max), nodesSize > 0, nodesSize & 15 == 0, nodesSize <= end
        else { return nil }
        let size = nodesSize + count * MemoryLayout<MapEntry>.stride, blocks = FlatMapFile.blocks(of: size)
        guard size <= end, end - size == blocks * 4, memory.fill(size..<end),
            Bytes.crc32c(UnsafeRawBufferPointer(start: base + size, count: blocks * 4 + FlatMapFile.footerSize - 4))
                == footer.loadUnaligned(fromByteOffset: 44, as: UInt32.self)
        else { return nil }
        id = RandomName(loading: bytes, at: end + 8)
        self.memory = memory
        self.count = count
        root = footer.loadUnaligned(fromByteOffset: 40, as: UInt32.self)
        nodes = UnsafeRawBufferPointer(start: base, count: nodesSize)
        slots = (base + nodesSize).assumingMemoryBound(to: MapEntry.self)
        covered = UnsafeRawBufferPointer(start: base, count: size)
        checksums = UnsafeRawBufferPointer(start: base + size, count: blocks * 4)
        checked = Array(repeating: false, count: blocks)
    }

    static func blocks(of size: Int) -> Int { (size + blockSize - 1) / blockSize }

    /// Returns whether these bytes, counted from the first node, are as they were written. O(size) the first time.
    func isGood(_ range: Range<Int>) -> Bool {
        guard range.lowerBound >= 0, range.upperBound <= covered.count else { return false }
        if range.isEmpty { return true }
        for block in range.lowerBound / FlatMapFile.blockSize...(range.upperBound - 1) / FlatMapFile.blockSize where !checked[block] {
            guard isWhole(block) else { return false }
            checked[block] = true
            checkedBytes += FlatMapFile.blockSize
        }
        return true
    }

    private func isWhole(_ block: Int) -> Bool {
        let start = block * FlatMapFile.blockSize, end = min(start + FlatMapFile.blockSize, covered.count)
        guard memory.fill(start..<end) else { return false }
        let checksum = checksums.loadUnaligned(fromByteOffset: block * 4, as: UInt32.self)
        return Bytes.crc32c(UnsafeRawBufferPointer(rebasing: covered[start..<end])) == checksum
    }

    /// Returns whether one entry can be read.
    func isGood(slot number: Int) -> Bool {
        guard number >= 0, number < count else { return false }
        let start = nodes.count + number * MemoryLayout<MapEntry>.stride
        return isGood(start..<start + MemoryLayout<MapEntry>.stride)
    }

    // MARK: All of it

    /// Returns whether all bytes are as they were written, no node, key or child exceeds its bounds, every walk ends, and all versions are
    /// below `versionLimit`. O(size).
    func isSound(versionLimit: Int) -> Bool {
        guard memory.isMapped || memory.fill(0..<covered.count) else { return false }
        for block in 0..<FlatMapFile.blocks(of: covered.count) {
            guard isWhole(block) else { return false }
            passed((block + 1) * FlatMapFile.blockSize, FlatMapFile.blockSize)
        }
        guard nodesAreSound else { return false }
        for i in 0..<count {
            guard slots[i].isPossible(versionLimit: versionLimit) else { return false }
            passed(nodes.count + (i + 1) * MemoryLayout<MapEntry>.stride, MemoryLayout<MapEntry>.stride)
        }
        if memory.isMapped { memory.letGo(0..<covered.count) }
        return true
    }

    private static let strideLetGo = 1 << 20

    /// Releases the pages that a check of the whole file has passed, so that only a stretch of a mapped file counts as the process's
    /// memory.
    /// - Parameters:
    ///   - end: the end of the checked bytes.
    ///   - size: the bytes checked since the last call.
    @inline(__always)
    private func passed(_ end: Int, _ size: Int) {
        let stride = FlatMapFile.strideLetGo
        guard memory.isMapped, end / stride != (end - size) / stride else { return }
        memory.letGo(max(0, end - size - stride)..<min(end, covered.count))
    }

    private var nodesAreSound: Bool {
        guard let base = nodes.baseAddress else { return false }
        // Nodes whose parent has not been met yet: it follows later, exactly once.
        var waiting: [UInt32: (first: UInt32, count: UInt32, prefix: UInt32, isLeaf: Bool)] = [:]
        var at = 0
        while at + FlatMap.headerSize <= nodes.count {
            let node = FlatMap.Node(at: base + at)
            if !node.isLeaf, node.count == 0 { break } // padding
            guard let used = extent(of: at, where: { _ in true }) else { return false }
            if !node.isLeaf {
                var entries = 0
                for i in 0..<node.symbolCount {
                    if i > 0, node.symbols[i - 1] >= node.symbols[i] { return false }
                    guard let child = waiting.removeValue(forKey: node.child(i)), Int(child.first) == node.first + entries,
                        Int(child.prefix) >= node.prefixCount + (child.isLeaf ? 0 : 1)
                    else { return false }
                    entries += Int(child.count)
                }
                guard entries == node.count else { return false }
            }
            waiting[UInt32(truncatingIfNeeded: at / 4)] = (UInt32(node.first), UInt32(node.count), UInt32(node.prefixCount), node.isLeaf)
            at += (used + 3) & ~3
            passed(at, (used + 3) & ~3)
        }
        guard nodes.count - at < 16, waiting.count == 1, let top = waiting[root], top.first == 0, Int(top.count) == count else {
            return false
        }
        return true
    }

    // MARK: One node

    /// Returns the size of the node at an offset; nil if it is invalid. `isGood` verifies bytes before they are read.
    func extent(of at: Int, where isGood: (Range<Int>) -> Bool) -> Int? {
        guard let base = nodes.baseAddress, at >= 0, at & 3 == 0, at <= nodes.count - FlatMap.headerSize,
            isGood(at..<at + FlatMap.headerSize)
        else { return nil }
        let node = FlatMap.Node(at: base + at), size = nodes.count - at
        guard node.count > 0, node.first <= count, node.count <= count - node.first else { return nil }
        if !node.isLeaf {
            let used = node.childrenOffset + node.symbolCount * 4 + node.prefixCount
            guard node.symbolCount >= 2, used <= size, node.prefixCount < MapNode.deepestPrefix, isGood(at..<at + used) else { return nil }
            return used
        }
        let ends = node.prefixOffset + node.prefixCount
        guard node.kind <= 2, ends <= size, isGood(at..<at + ends) else { return nil }
        var last = 0
        for i in 0..<node.count {
            let end = node.end(i)
            guard end >= last, node.prefixCount + end - last <= Limits.valueIDSize else { return nil }
            last = end
        }
        guard ends + last <= size, isGood(at..<at + ends + last) else { return nil }
        return ends + last
    }
}
