extension Store {
    /// Walks to the end, some versions at a time; the caller holds no lock.
    func walk<Pass: HistoryPass>(_ pass: consuming Pass) -> Pass.Outcome { walk(pass) {} }

    /// As above.
    /// - Parameter look: called in between; what it throws ends the walk.
    func walk<Pass: HistoryPass>(_ pass: consuming Pass, _ look: () throws -> Void) rethrows -> Pass.Outcome {
        while true {
            if let outcome = lock.withRead({ pass.go(SharedHistory.versionsAtATime, in: dag) }) { return outcome }
            try look()
        }
    }

    /// Goes over the live versions that are there when it begins, some at a time, with the lock held for reading; the caller holds no lock.
    /// O(rows).
    /// - Parameters:
    ///   - rows: those below were gone over before.
    ///   - look: called in between; what it throws ends the work.
    func forEachLive(behind rows: Int = 0, _ look: () throws -> Void, _ body: (UInt32, History) throws -> Void) rethrows {
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

    /// In canonical order, newest first.
    /// - Parameter look: called in between; what it throws ends the work.
    func newestFirst(_ ordinals: [UInt32], _ look: () throws -> Void) rethrows -> [UInt32] {
        try orderKeys(ordinals, look).sorted(by: OrderKey.isNewer, looking: look).map(\.ordinal)
    }

    /// As the history's. Of many the lock is held for some at a time.
    func orderKeys(_ ordinals: [UInt32], _ look: () throws -> Void) rethrows -> [OrderKey] {
        var keys: [OrderKey] = []
        keys.reserveCapacity(ordinals.count)
        for start in stride(from: 0, to: ordinals.count, by: SharedHistory.versionsAtATime) {
            if start > 0 { try look() }
            lock.withRead { keys += dag.orderKeys(Array(ordinals[start..<min(ordinals.count, start + SharedHistory.versionsAtATime)])) }
        }
        return keys
    }
}
