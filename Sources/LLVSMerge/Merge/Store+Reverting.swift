/// Reverts and cherry-picks versions: merges in which base and sides have other roles.
///
///     operation             base            newer         older
///     revert v at h         v               h             predecessor of v
///     cherry-pick v onto h  predecessor     v             h
extension Store {
    /// The result of reverting or picking a version.
    public struct Reverted: Sendable {
        /// The new version; nil if nothing was left to change, and nothing was stored.
        public var version: Version?
        /// The changed ids: after a revert, their values are again as before the version.
        public var undone: [ValueID] = []
        /// The ids that the version changed and that were changed again since: the later changes were kept. Also ids to which an undone
        /// version added members while it brought them into a later form: the members were kept, too. And ids for which the edit that lost
        /// against the version is unknown, since a host decided that merge.
        public var superseded: [ValueID] = []
        /// The decisions about changes of both sides, in byte order of the ids.
        public var conflicts: [Conflict] = []
        /// Whether a pick changed a counter. If the two lines are merged later, the change counts twice.
        public var counts = false
        /// The versions that were undone.
        public var versions: [VersionID] = []

        /// Creates a result without changes.
        public init() {}
    }

    /// Reverts the changes of a version, on top of a head, and keeps later changes. Values with rules are merged inside: later changes
    /// stay, member by member.
    /// - Parameters:
    ///   - version: the version to revert.
    ///   - head: the predecessor of the new version.
    ///   - parent: for a merge, the predecessor whose state is restored; the first by default.
    ///   - metadata: the metadata of the new version.
    ///   - control: gets the number of processed ids, with stage `.reading`. After a cancellation nothing is stored.
    /// - Throws: `.unknownVersion`, `.invalidArgument` for a missing second predecessor, and the errors of `makeVersion`.
    @discardableResult
    public func revert(
        _ version: VersionID, at head: VersionID, parent: Fork.Side = .first, metadata: Metadata = Metadata(),
        control: OperationControl = OperationControl()
    ) throws -> Reverted {
        try checkWritable("Reverting")
        let paced = control.paced(.reading, doing: "Undoing version \(version) of \(self.description)")
        try paced.look()
        let undone = try requireOrdinal(version), before = try predecessor(of: undone, parent)
        var merge = try SwappedMerge(onto: requireOrdinal(head), in: self, paced)
        try merge.undo(undone, to: before)
        return try make(merge.changes(), of: merge, on: head, metadata, paced)
    }

    /// Repeats the changes of a version, on top of a head. They prevail over changes of the head.
    /// - Parameters: as for `revert`; `parent` is, for a merge, the predecessor from which its changes are determined.
    /// - Throws: as `revert`.
    @discardableResult
    public func cherryPick(
        _ version: VersionID, onto head: VersionID, parent: Fork.Side = .first, metadata: Metadata = Metadata(),
        control: OperationControl = OperationControl()
    ) throws -> Reverted {
        try checkWritable("Cherry-picking")
        let paced = control.paced(.reading, doing: "Picking version \(version) of \(self.description)")
        try paced.look()
        let picked = try requireOrdinal(version), before = try predecessor(of: picked, parent)
        var merge = try SwappedMerge(onto: requireOrdinal(head), in: self, paced)
        try merge.pick(picked, from: before)
        return try make(merge.changes(), of: merge, on: head, metadata, paced)
    }

    /// Makes the version, unless it would have no changes.
    package func make(
        _ changes: [Value.Change], of merge: SwappedMerge, on head: VersionID, _ metadata: Metadata, _ control: PacedControl
    ) throws -> Reverted {
        try control.look()
        var done = merge.report
        done.undone = changes.map(\.id)
        if !changes.isEmpty { done.version = try makeVersion(basedOn: head, changes: changes, metadata: metadata) }
        return done
    }

    /// Returns a predecessor; nil for a root.
    package func predecessor(of version: UInt32, _ side: Fork.Side) throws -> UInt32? {
        let sides = lock.withRead { dag.predecessors(version) }
        if side == .first { return sides.first }
        guard sides.count == 2 else {
            throw StoreError(
                .invalidArgument, "Version \(versionID(version)) has no second predecessor. Only merges have.",
                versionID: versionID(version).description)
        }
        return sides[1]
    }
}

/// Merges values onto a head, one version after another. Base and sides have other roles than in a merge of versions.
package struct SwappedMerge {
    private let store: Store
    private let head: UInt32
    private let schema: MergeSchema?
    private let control: PacedControl
    /// The values of processed ids at the head, after the merges so far.
    private var held: [ValueID: SideValue?] = [:]
    /// The ids among these whose values were recomputed without undone edits.
    private var isMade: Set<ValueID> = []
    private var superseded: Set<ValueID> = []
    private var conflicts: [Conflict] = []
    private var counts = false
    private var versions: [VersionID] = []
    /// Whether a value was recomputed from the history without undone edits. An undo then counts even if it changes nothing.
    package private(set) var hasMet = false

    package init(onto head: UInt32, in store: Store, _ control: PacedControl) throws {
        self.store = store
        self.head = head
        self.control = control
        try Self.checkRules(at: head, in: store)
        schema = try store.rules.schemaEntry(at: head).flatMap { try store.rules.countingSchema($0) }
    }

    /// Throws if a version has rules with an unknown number.
    private static func checkRules(at version: UInt32, in store: Store) throws {
        guard let problem = try store.rules.schemaEntry(at: version).flatMap({ try store.rules.problem(ofSchema: $0) }),
            problem.isUnknownMerge
        else {
            return
        }
        throw StoreError(
            .unsupported,
            "Nothing is undone or picked, since the rules are not known: in \"\(MergeSchema.valueID)\" at version "
                + "\(store.versionID(version)), \(problem.reason). Use a newer version of the library, or save the wanted values.",
            valueID: ValueID(unchecked: MergeSchema.idBytes), path: problem.pointer)
    }

    /// Undoes a version. The head is the newer side, so later changes stay.
    /// - Parameter without: recomputes values without several undone edits at once, if other lines changed them, too.
    package mutating func undo(_ version: UInt32, to before: UInt32?, _ without: UndoneEdits? = nil) throws {
        versions.append(store.versionID(version))
        for one in [before, version].compactMap(\.self) { try Self.checkRules(at: one, in: store) }
        let merged = try MergedEdits(by: version, upTo: head, in: store, control)
        try forEachDifference(before, version) { merge, key, was, became in
            let id = ValueID(unchecked: key)
            if let without, try merge.take(id, key, without, (SideValue(was), SideValue(became))) { return }
            let now = try merge.now(id, key)
            // A value that was removed since stays removed.
            if now == nil, became != nil {
                if was != nil { merge.superseded.insert(id) }
                return
            }
            let held = merge.merger(key), kept = try held.kept(SideValue(was), in: SideValue(became))
            if kept?.hasMembers ?? false { merge.superseded.insert(id) }
            let before = kept?.value ?? SideValue(was), edited = SideValue(became)
            let outcome = try held.undo(edited, to: before, in: now)
            switch try merged.undoing(key, from: before, to: edited, now: now, held) {
            case nil: try merge.take(outcome, id, newer: now, older: before, held, isRevert: true)
            case .unknown:
                try merge.take(outcome, id, newer: now, older: before, held, isRevert: true)
                merge.superseded.insert(id)
            case .lost:
                merge.tell(outcome.records, of: id, held)
                merge.superseded.insert(id)
            case .dropped(let added):
                // Compare the present value with and without the edit: counters are the same again.
                let again = try held.undo(edited, to: before, in: added)
                try merge.take(again, id, newer: added, older: before, held, isRevert: true, now: now)
                merge.superseded.insert(id)
            case .merged(let part, let records, let lost, let isSure):
                if !isSure || Self.isDecided(outcome, isRevert: true) { merge.superseded.insert(id) }
                merge.tell(outcome.records, of: id, held)
                merge.tell(records, of: id, held)
                let again = try held.undo(part.edited, to: part.before, in: now)
                try merge.take(again, id, newer: now, older: part.before, held, isRevert: true)
                for part in lost {
                    guard let left = try merge.now(id, key) else { break }
                    let again = try held.undo(part.edited, to: part.before, in: left)
                    try merge.take(again, id, newer: left, older: part.before, held, isRevert: true)
                }
            }
        }
    }

    /// Applies undos that recorded no change of a value, because another save prevailed over the undone one.
    package mutating func undoRest(_ without: UndoneEdits) throws {
        for id in without.ids where held[id] == nil {
            try control.step()
            _ = try id.bytes.withUnsafeBytes { try take(id, $0, without, nil) }
        }
    }

    /// Sets a value without undone edits.
    /// - Parameter edit: the change of an undone version.
    /// - Returns: false if no other line changed the value: then the edit alone determines the result.
    private mutating func take(
        _ id: ValueID, _ key: UnsafeRawBufferPointer, _ without: UndoneEdits, _ edit: (before: SideValue?, after: SideValue?)?
    ) throws -> Bool {
        let merge = merger(key), now = SideValue(try store.maps.entry(key, at: head))
        if held[id] == nil {
            let found = try without.value(merge)
            guard found.isMet else { return false }
            hasMet = true
            isMade.insert(id)
            held[id] = .some(try merge.areSameDocument(found.value, now) ? now : found.value)
            tell(found.records, of: id, merge)
            if try found.keepsMembers || (edit != nil && merge.areSameDocument(found.value, now)) { superseded.insert(id) }
        }
        guard isMade.contains(id) else { return false }
        guard let edit else { return true }
        if now == nil, edit.after != nil {
            if edit.before != nil { superseded.insert(id) }
            return true
        }
        // Later changes, which stay.
        let outcome = try merge.undo(edit.after, to: edit.before, in: now)
        tell(outcome.records, of: id, merge)
        if Self.isDecided(outcome, isRevert: true) { superseded.insert(id) }
        return true
    }

    /// Picks a version, which is the newer side.
    mutating func pick(_ version: UInt32, from before: UInt32?) throws {
        versions.append(store.versionID(version))
        for one in [before, version].compactMap(\.self) { try Self.checkRules(at: one, in: store) }
        try forEachDifference(before, version) { merge, key, was, became in
            let id = ValueID(unchecked: key), now = try merge.now(id, key), held = merge.merger(key)
            if !merge.counts, try merge.hasCounted(held, SideValue(was), SideValue(became)) { merge.counts = true }
            let outcome = try held.merge(SideValue(was), newer: SideValue(became), older: now)
            try merge.take(outcome, id, newer: SideValue(became), older: now, held, isRevert: false)
        }
    }

    /// Returns whether a counter has changed: then both of two such changes would count.
    private func hasCounted(_ merge: HeldMerge, _ was: SideValue?, _ became: SideValue?) throws -> Bool {
        guard merge.rules.hasCounter, became != nil else { return false }
        let twice = try merge.merge(was, newer: became, older: became, swaps: false)
        guard case .computed(let bytes, let recency) = twice.result else { return false }
        return try !merge.areSameDocument(SideValue(.computed(bytes, recency: recency)), became)
    }

    private func merger(_ key: UnsafeRawBufferPointer) -> HeldMerge {
        let isSchema = MergeSchema.idBytes.withUnsafeBytes { Bytes.equal(key, $0) }
        let rules = isSchema ? nil : schema?.rules(for: key)
        return HeldMerge(store: store, key: key, rules: rules.map { .rules($0) } ?? .whole, control: control)
    }

    private func now(_ id: ValueID, _ key: UnsafeRawBufferPointer) throws -> SideValue? {
        if let known = held[id] { return known }
        return SideValue(try store.maps.entry(key, at: head))
    }

    private mutating func take(
        _ outcome: HeldMerge.Outcome, _ id: ValueID, newer: SideValue?, older: SideValue?, _ merge: HeldMerge, isRevert: Bool,
        now other: SideValue? = nil
    ) throws {
        var result = outcome.value(newer: newer, older: older)
        // A result equal to the present value keeps its spelling.
        let now = other ?? (isRevert ? newer : older)
        if case .computed? = result?.content, try merge.areSameDocument(result, now) { result = now }
        tell(outcome.records, of: id, merge)
        let decided = Self.isDecided(outcome, isRevert: isRevert)
        // In a revert, `older` is the earlier value. If something was decided, it was not restored.
        if isRevert ? decided : try decided && !merge.areSameDocument(result, newer) { superseded.insert(id) }
        held[id] = .some(result)
    }

    private mutating func tell(_ records: ConflictRecords, of id: ValueID, _ merge: HeldMerge) {
        conflicts += records.map { Conflict(id: id, version: nil, record: $0, isByRules: merge.rules.areRules) }
    }

    private static func isDecided(_ outcome: HeldMerge.Outcome, isRevert: Bool) -> Bool {
        // (If the head lacks a picked value, it gets all of it; its counters begin with the amounts that the version itself added.)
        outcome.records.contains {
            $0.kind != .bound && !(!isRevert && $0.kind == .deleteEdit && $0.older == nil && $0.result != nil)
        }
    }

    private mutating func forEachDifference(
        _ before: UInt32?, _ version: UInt32,
        _ body: (inout SwappedMerge, UnsafeRawBufferPointer, MapEntry?, MapEntry?) throws -> Void
    ) throws {
        func look(_ key: UnsafeRawBufferPointer, _ was: MapEntry?, _ became: MapEntry?) throws {
            try control.step()
            try Memory.check()
            // Storing equal bytes again is no change.
            if try store.equalStates.isSameValue(was, became, key) { return }
            try body(&self, key, was, became)
        }
        if let before {
            try store.forEachDifference(before, version, control) { try look($0.key, $0.before, $0.after) }
        } else {
            try MapNode.forEachDifference(nil, store.maps.map(version, control), look)
        }
    }

    /// Returns the changes to make at the head, in byte order of the ids.
    package func changes() throws -> [Value.Change] {
        try held.keys.sorted().compactMap { id -> Value.Change? in
            guard let result = held[id] else { return nil }
            return try id.bytes.withUnsafeBytes { key -> Value.Change? in
                let entry = try store.maps.entry(key, at: head), merge = merger(key)
                guard let result else { return entry == nil ? nil : .remove(id) }
                if try merge.areSame(result, SideValue(entry)) { return nil }
                switch result.content {
                case .stored(let stored): return .preserve(Value.Reference(id: id, version: store.versionID(stored.version)))
                case .computed(let bytes, _): return .update(id, data: bytes)
                }
            }
        }
    }

    /// The result, without the version and the changed ids.
    var report: Store.Reverted {
        var report = Store.Reverted()
        report.superseded = superseded.sorted()
        report.conflicts = conflicts.sorted { $0.id < $1.id }
        report.counts = counts
        report.versions = versions
        return report
    }
}
