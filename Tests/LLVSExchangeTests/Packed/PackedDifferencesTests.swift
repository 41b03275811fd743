import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Values of packs stored as differences: devices send, merge packs and read parts of them. See docs/pack-format.md, "Values as
/// differences".
@Suite("Packed: differences") struct PackedDifferencesTests {
    /// Several devices save many ids, on branches, with values of all sizes.
    @Test(arguments: [false, true], Sample.seeds(from: 1, usual: 2, deep: 30)) func whatWasSavedComesBack(
        isEncrypted: Bool, seed: UInt64
    ) throws {
        let place = MemoryPlace(seed: seed)
        let secret = try RemoteIdentity().withSecret { Array($0) }
        func device() throws -> PackedDevice {
            let keys = try secret.withUnsafeBytes { try RemoteKeys(identities: [$0], recipients: []) }
            return try PackedDevice(place, fanIn: 3, keys: isEncrypted ? keys : nil)
        }
        var random = SeededRandom(seed: seed)
        let devices = [try device(), try device(), try device()]
        var states: [VersionID: [ValueID: [UInt8]]] = [:]
        func expectAll(_ device: PackedDevice) throws {
            #expect(device.ids == Set(states.keys))
            for (version, state) in states {
                let found = try device.store.values(at: version, limit: 100)
                #expect(Dictionary(uniqueKeysWithValues: found.map { ($0.id, $0.data) }) == state)
            }
            #expect(try device.store.verifyRecords(OperationControl()).damages.isEmpty)
        }
        for step in 0..<60 {
            let device = devices[Int(random.next() % 3)]
            let heads = try device.store.heads().map(\.id).sorted()
            let base = heads.isEmpty ? nil : heads[Int(random.next() % UInt64(heads.count))]
            var state = base.flatMap { states[$0] } ?? [:], changes: [Value.Change] = []
            for i in 0..<Int(1 + random.next() % 3) {
                let key = try id("v\(Int(random.next() % 3) + 3 * i)")
                if let data = state[key], random.next() % 8 > 0 {
                    let edited = random.next() % 10 == 0 ? data + data : Filling.edited(data, &random)
                    changes.append(.update(key, data: edited))
                    state[key] = edited
                } else if state[key] != nil {
                    changes.append(.remove(key))
                    state[key] = nil
                } else {
                    let data = Filling.words([100, 1_023, 1_024, 4_000, 30_000][Int(random.next() % 5)], random.next())
                    changes.append(.insert(key, data: data))
                    state[key] = data
                }
            }
            let named = random.next() % 10 == 0 ? try VersionID("named-\(seed)-\(step)") : nil
            states[try device.store.makeVersion(basedOn: base, changes: changes, id: named).id] = state
            if random.next() % 4 == 0 { try device.exchangeOnce() }
        }
        for _ in 0..<3 { for device in devices { try device.exchangeOnce() } }
        #expect(place.names(.base).count > 0)
        for device in devices { try expectAll(device) }
        let late = try device()
        try late.exchangeOnce()
        try expectAll(late)
    }

    /// A device that has the first versions of a merged pack reads only its end, whose differences build on these versions.
    @Test func partsOfAPack() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 4), b = try PackedDevice(place)
        var text = Filling.noise(1, 400_000), saved: [VersionID: [UInt8]] = [:]
        func save(_ count: Int) throws {
            for n in 0..<count {
                text[1_000 * n + 7] &+= 1
                saved[try a.store.makeVersion(basedOn: try a.store.heads().last?.id, changes: [.update(try id("text"), data: text)]).id] =
                    text
            }
        }
        for n in 0..<5 {
            try save(40)
            for i in 0..<8 { try a.save("other \(n) \(i)", Filling.noise(UInt64(100 * n + i + 2), 60_000)) }
            try a.exchangeOnce()
            if n == 1 { try b.exchangeOnce() }
        }
        #expect(place.names(.base).count == 1)
        // Of the first four packs, only the merged one remains.
        for name in place.names(.log) where name.last <= 4 { place.remove(name.description) }
        try b.exchangeOnce()
        #expect(b.ids == a.ids)
        for (version, data) in saved { #expect(try b.store.value(id("text"), at: version)?.data == data) }
    }
}
