import LLVS

/// A structure that can be a part of a model. `@Model` makes one.
public protocol ModelPart: Codable, Sendable {
    /// Its rules for merging, by place.
    static var mergePatterns: [MergePattern] { get }
}

/// A structure whose instances are values of a store. `@Model(prefix:)` makes one.
public protocol StorableModel: ModelPart {
    /// What the ids of its values begin with.
    static var idPrefix: String { get }
    /// Rules that stand at no member, by pattern: those at "" are for the value as a whole. None unless the structure says otherwise.
    ///
    ///     static let rules: [String: [MergeRule]] = ["": [.identity("isbn")]]
    ///
    /// They are in place of those that members have there.
    static var rules: [String: [MergeRule]] { get }
    /// What brings values from form 1 to 2, from 2 to 3, and so on; none unless the structure says otherwise. Nothing is rewritten until it
    /// is edited.
    static var upgrades: [ModelUpgrade] { get }
    /// The member that holds the number of a value's form, "form" unless the structure says otherwise: 1 where there is none. No property
    /// has that name.
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

    /// The rules of the model as they stand in a store: for `StoreCoordinator.register` and `RulesArbiter`.
    public static var mergeRules: [UInt8] {
        var patterns: [String: String] = ["": "\"auto\""]
        func put(_ rule: [String: String], at pattern: String) {
            let isShort = rule.isEmpty || (rule.count == 1 && rule["as"] != nil)
            patterns[pattern] = isShort ? rule["as"] ?? "\"auto\"" : JSONText.object(rule)
        }
        for pattern in allPatterns where !pattern.rule.isEmpty { put(pattern.rule, at: pattern.pointer) }
        // (Then a merge takes the larger number by itself.)
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
        return Array("{\"merge\":1,\"ids\":{\(JSONText.string(idPrefix)):\(JSONText.object(patterns))}}".utf8)
    }

    static var allPatterns: [MergePattern] { MergePattern.patterns(of: Self.self).filter { !$0.rule.isEmpty || $0.problem != nil } }

    /// The places of members that the model has no rule for.
    static var plainPlaces: Set<String> {
        let given = Set(rules.keys).union(allPatterns.map(\.pointer))
        return Set(MergePattern.patterns(of: Self.self).map(\.pointer)).subtracting(given)
    }

    /// The rules, when they can be.
    /// - Throws: `.invalidArgument` when the prefix is none, or a rule is not for the type of its member.
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
            for (pattern, given) in rules {
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
