/// A set of ids as a Bloom filter: a lookup reads one cache line per layer. The filter grows by layers, each several times as large as all
/// before, so lookups read few layers. An id is in the layer that was the last when it was inserted.
///
/// Used by one thread at a time.
final class IDFilter {
    private struct Layer {
        let lines: UInt64
        let memory: MappedMemory
        var words: UnsafeMutablePointer<UInt64> { memory.base.assumingMemoryBound(to: UInt64.self) }
        /// The number of further ids that fit.
        var room: Int
    }
    private static let bitsPerID = 12, bitsOfAnID = 7, lineBits = 512, leastIDs = 1 << 16, growth = 4
    private var layers: [Layer] = []
    private var count = 0
    /// The most bytes that it may take.
    private let most: Int
    private(set) var memory = 0

    init(most: Int) { self.most = most }

    var layerCount: Int { layers.count }

    /// Reserves room for `more` ids; false if there is no memory.
    func reserve(_ more: Int) -> Bool {
        let room = layers.last?.room ?? 0
        guard more > room else { return true }
        let lineSize = IDFilter.lineBits / 8, wanted = max(IDFilter.leastIDs, IDFilter.growth * (count + more)) * IDFilter.bitsPerID / 8
        let size = min(wanted, most - memory) / lineSize * lineSize, ids = size * 8 / IDFilter.bitsPerID
        guard ids >= more, let pages = MappedMemory(count: size) else { return false }
        HugePages.advise(pages.base, size)
        layers.append(Layer(lines: UInt64(size / lineSize), memory: pages, room: ids))
        memory += size
        return true
    }

    /// Inserts an id into the last layer.
    func insert(_ id: UnsafeRawBufferPointer) {
        guard !layers.isEmpty else { return }
        let hash = IDFilter.hash(id), last = layers.count - 1
        let line = layers[last].words + IDFilter.line(hash, layers[last].lines)
        _ = IDFilter.forEachBit(hash) {
            line[$0 >> 6] |= 1 << UInt64($0 & 63); return true
        }
        layers[last].room -= 1
        count += 1
    }

    /// Returns the layers that may hold an id, a bit for each; 0: it was never inserted.
    func layersThatMayHold(_ id: UnsafeRawBufferPointer) -> UInt64 {
        let hash = IDFilter.hash(id)
        var found: UInt64 = 0
        for i in layers.indices {
            let line = layers[i].words + IDFilter.line(hash, layers[i].lines)
            if IDFilter.forEachBit(hash, { line[$0 >> 6] & (1 << UInt64($0 & 63)) != 0 }) { found |= 1 << UInt64(min(i, 63)) }
        }
        return found
    }

    /// Hashes eight bytes at a time. Ids crafted to collide only cost further lookups.
    private static func hash(_ id: UnsafeRawBufferPointer) -> UInt64 {
        var hash = UInt64(truncatingIfNeeded: id.count) &* 0x9E37_79B9_7F4A_7C15, at = 0
        func mix(_ word: UInt64) {
            hash = (hash ^ word) &* 0xBF58_476D_1CE4_E5B9
            hash ^= hash >> 31
        }
        while at + 8 <= id.count {
            mix(id.loadUnaligned(fromByteOffset: at, as: UInt64.self))
            at += 8
        }
        var rest: UInt64 = 0
        while at < id.count { rest = rest << 8 | UInt64(id[at]); at += 1 }
        mix(rest)
        return hash &* 0x94D0_49BB_1331_11EB
    }

    /// Returns the index of the first word of an id's line.
    private static func line(_ hash: UInt64, _ lines: UInt64) -> Int {
        Int(truncatingIfNeeded: ((hash >> 32) &* lines) >> 32) * (lineBits / 64)
    }

    /// Calls `body` with the bits of an id in its line until it returns false; returns whether it never did.
    @inline(__always)
    private static func forEachBit(_ hash: UInt64, _ body: (Int) -> Bool) -> Bool {
        var bits = (hash ^ (hash >> 29)) &* 0xBF58_476D_1CE4_E5B9
        bits ^= bits >> 32
        for _ in 0..<bitsOfAnID {
            guard body(Int(bits & UInt64(lineBits - 1))) else { return false }
            bits >>= 9
        }
        return true
    }
}
