import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Places that no longer contain anything that a device knows: emptied places (pitfall 27 of the design), and places of other stores. A
/// device receives nothing from them, and sends nothing.
@Suite("Packed: other places") struct PackedRefusingTests {
    private static let day = 86_400 / Int(MemoryPlace.step)

    private func isReset(_ call: () throws -> Void) -> Bool {
        do { try call() } catch { return (error as? StoreError)?.circumstance == .remoteReset }
        return false
    }

    /// A device that only ever received, or that found only a root, refuses the emptied place, in a send and in a whole exchange.
    @Test(arguments: [false, true], [false, true]) func aReceiverDoesNotRefillAnEmptiedPlace(alone: Bool, knowsRootAlone: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try a.save()
        try a.exchangeOnce()
        if knowsRootAlone { place.files = place.files.filter { $0.key.contains("root-") } }
        _ = try b.exchange.retrieve()
        #expect(b.ids == (knowsRootAlone ? [] : a.ids))
        // Within ten seconds after a retrieve of the same process, a send does not list the place itself.
        b.restart()
        place.files = [:]
        try b.save("more")
        #expect(isReset { if alone { _ = try b.exchange.send() } else { try b.exchangeOnce() } })
        #expect(isReset { _ = try b.exchange.send() } && place.files.isEmpty)
        b.exchange.restorationState = Array("new".utf8)
        try b.exchangeOnce()
        #expect(place.versions() == b.ids && place.names(.root).count == 1)
    }

    /// Another account, or a folder of the same name. It is refused whenever the place was last listed in full, and also after days.
    @Test(arguments: [false, true], [0, 1, 2]) func aPlaceOfAnotherStoreIsRefused(alone: Bool, days: Int) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place), c = try PackedDevice(place)
        try a.save("a")
        for device in [a, b, a, b] { try device.exchangeOnce() }
        let own = place.files
        place.files = [:]
        try c.save("c")
        try c.exchangeOnce()
        let others = place.files
        place.clock += days * Self.day
        try a.save("more")
        let before = a.ids
        for device in [a, b, a, b] {
            #expect(isReset { if alone { _ = try device.exchange.send() } else { try device.exchangeOnce() } })
            #expect(isReset { _ = try device.exchange.retrieve() })
        }
        #expect(place.files == others && a.ids == before)
        #expect(try c.exchange.retrieve().problems.isEmpty)
        // When its own place is back, the device continues, and has adopted nothing.
        place.files = own
        for device in [a, b] { try device.exchangeOnce() }
        #expect(a.ids == before && b.ids == before && place.versions() == before && place.names(.root).count == 1)
    }

    /// Common versions prove nothing if every store has them, or if both stores were copied from one template.
    @Test func versionsInCommonProveNothing() throws {
        let place = MemoryPlace(), template = try PackedDevice(MemoryPlace())
        for n in 0..<3 { try template.save("help\(n)") }
        let a = try PackedDevice(place), b = try PackedDevice(place), c = try PackedDevice(place)
        for device in [a, c] { try template.give(to: device) }
        try a.save("a")
        for device in [a, b, a] { try device.exchangeOnce() }
        place.files = [:]
        try c.save("c")
        try c.exchangeOnce()
        let others = place.files, before = a.ids
        for device in [a, b] { #expect(isReset { try device.exchangeOnce() }) }
        #expect(place.files == others && a.ids == before && b.ids == before)
        // The user decides to join the two.
        a.exchange.restorationState = Array("new".utf8)
        for device in [a, c, a] { try device.exchangeOnce() }
        #expect(a.ids == c.ids && a.ids.count == 5 && place.names(.root).count == 1)
        #expect(isReset { try b.exchangeOnce() })
    }

    /// A place that is filled again has its former store id, so all devices recognize it; also after a crash, and if two devices fill it.
    @Test(arguments: [false, true]) func aPlaceThatIsFilledAnewKeepsItsStoreID(dies: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place), c = try PackedDevice(place)
        for device in [a, b, c] {
            try device.save("own")
            try device.exchangeOnce()
        }
        let old = try #require(a.known?.roots.first?.store)
        place.files = [:]
        a.exchange.restorationState = Array("new".utf8)
        if dies {
            _ = try a.exchange.retrieve()
            a.restart()
        }
        try a.exchangeOnce()
        #expect(a.known?.roots.map(\.store) == [old] && a.known?.formerStores == [])
        // The others continue, and send missing versions.
        for _ in 0..<4 {
            for device in [c, b, a] { try device.exchangeOnce() }
            place.clock += 86_400
        }
        #expect(a.ids.count == 3 && place.versions() == a.ids)
        // A device that joins another place forgets the former one.
        let other = MemoryPlace(), d = try PackedDevice(other)
        try d.save("d")
        try d.exchangeOnce()
        place.files = other.files
        b.exchange.restorationState = Array("new".utf8)
        try b.exchangeOnce()
        #expect(b.known?.roots.map(\.store) == d.known?.roots.map(\.store) && b.known?.formerStores == [])
    }

    /// A device that begins at the same moment writes its root after this one has listed the roots.
    @Test func devicesThatBeginAtOnceAreNotOfAnotherStore() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        place.pace = 1
        try a.save("a")
        try b.save("b")
        try a.exchangeOnce()
        let first = place.files
        place.files = [:]
        try b.exchangeOnce()
        let second = place.files
        // The roots are listed before the second one exists, the packs afterwards.
        let c = try PackedDevice(place)
        place.files = first
        var isThere = false
        c.files.before = {
            guard c.files.asked.last == "list pack1/log", !isThere else { return }
            isThere = true
            place.files.merge(second) { one, _ in one }
        }
        #expect(try c.exchange.retrieve().problems.isEmpty)
        #expect(isThere && c.ids == a.ids.union(b.ids))
    }

    /// All names in `log/` may be new to a device that was away. It reads the root that it knows, which is one request.
    @Test func whoWasAwayFindsItsRoot() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2), b = try PackedDevice(place)
        try a.save("a")
        try a.exchangeOnce()
        _ = try b.exchange.retrieve()
        for n in 0..<3 {
            try a.save("\(n)")
            try a.exchangeOnce()
            // Merged packs are deleted.
            place.clock += 2
        }
        _ = try b.exchange.retrieve()
        for n in 0..<6 {
            try a.save("more\(n)")
            try a.exchangeOnce()
            place.clock += 2
        }
        try b.save("b")
        b.restart()
        b.files.asked = []
        _ = try b.exchange.send()
        #expect(b.files.asked.count == 3, "\(b.files.asked)")
        _ = try b.exchange.retrieve()
        #expect(b.ids.isSuperset(of: a.ids))
    }
}
