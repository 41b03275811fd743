import LLVS

/// A structure that can be a part of a model. `@Model` makes one.
public protocol ModelPart: Codable, Sendable {
    /// The rules by which the structure is merged, by place.
    static var mergePatterns: [MergePattern] { get }
    /// Its members by key path, for rules, indexes and conditions.
    static var memberPaths: [ModelMember<Self>] { get }
}

/// A structure whose instances are values of a store. `@Model(prefix:)` makes one.
public protocol StorableModel: ModelPart {
    /// The prefix of the ids of its values.
    static var idPrefix: String { get }
    /// Rules for places other than members, by pattern: "" is the value as a whole. None by default.
    ///
    ///     static let rules: [String: [MergeRule]] = ["": [.identity("isbn")]]
    ///
    /// They replace rules of members for the same places.
    static var rules: [String: [MergeRule]] { get }
    /// Indexes of the values, by which `ModelCollection.filter(where:)` and `ordered(by:)` find them; none by default. They are registered
    /// with the rules, so a collection builds them at the first question.
    ///
    ///     static var indexes: [ModelIndex<Contact>] { [ModelIndex("contacts-by-name", on: \.last, \.first, text: .fold)] }
    static var indexes: [ModelIndex<Self>] { get }
    /// The upgrades of values from form 1 to 2, from 2 to 3, and so on; none by default. A stored value is rewritten only when it is
    /// edited.
    static var upgrades: [ModelUpgrade] { get }
    /// The name of the member with the number of a value's form; "form" by default. A value without it has form 1. No property may have
    /// that name.
    static var formName: String { get }
}

extension StorableModel {
    /// None.
    public static var rules: [String: [MergeRule]] { [:] }
    /// None.
    public static var upgrades: [ModelUpgrade] { [] }
    /// "form".
    public static var formName: String { "form" }
    /// The number of the form that this program writes: 1, and 1 more for each upgrade.
    public static var form: Int { upgrades.count + 1 }

    /// The rules of the model in the form of a store's rules: for `StoreCoordinator.register` and `RulesArbiter`.
    public static var mergeRules: [UInt8] {
        var patterns: [String: String] = ["": "\"auto\""]
        func put(_ rule: [String: String], at pattern: String) {
            let isShort = rule.isEmpty || (rule.count == 1 && rule["as"] != nil)
            patterns[pattern] = isShort ? rule["as"] ?? "\"auto\"" : JSONText.object(rule)
        }
        for pattern in allPatterns where !pattern.rule.isEmpty { put(pattern.rule, at: pattern.pointer) }
        // (Then a merge takes the larger number.)
        if !upgrades.isEmpty {
            let at = JSONText.string("/" + JSONText.segment(formName))
            let told = rules["schema"]?.together.rule["at"]
            if told == nil || told == at {
                put(["at": at], at: "schema")
            } else {
                put(["pick": "\"max\""], at: "/" + JSONText.patternSegment(formName))
            }
        }
        for (pattern, given) in rules { put(given.together.rule, at: pattern) }
        let ids = "\"ids\":{\(JSONText.string(idPrefix)):\(JSONText.object(patterns))}"
        let indexes = Dictionary(indexes.map { ($0.name, $0.json) }) { $1 }
        let declared = indexes.isEmpty ? "" : ",\"indexes\":\(JSONText.object(indexes))"
        return Array("{\"merge\":1,\(ids)\(declared)}".utf8)
    }

    static var allPatterns: [MergePattern] { MergePattern.patterns(of: Self.self).filter { !$0.rule.isEmpty || $0.problem != nil } }

    /// The places of members for which the model has no rule.
    static var plainPlaces: Set<String> {
        let given = Set(rules.keys).union(allPatterns.map(\.pointer))
        return Set(MergePattern.patterns(of: Self.self).map(\.pointer)).subtracting(given)
    }

    /// The rules, if they are valid.
    /// - Throws: `.invalidArgument` if the prefix is not a valid id, or a rule does not suit the type of its member.
    static var checkedRules: [UInt8] {
        get throws {
            if idPrefix.isEmpty || idPrefix.hasPrefix("__llvs") {
                throw StoreError(
                    .invalidArgument,
                    "\(Self.self): \"\(idPrefix)\" cannot be the prefix of a model: the ids of its values begin with it, and those of "
                        + "others do not. Use one like \"contact/\".")
            }
            for pattern in allPatterns {
                if let problem = pattern.problem {
                    throw StoreError(
                        .invalidArgument, "\(Self.self): the member \"\(pattern.pointer)\": \(problem).", path: pattern.pointer)
                }
            }
            if let problem = indexes.lazy.compactMap(\.problem).first {
                throw StoreError(.invalidArgument, "\(Self.self): \(problem).")
            }
            for (pattern, given) in rules {
                if let problem = given.lazy.compactMap(\.problem).first {
                    throw StoreError(.invalidArgument, "\(Self.self): the rules at \"\(pattern)\": \(problem).", path: pattern)
                }
                if let name = given.together.contradicted {
                    throw StoreError(
                        .invalidArgument, "\(Self.self): the rules at \"\(pattern)\" say different things of \"\(name)\"; keep one.",
                        path: pattern)
                }
            }
            return mergeRules
        }
    }
}
