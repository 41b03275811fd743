import LLVS

extension StoreCoordinator {
    /// The objects of a model, by id without the prefix. Its rules for merging are added to those of the store.
    /// - Throws: `.invalidArgument` when the model cannot be one: its prefix is none, or a rule is not for the type of its member; and what
    ///   `register` throws. Rules that the store has otherwise are no error (`ModelCollection.contradictions`).
    public func collection<Model: StorableModel>(_ model: Model.Type) throws -> ModelCollection<Model> {
        try ModelCollection(self)
    }
}

/// The objects of a model at the current version of a coordinator, by id without the prefix.
///
///     let people = try coordinator.collection(Contact.self)
///     try people.save(Contact(name: "Ann"), id: "1")          // saved at once, as one version
///     try people.edit("1") { $0.tags.insert("friend") }       // saves what the closure changed, and nothing else
///     let ann = try people["1"]
///     try people.remove("1")
///
/// What the model does not know, a newer version of the app's, is kept in any case. Each read is at the version that is current then;
/// `at(_:)` stays where it is. Safe from all threads; what is said of `StoreCoordinator`'s calls holds for these as well.
public struct ModelCollection<Model: StorableModel>: Sendable {
    /// Whose values they are.
    public let coordinator: StoreCoordinator
    let rules: StoreRules

    /// The rules of the model that the store has others for, when they were last compared: at first, and at saves where the store has
    /// other rules by then. Those of the store stand.
    public var contradictions: [ModelContradiction] { rules.known?.contradictions ?? [] }
    /// Why the rules that prevail in the store do not count, when they were last compared; nil when they do.
    public var rulesProblem: String? { rules.known?.problem }

    init(_ coordinator: StoreCoordinator) throws {
        self.coordinator = coordinator
        rules = try StoreRules(of: Model.self)
        _ = try register()
    }

    /// Adds the rules of the model to those of the store, where some are missing; true when that made a version.
    private func register() throws -> Bool {
        let known = try rules.at(coordinator.currentVersion, in: coordinator.store)
        guard known.isChanged, !coordinator.store.isReadOnly else { return false }
        return try coordinator.register(rules.own).version != nil
    }

    // MARK: Reading

    /// The objects at a version; nil: the current one, as it is now.
    public func at(_ version: VersionID? = nil) -> ModelsAtVersion<Model> {
        ModelsAtVersion(store: coordinator.store, version: version ?? coordinator.currentVersion, rules: rules)
    }

    /// The object under an id; nil when there is none. Throws `ModelDecodingError` when it cannot be read.
    public subscript(id: String) -> Model? {
        get throws { try at()[id] }
    }

    /// Whether there is a value under an id, whether it can be read or not.
    public func contains(_ id: String) throws -> Bool { try at().contains(id) }

    /// How many values there are, also such as cannot be read.
    public func count() throws -> Int { try at().count() }

    /// All ids and objects, in the order of the ids. Throws `ModelDecodingError` at one that cannot be read; `readAll` goes on.
    public func all() throws -> [(id: String, object: Model)] { try at().all() }

    /// All objects that can be read, and why the others cannot: for lists that one bad value must not empty.
    public func readAll() throws -> ModelsAtVersion<Model>.Reading { try at().readAll() }

    /// The values that cannot be read as objects of the model, with why. Reads them all.
    public func problems() throws -> [ModelDecodingError] { try at().problems() }

    /// The ids, in order.
    public func ids() throws -> [String] { try at().ids() }

    // MARK: Saving

    /// Saves an object as a version of its own: all members that the model knows are to be as the object says.
    /// - Parameters:
    ///   - expected: the version that the save is to stand on; when another is current by now, nothing is stored, and `.moved` thrown, also
    ///     when there is nothing to save.
    ///   - group: saves of one device, one after the other, that name one group are undone together.
    ///   - description: what the save did, for a person who undoes it.
    /// - Returns: the version; nil when that changes nothing.
    /// - Throws: `ModelDecodingError` when what is there cannot be read (remove it first, if it is to go), `.moved` when another version
    ///   than `expected` is current, and what `StoreCoordinator.save` throws; nothing is saved then.
    @discardableResult
    public func save(
        _ object: Model, id: String, metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil,
        description: String? = nil
    ) throws -> Version? {
        try save([id: object], metadata: metadata, expected: expected, group: group, description: description)
    }

    /// Saves some objects and removes others, as one version. As above.
    @discardableResult
    public func save(
        _ objects: [String: Model], removing: [String] = [], metadata: Metadata = Metadata(), expected: VersionID? = nil,
        group: String? = nil, description: String? = nil
    ) throws -> Version? {
        try write(objects.mapValues { ($0, .nothing) }, removing, About(metadata, group, description), expected)
    }

    /// Removes an object; nil when there is none.
    @discardableResult
    public func remove(
        _ id: String, metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil, description: String? = nil
    ) throws -> Version? {
        guard try contains(id) else { return try write([:], [], About(Metadata(), nil, nil), expected) }
        return try write([:], [id], About(metadata, group, description), expected)
    }

    /// Removes all objects, as one version, also what cannot be read; nil when there are none.
    @discardableResult
    public func removeAll(metadata: Metadata = Metadata(), group: String? = nil, description: String? = nil) throws -> Version? {
        try write([:], try ids(), About(metadata, group, description), nil)
    }

    /// Gives an object to be changed, and saves what the closure changed. If others changed the object meanwhile, both edits are merged by
    /// the rules at once, as if two devices had made them, and what both changed is an open conflict.
    /// - Parameters:
    ///   - initial: the object to begin with where there is none. Where there is one when it is saved, that one is changed as the closure
    ///     changed this.
    ///   - version: where the object is read, the current version unless given: that which a form was filled in from, so that what came
    ///     since is kept. If the current version does not descend from it, what the closure changed is put into what is there now.
    ///   - group: saves of one device, one after the other, that name one group are undone together.
    ///   - description: what the save did, for a person who undoes it.
    /// - Returns: the version; nil when nothing was changed.
    /// - Throws: `.notFound` when there is no object and no `initial`, `.unknownVersion`; what the closure throws, and then nothing is
    ///   saved; what `save` throws.
    @discardableResult
    public func edit(
        _ id: String, else initial: Model? = nil, at version: VersionID? = nil, metadata: Metadata = Metadata(), group: String? = nil,
        description: String? = nil, _ change: (inout Model) throws -> Void
    ) throws -> Version? {
        let valueID = try valueID(id), version = version ?? coordinator.currentVersion
        let found = try coordinator.value(valueID, at: .version(version))
        guard var object = try found.map({ try at(version).object($0) }) ?? initial else {
            throw StoreError(.notFound, "There is no object \"\(id)\" to edit; give one to begin with.", valueID: valueID)
        }
        let written = try ModelCoding.encoded(object, valueID)
        try change(&object)
        let about = About(metadata, group, description)
        guard let found else { return try write([id: (object, .begun(written))], [], about, nil) }
        let before = Before.read(found, written: written)
        let known = try rules.at(coordinator.currentVersion, in: coordinator.store)
        let bytes = try splice(object, before, found, valueID, known.merging)
        if bytes == nil, about.own.isEmpty { return nil }
        if known.isChanged { _ = try register() }
        do {
            return try coordinator.save(
                bytes.map { [.update(valueID, data: $0)] } ?? [], metadata: about.all, expected: version, merges: true)
        } catch let error as StoreError where error.code == .moved {
            return try write([id: (object, before)], [], about, nil)
        }
    }

    /// What stands beside the changes of a save.
    private struct About {
        /// What was given.
        let own: Metadata
        /// With the marks that an undo looks for.
        var all: Metadata

        init(_ own: Metadata, _ group: String?, _ description: String?) {
            (self.own, all) = (own, own)
            for (key, text) in [("__llvs_group", group), ("__llvs_description", description)] {
                if let text { all[key] = Array(JSONText.string(text).utf8) }
            }
        }
    }

    /// What an object is compared with.
    private enum Before {
        /// What is there when it is saved: it says what all members are to be.
        case nothing
        /// What was read, and it written again.
        case read(Value, written: EncodedNode)
        /// What was given to begin with where there was nothing, written.
        case begun(EncodedNode)
    }

    /// Splices each object into what is there, and saves; again as long as the current version moves meanwhile.
    private func write(
        _ objects: [String: (object: Model, before: Before)], _ removing: [String], _ about: About, _ expected: VersionID?
    ) throws -> Version? {
        while true {
            let base = coordinator.currentVersion, known = try rules.at(base, in: coordinator.store)
            var changes: [Value.Change] = []
            for (id, given) in objects {
                let valueID = try valueID(id), there = try coordinator.value(valueID, at: .version(base))
                guard let bytes = try splice(given.object, given.before, there, valueID, known.merging) else { continue }
                changes.append(.update(valueID, data: bytes))
            }
            changes += try removing.map { .remove(try valueID($0)) }
            // (That another version is current is told also where there is nothing to save.)
            if changes.isEmpty && about.own.isEmpty && (expected ?? base) == base { return nil }
            if known.isChanged, expected == nil, try register() { continue }
            do {
                return try coordinator.save(changes, metadata: about.all, expected: expected ?? base)
            } catch let error as StoreError where error.code == .moved && expected == nil { continue }
        }
    }

    /// What to save: what the object says where it differs from what was read, and for the rest what is there. nil: nothing.
    private func splice(_ object: Model, _ before: Before, _ there: Value?, _ id: ValueID, _ rules: MergeSchema) throws -> [UInt8]? {
        let earlier: EncodedNode? =
            switch before {
            case .read(_, let written), .begun(let written): written
            case .nothing: try there.map { try ModelCoding.encoded($0.model(Model.self, rules), id) }
            }
        let object = try ModelCoding.encoded(object, id), settled = earlier.map { object.settled(with: $0) } ?? object
        var there = there
        if let earlier, settled.isWritten(as: earlier) {
            // (What was given to begin with is saved unchanged as well, unless something is there by now.)
            if case .begun = before, there == nil { return settled.bytes }
            return nil
        }
        // What was read is gone: an edit beats a removal, and keeps what the model does not know.
        if case .read(let value, _) = before, there == nil { there = value }
        guard let there else { return settled.bytes }
        // (What was read can be lifted; what came since perhaps not.)
        let older: [UInt8]
        do {
            older = try ModelCoding.lifted(Model.self, there.data)
        } catch { throw ModelCoding.refusal(Model.self, there.data, id, there.storedVersion, error) }
        let spellings = Spellings(older)
        let base = earlier.map { (spellings?.apply(to: $0) ?? $0).bytes }, written = (spellings?.apply(to: settled) ?? settled).bytes
        let merged = try base.withRawBytes { base in
            try written.withUnsafeBytes { written in
                try older.withUnsafeBytes { there in
                    try DocumentMerge(schema: rules, id: id.bytes).saving.merge(base: base, newer: written, older: there)
                }
            }
        }
        if merged.records.contains(where: { $0.kind == .notJSON }) {
            throw ModelDecodingError(
                id: id, version: there.storedVersion, bytes: there.data, model: "\(Model.self)", member: "",
                reason: "it goes beyond what can be merged (docs/merging.md)")
        }
        return merged.bytes == there.data ? nil : merged.bytes
    }

    func valueID(_ id: String) throws -> ValueID { try ValueID(Model.idPrefix + id) }
}

extension [UInt8]? {
    /// Calls with the bytes, or with nil.
    fileprivate func withRawBytes<R>(_ body: (UnsafeRawBufferPointer?) throws -> R) rethrows -> R {
        guard let self else { return try body(nil) }
        return try self.withUnsafeBytes { try body($0) }
    }
}
