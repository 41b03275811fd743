import LLVS

/// The objects of a model at one version, by id without the prefix.
public struct ModelsAtVersion<Model: StorableModel>: Sendable {
    /// Where they are.
    public let store: Store
    /// The version that they are read at.
    public let version: VersionID
    let rules: StoreRules

    /// The object under an id; nil when there is none. Throws `ModelDecodingError` when it cannot be read.
    public subscript(id: String) -> Model? {
        get throws { try store.value(ValueID(Model.idPrefix + id), at: version).map(object) }
    }

    /// Whether there is a value under an id, whether it can be read or not.
    public func contains(_ id: String) throws -> Bool { try store.reference(ValueID(Model.idPrefix + id), at: version) != nil }

    /// How many values there are, also such as cannot be read. O(log n).
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

    /// All ids and objects, in the order of the ids. Throws `ModelDecodingError` at one that cannot be read; `readAll` goes on.
    public func all() throws -> [(id: String, object: Model)] {
        var found: [(id: String, object: Model)] = []
        try forEachValue { value, rules in found.append((value.id.plain(Model.self), try value.model(Model.self, rules))) }
        return found
    }

    /// What there is: objects, and values that are none.
    public struct Reading: Sendable {
        /// All ids and objects that can be read, in the order of the ids.
        public var objects: [(id: String, object: Model)] = []
        /// Why the others cannot, in that order.
        public var problems: [(id: String, error: ModelDecodingError)] = []
    }

    /// All objects that can be read, and why the others cannot: for lists that one bad value must not empty.
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

    /// The values that cannot be read as objects of the model, with why. Reads them all.
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
    /// As an object of a model.
    func model<Model: StorableModel>(_ type: Model.Type, _ rules: MergeSchema) throws -> Model {
        try ModelCoding.read(type, data, id, storedVersion, rules)
    }
}

extension ValueID {
    /// Without the prefix of a model.
    func plain<Model: StorableModel>(_ model: Model.Type) -> String {
        String(decoding: bytes.dropFirst(Model.idPrefix.utf8.count), as: UTF8.self)
    }
}
