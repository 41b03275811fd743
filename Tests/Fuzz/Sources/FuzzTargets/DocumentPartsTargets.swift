import LLVS
@testable import LLVSDocuments

/// The reader of JSON, alone and along another text.
///
///     input = (size u16 · another text) · text
enum JSONTarget {
    static let target = FuzzTarget(name: "json", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let other = input.part(), text = input.rest()
        do {
            let alone = try text.withUnsafeBytes { try canonical($0, along: nil) }
            let beside = try other.withUnsafeBytes { other in
                let read = try JSONTreeParser.parse(other, work: DocumentControl())
                return try text.withUnsafeBytes { try canonical($0, along: read?.tree) }
            }
            require(alone == beside, "a text is read alike along another one")
            guard let alone else { return }
            let again = try alone.withUnsafeBytes { try canonical($0, along: nil) }
            require(again == alone, "what is canonical is read and written the same")
            require(try DocumentValues.areSame(text, alone), "what was written is what was read")
        } catch {
            fail("reading JSON failed: \(error)")
        }
    }

    private static func canonical(_ bytes: UnsafeRawBufferPointer, along other: JSONTree?) throws -> [UInt8]? {
        let work = DocumentControl()
        guard let text = try JSONTreeParser.parse(bytes, like: other, work: work) else { return nil }
        return try CanonicalWriter.bytes(of: ValueRef(tree: 0, node: 0), in: DocumentValues([text], work: work))
    }

    @Sendable private static func seeds() -> [FuzzTarget.Seed] {
        let element = "{\"id\":1,\"t\":\"x\\u00e9\\n\",\"n\":[1e2,-0.50,null,true]}"
        let cases: [(String, String, String)] = [
            ("objects", "{\"b\":\(element),\"a\":{}}", " {\"a\" : {} ,\"b\":\(element)}\n"),
            ("elements", "[\(element),\(element),[2]]", "[[2],\(element),7,\(element),{\"id\":1}]"),
            ("levels", "[[[[[[[[1]]]]]]]]", String(repeating: "[", count: 128) + String(repeating: "]", count: 128)),
            ("names", "{}", "{\"i\":1,\"h\":2,\"g\":3,\"f\":4,\"e\":5,\"d\":6,\"c\":7,\"b\":8,\"\\u0061\":9,\"\":10}"),
            ("surrogates", "[]", "[\"\\ud83d\\ude00\",\"\u{1F600}\",\"\\ud83d\"]"),
        ]
        return cases.map { name, other, text in
            FuzzTarget.Seed(name: name, bytes: FuzzInput.part(Array(other.utf8)) + Array(text.utf8))
        }
    }
}

/// Rules of any origin, and merges by them.
///
///     input = (size u16 · rules of the other side) · rules
enum RulesTarget {
    static let target = FuzzTarget(name: "rules", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let other = input.part(), rules = input.rest()
        let isGood = isValid(rules), isOtherGood = isValid(other)
        do {
            if isGood { try mergeBy(rules) }
            for (newer, older) in [(rules, other), (other, rules)] {
                let merged = try newer.withUnsafeBytes { x in
                    try older.withUnsafeBytes { y in try SchemaValueMerger.merge(base: nil, newer: x, older: y) }
                }
                require(merged.bytes.map { isValid($0) } ?? false || !isGood || !isOtherGood, "valid rules make valid ones")
            }
        } catch let error as InvalidRules {
            require(error.isUnknownMerge && !(isGood && isOtherGood), "only rules of another number keep sides apart: \(error)")
        } catch {
            fail("rules failed: \(error)")
        }
    }

    private static func isValid(_ rules: [UInt8]) -> Bool {
        do {
            _ = try rules.withUnsafeBytes { try MergeSchema($0) }
            return true
        } catch let error as InvalidRules {
            require(!error.reason.isEmpty && (error.pointer.utf8.first ?? 0x2F) == 0x2F, "an error says where and what: \(error)")
            return false
        } catch {
            fail("reading rules failed: \(error)")
        }
    }

    /// Values merge by any valid rules.
    private static func mergeBy(_ rules: [UInt8]) throws {
        let schema = try rules.withUnsafeBytes { try MergeSchema($0) }
        let values = ["{\"a\":[1,{\"id\":1}],\"n\":1}", "{\"a\":[{\"id\":1,\"b\":2},1],\"n\":3,\"t\":\"x\"}", "{\"a\":[1],\"n\":2}"]
        for id in ["", "a", "Contact/1"] {
            let merge = DocumentMerge(schema: schema, id: Array(id.utf8)), sides = values.map { Array($0.utf8) }
            let results = try (0..<2).map { _ in
                try sides[0].withUnsafeBytes { o in
                    try sides[1].withUnsafeBytes { x in try sides[2].withUnsafeBytes { try merge.merge(base: o, newer: x, older: $0) } }
                }
            }
            require(results[0].bytes == results[1].bytes, "the same merge gives the same")
        }
    }

    @Sendable private static func seeds() -> [FuzzTarget.Seed] {
        let contact =
            "{\"merge\":1,\"ids\":{\"\":\"auto\",\"Secret/\":\"bytes\",\"Contact/\":{\"/n\":{\"as\":\"counter\",\"from\":100,\"min\":0},"
            + "\"/a\":{\"as\":\"list\",\"key\":[\"/id\"]},\"/a/*/b\":{\"pick\":\"older\"},\"/t\":{\"as\":\"text\",\"unit\":\"word\"}}}}"
        let cases: [(String, String, String)] = [
            ("kinds", contact, "{\"merge\":1,\"ids\":{\"Contact/\":{\"/a\":\"set\",\"/t\":{\"pick\":{\"max\":\"/at\"}}}}}"),
            (
                "members", "{\"merge\":1}",
                "{\"merge\":1,\"ids\":{\"a\":{\"\":{\"identity\":[\"/a\"],\"delete\":\"delete\",\"absent\":{}}}}}"
            ),
            ("wrong", contact, "{\"merge\":1,\"ids\":{\"\":{\"/a/~2/*\":{\"as\":\"list\",\"keys\":[]}}}}"),
            (
                "forms", contact,
                "{\"merge\":1,\"ids\":{\"\":{\"schema\":{\"at\":\"/v\",\"renames\":[{\"to\":2,\"from\":\"/n\",\"path\":\"/m\"}]}}}}"
            ),
            ("later-number", contact, "{\"merge\":2,\"ids\":{}}"),
        ]
        return cases.map { name, other, rules in
            FuzzTarget.Seed(name: name, bytes: FuzzInput.part(Array(other.utf8)) + Array(rules.utf8))
        }
    }
}

/// Merging texts, by lines and by words.
///
///     input = how u8 (bit 0: no line is mixed; 3: the older wins)
///             · (size u16 · base) · (size u16 · newer) · older
enum TextTarget {
    static let target = FuzzTarget(name: "text", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte(), o = input.part(), x = input.part(), y = input.rest()
        guard [o, x, y].allSatisfy({ $0.withUnsafeBytes { Bytes.isValidUTF8($0) } }) else { return }
        let merged = merge(how, o, x, y), again = merge(how, o, x, y)
        require(merged == again, "the same merge gives the same")
        require(merged.text.withUnsafeBytes { Bytes.isValidUTF8($0) }, "texts make a text")
        require(merged.text.count <= 2 * (o.count + x.count + y.count), "nothing is invented")
        for part in merged.conflicts {
            let end = part.start + part.result.count
            // (The part may have a line end that the text does not have.)
            let there = merged.text[part.start..<min(end, merged.text.count)]
            require(there.elementsEqual(part.result.prefix(there.count)), "a conflict's result is in the text")
            require(end <= merged.text.count + 2, "a conflict's result does not reach beyond the text")
        }
        require(merge(how, o, o, y).text == y && merge(how, o, x, o).text == x, "a side that changed nothing gives way")
        require(merge(how, o, x, x).text == x, "an edit that both made occurs once")
    }

    private static func merge(_ how: UInt8, _ o: [UInt8], _ x: [UInt8], _ y: [UInt8]) -> TextMerge.Merged {
        var steps = TextAlignment.stepLimit
        let unit: SchemaRule.Unit = how & 1 == 1 ? .line : .word
        do {
            return try o.withUnsafeBytes { o in
                try x.withUnsafeBytes { x in
                    try y.withUnsafeBytes { y in
                        try TextMerge.merge(
                            o, x, y, unit: unit, newerWins: how & 8 == 0, steps: &steps, work: DocumentControl())
                    }
                }
            }
        } catch {
            fail("merging texts failed: \(error)")
        }
    }

    @Sendable private static func seeds() -> [FuzzTarget.Seed] {
        let cases: [(String, UInt8, String, String, String)] = [
            ("words", 0, "The cat sat on the mat.", "The cat sat down on the mat.", "A dog sat on the mat, too."),
            ("lines", 1, "a\nb\nc\nd\n", "a\nx\nc\nd\ne\n", "b\na\nc\nc\nd\n"),
            ("both-insert", 0, "Buy:\n", "Buy:\n* milk\n", "Buy:\n* two breads\n"),
            ("removed-and-changed", 0, "a\nb one\n\nc\n", "a\nc\n", "a\nb two\n\nc\n"),
            ("older-wins", 8, "one two three", "one 2 three", "one ii three"),
            ("line-ends", 8, "a b\nc\n", "a b\r\nc\r\n", "a x\nc d\n"),
            ("clusters", 0, "e\u{301}\u{1F1E6}\u{1F1E7}", "e\u{301}\u{200D}x\u{1F1E7}", "\u{200D}\u{1F468}\u{200D}\u{1F469}\u{FE0F}"),
            ("repeated", 0, "a a a a b a a a", "a a a b a a a a", "a a b b a a"),
        ]
        return cases.map { name, how, base, newer, older in
            FuzzTarget.Seed(
                name: name, bytes: [how] + [base, newer].flatMap { FuzzInput.part(Array($0.utf8)) } + Array(older.utf8))
        }
    }
}
