import LLVS
@testable import LLVSCore

/// The caches: history index, flat map, patch of a flat map.
///
///     input = which u8 · ...    0: history index    1: flat map as it comes    2: nodes of a flat map; the target adds the footer
///     1, 2  = (2: root u32 · entries u16) · size u16 · patch · map
enum CachesTarget {
    static let target = FuzzTarget(name: "caches", run: run, seeds: seeds)
    private static let versionLimit = 1000

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        switch input.byte() % 3 {
        case 0: history(input.rest())
        case 1:
            let patch = input.part()
            map(input.rest(), patch)
        default:
            let root = input.uint32(), count = input.uint16(), patch = input.part()
            map(flatMap(nodes: input.rest(), root: root, count: count), patch)
        }
    }

    // MARK: History index

    private static func decode(_ bytes: [UInt8]) -> (history: History, persisted: PersistedMap?, mark: [UInt8])? {
        var mark: [UInt8] = []
        guard
            let found = try? HistoryIndex.decode(
                bytes,
                resume: {
                    mark = $0; return (0..<UInt32($0.count)).map { $0 }
                })
        else { return nil }
        return (found.history, found.persisted, mark)
    }

    private static func history(_ bytes: [UInt8]) {
        guard let found = decode(bytes) else { return }
        let encoded = HistoryIndex.encode(found.history, found.persisted, mark: found.mark)
        guard let again = decode(encoded) else { fail("an index that was just encoded is void") }
        require(
            HistoryIndex.encode(again.history, again.persisted, mark: again.mark) == encoded,
            "encoding an index again gives other bytes")
        require(again.history.liveCount == found.history.liveCount, "versions got lost")
        let history = found.history
        for i in history.rows.indices where history.isLive(i) {
            let ordinal = UInt32(i)
            require(history.ordinal(of: history.id(ordinal)) == ordinal, "a version is not found by its id")
            let row = history.rows[i]
            require(row.first == History.none || row.first < ordinal, "a predecessor has a larger ordinal")
        }
        for head in history.headOrdinals { require(history.isLive(Int(head)), "a head that is not there") }
    }

    // MARK: Maps

    /// Adds slots and a footer to nodes.
    private static func flatMap(nodes: [UInt8], root: UInt32, count: Int) -> [UInt8] {
        var out = ByteWriter(bytes: nodes)
        while out.bytes.count % 16 != 0 { out.bytes.append(0) }
        let size = out.bytes.count
        for i in 0..<count {
            out.integer(UInt32(i % versionLimit))
            out.integer(UInt32(i))
            out.integer(UInt64(i))
        }
        out.bytes += [UInt8](repeating: 0, count: FlatMapFile.blocks(of: out.bytes.count) * 4)
        out.integer(FlatMapFile.magic)
        out.integer(UInt64(1))
        out.integer(UInt64(2))
        out.integer(UInt64(size))
        out.integer(UInt64(count))
        out.integer(root)
        out.integer(UInt32(0))
        return out.bytes
    }

    /// Makes the checksums right if the footer shows where they are, since no fuzzer would guess them.
    private static func repaired(_ bytes: [UInt8]) -> [UInt8] {
        func integer(_ offset: Int) -> Int? {
            bytes.withUnsafeBytes {
                Int(
                    exactly: UInt64(
                        littleEndian: $0.loadUnaligned(fromByteOffset: bytes.count - FlatMapFile.footerSize + offset, as: UInt64.self)))
            }
        }
        guard bytes.count >= FlatMapFile.footerSize, let nodes = integer(24), let count = integer(32), nodes <= bytes.count,
            count <= bytes.count
        else { return bytes }
        let size = nodes + count * 16, blocks = FlatMapFile.blocks(of: size)
        guard size + blocks * 4 + FlatMapFile.footerSize == bytes.count else { return bytes }
        var out = ByteWriter(bytes: bytes)
        for block in 0..<blocks {
            let start = block * FlatMapFile.blockSize, end = min(start + FlatMapFile.blockSize, size)
            out.patch(bytes.withUnsafeBytes { Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }, at: size + block * 4)
        }
        out.patch(
            out.bytes.withUnsafeBytes { Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[size..<bytes.count - 4])) }, at: bytes.count - 4)
        return out.bytes
    }

    /// Looks up single keys before the map was checked as a whole.
    private static func lazyReader(
        _ memory: OpenCache, _ patch: MapPatch?, _ keys: [[UInt8]], _ expected: (UnsafeRawBufferPointer) -> MapEntry?
    ) {
        guard let file = FlatMapFile(memory) else { return }
        let lazyReader = LazyMapReader(file, patch, versionLimit: versionLimit)
        for key in keys.prefix(40) + [[0], Array("Contact/1".utf8), [UInt8](repeating: 255, count: 600)] {
            key.withUnsafeBytes { key in
                if case .entry(let entry)? = lazyReader.find(key, patched: false), let other = expected(key) {
                    require(entry.version == other.version, "another entry")
                }
                _ = lazyReader.find(key, patched: true)
            }
        }
    }

    private static func contents(_ map: MapNode?) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        map?.forEach { key, _ in
            keys.append(Array(key)); return true
        }
        return keys
    }

    private static func map(_ bytes: [UInt8], _ patch: [UInt8]) {
        let memory = repaired(bytes).withUnsafeBytes { OpenCache(copying: $0) }
        guard let flat = FlatMap(memory, versionLimit: versionLimit) else { return lazyReader(memory, nil, []) { _ in nil } }
        let map = MapNode(flat), keys = contents(map)
        lazyReader(memory, MapPatch(patch, count: flat.count, versionLimit: versionLimit), keys) { map.lookup($0) }
        require(keys.count == flat.count, "\(flat.count) entries and \(keys.count) keys")
        // Bytes with valid checksums that no writer made may hold keys in any order. Reading must only stay within them.
        let isWhole = map.checkInvariants() == nil && zip(keys, keys.dropFirst()).allSatisfy { Bytes.compare($0, $1) < 0 }
        for (i, key) in keys.enumerated() where i < 300 || i % 97 == 0 {
            key.withUnsafeBytes { key in
                let entry = map.lookup(key)
                require(!isWhole || entry != nil, "a key that is not found")
                _ = map.count(from: key, to: nil)
            }
            flat.withKey(i) { require(!isWhole || Array($0) == key, "another key for a number") }
        }
        let patched = try? MapPatch(patch, count: flat.count, versionLimit: versionLimit)?.apply(to: flat)
        let after = contents(patched)
        guard isWhole else { return }
        require(patched?.checkInvariants() == nil, "a patched map that is none: \(patched?.checkInvariants() ?? "")")
        guard patched != nil || !after.isEmpty else { return }
        guard let again = MapPatch.encode(flat, to: patched, limit: .max) else { fail("a patch that cannot be encoded") }
        let repatched = try? MapPatch(again, count: flat.count, versionLimit: versionLimit)?.apply(to: flat)
        require(contents(repatched) == after && MapNode.haveSameContents(repatched, patched), "an encoded patch gives another map")
        // Written again, it is the same map.
        var builder = FlatMapBuilder(MemoryCacheWriter(), expected: 0)
        var isInOrder = true
        patched?.forEach { key, entry in
            do { try builder.append(key, entry); return true } catch { isInOrder = false; return false }
        }
        require(isInOrder, "a patched map is out of order")
        guard let written = try? builder.finish(RandomName(high: 1, low: 2)), let flattened = FlatMap(written, versionLimit: versionLimit)
        else { fail("a map that was just written is void") }
        require(MapNode.haveSameContents(MapNode(flattened), patched), "a written map has other contents")
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        var seeds: [FuzzTarget.Seed] = []
        for count in [1, 70, 200] {
            var builder = FlatMapBuilder(MemoryCacheWriter(), expected: count)
            for i in 0..<count {
                try Array("Contact/\(1000 + i)".utf8).withUnsafeBytes {
                    try builder.append($0, MapEntry(version: UInt32(i), size: 7, bodyOffset: 9))
                }
            }
            guard let bytes = try builder.finish(RandomName(high: 1, low: 2)), let flat = FlatMap(bytes, versionLimit: versionLimit) else {
                continue
            }
            var changes = KeyArena()
            Array("Contact/1000".utf8).withUnsafeBytes { changes.append($0, MapEntry(version: 3, size: 1, bodyOffset: 1)) }
            Array("Contact/1001".utf8).withUnsafeBytes { changes.append($0, nil) }
            Array("D".utf8).withUnsafeBytes { changes.append($0, MapEntry(version: 4, size: MapEntry.unknownSize, bodyOffset: 0)) }
            let changed = changes.withChanges(isSorted: true) { try? MapNode.applying($0, to: MapNode(flat)) }
            let patch = FuzzInput.part(MapPatch.encode(flat, to: changed, limit: 1000) ?? [])
            let all = Array(bytes.bytes),
                nodes = Array(all.prefix(all.count - FlatMapFile.footerSize - count * 16 - FlatMapFile.blocks(of: all.count) * 4))
            seeds.append(FuzzTarget.Seed(name: "map-\(count)", bytes: [1] + patch + all))
            var made = ByteWriter(bytes: [2])
            made.integer(flat.root)
            made.integer(UInt16(count))
            seeds.append(FuzzTarget.Seed(name: "nodes-\(count)", bytes: made.bytes + patch + nodes))
        }
        let store = try Examining.memoryStore()
        try Examples.fill(store)
        let index = store.lock.withRead { HistoryIndex.encode(store.dag, nil, mark: [1, 2, 3, 4]) }
        seeds.append(FuzzTarget.Seed(name: "history", bytes: [0] + index))
        let persisted = PersistedMap(id: RandomName(high: 1, low: 2), base: 1, patch: (3, [0, 0]), versionLimit: 4)
        seeds.append(
            FuzzTarget.Seed(
                name: "history-checkpoint",
                bytes: [0] + store.lock.withRead { HistoryIndex.encode(store.dag, persisted, mark: [1, 2, 3, 4]) }))
        return seeds
    }
}
