/// Which ids there may be: a Bloom filter, in which one id is looked for in one line of the processor's cache. Layers are added as it
/// grows, each several times as large as what is there, so that an id is looked for in few of them.
///
/// Used by one thread at a time.
final class IDFilter {
    private struct Layer {
        let lines: UInt64
        var words: [UInt64]
        /// Ids for which there is room.
        var room: Int
    }
    private static let bitsPerID = 12, bitsOfAnID = 5, lineBits = 512, leastIDs = 1 << 16, growth = 4
    private var layers: [Layer] = []
    private var count = 0
    /// Bytes that it may take.
    private let most: Int
    private(set) var memory = 0

    init(most: Int) { self.most = most }

    /// Makes room for so many more; whether it could.
    func reserve(_ more: Int) -> Bool {
        let room = layers.last?.room ?? 0
        guard more > room else { return true }
        let lineSize = IDFilter.lineBits / 8, wanted = max(IDFilter.leastIDs, IDFilter.growth * (count + more)) * IDFilter.bitsPerID / 8
        let size = min(wanted, most - memory) / lineSize * lineSize, ids = size * 8 / IDFilter.bitsPerID
        guard ids >= more else { return false }
        layers.append(Layer(lines: UInt64(size / lineSize), words: [UInt64](repeating: 0, count: size / 8), room: ids))
        memory += size
        return true
    }

    func insert(_ id: UnsafeRawBufferPointer) {
        guard !layers.isEmpty else { return }
        let hash = IDFilter.hash(id), last = layers.count - 1
        let line = IDFilter.line(hash, layers[last].lines)
        _ = IDFilter.forEachBit(hash) { layers[last].words[line + ($0 >> 6)] |= 1 << UInt64($0 & 63); return true }
        layers[last].room -= 1
        count += 1
    }

    /// False: the id was never inserted.
    func mayHold(_ id: UnsafeRawBufferPointer) -> Bool {
        let hash = IDFilter.hash(id)
        for layer in layers {
            let line = IDFilter.line(hash, layer.lines)
            if IDFilter.forEachBit(hash, { layer.words[line + ($0 >> 6)] & (1 << UInt64($0 & 63)) != 0 }) { return true }
        }
        return false
    }

    private static func hash(_ id: UnsafeRawBufferPointer) -> UInt64 { UInt64(History.keyHash(id)) &* 0x9E37_79B9_7F4A_7C15 }

    /// The first word of the line that an id is in.
    private static func line(_ hash: UInt64, _ lines: UInt64) -> Int {
        Int(truncatingIfNeeded: ((hash >> 32) &* lines) >> 32) * (lineBits / 64)
    }

    /// Calls with the bits of an id in its line, until `body` answers false; whether it never did.
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
