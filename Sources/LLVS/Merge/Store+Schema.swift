/// The rules that a store holds.
extension Store {
    /// What a store holds under `__llvs_schema` at a version, and what registering more comes to.
    public struct Schema: Sendable {
        /// The rules that count, with what is to be registered added; nil where there are none.
        public var rules: [UInt8]?
        /// The version that stored those that count before anything is added; nil where there are none.
        public var storedVersion: VersionID?
        /// Why what prevails does not count, when it does not.
        public var problem: InvalidRules?
        /// Whether `rules` are others than those that prevail: they are to be saved under `__llvs_schema`.
        public var isChanged = false
        /// Where what was to be registered says something else than the store: `newer` is what the store holds and what stands, `older`
        /// what was given.
        public var contradictions: [ConflictRecord] = []
    }

    /// The rules of the store at a version.
    /// - Parameters:
    ///   - version: where they are read.
    ///   - given: rules to be added to them. Nothing is stored.
    /// - Throws: `.unknownVersion`; `.invalidArgument` with the pointer to what is wrong as its path when the rules given are not valid;
    ///   `.unsupported` when they, or with rules given those of the store, are of a number that is not known.
    public func schema(at version: VersionID, adding given: [UInt8]? = nil) throws -> Schema {
        try checkOpen()
        let entry = try schemaEntry(at: requireOrdinal(version))
        var found = Schema()
        found.problem = try entry.flatMap { try problem(ofSchema: $0) }
        let counting = try entry.flatMap { found.problem == nil ? $0 : try validSchema(before: [$0]) }
        if let counting {
            let value = try value(Value.Reference(id: ValueID(unchecked: MergeSchema.idBytes), version: versionID(counting.version)))
            (found.rules, found.storedVersion) = (value?.data, versionID(counting.version))
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

    /// The rules at a version; nil when there are none.
    func schemaEntry(at version: UInt32) throws -> MapEntry? {
        try schemaEntry(maps.prevailing(at: version))
    }
    func schemaEntry(_ state: Prevailing) throws -> MapEntry? {
        try MergeSchema.idBytes.withUnsafeBytes { try state.lookup($0) }
    }

    private func schema(_ entry: MapEntry) throws -> MergeSchema {
        try MergeSchema.idBytes.withUnsafeBytes { key in
            try records.withBody(place(of: entry.version), entry, id: key, stored: versionID(entry.version)) { try schemas.schema($0) }
        }
    }

    /// What is wrong with rules; nil when nothing is.
    func problem(ofSchema entry: MapEntry) throws -> InvalidRules? {
        do {
            _ = try schema(entry)
            return nil
        } catch let problem as InvalidRules { return problem }
    }

    /// The rules that count: those that prevail, or when these are not valid the newest valid ones before them, with a record.
    func prevailingSchema(
        _ entry: MapEntry?, _ sides: [MapEntry], _ records: ConflictRecords
    ) throws -> (MergeSchema?, ConflictRecords) {
        guard let entry else { return (nil, records) }
        guard try problem(ofSchema: entry) != nil else { return (try schema(entry), records) }
        let valid = try validSchema(before: sides)
        let record = try MergeSchema.idBytes.withUnsafeBytes { key in
            try self.records.withBody(place(of: entry.version), entry, id: key, stored: versionID(entry.version)) { invalid in
                guard let valid else { return try SchemaValueMerger.record(notValid: invalid, standing: nil) }
                return try self.records.withBody(place(of: valid.version), valid, id: key, stored: versionID(valid.version)) {
                    try SchemaValueMerger.record(notValid: invalid, standing: $0)
                }
            }
        }
        return (try valid.map { try schema($0) }, try ConflictRecords(records + [record]))
    }

    /// The rules at a version, or when these are not valid the newest valid ones before.
    func countingSchema(_ entry: MapEntry) throws -> MergeSchema? { try validSchema(before: [entry]).map { try schema($0) } }

    /// The newest valid rules among these and those that were there when these were stored.
    func validSchema(before entries: [MapEntry]) throws -> MapEntry? {
        var open: [MapEntry] = [], seen: Set<UInt32> = []
        for entry in entries where seen.insert(entry.version).inserted { open.append(entry) }
        // Those that were the only ones left: what is found behind one of them is the same whoever asks.
        var alone: [UInt32] = []
        func found(_ entry: MapEntry?) -> MapEntry? {
            validSchemas.keep(alone, entry)
            return entry
        }
        while let newest = open.indices.max(by: { isStoredLater(open[$1], open[$0]) }) {
            let entry = open.remove(at: newest)
            // What is not stored yet may come to be something else.
            if open.isEmpty, lock.withRead({ dag.rows[Int(entry.version)].state == .live }) {
                if let known = validSchemas.behind(entry.version) { return found(known) }
                alone.append(entry.version)
            }
            if try problem(ofSchema: entry) == nil { return found(entry) }
            let sides = lock.withRead { dag.predecessors(entry.version) }
            for side in sides {
                let before = try MergeSchema.idBytes.withUnsafeBytes { try self.maps.entry($0, at: side) }
                if let before, seen.insert(before.version).inserted { open.append(before) }
            }
        }
        return found(nil)
    }
}
