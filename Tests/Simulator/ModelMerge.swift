import LLVS

/// Merging by the rules, id by id, over whole states: slow, but short enough to be obviously right.
extension Model {
    /// The value that the bases of a merge hold for an id.
    enum Base {
        case agreed(Held?)
        /// The values of all bases.
        case conflicting([Held?])

        /// Whether the base has the same bytes as the value, whichever version stored them, or both are absent.
        func holds(_ held: Held?) -> Bool {
            switch self {
            case .agreed(let mine): mine?.data == held?.data
            case .conflicting(let all): all.contains { $0?.data == held?.data }
            }
        }
    }

    /// The value of several versions, newest first, folded into one.
    func base(_ id: ValueID, _ folded: [Int]) -> Base {
        guard let newest = folded.first else { return .agreed(nil) }
        var result = Base.agreed(versions[newest].state[id])
        for i in folded.indices.dropFirst() {
            let next = versions[folded[i]].state[id]
            switch result {
            case .conflicting(let all):
                if !result.holds(next) { result = .conflicting(all + [next]) }
            case .agreed(let mine):
                if mine?.stored == next?.stored { continue }
                if let mine, let next, mine.data == next.data {
                    result = .agreed(isNewer(mine.stored, next.stored) ? mine : next)
                    continue
                }
                let below = base(id, bestCommonAncestors(Array(folded[..<i]), folded[i]))
                switch (below.holds(mine), below.holds(next)) {
                case (true, false): result = .agreed(next)
                case (false, true): result = .agreed(mine)
                default: result = .conflicting([mine, next])
                }
            }
        }
        return result
    }

    /// The expected result of a merge.
    struct Outcome {
        var first: Int
        var second: Int
        /// Whether the merge is made without the arbiter, and with empty metadata.
        var isSettled: Bool
        /// Values that the merge version itself stores do not have its id yet.
        var state: [ValueID: Held]
        var own: Set<ValueID>
    }

    /// Whether both have the same ids with the same bytes, whichever versions stored them.
    func haveEqualStates(_ a: Int, _ b: Int) -> Bool {
        let x = versions[a].state, y = versions[b].state
        return x.count == y.count && x.allSatisfy { y[$0.key]?.data == $0.value.data }
    }

    /// Compares by the first id that differs. The smaller state is the one without a value there, or with the value that was stored
    /// earlier.
    func isSmaller(_ a: [ValueID: Held], than b: [ValueID: Held]) -> Bool {
        for id in Set(a.keys).union(b.keys).sorted() where a[id]?.stored != b[id]?.stored {
            guard let mine = a[id], let other = b[id] else { return a[id] == nil }
            return isNewer(other.stored, mine.stored)
        }
        return false
    }

    /// Groups versions with equal states. Each group, and the groups themselves, are sorted newest first.
    func groupedByState(_ numbers: [Int]) -> [[Int]] {
        newestFirst(numbers).reduce(into: []) { groups, number in
            if let i = groups.firstIndex(where: { haveEqualStates($0[0], number) }) {
                groups[i].append(number)
            } else {
                groups.append([number])
            }
        }
    }

    /// Merges two versions, neither of which is an ancestor of the other.
    func merge(_ ours: Int, _ theirs: Int, _ arbiter: ArbiterPlan, related: Bool = true) -> Outcome {
        let oursIsFirst = isNewer(ours, theirs)
        let (first, second) = oursIsFirst ? (ours, theirs) : (theirs, ours)
        let x = versions[first], y = versions[second]
        let bases = related ? bestCommonAncestors([first], second) : []
        var outcome = Outcome(first: first, second: second, isSettled: false, state: x.state, own: [])
        let apart = x.ancestors.subtracting(y.ancestors).union(y.ancestors.subtracting(x.ancestors)).numbers
        let onlyMerges = !bases.isEmpty && apart.allSatisfy { versions[$0].predecessors.count == 2 }
        if onlyMerges || haveEqualStates(first, second) {
            outcome.isSettled = true
            if onlyMerges, isSmaller(x.state, than: y.state) { outcome.state = y.state }
            return outcome
        }
        var decisions: [ValueID: ArbiterPlan.Decision] = [:]
        for id in Set(x.state.keys).union(y.state.keys) {
            let p = x.state[id], q = y.state[id]
            if p?.stored == q?.stored { continue }
            if let p, let q, p.data == q.data {
                outcome.state[id] = isNewer(p.stored, q.stored) ? p : q
                continue
            }
            let base = base(id, bases), firstIsUnchanged = base.holds(p)
            if firstIsUnchanged == base.holds(q) {
                decisions[id] = arbiter.decide(
                    p?.data, q?.data, oursIsFirst: oursIsFirst,
                    firstIsStoredLater: p.map { p in q.map { isNewer(p.stored, $0.stored) } ?? true } ?? false)
            } else if firstIsUnchanged {
                outcome.state[id] = q
            }
        }
        for (id, data) in arbiter.additions { decisions[id] = .bytes(data) }
        for (id, decision) in decisions {
            switch decision {
            case .first: break
            case .second: outcome.state[id] = y.state[id]
            case .bytes(let data):
                // Bytes that the first side already has make no change.
                if x.state[id]?.data == data { outcome.state[id] = x.state[id]; continue }
                outcome.state[id] = Held(stored: x.version.id, data: data)
                outcome.own.insert(id)
            }
        }
        return outcome
    }
}
