import LLVS

extension StoreCoordinator {
    /// The objects of a model, by id without the prefix. Its rules for merging are added to those of the store.
    /// - Throws: what `register` throws; rules that the store has otherwise are no error (`ModelCollection.contradictions`).
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
    /// The rules of the model that the store had others for, when the collection was made. Those of the store stand.
    public let contradictions: [ConflictRecord]

    init(_ coordinator: StoreCoordinator) throws {
        self.coordinator = coordinator
        if coordinator.store.isReadOnly {
            contradictions = try coordinator.store.schema(at: coordinator.currentVersion, adding: Model.mergeRules).contradictions
        } else {
            contradictions = try coordinator.register(Model.mergeRules).schema.contradictions
        }
    }

    // MARK: Reading

    /// The objects at a version; nil: the current one, as it is now.
    public func at(_ version: VersionID? = nil) -> ModelsAtVersion<Model> {
        ModelsAtVersion(store: coordinator.store, version: version ?? coordinator.currentVersion)
    }

    /// The object under an id; nil when there is none.
    public subscript(id: String) -> Model? {
        get throws { try at()[id] }
    }

    /// All ids and objects, in the order of the ids.
    public func all() throws -> [(id: String, object: Model)] { try at().all() }

    /// The ids, in order.
    public func ids() throws -> [String] { try at().ids() }

    // MARK: Saving

    /// Saves an object as a version of its own: all members that the model knows are to be as the object says.
    /// - Returns: the version; nil when that changes nothing.
    /// - Throws: `ModelDecodingError` when what is there cannot be read (remove it first, if it is to go), and what
    ///   `StoreCoordinator.save` throws; nothing is saved then.
    @discardableResult
    public func save(_ object: Model, id: String, metadata: Metadata = Metadata()) throws -> Version? {
        try save([id: object], metadata: metadata)
    }

    /// Saves some objects and removes others, as one version.
    @discardableResult
    public func save(_ objects: [String: Model], removing: [String] = [], metadata: Metadata = Metadata()) throws -> Version? {
        try write(objects.mapValues { ($0, nil) }, removing, metadata)
    }

    /// Removes an object; nil when there is none.
    @discardableResult
    public func remove(_ id: String, metadata: Metadata = Metadata()) throws -> Version? {
        let valueID = try valueID(id)
        guard try coordinator.value(valueID) != nil else { return nil }
        return try write([:], [id], metadata)
    }

    /// Gives an object to be changed, and saves what the closure changed; what others changed meanwhile is kept, and merged by the rules.
    /// - Parameter initial: the object to begin with where there is none.
    /// - Returns: the version; nil when nothing was changed.
    /// - Throws: `.notFound` when there is no object and no `initial`; what the closure throws, and then nothing is saved; what `save`
    ///   throws.
    @discardableResult
    public func edit(
        _ id: String, else initial: Model? = nil, metadata: Metadata = Metadata(), _ change: (inout Model) throws -> Void
    ) throws -> Version? {
        let valueID = try valueID(id), found = try coordinator.value(valueID)
        guard var object = try found.map({ try read($0) }) ?? initial else {
            throw StoreError(.notFound, "There is no object \"\(id)\" to edit; give one to begin with.", valueID: valueID)
        }
        let before = try found.map { _ in try ModelCoding.write(object, valueID) }
        try change(&object)
        return try write([id: (object, before)], [], metadata)
    }

    /// Splices each object into what is there, and saves; again as long as the current version moves meanwhile.
    /// - Parameter objects: each with what was read of it, written again; nil: what is there now.
    private func write(
        _ objects: [String: (object: Model, before: [UInt8]?)], _ removing: [String], _ metadata: Metadata
    ) throws -> Version? {
        while true {
            let base = coordinator.currentVersion
            var changes: [Value.Change] = []
            for (id, given) in objects {
                let valueID = try valueID(id), there = try coordinator.value(valueID, at: .version(base))
                guard let bytes = try splice(given.object, given.before, there, valueID, base) else { continue }
                changes.append(.update(valueID, data: bytes))
            }
            changes += try removing.map { .remove(try valueID($0)) }
            if changes.isEmpty && metadata.isEmpty { return nil }
            do {
                return try coordinator.save(changes, metadata: metadata, expected: base)
            } catch let error as StoreError where error.code == .moved { continue }
        }
    }

    /// What to save: what the object says where it differs from what was read, and for the rest what is there. nil: nothing.
    private func splice(_ object: Model, _ before: [UInt8]?, _ there: Value?, _ id: ValueID, _ base: VersionID) throws -> [UInt8]? {
        let written = try ModelCoding.write(object, id)
        guard let there else { return before == written ? nil : written }
        let before = try before ?? ModelCoding.write(read(there), id)
        if before == written { return nil }
        let rules = try coordinator.store.schema(at: base, adding: Model.mergeRules).rules ?? Model.mergeRules
        let schema = try rules.withUnsafeBytes { try MergeSchema($0, partly: true) }
        // (It was read, so it can be lifted.)
        let older = try ModelCoding.lifted(Model.self, there.data)
        let merged = try before.withUnsafeBytes { before in
            try written.withUnsafeBytes { written in
                try older.withUnsafeBytes { there in
                    try DocumentMerge(schema: schema, id: id.bytes).saving.merge(base: before, newer: written, older: there)
                }
            }
        }
        if merged.records.contains(where: { $0.kind == .notJSON }) {
            throw ModelDecodingError(
                id: id, version: there.storedVersion, bytes: there.data, model: "\(Model.self)",
                reason: "it goes beyond what can be merged (docs/merging.md)")
        }
        return merged.bytes == there.data ? nil : merged.bytes
    }

    private func valueID(_ id: String) throws -> ValueID { try ValueID(Model.idPrefix + id) }
    private func read(_ value: Value) throws -> Model { try ModelCoding.read(Model.self, value.data, value.id, value.storedVersion) }
}

/// The objects of a model at one version, by id without the prefix.
public struct ModelsAtVersion<Model: StorableModel>: Sendable {
    /// Where they are.
    public let store: Store
    /// The version that they are read at.
    public let version: VersionID

    /// The object under an id; nil when there is none.
    public subscript(id: String) -> Model? {
        get throws {
            try store.value(ValueID(Model.idPrefix + id), at: version).map {
                try ModelCoding.read(Model.self, $0.data, $0.id, $0.storedVersion)
            }
        }
    }

    /// The ids, in order.
    public func ids() throws -> [String] {
        var found: [String] = []
        try pages { try store.references(at: version, in: range, after: $0, limit: 1_000).map(\.id) } each: { found.append(plain($0)) }
        return found
    }

    /// All ids and objects, in the order of the ids. Throws `ModelDecodingError` at one that cannot be read.
    public func all() throws -> [(id: String, object: Model)] {
        var found: [(id: String, object: Model)] = []
        for value in try values() {
            found.append((plain(value.id), try ModelCoding.read(Model.self, value.data, value.id, value.storedVersion)))
        }
        return found
    }

    /// The values that cannot be read as objects of the model, with why. Reads them all.
    public func problems() throws -> [ModelDecodingError] {
        try values().compactMap { value in
            do {
                _ = try ModelCoding.read(Model.self, value.data, value.id, value.storedVersion)
                return nil
            } catch let error as ModelDecodingError { return error }
        }
    }

    private var range: IDRange { .prefix(Array(Model.idPrefix.utf8)) }
    private func plain(_ id: ValueID) -> String { String(decoding: id.bytes.dropFirst(Model.idPrefix.utf8.count), as: UTF8.self) }

    private func values() throws -> [Value] {
        var found: [Value] = []
        var last: ValueID?
        while true {
            let page = try store.values(at: version, in: range, after: last, limit: 100)
            found += page
            guard page.count == 100 else { return found }
            last = page.last?.id
        }
    }

    private func pages(_ read: (ValueID?) throws -> [ValueID], each: (ValueID) -> Void) throws {
        var last: ValueID?
        while true {
            let page = try read(last)
            page.forEach(each)
            guard page.count == 1_000 else { return }
            last = page.last
        }
    }
}
