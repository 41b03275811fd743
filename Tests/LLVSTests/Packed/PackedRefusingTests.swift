import LLVSTesting
import Testing

@testable import LLVS

/// Places where nothing is left that a device knows: emptied ones (pitfall 27 of the design), and those of other stores. Nothing is taken
/// from them, and nothing sent.
@Suite("Packed: other places") struct PackedRefusingTests {
    private static let day = 86_400 / Int(MemoryPlace.step)

    private func isReset(_ call: () throws -> Void) -> Bool {
        do { try call() } catch { return (error as? StoreError)?.circumstance == .remoteReset }
        return false
    }

    /// Also by who only ever received, or found a root and nothing else; by a send alone and by a whole exchange.
    @Test(arguments: [false, true], [false, true]) func anEmptiedPlaceIsNotFilledByWhoReceived(alone: Bool, knowsRootAlone: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try a.save()
        try a.exchangeOnce()
        if knowsRootAlone { place.files = place.files.filter { $0.key.contains("root-") } }
        _ = try b.exchange.retrieve()
        #expect(b.ids == (knowsRootAlone ? [] : a.ids))
        // A send does without a look of its own for ten seconds after a retrieve of the same process.
        b.restart()
        place.files = [:]
        try b.save("more")
        #expect(isReset { if alone { _ = try b.exchange.send() } else { try b.exchangeOnce() } })
        #expect(isReset { _ = try b.exchange.send() } && place.files.isEmpty)
        b.exchange.restorationState = Array("new".utf8)
        try b.exchangeOnce()
        #expect(place.versions() == b.ids && place.names(.root).count == 1)
    }

    /// Another account, or a folder of the same name: whenever the place was last listed in full, and also after days.
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
        // Where its own is there again it goes on, and has taken nothing over.
        place.files = own
        for device in [a, b] { try device.exchangeOnce() }
        #expect(a.ids == before && b.ids == before && place.versions() == before && place.names(.root).count == 1)
    }

    /// All names of `log/` may be new to who was away: the root that it knows is looked at, which is one request.
    @Test func whoWasAwayFindsItsRoot() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 2), b = try PackedDevice(place)
        try a.save("a")
        try a.exchangeOnce()
        _ = try b.exchange.retrieve()
        for n in 0..<3 {
            try a.save("\(n)")
            try a.exchangeOnce()
            // What was merged is deleted.
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
