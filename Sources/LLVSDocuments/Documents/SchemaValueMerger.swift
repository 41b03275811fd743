/// Merges the value `__llvs_schema` by a built-in rule: by the members of objects down to each rule and index. These are merged as a
/// whole, so that two edits of one rule never mix.
public enum SchemaValueMerger {
    /// Merges two sides of the rules; nil is absent. If the result is not valid, the newer of the valid sides wins, with a record.
    /// - Throws: `InvalidRules` if a side has a number that this library does not know. Then nothing may be merged. Also the errors of
    ///   `check`, and `.outOfMemory`.
    public static func merge(
        base: UnsafeRawBufferPointer?, newer: UnsafeRawBufferPointer?, older: UnsafeRawBufferPointer?, check: (() throws -> Void)? = nil
    ) throws -> MergedValue {
        for side in [newer, older] {
            if let problem = try problem(side), problem.isUnknownMerge { throw problem }
        }
        let merge = DocumentMerge(rules: try rules(newer, older), check: check)
        let merged = try merge.merge(base: base, newer: newer, older: older)
        let isValid = try merged.bytes.map { bytes in try bytes.withUnsafeBytes { try problem($0) == nil } } ?? true
        guard !isValid else { return merged }
        let newerStands = try newer != nil && (problem(newer) == nil || older == nil || problem(older) != nil)
        return try DocumentMerge(rules: whole).picking(base: base, newer: newer, older: older, newerStands: newerStands)
    }

    /// Returns a record for invalid rules that won, and the rules that apply instead of them; nil if none do.
    package static func record(notValid: UnsafeRawBufferPointer, standing: UnsafeRawBufferPointer?) throws -> ConflictRecord {
        let picked = try DocumentMerge(rules: whole).picking(base: nil, newer: notValid, older: standing, newerStands: false)
        return picked.records[0]
    }

    private static func problem(_ bytes: UnsafeRawBufferPointer?) throws -> InvalidRules? {
        guard let bytes else { return nil }
        do {
            _ = try MergeSchema(bytes)
            return nil
        } catch let problem as InvalidRules {
            return problem
        }
    }

    private static let whole = ValueRules()

    /// Returns the rule to merge two sides by: it depends on which prefixes have patterns on both sides.
    private static func rules(_ newer: UnsafeRawBufferPointer?, _ older: UnsafeRawBufferPointer?) throws -> ValueRules {
        let parts = try [newer, older].map { try $0.map(mapped) ?? [] }
        let inside = parts[0].intersection(parts[1])
        let ids = PatternSegment.name(Array("ids".utf8))
        func rule(_ kind: SchemaRule.Kind) -> SchemaRule {
            let rule = SchemaRule()
            rule.kind = kind
            rule.isBuiltIn = true
            return rule
        }
        var rules: [(pattern: [PatternSegment], rule: SchemaRule)] = [([.any, .any], rule(.register))]
        for prefix in inside {
            rules.append(([ids, .name(prefix)], rule(.auto)))
            rules.append(([ids, .name(prefix), .any], rule(.register)))
        }
        return ValueRules(nil, rules)
    }

    /// Returns the prefixes that have patterns.
    private static func mapped(_ bytes: UnsafeRawBufferPointer) throws -> Set<[UInt8]> {
        guard let tree = try JSONTreeParser.parse(bytes, copying: true, work: DocumentControl()) else { return [] }
        return withExtendedLifetime(tree) { text in
            let tree = text.tree, name: StaticString = "ids"
            guard let ids = tree.member(UnsafeRawBufferPointer(start: name.utf8Start, count: 3), of: 0), tree.kind(ids) == .object else {
                return []
            }
            return Set(tree.children(of: ids).filter { SchemaShape.isPatterns($0, in: tree) }.map { Array(tree.name(of: $0)) })
        }
    }
}
