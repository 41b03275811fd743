import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Pitfall 29 of the design: many devices notice the same loss at the same time, and one of them sends it again.
@Suite("Packed: healing") struct PackedHealingTests {
    @Test func concurrentChecksSendOnce() throws {
        let place = MemoryPlace(seed: 5), gone = try PackedDevice(place), healers = try (0..<5).map { _ in try PackedDevice(place) }
        // Whole seconds that only the test lets pass.
        place.pace = 1
        for n in 0..<2 {
            try gone.save("gone\(n)")
            try gone.exchangeOnce()
        }
        for healer in healers { try healer.exchangeOnce() }
        let lost = try #require(place.names(.log).max { $0.last < $1.last }).description, all = gone.ids
        place.remove(lost)
        place.clock += 700
        let since = place.time
        var sent: [Int64] = [], planned: Set<Int64> = []
        // All devices check every half minute, until some time after the latest moment at which one may send.
        while place.time < since + 600 + 3_600 + 120 + 600 {
            let now = place.clock
            // All devices have checked before the first one sends.
            for healer in healers {
                place.clock = now
                healer.files.asked = []
                _ = try healer.exchange.retrieve()
            }
            for healer in healers {
                place.clock = now
                _ = try healer.exchange.send()
                sent += healer.files.asked.filter { $0.hasPrefix("publish pack1/log") }.map { _ in place.time - since }
                let state = try #require(try PackedNotes.known(of: healer.store, remote: healer.files.description))
                if state.healing != 0 { planned.insert(state.healing - since) }
                if place.time < since + 600 { #expect(state.healing == 0, "not before a second check") }
            }
            place.clock = now + 30
        }
        #expect(planned.count == healers.count, "each waits for another time: \(planned.sorted())")
        #expect(planned.allSatisfy { 600 <= $0 && $0 <= 600 + 3_600 + 120 }, "\(planned.sorted())")
        #expect(sent.count == 1, "\(sent)")
        #expect(sent.allSatisfy { $0 >= (planned.min() ?? 0) } && place.versions() == all)
    }
}
