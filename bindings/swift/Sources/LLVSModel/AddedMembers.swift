import LLVS

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The counters and texts of a model, which an upgrade must not change.
///
/// A merge adds what each side added to a counter, or wrote into a text, since the common ancestor. If two devices upgrade one value, each
/// would add what the upgrade made. So an upgrade may only produce what a merge reads from the old value already: its members, members
/// renamed by the rules, or the defaults of absent members.
struct AddedMembers {
    /// A disallowed result of an upgrade: its place, and what the user can do.
    struct Problem {
        let description: String
        let member: String
    }

    private struct Rule {
        var segments: [Substring]
        var members: [String: JSONValue]
        var kind: String { if case .string(let name)? = members["as"] { name } else { "auto" } }
        var isAdded: Bool { kind == "counter" || kind == "text" }
    }

    private let rules: [Rule]
    /// The rules, if they contain renames.
    private let renames: (rules: [UInt8], id: [UInt8])?

    /// Returns nil if the model has no counters and texts.
    init?<Model: StorableModel>(_ model: Model.Type) {
        var found: [String: [String: String]] = [:]
        for pattern in Model.allPatterns { found[pattern.pointer] = pattern.rule }
        for (pattern, given) in Model.rules { found[pattern] = given.together.rule }
        rules = found.filter { $0.key.hasPrefix("/") }.map { pattern, members in
            Rule(
                segments: pattern.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map { $0 },
                members: members.compactMapValues { try? JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) })
        }
        guard rules.contains(where: \.isAdded) else { return nil }
        renames = found["schema"]?["renames"].map { _ in (Model.mergeRules, Array(Model.idPrefix.utf8)) }
    }

    /// Returns what an upgrade made that cannot be merged; nil if everything can.
    func problem(in bytes: [UInt8], after: [String: JSONValue]) throws -> Problem? {
        let before = try JSONDecoder().decode(JSONValue.self, from: Data(renamed(bytes, after)))
        return problem(before, .object(after), rules, [])
    }

    /// Returns the old value with the renames of the rules applied, as a merge with the upgraded value does.
    private func renamed(_ bytes: [UInt8], _ after: [String: JSONValue]) throws -> [UInt8] {
        guard let renames else { return bytes }
        let schema: MergeSchema
        do { schema = try renames.rules.withUnsafeBytes { try MergeSchema($0) } } catch let problem as InvalidRules {
            throw problem.storeError
        }
        let newest = try [after, after.merging(["": .null]) { $1 }].map { Array(try JSONEncoder().encode($0)) }
        let merged = try newest[0].withUnsafeBytes { base in
            try newest[1].withUnsafeBytes { newer in
                try bytes.withUnsafeBytes { try DocumentMerge(schema: schema, id: renames.id).merge(base: base, newer: newer, older: $0) }
            }
        }
        return merged.records.contains { $0.kind == .notJSON } ? bytes : merged.bytes ?? bytes
    }

    private func problem(_ before: JSONValue?, _ after: JSONValue?, _ rules: [Rule], _ path: [String]) -> Problem? {
        // The most specific rule.
        let rule = rules.filter { $0.segments.count == path.count }.max { one, other in
            one.segments.map { $0 == "*" ? 0 : 1 }.lexicographicallyPrecedes(other.segments.map { $0 == "*" ? 0 : 1 })
        }
        if let rule, rule.isAdded { return changed(before, after, rule, path) }
        let deeper = rules.filter { $0.segments.count > path.count }
        guard rule?.kind != "register", deeper.contains(where: \.isAdded) else { return nil }
        for (name, old, new) in pairs(before, after, rule) {
            let part = JSONText.patternSegment(name)
            let there = deeper.filter { $0.segments[path.count] == "*" || $0.segments[path.count] == part }
            if let found = problem(old, new, there, path + [name]) { return found }
        }
        return nil
    }

    /// Pairs the old and new contents of each name or index.
    private func pairs(_ before: JSONValue?, _ after: JSONValue?, _ rule: Rule?) -> [(String, JSONValue?, JSONValue?)] {
        switch after {
        case .object(let members):
            var was: [String: JSONValue] = [:]
            if case .object(let old) = before { was = old }
            return Set(members.keys).union(was.keys).sorted().map { ($0, was[$0], members[$0]) }
        case .array(let elements):
            var was: [JSONValue] = []
            if case .array(let old) = before { was = old }
            if rule?.kind == "tuple" {
                return elements.enumerated().map { index, element in ("\(index)", index < was.count ? was[index] : nil, element) }
            }
            var pointers: [String]?
            if case .array(let names)? = rule?.members["key"] {
                pointers = names.compactMap { if case .string(let name) = $0 { name } else { nil } }
            }
            let places = Dictionary(keyed(was, pointers).map { ($0.key, was[$0.index]) }) { first, _ in first }
            return keyed(elements, pointers).map { ("\($0.index)", places[$0.key], elements[$0.index]) }
        default: return []
        }
    }

    /// A key, and how many earlier elements have the same key.
    private struct Place: Hashable { var key: [JSONValue], occurrence: Int }

    /// Returns the elements that have a key. Elements without a key are identified by their whole contents, and not merged inside.
    private func keyed(_ elements: [JSONValue], _ pointers: [String]?) -> [(index: Int, key: Place)] {
        var counts: [[JSONValue]: Int] = [:]
        return elements.enumerated().compactMap { index, element in
            guard let key = key(element, pointers ?? ["/id"]) else { return nil }
            // If no key is declared, an id is text or a number.
            switch key.first {
            case .null where pointers == nil, .bool where pointers == nil, .array where pointers == nil, .object where pointers == nil:
                return nil
            default: break
            }
            let occurrence = counts[key, default: 0]
            counts[key] = occurrence + 1
            return (index, Place(key: key, occurrence: occurrence))
        }
    }

    private func key(_ element: JSONValue, _ pointers: [String]) -> [JSONValue]? {
        var found: [JSONValue] = []
        for pointer in pointers {
            var value = element
            for part in pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
                guard case .object(let members) = value, let member = members.first(where: { JSONText.segment($0.key) == part }) else {
                    return nil
                }
                value = member.value
            }
            found.append(value)
        }
        return found
    }

    private func changed(_ before: JSONValue?, _ after: JSONValue?, _ rule: Rule, _ path: [String]) -> Problem? {
        let isText = rule.kind == "text"
        let absent = rule.members["absent"] ?? (isText ? "" : rule.members["from"] ?? 0)
        let (old, new) = (before ?? absent, after ?? absent)
        if Self.equal(old, new) { return nil }
        let pointer = path.map { "/" + JSONText.segment($0) }.joined()
        let (kind, remedy) =
            isText
            ? ("a text", "or leave the new text empty, and show the old one while it is")
            : ("a counter", "or let the counter begin with its default, and show the sum of it and the old member")
        return Problem(
            description: "the member \"\(pointer)\" is \(kind) that the upgrade makes \(JSONText.value(new)) of \(JSONText.value(old)): "
                + "two devices that upgrade the value both would each add that. Name a member that has only another name under "
                + "\"schema\" in rules (docs/merging.md), \(remedy)",
            member: pointer)
    }

    private static func equal(_ one: JSONValue, _ other: JSONValue) -> Bool {
        switch (one, other) {
        case (.int(let whole), .double(let number)), (.double(let number), .int(let whole)): Double(whole) == number
        default: one == other
        }
    }
}
