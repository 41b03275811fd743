/// All forks of a merge, and their resolution.
struct MergeForks {
    private let store: Store
    private let control: PacedControl
    /// In byte order of the ids.
    private(set) var forks: [MergeFork] = []
    /// Values of the second side that are no fork, with the first side's: their bytes are equal, but were stored later.
    private var brought: [(key: UnsafeRawBufferPointer, first: MapEntry, second: MapEntry)] = []
    /// Differences at ids that rules cover. These are no forks.
    private(set) var covered: [Difference] = []
    /// Retains the keys.
    let arena: ByteArena

    /// Returns nil if both versions hold the same references.
    /// - Parameter areShown: whether an arbiter sees the forks. A built-in arbiter needs neither the values that both sides removed, nor,
    ///   for an id that only one side changed, whether the bytes differ. Then nothing is read to find that out.
    /// - Parameter rules: the rules that merge the ids that they cover.
    /// - Parameter counted: ids for which equal bytes on both sides are a fork.
    /// - Parameter matter: for a merge that is not shown, the ids that matter, which the arena holds; nil for all.
    /// - Parameter fold: the fold of the bases, if a part of it is known.
    init?(
        _ first: UInt32, _ second: UInt32, _ bases: [UInt32], areShown: Bool, rules: RulesMerge? = nil, counted: CountedIDs? = nil,
        among matter: (keys: [UnsafeRawBufferPointer], arena: ByteArena)? = nil, fold: FoldedVersions? = nil, in store: Store,
        _ control: PacedControl
    ) throws {
        var counted = counted
        self.store = store
        self.control = control
        arena = matter?.arena ?? ByteArena()
        var differences: [Difference] = []
        if let matter {
            differences = try IDsToCompare(store: store).differences(first, second, under: matter.keys, control)
        } else {
            try store.forEachDifference(first, second, control) { difference in
                try control.step(0)
                try Memory.check()
                try Memory.grow(&differences, "Comparing two versions")
                var difference = difference
                difference.key = arena.copy(difference.key)
                differences.append(difference)
            }
            if differences.isEmpty { return nil }
        }
        var base = MergeBase(store: store, bases: bases, fold: fold, control)
        try Memory.grow(&forks, by: differences.count, "Merging two versions")
        for difference in differences {
            Work.comparisons.count()
            try control.step()
            try Memory.check()
            if let rules, rules.covers(difference.key) {
                try Memory.grow(&covered, "Merging two versions")
                covered.append(difference)
                continue
            }
            let fork = areShown ? nil : try MergeForks.fork(difference, &base)
            if let p = difference.before, let q = difference.after {
                let isLater = store.isStoredLater(q, p)
                let matters = fork.map { $0.isConflicting || ($0.side == .second) != isLater } ?? true
                if matters, try store.haveSameBytes(p, q, difference.key, difference.beforeFingerprint, difference.afterFingerprint),
                    try counted?.contains(difference.key) != true
                {
                    if isLater { brought.append((difference.key, p, q)) }
                    continue
                }
            }
            forks.append(try fork ?? MergeForks.fork(difference, &base))
        }
        if areShown { try addRemovedTwice(first, second, &base, control) }
    }

    /// Returns the fork of an id whose references differ.
    private static func fork(_ difference: Difference, _ base: inout MergeBase) throws -> MergeFork {
        let (key, p, q) = (difference.key, difference.before, difference.after)
        let state = try base.state(key)
        let unchanged = try base.store.unchangedSide(state, p, q, key, difference.beforeFingerprint, difference.afterFingerprint)
        switch state {
        case .absent: return MergeFork(key, first: p, second: q, ancestor: nil, unchanged: unchanged)
        case .present(let entry): return MergeFork(key, first: p, second: q, ancestor: entry, unchanged: unchanged)
        case .conflicting(let candidates):
            let ancestor = unchanged.flatMap { $0 == .first ? p : q }
            var fork = MergeFork(
                key, first: p, second: q, ancestor: ancestor, unchanged: unchanged, areBasesAtOdds: unchanged == nil)
            fork.candidates = candidates.compactMap { $0 }
            return fork
        }
    }

    /// Adds values that both sides removed, which are no difference between the two.
    private mutating func addRemovedTwice(_ first: UInt32, _ second: UInt32, _ base: inout MergeBase, _ control: PacedControl) throws {
        var removed: Set<ValueID> = []
        for (i, ancestor) in base.bases.enumerated() {
            try control.step(0)
            var gone: [UnsafeRawBufferPointer] = []
            if i == 0 {
                try store.forEachDifference(ancestor, first, control) { if $0.after == nil { gone.append(arena.copy($0.key)) } }
            } else {
                // The previous ancestor's keys were checked already. So only the differences between the ancestors are read.
                let onFirst = try store.maps.prevailing(at: first)
                try store.forEachDifference(base.bases[i - 1], ancestor, control) { difference in
                    guard difference.before == nil, try onFirst.lookup(difference.key) == nil else { return }
                    gone.append(arena.copy(difference.key))
                }
            }
            if gone.isEmpty { continue }
            let onSecond = try store.maps.map(second, control)
            for key in gone where onSecond?.lookup(key) == nil {
                guard removed.insert(ValueID(unchecked: key)).inserted, case .present(let entry) = try base.state(key) else { continue }
                forks.append(MergeFork(removedTwice: key, ancestor: entry))
            }
        }
        if !removed.isEmpty { forks = try forks.sorted(by: { Bytes.compare($0.key, $1.key) < 0 }, looking: control.look) }
    }

    /// Returns the forks as arbiters see them.
    func described() throws -> [(id: ValueID, fork: Fork)] {
        try Memory.expect(forks.count * MemoryLayout<(id: ValueID, fork: Fork)>.stride, "The \(forks.count) forks of a merge")
        return try forks.map { fork in
            try control.step(0)
            try Memory.check()
            let id = ValueID(unchecked: fork.key)
            func reference(_ entry: MapEntry?) -> Value.Reference? {
                entry.map { Value.Reference(id: id, version: store.versionID($0.version)) }
            }
            var described = Fork(
                kind: fork.kind, side: fork.side, first: reference(fork.first), second: reference(fork.second),
                ancestor: reference(fork.ancestor))
            described.ancestors = (fork.candidates.isEmpty ? [fork.ancestor] : fork.candidates.map(Optional.some)).compactMap(reference)
            return (id, described)
        }
    }

    // MARK: Changes

    /// Returns the changes of the merge version if a built-in arbiter decides.
    func changes(_ arbiter: BuiltInArbiter, _ oursSide: Fork.Side) throws -> MergeChanges {
        var out = MergeChanges()
        try out.preallocate(forks.count + brought.count)
        out.keep(arena)
        var i = 0
        func bring(before key: UnsafeRawBufferPointer?) {
            while i < brought.count, key.map({ Bytes.compare(brought[i].key, $0) < 0 }) ?? true {
                out.append(brought[i].key, preserving: (store.versionID(brought[i].second.version), brought[i].second))
                i += 1
            }
        }
        for fork in forks {
            try control.step(0)
            try Memory.check()
            bring(before: fork.key)
            let decided =
                fork.isConflicting
                ? arbiter.winner(fork.first, fork.second, oursSide: oursSide, isStoredLater: store.isStoredLater) : fork.side
            let side = isOrder(fork) ? (fork.first == nil ? .second : .first) : decided
            if side == .second { out.append(fork.key, preserving: fork.second.map { (store.versionID($0.version), $0) }) }
        }
        bring(before: nil)
        return out
    }

    /// Returns the changes of the merge version: the arbiter's, and those adopted from the second side. Drops changes that leave the
    /// first side unchanged, corrects the kinds, and sorts by id in byte order.
    func changes(_ resolved: [Value.Change], _ first: UInt32, _ second: UInt32) throws -> MergeChanges {
        let resolved = try sortedAndChecked(resolved)
        var out = MergeChanges(), ancestry = KnownAncestry()
        try out.preallocate(forks.count + brought.count + resolved.count)
        out.keep(arena)
        out.keep(resolved)
        var i = 0, j = 0, k = 0
        let none: UnsafeRawBufferPointer? = nil
        while true {
            let decided = i < resolved.count ? resolved[i].id.bytes.withUnsafeBytes { $0 } : none
            let forked = j < forks.count ? forks[j].key : none, equal = k < brought.count ? brought[k].key : none
            guard let key = least(decided, least(forked, equal)) else { break }
            try control.step(0)
            try Memory.check()
            var change = decided.map { Bytes.equal($0, key) } == true ? resolved[i] : nil
            let fork = forked.map { Bytes.equal($0, key) } == true ? forks[j] : nil
            let pair = equal.map { Bytes.equal($0, key) } == true ? brought[k] : nil
            if change != nil { i += 1 }
            if fork != nil { j += 1 }
            if pair != nil { k += 1 }
            if let fork, isOrder(fork) {
                if fork.first == nil, let q = fork.second { out.append(key, preserving: store.versionID(q.version)) }
                continue
            }
            if change != nil, EraseOrder.isNamed(by: key) { change = nil }
            guard let change else {
                if let pair { out.append(key, preserving: store.versionID(pair.second.version)) }
                if let fork, fork.side == .second { out.append(key, preserving: fork.second.map { store.versionID($0.version) }) }
                continue
            }
            let p = try fork.map(\.first) ?? pair?.first ?? store.maps.map(first)?.lookup(key)
            let q = try fork.map(\.second) ?? pair?.second ?? store.maps.map(second)?.lookup(key)
            try append(change, key, (first, p), (second, q), &ancestry, to: &out)
        }
        return out
    }

    /// Whether the values are orders to erase: a merge keeps each that one side has.
    private func isOrder(_ fork: MergeFork) -> Bool { EraseOrder.isNamed(by: fork.key) && (fork.first != nil || fork.second != nil) }

    private func least(_ a: UnsafeRawBufferPointer?, _ b: UnsafeRawBufferPointer?) -> UnsafeRawBufferPointer? {
        guard let a else { return b }
        guard let b else { return a }
        return Bytes.compare(a, b) <= 0 ? a : b
    }

    /// Returns an arbiter's changes sorted by id. Checks that there is at most one for each id, and one for each conflict.
    private func sortedAndChecked(_ resolved: [Value.Change]) throws -> [Value.Change] {
        for change in resolved {
            try control.step(0)
            try change.id.bytes.withUnsafeBytes { try ValueID.check($0) }
        }
        let sorted = try resolved.sorted(by: { $0.id < $1.id }, looking: control.look)
        for i in sorted.indices.dropFirst() where sorted[i - 1].id == sorted[i].id {
            throw StoreError(
                .duplicateID, "The arbiter returned two changes of \"\(sorted[i].id)\". Return one for each id.", valueID: sorted[i].id)
        }
        var i = 0
        for fork in forks where fork.isConflicting {
            while i < sorted.count, sorted[i].id.bytes.withUnsafeBytes({ Bytes.compare($0, fork.key) }) < 0 { i += 1 }
            guard i < sorted.count, sorted[i].id.bytes.withUnsafeBytes({ Bytes.equal($0, fork.key) }) else {
                let id = ValueID(unchecked: fork.key)
                throw StoreError(
                    .unresolvedConflict,
                    "The arbiter left the conflict of \"\(id)\" (\(fork.kind)) unresolved. Return a change for each conflicting fork.",
                    valueID: id)
            }
        }
        return sorted
    }

    /// Adds an arbiter's change, unless it leaves the first side unchanged.
    private func append(
        _ change: Value.Change, _ key: UnsafeRawBufferPointer, _ first: (version: UInt32, entry: MapEntry?),
        _ second: (version: UInt32, entry: MapEntry?),
        _ ancestry: inout KnownAncestry, to out: inout MergeChanges
    ) throws {
        switch change {
        case .insert(let id, let data), .update(let id, let data):
            guard data.count <= Limits.valueSize else {
                throw StoreError(
                    .tooLarge, "The arbiter returned \(data.count) bytes for \"\(id)\"; at most 1 GiB is allowed.", valueID: id)
            }
            if let p = first.entry, p.size == MapEntry.unknownSize || Int(p.size) == data.count {
                if try store.records.hasBytes(data, store.place(of: p.version), p, id: key, stored: store.versionID(p.version)) { return }
            }
            out.keep(data)
            out.append(RecordChange(kind: first.entry == nil ? .insert : .update, id: key, data: data.withUnsafeBytes { $0 }))
        case .remove, .preserveRemoval:
            if first.entry != nil { out.append(RecordChange(kind: second.entry == nil ? .preserveRemoval : .remove, id: key)) }
        case .preserve(let reference):
            // A value that prevails on a side exists, in the ancestry.
            if let p = first.entry, store.versionID(p.version) == reference.version { return }
            if let q = second.entry, store.versionID(q.version) == reference.version {
                return out.append(key, preserving: reference.version)
            }
            let ordinal = try store.checkReference(key, reference.version)
            let inAncestry = ancestry.contains(ordinal, behind: [first.version, second.version], in: store) {}
            if inAncestry { return out.append(key, preserving: reference.version) }
            try append(.update(change.id, data: store.value(reference)?.data ?? []), key, first, second, &ancestry, to: &out)
        }
    }
}
