import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Values saved as differences: they read back unchanged, take little space, and never make a save fail because of earlier versions.
@Suite struct DifferenceSavingTests {
    private static func open(
        _ kind: Int, _ directory: String, _ differences: Store.Differences = .auto,
        readOnly: Bool = false
    ) throws -> Store {
        var options = Store.Options()
        options.storage = DiskStore.kinds[kind].storage
        options.differences = differences
        options.readOnly = readOnly
        return try Store(path: directory + (kind == 0 ? "/store" : "/store.sqlite"), options: options)
    }

    /// Saves edits of a text, one by one.
    @discardableResult
    private static func edit(
        _ store: Store, from head: VersionID?, _ text: inout [UInt8], _ count: Int, seed: UInt64 = 7
    ) throws -> [(VersionID, [UInt8])] {
        var random = SeededRandom(seed: seed)
        var head = head
        var saved: [(VersionID, [UInt8])] = []
        for _ in 0..<count {
            let place = Int(random.next() % UInt64(text.count - 10))
            text.replaceSubrange(place..<place + 3, with: Array("\(random.next() % 100_000)".utf8))
            let made = try store.makeVersion(basedOn: head, changes: [.update(id("note"), data: text)]).id
            saved.append((made, text))
            head = made
        }
        return saved
    }

    private static func expect(_ saved: [(VersionID, [UInt8])], in store: Store) throws {
        for (version, data) in saved.shuffled() {
            #expect(try store.value(id("note"), at: version)?.data == data)
        }
        #expect(try store.verify().damages.isEmpty)
    }

    /// Many ids, branches, removals and merges, with values of all sizes.
    @Test(arguments: [0, 1], Sample.seeds(from: 1, usual: 2, deep: 30)) func whatIsSavedComesBack(
        kind: Int, seed: UInt64
    ) throws {
        try withTemporaryDirectory { directory in
            var random = SeededRandom(seed: seed)
            var store = try Self.open(kind, directory)
            var states: [VersionID: [ValueID: [UInt8]]] = [:]
            var order: [VersionID] = []
            var differences: UInt64 = 0
            for step in 0..<120 {
                let base =
                    order.isEmpty
                    ? nil
                    : random.next() % 4 == 0 ? order[Int(random.next() % UInt64(order.count))] : order.last
                var state = base.flatMap { states[$0] } ?? [:]
                var changes: [Value.Change] = []
                for i in 0..<Int(1 + random.next() % 3) {
                    let key = try id("v\(Int(random.next() % 5) + 5 * i)")
                    if let data = state[key], random.next() % 8 > 0 {
                        let edited =
                            random.next() % 10 == 0 ? data + data : Filling.edited(data, &random)
                        changes.append(.update(key, data: edited))
                        state[key] = edited
                    } else if state[key] != nil {
                        changes.append(.remove(key))
                        state[key] = nil
                    } else {
                        let size = [100, 1_023, 1_024, 4_000, 30_000][Int(random.next() % 5)]
                        let data =
                            random.next() % 4 == 0
                            ? Filling.noise(random.next(), size) : Filling.words(size, random.next())
                        changes.append(.insert(key, data: data))
                        state[key] = data
                    }
                }
                let named = random.next() % 10 == 0
                let made = try store.makeVersion(
                    basedOn: base, changes: changes, id: named ? VersionID("named-\(seed)-\(step)") : nil
                ).id
                states[made] = state
                order.append(made)
                if random.next() % 30 == 0 {
                    differences += try store.statistics().differences
                    try store.close()
                    store = try Self.open(kind, directory)
                }
            }
            differences += try store.statistics().differences
            #expect(differences > 10)
            for round in 0..<2 {
                for version in order.shuffled() {
                    let found = try store.values(at: version, limit: 100)
                    #expect(
                        Dictionary(uniqueKeysWithValues: found.map { ($0.id, $0.data) }) == states[version])
                }
                #expect(try store.verify().damages.isEmpty)
                if round == 0 {
                    _ = try store.compact()
                    try store.close()
                    store = try Self.open(kind, directory)
                }
            }
            try store.close()
        }
    }

    @Test(arguments: [0, 1]) func manyVersionsTakeLittleRoom(kind: Int) throws {
        var sizes: [Store.Differences: UInt64] = [:]
        for choice in [Store.Differences.off, .auto] {
            try withTemporaryDirectory { directory in
                let store = try Self.open(kind, directory, choice)
                var text = Filling.words(60_000, 3)
                let first = try store.makeVersion(basedOn: nil, changes: [.insert(id("note"), data: text)])
                    .id
                let saved = try Self.edit(store, from: first, &text, 340)
                let statistics = try store.statistics()
                sizes[choice] = statistics.storage.bytesWritten
                #expect((statistics.differences == 0) == (choice == .off))
                // One value in 330 is stored whole.
                if choice == .auto {
                    #expect(statistics.differences == 339 && statistics.differenceValueBytes > 339 * 60_000)
                }
                try Self.expect(saved, in: store)
                try store.close()
                let again = try Self.open(kind, directory, readOnly: true)
                try Self.expect(saved, in: again)
                try again.close()
            }
        }
        let (with, without) = (try #require(sizes[.auto]), try #require(sizes[.off]))
        #expect(with * 20 < without)
    }

    /// With `auto`, new stores and those with differences make some, also after they were reopened; other stores do not.
    @Test(arguments: [0, 1]) func whichStoresHaveDifferences(kind: Int) throws {
        try withTemporaryDirectory { directory in
            for (i, (first, then, has)) in [
                (Store.Differences.auto, Store.Differences.auto, true), (.off, .auto, false),
                (.off, .on, true), (.auto, .off, false), (.on, .auto, true),
            ].enumerated() {
                let folder = directory + "/\(i)"
                try System.mkdir(folder)
                // The store has no value yet that could be a difference.
                var store = try Self.open(kind, folder, first)
                var text = Filling.words(5_000, 3)
                let version = try store.makeVersion(
                    basedOn: nil, changes: [.insert(id("small"), data: [1]), .insert(id("note"), data: text)]
                ).id
                try store.close()
                store = try Self.open(kind, folder, then)
                let saved = try Self.edit(store, from: version, &text, 3)
                #expect((try store.statistics().differences > 0) == has, "\(first) \(then)")
                try store.close()
                // A store that has differences makes more.
                store = try Self.open(kind, folder)
                let more = try Self.edit(store, from: saved.last?.0, &text, 2)
                #expect(
                    (try store.statistics().differences > 0) == (has || first == .auto), "\(first) \(then)")
                try Self.expect(saved + more, in: store)
                try store.close()
            }
        }
    }

    /// Versions that an exchange receives take little space too, many at once.
    @Test func whatIsReceivedTakesLittleRoom() throws {
        let source = try Store.inMemory()
        let place = MemoryTransport(name: "received")
        var text = Filling.words(60_000, 3)
        let first = try source.makeVersion(basedOn: nil, changes: [.insert(id("note"), data: text)]).id
        let saved = try Self.edit(source, from: first, &text, 100)
        _ = try Exchange(store: source, transport: place).send()
        try withTemporaryDirectory { directory in
            let store = try Self.open(0, directory)
            #expect(try Exchange(store: store, transport: place).retrieve().versions.count == 101)
            #expect(try store.statistics().differences == 100)
            try Self.expect(saved, in: store)
            try store.close()
        }
    }

    /// Differences that are large beside the value are applied one by one.
    @Test(arguments: [0, 1]) func largeDifferencesComeBack(kind: Int) throws {
        try withTemporaryDirectory { directory in
            var store = try Self.open(kind, directory)
            var text = Filling.words(30_000, 1), saved: [(VersionID, [UInt8])] = []
            var head = try store.makeVersion(basedOn: nil, changes: [.insert(id("note"), data: text)]).id
            for i in 0..<12 {
                let place = i * 2_000
                text.replaceSubrange(place..<place + 6_000, with: Filling.noise(UInt64(i), 5_000) + Filling.words(1_000, 90))
                head = try store.makeVersion(basedOn: head, changes: [.update(id("note"), data: text)]).id
                saved.append((head, text))
            }
            #expect(try store.statistics().differences > 3)
            try store.close()
            store = try Self.open(kind, directory, readOnly: true)
            try Self.expect(saved, in: store)
            try store.close()
        }
    }

    /// Values of more than 1 MiB, the first of which is a file of its own.
    @Test(arguments: [0, 1]) func largeValuesAreDifferencesAsWell(kind: Int) throws {
        try withTemporaryDirectory { directory in
            var store = try Self.open(kind, directory)
            var text = Filling.words(1_200_000, 3)
            let first = try store.makeVersion(basedOn: nil, changes: [.insert(id("note"), data: text)]).id
            var saved = [(first, text)] + (try Self.edit(store, from: first, &text, 6))
            // Some more after opening, when nothing about the value is in memory.
            try store.close()
            store = try Self.open(kind, directory)
            saved += try Self.edit(store, from: saved[6].0, &text, 2)
            #expect(try store.statistics().differences == 2)
            // Below the size of files, and above it again.
            for size in [900_000, 1_600_000] {
                text = size < text.count ? Array(text[..<size]) : text + text.prefix(size - text.count)
                saved.append(
                    (try store.makeVersion(basedOn: saved[saved.count - 1].0, changes: [.update(id("note"), data: text)]).id, text))
            }
            #expect(try store.statistics().differences == 4)
            try Self.expect(saved, in: store)
            // A value of more than 4 MiB is whole.
            let vast = Filling.words(2_200_000, 5)
            var last = try store.makeVersion(basedOn: saved[saved.count - 1].0, changes: [.update(id("note"), data: vast + vast)]).id
            saved.append((last, vast + vast))
            #expect(try store.statistics().differences == 4)
            last = try store.makeVersion(basedOn: last, changes: [.update(id("note"), data: vast)]).id
            saved.append((last, vast))
            #expect(try store.statistics().differences == 5)
            try store.close()
            if kind == 0 { #expect(try System.names(in: directory + "/store/blobs").filter { !$0.hasPrefix(".") }.count == 2) }
            for round in 0..<2 {
                store = try Self.open(kind, directory)
                try Self.expect(saved, in: store)
                for (version, data) in saved {
                    let reader = try #require(try store.openValue(id("note"), at: version)), half = data.count / 2
                    let part = try [UInt8](unsafeUninitializedCapacity: 70_000) { buffer, count in
                        count = try reader.read(at: half, into: UnsafeMutableRawBufferPointer(buffer))
                    }
                    #expect(part == Array(data[half..<half + 70_000]))
                }
                if round == 0 {
                    // A store that receives the versions has the same values, and so does one that receives them from it.
                    let place = MemoryTransport(name: directory), other = try Store.inMemory()
                    _ = try Exchange(store: store, transport: place).send()
                    _ = try Exchange(store: other, transport: place).retrieve()
                    try Self.expect(saved, in: other)
                    _ = try store.compact()
                }
                try store.close()
            }
            #expect(
                try Store.salvage(directory + (kind == 0 ? "/store" : "/store.sqlite"), kind, to: directory + "/salvaged") {
                    try Self.expect(saved, in: $0)
                    return true
                })
        }
    }

    /// If the file of a base is damaged, the error names the version that has it, and no save fails.
    @Test func aDamagedFileOfABaseIsReported() throws {
        try withTemporaryDirectory { directory in
            var store = try Self.open(0, directory)
            var text = Filling.words(1_200_000, 3)
            let first = try store.makeVersion(basedOn: nil, changes: [.insert(id("note"), data: text)]).id
            let saved = try Self.edit(store, from: first, &text, 3)
            try store.close()
            let blobs = directory + "/store/blobs/"
            for name in try System.names(in: blobs) where !name.hasPrefix(".") {
                var file = try readFile(blobs + name)
                file[file.count / 2] ^= 1
                try writeFile(blobs + name, file)
            }
            store = try Self.open(0, directory)
            for (version, _) in saved {
                do {
                    _ = try store.value(id("note"), at: version)
                    Issue.record("A damaged base was read.")
                } catch let error as StoreError {
                    #expect(error.code == .damaged && error.versionID == first.description)
                }
            }
            let damages = try store.verify().damages
            #expect(damages.count == 4 && damages.allSatisfy { $0.version == first || $0.causedBy == first })
            let more = try Self.edit(store, from: saved[2].0, &text, 2)
            for (version, data) in more { #expect(try store.value(id("note"), at: version)?.data == data) }
            try store.close()
        }
    }

    /// A merge stores a merged long text as a difference from the text of its first predecessor.
    @Test func mergesAreDifferencesAsWell() throws {
        let store = try Store.inMemory()
        let text = Filling.words(20_000, 3)
        let base = try store.makeVersion(
            basedOn: nil,
            changes: [
                .insert(id("note"), data: text),
                .insert(id("__llvs_schema"), data: bytes(#"{"rules":{"note":"text"}}"#)),
            ]
        ).id
        var a = text
        var b = text
        a.replaceSubrange(100..<105, with: bytes("alpha beta"))
        b.replaceSubrange(15_000..<15_005, with: bytes("gamma delta"))
        let x = try store.makeVersion(basedOn: base, changes: [.update(id("note"), data: a)]).id
        let y = try store.makeVersion(basedOn: base, changes: [.update(id("note"), data: b)]).id
        let before = try store.statistics().differences
        let merged = try store.merge(x, with: y, arbiter: BuiltInArbiter.mostRecentChange)
        let data = try #require(try store.value(id("note"), at: merged.id)).data
        #expect(data == a || data == b || data.count > text.count)
        #expect(before == 2)
        #expect(try store.verify().damages.isEmpty)
    }

    /// A base that cannot be read costs space, and nothing else.
    @Test(arguments: [0, 1]) func noSaveFailsBecauseOfItsPast(kind: Int) throws {
        try withTemporaryDirectory { directory in
            var store = try Self.open(kind, directory)
            var text = Filling.words(5_000, 3)
            let first = try store.makeVersion(basedOn: nil, changes: [.insert(id("note"), data: text)]).id
            let place = store.place(of: try store.requireOrdinal(first))
            let stored: [UInt8] = try id("note").bytes.withUnsafeBytes { raw in
                let found = try #require(try store.records.findChange(place, raw))
                return try [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
                    try store.records.read(place, at: UInt64(found.body.bodyOffset + 100), into: UnsafeMutableRawBufferPointer(buffer))
                    count = 64
                }
            }
            try store.close()
            try flip(stored, in: directory)
            store = try Self.open(kind, directory)
            #expect(code { _ = try store.value(id("note"), at: first) } == .damaged)
            let saved = try Self.edit(store, from: first, &text, 3)
            for (version, data) in saved {
                #expect(try store.value(id("note"), at: version)?.data == data)
            }
            try store.close()
        }
    }

    /// Values that resemble no earlier ones are stored whole, and soon no longer compared.
    @Test func picturesAreStoredWhole() throws {
        let store = try Store.inMemory()
        var head = try store.makeVersion(
            basedOn: nil, changes: [.insert(id("picture"), data: Filling.noise(1, 20_000))]
        ).id
        for i in 2..<20 {
            let data = Filling.noise(UInt64(i), 20_000)
            head = try store.makeVersion(basedOn: head, changes: [.update(id("picture"), data: data)]).id
            #expect(try store.value(id("picture"), at: head)?.data == data)
        }
        #expect(try store.statistics().differences == 0)
        #expect(
            try id("picture").bytes.withUnsafeBytes { raw in
                (0..<8).contains { _ in !store.differencing.shouldTry(raw) }
            })
    }

    /// For any number of ids, few values that resemble no earlier ones are compared.
    @Test(arguments: [1, 100, 20_000]) func valuesOfManyIdsAreNotTriedEachTime(ids: Int) throws {
        let differencing = Differencing(.on)
        var tries = 0
        for _ in 0..<20 {
            for i in 0..<ids {
                bytes("id \(i)").withUnsafeBytes { id in
                    guard differencing.shouldTry(id) else { return }
                    tries += 1
                    differencing.note(id, isMade: false)
                }
            }
        }
        #expect(tries <= 5 * ids && tries >= 2)
        // An id with a successful difference is tried from then on.
        bytes("another").withUnsafeBytes { id in
            differencing.note(id, isMade: true)
            #expect(differencing.shouldTry(id))
            differencing.note(id, isMade: false)
            #expect(differencing.shouldTry(id))
        }
    }

    /// Another store may have recorded another value under such an id. If both stores are joined, that value may prevail.
    @Test func nothingStandsOnAVersionWithAnIDOfTheCaller() throws {
        let store = try Store.inMemory(), key = try id("note")
        var text = Filling.words(4_000, 1)
        var before = try store.makeVersion(basedOn: nil, changes: [.insert(key, data: text)], id: VersionID("named")).id
        for differences in [0, 1, 2] as [UInt64] {
            text[100] ^= 1
            before = try store.makeVersion(basedOn: before, changes: [.update(key, data: text)]).id
            #expect(try store.statistics().differences == differences)
            #expect(try store.value(key, at: before)?.data == text)
        }
    }

    /// A value that repeats its base can have a difference of some 50 bytes: fewer than readers accept for its size.
    @Test(arguments: [2, 3, 4, 8, 30]) func aValueThatRepeatsItsBaseIsReadBack(times: Int) throws {
        let store = try Store.inMemory(), key = try id("note"), place = MemoryTransport(name: "repeats-\(times)")
        let text = Filling.words(30_000, 1), repeated = (0..<times).flatMap { _ in text }
        let first = try store.makeVersion(basedOn: nil, changes: [.insert(key, data: text)]).id
        let second = try store.makeVersion(basedOn: first, changes: [.update(key, data: text + text)]).id
        let third = try store.makeVersion(basedOn: second, changes: [.update(key, data: repeated)]).id
        let fourth = try store.makeVersion(basedOn: third, changes: [.update(key, data: repeated + repeated)]).id
        let other = try Store.inMemory()
        _ = try Exchange(store: store, transport: place).send()
        _ = try Exchange(store: other, transport: place).retrieve()
        for one in [store, other] {
            #expect(try one.value(key, at: second)?.data == text + text)
            #expect(try one.value(key, at: third)?.data == repeated)
            #expect(try one.value(key, at: fourth)?.data == repeated + repeated)
            #expect(try one.verify().isWhole)
        }
    }
}
