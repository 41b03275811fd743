import LLVSCore
import LLVSExchangeTestHelpers
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Sends that are cancelled before a pack is uploaded make progress nevertheless (the design's section 4.4).
@Suite("Packed: deadlines") struct PackedDeadlineTests {
    /// An eighth of the waiting bytes can be sent within the deadline. Each send starts again, also in another process.
    @Test(arguments: [false, true]) func eachCancelledSendTriesHalf(restarts: Bool) throws {
        let place = MemoryPlace(), a = try PackedDevice(place)
        try a.save()
        try a.exchangeOnce()
        var random = SeededRandom(seed: 1)
        for n in 0..<64 { try a.save("large \(n)", StorageConformance.bytes(seed: random.next(), count: 65_536)) }
        (place.carries, place.carried) = (768 << 10, 0)
        var sends = 0
        while place.versions() != a.ids, sends < 20 {
            sends += 1
            if restarts { a.restart() }
            do { _ = try a.exchange.send() } catch let error as StoreError { #expect(error.code == .cancelled) }
        }
        // 4 MiB fail, so the next send tries half of it, and so on, until a pack is small enough.
        #expect(place.versions() == a.ids && sends <= 5)
        #expect(place.carried <= 2 * (4 << 20))
        // The limit is lifted: the next pack is as large as ever.
        place.carries = .max
        for n in 0..<32 { try a.save("more \(n)", StorageConformance.bytes(seed: random.next(), count: 65_536)) }
        let before = place.names(.log).count
        _ = try a.exchange.send()
        #expect(place.versions() == a.ids && place.names(.log).count == before + 1)
    }
}

/// A call with a deadline begins no transfer that would not end in time at the rate of the last transfers.
@Suite("Packed: rates") struct PackedRateTests {
    /// A line that carries 1 MiB a second. Nothing else takes time.
    private final class Line: @unchecked Sendable {
        // Sendable: one thread uses it.
        var now = 1_000.0
        /// Bytes of uploads that were begun although they could not have ended in time.
        var late = 0
        func device(_ place: MemoryPlace) throws -> PackedDevice {
            let device = try PackedDevice(place, steady: { self.now })
            device.files.made = { _, bytes in self.now += Double(bytes.count) / Double(1 << 20) }
            device.files.gave = { self.now += Double($0) / Double(1 << 20) }
            return device
        }
    }
    private func fill(_ device: PackedDevice, _ values: Range<Int>, _ size: Int = 256 << 10) throws {
        for n in values {
            try device.save("\(n)", StorageConformance.bytes(seed: UInt64(n), count: size))
        }
    }
    /// Returns whether a call completed, and expects that it took no more than this many seconds.
    private func within(_ seconds: Double, _ line: Line, _ body: (OperationControl) throws -> Void) throws -> Bool {
        let start = line.now
        defer { #expect(line.now <= start + seconds) }
        do { try body(OperationControl(token: CancelToken(end: start + seconds))) } catch let error as StoreError {
            #expect(error.code == .cancelled)
            return false
        }
        return true
    }

    @Test func nothingIsBegunThatWouldNotBeThereInTime() throws {
        let line = Line(), place = MemoryPlace(), a = try line.device(place), b = try line.device(place)
        try fill(a, 0..<4)
        try a.exchangeOnce()
        try b.exchangeOnce()
        // 12 MiB to send. Three seconds suffice for a part of it each time, and nothing is sent twice.
        try fill(a, 4..<52)
        let before = line.now
        var calls = 0
        while try !within(3, line, { _ = try a.exchange.send(control: $0) }), calls < 20 { calls += 1 }
        #expect(place.versions() == a.ids && calls > 3 && calls < 10, "\(calls)")
        #expect(line.now - before < 12.5)
        // The reader needs several calls, too, and receives everything.
        calls = 0
        while try !within(4, line, { _ = try b.exchange.retrieve(control: $0) }), calls < 20 { calls += 1 }
        #expect(b.ids == a.ids && calls > 1 && calls < 10, "\(calls)")
    }

    @Test func partsOfLargeValuesAreNotBegunInVain() throws {
        let line = Line(), place = MemoryPlace(), a = try line.device(place), b = try line.device(place)
        try fill(a, 0..<4)
        try a.exchangeOnce()
        try b.exchangeOnce()
        try fill(a, 4..<5, 20 << 20)
        let before = line.now
        var calls = 0
        while try !within(9, line, { _ = try a.exchange.send(control: $0) }), calls < 20 { calls += 1 }
        #expect(place.versions() == a.ids && place.names(.blob).count == 3 && calls == 2)
        #expect(line.now - before < 20.5, "no part was sent twice")
        // A value is read in one piece. A transfer that was not begun because of the rate is tried when the rate is old.
        #expect(try !within(9, line) { _ = try b.exchange.retrieve(control: $0) })
        #expect(b.ids.count == 4 && line.now - before < 21)
        line.now += TransferRate.life
        _ = try b.exchange.retrieve(control: OperationControl(token: CancelToken(end: line.now + 9)))
        #expect(b.ids == a.ids)
    }
}
