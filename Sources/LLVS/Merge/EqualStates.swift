/// Which versions stand for one state: the same ids with the same bytes, whichever versions stored them.
extension Store {
    /// So many are compared one with the other. Of more, a version is compared with as many groups of its sketch, and first under as many
    /// ids in which others of that sketch differed: a peer can make many states that have one sketch. Where these do not tell the states of
    /// a sketch apart, each is in a group of its own from then on, and is merged as others are.
    private static let fewStates = 16
    /// So many ids are compared when a save looks for heads that have its state. Where there are more heads it leaves all to the merge.
    private static let mostCompared = 1 << 16, mostHeadsCompared = 4_096

    /// The versions in groups of equal states. Groups and what is in them keep the order of the versions.
    /// - Complexity: mostly one look at an id for each pair of few versions; of many, the versions since their chains of first
    ///   predecessors met, once, in memory, and what they recorded of one id of each.
    /// - Parameter given: rules of an arbiter: what they count is equal only where it was stored once, as what rules of the store count.
    func groupedByState(_ versions: [UInt32], given: MergeSchema? = nil, _ control: PacedControl = .none) throws -> [[UInt32]] {
        if versions.count < 2 { return versions.map { [$0] } }
        let sketches = versions.count <= Store.fewStates ? versions.map { _ in 0 } : try sketches(versions, control)
        struct Alike {
            var groups: [Int] = [], differing: [ValueID] = []
        }
        var groups: [[UInt32]] = [], ofSketch: [UInt64: Alike] = [:], left = Int.max
        for (version, sketch) in zip(versions, sketches) {
            try control.step(0)
            var differing = ofSketch[sketch]?.differing ?? [], found: Int?
            let isFew = versions.count <= Store.fewStates
            for i in ofSketch[sketch]?.groups.prefix(Store.fewStates) ?? [] where isFew || differing.count <= Store.fewStates {
                let id = try differingID(groups[i][0], version, given: given, control, atMost: &left, known: differing)?.id
                guard let id else { found = i; break }
                if !differing.contains(id) { differing.append(id) }
            }
            ofSketch[sketch, default: Alike()].differing = differing
            if let found {
                groups[found].append(version)
            } else {
                ofSketch[sketch, default: Alike()].groups.append(groups.count)
                groups.append([version])
            }
        }
        return groups
    }

    private struct Differ: Error {
        var key: [UInt8] = []
    }
    private struct TooManyIDs: Error {}

    /// Whether the states at two versions have the same ids with the same bytes; what rules count, stored by the same versions.
    /// - Parameters:
    ///   - heads: what is known of heads that were merged before; an id in which the two differ is kept there, if it took a search.
    ///   - first: ids that are looked at before all others, in a merge that goes on from another one.
    func haveEqualStates(
        _ a: UInt32, _ b: UInt32, given: MergeSchema? = nil, knowing heads: FoldedHeads? = nil,
        first: () throws -> [UnsafeRawBufferPointer] = { [] }, _ control: PacedControl = .none
    ) throws -> Bool {
        var left = Int.max
        let known = heads?.differing.map { [$0] } ?? []
        let found = try differingID(a, b, given: given, control, atMost: &left, known: known, first: first)
        if let found { heads?.differing = found.isLastChange ? nil : found.id }
        return found == nil
    }

    /// An id under which the states at two versions differ, and whether it is what one of them changed last; nil when they are equal. That
    /// is looked at before all else but what is known, and nothing behind the first id that differs.
    /// - Parameter left: how many ids may be compared; those that were are taken off.
    /// - Parameters known, first: ids that are looked at first: those in which others differed, and those in which these two may.
    /// - Throws: `TooManyIDs` when none were left.
    private func differingID(
        _ a: UInt32, _ b: UInt32, given: MergeSchema?, _ control: PacedControl, atMost left: inout Int, known: [ValueID] = [],
        first: () throws -> [UnsafeRawBufferPointer] = { [] }
    ) throws -> (id: ValueID, isLastChange: Bool)? {
        if a == b { return nil }
        var counted = CountedIDs(self, a, b, given: given)
        func isSame(
            _ x: MapEntry?, _ y: MapEntry?, _ key: UnsafeRawBufferPointer, _ xFingerprint: UInt32? = nil, _ yFingerprint: UInt32? = nil
        ) throws -> Bool {
            guard try isSameValue(x, y, key, xFingerprint, yFingerprint) else { return false }
            guard let x, let y, !x.isSameReference(as: y) else { return true }
            return try !counted.contains(key)
        }
        func prevails(alike key: UnsafeRawBufferPointer) throws -> Bool {
            try isSame(maps.prevailing(at: a).lookup(key), maps.prevailing(at: b).lookup(key), key)
        }
        for id in known where try !id.bytes.withUnsafeBytes({ try prevails(alike: $0) }) { return (id, false) }
        for (one, other) in [(b, a), (a, b)] {
            guard let change = try lastChange(one) else { continue }
            let prevails = try change.key.withUnsafeBytes { key in try isSame(change.entry, maps.prevailing(at: other).lookup(key), key) }
            if !prevails { return (change.key.withUnsafeBytes { ValueID(unchecked: $0) }, true) }
        }
        for key in try first() {
            try control.step(0)
            if try !prevails(alike: key) { return (ValueID(unchecked: key), false) }
        }
        do {
            try forEachDifference(a, b, control) { difference in
                try control.step()
                guard left > 0 else { throw TooManyIDs() }
                left -= 1
                let (p, q) = (difference.before, difference.after)
                guard try isSame(p, q, difference.key, difference.beforeFingerprint, difference.afterFingerprint) else {
                    throw Differ(key: Array(difference.key))
                }
            }
        } catch let differ as Differ { return (differ.key.withUnsafeBytes { ValueID(unchecked: $0) }, false) }
        // If both undid what the other did not know to be undone, the merge of the two may hold something else than either.
        return try UndoneEdits.apart(a, b, over: nil, in: self, control)?.ids.first.map { ($0, false) }
    }

    func isSameValue(
        _ a: MapEntry?, _ b: MapEntry?, _ key: UnsafeRawBufferPointer, _ aFingerprint: UInt32? = nil, _ bFingerprint: UInt32? = nil
    ) throws -> Bool {
        Work.comparisons.count()
        guard let a, let b else { return a == nil && b == nil }
        return try haveSameBytes(a, b, key, aFingerprint, bFingerprint)
    }

    /// The first id that the newest version which changed any on a chain of first predecessors changed, and what became of it; nil when
    /// none changed any, or only one far away.
    private func lastChange(_ version: UInt32) throws -> (key: [UInt8], entry: MapEntry?)? {
        let (at, count) = lock.withRead { () -> (UInt32, Int) in
            var at = version, steps = 0
            while at != History.none, dag.rows[Int(at)].changeCount == 0, steps < 1_024 {
                at = dag.rows[Int(at)].first
                steps += 1
            }
            return at == History.none ? (at, 0) : (at, Int(dag.rows[Int(at)].changeCount))
        }
        guard count > 0 else { return nil }
        var found: (key: [UInt8], entry: MapEntry?)?
        if count <= MapPolicy.longestKeptList {
            try maps.forEachRecordedChange(at) { if found == nil { found = (Array($0.key), $0.entry) } }
        } else {
            // The first page of its table is enough.
            do {
                try maps.readChanges(of: at) { change in
                    found = (Array(change.key), change.entry)
                    throw Differ()
                }
            } catch is Differ {}
        }
        return found
    }

    /// Where to save on a version: on it; or, when it is a head without a branch and there are others that have its state, on the
    /// version into which all of these are merged.
    /// - Parameter given: as for `groupedByState`.
    /// - Parameter known: heads that differ from the version, so that they are not compared at each save.
    func join(
        headsLike version: VersionID, given: @autoclosure () -> MergeSchema? = nil, knowing known: inout KnownDifferences
    ) throws -> VersionID {
        let equal = try ordinalsOfHeadsLike(version, given: given(), knowing: &known)
        return equal.count > 1 ? try joinEqualHeads(equal)?.id ?? version : version
    }

    /// A version, and the other heads without a branch that have its state, if it is such a head.
    func headsLike(
        _ version: VersionID, given: @autoclosure () -> MergeSchema? = nil, knowing known: inout KnownDifferences
    ) throws -> [VersionID] {
        let equal = try ordinalsOfHeadsLike(version, given: given(), knowing: &known)
        return equal.isEmpty ? [version] : lock.withRead { equal.map(dag.id) }
    }

    /// The same, newest first; none if there are no other heads.
    private func ordinalsOfHeadsLike(
        _ version: VersionID, given: @autoclosure () -> MergeSchema?, knowing known: inout KnownDifferences
    ) throws -> [UInt32] {
        // Mostly there is one head.
        guard
            try lock.withRead({
                try checkOpenLocked(); return dag.headOrdinals.count > 1
            })
        else { return [] }
        let heads = try lock.withRead { () -> [(ordinal: UInt32, id: VersionID)] in
            try checkOpenLocked()
            let heads = dag.unbranchedHeadOrdinals
            guard let ordinal = dag.ordinal(of: version), heads.contains(ordinal), heads.count <= Store.mostHeadsCompared else { return [] }
            return heads.sorted(by: dag.isNewer).map { ($0, dag.id($0)) }
        }
        guard heads.count > 1, let at = heads.first(where: { $0.id == version })?.ordinal else { return [] }
        known.begin(at: version)
        let given = given()
        var equal: [UInt32] = [], differing: [VersionID: ValueID] = [:], left = Store.mostCompared
        for head in heads where !known.passedOver.contains(head.id) {
            if head.ordinal == at { equal.append(at); continue }
            do {
                if let id = try known.heads[head.id] ?? differingID(at, head.ordinal, given: given, .none, atMost: &left)?.id {
                    differing[head.id] = id
                } else {
                    equal.append(head.ordinal)
                }
            } catch is TooManyIDs {
                known.passOver(head.id)
            } catch let error as StoreError where error.code == .damaged {
                // A save does not wait for the repair of another head.
                known.passOver(head.id)
            }
        }
        known.keep(differing)
        return equal
    }

    // MARK: Many versions

    /// A number for each version; equal states have equal ones. What the versions hold of the ids that each of them changed last, as a
    /// difference from what the version holds at which their chains of first predecessors meet.
    private func sketches(_ versions: [UInt32], _ control: PacedControl) throws -> [UInt64] {
        var wanted: Set<UInt32> = []
        for version in versions {
            try control.step(0)
            if let key = try lastChange(version)?.key { wanted.insert(key.withUnsafeBytes { History.keyHash($0) }) }
        }
        let tree = try walk(ChainTree.Making(versions), control.look)
        let asked = Set(versions)
        var found: [UInt32: UInt64] = [:], sketch: UInt64 = 0
        // What prevails on the way to the version that is looked at, of ids that were changed on it.
        var now: [ValueID: UInt64] = [:]
        enum Step { case enter(UInt32), leave([(ValueID, UInt64?)], sketch: UInt64) }
        for top in tree.tops {
            let base = tree.isMeeting ? try maps.prevailing(at: top) : nil
            var stack = [Step.enter(top)]
            while let step = stack.popLast() {
                try control.step(0)
                switch step {
                case .leave(let undone, let before):
                    for (id, code) in undone.reversed() { now[id] = code }
                    sketch = before
                case .enter(let version):
                    let before = sketch
                    var undone: [(ValueID, UInt64?)] = []
                    if !(tree.isMeeting && version == top),
                        lock.withRead({ dag.keyHashes(of: version)?.contains(where: wanted.contains) ?? true })
                    {
                        let recorded = try ChainChanges([version], in: self)
                        for item in recorded.items {
                            let hash = History.keyHash(item.key)
                            guard wanted.contains(hash) else { continue }
                            let id = ValueID(unchecked: item.key), known = now[id]
                            let was = try known ?? base.map { try code($0.lookup(item.key), item.key, hash, nil) } ?? 0
                            let becomes = try code(item.entry, item.key, hash, item.fingerprint)
                            sketch = sketch &- was &+ becomes
                            undone.append((id, known))
                            now[id] = becomes
                        }
                    }
                    if asked.contains(version) { found[version] = sketch }
                    stack.append(.leave(undone, sketch: before))
                    for child in tree.children[version] ?? [] { stack.append(.enter(child)) }
                }
            }
        }
        return versions.map { found[$0] ?? 0 }
    }

    /// Stands for a value under an id: 0 for none, the same for the same bytes.
    private func code(_ entry: MapEntry?, _ key: UnsafeRawBufferPointer, _ hash: UInt32, _ fingerprint: UInt32?) throws -> UInt64 {
        guard let entry else { return 0 }
        let (place, stored) = lock.withRead { (dag.rows[Int(entry.version)].place, dag.id(entry.version)) }
        let known = entry.size == MapEntry.unknownSize ? try self.maps.stored(key, in: entry.version) ?? entry : entry
        let content: UInt32
        // Large values count by their sizes.
        if Int(known.size) > RecordTable.digestThreshold {
            content = known.size
        } else {
            content =
                try fingerprint ?? maps.changeLists.fingerprint(entry.version, key)
                ?? records.withBody(place, known, id: key, stored: stored) { ChangeLists.fingerprint($0) }
        }
        var x = UInt64(hash) << 32 | UInt64(content)
        // The finaliser of splitmix64.
        x = (x ^ x >> 30) &* 0xBF58_476D_1CE4_E5B9
        x = (x ^ x >> 27) &* 0x94D0_49BB_1331_11EB
        return (x ^ x >> 31) | 1
    }
}

/// The chains of first predecessors of some versions, back to where all of them meet, or to their ends.
private struct ChainTree {
    var children: [UInt32: [UInt32]] = [:]
    /// Where they meet, or all their ends.
    var tops: [UInt32] = []
    var isMeeting = false

    struct Making: HistoryPass {
        private var tree = ChainTree()
        private var versions: [UInt32]
        private var queue = GenerationQueue(), seen: Set<UInt32> = []
        init(_ versions: [UInt32]) { self.versions = versions }

        mutating func go(_ steps: Int, in history: History) -> ChainTree? {
            for version in versions where seen.insert(version).inserted { queue.push(version, history.rows[Int(version)].generation) }
            versions = []
            var left = steps
            while !queue.isEmpty {
                if left <= 0 { return nil }
                left -= 1
                guard let at = queue.pop() else { break }
                Work.versions.count()
                if queue.isEmpty, tree.tops.isEmpty {
                    tree.tops = [at]
                    tree.isMeeting = true
                    return tree
                }
                let first = history.rows[Int(at)].first
                if first == History.none { tree.tops.append(at); continue }
                tree.children[first, default: []].append(at)
                if seen.insert(first).inserted { queue.push(first, history.rows[Int(first)].generation) }
            }
            return tree
        }
    }
}
