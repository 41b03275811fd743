import LLVS
import Testing

@testable import LLVSNetwork

/// How long a slow transfer is waited for.
@Suite struct TransferPatienceTests {
    /// Seconds until nothing more is waited for, if so many bytes come each second; nil: more than a day.
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

    /// Fast bytes at first do not allow hours of single bytes later.
    @Test func aTransferThatWasFastMayNotDripForLong() {
        var patience = TransferPatience(60, at: 0)
        patience.wait(until: 1, bytes: 1 << 30, rate: TransferPatience.leastRate)
        for second in 2...60 { patience.wait(until: Double(second), bytes: 0, rate: TransferPatience.leastRate) }
        #expect(!patience.isAtEnd)
        patience.wait(until: 61, bytes: 0, rate: TransferPatience.leastRate)
        #expect(patience.isAtEnd)
    }

    /// A machine that slept, or a callback that took its time, is no fault of the server.
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
