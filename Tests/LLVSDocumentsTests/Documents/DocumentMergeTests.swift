import Glibc
import LLVSDocuments
import LLVSTestHelpers
import Testing

/// Merging inside values, as far as vectors do not cover it: small stacks, cancellation, worst cases, saving, invalid rules.
@Suite("Merging inside values") struct DocumentMergeTests {
    @Test("the side that changed nothing gives way, byte for byte") func unchangedGivesWay() throws {
        // If one side is unchanged, the other one is the result, byte for byte, even if it only spells the same value differently.
        #expect(try Documents.text("{\"a\":1}", "{ \"a\":1}", "{\"a\":1}") == "{ \"a\":1}")
        #expect(try Documents.text("no json", "no json", "[1]") == "[1]")
    }

    @Test("saving") func saving() throws {
        for (decoded, new, was, rules, expected) in [
            ("{\"a\":1}", "{\"a\":2}", "{\"a\":1.0,\"z\":{\"y\":1}}", "\"auto\"", "{\"a\":2,\"z\":{\"y\":1}}"),
            ("{\"a\":{\"b\":1}}", "{}", "{\"a\":{\"b\":1,\"c\":2}}", "\"auto\"", "{}"),
            (
                "{\"p\":{\"x\":1,\"y\":1}}", "{\"p\":{\"x\":2,\"y\":1}}", "{\"p\":{\"x\":1,\"y\":1,\"w\":0}}", "{\"/p\":\"register\"}",
                "{\"p\":{\"w\":0,\"x\":2,\"y\":1}}"
            ),
            ("{\"a\":1}", "{\"a\":1}", "{ \"a\":1, \"z\":1 }", "\"auto\"", "{ \"a\":1, \"z\":1 }"),
        ] {
            let merged = try Documents.merged(decoded, new, was, schema: rules, saving: true)
            #expect(merged.bytes.map { String(decoding: $0, as: UTF8.self) } == expected)
        }
    }

    @Test("an old name that upgrades left is left by lifting, too") func leftNames() throws {
        let rules = "{\"/*\":\"counter\",\"schema\":{\"at\":\"/v\",\"renames\":[{\"to\":2,\"from\":\"/a\",\"path\":\"/b\"}]}}"
        for (base, newer, older, expected) in [
            ("{\"a\":5}", "{\"v\":2,\"a\":5,\"b\":6}", "{\"v\":2,\"a\":5,\"b\":7}", "{\"a\":5,\"b\":8,\"v\":2}"),
            ("{\"a\":5}", "{\"v\":2,\"a\":5,\"b\":6}", "{\"a\":7}", "{\"a\":7,\"b\":8,\"v\":2}"),
            ("{\"a\":5}", "{\"v\":2,\"b\":6}", "{\"a\":7}", "{\"b\":8,\"v\":2}"),
        ] {
            let merged = try Documents.merged(base, newer, older, schema: rules)
            #expect(merged.bytes.map { String(decoding: $0, as: UTF8.self) } == expected)
            #expect(merged.records.isEmpty)
        }
    }

    @Test("invalid rules") func invalidRules() throws {
        for (rules, pointer) in [
            ("[", ""), ("{}", ""), ("{\"merge\":\"1\"}", "/merge"), ("{\"merge\":1,\"ids\":[]}", "/ids"),
            ("{\"merge\":1,\"ids\":{\"a/b\":7}}", "/ids/a~1b"),
            ("{\"merge\":1,\"ids\":{\"\":\"best\"}}", "/ids/"), ("{\"merge\":1,\"ids\":{\"\":{\"/a\":\"bytes\"}}}", "/ids//~1a"),
            ("{\"merge\":1,\"ids\":{\"\":{\"/~3\":\"auto\"}}}", "/ids//~1~03"),
            ("{\"merge\":1,\"ids\":{\"p\":{\"as\":\"set\",\"key\":[\"k\"]}}}", "/ids/p/key/0"),
            ("{\"merge\":1,\"ids\":{\"p\":{\"min\":1}}}", "/ids/p/min"),
            ("{\"merge\":1,\"ids\":{\"p\":{\"as\":\"counter\",\"min\":2,\"max\":1}}}", "/ids/p/min"),
            ("{\"merge\":1,\"ids\":{\"p\":{\"pick\":{\"max\":1}}}}", "/ids/p/pick/max"),
            ("{\"merge\":1,\"ids\":{\"p\":{\"delete\":true}}}", "/ids/p/delete"),
            ("{\"merge\":1,\"ids\":{\"p\":{\"/*a\":\"auto\",\"/~2a\":\"auto\"}}}", "/ids/p/~1~02a"),
        ] {
            #expect(throws: InvalidRules.self, "\(rules)") {
                do { _ = try Array(rules.utf8).withUnsafeBytes { try MergeSchema($0) } } catch let error as InvalidRules {
                    #expect(error.pointer == pointer, "\(rules)")
                    throw error
                }
            }
        }
        for rules in [
            "{\"merge\":1}", "{\"merge\":1.0,\"ids\":{},\"indexes\":0}",
            "{\"merge\":1,\"ids\":{\"\":{},\"a\":{\"\":\"bytes\"},\"b\":\"bytes\"}}",
        ] {
            try Array(rules.utf8).withUnsafeBytes { _ = try MergeSchema($0) }
        }
    }

    @Test("the longest prefix holds") func theLongestPrefixHolds() throws {
        let schema = "{\"merge\":1,\"ids\":{\"\":\"text\",\"a\":\"auto\",\"ab\":{\"/n\":\"counter\"}}}"
        #expect(try Documents.merged("{\"n\":1}", "{\"n\":2}", "{\"n\":3}", schema: schema, id: "abc").bytes == Array("{\"n\":4}".utf8))
        #expect(try Documents.merged("{\"n\":1}", "{\"n\":2}", "{\"n\":3}", schema: schema, id: "ac").bytes == Array("{\"n\":2}".utf8))
        #expect(try Documents.merged("a b", "a c", "d b", schema: schema, id: "").bytes == Array("d c".utf8))
    }

    @Test("work can be stopped") func canBeStopped() throws {
        struct Stop: Error {}
        let numbers = (0..<400_000).map(String.init)
        let o = "[" + numbers.joined(separator: ",") + "]", x = "[" + numbers.reversed().joined(separator: ",") + "]"
        let y = "[" + numbers.dropFirst().joined(separator: ",") + "]"
        for stopAt in [1, 2, 4] {
            var looks = 0
            #expect(throws: Stop.self) {
                try Documents.merged(o, x, y) {
                    looks += 1; if looks == stopAt { throw Stop() }
                }
            }
        }
    }

    /// Members in another order are looked up by name. With many levels, nothing is compared twice.
    @Test("another order of members on each level") func anotherOrderOnEachLevel() throws {
        struct Endless: Error {}
        func nested(_ members: String) -> String {
            (0..<100).reduce("1") { inner, _ in "{\"a\":\(inner),\(members)}" }
        }
        let o = nested("\"b\":1,\"c\":1"), x = nested("\"c\":1,\"b\":1"), y = "{\"d\":1," + o.dropFirst()
        var looks = 0
        let merged = try Documents.merged(o, x, y) {
            looks += 1
            if looks > 20 { throw Endless() }
        }
        #expect(merged.bytes.map { String(decoding: $0, as: UTF8.self) } == y)
    }

    @Test("deep values on a small stack") func deepValuesOnASmallStack() throws {
        func nested(_ leaf: String, _ open: String, _ close: String, _ depth: Int) -> String {
            String(repeating: open, count: depth) + leaf + String(repeating: close, count: depth)
        }
        let objects = ["{\"n\":1}", "{\"n\":2}", "{\"n\":1,\"m\":1}"].map { nested($0, "{\"a\":", "}", 127) }
        let lists = [
            "{\"id\":1,\"l\":[1]}", "{\"id\":1,\"l\":[2]}",
            "{\"id\":1,\"l\":[1,3]}",
        ].map { nested($0, "[{\"id\":1,\"l\":", "}]", 62) }
        let merged = try SmallStack.run(64 << 10) {
            [try Documents.text(objects[0], objects[1], objects[2]), try Documents.text(lists[0], lists[1], lists[2])]
        }
        #expect(
            merged == [nested("{\"m\":1,\"n\":2}", "{\"a\":", "}", 127), nested("{\"id\":1,\"l\":[2,3]}", "[{\"id\":1,\"l\":", "}]", 62)])
    }

    @Test("hashes are not values") func hashesAreNotValues() throws {
        // The seed of hashes differs between processes; the result does not.
        let many = (0..<5_000).map { "{\"id\":\($0),\"v\":\($0 % 7)}" }
        var edited = many
        edited.swapAt(10, 4_000)
        edited[77] = "{\"id\":77,\"v\":\"x\"}"
        let merged = try Documents.text(
            "[" + many.joined(separator: ",") + "]", "[" + edited.joined(separator: ",") + "]",
            "[" + many.dropLast().joined(separator: ",") + "]")
        #expect(merged == "[" + edited.dropLast().joined(separator: ",") + "]")
    }
}

/// Runs a closure on a thread with a stack of a given size.
enum SmallStack {
    private final class Work: @unchecked Sendable {
        let body: () throws -> [String?]
        var result: Result<[String?], any Error> = .success([])
        init(_ body: @escaping () throws -> [String?]) { self.body = body }
    }

    static func run(_ size: Int, _ body: @escaping () throws -> [String?]) throws -> [String?] {
        let work = Work(body)
        var attributes = pthread_attr_t(), thread = pthread_t()
        pthread_attr_init(&attributes)
        #expect(pthread_attr_setstacksize(&attributes, size) == 0)
        let started = pthread_create(
            &thread, &attributes,
            { payload in
                guard let payload else { return nil }
                let work = Unmanaged<Work>.fromOpaque(payload).takeUnretainedValue()
                work.result = Result { try work.body() }
                return nil
            }, Unmanaged.passUnretained(work).toOpaque())
        pthread_attr_destroy(&attributes)
        try #require(started == 0)
        pthread_join(thread, nil)
        return try work.result.get()
    }
}
