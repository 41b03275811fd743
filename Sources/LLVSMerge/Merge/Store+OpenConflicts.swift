/// Finds conflicts that merges decided and that were not reviewed since, and resolves them.
extension Store {
    /// The choice that resolves a conflict.
    public enum Choice: UInt32, Sendable {
        /// The value of the more recent side.
        case newer = 1
        /// The value of the less recent side.
        case older
        /// The current value.
        case result
    }

    /// Returns the open conflicts at a version: those that merges by rules among its ancestors (and the version itself) decided, if the
    /// place still holds the merge's result, was not edited since, and no choice was made. Oldest merge first. A conflict that several
    /// merges decided is listed once. A conflict is not listed if bytes of its value that the merge needed are gone.
    /// - Throws: `.unknownVersion`, and the errors of `explain`.
    /// - Complexity: reads the metadata of all merges among the ancestors, and repeats the merges that recorded conflicts. If results still
    ///   prevail in a value, its later versions are read once for each 64 such merges, and the remaining places are checked in each of
    ///   them.
    public func openConflicts(
        at version: VersionID, _ query: ConflictQuery = ConflictQuery(), control: OperationControl = OperationControl()
    ) throws -> [Conflict] {
        try OpenConflicts(store: self).openConflicts(at: version, query, control: control)
    }

    /// Returns the changes that resolve a conflict at a version. They set the value with the choice at the conflict's place. If the
    /// choice is already there, they set a value that records the review. If the old part of a text is contained in the chosen text, they
    /// do both. Save them on that version.
    /// - Throws: `.invalidArgument` if the conflict names no merge, its kind does not allow choosing that side, or it lacks that side;
    ///   `.moved` if the place no longer holds the merge's result, or a side of a part of a text was already chosen; `.unknownVersion`.
    public func resolve(_ conflict: Conflict, with choice: Choice, at version: VersionID) throws -> [Value.Change] {
        try OpenConflicts(store: self).resolve(conflict, with: choice, at: version)
    }
}

/// Finds conflicts that are open at a version, and closes them.
struct OpenConflicts {
    let store: Store

    /// The prefix of ids that record that a user reviewed a conflict and accepted the result. A digest of the record follows.
    static let chosenPrefix = Array("__llvs_chosen/".utf8)

    private static func chosenID(_ conflict: Conflict) throws -> ValueID {
        let hash = ConflictRecord.digest([(id: conflict.id.bytes, record: conflict.record)])
        return ValueID(unchecked: chosenPrefix + Array(hash.utf8))
    }

    func openConflicts(
        at version: VersionID, _ query: Store.ConflictQuery = Store.ConflictQuery(), control: OperationControl = OperationControl()
    ) throws -> [Conflict] {
        try store.checkOpen()
        let paced = control.paced(.reading, doing: "Finding open conflicts at version \(version) of \(store.description)")
        try paced.look()
        let head = try store.requireOrdinal(version)
        // Other rules may find more conflicts than were recorded.
        let isByStore = query.arbiter.given == nil && query.arbiter.merger == nil
        var standing: [StandingConflict] = []
        for (merge, named) in try recordingMerges(head, paced) {
            if isByStore, let only = query.only, let named, !named.contains(only.bytes) { continue }
            var named = isByStore ? named : nil
            while true {
                do {
                    let items = try ConflictFinding(store: store).explained(merge, query, among: named, paced).items.filter(\.isByRules)
                    standing += try stillStanding(items, merge, at: head, paced)
                    break
                } catch let error as StoreError where error.code.isGone {
                    // Nobody can review a conflict in a value whose bytes are gone.
                    guard let id = error.valueID?.bytes, named?.remove(id) != nil else { break }
                }
            }
        }
        let edited = try EditedConflicts(store: store).edited(standing, upTo: head, paced)
        var open: [Conflict] = [], known: Set<ValueID> = []
        for (i, one) in standing.enumerated() where !edited.contains(i) {
            if known.insert(try Self.chosenID(one.conflict)).inserted { open.append(one.conflict) }
        }
        return open
    }

    /// Returns the merges with recorded conflicts among a version and its ancestors, oldest first, each with its ids if it names all.
    private func recordingMerges(_ head: UInt32, _ control: PacedControl) throws -> [(merge: UInt32, named: Set<[UInt8]>?)] {
        var found: [(merge: UInt32, named: Set<[UInt8]>?)] = [], stack = [head], seen: Set<UInt32> = [head]
        while let at = stack.popLast() {
            try control.step()
            let sides = store.lock.withRead { store.dag.predecessors(at) }
            if sides.count == 2, let mark = try store.version(store.versionID(at))?.metadata[MergeMarks.conflictsKey] {
                found.append((at, try MergeMarks.namedIDs(mark)))
            }
            for side in sides where seen.insert(side).inserted { stack.append(side) }
        }
        return store.lock.withRead { found.sorted { store.dag.isNewer($1.merge, $0.merge) } }
    }

    /// Returns the conflicts of a merge, in order of the ids, whose result still prevails at a version and about which no choice was made.
    private func stillStanding(_ conflicts: [Conflict], _ merge: UInt32, at head: UInt32, _ control: PacedControl) throws
        -> [StandingConflict]
    {
        let chosen = try conflicts.map { conflict -> UInt32? in
            try control.step()
            let entry = try Self.chosenID(conflict).bytes.withUnsafeBytes { try store.maps.entry($0, at: head) }
            return entry?.version == merge ? nil : entry?.version
        }
        // A mark from before this merge is about another conflict with the same record.
        let before = try store.walk(Ancestors(of: [merge], among: chosen.compactMap(\.self)), control.look)
        let left = zip(conflicts, chosen).filter { $1.map(before.contains) ?? true }.map(\.0)
        var found: [StandingConflict] = [], next = 0
        while next < left.count {
            let end = left[next...].firstIndex { $0.id != left[next].id } ?? left.count
            found += try standing(left[next..<end], merge, at: head, control)
            next = end
        }
        return found
    }

    /// Returns the conflicts of one id whose result prevails at a version.
    private func standing(_ conflicts: ArraySlice<Conflict>, _ merge: UInt32, at head: UInt32, _ control: PacedControl) throws
        -> [StandingConflict]
    {
        guard let id = conflicts.first?.id else { return [] }
        let rules = try valueRules(for: id, at: merge)
        return try id.bytes.withUnsafeBytes { key in
            let isUnchanged = try isSame(store.maps.entry(key, at: head), store.maps.entry(key, at: merge))
            let left = try withTables(key, at: merge, rules, control) { made, _ in
                if isUnchanged {
                    return try conflicts.filter { conflict in
                        try control.step()
                        let place = try DocumentPlace(of: conflict.record, at: conflict.place, in: made, made: made)
                        return try conflict.isPart ? place.holds(conflict.record, isPart: true) : !place.isLost
                    }
                }
                return try withTables(key, at: head, rules, control) { now, _ in
                    try conflicts.filter {
                        try control.step(); return try holds($0, now, made: made)
                    }
                }
            }
            return left.map { StandingConflict(conflict: $0, merge: merge, isUnchanged: isUnchanged) }
        }
    }

    /// Returns the rules for an id that a merge used.
    func valueRules(for id: ValueID, at version: UInt32) throws -> ValueRules {
        guard let entry = try store.rules.schemaEntry(at: version), let schema = try store.rules.countingSchema(entry) else {
            return ValueRules()
        }
        return id.bytes.withUnsafeBytes { schema.rules(for: $0) } ?? ValueRules()
    }

    /// Calls with the value of an id at a version, and its bytes.
    private func withTables<R>(
        _ key: UnsafeRawBufferPointer, at version: UInt32, _ rules: ValueRules, _ control: PacedControl = .none,
        _ body: (DocumentTables, UnsafeRawBufferPointer?) throws -> R
    ) throws -> R {
        Work.documents.count()
        let check = { try control.step(0, bytes: OperationControl.bytesPerCheck) }
        func found(_ bytes: UnsafeRawBufferPointer?) throws -> R {
            let text = try bytes.map { try DocumentMerge(rules: rules, check: check).parsed($0) }
            return try body(DocumentTables(text, rules, work: DocumentControl(check)), bytes)
        }
        guard let entry = try store.maps.entry(key, at: version) else { return try found(nil) }
        return try store.records.withBody(store.place(of: entry.version), entry, id: key, stored: store.versionID(entry.version)) {
            try found($0)
        }
    }

    /// Replaces the results in the records of a merge with the current values, for ids whose values are not the result of the rules.
    func tellStanding(_ conflicts: inout [Conflict], of ids: Set<ValueID>, at merge: UInt32, _ control: PacedControl) throws {
        var next = 0
        while next < conflicts.count {
            let id = conflicts[next].id, from = next
            while next < conflicts.count, conflicts[next].id == id { next += 1 }
            guard ids.contains(id) else { continue }
            let rules = try valueRules(for: id, at: merge)
            try id.bytes.withUnsafeBytes { key in
                try withTables(key, at: merge, rules, control) { now, _ in
                    for i in from..<next where conflicts[i].isByRules {
                        try control.step()
                        let record = conflicts[i].record
                        guard !conflicts[i].isPart, record.kind != .moveMove else { continue }
                        // (The place of an element without a key is searched for each of its possible values.)
                        let found = try [record.result, record.newer, record.older].compactMap(\.self).lazy.map {
                            try DocumentPlace(record.path, in: now, expected: $0).json()
                        }.first { $0 != nil }
                        conflicts[i].record = ConflictRecord(
                            kind: record.kind, path: record.path, base: record.base, newer: record.newer, older: record.older,
                            result: found ?? nil, rule: record.rule)
                    }
                }
            }
        }
    }

    /// Returns whether the place still holds the merge's result.
    private func holds(_ conflict: Conflict, _ now: DocumentTables, made: DocumentTables) throws -> Bool {
        try DocumentPlace(of: conflict.record, at: conflict.place, in: now, made: made)
            .holds(conflict.record, isPart: conflict.isPart)
    }

    func resolve(_ conflict: Conflict, with choice: Store.Choice, at version: VersionID) throws -> [Value.Change] {
        try store.checkOpen()
        guard let made = conflict.version else {
            throw StoreError(
                .invalidArgument,
                "The conflict of \"\(conflict.id)\" names no merge version, so nothing was decided yet. Merge first, or save the "
                    + "wanted value.",
                valueID: conflict.id)
        }
        let head = try store.requireOrdinal(version), merge = try store.requireOrdinal(made), record = conflict.record
        let rules = try valueRules(for: conflict.id, at: merge), places = try placed(conflict, merge)
        return try conflict.id.bytes.withUnsafeBytes { key in
            try withTables(key, at: merge, rules) { made, _ in
                let standing = try withTables(key, at: head, rules, .none) { now, _ in try places.first { try holds($0, now, made: made) } }
                // (A part of a text may be contained in the chosen text.)
                guard let conflict = standing, try choice == .result || !conflict.isPart || !isMarked(conflict, merge, at: head) else {
                    throw StoreError(
                        .moved,
                        "The conflict of \"\(conflict.id)\" is closed at version \(version): the result of the merge prevails no longer. "
                            + "Read the open conflicts again.", valueID: conflict.id, versionID: version.description)
                }
                let chosen: [UInt8]? =
                    switch choice {
                    case .newer: record.newer
                    case .older: record.older
                    case .result: record.result
                    }
                // (A counter contains both sides' increments: a side that two devices choose would be added twice.)
                let isCounted = record.kind == .bound || record.kind == .deleteEdit && rules.isCounter(record.rule)
                let hasSides = record.kind != .moveMove && !isCounted
                let mark = Value.Change.update(try Self.chosenID(conflict), data: record.json(id: conflict.id.bytes))
                if try choice == .result || (hasSides && DocumentPlace.areSame(chosen, record.result)) { return [mark] }
                if !hasSides {
                    throw StoreError(
                        .invalidArgument,
                        isCounted
                            ? "A counter is decided by saving the wanted number, or by removing it; or choose the result."
                            : "A conflict of places in a list is decided by saving the list in the wanted order; or choose the "
                                + "result.",
                        valueID: conflict.id)
                }
                if record.isWhole, !conflict.isPart, let bytes = try chosen.flatMap({ try bytes($0, key, of: merge, rules) }) {
                    return [.update(conflict.id, data: bytes)]
                }
                let data = try changed(conflict, chosen, key, at: head, rules, made)
                guard let data else { return [.remove(conflict.id)] }
                let change = Value.Change.update(conflict.id, data: data)
                guard conflict.isPart else { return [change] }
                // The old part may be contained in the chosen text, so the text alone does not show that a choice was made.
                let text = try data.withUnsafeBytes { try DocumentMerge(rules: rules).parsed($0) }
                let tables = DocumentTables(text, rules)
                guard try holds(conflict, tables, made: made) else { return [change] }
                // The mark would also apply to another part with the same record.
                if try places.contains(where: { try $0.place != conflict.place && holds($0, tables, made: made) }) {
                    throw unclear(conflict)
                }
                return [change, mark]
            }
        }
    }

    /// Returns whether a choice was made about a conflict of a merge. (A mark from before the merge is about another conflict with the
    /// same record.)
    private func isMarked(_ conflict: Conflict, _ merge: UInt32, at head: UInt32) throws -> Bool {
        guard let mark = try Self.chosenID(conflict).bytes.withUnsafeBytes({ try store.maps.entry($0, at: head)?.version }), mark != merge
        else {
            return false
        }
        return !store.walk(Ancestors(of: [merge], among: [mark])).contains(mark)
    }

    /// Returns the conflict with its place in the merge's result, if its path has elements: their indexes may differ from those in the
    /// base. Two parts of one text may have the same record.
    private func placed(_ conflict: Conflict, _ merge: UInt32) throws -> [Conflict] {
        let record = conflict.record
        let isSought = record.isOfText || record.kind == .contested || record.path.contains(UInt8(ascii: "{"))
        guard isSought, conflict.place == nil else { return [conflict] }
        let found = try ConflictFinding(store: store).explained(merge, Store.ConflictQuery(only: conflict.id), .none).items.filter {
            $0.record == record
        }
        return found.isEmpty ? [conflict] : found
    }

    /// Returns the value with something else at the place of a conflict; nil if nothing is left.
    private func changed(
        _ conflict: Conflict, _ chosen: [UInt8]?, _ key: UnsafeRawBufferPointer, at head: UInt32, _ rules: ValueRules,
        _ made: DocumentTables
    ) throws -> [UInt8]? {
        let record = conflict.record
        if record.isWhole, chosen == nil, !conflict.isPart { return nil }
        return try withTables(key, at: head, rules) { tables, _ in
            let place = try DocumentPlace(of: record, at: conflict.place, in: tables, made: made, other: chosen)
            var whole: [UInt8]?
            if conflict.isPart {
                guard let text = try chosen.flatMap(DocumentPlace.string) else {
                    throw StoreError(
                        .invalidArgument,
                        "The sides of the conflict in a text of \"\(conflict.id)\" are JSON strings; pass the conflict as it was reported.",
                        valueID: conflict.id)
                }
                guard let part = try record.result.flatMap({ try place.part($0) }) else { throw unclear(conflict) }
                whole = try place.text(with: text, inPlaceOf: part)
                // A whole text is not JSON.
                if record.isWhole, rules.top?.kind == .text { return whole }
            }
            guard let bytes = try place.replaced(isAbsent: chosen == nil, text: whole) else { throw unclear(conflict) }
            return bytes
        }
    }

    private func unclear(_ conflict: Conflict) -> StoreError {
        StoreError(
            .invalidArgument,
            "The place of the conflict is not found once in \"\(conflict.id)\". Save the wanted value, or choose the result.",
            valueID: conflict.id)
    }

    /// Returns the bytes of a merge's side that records show as this JSON.
    private func bytes(_ json: [UInt8], _ key: UnsafeRawBufferPointer, of merge: UInt32, _ rules: ValueRules) throws -> [UInt8]? {
        let reader = DocumentMerge(rules: rules)
        for side in store.lock.withRead({ store.dag.predecessors(merge) }) {
            guard let entry = try store.maps.entry(key, at: side) else { continue }
            let found = try store.records.withBody(store.place(of: entry.version), entry, id: key, stored: store.versionID(entry.version)) {
                bytes in
                try DocumentPlace.areSame(reader.json(bytes), json) ? Array(bytes) : nil
            }
            if let found { return found }
        }
        return nil
    }
}

extension ConflictRecord {
    /// Whether it is about the value as a whole.
    var isWhole: Bool { path == Array("[]".utf8) }
}
