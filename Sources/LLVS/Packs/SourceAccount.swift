/// What one source may cost in one call, in proportion to what came from it: docs/defences.md, "One account for each source".
///
/// A source is a place, or a stream. What lies in blocks is at most 1,032 times the bytes of its file, since it is deflated once. Beside
/// that, a version can name a large value under any number of ids, and so can any number of versions: each takes room of its own.
final class SourceAccount {
    /// How many bytes each byte that came may cost.
    static let factor: UInt64 = 1_100
    /// Bytes that are in proportion to anything.
    static let least: UInt64 = 256 << 20
    /// The ids of files that came.
    private var counted: Set<PackID> = []
    private var came: UInt64 = 0, spent: UInt64 = 0
    /// What was refused, in bytes; 0: nothing was.
    private(set) var refused: UInt64 = 0

    /// A file came, or is known to lie there; each counts once.
    func came(_ id: PackID, _ bytes: Int) { if counted.insert(id).inserted { came = SourceAccount.sum(came, UInt64(max(0, bytes))) } }

    /// Takes bytes from what is left.
    /// - Returns: whether so many were; else nothing was taken.
    func spend(_ bytes: UInt64) -> Bool {
        let all = SourceAccount.sum(spent, bytes)
        guard SourceAccount.isInProportion(all, to: came) else {
            refused = SourceAccount.sum(refused, bytes)
            return false
        }
        spent = all
        return true
    }

    static func isInProportion(_ bytes: UInt64, to came: UInt64) -> Bool {
        let (most, overflow) = came.multipliedReportingOverflow(by: factor)
        return overflow || bytes <= sum(most, least)
    }
    static func sum(_ a: UInt64, _ b: UInt64) -> UInt64 {
        let (sum, overflow) = a.addingReportingOverflow(b)
        return overflow ? .max : sum
    }

    /// The one problem that tells of all that was refused; nil: nothing was.
    /// - Parameters:
    ///   - source: what it is called: "the folder /x".
    ///   - advice: what becomes of what was refused.
    func problem(_ source: String, _ advice: String) -> ExchangeProblem? {
        guard refused > 0 else { return nil }
        return ExchangeProblem(
            name: "",
            error: StoreError(
                .tooLarge,
                "Some versions of \(source) were not received, since they store the same large values many times: \(spent) bytes were "
                    + "stored, these would take \(refused) more, and \(came) came. \(advice)"))
    }
}
