import LLVS

/// Merging by its rules, id by id, over whole states: slow, and short enough to be seen to be right.
extension Model {
    /// What the ancestors of a merge hold for an id.
    enum Base {
        case agreed(Held?)
        /// What each of them holds.
        case conflicting([Held?])

        /// Whether it has the same bytes, whichever version stored them, or nothing as well.
        func holds(_ held: Held?) -> Bool {
            switch self {
            case .agreed(let mine): mine?.data == held?.data
            case .conflicting(let all): all.contains { $0?.data == held?.data }
            }
        }
    }

    /// Several versions, newest first, folded into one.
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

    /// What a merge must come to.
    struct Outcome {
        var first: Int
        var second: Int
        /// The arbiter is not asked, and the metadata is empty.
        var isSettled: Bool
        /// What the merge version itself stores has no version in it yet.
        var state: [ValueID: Held]
        var own: Set<ValueID>
    }

    /// The same ids with the same bytes, whoever stored them.
    func haveEqualStates(_ a: Int, _ b: Int) -> Bool {
        let x = versions[a].state, y = versions[b].state
        return x.count == y.count && x.allSatisfy { y[$0.key]?.data == $0.value.data }
    }

    /// By the first id that is not held alike: the state is the smaller one in which nothing is under it, or what was stored earlier.
    func isSmaller(_ a: [ValueID: Held], than b: [ValueID: Held]) -> Bool {
        for id in Set(a.keys).union(b.keys).sorted() where a[id]?.stored != b[id]?.stored {
            guard let mine = a[id], let other = b[id] else { return a[id] == nil }
            return isNewer(other.stored, mine.stored)
        }
        return false
    }

    /// Versions that stand for one state together, each group and all groups newest first.
    func groupedByState(_ numbers: [Int]) -> [[Int]] {
        newestFirst(numbers).reduce(into: []) { groups, number in
            if let i = groups.firstIndex(where: { haveEqualStates($0[0], number) }) {
                groups[i].append(number)
            } else {
                groups.append([number])
            }
        }
    }

    /// Merges two versions of which none is an ancestor of the other.
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
                // What leaves the first side as it is changes nothing.
                if x.state[id]?.data == data { outcome.state[id] = x.state[id]; continue }
                outcome.state[id] = Held(stored: x.version.id, data: data)
                outcome.own.insert(id)
            }
        }
        return outcome
    }
}
