import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Pitfall 26 of the design: places without room.
@Suite("Packed: room") struct PackedRoomTests {
    private static let hour = 3_600

    /// A device with enough log packs for a merge, at a place that has room only for small files.
    private func device(_ place: MemoryPlace) throws -> PackedDevice {
        // A request takes a second.
        place.pace = 1
        let device = try PackedDevice(place, fanIn: 3)
        for n in 0..<3 {
            try device.save("n\(n)")
            try device.exchangeOnce()
        }
        place.hasRoom = { !$0.contains("/base/") }
        return device
    }

    /// New versions are sent and reported. The merged pack is tried once an hour, and is a problem as long as there is no room.
    @Test func aLogPackThatFitsIsSentAndNothingElseIsTried() throws {
        let place = MemoryPlace(), a = try device(place), b = try PackedDevice(place)
        let id = try a.save("fits")
        _ = try a.exchange.retrieve()
        let sent = try a.exchange.send()
        #expect(sent.versions == [id] && sent.problems.map(\.error.code) == [.noSpace] && sent.problems[0].name == "pack1/base")
        #expect(place.versions() == a.ids && place.names(.base).isEmpty)
        // The result is the same in another process, and without new versions a send costs nothing.
        for restarts in [false, true] {
            if restarts { a.restart() }
            a.files.asked = []
            _ = try a.exchange.retrieve()
            #expect(try a.exchange.send().problems.map(\.error.code) == [.noSpace])
            #expect(a.files.asked == ["list pack1/log"])
        }
        // The device sends and receives.
        try b.save("b")
        try b.exchangeOnce()
        try a.save("more")
        #expect(try !a.exchangeOnce().contains { $0.hasPrefix("publish pack1/base") })
        #expect(a.ids == b.ids.union(a.ids) && place.versions() == a.ids)
        // An hour later it is tried once.
        place.clock += Self.hour + 1
        #expect(try a.exchangeOnce().count { $0.hasPrefix("publish pack1/base") } == 1)
        #expect(try !a.exchangeOnce().contains { $0.hasPrefix("publish pack1/base") })
        place.hasRoom = { _ in true }
        place.clock += Self.hour + 1
        _ = try a.exchange.retrieve()
        #expect(try a.exchange.send().problems.isEmpty && place.names(.base).count == 1)
        #expect(place.versions() == a.ids)
    }

    /// Replaced packs are deleted at once, and then the merge is retried.
    @Test func whatIsDeletedMakesRoom() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 3)
        place.pace = 1
        for n in 0..<6 {
            try a.save("n\(n)")
            try a.exchangeOnce()
        }
        #expect(place.names(.base).count == 1 && place.names(.log).count == 6)
        place.hasRoom = { [unowned place] in !$0.contains("/base/") || place.names(.log).count < 6 }
        try a.save("seventh")
        _ = try a.exchange.retrieve()
        #expect(try a.exchange.send().problems.map(\.error.code) == [.noSpace])
        #expect(place.names(.log).count == 4 && place.names(.base).count == 1)
        _ = try a.exchange.retrieve()
        #expect(try a.exchange.send().problems.isEmpty)
        #expect(place.names(.base).count == 2 && place.versions() == a.ids)
    }

    /// The service refuses files as large as the merged packs. They are not merged, and everything else continues.
    @Test(arguments: [false, true]) func whatIsTooLargeForTheServiceStaysApart(isTold: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 3), b = try PackedDevice(place)
        place.pace = 1
        place.most = 700 << 10
        if isTold { a.files.largestFile = place.most }
        func large() -> [UInt8] { StorageConformance.bytes(seed: place.random.next(), count: 300 << 10) }
        var tries = 0
        a.files.before = { if a.files.asked.last?.hasPrefix("publish pack1/base") ?? false { tries += 1 } }
        for n in 0..<4 {
            let id = try a.save("large\(n)", large())
            _ = try a.exchange.retrieve()
            #expect(try a.exchange.send().versions == [id])
        }
        #expect(tries == (isTold ? 0 : 1) && place.names(.base).isEmpty && place.versions() == a.ids)
        // The limit is remembered, by another process too; smaller packs are merged.
        a.restart()
        for n in 0..<8 {
            try a.save("small\(n)")
            try a.exchangeOnce()
        }
        #expect(place.names(.base).count >= 1 && place.files.values.allSatisfy { $0.count <= place.most })
        #expect(tries == place.names(.base).count + (isTold ? 0 : 1))
        try b.exchangeOnce()
        #expect(b.ids == a.ids && place.versions() == a.ids)
    }

    /// New versions are sent in packs of at most the size that the service accepts.
    @Test func whatIsNewGoesInPacksThatTheServiceTakes() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        place.most = 600 << 10
        for n in 0..<20 {
            try a.save("n\(n)", StorageConformance.bytes(seed: place.random.next(), count: 100 << 10))
        }
        _ = try a.exchange.retrieve()
        #expect(try a.exchange.send().versions.count == 20 && place.versions() == a.ids)
        try b.exchangeOnce()
        #expect(b.ids == a.ids)
        // A pack of one version cannot be made smaller, and is reported, in each exchange.
        try a.save("one", StorageConformance.bytes(seed: place.random.next(), count: 900 << 10))
        for _ in 0..<2 { #expect { try a.exchange.send() } throws: { ($0 as? StoreError)?.code == .tooLarge } }
    }

    /// Without any room, receiving continues, and nothing is lost.
    @Test func receivingGoesOn() throws {
        let place = MemoryPlace(), a = try PackedDevice(place, fanIn: 3), b = try PackedDevice(place)
        for device in [a, b, a] {
            try device.save()
            try device.exchangeOnce()
        }
        place.isFull = true
        try a.save("mine")
        for n in 0..<3 {
            place.isFull = false
            try b.save("theirs\(n)")
            _ = try b.exchange.send()
            place.isFull = true
            #expect(try a.exchange.retrieve().versions.count == 1)
            #expect(throws: StoreError.self) { try a.exchange.send() }
        }
        place.isFull = false
        for device in [a, b] { try device.exchangeOnce() }
        #expect(a.ids == b.ids && place.versions() == a.ids)
    }

    /// If an adoption finds no room, it fills its number with a small pack, and is not chosen again for an hour.
    @Test func anAdoptionThatFindsNoRoomWaits() throws {
        let day = 86_400, place = MemoryPlace(), gone = try PackedDevice(place), a = try PackedDevice(place)
        place.pace = 1
        for n in 0..<5 {
            try gone.save("gone\(n)", [UInt8](repeating: 1, count: 100))
            try gone.exchangeOnce()
        }
        try a.save("a")
        try a.exchangeOnce()
        place.hasRoom = { [unowned a] name in !name.contains("/base/") || a.files.sizeToPut < 500 }
        place.clock += 31 * day
        try a.save("b")
        _ = try a.exchange.retrieve()
        let sent = try a.exchange.send()
        #expect(sent.versions.count == 1 && sent.problems.map(\.error.code) == [.noSpace])
        #expect(place.names(.base).map(\.writer) == [a.writer] && place.versions() == a.ids)
        #expect(try a.exchangeOnce() == ["list pack1/log"])
        place.hasRoom = { _ in true }
        place.clock += day + 1
        try a.exchangeOnce()
        #expect(!place.names(.log).contains { $0.writer == gone.writer && place.names(.base).count < 2 })
        #expect(place.versions() == a.ids)
    }
}
