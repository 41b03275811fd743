/// Finds versions with equal states: the same ids with the same bytes, whichever versions stored them.
package struct EqualStates {
    let store: Store

    /// Up to this many versions are compared in pairs. Of more versions, each is compared with this many groups of its sketch, and first
    /// under as many ids in which others of that sketch differed. The bound is needed since a peer can make many states with the same
    /// sketch. If these comparisons do not separate the states of a sketch, each further one becomes a group of its own and is merged like
    /// any other version.
    private static let fewStates = 16
    /// The limits when a save looks for heads with its state: ids to compare, and heads. If there are more heads, the merge finds equal
    /// ones.
    private static let mostCompared = 1 << 16, mostHeadsCompared = 4_096

    /// Groups versions by equal states. Groups and their members keep the order of the versions.
    /// - Complexity: for few versions, mostly one comparison of an id for each pair. For many, one pass in memory over the versions since
    ///   their chains of first predecessors met, and one recorded change of each.
    /// - Parameter given: rules of an arbiter. A value that they count is equal only if one version stored it, as for rules of the store.
    func groupedByState(_ versions: [UInt32], given: MergeSchema? = nil, _ control: PacedControl = .none) throws -> [[UInt32]] {
        if versions.count < 2 { return versions.map { [$0] } }
        let sketches = versions.count <= EqualStates.fewStates ? versions.map { _ in 0 } : try sketches(versions, control)
        struct Alike {
            var groups: [Int] = [], differing: [ValueID] = []
        }
        var groups: [[UInt32]] = [], ofSketch: [UInt64: Alike] = [:], left = Int.max
        for (version, sketch) in zip(versions, sketches) {
            try control.step(0)
            var differing = ofSketch[sketch]?.differing ?? [], found: Int?
            let isFew = versions.count <= EqualStates.fewStates
            for i in ofSketch[sketch]?.groups.prefix(EqualStates.fewStates) ?? [] where isFew || differing.count <= EqualStates.fewStates {
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

    /// Returns whether the states at two versions have the same ids with the same bytes. Values that rules count must be stored by the same
    /// versions.
    /// - Parameters:
    ///   - heads: what earlier merges found out about heads. An id in which the two differ is recorded there if finding it took a search.
    ///   - first: ids to compare before all others, in a merge that continues another one.
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

    /// Finds an id under which the states at two versions differ, and whether it is the last change of one of them. Returns nil if they are
    /// equal. Compares the known ids first, then the last changes. Stops at the first id that differs.
    /// - Parameter left: how many ids may be compared; each comparison subtracts one.
    /// - Parameters known, first: ids to compare first: those in which other versions differed, and those in which these two may.
    /// - Throws: `TooManyIDs` if an id is to be compared and `left` is 0.
    private func differingID(
        _ a: UInt32, _ b: UInt32, given: MergeSchema?, _ control: PacedControl, atMost left: inout Int, known: [ValueID] = [],
        first: () throws -> [UnsafeRawBufferPointer] = { [] }
    ) throws -> (id: ValueID, isLastChange: Bool)? {
        if a == b { return nil }
        var counted = CountedIDs(store, a, b, given: given)
        func isSame(
            _ x: MapEntry?, _ y: MapEntry?, _ key: UnsafeRawBufferPointer, _ xFingerprint: UInt32? = nil, _ yFingerprint: UInt32? = nil
        ) throws -> Bool {
            guard try isSameValue(x, y, key, xFingerprint, yFingerprint) else { return false }
            guard let x, let y, !x.isSameReference(as: y) else { return true }
            return try !counted.contains(key)
        }
        func prevails(alike key: UnsafeRawBufferPointer) throws -> Bool {
            try isSame(store.maps.prevailing(at: a).lookup(key), store.maps.prevailing(at: b).lookup(key), key)
        }
        for id in known where try !id.bytes.withUnsafeBytes({ try prevails(alike: $0) }) { return (id, false) }
        for (one, other) in [(b, a), (a, b)] {
            guard let change = try lastChange(one) else { continue }
            let prevails = try change.key.withUnsafeBytes { key in
                try isSame(change.entry, store.maps.prevailing(at: other).lookup(key), key)
            }
            if !prevails { return (change.key.withUnsafeBytes { ValueID(unchecked: $0) }, true) }
        }
        for key in try first() {
            try control.step(0)
            if try !prevails(alike: key) { return (ValueID(unchecked: key), false) }
        }
        do {
            try store.forEachDifference(a, b, control) { difference in
                try control.step()
                guard left > 0 else { throw TooManyIDs() }
                left -= 1
                let (p, q) = (difference.before, difference.after)
                guard try isSame(p, q, difference.key, difference.beforeFingerprint, difference.afterFingerprint) else {
                    throw Differ(key: Array(difference.key))
                }
            }
        } catch let differ as Differ { return (differ.key.withUnsafeBytes { ValueID(unchecked: $0) }, false) }
        // If each side has undos that the other did not know, their merge may hold a value that neither side holds.
        return try UndoneEdits.apart(a, b, over: nil, in: store, control)?.ids.first.map { ($0, false) }
    }

    func isSameValue(
        _ a: MapEntry?, _ b: MapEntry?, _ key: UnsafeRawBufferPointer, _ aFingerprint: UInt32? = nil, _ bFingerprint: UInt32? = nil
    ) throws -> Bool {
        Work.comparisons.count()
        guard let a, let b else { return a == nil && b == nil }
        return try store.haveSameBytes(a, b, key, aFingerprint, bFingerprint)
    }

    /// Follows first predecessors to the newest version that changed an id, and returns its first change. Returns nil if there is none, or
    /// none within the limit.
    private func lastChange(_ version: UInt32) throws -> (key: [UInt8], entry: MapEntry?)? {
        let (at, count) = store.lock.withRead { () -> (UInt32, Int) in
            var at = version, steps = 0
            while at != History.none, store.dag.rows[Int(at)].changeCount == 0, steps < 1_024 {
                at = store.dag.rows[Int(at)].first
                steps += 1
            }
            return at == History.none ? (at, 0) : (at, Int(store.dag.rows[Int(at)].changeCount))
        }
        guard count > 0 else { return nil }
        var found: (key: [UInt8], entry: MapEntry?)?
        if count <= MapPolicy.longestKeptList {
            try store.maps.forEachRecordedChange(at) { if found == nil { found = (Array($0.key), $0.entry) } }
        } else {
            // The first page of its table is enough.
            do {
                try store.maps.readChanges(of: at) { change in
                    found = (Array(change.key), change.entry)
                    throw Differ()
                }
            } catch is Differ {}
        }
        return found
    }

    /// Returns the version on which to save: the version itself, or the merge of all heads without a branch that have its state, if it is
    /// one of several.
    /// - Parameter given: as for `groupedByState`.
    /// - Parameter known: heads that differ from the version, so that they are not compared at each save.
    package func join(
        headsLike version: VersionID, given: @autoclosure () -> MergeSchema? = nil, knowing known: inout KnownDifferences
    ) throws -> VersionID {
        let equal = try ordinalsOfHeadsLike(version, given: given(), knowing: &known)
        return equal.count > 1 ? try store.joinEqualHeads(equal)?.id ?? version : version
    }

    /// Returns a version and the other heads without a branch that have its state, if it is such a head.
    package func headsLike(
        _ version: VersionID, given: @autoclosure () -> MergeSchema? = nil, knowing known: inout KnownDifferences
    ) throws -> [VersionID] {
        let equal = try ordinalsOfHeadsLike(version, given: given(), knowing: &known)
        return equal.isEmpty ? [version] : store.lock.withRead { equal.map(store.dag.id) }
    }

    /// Returns the ordinals of these heads, newest first; none if there are no other heads.
    private func ordinalsOfHeadsLike(
        _ version: VersionID, given: @autoclosure () -> MergeSchema?, knowing known: inout KnownDifferences
    ) throws -> [UInt32] {
        // The common case is one head.
        guard
            try store.lock.withRead({
                try store.checkOpenLocked(); return store.dag.headOrdinals.count > 1
            })
        else { return [] }
        let heads = try store.lock.withRead { () -> [(ordinal: UInt32, id: VersionID)] in
            try store.checkOpenLocked()
            let heads = store.dag.unbranchedHeadOrdinals
            guard let ordinal = store.dag.ordinal(of: version), heads.contains(ordinal), heads.count <= EqualStates.mostHeadsCompared else {
                return []
            }
            return heads.sorted(by: store.dag.isNewer).map { ($0, store.dag.id($0)) }
        }
        guard heads.count > 1, let at = heads.first(where: { $0.id == version })?.ordinal else { return [] }
        known.begin(at: version)
        let given = given()
        var equal: [UInt32] = [], differing: [VersionID: ValueID] = [:], left = EqualStates.mostCompared
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
            } catch let error as StoreError where error.code == .damaged || error.code.isGone {
                // A save does not wait for the repair of another head.
                known.passOver(head.id)
            }
        }
        known.keep(differing)
        return equal
    }
    // MARK: Many versions

    /// Returns a number for each version, the same for equal states. It covers the ids that each of the versions changed last, as the
    /// difference from their values at the version where the chains of first predecessors meet.
    private func sketches(_ versions: [UInt32], _ control: PacedControl) throws -> [UInt64] {
        var wanted: Set<UInt32> = []
        for version in versions {
            try control.step(0)
            if let key = try lastChange(version)?.key { wanted.insert(key.withUnsafeBytes { History.keyHash($0) }) }
        }
        let tree = try store.walk(ChainTree.Making(versions), control.look)
        let asked = Set(versions)
        var found: [UInt32: UInt64] = [:], sketch: UInt64 = 0
        // The codes of the values that were changed on the path to the current version of the walk.
        var now: [ValueID: UInt64] = [:]
        enum Step { case enter(UInt32), leave([(ValueID, UInt64?)], sketch: UInt64) }
        for top in tree.tops {
            let base = tree.isMeeting ? try store.maps.prevailing(at: top) : nil
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
                        store.lock.withRead({ store.dag.keyHashes(of: version)?.contains(where: wanted.contains) ?? true })
                    {
                        let recorded = try ChainChanges([version], in: store)
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

    /// Returns a code for a value under an id: 0 for none, the same for the same bytes.
    private func code(_ entry: MapEntry?, _ key: UnsafeRawBufferPointer, _ hash: UInt32, _ fingerprint: UInt32?) throws -> UInt64 {
        guard let entry else { return 0 }
        let (place, stored) = store.lock.withRead { (store.dag.rows[Int(entry.version)].place, store.dag.id(entry.version)) }
        let known = entry.size == MapEntry.unknownSize ? try store.maps.stored(key, in: entry.version) ?? entry : entry
        let content: UInt32
        // Large values count by their sizes.
        if Int(known.size) > RecordTable.digestThreshold {
            content = known.size
        } else {
            do {
                content =
                    try fingerprint ?? store.maps.changeLists.fingerprint(entry.version, key)
                    ?? store.records.withBody(place, known, id: key, stored: stored) { ChangeLists.fingerprint($0) }
            } catch let error as StoreError where error.code.isGone {
                // Without its bytes it counts by its size, and seems to differ from a copy with bytes. Then the heads are merged.
                content = known.size
            }
        }
        var x = UInt64(hash) << 32 | UInt64(content)
        // The finaliser of splitmix64.
        x = (x ^ x >> 30) &* 0xBF58_476D_1CE4_E5B9
        x = (x ^ x >> 27) &* 0x94D0_49BB_1331_11EB
        return (x ^ x >> 31) | 1
    }
}

extension Store {
    /// Finds versions of this store with equal states.
    package var equalStates: EqualStates { EqualStates(store: self) }
}

/// The chains of first predecessors of some versions, up to the version where all of them meet, or to their roots.
private struct ChainTree {
    var children: [UInt32: [UInt32]] = [:]
    /// The version where they meet, or all their roots.
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
