/// Adds rules to those of a store. New rules are added, existing ones prevail, and contradictions are reported.
package enum SchemaRegistration {
    /// - Parameters:
    ///   - given: valid rules.
    ///   - held: the valid rules of the store, or nil if there are none.
    /// - Returns: the rules for the store, which are `held` itself if nothing is added, and the contradictions. In each of these, `newer`
    ///   is the store's rule, which prevails, and `older` the given one.
    /// - Throws: `InvalidRules` if the given rules are not valid, or both together are not; `.outOfMemory`.
    package static func adding(
        _ given: UnsafeRawBufferPointer, to held: UnsafeRawBufferPointer?
    ) throws -> (bytes: [UInt8], contradictions: [ConflictRecord]) {
        _ = try MergeSchema(given)
        try IndexDeclarations.check(given)
        guard let held else { return (Array(given), []) }
        let work = DocumentControl()
        let texts = try [held, given].map { bytes -> JSONText in
            guard let text = try JSONTreeParser.parse(bytes, work: work) else { throw InvalidRules([], "JSON is expected") }
            return text
        }
        // If the other side has patterns for a prefix, write a rule for the whole value as a pattern.
        let mapped = texts.map { Set(prefixes(of: $0.tree, mapped: true)) }, plain = texts.map { Set(prefixes(of: $0.tree, mapped: false)) }
        let known = try texts.map { try forms(in: $0, work) }
        let sides = try [0, 1].map { side in
            // It is no contradiction if the other side adds renames to the member with the form's number, or to other renames, or if one
            // side defines no renames.
            let told = known[side].filter { prefix, own in
                known[1 - side][prefix].map { own.at == $0.at && own.isAdded(to: $0) } ?? false
            }
            // The larger number of the form always wins. If the other side has another rule for that member, both cannot apply, and the
            // store's rule prevails.
            let disputed = try known[side].filter { prefix, own in try hasOtherRule(texts[1 - side], prefix, own.at, work) }
            return try spread(
                texts[side], plain[side].intersection(mapped[1 - side]),
                withoutForms: Set(told.keys).union(side == 1 ? Array(disputed.keys) : []), rulesOfForms: disputed.mapValues(\.at), work)
        }
        return try sides[0].withUnsafeBytes { own in
            try sides[1].withUnsafeBytes { other in
                let merged = try SchemaValueMerger.merge(base: nil, newer: own, older: other)
                let contradictions = try merged.records.filter { try !meansSame($0) }
                let bytes = merged.bytes ?? sides[0]
                if try DocumentValues.areSame(bytes, sides[0]) { return (Array(held), contradictions) }
                try bytes.withUnsafeBytes { _ = try MergeSchema($0) }
                // Merging two devices' rules may have exceeded the limit before. That is no reason to refuse other rules.
                if (try? IndexDeclarations.check(held)) != nil { try bytes.withUnsafeBytes { try IndexDeclarations.check($0) } }
                return (bytes, contradictions)
            }
        }
    }

    /// Returns the prefixes that have patterns, or those that have one rule.
    private static func prefixes(of tree: JSONTree, mapped: Bool) -> [[UInt8]] {
        guard let ids = ids(of: tree) else { return [] }
        return tree.children(of: ids).filter { SchemaShape.isPatterns($0, in: tree) == mapped }.map { Array(tree.name(of: $0)) }
    }

    private static func ids(of tree: JSONTree) -> UInt32? { member("ids", of: 0, in: tree) }

    private static func member(_ name: StaticString, of node: UInt32, in tree: JSONTree) -> UInt32? {
        tree.member(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), of: node)
    }

    /// The member with the form's number, and the renames that depend on it.
    private struct Forms {
        let at: [UInt8]
        /// Each as canonical JSON; nil if none are defined.
        let renames: Set<[UInt8]>?

        /// Returns whether the other set of rules has all renames of this one, and more.
        func isAdded(to other: Forms) -> Bool {
            guard let all = other.renames else { return false }
            return renames.map { $0.isStrictSubset(of: all) } ?? true
        }
    }

    /// Returns the definitions of forms, by prefix.
    private static func forms(in text: JSONText, _ work: DocumentControl) throws -> [[UInt8]: Forms] {
        let tree = text.tree
        guard let ids = ids(of: tree) else { return [:] }
        let values = DocumentValues([text], work: work)
        var found: [[UInt8]: Forms] = [:]
        for prefix in tree.children(of: ids) where SchemaShape.isPatterns(prefix, in: tree) {
            guard let forms = member("schema", of: prefix, in: tree), let at = member("at", of: forms, in: tree) else { continue }
            let renames = try member("renames", of: forms, in: tree).map { list in
                try Set(
                    tree.children(of: list).map {
                        try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: $0), in: values, normalises: true)
                    })
            }
            found[Array(tree.name(of: prefix))] = Forms(at: Array(tree.text(at)), renames: renames)
        }
        return found
    }

    /// Returns whether rules have their own rule for the member with the form's number, by which the larger number does not win.
    private static func hasOtherRule(_ text: JSONText, _ prefix: [UInt8], _ at: [UInt8], _ work: DocumentControl) throws -> Bool {
        let tree = text.tree
        guard !at.contains(UInt8(ascii: "*")), let ids = ids(of: tree),
            let patterns = prefix.withUnsafeBytes({ tree.member($0, of: ids) }), SchemaShape.isPatterns(patterns, in: tree),
            let rule = at.withUnsafeBytes({ tree.member($0, of: patterns) })
        else { return false }
        let bytes = try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: rule), in: DocumentValues([text], work: work))
        let schema = try bytes.withUnsafeBytes { try MergeSchema($0, partly: true) }
        guard let found = schema.rules(for: UnsafeRawBufferPointer(start: nil, count: 0)), let own = found.rules.first else { return false }
        return !own.meansSame(as: .ofForm, absent: found.text, nil)
    }

    /// Returns the rules with some prefixes written as `{"": rule}`, some without the definition of forms, and some with an explicit rule
    /// for the member with the form's number.
    private static func spread(
        _ text: JSONText, _ prefixes: Set<[UInt8]>, withoutForms: Set<[UInt8]>, rulesOfForms: [[UInt8]: [UInt8]], _ work: DocumentControl
    ) throws -> [UInt8] {
        let tree = text.tree
        let isAsItIs = prefixes.isEmpty && withoutForms.isEmpty && rulesOfForms.isEmpty
        let ids = isAsItIs ? nil : ids(of: tree), values = DocumentValues([text], work: work)
        guard let ids else { return Array(tree.bytes) }
        func written(_ node: UInt32) throws -> [UInt8] { try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: node), in: values) }
        func object(
            _ node: UInt32, where isToBeThere: (UInt32) -> Bool = { _ in true }, _ value: (UInt32) throws -> [UInt8]
        ) throws -> [UInt8] {
            var out: [UInt8] = []
            for child in tree.children(of: node) where isToBeThere(child) {
                out.append(UInt8(ascii: out.isEmpty ? "{" : ","))
                CanonicalText.append(tree.name(of: child), to: &out)
                out += try [UInt8(ascii: ":")] + value(child)
            }
            return out.isEmpty ? Array("{}".utf8) : out + [UInt8(ascii: "}")]
        }
        return try object(0) { child in
            guard child == ids else { return try written(child) }
            return try object(ids) { rule in
                let name = Array(tree.name(of: rule))
                if withoutForms.contains(name) || rulesOfForms[name] != nil {
                    let isWithout = withoutForms.contains(name)
                    var out = try object(rule, where: { !isWithout || !SchemaShape.isForms($0, in: tree) }, written)
                    if let at = rulesOfForms[name], at.withUnsafeBytes({ tree.member($0, of: rule) }) == nil {
                        out.removeLast()
                        if out.count > 1 { out.append(UInt8(ascii: ",")) }
                        at.withUnsafeBytes { CanonicalText.append($0, to: &out) }
                        out += Array(#":{"pick":"max"}}"#.utf8)
                    }
                    return out
                }
                let bytes = try written(rule)
                return prefixes.contains(name) ? Array("{\"\":".utf8) + bytes + [UInt8(ascii: "}")] : bytes
            }
        }
    }

    /// Returns whether both sides of a record are one rule in two spellings.
    private static func meansSame(_ record: ConflictRecord) throws -> Bool {
        let ids = Array("[\"ids\",".utf8)
        guard record.path.starts(with: ids), let x = record.newer, let y = record.older else { return false }
        // The definition of forms is not a rule.
        if record.path.count > ids.count + 9, record.path.suffix(10).elementsEqual(",\"schema\"]".utf8) { return false }
        let rules = try [x, y].map { bytes in try bytes.withUnsafeBytes { try MergeSchema($0, partly: true) } }
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        guard let a = rules[0].rules(for: none), let b = rules[1].rules(for: none) else { return false }
        return a.rules.count == 1 && b.rules.count == 1 && a.rules[0].meansSame(as: b.rules[0], absent: a.text, b.text)
    }
}

extension SchemaRule {
    /// Returns whether values are merged the same by both. `text` and `other` are the texts of the two rules.
    func meansSame(as rule: SchemaRule, absent text: JSONText?, _ other: JSONText?) -> Bool {
        func stand(_ rule: SchemaRule, _ text: JSONText?) -> [UInt8]? {
            guard let node = rule.absent, let text else { return nil }
            return try? CanonicalWriter.bytes(
                of: ValueRef(tree: 0, node: node), in: DocumentValues([text], work: DocumentControl()), normalises: true)
        }
        return kind == rule.kind && key == rule.key && pick == rule.pick && deletes == rule.deletes && from == rule.from && min == rule.min
            && max == rule.max && identity == rule.identity && unit == rule.unit
            && stand(self, text) == stand(rule, other)
    }
}
