import Testing

@testable import LLVSNetwork

/// How long the library waits for a slow transfer.
@Suite struct TransferPatienceTests {
    /// The seconds until the transfer is given up if this many bytes arrive each second; nil: more than a day.
    private func seconds(_ bytes: Int, rate: Double = TransferPatience.leastRate) -> Int? {
        var patience = TransferPatience(60, at: 0)
        for second in 1...100_000 {
            patience.wait(until: Double(second), bytes: bytes, rate: rate)
            if patience.isAtEnd { return second }
        }
        return nil
    }

    @Test func aByteASecondIsGivenUpAndASlowLineIsNot() {
        #expect(seconds(0) == 60 && seconds(1) == 61 && seconds(128) == 120)
        #expect(seconds(256) == nil && seconds(4_000) == nil)
        #expect(seconds(256, rate: TransferPatience.leastListingRate) == 80)
    }

    /// A fast beginning does not allow hours of single bytes later.
    @Test func aTransferThatWasFastMayNotDripForLong() {
        var patience = TransferPatience(60, at: 0)
        patience.wait(until: 1, bytes: 1 << 30, rate: TransferPatience.leastRate)
        for second in 2...60 { patience.wait(until: Double(second), bytes: 0, rate: TransferPatience.leastRate) }
        #expect(!patience.isAtEnd)
        patience.wait(until: 61, bytes: 0, rate: TransferPatience.leastRate)
        #expect(patience.isAtEnd)
    }

    /// Time in which the machine slept or a callback ran does not count against the server.
    @Test func whatTheMachineSleptDoesNotCount() {
        var patience = TransferPatience(60, at: 0)
        patience.wait(until: 100_000, bytes: 0, rate: TransferPatience.leastRate)
        #expect(!patience.isAtEnd)
        for second in 1...59 { patience.wait(until: 100_000 + Double(second), bytes: 0, rate: TransferPatience.leastRate) }
        #expect(patience.isAtEnd)
        patience.rest(until: 100_060)
        #expect(!patience.isAtEnd)
        patience.wait(until: 100_061, bytes: 0, rate: TransferPatience.leastRate)
        #expect(patience.isAtEnd)
        patience.begin(at: 100_062)
        #expect(!patience.isAtEnd)
    }
}
