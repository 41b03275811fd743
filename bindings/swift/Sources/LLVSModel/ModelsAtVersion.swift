import LLVS

/// The objects of a model at one version, by id without the prefix.
public struct ModelsAtVersion<Model: StorableModel>: Sendable {
    /// The store.
    public let store: Store
    /// The version at which they are read.
    public let version: VersionID
    let rules: StoreRules

    /// The object with an id; nil if there is none. Throws `ModelDecodingError` if it cannot be read. In async functions: `object(_:)`.
    @available(*, noasync, message: "It waits for the disk. Await object(_:).")
    public subscript(id: String) -> Model? {
        get throws { try store.value(ValueID(Model.idPrefix + id), at: version).map(object) }
    }

    /// Returns whether there is a value with an id, readable or not.
    public func contains(_ id: String) throws -> Bool { try store.reference(ValueID(Model.idPrefix + id), at: version) != nil }

    /// Returns the number of values, readable or not. O(log n).
    public func count() throws -> Int { try store.count(at: version, in: range) }

    /// The ids, in order.
    public func ids() throws -> [String] {
        var found: [String] = []
        var last: ValueID?
        while true {
            let page = try store.references(at: version, in: range, after: last, limit: 1_000)
            found += page.map { $0.id.plain(Model.self) }
            guard page.count == 1_000 else { return found }
            last = page.last?.id
        }
    }

    /// Returns all ids and objects, in the order of the ids. Throws `ModelDecodingError` at the first that cannot be read; `readAll` skips
    /// it.
    public func all() throws -> [(id: String, object: Model)] {
        var found: [(id: String, object: Model)] = []
        try forEachValue { value, rules in found.append((value.id.plain(Model.self), try value.model(Model.self, rules))) }
        return found
    }

    /// The result of `readAll`: objects, and the errors of values that cannot be read.
    public struct Reading: Sendable {
        /// The ids and objects that can be read, in the order of the ids.
        public var objects: [(id: String, object: Model)] = []
        /// The errors of the others, in that order.
        public var problems: [(id: String, error: ModelDecodingError)] = []
    }

    /// Returns all objects that can be read, and the errors of the others: for lists that one bad value must not empty.
    public func readAll() throws -> Reading {
        var found = Reading()
        try forEachValue { value, rules in
            let id = value.id.plain(Model.self)
            do {
                found.objects.append((id, try value.model(Model.self, rules)))
            } catch let error as ModelDecodingError { found.problems.append((id, error)) }
        }
        return found
    }

    /// Returns the errors of the values that cannot be read as objects of the model. Reads all values.
    public func problems() throws -> [ModelDecodingError] { try readAll().problems.map(\.error) }

    private var range: IDRange { .prefix(Array(Model.idPrefix.utf8)) }

    /// A value of this version as an object.
    func object(_ value: Value) throws -> Model { try value.model(Model.self, rules.forReading(at: version, in: store)) }

    private func forEachValue(_ body: (Value, MergeSchema) throws -> Void) throws {
        let rules = try rules.forReading(at: version, in: store)
        var last: ValueID?
        while true {
            let page = try store.values(at: version, in: range, after: last, limit: 100)
            for value in page { try body(value, rules) }
            guard page.count == 100 else { return }
            last = page.last?.id
        }
    }
}

extension Value {
    /// Returns the value as an object of a model.
    func model<Model: StorableModel>(_ type: Model.Type, _ rules: MergeSchema) throws -> Model {
        try ModelCoding.read(type, data, id, storedVersion, rules)
    }
}

extension ValueID {
    /// Returns the id without the prefix of a model.
    func plain<Model: StorableModel>(_ model: Model.Type) -> String {
        String(decoding: bytes.dropFirst(Model.idPrefix.utf8.count), as: UTF8.self)
    }
}
