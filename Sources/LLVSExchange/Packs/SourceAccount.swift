/// Limits what one source may cost in one call, in proportion to the bytes that came from it: docs/defences.md, "One account for each
/// source".
///
/// A source is a place, or a stream. Blocks have at most 1,032 times the bytes of their file, since they are compressed only once.
/// Values that are differences have an account of their own: a version with a difference of some 50 bytes may take 1 MiB.
///
/// Besides, a version can refer to a large value under any number of ids, and so can any number of versions: each takes space of its own.
package final class SourceAccount {
    /// The bytes that each received byte may cost.
    static let factor: UInt64 = 1_100
    /// The bytes that are always allowed.
    static let least: UInt64 = 256 << 20
    /// The ids of the files that were counted.
    private var counted: Set<PackID> = []
    /// The bytes of values that are differences for each received byte, and those that are always allowed.
    package static let differenceFactor: UInt64 = 16_384, leastDifferences: UInt64 = 4 << 30
    private let leastDifferences: UInt64, differenceFactor: UInt64
    private var came: UInt64 = 0, spent: UInt64 = 0, spentOnDifferences: UInt64 = 0
    /// The bytes that were refused; 0 if none were.
    private(set) var refused: UInt64 = 0

    /// - Parameters:
    ///   - leastDifferences: the bytes of values that are differences that are always allowed.
    ///   - differenceFactor: those for each received byte. Lower in tests.
    package init(leastDifferences: UInt64 = SourceAccount.leastDifferences, differenceFactor: UInt64 = SourceAccount.differenceFactor) {
        self.leastDifferences = leastDifferences; self.differenceFactor = differenceFactor
    }

    /// Returns the account for the differences that one side of a link sends: docs/live-protocol.md, "DATA".
    package static func ofLink() -> SourceAccount { SourceAccount(leastDifferences: 256 << 20) }

    /// Counts bytes that were received.
    package func came(_ bytes: Int) { came = SourceAccount.sum(came, UInt64(max(0, bytes))) }
    /// Counts a file that was received, or is known to exist at the place; each once.
    func came(_ id: PackID, _ bytes: Int) { if counted.insert(id).inserted { came(bytes) } }

    /// Spends bytes of the budget.
    /// - Returns: whether there were enough; if not, nothing is spent.
    package func spend(_ bytes: UInt64) -> Bool {
        let all = SourceAccount.sum(spent, bytes)
        guard SourceAccount.isInProportion(all, to: came) else {
            refused = SourceAccount.sum(refused, bytes)
            return false
        }
        spent = all
        return true
    }

    /// Spends bytes of values that are differences.
    /// - Returns: whether there were enough; if not, nothing is spent.
    package func spend(differences bytes: UInt64) -> Bool {
        let all = SourceAccount.sum(spentOnDifferences, bytes)
        let (most, overflow) = came.multipliedReportingOverflow(by: differenceFactor)
        guard overflow || all <= SourceAccount.sum(most, leastDifferences) else {
            refused = SourceAccount.sum(refused, bytes)
            return false
        }
        spentOnDifferences = all
        return true
    }

    package static func isInProportion(_ bytes: UInt64, to came: UInt64) -> Bool {
        let (most, overflow) = came.multipliedReportingOverflow(by: factor)
        return overflow || bytes <= sum(most, least)
    }
    package static func sum(_ a: UInt64, _ b: UInt64) -> UInt64 {
        let (sum, overflow) = a.addingReportingOverflow(b)
        return overflow ? .max : sum
    }

    /// Returns the single problem for everything that was refused; nil if nothing was.
    /// - Parameters:
    ///   - source: the source in messages: "the folder /x".
    ///   - advice: what happens with what was refused.
    func problem(_ source: String, _ advice: String) -> ExchangeProblem? {
        guard refused > 0 else { return nil }
        let stored = SourceAccount.sum(spent, spentOnDifferences)
        return ExchangeProblem(
            name: "",
            error: StoreError(
                .tooLarge,
                "Some versions of \(source) were not received, since their values take far more than what came: \(stored) bytes were "
                    + "stored, these would take \(refused) more, and \(came) came. \(advice)"))
    }
}
