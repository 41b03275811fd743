/// The rules of a store.
extension Store {
    /// The rules that a store holds under `__llvs_schema` at a version, and the result of registering more.
    public struct Schema: Sendable {
        /// The rules that apply, with the registered ones added; nil if there are none.
        public var rules: [UInt8]?
        /// The version that stored the rules that apply before anything is added; nil if there are none.
        public var storedVersion: VersionID?
        /// Why the prevailing rules do not apply, if they do not.
        public var problem: InvalidRules?
        /// Whether `rules` differ from the prevailing ones. Then save them under `__llvs_schema`.
        public var isChanged = false
        /// Contradictions between the registered rules and the store's. In each, `newer` is the store's rule, which prevails, and `older`
        /// the given one.
        public var contradictions: [ConflictRecord] = []
        package init(
            rules: [UInt8]? = nil, storedVersion: VersionID? = nil, problem: InvalidRules? = nil, isChanged: Bool = false,
            contradictions: [ConflictRecord] = []
        ) {
            self.rules = rules; self.storedVersion = storedVersion; self.problem = problem; self.isChanged = isChanged
            self.contradictions = contradictions
        }
    }

    /// Returns the rules of the store at a version.
    /// - Parameters:
    ///   - version: the version at which they are read.
    ///   - given: rules to add to them. Nothing is stored.
    /// - Throws: `.unknownVersion`; `.invalidArgument` if the given rules are not valid, with a pointer to the error as its path;
    ///   `.unsupported` if they have an unknown number, or if rules are given and the store's have one.
    public func schema(at version: VersionID, adding given: [UInt8]? = nil) throws -> Schema {
        try rules.schema(at: version, adding: given)
    }

    /// The rules of this store.
    var rules: StoreRules { StoreRules(store: self) }
}

/// Reads the rules of a store: those that prevail at a version, and those that apply.
struct StoreRules {
    let store: Store

    func schema(at version: VersionID, adding given: [UInt8]? = nil) throws -> Store.Schema {
        try store.checkOpen()
        let entry = try schemaEntry(at: store.requireOrdinal(version))
        var found = Store.Schema()
        found.problem = try entry.flatMap { try problem(ofSchema: $0) }
        let counting = try entry.flatMap { found.problem == nil ? $0 : try validSchema(before: [$0]) }
        if let counting {
            let value = try store.value(
                Value.Reference(id: ValueID(unchecked: MergeSchema.idBytes), version: store.versionID(counting.version)))
            (found.rules, found.storedVersion) = (value?.data, store.versionID(counting.version))
        }
        guard let given else { return found }
        if let problem = found.problem, problem.isUnknownMerge {
            throw StoreError(
                .unsupported,
                "Nothing is added to the rules in \"\(MergeSchema.valueID)\" at version \(version): \(problem.reason). Use a newer version "
                    + "of the library.", valueID: ValueID(unchecked: MergeSchema.idBytes), path: problem.pointer)
        }
        do {
            let held = found.rules
            let added = try given.withUnsafeBytes { given in
                try held.map { try $0.withUnsafeBytes { try SchemaRegistration.adding(given, to: $0) } }
                    ?? SchemaRegistration.adding(given, to: nil)
            }
            found.isChanged = found.problem != nil || held != added.bytes
            (found.rules, found.contradictions) = (added.bytes, added.contradictions)
        } catch let problem as InvalidRules { throw problem.storeError }
        return found
    }

    /// Returns the entry of the rules at a version; nil if there are none.
    func schemaEntry(at version: UInt32) throws -> MapEntry? {
        try schemaEntry(store.maps.prevailing(at: version))
    }
    func schemaEntry(_ state: Prevailing) throws -> MapEntry? {
        try MergeSchema.idBytes.withUnsafeBytes { try state.lookup($0) }
    }

    private func parsed(_ entry: MapEntry) throws -> MergeSchema {
        try MergeSchema.idBytes.withUnsafeBytes { key in
            try store.records.withBody(store.place(of: entry.version), entry, id: key, stored: store.versionID(entry.version)) {
                try store.schemaCache.schema($0)
            }
        }
    }

    /// Returns what is wrong with rules; nil if they are valid.
    func problem(ofSchema entry: MapEntry) throws -> InvalidRules? {
        do {
            _ = try parsed(entry)
            return nil
        } catch let problem as InvalidRules { return problem }
    }

    /// Returns the rules that apply: the prevailing rules. If these are invalid, returns the newest valid rules before them, and adds a
    /// record.
    func prevailingSchema(
        _ entry: MapEntry?, _ sides: [MapEntry], _ records: ConflictRecords
    ) throws -> (MergeSchema?, ConflictRecords) {
        guard let entry else { return (nil, records) }
        guard try problem(ofSchema: entry) != nil else { return (try parsed(entry), records) }
        let valid = try validSchema(before: sides)
        let record = try MergeSchema.idBytes.withUnsafeBytes { key in
            try store.records.withBody(store.place(of: entry.version), entry, id: key, stored: store.versionID(entry.version)) { invalid in
                guard let valid else { return try SchemaValueMerger.record(notValid: invalid, standing: nil) }
                return try store.records.withBody(store.place(of: valid.version), valid, id: key, stored: store.versionID(valid.version)) {
                    try SchemaValueMerger.record(notValid: invalid, standing: $0)
                }
            }
        }
        return (try valid.map { try parsed($0) }, try ConflictRecords(records + [record]))
    }

    /// Returns the rules of an entry, or if these are not valid, the newest valid ones before.
    func countingSchema(_ entry: MapEntry) throws -> MergeSchema? { try validSchema(before: [entry]).map { try parsed($0) } }

    /// Returns the newest valid rules among these and those that prevailed when these were stored.
    func validSchema(before entries: [MapEntry]) throws -> MapEntry? {
        var open: [MapEntry] = [], seen: Set<UInt32> = []
        for entry in entries where seen.insert(entry.version).inserted { open.append(entry) }
        // Entries that were the only candidate at some point. What the search finds after such an entry does not depend on the query.
        var alone: [UInt32] = []
        func found(_ entry: MapEntry?) -> MapEntry? {
            store.validSchemas.keep(alone, entry)
            return entry
        }
        while let newest = open.indices.max(by: { store.isStoredLater(open[$1], open[$0]) }) {
            let entry = open.remove(at: newest)
            // An entry that is not stored yet may change.
            if open.isEmpty, store.lock.withRead({ store.dag.rows[Int(entry.version)].state == .live }) {
                if let known = store.validSchemas.behind(entry.version) { return found(known) }
                alone.append(entry.version)
            }
            if try problem(ofSchema: entry) == nil { return found(entry) }
            let sides = store.lock.withRead { store.dag.predecessors(entry.version) }
            for side in sides {
                let before = try MergeSchema.idBytes.withUnsafeBytes { try store.maps.entry($0, at: side) }
                if let before, seen.insert(before.version).inserted { open.append(before) }
            }
        }
        return found(nil)
    }
}
