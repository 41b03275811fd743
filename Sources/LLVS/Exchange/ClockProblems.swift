extension Store {
    /// What was met of clocks that are far ahead, and not told yet.
    func takeClockProblems() -> [ExchangeProblem] {
        clocksAhead.withLock { $0.take() }.map { ExchangeProblem(name: $0.versionID ?? "", error: $0) }
    }

    /// A result with that.
    func tellingOfClocks(_ result: ExchangeResult) -> ExchangeResult {
        var told = result
        told.problems += takeClockProblems()
        return told
    }
}
