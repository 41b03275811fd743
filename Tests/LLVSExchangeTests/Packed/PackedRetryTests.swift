import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Unusable files cost time in proportion to their number, and usable ones are read first: docs/pack-format.md, section 7.
@Suite("Packed: retries") struct PackedRetryTests {
    private func parts(_ asked: [String]) -> [String] { asked.filter { $0.hasPrefix("read pack1/blob") } }
    private func packs(_ asked: [String]) -> [String] { asked.filter { $0.hasPrefix("read pack1/log") } }

    /// Sends independent versions, each with a large value, in one pack.
    private func sendLarge(_ device: PackedDevice, _ count: Int) throws {
        for n in 0..<count {
            let data = [UInt8](repeating: UInt8(truncatingIfNeeded: n + 1), count: PackFormat.inlineValue + 1 + n)
            _ = try device.store.makeVersion(basedOn: nil, changes: [.insert(ValueID("large \(n)"), data: data)])
        }
        try device.exchangeOnce()
    }

    /// One listing suffices for any number of missing large values.
    @Test(arguments: [4, 16]) func missingValuesAreLookedForInAListing(count: Int) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try sendLarge(a, count)
        let blobs = place.files.filter { $0.key.hasPrefix("pack1/blob/") }
        #expect(blobs.count == count)
        for name in blobs.keys { place.files[name] = nil }
        let first = try b.exchangeOnce()
        #expect(b.ids.isEmpty && first.count { $0 == "list pack1/blob" } == 1)
        #expect(parts(first).count <= 1 + PackedSettings.unlistedParts, "\(first)")
        // Later, values that no listing shows are not requested, and the pack is not read again.
        for _ in 0..<3 {
            b.restart()
            let again = try b.exchangeOnce()
            #expect(parts(again).isEmpty && packs(again).isEmpty, "\(again)")
        }
        for (name, bytes) in blobs { place.files[name] = bytes }
        #expect(try b.exchange.retrieve().problems.isEmpty)
        #expect(b.ids == a.ids)
    }

    /// A version names two values, one of which is missing. The other is not fetched for it.
    @Test func allOfAVersionIsLookedForFirst() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        let changes = try (1...3).map { n in
            Value.Change.insert(try ValueID("large \(n)"), data: [UInt8](repeating: UInt8(n), count: PackFormat.inlineValue + n))
        }
        _ = try a.store.makeVersion(basedOn: nil, changes: changes)
        try a.exchangeOnce()
        let gone = try #require(place.names(.blob).max { $0.digest < $1.digest }).description, bytes = place.files[gone]
        place.files[gone] = nil
        #expect(try parts(b.exchangeOnce()) == ["read \(gone)"], "a listing may be behind, so it is asked for once")
        place.files[gone] = bytes
        #expect(try parts(b.exchangeOnce()).count == 3 && b.ids == a.ids)
    }

    /// Packs are read in the wrong order and unlock one another, beside others that cannot be read. Each is read once.
    @Test(arguments: [4, 16]) func packsThatUnlockOneAnotherAreReadOnce(count: Int) throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 1_000), other = try PackedDevice(place, fanIn: 1_000)
        for n in 0..<count {
            // New devices read the largest pack first, which is the last one.
            try a.save("n\(n)", (0..<(n + 1) << 10).map { UInt8(truncatingIfNeeded: $0 &* ($0 >> 3)) })
            _ = try a.exchange.send()
        }
        for n in 0..<count {
            let data = [UInt8](repeating: UInt8(n + 1), count: PackFormat.inlineValue + 1)
            _ = try other.store.makeVersion(basedOn: nil, changes: [.insert(ValueID("large"), data: data)])
            _ = try other.exchange.send()
        }
        for name in place.names(.blob) { place.files[name.description] = nil }
        let new = try PackedDevice(place), asked = try new.exchangeOnce()
        #expect(new.ids == a.ids)
        #expect(packs(asked).count == 2 * count, "\(packs(asked).count)")
        #expect(parts(asked).count <= 1 + PackedSettings.unlistedParts)
    }

    /// Packs whose versions wait are not read again because something unrelated has arrived.
    @Test func packsThatWaitAreReadWhenTheirTimeHasCome() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 1_000), b = try PackedDevice(place), c = try PackedDevice(place)
        for n in 0..<10 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        let first = try #require(place.names(.log).min { $0.last < $1.last }).description, bytes = place.files[first]
        place.files[first] = nil
        #expect(try packs(b.exchangeOnce()).count == 9 && b.ids.isEmpty)
        try c.save("mine")
        _ = try c.exchange.send()
        b.restart()
        #expect(try packs(b.exchangeOnce()).count == 1)
        #expect(b.ids == c.ids)
        place.files[first] = bytes
        b.restart()
        // Reading the first unlocks the second, and so on.
        #expect(try packs(b.exchangeOnce()).count == 10)
        #expect(b.ids == a.ids.union(c.ids))
    }

    /// One exchange retries some failed files, after new ones, and all in turn.
    @Test func whatIsNewComesFirst() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place), count = 100
        try a.save("first")
        for device in [a, b] { try device.exchangeOnce() }
        for n in 0..<count {
            let id = PackID(high: UInt64(n), low: 7)
            place.put(PackName(kind: .log, writer: 1, first: 1, last: 1, id: id).description, [1, 2, 3])
        }
        #expect(try packs(b.exchangeOnce()).count == count)
        var tried: Set<String> = []
        for n in 0..<5 {
            let mine = try a.save("n\(n)")
            _ = try a.exchange.send()
            b.restart()
            let asked = try packs(b.exchangeOnce())
            #expect(try b.store.contains(mine) && asked.count <= 1 + PackedSettings.retries, "\(asked.count)")
            #expect(place.files[String(asked[0].dropFirst(5))] != [1, 2, 3], "new packs are fetched first")
            tried.formUnion(asked.dropFirst())
        }
        #expect(tried.count == count)
        // A file whose bytes have changed counts as new.
        let late = PackName(kind: .log, writer: 1, first: 1, last: 1, id: PackID(high: 3, low: 7)).description
        place.files[late] = [1, 2, 3, 4]
        #expect(try packs(b.exchangeOnce()).first == "read \(late)")
    }

    /// An incomplete pack is read again before files that can never be read, however many these are and however its name sorts. This place
    /// reports no sizes, so nothing shows that the pack has grown. Still, each of the files has its turn.
    @Test func aPackThatIsOnItsWayComesBeforeWhatNeverCanBeTaken() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place), count = 300
        b.files.tellsSizes = false
        place.pace = 1
        try a.save("first")
        for device in [a, b] { try device.exchangeOnce() }
        for n in 0..<count {
            place.put(PackName(kind: .log, writer: 1, first: 1, last: 1, id: PackID(high: UInt64(n), low: 7)).description, [1, 2, 3])
        }
        var tried: Set<String> = []
        for _ in 0..<4 {
            place.clock += 60
            tried.formUnion(try packs(b.exchangeOnce()))
        }
        // When the pack is first listed, half of it exists; later all of it does.
        let before = place.files.keys
        let mine = try a.save("late")
        _ = try a.exchange.send()
        let name = try #require(place.files.keys.first { $0.hasPrefix("pack1/log/") && !before.contains($0) })
        let whole = try #require(place.files[name])
        place.files[name] = Array(whole.prefix(whole.count / 2))
        place.clock += 60
        #expect(try packs(b.exchangeOnce()).contains("read \(name)"))
        #expect(try !b.store.contains(mine))
        for isWhole in [false, false, true] {
            if isWhole { place.files[name] = whole }
            place.clock += 60
            b.restart()
            #expect(try packs(b.exchangeOnce()).first == "read \(name)")
        }
        #expect(try b.store.contains(mine))
        for _ in 0..<(2 * count / PackedSettings.retries) {
            place.clock += 60
            tried.formUnion(try packs(b.exchangeOnce()))
        }
        #expect(tried.count >= count)
    }

    /// Files beyond the number that is remembered are read at most once a day.
    @Test func veryManyFilesThatAreNoPacks() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place), count = PackedSettings.badLimit + 200
        place.pace = 1
        try a.save("first")
        for device in [a, b] { try device.exchangeOnce() }
        for n in 0..<count {
            place.put(PackName(kind: .log, writer: 1, first: 1, last: 1, id: PackID(high: UInt64(n), low: 7)).description, [1, 2, 3])
        }
        #expect(try packs(b.exchangeOnce()).count == count)
        b.restart()
        #expect(try packs(b.exchangeOnce()).count <= PackedSettings.retries)
        place.clock += 2 * Int(PackedSettings.day)
        #expect(try packs(b.exchangeOnce()).count >= 200)
    }

    /// The fault of a file that was removed is not reported any more: in `log/` at once, in `base/` within some minutes.
    @Test(arguments: [false, true]) func faultsOfRemovedFiles(inBase: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        place.pace = 1
        try a.save("first")
        for device in [a, b] { try device.exchangeOnce() }
        let bytes = Array("no pack".utf8), id = KeyFileName.id(of: bytes)
        let name = PackName(kind: inBase ? .base : .log, writer: 1, first: 1, last: 1, id: id).description
        place.put(name, bytes)
        place.clock += 2 * Int(PackedSettings.day)
        for device in [a, b] {
            #expect(try device.exchange.retrieve().problems.contains { $0.name == name })
            place.clock += 3 * Int(PackedSettings.day) / 4
            #expect(try device.exchange.retrieve().problems.contains { $0.name == name })
        }
        place.remove(name)
        for device in [a, b] {
            device.restart()
            place.clock += inBase ? Int(PackedSettings.pause) + 100 : 0
            #expect(try device.exchange.retrieve().problems.isEmpty)
        }
    }
}
