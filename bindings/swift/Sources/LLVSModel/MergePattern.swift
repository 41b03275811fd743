/// A rule and its place: a JSON pointer in the value, in which "*" matches any member or element.
public struct MergePattern: Sendable, Hashable {
    let pointer: String
    /// JSON text by name; empty if it says only that the member exists.
    var rule: [String: String]
    /// The reason why the rule is invalid; nil if it is valid.
    var problem: String?
    /// Whether the rule only repeats the default of the type: elements are identified by `id`.
    var isByID = false
    /// The structure that contains itself at this place.
    var repeated: ObjectIdentifier?

    /// The patterns of a member, from its type and `@Merge`. Called by code of `@Model`.
    /// - Parameters:
    ///   - name: its name in the value.
    ///   - type: its type.
    ///   - rules: the arguments of `@Merge`.
    ///   - initial: its default, the initial value of a counter.
    public static func member<Member>(_ name: String, _ type: Member.Type, _ rules: [MergeRule], from initial: Member?) -> [MergePattern] {
        var own = MergePattern(pointer: "/" + JSONText.patternSegment(name), rule: [:])
        let given = rules.together, implied = MemberType.rule(of: type)
        own.rule = implied.merging(given.rule) { $1 }
        if own.rule["key"] != nil, own.rule["as"] == nil { own.rule["as"] = "\"list\"" }
        if given.rule["key"] == nil, own.kind != "list", own.kind != "set" { own.rule["key"] = nil }
        if own.kind == "auto" { own.rule["as"] = nil }
        own.isByID = given.rule.isEmpty && implied["key"] != nil
        let contradicted = given.contradicted.map { "the rules say different things of \"\($0)\"; keep one" }
        own.problem =
            rules.lazy.compactMap(\.problem).first ?? contradicted ?? own.mismatch(type) ?? own.uselessRemoval(type, given.rule)
            ?? initial.flatMap { own.otherAbsent($0, given.rule) ?? own.begin(with: $0) }
        let isWhole = ["register", "counter", "text"].contains(own.kind) || (own.kind == "set" && own.rule["key"] == nil)
        let inside = isWhole ? [] : MemberType.inside(type)
        return [own] + inside.map { $0.below(own.pointer) }
    }

    /// The type of a default. Called by code of `@Model`.
    public static func type<Member>(of initial: @autoclosure () -> Member) -> Member.Type { Member.self }

    /// The name of the kind; "auto" if none is given.
    private var kind: String { rule["as"].map { String($0.dropFirst().dropLast()) } ?? "auto" }

    /// Uses the default as the initial value of counters and texts; returns why that is impossible.
    private mutating func begin(with initial: Any) -> String? {
        if kind == "counter", let number = MemberType.number(initial) {
            if let from = rule["from"] {
                guard let begins = Double(from), begins.isFinite, begins != Double(number) else { return nil }
                return "the counter begins with \(from), and its member with \(number): what is added would be added to two numbers. Leave "
                    + "from: out, and make it the default"
            }
            if Double(number) != 0 { rule["from"] = number }
        }
        if kind == "text", rule["absent"] == nil, let text = initial as? String, !text.isEmpty {
            let absent = JSONText.string(text)
            guard absent.utf8.count <= 1_024 else {
                return "the default of a text is 1,024 bytes of JSON at most; make it \"\", and show the longer one where it is"
            }
            rule["absent"] = absent
        }
        return nil
    }

    /// Returns why a removal cannot win: every save writes the member.
    private func uselessRemoval(_ type: Any.Type, _ given: [String: String]) -> String? {
        guard given["delete"] == "\"delete\"", !MemberType.isOptional(type) else { return nil }
        let inside = "; for what is removed from it, give \"\(pointer)/*\" the rule in the static member rules"
        return "deleteWins is about what one side removed, and this member is always written. Make it optional"
            + (MemberType.holdsParts(type) ? inside : "")
    }

    /// Returns why the value of a missing member is invalid: it would be read as another value.
    private func otherAbsent(_ initial: Any, _ given: [String: String]) -> String? {
        guard let absent = given["absent"], let written = MemberType.written(initial), let wanted = JSONText.parsed(absent),
            written != .null, written != wanted, MemberType.read(absent, as: initial).flatMap(MemberType.written) != written
        else {
            return nil
        }
        return "where the member is missing it is merged as \(absent), and read as its default, \(JSONText.value(written)). Let both be "
            + "the same"
    }

    /// Returns why the rule is not for members of a type.
    private func mismatch(_ type: Any.Type) -> String? {
        if rule["key"] != nil, kind != "list", kind != "set" { return "a key is for a list or a set, and the rule is \"\(kind)\"" }
        let wanted: JSONShape? =
            switch kind {
            case "counter": .number
            case "text": .string
            case "set", "list", "tuple": .array
            default: nil
            }
        guard let wanted, let found = MemberType.shape(of: type), found != wanted else { return nil }
        return "the rule \"\(kind)\" is for \(wanted.rawValue), and the member is of the type \(type)"
    }

    func below(_ place: String) -> MergePattern {
        var moved = MergePattern(pointer: place + pointer, rule: rule, problem: problem)
        (moved.isByID, moved.repeated) = (isByID, repeated)
        return moved
    }

    /// Returns the patterns of a structure. If it contains itself, it cannot have rules for members, since a pattern has a fixed depth.
    static func patterns(of part: any ModelPart.Type) -> [MergePattern] {
        let id = ObjectIdentifier(part)
        if Nesting.above.contains(id) {
            var again = MergePattern(pointer: "", rule: [:])
            again.repeated = id
            return [again]
        }
        var found = Nesting.$above.withValue(Nesting.above + [id]) { part.mergePatterns }
        guard found.contains(where: { $0.repeated == id }) else { return found }
        // Elements with an `id` are identified by it without a rule.
        found.removeAll { $0.repeated == id || $0.isByID }
        for index in found.indices where found[index].problem == nil && found[index].repeated == nil && !found[index].rule.isEmpty {
            found[index].problem =
                "\(part) holds itself, and can have no rules inside, since a pattern has a fixed depth; leave the rule "
                + "out (make a set an array), or use one structure for each depth"
        }
        return found
    }
}

/// The structures whose patterns are being collected, from the outermost on.
private enum Nesting {
    @TaskLocal static var above: [ObjectIdentifier] = []
}
