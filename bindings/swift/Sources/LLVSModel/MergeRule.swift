/// A rule for merging a member, or a part of one. docs/merging.md explains each kind, with examples.
public struct MergeRule: Sendable, Hashable {
    /// Members of the rule as in the rules of a store: a name, and JSON text.
    let members: [String: String]
    /// Why it is invalid; nil if it is valid.
    var problem: String?

    init(_ members: [String: String]) { self.members = members }
    private static func kind(_ name: String) -> MergeRule { MergeRule(["as": JSONText.string(name)]) }

    // MARK: Kinds

    /// Merges objects member by member, arrays by their elements, everything else as a whole. Use it for a structure that is not a part of
    /// a model, which is otherwise merged as a whole.
    public static var auto: MergeRule { kind("auto") }
    /// A number that both sides may add to: all additions count.
    public static var counter: MergeRule { kind("counter") }
    /// A counter with bounds. A merge reports if they are exceeded, but never enforces them. `from` is the value of a counter before the
    /// first write: by default, the default of the member.
    public static func counter(from: Int? = nil, min: Int? = nil, max: Int? = nil) -> MergeRule {
        counter(["from": from, "min": min, "max": max].compactMapValues { $0.map { "\($0)" } })
    }
    /// The same with fractions.
    @_disfavoredOverload
    public static func counter(from: Double? = nil, min: Double? = nil, max: Double? = nil) -> MergeRule {
        counter(["from": from, "min": min, "max": max].compactMapValues { $0.map { "\($0)" } })
    }
    private static func counter(_ bounds: [String: String]) -> MergeRule { MergeRule(bounds.merging(kind("counter").members) { $1 }) }
    /// An array without order, in which each element occurs once.
    public static var set: MergeRule { kind("set") }
    /// An array with order.
    public static var list: MergeRule { kind("list") }
    /// A list whose elements are identified by the members with these names, at most 16. With "" they are identified by their whole
    /// contents, so that each occurs once.
    public static func list(key: String...) -> MergeRule { MergeRule(["as": "\"list\"", "key": pointers(key)]) }
    /// A set whose elements are identified by their members of these names, at most 16.
    public static func set(key: String...) -> MergeRule { MergeRule(["as": "\"set\"", "key": pointers(key)]) }
    /// A string that is merged like text, by its lines. A line that both sides changed is merged by its words, if that is clean; otherwise
    /// the newer side's whole line wins, and a conflict has both. Other strings are never merged inside.
    public static var text: MergeRule { kind("text") }
    /// The unit in which a text that both sides changed is merged.
    public enum TextUnit: String, Sendable {
        /// The words of a line, if that is clean.
        case word
        /// Whole lines: a line is never mixed. For code and configuration.
        case line
    }
    /// A string that is merged like text.
    public static func text(by unit: TextUnit) -> MergeRule {
        MergeRule(["as": "\"text\"", "unit": JSONText.string(unit.rawValue)])
    }
    /// Never merged inside: one side wins as a whole. For parts that must fit together.
    public static var register: MergeRule { kind("register") }
    /// An array of a fixed length, merged slot by slot.
    public static var tuple: MergeRule { kind("tuple") }

    // MARK: Who wins

    /// The side that wins if both changed a place that is not merged inside.
    public enum Side: String, Sendable {
        /// The side with the more recent change.
        case newer
        /// The other side.
        case older
        /// The larger value.
        case max
        /// The smaller value.
        case min
        /// The side that the app's `ValueMerger` chooses (`RulesArbiter(merger:)`). Without a `ValueMerger`, the side with the more recent
        /// change.
        case arbiter
    }
    /// Sets the side that wins if both changed a place that is not merged inside. Without this rule, the newer side wins.
    public static func pick(_ side: Side) -> MergeRule { MergeRule(["pick": JSONText.string(side.rawValue)]) }
    /// The side with the larger member of this name wins.
    public static func pick(maxOf name: String) -> MergeRule { MergeRule(["pick": JSONText.object(["max": pointer(name)])]) }
    /// The side with the smaller member of this name wins.
    public static func pick(minOf name: String) -> MergeRule { MergeRule(["pick": JSONText.object(["min": pointer(name)])]) }
    /// A removal wins over a change by the other side. Without this rule, the change wins.
    public static var deleteWins: MergeRule { MergeRule(["delete": "\"delete\""]) }
    /// The value of a missing member, so that one side may add to a member that the other lacks: at most 1,024 bytes of JSON.
    public static func absent(_ value: JSONValue) -> MergeRule { MergeRule(["absent": JSONText.value(value)]) }
    /// Two objects that both sides added at one place are merged only if these members, at most 16, are equal; else one of them wins.
    public static func identity(_ name: String, _ more: String...) -> MergeRule { MergeRule(["identity": pointers([name] + more)]) }

    /// A rule in the form of the rules of a store: `.json(["as": "list", "key": ["/id"]])`.
    public static func json(_ members: [String: JSONValue]) -> MergeRule { MergeRule(members.mapValues(JSONText.value)) }

    /// In rules, names of members are pointers.
    private static func pointers(_ names: [String]) -> String { JSONText.array((names.isEmpty ? [""] : names).map(pointer)) }
    private static func pointer(_ name: String) -> String { JSONText.string(JSONText.pointer(name)) }
}

extension [MergeRule] {
    /// The combined rule, and a member to which two of the rules give different values.
    var together: (rule: [String: String], contradicted: String?) {
        var rule: [String: String] = [:], contradicted: String?
        for (name, text) in flatMap(\.members) {
            if let other = rule.updateValue(text, forKey: name), other != text { contradicted = name }
        }
        return (rule, contradicted)
    }
}
