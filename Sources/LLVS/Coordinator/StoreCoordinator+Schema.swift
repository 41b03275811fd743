/// Rules for merging that the app brings along.
extension StoreCoordinator {
    /// What registering rules did.
    public struct Registered: Sendable {
        /// What is in the store now, and what contradicts it.
        public var schema: Store.Schema
        /// The version that was made for it; nil when the store held all of it, or where nothing was saved yet.
        public var version: Version?
        /// Where the current version was before, and is with the version that holds the rules.
        public var move: Move
    }

    /// Adds rules to those of the store, in a version of its own on top of the current version. What the store holds stands where the two
    /// say different things. Registering the same again does nothing.
    ///
    /// In a store in which nothing was saved yet the rules are remembered, and written before the first save, or as soon as the first
    /// content is merged: devices that start apart with the same rules then have the same first version.
    ///
    /// So they are where the store holds rules of a number that is not known here: these stand, and are the problem of the schema returned.
    /// What was remembered is written once others prevail.
    /// - Throws: as `Store.schema(at:adding:)`, of the rules given, and what `makeVersion` throws.
    @discardableResult
    public func register(_ rules: [UInt8]) throws -> Registered {
        let (done, move) = try moving("Registering rules") { () throws -> (Store.Schema, Version?) in
            let held = current == EmptyRoot.id ? nil : try store.schema(at: current)
            if held != nil, held?.problem?.isUnknownMerge != true {
                let schema = try store.schema(at: current, adding: rules)
                return (schema, try write(schema))
            }
            do {
                let added = try rules.withUnsafeBytes { given in
                    try registered.map { try $0.withUnsafeBytes { try SchemaRegistration.adding(given, to: $0) } }
                        ?? SchemaRegistration.adding(given, to: nil)
                }
                registered = added.bytes
                return (held ?? Store.Schema(rules: added.bytes, isChanged: true, contradictions: added.contradictions), nil)
            } catch let problem as InvalidRules { throw problem.storeError }
        }
        return Registered(schema: done.0, version: done.1, move: move)
    }

    /// Writes the rules that were registered before there was a version to write them on, and moves there. The caller holds `saveGate`.
    /// - Returns: why they are still remembered, where the store holds rules of a number that is not known here.
    func writeRegistered() throws -> StoreError? {
        guard let rules = registered else { return nil }
        // Those remembered were of a known number.
        do { _ = try write(store.schema(at: current, adding: rules)) } catch let error as StoreError where error.code == .unsupported {
            return error
        }
        registered = nil
        return nil
    }

    /// Makes the version that holds the rules, and moves there. The caller holds `saveGate`.
    private func write(_ schema: Store.Schema) throws -> Version? {
        guard schema.isChanged, let rules = schema.rules else { return nil }
        let isFirst = current == EmptyRoot.id
        let change = Value.Change.update(ValueID(unchecked: MergeSchema.idBytes), data: rules)
        // On the empty root it says nothing of the device or of the time, so that it is the same version everywhere.
        let version = try [change].withBorrowed {
            try store.makeVersion(
                basedOn: isFirst ? current : base(), borrowing: $0, metadata: isFirst ? Metadata() : lock.withLock { metadata }, id: nil,
                timestamp: isFirst ? Clock.after(EmptyRoot.version.timestamp) : nil)
        }
        differences = KnownDifferences()
        move(to: version.id)
        return version
    }
}
