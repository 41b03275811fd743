import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Reads single ids from an unchecked persisted map.
@Suite struct LazyMapReaderTests {
    private enum Answer: Equatable { case entry(UInt32), absent, void }

    private static func ask(_ bytes: [UInt8], _ patch: [UInt8]? = nil, _ key: [UInt8], versionLimit: Int = 2_000) -> Answer {
        guard let file = bytes.withUnsafeBytes({ FlatMapFile(OpenCache(copying: $0)) }) else { return .void }
        var decoded: MapPatch?
        if let patch {
            decoded = MapPatch(patch, count: file.count, versionLimit: versionLimit)
            if decoded == nil { return .void }
        }
        let lazyReader = LazyMapReader(file, decoded, versionLimit: versionLimit)
        switch key.withUnsafeBytes({ lazyReader.find($0, patched: decoded != nil) }) {
        case .entry(let entry)?: return .entry(entry.version)
        case .absent?: return .absent
        case .void?, nil: return .void
        }
    }

    private static func bytes(of map: MapNode) throws -> [UInt8] {
        let bytes = try #require(try FlatMapTests.bytes(of: map))
        return withExtendedLifetime(bytes) { Array(bytes.bytes) }
    }

    private static func answer(_ map: MapNode?, _ key: [UInt8]) -> Answer {
        key.withUnsafeBytes { map?.lookup($0) }.map { .entry($0.version) } ?? .absent
    }

    @Test(arguments: 0..<5) func itAnswersAsTheMapDoes(alphabet: Int) throws {
        let makeKey = MapTests.alphabets[alphabet].key
        for (seed, size) in [300, 2_000, 6_000].enumerated() {
            var random = SeededRandom(seed: UInt64(seed))
            let map = FlatMapTests.map(size, &random, alphabet: alphabet)
            guard let map, map.count >= 256 else { continue }
            let bytes = try Self.bytes(of: map), flat = try #require(try FlatMapTests.flatten(map))
            var changes: [[UInt8]: UInt32?] = [:]
            let known = Array(MapTests.contents(map).keys)
            for key in known where Int.random(in: 0..<4, using: &random) == 0 {
                changes[key] = .some(Bool.random(using: &random) ? nil : 1_500)
            }
            for _ in 0..<20 { changes[makeKey(&random)] = .some(1_600) }
            let later = MapTests.apply(changes, to: map)
            let patch = try #require(MapPatch.encode(flat, to: later, limit: 10_000))
            for _ in 0..<60 {
                let key = known.randomElement(using: &random) ?? []
                for one in [
                    key, Array(key.dropLast()), key + [0], makeKey(&random), Array(changes.keys.randomElement(using: &random) ?? []),
                ] {
                    #expect(Self.ask(bytes, nil, one) == Self.answer(map, one), "\(alphabet), \(size), \(one)")
                    #expect(Self.ask(bytes, patch, one) == Self.answer(later, one), "\(alphabet), \(size), \(one)")
                }
            }
            // An entry whose version is beyond the limit.
            let key = try #require(known.first { Self.answer(map, $0) == .entry(999) } ?? known.first), version = Self.answer(map, key)
            if case .entry(let number) = version { #expect(Self.ask(bytes, nil, key, versionLimit: Int(number)) == .void) }
        }
    }

    @Test func aLittleIsAskedThisWayAndNotMore() throws {
        var random = SeededRandom(seed: 1)
        let map = FlatMapTests.map(3_000, &random, alphabet: 3), bytes = try #require(try FlatMapTests.bytes(of: map))
        let lazyReader = LazyMapReader(try #require(FlatMapFile(bytes)), nil, versionLimit: 2_000)
        var asked = 0
        while ([0x61] as [UInt8]).withUnsafeBytes({ lazyReader.find($0, patched: false) }) != nil, asked < 1_000 { asked += 1 }
        #expect(asked == (map?.count ?? 0) / 256 && asked > 0)
    }

    /// Each id is in another part of the map, and the parts that were checked remain in memory.
    @Test func noMoreIsKeptInMemoryThanMayBe() throws {
        var random = SeededRandom(seed: 2)
        let map = FlatMapTests.map(20_000, &random, alphabet: 3), most = 8 * FlatMapFile.blockSize
        let bytes = try #require(try FlatMapTests.bytes(of: map)), file = try #require(FlatMapFile(bytes))
        let lazyReader = LazyMapReader(file, nil, versionLimit: 2_000, most: most)
        let keys = MapTests.contents(map).keys.sorted { $0.lexicographicallyPrecedes($1) }.shuffled(using: &random)
        let asked = keys.prefix(while: { $0.withUnsafeBytes { lazyReader.find($0, patched: false) } != nil }).count
        #expect(asked > 0 && asked < (map?.count ?? 0) / 256, "\(asked)")
        #expect(file.checkedBytes >= most && file.checkedBytes <= most + 4 * FlatMapFile.blockSize, "\(file.checkedBytes)")
    }

    /// With the old checksums, no changed byte leads to a wrong answer. With checksums made to match, nothing is read out of bounds and
    /// every walk ends.
    @Test(arguments: 0..<5) func changedBytesAreNeverAnotherAnswer(alphabet: Int) throws {
        var random = SeededRandom(seed: UInt64(alphabet))
        let map = FlatMapTests.map(700, &random, alphabet: alphabet)
        guard let map, map.count >= 256 else { return }
        let whole = try Self.bytes(of: map)
        let keys = Array(
            MapTests.contents(map).keys.sorted { $0.lexicographicallyPrecedes($1) }.enumerated().filter { $0.offset % 97 == 0 }.map(
                \.element))
        for at in stride(from: alphabet, to: whole.count, by: sample(usual: 23, deep: 5)) {
            var bytes = whole
            bytes[at] = [0, 0xFF, whole[at] ^ 1, whole[at] ^ 0x80].filter { $0 != whole[at] }.randomElement(using: &random) ?? 1
            let key = keys[at % keys.count], answer = Self.ask(bytes, nil, key)
            #expect(answer == .void || answer == Self.answer(map, key), "byte \(at)")
            FlatMapTests.reseal(&bytes)
            for key in [key, [0x61], []] { _ = Self.ask(bytes, nil, key) }
        }
        for cut in stride(from: 0, to: whole.count, by: 61) { #expect(Self.ask(Array(whole.prefix(cut)), nil, keys[0]) == .void) }
    }

    /// A store with a damaged map returns every value, in any order of reads.
    @Test func aStoreReadsOneValueAndMendsWhatIsDamaged() throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(0, directory)
            var expected = Dictionary(uniqueKeysWithValues: (0..<5_000).map { ("key \($0)", "first") })
            var head = try store.set(expected, nil)
            for i in 0..<1_200 {
                let change = ["key \(i * 3)": "\(i)"], gone = i % 100 == 0 ? "key \(4_999 - i)" : nil
                head = try store.set(change.merging(i % 50 == 0 ? ["new \(i)": "n"] : [:]) { $1 }, head, remove: gone.map { [$0] } ?? [])
                expected.merge(change) { $1 }
                if i % 50 == 0 { expected["new \(i)"] = "n" }
                if let gone { expected[gone] = nil }
            }
            let state = try store.state(head.id)
            try store.close()
            let caches = "\(directory)/store/cache"
            let name = try #require(try System.names(in: caches).first { $0.hasPrefix(FlatMap.namePrefix) })
            let whole = try readFile("\(caches)/\(name)"), history = try readFile("\(caches)/history.cache")
            var random = SeededRandom(seed: 3)
            let keys = Array(expected.keys.sorted())
            func check(_ store: Store, _ key: String) throws {
                #expect(try store.value(id(key), at: head.id).map { String(decoding: $0.data, as: UTF8.self) } == expected[key], "\(key)")
            }
            do {
                let store = try DiskStore.open(0, directory)
                for key in ["key 0", "new 50", "key 4999", "nobody"] { try check(store, key) }
                #expect(store.maps.persisted != nil && store.maps.persisted?.flat == nil && store.maps.persisted?.lazyReader != nil)
                for key in keys.prefix(100) { try check(store, key) }
                #expect(store.maps.persisted?.flat != nil && store.maps.persisted?.lazyReader == nil)
                try store.close()
            }
            var void = 0
            for _ in 0..<sample(usual: 8, deep: 20) {
                var bytes = whole
                let at = Int.random(in: 0..<whole.count, using: &random), count = min(9_000, whole.count - at)
                for i in at..<at + count { bytes[i] ^= 0x20 }
                try writeFile("\(caches)/\(name)", bytes)
                try writeFile("\(caches)/history.cache", history)
                let store = try DiskStore.open(0, directory, readOnly: true)
                #expect(store.maps.persisted != nil)
                for _ in 0..<12 { try check(store, keys.randomElement(using: &random) ?? "") }
                if store.maps.persisted == nil { void += 1 }
                for _ in 0..<60 { try check(store, keys.randomElement(using: &random) ?? "") }
                #expect(store.maps.persisted == nil)
                #expect(try store.state(head.id) == state)
                try store.close()
            }
            #expect(void > 0)
        }
    }
}
