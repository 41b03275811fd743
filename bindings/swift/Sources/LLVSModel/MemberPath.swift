/// A member of a model that can be named by its key path: `\Contact.name`, `\Contact.address.town`. `@Model` makes them.
public struct ModelMember<Root> {
    /// The key path.
    let path: PartialKeyPath<Root>
    /// The place in the value, as a JSON pointer.
    let pointer: String

    /// Returns a member, and the members of the structure in it. Called by code of `@Model`.
    public static func of<Value>(_ path: KeyPath<Root, Value>, _ name: String) -> [ModelMember<Root>] {
        let pointer = "/" + JSONText.patternSegment(name)
        let own = ModelMember(path: path, pointer: pointer)
        guard let part = Value.self as? any ModelPart.Type else { return [own] }
        return [own] + inside(part, path, pointer)
    }

    private static func inside<Part: ModelPart>(_ part: Part.Type, _ path: PartialKeyPath<Root>, _ pointer: String) -> [ModelMember<Root>] {
        Part.memberPaths.compactMap { inner in
            path.appending(path: inner.path).map { ModelMember(path: $0, pointer: pointer + inner.pointer) }
        }
    }
}

extension ModelPart {
    /// The members of a structure whose conformance is written by hand: none.
    public static var memberPaths: [ModelMember<Self>] { [] }

    /// Returns the place of a member as a JSON pointer; nil if the key path names none that is stored, such as a computed property.
    static func pointer(_ path: PartialKeyPath<Self>) -> String? { memberPaths.first { $0.path == path }?.pointer }

    /// The problem of a key path that names no stored member.
    static func problem(_ path: PartialKeyPath<Self>) -> String {
        "\(path) is not a stored member of \(Self.self), or is within an optional or an array; name one that is"
    }
}

/// Conditions, rules and indexes name members by key paths.
extension MergeRule {
    /// A list whose elements are identified by these members, at most 16: `.list(key: \Phone.number)`.
    public static func list<Part: ModelPart>(key: PartialKeyPath<Part>, _ more: PartialKeyPath<Part>...) -> MergeRule {
        named([key] + more) { ["as": "\"list\"", "key": JSONText.array($0)] }
    }
    /// A set whose elements are identified by these members, at most 16.
    public static func set<Part: ModelPart>(key: PartialKeyPath<Part>, _ more: PartialKeyPath<Part>...) -> MergeRule {
        named([key] + more) { ["as": "\"set\"", "key": JSONText.array($0)] }
    }
    /// The side with the larger member wins: `.pick(maxOf: \Reading.time)`.
    public static func pick<Part: ModelPart>(maxOf path: PartialKeyPath<Part>) -> MergeRule {
        named([path]) { ["pick": JSONText.object(["max": $0[0]])] }
    }
    /// The side with the smaller member wins.
    public static func pick<Part: ModelPart>(minOf path: PartialKeyPath<Part>) -> MergeRule {
        named([path]) { ["pick": JSONText.object(["min": $0[0]])] }
    }
    /// Two objects that both sides added at one place are merged only if these members, at most 16, are equal; else one of them wins.
    public static func identity<Part: ModelPart>(_ path: PartialKeyPath<Part>, _ more: PartialKeyPath<Part>...) -> MergeRule {
        named([path] + more) { ["identity": JSONText.array($0)] }
    }

    private static func named<Part: ModelPart>(_ paths: [PartialKeyPath<Part>], _ rule: ([String]) -> [String: String]) -> MergeRule {
        let found = paths.map { Part.pointer($0) }
        var made = MergeRule(rule(found.map { JSONText.string($0 ?? "") }))
        made.problem = zip(paths, found).first { $0.1 == nil }.map { Part.problem($0.0) }
        return made
    }
}

/// The rules for a place in a model: a part of `StorableModel.placed`.
public struct ModelRule<Model: StorableModel> {
    let pattern: String
    let rules: [MergeRule]

    /// Rules for a member: `ModelRule(\.address.town, .register)`.
    public init(_ member: PartialKeyPath<Model>, _ rules: MergeRule...) {
        pattern = Model.pointer(member) ?? ""
        var rules = rules
        if Model.pointer(member) == nil, !rules.isEmpty { rules[0].problem = Model.problem(member) }
        self.rules = rules
    }
    /// Rules for each element of a member that is an array, a set or a dictionary: `ModelRule(each: \.phones, .deleteWins)`.
    public init(each member: PartialKeyPath<Model>, _ rules: MergeRule...) {
        pattern = (Model.pointer(member) ?? "") + "/*"
        var rules = rules
        if Model.pointer(member) == nil, !rules.isEmpty { rules[0].problem = Model.problem(member) }
        self.rules = rules
    }
    /// Rules for the value as a whole: `ModelRule(.identity(\Contact.email))`.
    public init(_ rules: MergeRule...) {
        pattern = ""
        self.rules = rules
    }
}

/// Builds the rules of a model from lines.
@resultBuilder
public enum ModelRuleBuilder<Model: StorableModel> {
    /// Gives each line the type of the model's rules.
    public static func buildExpression(_ rule: ModelRule<Model>) -> ModelRule<Model> { rule }
    /// Combines the lines.
    public static func buildBlock(_ rules: ModelRule<Model>...) -> [ModelRule<Model>] { rules }
}

extension StorableModel {
    /// Returns rules for places, by pattern, for `rules`:
    ///
    ///     static var rules: [String: [MergeRule]] {
    ///         placed {
    ///             ModelRule(.identity(\Contact.email))
    ///             ModelRule(\.address.town, .register)
    ///         }
    ///     }
    public static func placed(@ModelRuleBuilder<Self> _ rules: () -> [ModelRule<Self>]) -> [String: [MergeRule]] {
        Dictionary(rules().map { ($0.pattern, $0.rules) }) { $0 + $1 }
    }
}

/// An index of a model's values, by their members: a part of `StorableModel.indexes`.
public struct ModelIndex<Model: StorableModel> {
    /// How an index compares strings.
    public enum Text: String, Sendable {
        /// Byte by byte.
        case exact
        /// Without case and diacritics.
        case fold
    }
    let name: String
    let pointers: [String]
    let text: Text
    let problem: String?

    /// An index on members, in the order of the parts of its keys: `ModelIndex("by-name", on: \.last, \.first, text: .fold)`. Of an array
    /// or a set, each element has an entry.
    public init(_ name: String, on first: PartialKeyPath<Model>, _ more: PartialKeyPath<Model>..., text: Text = .exact) {
        let paths = [first] + more
        self.name = name
        self.text = text
        pointers = paths.map { path in
            let isArray = MemberType.shape(of: Swift.type(of: path).valueType) == .array
            return (Model.pointer(path) ?? "") + (isArray ? "/*" : "")
        }
        problem = paths.first { Model.pointer($0) == nil }.map { "the index \"\(name)\": \(Model.problem($0))" }
    }

    /// The definition in the rules of a store.
    var json: String {
        var members = [
            "prefix": JSONText.string(Model.idPrefix), "on": JSONText.array(pointers.map { JSONText.string($0) }),
        ]
        if text != .exact { members["text"] = JSONText.string(text.rawValue) }
        return JSONText.object(members)
    }
}

extension StorableModel {
    /// None.
    public static var indexes: [ModelIndex<Self>] { [] }
}

/// A condition on a member of a model, for `ModelCollection.filter(where:)`: `\.town == "Ulm"`, `\.visits >= 10`.
public struct ModelCondition<Model: StorableModel> {
    enum Relation { case equal, less, lessOrEqual, greater, greaterOrEqual, beginning }
    let pointer: String?
    let relation: Relation
    /// The encoded value.
    let value: Result<JSONValue, any Error>

    init<Value: Encodable>(_ path: PartialKeyPath<Model>, _ relation: Relation, _ value: Value) {
        pointer = Model.pointer(path)
        self.relation = relation
        self.value = Result { try ModelCoding.jsonValue(value) }
    }
}

/// The member has the value.
public func == <Model: StorableModel, Value: Encodable>(member: KeyPath<Model, Value>, value: Value) -> ModelCondition<Model> {
    ModelCondition(member, .equal, value)
}
/// The member is less than the value.
public func < <Model: StorableModel, Value: Encodable>(member: KeyPath<Model, Value>, value: Value) -> ModelCondition<Model> {
    ModelCondition(member, .less, value)
}
/// The member is not greater than the value.
public func <= <Model: StorableModel, Value: Encodable>(member: KeyPath<Model, Value>, value: Value) -> ModelCondition<Model> {
    ModelCondition(member, .lessOrEqual, value)
}
/// The member is greater than the value.
public func > <Model: StorableModel, Value: Encodable>(member: KeyPath<Model, Value>, value: Value) -> ModelCondition<Model> {
    ModelCondition(member, .greater, value)
}
/// The member is not less than the value.
public func >= <Model: StorableModel, Value: Encodable>(member: KeyPath<Model, Value>, value: Value) -> ModelCondition<Model> {
    ModelCondition(member, .greaterOrEqual, value)
}

extension ModelCondition {
    /// The member, an array or a set, has the element: `.contains(\.tags, "friend")`.
    public static func contains<Elements: Collection>(
        _ member: KeyPath<Model, Elements>, _ element: Elements.Element
    ) -> ModelCondition<Model> where Elements.Element: Encodable {
        ModelCondition(member, .equal, element)
    }
    /// The member begins with the text: `.hasPrefix(\.last, "Sm")`.
    public static func hasPrefix(_ member: KeyPath<Model, String>, _ beginning: String) -> ModelCondition<Model> {
        ModelCondition(member, .beginning, beginning)
    }
}
