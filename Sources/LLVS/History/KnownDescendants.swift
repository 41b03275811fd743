/// A set of ordinals: a bit for each.
struct OrdinalSet {
    private var bits: [UInt64] = []

    func contains(_ ordinal: UInt32) -> Bool {
        let word = Int(ordinal >> 6)
        return word < bits.count && bits[word] & (1 << UInt64(ordinal & 63)) != 0
    }

    mutating func insert(_ ordinal: UInt32) {
        let word = Int(ordinal >> 6)
        if bits.count <= word { bits.append(contentsOf: repeatElement(0, count: word + 1 - bits.count)) }
        bits[word] |= 1 << UInt64(ordinal & 63)
    }
}

/// Which versions have one of a few among their ancestors, as far as that was asked: each version is walked over once for each of those
/// few, however many are asked about.
///
/// Used by one thread at a time, while it holds the store's lock.
final class KnownDescendants {
    private struct Answers {
        var yes = OrdinalSet(), no = OrdinalSet()
    }
    /// One version on the way down, and which of its predecessors is next.
    private struct Step {
        let ordinal: UInt32
        var next: UInt8 = 0
    }
    private var answers: [UInt32: Answers] = [:]
    /// Where a walk that is not at its end has come to, and what it looks for.
    private var path: [Step] = []
    private var wanted: (ancestor: UInt32, of: UInt32)?
    /// More are not kept in mind.
    private static let most = 64

    /// Nil when so many steps do not tell; asked again it goes on. `steps` are counted down.
    func isAncestor(_ ancestor: UInt32, of version: UInt32, _ steps: inout Int, in dag: History) -> Bool? {
        if answers[ancestor] == nil {
            if answers.count >= KnownDescendants.most { answers = [:] }
            answers[ancestor] = Answers()
        }
        guard var known = answers.removeValue(forKey: ancestor) else { return nil }
        defer { answers[ancestor] = known }
        if wanted?.ancestor != ancestor || wanted?.of != version {
            wanted = (ancestor, version)
            path = [Step(ordinal: version)]
        }
        let floor = dag.rows[Int(ancestor)].generation
        known.yes.insert(ancestor)
        while var step = path.popLast() {
            if known.no.contains(step.ordinal) || (step.ordinal != ancestor && dag.rows[Int(step.ordinal)].generation <= floor) { continue }
            if known.yes.contains(step.ordinal) {
                for above in path { known.yes.insert(above.ordinal) }
                path = []
                wanted = nil
                return true
            }
            if steps <= 0 { path.append(step); return nil }
            steps -= 1
            Work.versions.count()
            let row = dag.rows[Int(step.ordinal)], next = step.next == 0 ? row.first : step.next == 1 ? row.second : History.none
            if step.next == 2 { known.no.insert(step.ordinal); continue }
            step.next += 1
            path.append(step)
            if next != History.none { path.append(Step(ordinal: next)) }
        }
        wanted = nil
        return false
    }
}
