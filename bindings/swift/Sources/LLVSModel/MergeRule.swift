/// A rule for merging a member, or a part of one. What each kind does is told, with examples, in docs/merging.md.
public struct MergeRule: Sendable, Hashable {
    /// Members of the rule as they stand in the rules of a store: a name, and JSON text.
    let members: [String: String]

    private init(_ members: [String: String]) { self.members = members }
    private static func kind(_ name: String) -> MergeRule { MergeRule(["as": JSONText.string(name)]) }

    // MARK: Kinds

    /// Objects member by member, arrays by their elements, all else as a whole; for a structure that is no part of a model, which else
    /// stands as a whole.
    public static var auto: MergeRule { kind("auto") }
    /// A number that both sides may add to: all that was added counts.
    public static var counter: MergeRule { kind("counter") }
    /// A counter with bounds that are reported when a merge leaves them, and never enforced. `from` is what a counter is that nobody has
    /// written yet: the default of the member, unless given.
    public static func counter(from: Int? = nil, min: Int? = nil, max: Int? = nil) -> MergeRule {
        counter(["from": from, "min": min, "max": max].compactMapValues { $0.map { "\($0)" } })
    }
    /// The same with fractions.
    @_disfavoredOverload
    public static func counter(from: Double? = nil, min: Double? = nil, max: Double? = nil) -> MergeRule {
        counter(["from": from, "min": min, "max": max].compactMapValues { $0.map { "\($0)" } })
    }
    private static func counter(_ bounds: [String: String]) -> MergeRule { MergeRule(bounds.merging(kind("counter").members) { $1 }) }
    /// An array of which the order does not matter, and in which each element is once.
    public static var set: MergeRule { kind("set") }
    /// An array of which the order matters.
    public static var list: MergeRule { kind("list") }
    /// A list whose elements are told apart by members of theirs, 16 at most; by all that they are with "", so that each is there once.
    public static func list(key: String...) -> MergeRule { MergeRule(["as": "\"list\"", "key": pointers(key)]) }
    /// A set whose elements are told apart by members of theirs, 16 at most.
    public static func set(key: String...) -> MergeRule { MergeRule(["as": "\"set\"", "key": pointers(key)]) }
    /// A string that is merged like text, by its lines. A line that both sides changed is merged by its words, if that is clean; otherwise
    /// the newer side's whole line wins, and a conflict has both. Other strings are never merged inside.
    public static var text: MergeRule { kind("text") }
    /// What of a text that both sides changed is merged.
    public enum TextUnit: String, Sendable {
        /// The words of a line, if that is clean.
        case word
        /// Whole lines: none is ever mixed. For code and configuration.
        case line
    }
    /// A string that is merged like text.
    public static func text(by unit: TextUnit) -> MergeRule {
        MergeRule(["as": "\"text\"", "unit": JSONText.string(unit.rawValue)])
    }
    /// Never merged inside: what one side made of it stands as a whole. For what must fit together.
    public static var register: MergeRule { kind("register") }
    /// An array of a fixed length, merged slot by slot.
    public static var tuple: MergeRule { kind("tuple") }

    // MARK: Who wins

    /// Which side stands where both changed what is not merged inside.
    public enum Side: String, Sendable {
        /// The one whose change is the more recent.
        case newer
        /// The other.
        case older
        /// The larger value.
        case max
        /// The smaller value.
        case min
        /// The one that the app's `ValueMerger` says (`RulesArbiter(merger:)`); without one the newer.
        case arbiter
    }
    /// The side that stands where both changed what is not merged inside; without it, the newer.
    public static func pick(_ side: Side) -> MergeRule { MergeRule(["pick": JSONText.string(side.rawValue)]) }
    /// The side whose member of this name is the larger.
    public static func pick(maxOf name: String) -> MergeRule { MergeRule(["pick": JSONText.object(["max": pointer(name)])]) }
    /// The side whose member of this name is the smaller.
    public static func pick(minOf name: String) -> MergeRule { MergeRule(["pick": JSONText.object(["min": pointer(name)])]) }
    /// What one side removed stays removed, though the other changed it; without it, the change stands.
    public static var deleteWins: MergeRule { MergeRule(["delete": "\"delete\""]) }
    /// What the member stands for where it is missing, so that one side may add to what the other has not got: at most 1,024 bytes of JSON.
    public static func absent(_ value: JSONValue) -> MergeRule { MergeRule(["absent": JSONText.value(value)]) }
    /// Two objects that both sides added in one place are merged only if these members, 16 at most, are equal; else one of them stands.
    public static func identity(_ name: String, _ more: String...) -> MergeRule { MergeRule(["identity": pointers([name] + more)]) }

    /// A rule as it stands in the rules of a store: `.json(["as": "list", "key": ["/id"]])`.
    public static func json(_ members: [String: JSONValue]) -> MergeRule { MergeRule(members.mapValues(JSONText.value)) }

    /// Members of names are pointers in rules.
    private static func pointers(_ names: [String]) -> String { JSONText.array((names.isEmpty ? [""] : names).map(pointer)) }
    private static func pointer(_ name: String) -> String { JSONText.string(JSONText.pointer(name)) }
}

extension [MergeRule] {
    /// All that they say together, and what two of them say differently.
    var together: (rule: [String: String], contradicted: String?) {
        var rule: [String: String] = [:], contradicted: String?
        for (name, text) in flatMap(\.members) {
            if let other = rule.updateValue(text, forKey: name), other != text { contradicted = name }
        }
        return (rule, contradicted)
    }
}
