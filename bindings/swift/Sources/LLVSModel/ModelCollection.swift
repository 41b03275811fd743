import LLVS

extension StoreCoordinator {
    /// Returns the objects of a model, by id without the prefix. Adds the model's rules for merging to those of the store.
    /// - Throws: `.invalidArgument` if the model is invalid: its prefix is not a valid id, or a rule does not suit the type of its member;
    ///   and what `register` throws. Rules that differ in the store are not an error (`ModelCollection.contradictions`).
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
/// Members that the model does not know, such as those of a newer app version, are always kept. Each read is at the version that is current
/// at that moment; `at(_:)` reads at one fixed version. Safe from all threads; the calls behave as those of `StoreCoordinator`.
public struct ModelCollection<Model: StorableModel>: Sendable {
    /// The coordinator of the values.
    public let coordinator: StoreCoordinator
    let rules: StoreRules

    /// The rules of the model that contradict those of the store; the store's rules win. They are compared when the collection is created,
    /// and at each save after a change of the store's rules.
    public var contradictions: [ModelContradiction] { rules.known?.contradictions ?? [] }
    /// The reason why the current rules of the store are invalid, as of the last comparison; nil if they are valid.
    public var rulesProblem: String? { rules.known?.problem }

    init(_ coordinator: StoreCoordinator) throws {
        self.coordinator = coordinator
        rules = try StoreRules(of: Model.self)
        _ = try register()
    }

    /// Adds missing rules of the model to those of the store; returns true if that made a version.
    private func register() throws -> Bool {
        let known = try rules.at(coordinator.currentVersion, in: coordinator.store)
        guard known.isChanged, !coordinator.store.isReadOnly else { return false }
        return try coordinator.register(rules.own).version != nil
    }

    // MARK: Reading

    /// Returns the objects at a version; nil: at the version that is current now.
    public func at(_ version: VersionID? = nil) -> ModelsAtVersion<Model> {
        ModelsAtVersion(store: coordinator.store, version: version ?? coordinator.currentVersion, rules: rules)
    }

    /// The object with an id; nil if there is none. Throws `ModelDecodingError` if it cannot be read. In async functions: `object(_:)`.
    @available(*, noasync, message: "It waits for the disk. Await object(_:).")
    public subscript(id: String) -> Model? {
        get throws { try at()[id] }
    }

    /// Returns whether there is a value with an id, readable or not.
    public func contains(_ id: String) throws -> Bool { try at().contains(id) }

    /// The number of values, readable or not.
    public func count() throws -> Int { try at().count() }

    /// Returns all ids and objects, in the order of the ids. Throws `ModelDecodingError` at the first that cannot be read; `readAll` skips
    /// it.
    public func all() throws -> [(id: String, object: Model)] { try at().all() }

    /// Returns all objects that can be read, and the errors of the others: for lists that one bad value must not empty.
    public func readAll() throws -> ModelsAtVersion<Model>.Reading { try at().readAll() }

    /// Returns the errors of the values that cannot be read as objects of the model. Reads all values.
    public func problems() throws -> [ModelDecodingError] { try at().problems() }

    /// The ids, in order.
    public func ids() throws -> [String] { try at().ids() }

    // MARK: Saving

    /// Saves an object as a version of its own: sets all members that the model knows.
    /// - Parameters:
    ///   - object: the object.
    ///   - id: its id without the prefix.
    ///   - metadata: metadata of the version.
    ///   - expected: the version that must be current; if another one is, nothing is stored and `.moved` is thrown, even if there is
    ///     nothing to save.
    ///   - group: saves of one device, one after the other, that name one group are undone together.
    ///   - description: what the save did, for a person who undoes it.
    /// - Returns: the version; nil if nothing changed.
    /// - Throws: `ModelDecodingError` if the stored value cannot be read (to replace it, remove it first), `.moved` if another version
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

    /// Removes an object; returns nil if there is none.
    @discardableResult
    public func remove(
        _ id: String, metadata: Metadata = Metadata(), expected: VersionID? = nil, group: String? = nil, description: String? = nil
    ) throws -> Version? {
        guard try contains(id) else { return try write([:], [], About(Metadata(), nil, nil), expected) }
        return try write([:], [id], About(metadata, group, description), expected)
    }

    /// Removes all objects, as one version, also values that cannot be read; returns nil if there are none.
    @discardableResult
    public func removeAll(metadata: Metadata = Metadata(), group: String? = nil, description: String? = nil) throws -> Version? {
        try write([:], try ids(), About(metadata, group, description), nil)
    }

    /// Passes an object to the closure, and saves what the closure changed. If others changed the object meanwhile, both edits are merged
    /// by the rules at once, as if two devices had made them. Members that both changed are open conflicts.
    /// - Parameters:
    ///   - id: the id without the prefix.
    ///   - initial: the object to begin with if there is none. If there is one when it is saved, the closure's changes are applied to that.
    ///   - version: the version at which the object is read; by default the current one. Pass the version from which a form on the screen
    ///     was filled, so that later changes are kept. If the current version does not descend from it, the closure's changes are applied
    ///     to the current object.
    ///   - metadata: metadata of the version.
    ///   - group: saves of one device, one after the other, that name one group are undone together.
    ///   - description: what the save did, for a person who undoes it.
    ///   - change: changes the object.
    /// - Returns: the version; nil if nothing was changed.
    /// - Throws: `.notFound` if there is no object and no `initial`, `.unknownVersion`; what the closure throws, and then nothing is saved;
    ///   what `save` throws.
    @discardableResult
    public func edit(
        _ id: String, default initial: Model? = nil, at version: VersionID? = nil, metadata: Metadata = Metadata(), group: String? = nil,
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

    /// The metadata of a save.
    private struct About {
        /// The given metadata.
        let own: Metadata
        /// The given metadata, and the entries that an undo uses.
        var all: Metadata

        init(_ own: Metadata, _ group: String?, _ description: String?) {
            (self.own, all) = (own, own)
            for (key, text) in [("__llvs_group", group), ("__llvs_description", description)] {
                if let text { all[key] = Array(JSONText.string(text).utf8) }
            }
        }
    }

    /// The earlier object with which a save compares an object.
    private enum Before {
        /// The stored object at the time of the save: all members are set.
        case nothing
        /// The object that was read, and its encoding.
        case read(Value, written: EncodedNode)
        /// The encoding of the given initial object.
        case begun(EncodedNode)
    }

    /// Merges each object's changes into the stored value, and saves; retries if the current version moves meanwhile.
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
            // (That another version is current is reported even if there is nothing to save.)
            if changes.isEmpty && about.own.isEmpty && (expected ?? base) == base { return nil }
            if known.isChanged, expected == nil, try register() { continue }
            do {
                return try coordinator.save(changes, metadata: about.all, expected: expected ?? base)
            } catch let error as StoreError where error.code == .moved && expected == nil { continue }
        }
    }

    /// Returns the bytes to save: the members of the object that differ from those read, and otherwise the stored members. nil: nothing to
    /// save.
    private func splice(_ object: Model, _ before: Before, _ there: Value?, _ id: ValueID, _ rules: MergeSchema) throws -> [UInt8]? {
        let earlier: EncodedNode? =
            switch before {
            case .read(_, let written), .begun(let written): written
            case .nothing: try there.map { try ModelCoding.encoded($0.model(Model.self, rules), id) }
            }
        let object = try ModelCoding.encoded(object, id), settled = earlier.map { object.settled(with: $0) } ?? object
        var there = there
        if let earlier, settled.isWritten(as: earlier) {
            // (A given initial object is saved even if unchanged, unless a value exists by now.)
            if case .begun = before, there == nil { return settled.bytes }
            return nil
        }
        // The value that was read was removed: an edit beats a removal, and keeps members that the model does not know.
        if case .read(let value, _) = before, there == nil { there = value }
        guard let there else { return settled.bytes }
        // (The value that was read can be upgraded; a later one perhaps not.)
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
    /// Calls the closure with the bytes, or with nil.
    fileprivate func withRawBytes<R>(_ body: (UnsafeRawBufferPointer?) throws -> R) rethrows -> R {
        guard let self else { return try body(nil) }
        return try self.withUnsafeBytes { try body($0) }
    }
}
