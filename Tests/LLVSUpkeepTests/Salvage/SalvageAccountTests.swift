import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange
@testable import LLVSUpkeep

/// A salvage writes an amount in proportion to the damaged store, and reports everything that it leaves out as one entry.
@Suite struct SalvageAccountTests {
    @Test func valuesBeyondTheAccountAreLeftOut() throws {
        let account = SalvageAccount(), blob = BlobID(high: 1, low: 2)
        for _ in 0..<3 { account.came(blob, 1_000) }
        let most = Int(SourceAccount.least + 1_000 * SourceAccount.factor)
        #expect(account.report("a store") == nil)
        #expect(account.admits(most - 1_000, isDifference: false))
        #expect(!account.admits(2_000, isDifference: false) && !account.admits(3_000, isDifference: false))
        // Smaller values are still written, and differences have an account of their own.
        #expect(account.admits(1_000, isDifference: false) && account.admits(2_000, isDifference: true))
        let report = try #require(account.report("a store"))
        #expect(report.file == "a store" && report.lost == .value)
        for part in ["2 values of a store", "\(most + 2_000) bytes were written", "5000 more", "1000 are there"] {
            #expect(report.message.contains(part), "\(part): \(report.message)")
        }
    }
}
