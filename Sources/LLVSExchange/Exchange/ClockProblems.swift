extension Store {
    /// Returns the problems of clocks that are far ahead, and removes them from the list, so that each is reported once.
    package func takeClockProblems() -> [ExchangeProblem] {
        clocksAhead.withLock { $0.take() }.map { ExchangeProblem(name: $0.versionID ?? "", error: $0) }
    }

    /// Adds these problems to a result.
    func tellingOfClocks(_ result: ExchangeResult) -> ExchangeResult {
        var told = result
        told.problems += takeClockProblems()
        return told
    }
}
