import LLVSTesting
import Testing
@testable import LLVS

/// Sends that are cancelled before a pack is there get on all the same (the design's section 4.4).
@Suite("Packed: deadlines") struct PackedDeadlineTests {
    /// What can be carried in the time that there is is an eighth of what waits. Each send begins anew, also in another process.
    @Test(arguments: [false, true]) func eachCancelledSendTriesHalf(restarts: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save()
        try a.exchangeOnce()
        var random = SeededRandom(seed: 1)
        for n in 0..<64 { try a.save("large \(n)", (0..<65_536).map { _ in UInt8.random(in: 0...255, using: &random) }) }
        (place.carries, place.carried) = (768 << 10, 0)
        var sends = 0
        while place.versions() != a.ids, sends < 20 {
            sends += 1
            if restarts { a.restart() }
            do { _ = try a.exchange.send() } catch let error as StoreError { #expect(error.code == .cancelled) }
        }
        // 4 MiB: not there, then the half, and so on; the third has less than can be carried.
        #expect(place.versions() == a.ids && sends <= 5)
        #expect(place.carried <= 2 * (4 << 20))
        // Nothing more is cut: the next one is as large as ever.
        place.carries = .max
        for n in 0..<32 { try a.save("more \(n)", (0..<65_536).map { _ in UInt8.random(in: 0...255, using: &random) }) }
        let before = place.names(.log).count
        _ = try a.exchange.send()
        #expect(place.versions() == a.ids && place.names(.log).count == before + 1)
    }
}
