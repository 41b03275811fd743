/// The set of a store's versions that another place has, one byte for each ordinal.
package struct Coverage: Equatable {
    fileprivate var isCovered: [Bool]
    /// The number of versions that the store had.
    let versionCount: Int

    /// The ordinals of all covered versions.
    var all: [UInt32] { isCovered.indices.filter { isCovered[$0] }.map { UInt32(truncatingIfNeeded: $0) } }

    /// Returns up to `count` of the newest covered versions, and up to `count` of the others from `position` on. Advances `position`, so
    /// repeated calls reach all of them.
    func sample(_ count: Int, from position: inout Int) -> [UInt32] {
        var chosen: [UInt32] = [], end = isCovered.count
        while end > 0, chosen.count < count {
            end -= 1
            if isCovered[end] { chosen.append(UInt32(truncatingIfNeeded: end)) }
        }
        guard end > 0 else { return chosen }
        var at = position % end, left = end
        while left > 0, chosen.count < 2 * count {
            if isCovered[at] { chosen.append(UInt32(truncatingIfNeeded: at)) }
            at = at + 1 < end ? at + 1 : 0
            left -= 1
        }
        position = at
        return chosen
    }
}

/// Queries of the history by exchanges, each in one pass.
extension Store {
    /// Returns those of the ids that the store lacks.
    /// - Parameter look: called now and then; an error that it throws ends the work.
    package func unknown(among ids: [VersionID], _ look: () throws -> Void = {}) throws -> [VersionID] {
        var unknown: [VersionID] = []
        for start in stride(from: 0, to: ids.count, by: 8_192) {
            if start > 0 { try look() }
            try lock.withRead {
                try checkOpenLocked()
                for i in start..<min(ids.count, start + 8_192) where dag.ordinal(of: ids[i]) == nil { unknown.append(ids[i]) }
            }
        }
        return unknown
    }

    /// Returns the versions that the ids cover. If the store still has `complete` versions, these are all of them, since versions are never
    /// removed.
    /// - Parameter look: called now and then; an error that it throws ends the work.
    func coverage(by ids: [VersionID], complete: Int?, _ look: () throws -> Void = {}) throws -> Coverage {
        var (coverage, isComplete) = try lock.withRead {
            try checkOpenLocked()
            let isComplete = complete == dag.liveCount
            return (Coverage(isCovered: dag.rows.map { isComplete && $0.state == .live }, versionCount: dag.liveCount), isComplete)
        }
        if isComplete { return coverage }
        for start in stride(from: 0, to: ids.count, by: 8_192) {
            if start > 0 { try look() }
            lock.withRead {
                for id in ids[start..<min(ids.count, start + 8_192)] {
                    // Versions that arrived meanwhile are not covered; the next call sees them.
                    if let ordinal = dag.ordinal(of: id), Int(ordinal) < coverage.isCovered.count {
                        coverage.isCovered[Int(ordinal)] = true
                    }
                }
            }
        }
        return coverage
    }

    /// Returns the versions among the ids and all their ancestors. Ids of versions that the store lacks are ignored.
    /// - Parameter look: called now and then; an error that it throws ends the work.
    package func coverage(behind ids: [VersionID], _ look: () throws -> Void = {}) throws -> Coverage {
        var coverage = try lock.withRead {
            try checkOpenLocked()
            return Coverage(isCovered: [Bool](repeating: false, count: dag.rows.count), versionCount: dag.liveCount)
        }
        var stack: [UInt32] = []
        func cover(_ ordinal: UInt32) {
            guard Int(ordinal) < coverage.isCovered.count, !coverage.isCovered[Int(ordinal)] else { return }
            coverage.isCovered[Int(ordinal)] = true
            stack.append(ordinal)
        }
        for start in stride(from: 0, to: ids.count, by: 8_192) {
            try look()
            lock.withRead { for id in ids[start..<min(ids.count, start + 8_192)] { dag.ordinal(of: id).map(cover) } }
        }
        while !stack.isEmpty {
            try look()
            lock.withRead {
                for _ in 0..<8_192 {
                    guard let ordinal = stack.popLast() else { return }
                    for predecessor in dag.predecessors(ordinal) { cover(predecessor) }
                }
            }
        }
        return coverage
    }

    /// Returns the versions with content ids in the history after its first `rows` rows.
    /// - Parameter look: called now and then; an error that it throws ends the work.
    func contentIDs(behind rows: Int, _ look: () throws -> Void) rethrows -> [VersionID] {
        var found: [VersionID] = []
        try forEachLive(behind: rows, look) { ordinal, dag in
            let id = dag.id(ordinal)
            if id.hasContentForm { found.append(id) }
        }
        return found
    }

    /// Covers those of the ids that the store has.
    func cover(_ ids: [VersionID], in coverage: inout Coverage) {
        lock.withRead {
            let more = dag.rows.count - coverage.isCovered.count
            if more > 0 { coverage.isCovered += [Bool](repeating: false, count: more) }
            for id in ids { if let ordinal = dag.ordinal(of: id) { coverage.isCovered[Int(ordinal)] = true } }
        }
    }

    /// Returns those of the ids that the store has and that are not covered.
    func uncovered(among ids: [VersionID], in coverage: Coverage) -> [VersionID] {
        lock.withRead {
            ids.filter { id in
                guard let ordinal = dag.ordinal(of: id) else { return false }
                return Int(ordinal) >= coverage.isCovered.count || !coverage.isCovered[Int(ordinal)]
            }
        }
    }

    /// Summarizes the covered versions: they are `heads` and all their ancestors, except `lacking`.
    /// - Parameter look: called now and then; an error that it throws ends the work.
    func summary(of coverage: Coverage, _ look: () throws -> Void = {}) throws -> (heads: [VersionID], lacking: [VersionID]) {
        var hasSuccessor = [Bool](repeating: false, count: coverage.isCovered.count)
        try forEachLive(look) { ordinal, dag in
            guard Int(ordinal) < coverage.isCovered.count, coverage.isCovered[Int(ordinal)] else { return }
            for predecessor in dag.predecessors(ordinal) where Int(predecessor) < hasSuccessor.count {
                hasSuccessor[Int(predecessor)] = true
            }
        }
        var heads: [VersionID] = []
        try forEachLive(look) { ordinal, dag in
            let i = Int(ordinal)
            if i < coverage.isCovered.count, coverage.isCovered[i], !hasSuccessor[i] { heads.append(dag.id(ordinal)) }
        }
        let whole = try self.coverage(behind: heads, look)
        var lacking: [VersionID] = []
        try forEachLive(look) { ordinal, dag in
            let i = Int(ordinal)
            if i < whole.isCovered.count, whole.isCovered[i], !(i < coverage.isCovered.count && coverage.isCovered[i]) {
                lacking.append(dag.id(ordinal))
            }
        }
        return (heads, lacking)
    }

    /// Returns these versions, predecessors first, each once; nil if the store lacks one.
    func inOrder(_ ids: Set<VersionID>) throws -> [VersionID]? {
        let ordinals: [UInt32]? = lock.withRead {
            var found: [UInt32] = []
            for id in ids {
                guard let ordinal = dag.ordinal(of: id), dag.rows[Int(ordinal)].state == .live else { return nil }
                found.append(ordinal)
            }
            return found
        }
        return ordinals.map { orderKeys($0, {}).sorted(looking: {}).map(\.id) }
    }

    /// Removes the ids from the coverage.
    /// - Parameter look: called now and then; an error that it throws ends the work.
    func uncover<IDs: Sequence>(_ ids: IDs, in coverage: inout Coverage, _ look: () throws -> Void) rethrows
    where IDs.Element == VersionID {
        var ids = ids.makeIterator(), isAtEnd = false
        while !isAtEnd {
            try look()
            lock.withRead {
                for _ in 0..<8_192 {
                    guard let id = ids.next() else { isAtEnd = true; return }
                    guard let ordinal = dag.ordinal(of: id), Int(ordinal) < coverage.isCovered.count else { continue }
                    coverage.isCovered[Int(ordinal)] = false
                }
            }
        }
    }

    /// Returns the versions that are not covered, predecessors first.
    package func missing(from coverage: Coverage, _ look: () throws -> Void = {}) throws -> [VersionID] {
        try missingKeys(from: coverage, look).sorted(looking: look).map(\.id)
    }

    /// Returns the versions that stored more than `bytes` bytes of values, in no order.
    /// - Parameter look: called now and then; an error that it throws ends the work.
    func versions(withMoreThan bytes: UInt64, _ look: () throws -> Void = {}) throws -> [VersionID] {
        try checkOpen()
        var found: [VersionID] = []
        try forEachLive(look) { ordinal, dag in
            if dag.rows[Int(ordinal)].valueDataSize > bytes { found.append(dag.id(ordinal)) }
        }
        return found
    }

    /// Returns the order keys of the versions that are not covered, in no order.
    /// - Parameter look: called now and then; an error that it throws ends the work.
    package func missingKeys(from coverage: Coverage, _ look: () throws -> Void = {}) throws -> [OrderKey] {
        try checkOpen()
        var missing: [UInt32] = []
        try forEachLive(look) { ordinal, dag in
            let i = Int(ordinal)
            if i < coverage.isCovered.count, coverage.isCovered[i] { return }
            // The empty root is virtual while nothing builds on it.
            if dag.id(ordinal) == EmptyRoot.id, dag.rows[i].firstEdge == History.none { return }
            missing.append(ordinal)
        }
        return try orderKeys(missing, look)
    }
}
