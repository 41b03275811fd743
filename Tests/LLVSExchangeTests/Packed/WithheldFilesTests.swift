import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// A service cannot return single files for some time, although they exist.
@Suite("Packed: files that are withheld") struct WithheldFilesTests {
    private static let day = 86_400 / Int(MemoryPlace.step)
    private static let trouble = StoreError(.transport, "The service answers 500.")
    private let secret: [UInt8]

    init() throws { secret = try RemoteIdentity().withSecret { Array($0) } }
    private func keys() throws -> RemoteKeys { try secret.withUnsafeBytes { try RemoteKeys(identities: [$0]) } }
    private func isRefused(_ code: StoreError.Code, _ call: () throws -> Void) -> Bool {
        do { try call() } catch { return (error as? StoreError)?.code == code }
        return false
    }

    /// A pack with older keys cannot be read at the moment. Its parts stay, and it is resent once it can be read.
    /// - Parameter onlyFirst: whether the pack can be read again by the time the parts are listed.
    @Test(arguments: [false, true]) func partsOfAPackStay(onlyFirst: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place, keys: keys()), b = try PackedDevice(place, keys: keys())
        try a.save("small")
        for device in [a, b] { try device.exchangeOnce() }
        let large = [UInt8](repeating: 7, count: 2 << 20), version = try b.save("large", large), before = Set(place.names(.log))
        try b.exchangeOnce()
        let late = try #require(Set(place.names(.log)).subtracting(before).first).description, parts = Set(place.names(.blob))
        place.hides = [late]
        _ = try a.exchange.rekey(renewing: true)
        place.hides = []
        var isWithheld = true, withheld = 0
        a.files.withholds = { [unowned a] name in
            guard name == late, isWithheld, !onlyFirst || !a.files.asked.contains("list pack1/blob") else { return nil }
            withheld += 1
            return Self.trouble
        }
        for _ in 0..<4 {
            place.clock += Self.day + 1
            try a.exchangeOnce()
            #expect(a.known?.rekeying != nil && parts.isSubset(of: place.names(.blob)))
        }
        #expect(withheld > 1)
        isWithheld = false
        for _ in 0..<6 {
            place.clock += Self.day + 1
            try a.exchangeOnce()
        }
        #expect(a.known?.rekeying == nil && parts.isDisjoint(with: place.names(.blob)))
        let c = try PackedDevice(place, keys: keys())
        #expect(try c.exchange.retrieve().problems.isEmpty)
        #expect(try c.store.value(ValueID("large"), at: version)?.data == large)
    }

    /// If files that cannot be read now may be encrypted, nothing is written unencrypted.
    @Test func whatCannotBeReadMayBeEncrypted() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, keys: keys())
        try a.save()
        try a.exchangeOnce()
        for name in place.files.keys where name.hasPrefix("pack1/keys/") { place.remove(name) }
        let files = MemoryFiles(place)
        #expect(isRefused(.keyMissing) { try RemoteKeyDirectory.refuseKeys(files) {} })
        files.withholds = { _ in Self.trouble }
        #expect(isRefused(.transport) { try RemoteKeyDirectory.refuseKeys(files) {} })
        // One readable file suffices.
        files.withholds = { $0.contains("root-") ? Self.trouble : nil }
        #expect(isRefused(.keyMissing) { try RemoteKeyDirectory.refuseKeys(files) {} })
    }

    /// While a pack cannot be read after another one was lost, none of its versions is sent again.
    @Test func whatIsWithheldIsNotLost() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        for name in ["one", "two", "three"] {
            try a.save(name)
            try a.exchangeOnce()
        }
        let packs = place.names(.log).sorted { $0.first < $1.first }
        place.remove(packs[0].description)
        var turns = 0
        while a.known?.healing ?? 0 == 0, turns < 60 {
            place.clock += 10
            try a.exchangeOnce()
            turns += 1
        }
        let due = try #require(a.known?.healing)
        #expect(due != 0)
        while place.time <= due { place.clock += 1 }
        a.files.withholds = { $0 == packs[1].description ? Self.trouble : nil }
        a.restart()
        for _ in 0..<3 {
            try a.exchangeOnce()
            #expect(a.known?.healing == due && Set(place.names(.log)) == Set(packs[1...]))
        }
        a.files.withholds = { _ in nil }
        for _ in 0..<3 {
            place.clock += 10
            try a.exchangeOnce()
        }
        #expect(a.known?.healing == 0 && place.versions() == a.ids && place.names(.log).count == 3)
    }

    /// A part of a large value that cannot be read at the moment is not sent again.
    @Test func aPartThatIsWithheldIsNotLost() throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save("large", [UInt8](repeating: 7, count: 2 << 20))
        try a.exchangeOnce()
        let parts = Set(place.names(.blob)), packs = Set(place.names(.log))
        a.files.withholds = { $0.hasPrefix("pack1/blob/") ? Self.trouble : nil }
        let problems = try a.exchange.retrieve(verifyKnown: true).problems
        #expect(problems.map(\.error.code) == [.transport] && parts.contains { $0.description == problems.first?.name })
        try a.exchangeOnce()
        #expect(Set(place.names(.log)) == packs && Set(place.names(.blob)) == parts)
        a.files.withholds = { _ in nil }
        #expect(try a.exchange.retrieve(verifyKnown: true).problems.isEmpty)
    }

    /// Two devices made keys at the same moment. One has written a root that the other cannot read yet. The keys of the first device stay.
    @Test func keysOfARootThatIsWithheldStay() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, keys: keys()), b = try PackedDevice(place, keys: keys())
        try a.save("a")
        try b.save("b")
        var isFirst = true
        a.files.before = { [unowned a] in
            guard isFirst, a.files.asked.last?.hasPrefix("publish pack1/keys/") ?? false else { return }
            isFirst = false
            try b.exchangeOnce()
            a.files.withholds = { $0.hasPrefix("pack1/root-") ? Self.trouble : nil }
        }
        _ = try a.exchange.retrieve()
        #expect(isRefused(.transport) { _ = try a.exchange.send() })
        a.files.withholds = { _ in nil }
        for device in [a, b, a, b] {
            _ = try device.exchange.retrieve()
            #expect(try device.exchange.send().problems.isEmpty)
        }
        #expect(!isFirst && a.ids == b.ids && a.ids.count == 2 && a.known?.pin == b.known?.pin)
    }
}
