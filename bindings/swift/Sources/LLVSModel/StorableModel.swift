/// A structure that can be a part of a model. `@Model` makes one.
public protocol ModelPart: Codable, Sendable {
    /// Its rules for merging, by place.
    static var mergePatterns: [MergePattern] { get }
}

/// A structure whose instances are values of a store. `@Model(prefix:)` makes one.
public protocol StorableModel: ModelPart {
    /// What the ids of its values begin with.
    static var idPrefix: String { get }
    /// What brings values from form 1 to 2, from 2 to 3, and so on; none unless the structure says otherwise. Nothing is rewritten until it
    /// is edited.
    static var upgrades: [ModelUpgrade] { get }
    /// The member that holds the number of a value's form, "form" unless the structure says otherwise: 1 where there is none. No property
    /// has that name.
    static var formName: String { get }
}

extension StorableModel {
    /// None.
    public static var upgrades: [ModelUpgrade] { [] }
    /// "form".
    public static var formName: String { "form" }
    /// The number of the form that this program writes: 1, and 1 more for each upgrade.
    public static var form: Int { upgrades.count + 1 }

    /// The rules of the model as they stand in a store: for `StoreCoordinator.register` and `RulesArbiter`.
    public static var mergeRules: [UInt8] {
        var patterns: [String: String] = ["": "\"auto\""]
        for pattern in mergePatterns {
            let isShort = pattern.rule.count == 1 && pattern.rule["as"] != nil
            patterns[pattern.pointer] = isShort ? pattern.rule["as"] : JSONText.object(pattern.rule)
        }
        if !upgrades.isEmpty { patterns["/" + JSONText.segment(formName)] = JSONText.object(["pick": "\"max\""]) }
        return Array("{\"merge\":1,\"ids\":{\(JSONText.string(idPrefix)):\(JSONText.object(patterns))}}".utf8)
    }
}
