import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Pitfall 7 of the design: a clock was ahead and is corrected. No waiting period becomes longer than it would have been.
@Suite("Packed: clocks") struct PackedClockTests {
    private static let day = 86_400 / Int(MemoryPlace.step), year: Int64 = 366 * 86_400

    /// A pack that was incomplete is read once it is complete.
    @Test func aTornPackIsReadOnceItIsWhole() throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try a.save("one")
        for device in [a, b] { try device.exchangeOnce() }
        try a.save("two", [UInt8](repeating: 2, count: 100))
        try a.exchangeOnce()
        let name = try #require(place.names(.log).max { $0.last < $1.last }).description, whole = try #require(place.files[name])
        place.files[name] = Array(whole.prefix(100))
        b.clockAhead.value = Self.year
        try b.exchangeOnce()
        b.clockAhead.value = 0
        // While incomplete, it is reported a day later, not in a year.
        place.clock += 1
        #expect(try b.exchange.retrieve().problems.isEmpty)
        place.clock += Self.day + 1
        #expect(try b.exchange.retrieve().problems.map(\.name) == [name])
        place.files[name] = whole
        try b.exchangeOnce()
        #expect(b.ids == a.ids && a.ids.count == 2)
    }

    /// Lost versions are sent again, whether the clock was ahead at the first or the second observation.
    @Test(arguments: 1...2) func whatIsLostIsSentAgain(looks: Int) throws {
        let place = MemoryPlace(), a = try PackedDevice(place), b = try PackedDevice(place)
        try a.save("one")
        for device in [a, b] { try device.exchangeOnce() }
        let lost = try #require(place.names(.log).first).description
        try b.save("two")
        for device in [b, a] { try device.exchangeOnce() }
        place.remove(lost)
        b.clockAhead.value = Self.year
        for _ in 0..<looks {
            place.clock += Self.day + 1
            _ = try b.exchange.retrieve()
        }
        #expect(place.versions() != b.ids)
        b.clockAhead.value = 0
        for _ in 0..<4 {
            place.clock += Self.day + 1
            try b.exchangeOnce()
        }
        #expect(place.versions() == b.ids)
    }

    /// Replaced packs are deleted, and a silent writer is adopted.
    @Test func whatIsReplacedIsDeletedAndTheSilentAreAdopted() throws {
        let place = MemoryPlace(), gone = try PackedDevice(place), a = try PackedDevice(place, fanIn: 2)
        for n in 0..<2 {
            try gone.save("gone\(n)")
            try gone.exchangeOnce()
        }
        a.clockAhead.value = Self.year
        for n in 0..<3 {
            try a.save("\(n)")
            try a.exchangeOnce()
        }
        #expect(place.names(.base).count == 1 && place.names(.log).count == 5)
        a.clockAhead.value = 0
        for n in 0..<35 {
            place.clock += Self.day + 1
            try a.save("later\(n)")
            try a.exchangeOnce()
            if n == 1 { #expect(!place.names(.log).contains { $0.writer == a.writer && $0.last < 3 }, "deleted") }
        }
        #expect(!(place.names(.log) + place.names(.base)).contains { $0.writer != a.writer }, "adopted")
        #expect(place.versions() == a.ids && a.ids.isSuperset(of: gone.ids))
    }
}
