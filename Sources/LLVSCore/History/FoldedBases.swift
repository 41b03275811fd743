/// The best common ancestors of each step of a fold: of the first version and the second, of both and the third, and so on. They are known
/// before the fold begins: the ancestors of a result are the versions folded so far and their ancestors, whatever the merges in between
/// yield.
///
/// A walk back from a version ends at versions that were reached before, so each version is visited once. The versions where it ends are
/// the candidates; those that are ancestors of others are dropped. Up to 64 candidates are checked at once, of as many versions as have no
/// more of them, in one pass upwards from the lowest.
package struct FoldedBases: HistoryPass {
    private let versions: [UInt32]
    /// For each version the candidates found, later only the best of them. Nil for a version that is an ancestor of a version before it.
    private var met: [[UInt32]?] = []
    /// The ancestry of the versions so far, and the versions that the walk from the current one has visited.
    private var held = OrdinalSet(), own = OrdinalSet()
    private var walked: [UInt32] = [], next = 0, common: Set<UInt32> = []
    /// The versions checked together: from `from` up to `end`. Equal while none are chosen.
    private var from = 0, end = 0
    /// A bit for each candidate; and for each version from the lowest candidate on, the bits of the candidates that it is or descends from.
    private var bits: [UInt32: UInt64] = [:], behind: [UInt64] = [], lowest = 0, highest = 0
    private static let most = 64

    package init(_ versions: [UInt32]) { self.versions = versions }

    /// Returns for each version its best common ancestors with the versions before it, newest first. Nil for a version that equals one of
    /// these or is an ancestor of one.
    package mutating func go(_ steps: Int, in dag: History) -> [[UInt32]?]? {
        var left = steps
        while met.count < versions.count { guard meet(versions[met.count], &left, dag) else { return nil } }
        while from < versions.count {
            if end == from { choose() }
            guard look(&left, dag) else { return nil }
            from = end
        }
        return met.map { $0?.sorted(by: dag.isNewer) }
    }

    /// Walks back from a version; false if not finished.
    private mutating func meet(_ version: UInt32, _ left: inout Int, _ dag: History) -> Bool {
        if walked.isEmpty {
            if held.contains(version) { met.append(nil); return true }
            walked = [version]
            own.insert(version)
        }
        while next < walked.count {
            if left <= 0 { return false }
            left -= 1
            Work.versions.count()
            let row = dag.rows[Int(walked[next])]
            next += 1
            for predecessor in [row.first, row.second] where predecessor != History.none {
                if held.contains(predecessor) {
                    common.insert(predecessor)
                } else if !own.contains(predecessor) {
                    own.insert(predecessor)
                    walked.append(predecessor)
                }
            }
        }
        for ordinal in walked { held.insert(ordinal) }
        met.append(Array(common))
        (walked, next, common) = ([], 0, [])
        return true
    }

    /// Chooses the versions to check next, up to the limit of candidates. A version with a single candidate needs no check.
    private mutating func choose() {
        bits = [:]
        lowest = .max
        highest = 0
        while end < versions.count {
            let candidates = met[end] ?? []
            if candidates.count > 1 {
                if candidates.count + bits.count > FoldedBases.most, end > from { return }
                for ordinal in candidates where bits[ordinal] == nil {
                    // A version with more candidates than bits is checked alone, without bits.
                    bits[ordinal] = bits.count < FoldedBases.most ? 1 << UInt64(bits.count) : 0
                    lowest = min(lowest, Int(ordinal))
                    highest = max(highest, Int(ordinal))
                }
            }
            end += 1
            if bits.count > FoldedBases.most { return }
        }
    }

    /// Drops candidates that are ancestors of others; false if not finished.
    private mutating func look(_ left: inout Int, _ dag: History) -> Bool {
        guard !bits.isEmpty else { return true }
        let isOne = bits.count > FoldedBases.most
        if behind.isEmpty { behind.reserveCapacity(highest - lowest + 1) }
        // Predecessors have lower ordinals, so the entries of a version's predecessors are complete. With too many candidates for bits,
        // walks down from the highest instead: a version is an ancestor of a candidate if a candidate, or an ancestor of one, names it as
        // predecessor.
        while behind.count <= highest - lowest {
            if left <= 0 { return false }
            left -= 1
            Work.versions.count()
            if isOne { behind.append(0); continue }
            let ordinal = UInt32(truncatingIfNeeded: lowest + behind.count), row = dag.rows[lowest + behind.count]
            behind.append((bits[ordinal] ?? 0) | known(row.first) | known(row.second))
        }
        if isOne {
            for at in stride(from: highest, through: lowest, by: -1) {
                let ordinal = UInt32(truncatingIfNeeded: at)
                guard behind[at - lowest] != 0 || bits[ordinal] != nil else { continue }
                let row = dag.rows[at]
                for predecessor in [row.first, row.second] where predecessor != History.none && Int(predecessor) >= lowest {
                    behind[Int(predecessor) - lowest] = 1
                }
            }
        }
        for i in from..<end {
            guard let candidates = met[i], candidates.count > 1 else { continue }
            if isOne {
                met[i] = candidates.filter { behind[Int($0) - lowest] == 0 }
            } else {
                var below: UInt64 = 0
                for ordinal in candidates { below |= known(ordinal) & ~(bits[ordinal] ?? 0) }
                met[i] = candidates.filter { (bits[$0] ?? 0) & below == 0 }
            }
        }
        behind = []
        return true
    }

    private func known(_ ordinal: UInt32) -> UInt64 {
        let i = Int(ordinal) - lowest
        return ordinal != History.none && i >= 0 && i < behind.count ? behind[i] : 0
    }
}
