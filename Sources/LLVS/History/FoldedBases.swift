/// The best common ancestors of each step of a fold: of the first version and the second one, of both and the third one, and so on. They
/// are known before the fold begins: behind the result are the versions so far and what is behind them, whatever the merges on the way
/// come to.
///
/// A walk back from a version ends where it meets what those before it hold, so each version is walked over once. Of those that it meets,
/// the ones behind others are no best ancestors; 64 are looked for at once, for as many versions as name no more, in one pass from the
/// lowest of them on.
struct FoldedBases: HistoryPass {
    private let versions: [UInt32]
    /// What was met of each version, later the best of that; nil for one that is behind those before it.
    private var met: [[UInt32]?] = []
    /// What is behind the versions so far, and what the walk of this one has come to.
    private var held = OrdinalSet(), own = OrdinalSet()
    private var walked: [UInt32] = [], next = 0, common: Set<UInt32> = []
    /// The first version of those that are looked at together, and the end of these; the end is the first before they are chosen.
    private var from = 0, end = 0
    /// The ancestors that are looked for, by their bits, and from the lowest on which of them each version is, or has behind it.
    private var bits: [UInt32: UInt64] = [:], behind: [UInt64] = [], lowest = 0, highest = 0
    private static let most = 64

    init(_ versions: [UInt32]) { self.versions = versions }

    /// For each version its best common ancestors with those before it, newest first; nil when it is one of these or behind one.
    mutating func go(_ steps: Int, in dag: History) -> [[UInt32]?]? {
        var left = steps
        while met.count < versions.count { guard meet(versions[met.count], &left, dag) else { return nil } }
        while from < versions.count {
            if end == from { choose() }
            guard look(&left, dag) else { return nil }
            from = end
        }
        return met.map { $0?.sorted(by: dag.isNewer) }
    }

    /// Walks back from a version; false when it is not at its end.
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

    /// Chooses the versions that are looked at next: until their ancestors are too many. Those that met one alone need no look.
    private mutating func choose() {
        bits = [:]
        lowest = .max
        highest = 0
        while end < versions.count {
            let candidates = met[end] ?? []
            if candidates.count > 1 {
                if candidates.count + bits.count > FoldedBases.most, end > from { return }
                for ordinal in candidates where bits[ordinal] == nil {
                    // Of too many, which are looked at alone, there are no bits.
                    bits[ordinal] = bits.count < FoldedBases.most ? 1 << UInt64(bits.count) : 0
                    lowest = min(lowest, Int(ordinal))
                    highest = max(highest, Int(ordinal))
                }
            }
            end += 1
            if bits.count > FoldedBases.most { return }
        }
    }

    /// Takes those away that are behind others; false when it is not at its end.
    private mutating func look(_ left: inout Int, _ dag: History) -> Bool {
        guard !bits.isEmpty else { return true }
        let isOne = bits.count > FoldedBases.most
        if behind.isEmpty { behind.reserveCapacity(highest - lowest + 1) }
        // Predecessors have lower ordinals, so all that a version has behind it is known. Of one version that met many, the highest first:
        // a version is behind one of them when one that is, or is one of them, names it.
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
