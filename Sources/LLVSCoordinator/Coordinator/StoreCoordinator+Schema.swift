/// Registers the app's rules for merging.
extension StoreCoordinator {
    /// The result of registering rules.
    public struct Registered: Sendable {
        /// The rules in the store now, and the contradictions to them.
        public var schema: Store.Schema
        /// The version that was stored for the rules; nil if the store had all of them, or nothing was saved yet.
        public var version: Version?
        /// The current version before and after. The latter has the rules.
        public var move: Move
    }

    /// Adds rules to those of the store, in a version of its own on top of the current version. If the two contradict each other, the
    /// store's rules prevail. Registering the same rules again does nothing.
    ///
    /// If nothing was saved in the store yet, the rules are only remembered. They are written before the first save, or as soon as the
    /// first content is merged: devices that start apart with the same rules then have the same first version.
    ///
    /// They are also only remembered if the store's rules have a number that this library does not know. Those rules prevail then, and
    /// are the problem of the schema returned. The remembered rules are written once other rules prevail.
    /// - Throws: the errors of `Store.schema(at:adding:)` for the given rules, and of `makeVersion`.
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

    /// Writes the rules that were registered before there was a version to write them on, and makes that version current. Precondition:
    /// the caller holds `saveGate`.
    /// - Returns: nil if the rules are written; the error if the store's rules have an unknown number, so that the rules are still only
    ///   remembered.
    func writeRegistered() throws -> StoreError? {
        guard let rules = registered else { return nil }
        // The remembered rules have a known number, so this error is about the store's.
        do { _ = try write(store.schema(at: current, adding: rules)) } catch let error as StoreError where error.code == .unsupported {
            return error
        }
        registered = nil
        return nil
    }

    /// Stores a version with the rules, and makes it current. Precondition: the caller holds `saveGate`.
    private func write(_ schema: Store.Schema) throws -> Version? {
        guard schema.isChanged, let rules = schema.rules else { return nil }
        let isFirst = current == EmptyRoot.id
        let change = Value.Change.update(ValueID(unchecked: MergeSchema.idBytes), data: rules)
        // On the empty root it does not contain the device or the time, so it is the same version everywhere.
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
