import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Packs of an attacker whose indexes list versions that the packs do not contain: docs/pack-format.md, section 7. The attacker knows the
/// versions, their identities and the sizes of their records.
@Suite("Packed: claims") struct PackedClaimsTests {
    /// Puts a pack whose index lists the given versions but whose records are others.
    /// - Parameter padding: bytes of further records, so that the pack is read from its end.
    private func claim(
        _ ids: [VersionID], of device: PackedDevice, _ place: MemoryPlace, _ kind: PackKind, _ padding: Int
    ) throws -> String {
        let name = try #require(place.names(.root).first), bytes = try #require(place.files[name.description])
        let root = try PackedState.Root(name, bytes)
        var pack = PackWriter(
            PackWriter.Identity(kind: kind, store: root.store, salt: root.store, writer: 0xEE, first: 1, last: 1), deflates: false)
        for id in ids {
            var whole: PackDifferences?
            let (payload, identity) = try PackRecord(id, of: device.store).payload(&whole)
            try pack.add(id, identity: identity, payload: [UInt8](repeating: 0xEE, count: payload.count))
        }
        for n in 0..<(padding >> 16) {
            try pack.add(try VersionID("padding\(n)"), identity: 0, payload: [UInt8](repeating: 0xEE, count: 1 << 16))
        }
        let made = try pack.finish()
        place.put(made.name.description, made.bytes)
        return made.name.description
    }

    @Test(arguments: [PackKind.log, .base], [0, 1 << 20]) func aVersionThatIsOnlyListedIsSent(_ kind: PackKind, _ padding: Int) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        for n in 0..<3 { try a.save("a\(n)") }
        for device in [a, b] { try device.exchangeOnce() }
        let mine = try a.save("mine")
        let evil = try claim([mine], of: a, place, kind, padding)
        place.clock += 125
        for device in [a, b] { try device.exchangeOnce() }
        #expect(b.ids == a.ids && a.ids.count == 4)
        place.files[evil] = nil
        let c = try PackedDevice(place)
        try c.exchangeOnce()
        #expect(c.ids == a.ids)
    }

    /// The attacker reads the place, lists its versions in a pack of its own, and removes the real one.
    @Test(arguments: [PackKind.log, .base], [0, 1 << 20]) func whatIsOnlyListedCountsAsLost(_ kind: PackKind, _ padding: Int) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        for n in 0..<3 {
            try a.save("n\(n)")
            for device in [a, b] { try device.exchangeOnce() }
        }
        let lost = try #require(place.names(.log).max { $0.last < $1.last }).description
        _ = try claim(Array(a.ids), of: a, place, kind, padding)
        place.clock += 125
        for device in [a, b] { try device.exchangeOnce() }
        place.remove(lost)
        for _ in 0..<6 {
            place.clock += 125
            for device in [a, b] { try device.exchangeOnce() }
        }
        let c = try PackedDevice(place)
        try c.exchangeOnce()
        #expect(c.ids == a.ids && a.ids.count == 3)
    }

    /// Puts an empty pack that claims to replace the given packs.
    private func claimToReplace(_ names: [PackName], _ place: MemoryPlace) throws {
        let root = try #require(place.names(.root).first), bytes = try #require(place.files[root.description])
        let store = try PackedState.Root(root, bytes).store
        var pack = PackWriter(PackWriter.Identity(kind: .base, store: store, salt: store, writer: 0xEE, first: 1, last: 1))
        var said = PackServices()
        said.replaces = names
        try pack.add(said)
        let made = try pack.finish()
        place.put(made.name.description, made.bytes)
    }

    /// An attacker removes packs and claims to replace them. The writer of the packs sends them again some days later.
    @Test func whatAnotherClaimsToReplaceAndRemovesIsSentAgainByItsMaker() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        for n in 0..<3 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        let names = place.names(.log)
        try claimToReplace(names, place)
        try a.exchangeOnce()
        for name in names { place.remove(name.description) }
        for _ in 0..<8 {
            place.clock += 125
            try a.exchangeOnce()
        }
        let b = try PackedDevice(place)
        try b.exchangeOnce()
        #expect(b.ids == a.ids && a.ids.count == 3)
    }

    /// A pack claims to replace others but does not. A device that has not read these reads them once they have remained undeleted for a
    /// day.
    @Test func whatIsOnlySaidToBeReplacedIsRead() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        for n in 0..<3 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        try claimToReplace(place.names(.log), place)
        let b = try PackedDevice(place)
        try b.exchangeOnce()
        #expect(b.ids.count < 3, "the claim is believed for a day")
        b.restart()
        for _ in 0..<2 {
            place.clock += 125
            try b.exchangeOnce()
        }
        #expect(b.ids == a.ids)
        #expect(place.names(.log).count == 3, "and nothing is sent again")
    }

    /// Versions that arrived by another way, and are also at the place, are compared and not sent again.
    @Test(arguments: [false, true]) func whatIsThereIsNotSentAgain(_ isLarge: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2)
        for n in 0..<4 {
            try a.save("n\(n)", (0..<(isLarge ? 300_000 : 10)).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 5 &+ n) })
            try a.exchangeOnce()
        }
        let b = try PackedDevice(place)
        try a.give(to: b)
        let before = Set(place.files.keys)
        try b.exchangeOnce()
        #expect(Set(place.files.keys) == before && b.ids == a.ids)
    }

    /// A file that is no pack, under the name of a device, does not make the device a clone. A pack does, and makes it a new writer.
    @Test(arguments: [0, 10, 5_000], [PackKind.log, .base]) func aFileThatIsNoPackMakesNoNewWriter(_ size: Int, _ kind: PackKind) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        func exchange() throws { for device in [a, b] { try device.exchangeOnce() } }
        func writers() -> Set<UInt64> { Set(place.names(.log).filter { place.files[$0.description]?.count != size }.map(\.writer)) }
        try a.save("first")
        try exchange()
        let own = try #require(place.names(.log).first)
        for n in 0..<3 as Range<UInt32> {
            let number = 7 + n, id = try #require(PackID([UInt8](repeating: UInt8(n) + 1, count: 16)))
            let name = PackName(kind: kind, writer: own.writer, digest: .zero, first: number, last: number, id: id)
            place.put(name.description, [UInt8](repeating: 0x4C, count: size))
            try a.save("later \(n)")
            place.clock += 125
            try exchange()
        }
        #expect(writers() == [own.writer] && b.ids == a.ids && a.ids.count == 4)
    }

    @Test func aPackThatADeviceDoesNotKnowMakesItANewWriter() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save("first")
        try a.exchangeOnce()
        let own = try #require(place.names(.log).first), root = try #require(place.names(.root).first)
        let store = try PackedState.Root(root, #require(place.files[root.description])).store
        var pack = PackWriter(PackWriter.Identity(kind: .log, store: store, salt: store, writer: own.writer, first: 7, last: 7))
        let made = try pack.finish()
        place.put(made.name.description, made.bytes)
        try a.save("later")
        try a.exchangeOnce()
        #expect(Set(place.names(.log).map(\.writer)).count == 2)
    }

    /// A device that finds packs without a root is not advised to remove them.
    @Test func packsWithoutTheirRootAreToBeLeft() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save("first")
        try a.exchangeOnce()
        let root = try #require(place.names(.root).first).description, bytes = place.files[root]
        place.files[root] = nil
        let b = try PackedDevice(place)
        let problem = try #require(try b.exchange.retrieve().problems.first)
        #expect(problem.error.code == .identifierMismatch && problem.error.message.contains("Leave it there"))
        #expect(!problem.error.message.contains("Remove"))
        place.put(root, try #require(bytes))
        place.clock += 1_000
        try b.exchangeOnce()
        #expect(b.ids == a.ids)
    }

    /// The store's memory of a place is in its caches, which an attacker may have changed. No contents end the process.
    @Test func timesAndNamesOfNoMeaningAreNoState() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save("first")
        try a.exchangeOnce()
        let (key, bytes) = try #require(a.storage.caches.first { $0.key.hasPrefix("packs-") && $0.key.utf8.count == 22 })
        let whole = try #require(PackedState(encoded: bytes)), log = try #require(place.names(.log).first)
        let far = PackedState.Read(size: 1, missing: .min), none = PackName(kind: .log, writer: 0, first: 2, last: 1, id: log.id)
        let changes: [(inout PackedState) -> Void] = [
            { $0.prepared = .min }, { $0.healing = .max }, { $0.based = .max }, { $0.read[log] = far }, { $0.attempts[log]?.listed = .min },
            { $0.deletions[log] = PackedState.Deletion(due: .min, exchange: 0) }, { $0.bad[log] = PackedState.Bad(since: .min, again: 0) },
            { $0.wanted[none] = 1 }, { $0.adopting = [none] },
        ]
        for (i, change) in changes.enumerated() {
            var state = whole
            change(&state)
            #expect(PackedState(encoded: PackedState.encoded(state.body)) == nil, "\(i)")
            // The changed memory is ignored, and the exchange continues.
            a.storage.caches[key] = PackedState.encoded(state.body)
            a.restart()
            try a.save("later \(i)")
            try a.exchangeOnce()
        }
        let b = try PackedDevice(place)
        try b.exchangeOnce()
        #expect(b.ids == a.ids && a.ids.count == 1 + changes.count)
    }

    /// Anyone can make whole roots with smaller ids. They displace no root that a device knows, and some of them are remembered too.
    @Test func rootsThatAnybodyMadeKeepNoDeviceOut() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try a.save("first")
        for device in [a, b] { try device.exchangeOnce() }
        let right = try #require(place.names(.root).first)
        var made = 0, n: UInt64 = 0
        while made < PackedSettings.rootsLimit + 4 {
            n += 1
            let store = PackID(high: 7, low: n), text = #"{"format":1,"store":"\#(store)","layout":"packed","encrypted":false}"#
            var root = PackWriter(PackWriter.Identity(kind: .root, store: store, salt: store, writer: 1, first: 0, last: 0))
            try Array(text.utf8).withUnsafeBytes { try root.add(bare: $0) }
            let file = try root.finish()
            guard file.name.id < right.id else { continue }
            place.put(file.name.description, file.bytes)
            made += 1
        }
        place.clock += 125
        for device in [a, b] { try device.exchangeOnce() }
        try a.save("second")
        for device in [a, b] { try device.exchangeOnce() }
        #expect(b.ids == a.ids && a.ids.count == 2)
        let notes = try #require(b.storage.caches.first { $0.key.hasPrefix("packs-") && $0.key.utf8.count == 22 })
        let known = try #require(PackedState(encoded: notes.value)).roots
        #expect(known.count == PackedSettings.rootsLimit && known.contains { $0.name == right })
        // A new device finds only the forged roots, and reports them.
        let c = try PackedDevice(place)
        #expect(try c.exchange.retrieve().problems.contains { $0.error.code == .identifierMismatch } && c.ids.isEmpty)
    }

    /// A device remembers a bounded number of invalid files, and reports the number of the others. Valid packs are read.
    @Test func filesThatAreNoPacks() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place), further = 7
        try a.save("first")
        for device in [a, b] { try device.exchangeOnce() }
        for n in 0..<UInt32(PackedSettings.badLimit + further) {
            let bytes = withUnsafeBytes(of: n) { Array($0) } + [UInt8](repeating: 0x4C, count: 400)
            let id = try #require(PackID(bytes.withUnsafeBytes { SHA256.digest($0) }))
            place.put(PackName(kind: .log, writer: UInt64(n) + 1, first: 1, last: 1, id: id).description, bytes)
        }
        try a.save("second")
        try a.exchangeOnce()
        let result = try b.exchange.retrieve()
        #expect(b.ids == a.ids && result.problems.count == PackedSettings.badLimit + 1)
        #expect(result.problems.last?.error.message.hasPrefix("\(further) further versions or files") == true)
        let notes = try #require(b.storage.caches.first { $0.key.hasPrefix("packs-") && $0.key.utf8.count == 22 })
        #expect(try #require(PackedState(encoded: notes.value)).bad.count == PackedSettings.badLimit)
    }
}
