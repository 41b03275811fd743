import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Flat maps of persisted maps, compared with maps in memory.
@Suite struct FlatMapTests {
    /// Writes the map as a persisted map and opens it; nil for the empty map.
    static func flatten(_ node: MapNode?, versionLimit: Int = 1 << 20) throws -> FlatMap? {
        guard let bytes = try bytes(of: node) else { return nil }
        return FlatMap(OpenCache(copying: bytes.bytes), versionLimit: versionLimit)
    }

    static func bytes(of node: MapNode?) throws -> OpenCache? {
        var builder = FlatMapBuilder(MemoryCacheWriter(), expected: node?.count ?? 0)
        var failure: (any Error)?
        node?.forEach { key, entry in
            do { try builder.append(key, entry); return true } catch { failure = error; return false }
        }
        if let failure { throw failure }
        return try builder.finish(RandomName(high: 1, low: 2))
    }

    static func map(_ count: Int, _ random: inout SeededRandom, alphabet: Int) -> MapNode? {
        var model: [[UInt8]: UInt32?] = [:]
        for _ in 0..<count { model[MapTests.alphabets[alphabet].key(&random)] = .some(UInt32.random(in: 0..<1000, using: &random)) }
        return MapTests.apply(model, to: nil)
    }

    @Test(arguments: 0..<6) func aCheckpointReadsAsTheMapItWasMadeFrom(alphabet: Int) throws {
        let makeKey = MapTests.alphabets[alphabet].key
        for (seed, size) in [1, 2, 63, 64, 65, 66, 200, 1_000, sample(usual: alphabet == 0 ? 5_000 : 1_500, deep: 5_000)].enumerated() {
            var random = SeededRandom(seed: UInt64(seed))
            let node = Self.map(size, &random, alphabet: alphabet)
            let flat = try #require(try Self.flatten(node)), root = MapNode(flat)
            #expect(root.count == node?.count && MapTests.contents(root) == MapTests.contents(node))
            #expect(MapTests.shape(root) == MapTests.shape(node), "\(alphabet), \(size)")
            #expect(root.checkInvariants() == nil)
            #expect(MapNode.haveSameContents(root, node) && MapNode.haveSameContents(node, root))
            let keys = Array(MapTests.contents(node).keys)
            for _ in 0..<50 {
                let low = Bool.random(using: &random) ? makeKey(&random) : keys.randomElement(using: &random) ?? [], high = makeKey(&random)
                low.withUnsafeBytes { l in
                    high.withUnsafeBytes { h in
                        #expect(root.lookup(l)?.version == node?.lookup(l)?.version)
                        #expect(root.count(from: l, to: h) == node?.count(from: l, to: h))
                        #expect(root.count(from: l, to: nil) == node?.count(from: l, to: nil))
                        var a: [[UInt8]] = [], b: [[UInt8]] = []
                        root.forEach(from: l, to: h) { key, _ in
                            a.append(Array(key)); return a.count < 20
                        }
                        node?.forEach(from: l, to: h) { key, _ in
                            b.append(Array(key)); return b.count < 20
                        }
                        #expect(a == b)
                        guard size <= 1_000 else { return }
                        // Walking backwards gives the same entries in reverse.
                        for map in [root, node] {
                            var there: [[UInt8]] = [], back: [[UInt8]] = []
                            map?.forEach(from: l, to: h) { key, _ in
                                there.append(Array(key)); return true
                            }
                            map?.forEachBackwards(from: l, to: h) { key, _ in
                                back.append(Array(key)); return true
                            }
                            let isTurnedRound = back == there.reversed()
                            #expect(isTurnedRound)
                        }
                    }
                }
            }
            for key in keys.prefix(sample(usual: 300, deep: 1_500)) {
                for one: [UInt8] in [key, Array(key.dropLast()), key + [0], key + [0x41], Array(key.dropLast()) + [0]] {
                    one.withUnsafeBytes { #expect(root.lookup($0)?.version == node?.lookup($0)?.version, "\(one)") }
                }
            }
            // Many lookups at once, of present and absent ids: in a persisted map, in one with changes, and in memory.
            let asked: [[UInt8]] = keys.prefix(100).flatMap { key -> [[UInt8]] in [key, key + [0]] } + [[UInt8]()]
            let change = ([0x62] as [UInt8]).withUnsafeBytes {
                try? MapNode.applying([MapChange(key: $0, entry: MapEntry(version: 5, size: 0, bodyOffset: 0))][...], to: root)
            }
            for map in [root, change, node] {
                guard let map else { continue }
                var found: [UInt32?] = []
                let all: [UInt8] = asked.flatMap { $0 }, ends: [Int] = asked.reduce(into: [0]) { $0.append(($0.last ?? 0) + $1.count) }
                all.withUnsafeBytes { bytes in
                    map.lookup(asked.count, key: { UnsafeRawBufferPointer(rebasing: bytes[ends[$0]..<ends[$0 + 1]]) }) { i, entry in
                        #expect(i == found.count)
                        found.append(entry?.version)
                    }
                }
                #expect(found == asked.map { key in key.withUnsafeBytes { map.lookup($0)?.version } })
            }
            var number = 0
            root.forEach { key, _ in
                flat.withKey(number) { #expect(Bytes.equal($0, key)) }
                number += 1
                return true
            }
        }
    }

    @Test(arguments: 0..<6) func aPatchBringsACheckpointToALaterMap(alphabet: Int) throws {
        let makeKey = MapTests.alphabets[alphabet].key
        for seed in Sample.seeds(usual: 2, deep: 12) {
            var random = SeededRandom(seed: seed)
            let size = seed % 3 == 0 ? 2_000 : 100
            let flat = try #require(try Self.flatten(Self.map(size, &random, alphabet: alphabet)))
            var later: MapNode? = MapNode(flat)
            for round in 0..<3 {
                var changes: [[UInt8]: UInt32?] = [:]
                for key in MapTests.contents(later).keys where Int.random(in: 0..<(round == 0 ? 900 : 5), using: &random) == 0 {
                    changes[key] = .some(Int.random(in: 0..<4, using: &random) == 0 ? nil : UInt32.random(in: 1000..<2000, using: &random))
                }
                for _ in 0..<3 { changes[makeKey(&random)] = .some(7) }
                later = MapTests.apply(changes, to: later)
                let patch = try #require(MapPatch.encode(flat, to: later, limit: 10_000))
                let patched = try MapPatch(patch, count: flat.count, versionLimit: 2_000)?.apply(to: flat)
                #expect(
                    MapNode.haveSameContents(patched, later) && MapTests.contents(patched) == MapTests.contents(later),
                    "\(alphabet), \(seed), \(round)")
                #expect(MapPatch(patch, count: flat.count, versionLimit: 5) == nil)
                // A map built on the patched one differs from the persisted map like an independent one.
                #expect(MapPatch.encode(flat, to: patched, limit: 10_000) == patch)
                // Any truncated or changed patch gives some map or none, and nothing is read out of bounds.
                for _ in 0..<60 {
                    var broken = patch
                    let at = Int.random(in: 0..<broken.count, using: &random)
                    if Bool.random(using: &random) {
                        broken.removeLast(broken.count - at)
                    } else {
                        broken[at] ^= UInt8.random(in: 1...255, using: &random)
                    }
                    _ = try MapPatch(broken, count: flat.count, versionLimit: 2_000)?.apply(to: flat).map { MapTests.contents($0) }
                }
            }
            #expect(MapPatch.encode(flat, to: nil, limit: 3) == nil)
        }
    }

    /// Makes the checksums match the contents, if the footer can be read.
    static func reseal(_ bytes: inout [UInt8]) {
        let end = bytes.count - FlatMapFile.footerSize
        guard end >= 0 else { return }
        bytes.withUnsafeMutableBytes { b in
            let nodes = b.loadUnaligned(fromByteOffset: end + 24, as: UInt64.self),
                count = b.loadUnaligned(fromByteOffset: end + 32, as: UInt64.self)
            guard nodes <= UInt64(end), count <= UInt64(end) else { return }
            let size = Int(nodes + count * 16)
            guard size <= end else { return }
            for (i, start) in stride(from: 0, to: size, by: FlatMapFile.blockSize).enumerated() where size + i * 4 + 4 <= end {
                let block = UnsafeRawBufferPointer(rebasing: b[start..<min(start + FlatMapFile.blockSize, size)])
                b.storeBytes(of: Bytes.crc32c(block), toByteOffset: size + i * 4, as: UInt32.self)
            }
            let checksum = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[size..<b.count - 4]))
            b.storeBytes(of: checksum, toByteOffset: b.count - 4, as: UInt32.self)
        }
    }

    /// Checksums are made to match. Whatever the bytes are, reading stays within them and ends.
    @Test(arguments: 0..<5) func brokenBytesAreRefusedOrHarmless(alphabet: Int) throws {
        var random = SeededRandom(seed: UInt64(alphabet))
        let bytes = try #require(try Self.bytes(of: Self.map(150, &random, alphabet: alphabet)))
        var whole = Array(bytes.bytes)
        func check() {
            let kept = whole
            defer { whole = kept }
            Self.reseal(&whole)
            guard let flat = whole.withUnsafeBytes({ FlatMap(OpenCache(copying: $0), versionLimit: 1_000) }) else { return }
            let root = MapNode(flat)
            var met = 0
            root.forEach { key, entry in
                met += 1; return entry.version < 1_000 && met <= flat.count
            }
            for key in [[0x61], [], [0xFF, 0xFF]] as [[UInt8]] {
                key.withUnsafeBytes { key in
                    _ = root.lookup(key)
                    root.forEach(from: key, to: nil) { _, _ in false }
                    _ = root.count(from: key, to: nil)
                }
            }
            for number in [0, flat.count / 2, flat.count - 1] { flat.withKey(number) { _ in } }
        }
        // Every byte of the footer. Of the rest the usual run changes every third byte, others for each alphabet.
        let end = whole.count - FlatMapFile.footerSize, step = sample(usual: 3, deep: 1)
        for at in Array(stride(from: alphabet % step, to: end, by: step)) + Array(end..<whole.count) {
            let was = whole[at]
            let values = [0, 0xFF, was ^ 1, was ^ 0x80, was &+ 1]
            for value in Sample.isDeep ? values : [values[at % 5]] where value != was { whole[at] = value; check() }
            whole[at] = was
        }
        for cut in stride(from: 0, to: whole.count, by: sample(usual: 29, deep: 7)) {
            let kept = whole
            whole.removeLast(whole.count - cut)
            check()
            whole = kept
        }
    }

    @Test func keysOutOfOrderAreRefused() throws {
        for pair in [("b", "a"), ("a", "a"), ("ab", "a")] {
            var builder = FlatMapBuilder(MemoryCacheWriter(), expected: 2)
            try Array(pair.0.utf8).withUnsafeBytes { try builder.append($0, MapEntry(version: 0, size: 0, bodyOffset: 0)) }
            #expect(throws: StoreError.self) {
                try Array(pair.1.utf8).withUnsafeBytes { try builder.append($0, MapEntry(version: 0, size: 0, bodyOffset: 0)) }
            }
        }
    }
}
