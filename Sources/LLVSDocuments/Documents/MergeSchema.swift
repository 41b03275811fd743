/// The checked rules for merging, from the value `__llvs_schema`.
public final class MergeSchema: Sendable {
    /// The id of the value that holds the rules of a store.
    public static let valueID = "__llvs_schema"
    package static let idBytes = Array(valueID.utf8)
    /// The number of the rules that this library knows.
    static let number = "1"

    /// In byte order. `shorter` is the index of the longest other prefix that this one begins with, or -1.
    private let prefixes: [(prefix: [UInt8], rules: ValueRules, shorter: Int)]

    /// - Parameters:
    ///   - bytes: the rules as JSON, at most 64 MiB.
    ///   - partly: whether to accept also the rules of one prefix (a rule, or patterns with rules), which then apply to any id.
    /// - Throws: `InvalidRules`, which says what is wrong and where; `.outOfMemory`.
    public init(_ bytes: UnsafeRawBufferPointer, partly: Bool = false) throws {
        guard let text = try JSONTreeParser.parse(bytes, copying: true, work: DocumentControl()) else {
            throw InvalidRules([], "JSON is expected: UTF-8, no name twice in one object, at most 64 MiB and 128 levels")
        }
        let reader = MergeSchemaReader(text)
        if partly, reader.isPart {
            prefixes = [([], try reader.readPart(), -1)]
            return
        }
        let sorted = try reader.read().sorted { Bytes.compare($0.prefix, $1.prefix) < 0 }
        var all: [(prefix: [UInt8], rules: ValueRules, shorter: Int)] = []
        for (prefix, rules) in sorted {
            var shorter = all.count - 1
            while shorter >= 0, !prefix.starts(with: all[shorter].prefix) { shorter = all[shorter].shorter }
            all.append((prefix, rules, shorter))
        }
        prefixes = all
    }

    /// Returns the rules for an id by its longest prefix; nil if there are none, and the value is merged as a whole.
    /// - Complexity: O(log prefixes) comparisons.
    package func rules(for id: UnsafeRawBufferPointer) -> ValueRules? {
        var low = 0, high = prefixes.count
        while low < high {
            let middle = (low + high) / 2
            if prefixes[middle].prefix.withUnsafeBytes({ Bytes.compare($0, id) }) <= 0 { low = middle + 1 } else { high = middle }
        }
        // All prefixes between a prefix of the id and the id begin with that prefix.
        guard low > 0 else { return nil }
        var at = low - 1
        let nearest = prefixes[at].prefix
        var common = 0
        while common < min(nearest.count, id.count), nearest[common] == id[common] { common += 1 }
        while at >= 0, prefixes[at].prefix.count > common { at = prefixes[at].shorter }
        return at < 0 ? nil : prefixes[at].rules
    }

    /// Returns whether a value must be merged even if both sides have the same bytes.
    public func hasCounter(for id: UnsafeRawBufferPointer) -> Bool { rules(for: id)?.hasCounter ?? false }
    /// Returns whether there are rules for an id.
    public func covers(_ id: UnsafeRawBufferPointer) -> Bool { rules(for: id) != nil }
}

/// Reads rules, and reports what is wrong first and where.
private struct MergeSchemaReader {
    /// The limit for a `key` or an `identity`.
    private static let mostPointers = 16
    /// The most bytes of a stand-in for a missing member.
    private static let mostAbsent = 1_024
    private static let members = ["as", "key", "pick", "delete", "absent", "from", "min", "max", "identity", "unit"]
    private let text: JSONText
    private let tree: JSONTree

    init(_ text: JSONText) {
        self.text = text
        tree = text.tree
    }

    /// Whether the text is the rules of one prefix: anything except an object with the number of the rules.
    var isPart: Bool { tree.kind(0) != .object || member("merge", of: 0) == nil }

    func readPart() throws -> ValueRules { try rules(0, [], []) }

    func read() throws -> [(prefix: [UInt8], rules: ValueRules)] {
        guard tree.kind(0) == .object else { throw InvalidRules([], "an object is expected") }
        guard let merge = member("merge", of: 0) else { throw InvalidRules([], "\"merge\" is missing: the number of the rules, 1") }
        guard tree.kind(merge) == .number else { throw InvalidRules(Array("/merge".utf8), "a number is expected: 1") }
        guard JSONDecimal.compare(tree.decimal(merge), Self.one) == 0 else {
            throw InvalidRules(Array("/merge".utf8), "rules of number \(string(merge)) are not known here", isUnknownMerge: true)
        }
        guard let ids = member("ids", of: 0) else { return [] }
        guard tree.kind(ids) == .object else {
            throw InvalidRules(Array("/ids".utf8), "an object is expected: prefixes of ids, and their rules")
        }
        return try tree.children(of: ids).map { value in
            let prefix = Array(tree.name(of: value))
            return (prefix, try rules(value, prefix, below(Array("/ids".utf8), value)))
        }
    }

    private static let one = Array("1".utf8).withUnsafeBytes { JSONDecimal($0) } ?? .zero

    private func rules(_ node: UInt32, _ prefix: [UInt8], _ pointer: [UInt8]) throws -> ValueRules {
        guard SchemaShape.isPatterns(node, in: tree) else {
            return ValueRules(text, [([], try rule(node, prefix, [], pointer, atTop: true))])
        }
        var patterns: Set<[PatternSegment]> = [], rules: [(pattern: [PatternSegment], rule: SchemaRule)] = [], forms: ValueForms?
        for value in tree.children(of: node) {
            let pattern = Array(tree.name(of: value)), at = below(pointer, value)
            if SchemaShape.isForms(value, in: tree) { forms = try self.forms(value, at); continue }
            let segments = try segments(pattern, at)
            guard patterns.insert(segments).inserted else { throw InvalidRules(at, "another pattern means the same") }
            rules.append((segments, try rule(value, prefix, pattern, at, atTop: pattern.isEmpty)))
        }
        if let own = forms?.at.map({ PatternSegment.name($0) }), let i = rules.firstIndex(where: { $0.pattern == own }) {
            guard rules[i].rule.meansSame(as: .ofForm, absent: text, nil) else {
                throw InvalidRules(
                    pointer + Array("/schema/at".utf8), "the member with the form's number has no other rule than that the larger wins")
            }
            rules.remove(at: i)
        }
        return ValueRules(text, rules, forms: forms)
    }

    // MARK: Forms

    private func forms(_ node: UInt32, _ pointer: [UInt8]) throws -> ValueForms {
        guard tree.kind(node) == .object else { throw InvalidRules(pointer, "an object with \"at\" and \"renames\" is expected") }
        var at: [[UInt8]]?, renames: [ValueForms.Rename]?
        for value in tree.children(of: node) {
            let place = below(pointer, value)
            switch string(tree.nameNode(of: value)) {
            case "at": at = try path(value, place)
            case "renames":
                guard tree.kind(value) == .array else { throw InvalidRules(place, "a list of renames is expected") }
                let children = tree.children(of: value)
                guard children.count <= ValueForms.mostRenames else {
                    throw InvalidRules(
                        place + Array("/\(ValueForms.mostRenames)".utf8), "at most \(ValueForms.mostRenames) renames are expected")
                }
                renames = try children.enumerated().map { try rename($1, place + Array("/\($0)".utf8)) }
            default: throw InvalidRules(place, "forms have no member of that name; they have \"at\" and \"renames\"")
            }
        }
        guard let at else {
            throw InvalidRules(pointer + Array("/at".utf8), "\"at\" is missing: a pointer to the member with the form's number")
        }
        for (i, rename) in (renames ?? []).enumerated() {
            for (name, path) in [("from", rename.from), ("path", rename.path)] where ValueForms.overlap(at, path) {
                throw InvalidRules(pointer + Array("/renames/\(i)/\(name)".utf8), "the member with the form's number is not renamed")
            }
        }
        return ValueForms(at: at, renames: renames)
    }

    private func rename(_ node: UInt32, _ pointer: [UInt8]) throws -> ValueForms.Rename {
        let expected = "an object with \"to\", a number, \"from\" and \"path\" is expected"
        guard tree.kind(node) == .object else { throw InvalidRules(pointer, expected) }
        var to: JSONDecimal?, from: [[UInt8]]?, path: [[UInt8]]?
        for value in tree.children(of: node) {
            let place = below(pointer, value)
            switch string(tree.nameNode(of: value)) {
            case "to": to = try decimal(value, place)
            case "from": from = try self.path(value, place)
            case "path": path = try self.path(value, place)
            default: throw InvalidRules(place, expected)
            }
        }
        guard let to, let from, let path else { throw InvalidRules(pointer, expected) }
        guard !ValueForms.overlap(from, path) else {
            throw InvalidRules(pointer + Array("/path".utf8), "the new place is another one, and neither is in the other")
        }
        return ValueForms.Rename(to: to, from: from, path: path)
    }

    /// Reads a pointer to a member.
    private func path(_ node: UInt32, _ pointer: [UInt8]) throws -> [[UInt8]] {
        let path = try self.pointer(node, pointer)
        guard !path.isEmpty, path.count <= ValueForms.mostSegments else {
            throw InvalidRules(pointer, "a pointer of 1 to \(ValueForms.mostSegments) segments is expected")
        }
        return path
    }

    private func rule(_ node: UInt32, _ prefix: [UInt8], _ pattern: [UInt8], _ pointer: [UInt8], atTop: Bool) throws -> SchemaRule {
        let rule = SchemaRule()
        rule.prefix = prefix
        rule.pattern = pattern
        switch tree.kind(node) {
        case .string: rule.kind = try choice(node, pointer)
        case .object:
            if let kind = member("as", of: node) { rule.kind = try choice(kind, pointer + Array("/as".utf8)) }
            try checkPlace(rule, pointer, atTop)
            for value in tree.children(of: node) { try read(value, into: rule, below(pointer, value)) }
        default: throw InvalidRules(pointer, "a rule is expected: the name of a kind, or an object")
        }
        try checkPlace(rule, pointer, atTop)
        if let min = rule.min, let max = rule.max, JSONDecimal.compare(min, max) > 0 {
            throw InvalidRules(pointer + Array("/min".utf8), "\"min\" is more than \"max\"")
        }
        return rule
    }

    private func checkPlace(_ rule: SchemaRule, _ pointer: [UInt8], _ atTop: Bool) throws {
        guard rule.kind != .bytes || atTop else {
            throw InvalidRules(pointer, "\"bytes\" is for whole values alone, under the pattern \"\"")
        }
    }

    private func read(_ value: UInt32, into rule: SchemaRule, _ pointer: [UInt8]) throws {
        let name = string(tree.nameNode(of: value))
        func only(_ kinds: [SchemaRule.Kind]) throws {
            guard kinds.contains(rule.kind) else {
                throw InvalidRules(pointer, "\"\(name)\" is for rules of the kind \(kinds.map(\.rawValue).joined(separator: " or "))")
            }
        }
        switch name {
        case "as": break
        case "key":
            try only([.list, .set])
            rule.key = try pointers(value, pointer)
        case "pick": rule.pick = try pick(value, pointer)
        case "delete": rule.deletes = try oneOf(value, ["edit", "delete"], pointer) == "delete"
        case "absent":
            // A merge may write this value many times, so it must be short.
            guard tree.text(value).count <= Self.mostAbsent else {
                throw InvalidRules(pointer, "at most \(Self.mostAbsent) bytes of JSON are expected")
            }
            rule.absent = value
        case "from":
            try only([.counter])
            rule.from = try decimal(value, pointer)
        case "min":
            try only([.counter])
            rule.min = try decimal(value, pointer)
        case "max":
            try only([.counter])
            rule.max = try decimal(value, pointer)
        case "identity": rule.identity = try pointers(value, pointer)
        case "unit":
            try only([.text])
            rule.unit = SchemaRule.Unit(rawValue: try oneOf(value, SchemaRule.Unit.allCases.map(\.rawValue), pointer)) ?? .word
        default:
            let known = Self.members.map { "\"\($0)\"" }.joined(separator: ", ")
            throw InvalidRules(pointer, "a rule has no member of that name; it may have \(known)")
        }
    }

    // MARK: Parts

    private func choice(_ node: UInt32, _ pointer: [UInt8]) throws -> SchemaRule.Kind {
        SchemaRule.Kind(rawValue: try oneOf(node, SchemaRule.Kind.allCases.map(\.rawValue), pointer)) ?? .auto
    }

    private func oneOf(_ node: UInt32, _ names: [String], _ pointer: [UInt8]) throws -> String {
        let given = tree.kind(node) == .string ? string(node) : ""
        guard names.contains(given) else {
            throw InvalidRules(pointer, "one of \(names.map { "\"\($0)\"" }.joined(separator: ", ")) is expected")
        }
        return given
    }

    private func decimal(_ node: UInt32, _ pointer: [UInt8]) throws -> JSONDecimal {
        guard tree.kind(node) == .number else { throw InvalidRules(pointer, "a number is expected") }
        return tree.decimal(node)
    }

    private func pick(_ node: UInt32, _ pointer: [UInt8]) throws -> SchemaRule.Pick {
        if tree.kind(node) == .object {
            let values = tree.children(of: node)
            guard values.count == 1, let value = values.first, ["max", "min"].contains(string(tree.nameNode(of: value))) else {
                throw InvalidRules(pointer, "an object with \"max\" or \"min\" alone is expected, which is a pointer")
            }
            return .extreme(greatest: string(tree.nameNode(of: value)) == "max", pointer: try self.pointer(value, below(pointer, value)))
        }
        switch try oneOf(node, ["newer", "older", "max", "min", "arbiter"], pointer) {
        case "older": return .older
        case "max": return .extreme(greatest: true, pointer: [])
        case "min": return .extreme(greatest: false, pointer: [])
        case "arbiter": return .arbiter
        default: return .newer
        }
    }

    private func pointers(_ node: UInt32, _ pointer: [UInt8]) throws -> [[[UInt8]]] {
        guard tree.kind(node) == .array, !tree.isEmpty(node) else {
            throw InvalidRules(pointer, "a list of one or more pointers is expected")
        }
        // Each pointer is looked up in each element.
        let children = tree.children(of: node)
        guard children.count <= Self.mostPointers else {
            throw InvalidRules(pointer + Array("/\(Self.mostPointers)".utf8), "at most \(Self.mostPointers) pointers are expected")
        }
        return try children.enumerated().map { try self.pointer($1, pointer + Array("/\($0)".utf8)) }
    }

    private func pointer(_ node: UInt32, _ pointer: [UInt8]) throws -> [[UInt8]] {
        guard tree.kind(node) == .string else {
            throw InvalidRules(pointer, "a pointer is expected: \"\", or segments that begin with \"/\"")
        }
        return try segments(Array(tree.text(node)), pointer, stars: false).map {
            if case .name(let name) = $0 { return name }
            return []
        }
    }

    /// Splits a pointer, or a pattern in which `*` is any segment and `~2` a star.
    private func segments(_ text: [UInt8], _ pointer: [UInt8], stars: Bool = true) throws -> [PatternSegment] {
        guard !text.isEmpty else { return [] }
        guard text[0] == UInt8(ascii: "/") else { throw InvalidRules(pointer, "a pointer begins with \"/\"") }
        return try text[1...].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { part in
            if stars, part.elementsEqual([UInt8(ascii: "*")]) { return .any }
            var name: [UInt8] = []
            var i = part.startIndex
            while i < part.endIndex {
                guard part[i] == UInt8(ascii: "~") else { name.append(part[i]); i += 1; continue }
                switch i + 1 < part.endIndex ? part[i + 1] : 0 {
                case 0x30: name.append(UInt8(ascii: "~"))
                case 0x31: name.append(UInt8(ascii: "/"))
                case 0x32 where stars: name.append(UInt8(ascii: "*"))
                default: throw InvalidRules(pointer, "\"~\" is written ~0, \"/\" ~1\(stars ? ", \"*\" ~2" : "")")
                }
                i += 2
            }
            return .name(name)
        }
    }

    private func member(_ name: StaticString, of node: UInt32) -> UInt32? {
        tree.member(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), of: node)
    }

    private func below(_ pointer: [UInt8], _ value: UInt32) -> [UInt8] {
        pointer + [UInt8(ascii: "/")] + JSONPointer.escaped(tree.name(of: value))
    }
    private func string(_ node: UInt32) -> String { String(decoding: tree.text(node), as: UTF8.self) }
}

/// Distinguishes rules from maps of patterns.
enum SchemaShape {
    /// Returns whether an object's members are all patterns ("" or beginning with "/"), except a member that defines forms.
    static func isPatterns(_ node: UInt32, in tree: JSONTree) -> Bool {
        guard tree.kind(node) == .object else { return false }
        return tree.children(of: node).allSatisfy {
            tree.name(of: $0).first ?? UInt8(ascii: "/") == UInt8(ascii: "/") || isForms($0, in: tree)
        }
    }

    /// Returns whether a member under a prefix defines forms.
    static func isForms(_ value: UInt32, in tree: JSONTree) -> Bool { tree.name(of: value).elementsEqual("schema".utf8) }
}
