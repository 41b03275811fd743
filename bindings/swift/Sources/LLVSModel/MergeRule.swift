/// A rule for merging a member, or a part of one. What each kind does is told, with examples, in docs/merging.md.
public struct MergeRule: Sendable, Hashable {
    /// Members of the rule as they stand in the rules of a store: a name, and JSON text.
    let members: [String: String]

    private init(_ members: [String: String]) { self.members = members }
    private static func kind(_ name: String) -> MergeRule { MergeRule(["as": JSONText.string(name)]) }

    /// A number that both sides may add to: all that was added counts.
    public static var counter: MergeRule { kind("counter") }
    /// A counter with bounds that are reported when a merge leaves them, and never enforced. `from` is what a counter is that nobody has
    /// written yet: the default of the member, unless given.
    public static func counter(from: Int? = nil, min: Int? = nil, max: Int? = nil) -> MergeRule {
        let bounds = ["from": from, "min": min, "max": max].compactMapValues { $0.map { String($0) } }
        return MergeRule(bounds.merging(["as": "\"counter\""]) { $1 })
    }
    /// An array of which the order does not matter, and in which each element is once.
    public static var set: MergeRule { kind("set") }
    /// An array of which the order matters.
    public static var list: MergeRule { kind("list") }
    /// A list whose elements are told apart by members of theirs.
    public static func list(key: String...) -> MergeRule { MergeRule(["as": "\"list\"", "key": pointers(key)]) }
    /// A set whose elements are told apart by members of theirs.
    public static func set(key: String...) -> MergeRule { MergeRule(["as": "\"set\"", "key": pointers(key)]) }
    /// A string that is merged like text, by its words. Other strings stand as a whole.
    public static var text: MergeRule { kind("text") }
    /// Which parts of a text are compared.
    public enum TextUnit: String, Sendable { case word, line, character = "char" }
    /// A string that is merged like text. Where both sides replaced the same words, those of the newer side stand, or both with
    /// `keepingBoth`.
    public static func text(by unit: TextUnit, keepingBoth: Bool = false) -> MergeRule {
        let both = keepingBoth ? ["overlap": "\"both\""] : [:]
        return MergeRule(both.merging(["as": "\"text\"", "unit": JSONText.string(unit.rawValue)]) { $1 })
    }
    /// Never merged inside: what one side made of it stands as a whole. For what must fit together.
    public static var register: MergeRule { kind("register") }
    /// An array of a fixed length, merged slot by slot.
    public static var tuple: MergeRule { kind("tuple") }
    /// Which side stands where both changed what is not merged inside.
    public enum Side: String, Sendable { case newer, older, max, min }
    /// The side that stands where both changed what is not merged inside; without it, the newer.
    public static func pick(_ side: Side) -> MergeRule { MergeRule(["pick": JSONText.string(side.rawValue)]) }
    /// The side whose member of this name is the larger.
    public static func pick(maxOf name: String) -> MergeRule { MergeRule(["pick": "{\"max\":\(JSONText.string(pointer(name)))}"]) }
    /// The side whose member of this name is the smaller.
    public static func pick(minOf name: String) -> MergeRule { MergeRule(["pick": "{\"min\":\(JSONText.string(pointer(name)))}"]) }
    /// What one side removed stays removed, though the other changed it; without it, the change stands.
    public static var deleteWins: MergeRule { MergeRule(["delete": "\"delete\""]) }

    private static func pointers(_ names: [String]) -> String {
        "[" + (names.isEmpty ? [""] : names.map(pointer)).map(JSONText.string).joined(separator: ",") + "]"
    }
    private static func pointer(_ name: String) -> String { name.hasPrefix("/") || name.isEmpty ? name : "/" + JSONText.segment(name) }
}

/// JSON and JSON pointers as text.
enum JSONText {
    static func string(_ text: String) -> String {
        var made = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": made += "\\\""
            case "\\": made += "\\\\"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                made += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: made.unicodeScalars.append(scalar)
            }
        }
        return made + "\""
    }

    /// A name as a segment of a JSON pointer.
    static func segment(_ name: String) -> String {
        name.reduce(into: "") { $0 += $1 == "~" ? "~0" : $1 == "/" ? "~1" : String($1) }
    }

    /// An object, its members in the order of their names.
    static func object(_ members: [String: String]) -> String {
        "{" + members.sorted { $0.key < $1.key }.map { "\(string($0.key)):\($0.value)" }.joined(separator: ",") + "}"
    }
}
