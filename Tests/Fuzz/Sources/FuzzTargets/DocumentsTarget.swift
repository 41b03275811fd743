import LLVS
@testable import LLVSDocuments

/// Merging inside values: the reader of JSON, the rules, and the merge of lists, sets, texts and counters.
///
///     input = how u8 (bit 0: base absent; 1: newer absent; 2: older absent; 3: an application saves; 4: the values are rules)
///             · (size u16 · rules) · (size u16 · base) · (size u16 · newer) · older
enum DocumentsTarget {
    static let target = FuzzTarget(name: "documents", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte(), rules = input.part()
        let base = input.part(), newer = input.part(), older = input.rest()
        let sides = (how & 1 != 0 ? nil : base, how & 2 != 0 ? nil : newer, how & 4 != 0 ? nil : older)
        do {
            if how & 16 != 0 { return try mergeRules(sides) }
            let schema = try rules.withUnsafeBytes { try MergeSchema($0, partly: true) }
            try merge(schema, sides, saving: how & 8 != 0)
        } catch let error as InvalidRules {
            require(!error.reason.isEmpty && (error.pointer.utf8.first ?? 0x2F == 0x2F), "an error says where and what: \(error)")
        } catch {
            fail("a merge failed: \(error)")
        }
    }

    private typealias Sides = ([UInt8]?, [UInt8]?, [UInt8]?)

    private static func merge(_ schema: MergeSchema, _ sides: Sides, saving: Bool) throws {
        let plain = DocumentMerge(schema: schema)
        let merge = saving ? plain.saving : plain
        let merged = try with(sides) { try merge.merge(base: $0, newer: $1, older: $2, tellsContested: true) }
        let again = try with(sides) { try merge.merge(base: $0, newer: $1, older: $2) }
        require(merged.bytes == again.bytes && merged.digest(id: []) == again.digest(id: []), "the same merge gives the same")
        _ = try with(sides) { try merge.merge(base: $0, newer: $1, older: $2, contested: merged.contested) }
        for record in merged.records { checkJSON(record.json(id: Array("id".utf8)), "a record") }
        // A result can be merged with itself as a side that changed nothing.
        if merged.bytes != nil, sides.1 != nil {
            let after = try with((merged.bytes, sides.1, merged.bytes)) { try plain.merge(base: $0, newer: $1, older: $2) }
            require(after.bytes == sides.1, "a side that changed nothing gives way")
        }
        guard let bytes = merged.bytes, merged.source == .computed else { return }
        guard let first = bytes.first, first == UInt8(ascii: "{") || first == UInt8(ascii: "["), sides.1?.first == first,
            sides.2?.first == first
        else {
            return
        }
        if bytes.withUnsafeBytes({ Bytes.isValidUTF8($0) }), schema.isAuto { checkJSON(bytes, "a merged value") }
    }

    private static func mergeRules(_ sides: Sides) throws {
        let merged = try with(sides) { try SchemaValueMerger.merge(base: $0, newer: $1, older: $2) }
        let isRules = { (bytes: [UInt8]?) in bytes.map { (try? $0.withUnsafeBytes { try MergeSchema($0) }) != nil } ?? true }
        require(isRules(merged.bytes) || (!isRules(sides.1) || !isRules(sides.2)), "rules that are valid make rules that are valid")
    }

    /// Output is read again, and written to the same bytes.
    private static func checkJSON(_ bytes: [UInt8], _ what: String) {
        bytes.withUnsafeBytes { raw in
            guard let text = try? JSONTreeParser.parse(raw, work: DocumentControl()) else {
                // A record may be nested more deeply than values may.
                return require(bytes.count > 128, "\(what) is not JSON")
            }
            let values = DocumentValues([text], work: DocumentControl()), root = ValueRef(tree: 0, node: 0)
            require((try? CanonicalWriter.bytes(of: root, in: values)) == bytes, "\(what) is not canonical")
        }
    }

    private static func with<R>(
        _ sides: Sides, _ body: (UnsafeRawBufferPointer?, UnsafeRawBufferPointer?, UnsafeRawBufferPointer?) throws -> R
    ) throws -> R {
        func one<T>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) throws -> T) throws -> T {
            guard let bytes else { return try body(nil) }
            return try bytes.withUnsafeBytes { try body($0) }
        }
        return try one(sides.0) { o in try one(sides.1) { x in try one(sides.2) { y in try body(o, x, y) } } }
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        let object = "{\"a\":[1,{\"id\":1,\"t\":\"x\\u00e9\"},[0.5]],\"n\":1e2,\"b\":{\"c\":null}}"
        let rules =
            "{\"merge\":1,\"ids\":{\"\":{\"\":\"auto\",\"/n\":{\"as\":\"counter\",\"min\":0},\"/a\":{\"as\":\"list\","
            + "\"key\":[\"/id\"]},\"/*/c\":{\"absent\":{}}}}}"
        let cases: [(String, UInt8, String, String, String, String)] = [
            ("objects", 0, "\"auto\"", object, "{\"a\":[1],\"n\":1e2,\"b\":{}}", "{\"n\":3,\"z\":true,\"a\":[1,{\"id\":1,\"t\":2}]}"),
            ("rules", 0, rules, object, "{\"n\":7,\"a\":[{\"id\":2}]}", "{\"n\":1,\"a\":[{\"id\":1,\"t\":\"\"},{\"id\":1}]}"),
            ("lists", 0, "\"list\"", "[1,2,3,4,5]", "[2,1,3,9,5]", "[5,1,2,8,4]"),
            ("sets", 0, "{\"as\":\"set\",\"key\":[\"/k\",\"\"]}", "[1,1.0,2]", "[3,{\"k\":1}]", "[\"a\",1]"),
            ("tuples", 0, "{\"\":\"tuple\",\"/0\":\"text\"}", "[\"a b\",1]", "[\"a c\",1]", "[\"d b\",2]"),
            ("words", 0, "\"text\"", "the cat sat.\r\n", "the dog sat.\n", "A cat \u{301}sat \u{1F1E6}\u{1F1E7} \u{200D}x\r\n"),
            ("lines", 0, "{\"as\":\"text\",\"unit\":\"line\",\"overlap\":\"both\"}", "a\nb\nc\n", "a\nx\nc\nd\n", "b\na\nc\n"),
            ("characters", 0, "{\"as\":\"text\",\"unit\":\"char\",\"pick\":\"older\"}", "123456", "145236", "124536"),
            ("counters", 0, "\"counter\"", "10", "1e3", "-0.5"),
            ("saving", 8, "\"register\"", "{\"a\":1}", "{\"a\":2}", "{\"a\":1,\"b\":{}}"),
            ("schemas", 16, "", "{\"merge\":1}", rules, "{\"merge\":1,\"ids\":{\"\":{\"/n\":\"set\"},\"b\":\"bytes\"}}"),
            (
                "forms", 0, "{\"schema\":{\"at\":\"/v\",\"renames\":[{\"to\":2,\"from\":\"/a\",\"path\":\"/b/c\"}]}}", "{\"a\":1}",
                "{\"v\":2,\"b\":{\"c\":1,\"d\":2}}", "{\"v\":1,\"a\":2}"
            ),
            ("absent", 1, "\"auto\"", "", "{\"a\":1}", "{\"b\":1}"),
            ("nothing", 2, "{\"absent\":{\"a\":1},\"identity\":[\"/a\"],\"pick\":{\"max\":\"/b\"}}", "{}", "", "{\"b\":1}"),
        ]
        return cases.map { name, how, rules, base, newer, older in
            FuzzTarget.Seed(
                name: name, bytes: [how] + [rules, base, newer].flatMap { FuzzInput.part(Array($0.utf8)) } + Array(older.utf8))
        }
    }
}

extension MergeSchema {
    /// Whether no rule turns a value into something that is not JSON.
    fileprivate var isAuto: Bool {
        rules(for: UnsafeRawBufferPointer(start: nil, count: 0))?.rules.allSatisfy { !$0.pattern.isEmpty } ?? true
    }
}
