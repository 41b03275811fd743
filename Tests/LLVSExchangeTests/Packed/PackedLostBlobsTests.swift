import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Large values that a place has lost or damaged are sent again by devices that have them.
@Suite("Packed: lost large values") struct PackedLostBlobsTests {
    enum Loss { case deleted, cutShort, flipped }
    private static let day = 125

    private func device(_ place: MemoryPlace, _ isEncrypted: Bool) throws -> PackedDevice {
        guard isEncrypted else { return try PackedDevice(place) }
        return try PackedDevice(place, keys: Array("six words".utf8).withUnsafeBytes { try RemoteKeys(passphrase: $0) })
    }
    private func large() -> [UInt8] { Filling.pattern(2 << 20) }

    private func lose(_ place: MemoryPlace, _ how: Loss) throws -> String {
        let part = try #require(place.names(.blob).first).description
        switch how {
        case .deleted: place.files[part] = nil
        case .cutShort: place.files[part]?.removeLast(1_000)
        case .flipped: place.files[part]?[5_000] ^= 1
        }
        return part
    }

    /// Exchanges for some days.
    private func go(_ devices: [PackedDevice], _ place: MemoryPlace) throws -> [ExchangeProblem] {
        var problems: [ExchangeProblem] = []
        for _ in 0..<4 {
            for device in devices {
                problems += try device.exchange.retrieve().problems
                _ = try device.exchange.send()
            }
            place.clock += PackedLostBlobsTests.day
        }
        return problems
    }

    private func expectWhole(_ place: MemoryPlace, _ isEncrypted: Bool, _ ids: Set<VersionID>, _ version: VersionID) throws {
        let new = try device(place, isEncrypted)
        #expect(try new.exchange.retrieve().problems.isEmpty)
        #expect(new.ids == ids)
        #expect(try new.store.value(ValueID("large"), at: version)?.data == large())
    }

    @Test(arguments: [Loss.deleted, .cutShort], [false, true]) func whatAListingShowsIsSentAgain(_ loss: Loss, isEncrypted: Bool) throws {
        let place = MemoryPlace(), a = try device(place, isEncrypted), b = try device(place, isEncrypted)
        let version = try a.save("large", large())
        for device in [a, b] { try device.exchangeOnce() }
        try a.save("small")
        try a.exchangeOnce()
        let part = try lose(place, loss)
        let problems = try go([a], place)
        #expect(problems.contains { part.hasPrefix($0.name) && $0.error.code == .damaged }, "\(problems)")
        try expectWhole(place, isEncrypted, a.ids, version)
        // Another device that has the value finds that it was sent.
        let before = Set(place.names(.blob))
        _ = try go([b], place)
        #expect(Set(place.names(.blob)) == before)
        #expect(try go([a], place).isEmpty)
    }

    @Test(arguments: [false, true]) func whatVerifyingFindsIsSentAgain(isEncrypted: Bool) throws {
        let place = MemoryPlace(), a = try device(place, isEncrypted), version = try a.save("large", large())
        try a.exchangeOnce()
        let part = try lose(place, .flipped), found = try a.exchange.retrieve(verifyKnown: true)
        #expect(found.problems.map(\.name) == [part])
        #expect(try a.exchange.send().versions == [version])
        try expectWhole(place, isEncrypted, a.ids, version)
        #expect(try a.exchange.retrieve(verifyKnown: true).problems.isEmpty)
        #expect(try a.exchange.send().versions == [])
    }

    @Test(arguments: [false, true]) func aReaderReportsDamage(isEncrypted: Bool) throws {
        let place = MemoryPlace(), a = try device(place, isEncrypted), version = try a.save("large", large())
        try a.exchangeOnce()
        let part = try lose(place, .flipped), b = try device(place, isEncrypted), problems = try b.exchange.retrieve().problems
        #expect(b.ids.isEmpty && problems.count == 2 && problems.allSatisfy { $0.error.message.contains(part) }, "\(problems)")
        #expect(!problems.contains { $0.error.message.contains("the version ,") })
        _ = try b.exchange.send()
        // Reported once, not each time.
        let packs = place.names(.log).count
        _ = try b.exchange.send()
        #expect(packs == 2 && place.names(.log).count == packs)
        _ = try a.exchange.retrieve()
        #expect(try a.exchange.send().versions == [version])
        #expect(try b.exchange.retrieve().problems.isEmpty)
        #expect(b.ids == a.ids)
        try expectWhole(place, isEncrypted, a.ids, version)
    }

    /// A report about a whole part causes no device to send it.
    @Test func claimsAreLookedInto() throws {
        let place = MemoryPlace(), a = try device(place, false)
        try a.save("large", large())
        try a.exchangeOnce()
        let part = try lose(place, .flipped), b = try device(place, false)
        _ = try b.exchange.retrieve()
        _ = try b.exchange.send()
        place.files[part]?[5_000] ^= 1
        _ = try a.exchange.retrieve()
        #expect(try a.exchange.send().versions == [] && place.names(.blob).count == 1)
    }

    /// Any number of packs claim that any number of parts are damaged. One exchange reads two of these parts. Those that are whole are not
    /// read again within an hour, and then less and less often. Damage is found nevertheless.
    @Test func claimsCostLittle() throws {
        let place = MemoryPlace(), a = try device(place, false), count = 7
        place.pace = 1
        for n in 0..<count {
            let data = Filling.pattern(PackFormat.inlineValue + 1 + n)
            _ = try a.store.makeVersion(basedOn: nil, changes: [.insert(ValueID("large \(n)"), data: data)])
        }
        try a.exchangeOnce()
        let parts = place.names(.blob).map(\.description)
        #expect(parts.count == count)
        /// A device that read the parts while they were damaged reports them.
        func claim() throws {
            let other = try device(place, false)
            for part in parts { place.files[part]?[5_000] ^= 1 }
            _ = try other.exchange.retrieve()
            _ = try other.exchange.send()
            for part in parts { place.files[part]?[5_000] ^= 1 }
        }
        func read() throws -> [String] { try a.exchangeOnce().filter { $0.hasPrefix("read pack1/blob") } }
        try claim()
        var looked: [String] = []
        for _ in 0..<4 {
            let now = try read()
            #expect(now.count <= PackedSettings.claimsRead, "\(now)")
            looked += now
            a.restart()
        }
        #expect(Set(looked).count == count && looked.count == count, "\(looked)")
        #expect(try read().isEmpty && place.names(.blob).count == count)
        // Reported once more at once, and after more than an hour.
        try claim()
        for _ in 0..<4 { #expect(try read().isEmpty) }
        place.clock += 4_000
        try claim()
        #expect(try read().count == PackedSettings.claimsRead)
        for _ in 0..<4 { _ = try read() }
        // A newly damaged part is reported, read in its turn, and sent again.
        place.clock += 20 * 86_400
        for part in parts { place.files[part]?[5_000] ^= 1 }
        let new = try device(place, false)
        _ = try new.exchange.retrieve()
        _ = try new.exchange.send()
        for _ in 0..<count { try a.exchangeOnce() }
        let newest = try device(place, false)
        #expect(try newest.exchange.retrieve().problems.isEmpty)
        #expect(newest.ids == a.ids)
    }

    /// A version so large that it is stored as a large value itself.
    @Test func versionsThatLieInLargeValues() throws {
        let place = MemoryPlace(), a = try device(place, false)
        let changes = try (0..<9).map { Value.Change.insert(try ValueID("k\($0)"), data: [UInt8](repeating: UInt8($0), count: 900 << 10)) }
        let many = try (0..<60_000).map { Value.Change.insert(try ValueID("a rather long name of a small value \($0)"), data: [1, 2, 3]) }
        _ = try a.store.makeVersion(basedOn: nil, changes: changes + many)
        try a.exchangeOnce()
        for name in place.names(.blob) { place.files[name.description] = nil }
        _ = try go([a], place)
        let new = try device(place, false)
        #expect(try new.exchange.retrieve().problems.isEmpty)
        #expect(new.ids == a.ids)
    }
}
