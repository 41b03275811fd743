extension Store {
    /// Walks to the end, some versions at a time. Precondition: the caller holds no lock.
    package func walk<Pass: HistoryPass>(_ pass: consuming Pass) -> Pass.Outcome { walk(pass) {} }

    /// Walks to the end, some versions at a time, unless `look` ends the walk. - Parameter look: called in between. It may throw to end the
    /// walk.
    package func walk<Pass: HistoryPass>(_ pass: consuming Pass, _ look: () throws -> Void) rethrows -> Pass.Outcome {
        while true {
            if let outcome = lock.withRead({ pass.go(SharedHistory.versionsAtATime, in: dag) }) { return outcome }
            try look()
        }
    }

    /// Visits the live versions that exist when it begins, some at a time, with the lock held for reading. O(rows). Precondition: the
    /// caller holds no lock.
    /// - Parameters:
    ///   - rows: skips the rows below this one.
    ///   - look: called in between. It may throw to end the walk.
    package func forEachLive(behind rows: Int = 0, _ look: () throws -> Void, _ body: (UInt32, History) throws -> Void) rethrows {
        let end = rowCount
        var next = rows
        while next < end {
            let stop = min(end, next + SharedHistory.versionsAtATime)
            try lock.withRead {
                for i in next..<stop where dag.rows[i].state == .live { try body(UInt32(truncatingIfNeeded: i), dag) }
            }
            next = stop
            if next < end { try look() }
        }
    }

    /// Sorts in canonical order, newest first.
    /// - Parameter look: called in between. It may throw to end the work.
    package func newestFirst(_ ordinals: [UInt32], _ look: () throws -> Void) rethrows -> [UInt32] {
        try orderKeys(ordinals, look).sorted(by: OrderKey.isNewer, looking: look).map(\.ordinal)
    }

    /// Returns the history's order keys. For many, the lock is held for some at a time.
    package func orderKeys(_ ordinals: [UInt32], _ look: () throws -> Void) rethrows -> [OrderKey] {
        var keys: [OrderKey] = []
        keys.reserveCapacity(ordinals.count)
        for start in stride(from: 0, to: ordinals.count, by: SharedHistory.versionsAtATime) {
            if start > 0 { try look() }
            lock.withRead { keys += dag.orderKeys(Array(ordinals[start..<min(ordinals.count, start + SharedHistory.versionsAtATime)])) }
        }
        return keys
    }
}
