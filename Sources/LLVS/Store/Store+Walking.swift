extension Store {
    /// Versions that are walked over with the lock held.
    private static let stretch = 8_192

    /// Walks to the end, a stretch at a time; the caller holds no lock.
    func walk<Pass: HistoryPass>(_ pass: consuming Pass) -> Pass.Outcome { walk(pass) {} }

    /// As above.
    /// - Parameter look: called between stretches; what it throws ends the walk.
    func walk<Pass: HistoryPass>(_ pass: consuming Pass, _ look: () throws -> Void) rethrows -> Pass.Outcome {
        while true {
            if let outcome = lock.withRead({ pass.go(Store.stretch, in: dag) }) { return outcome }
            try look()
        }
    }
}
