/// What a fold of heads remembers of those it has merged, so that the next one need not be compared with all that the result holds.
///
/// Where two heads have the same common ancestors with the result, what the second one holds as the first one did comes to the same once
/// more: either the result took it over, or what the result holds stood against it, and does so again. So the second one matters only
/// where it differs from the first one, and where merges since have changed something. This holds for merges that a built-in arbiter
/// decided id by id; rules that merge inside values may count the same twice, and where one state stands as a whole nothing was weighed.
final class FoldedHeads {
    /// The head that was merged last over some common ancestors.
    private struct Last {
        var head: UInt32
        /// How many steps there were then, that of the head itself not counted; which side was `ours`.
        var steps: Int
        var oursSide: Fork.Side
    }
    private var last: [[UInt32]: Last] = [:]
    /// The merges, each on the one before, and how much they and those before them changed together.
    private var steps: [(ordinal: UInt32, changes: Int)] = []
    /// What was decided id by id, and is no step yet.
    private var decided: (bases: [UInt32], last: Last)?
    /// Heads of more common ancestors are not remembered.
    private static let mostBases = 64

    /// A built-in arbiter decides a merge with a head id by id.
    func decide(_ head: UInt32, _ bases: [UInt32], _ oursSide: Fork.Side) {
        decided = (bases, Last(head: head, steps: 0, oursSide: oursSide))
    }

    /// A merge is a step of the fold: `first` and what it changed.
    func add(_ step: UInt32, changes: Int, on first: UInt32) {
        let merged = decided
        if let top = steps.last, top.ordinal != first { restart() }
        let sum = steps.last?.changes ?? 0
        if var merged, merged.bases.count <= FoldedHeads.mostBases {
            merged.last.steps = steps.count
            last[merged.bases] = merged.last
        }
        steps.append((step, sum + changes))
        decided = nil
    }

    /// What comes next is no merge on top of the one before.
    func restart() {
        last = [:]
        steps = []
        decided = nil
    }

    /// The head that was merged last over these, and the steps since, its own included; nil when there was none, or when the steps changed
    /// more than so much.
    fileprivate func before(
        _ first: UInt32, _ bases: [UInt32], _ oursSide: Fork.Side, atMost limit: Int
    ) -> (head: UInt32, steps: [UInt32])? {
        guard steps.last?.ordinal == first, let known = last[bases], known.oursSide == oursSide, known.steps < steps.count else {
            return nil
        }
        let before = known.steps == 0 ? 0 : steps[known.steps - 1].changes, now = steps.last?.changes ?? 0
        guard now - before + (steps.count - known.steps) <= limit else { return nil }
        return (known.head, steps[known.steps...].map(\.ordinal))
    }
}

extension Store {
    /// Of a first side that holds so many times what the others do, the ids that the others hold are looked up.
    private static let muchLarger = 4

    /// The ids that a merge of two versions has to look at, in byte order, some of which may be equal in both; nil when those that
    /// differ are found with less work.
    func idsToMerge(
        _ first: UInt32, _ second: UInt32, _ bases: [UInt32], _ oursSide: Fork.Side, _ heads: FoldedHeads, into arena: ByteArena,
        _ control: PacedControl
    ) throws -> [UnsafeRawBufferPointer]? {
        var keys: [UnsafeRawBufferPointer] = []
        func add(_ key: UnsafeRawBufferPointer) throws {
            try control.step(0)
            try Memory.check()
            try Memory.grow(&keys, "Comparing two versions")
            keys.append(arena.copy(key))
        }
        if let (head, steps) = heads.before(first, bases, oursSide, atMost: MapPolicy.mostComparedWithMaps) {
            try forEachDifference(head, second, control) { try add($0.key) }
            for step in steps {
                try control.step(0)
                // There are no more of these than the limit says.
                try maps.forEachRecordedChange(step) { keys.append(arena.copy($0.key)) }
            }
        } else {
            let most = MapPolicy.mostComparedWithMaps
            guard lock.withRead({ dag.meeting(first, second, leftAtMost: most, rightAtMost: most) }) == nil else { return nil }
            // An id that neither the second side nor any ancestor holds is the first side's alone, which stays.
            var left = try (maps.map(first, control)?.count ?? 0) / Store.muchLarger
            for other in [second] + bases {
                let held = try maps.map(other, control)
                left -= held?.count ?? 0
                guard left >= 0 else { return nil }
                try MapNode.forEachDifference(nil, held) { key, _, _ in try add(key) }
            }
        }
        keys.sort { Bytes.compare($0, $1) < 0 }
        var count = 0
        for key in keys where count == 0 || !Bytes.equal(keys[count - 1], key) {
            keys[count] = key
            count += 1
        }
        keys.removeSubrange(count...)
        return keys
    }

    /// What two versions hold under some ids, where it differs. The ids are borrowed.
    func differences(
        _ first: UInt32, _ second: UInt32, under keys: [UnsafeRawBufferPointer], _ control: PacedControl
    ) throws -> [Difference] {
        let onFirst = try maps.map(first, control), onSecond = try maps.map(second, control)
        var differences: [Difference] = []
        for key in keys {
            try control.step(0)
            try Memory.check()
            let before = onFirst?.lookup(key), after = onSecond?.lookup(key)
            if isSame(before, after) { continue }
            try Memory.grow(&differences, "Comparing two versions")
            differences.append(Difference(key: key, before: before, after: after))
        }
        return differences
    }
}
