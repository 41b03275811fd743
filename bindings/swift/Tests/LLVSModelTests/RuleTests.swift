import LLVS
import Testing

@testable import LLVSModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

enum Level: String, Codable { case low, high }

/// A structure that contains itself. Its only rule is that elements are identified by their ids.
@Model(prefix: "node/")
struct Node: Identifiable, Equatable {
    var id = ""
    var inner: [Node] = []
    init(_ id: String, _ inner: [Node] = []) { (self.id, self.inner) = (id, inner) }
}

/// Two structures that contain each other, one with a set.
@Model(prefix: "deep/")
struct Deep {
    var inner: [Deeper] = []
}
@Model struct Deeper {
    var names: Set<String> = []
    var back: Deep?
}

@Model(prefix: "wrong/") struct CounterOfText { @Merge(.counter) var m = "" }
@Model(prefix: "wrong/") struct TextOfNumbers { @Merge(.text) var m = 0.5 }
@Model(prefix: "wrong/") struct ListOfNothing { @Merge(.list(key: "id")) var m: Int? = nil }
@Model(prefix: "wrong/") struct TwoKinds { @Merge(.counter, .register) var m = 0 }
@Model(prefix: "wrong/") struct KeyOfRegister { @Merge(.register, .json(["key": ["/id"]])) var m: [String] = [] }
@Model(prefix: "wrong/") struct Bounds { @Merge(.counter(min: 3, max: 1)) var m = 0 }
@Model(prefix: "wrong/") struct NoNumber { @Merge(.counter(from: Double.nan)) var m = 0.5 }
@Model(prefix: "wrong/") struct TwoBeginnings { @Merge(.counter(from: 100)) var m = 0 }
@Model(prefix: "wrong/") struct LongText { @Merge(.text) var m = String(repeating: "x", count: 1_023) }
@Model(prefix: "wrong/") struct UnknownMember { @Merge(.json(["fold": true])) var m = 0 }
@Model(prefix: "wrong/") struct Whole {
    var m = 0
    static let rules: [String: [MergeRule]] = ["": [.pick(.older), .pick(.newer)]]
}
@Model(prefix: "") struct NoPrefix { var m = 0 }
@Model(prefix: "__llvs_mine/") struct ReservedPrefix { var m = 0 }

@Model(prefix: "book/")
struct Book: Equatable {
    var isbn = ""
    var title = ""
    @Merge(.absent("free")) var state = "free"
    @Merge(.pick(.arbiter)) var shelf = ""
    @Merge(.deleteWins) var draft: [String: String]?
    static let rules: [String: [MergeRule]] = ["": [.identity("isbn")]]
    init(_ isbn: String, _ title: String = "") { (self.isbn, self.title) = (isbn, title) }
}

@Suite struct RuleTests {
    private func rules<Member>(
        _ type: Member.Type, _ rules: MergeRule..., from initial: Member? = nil, name: String = "m"
    ) throws -> String {
        let patterns = MergePattern.member(name, type, rules, from: initial)
        #expect(patterns.allSatisfy { $0.problem == nil }, "\(patterns)")
        let own = patterns.filter { !$0.rule.isEmpty }
        let text = own.map { JSONText.string($0.pointer) + ":" + JSONText.object($0.rule) }.joined(separator: ",")
        // The engine accepts the rules.
        _ = try Array("{\"merge\":1,\"ids\":{\"x/\":{\"\":\"auto\"\(text.isEmpty ? "" : ",")\(text)}}}".utf8)
            .withUnsafeBytes { try MergeSchema($0) }
        return text
    }

    @Test func rulesOfTypes() throws {
        #expect(try rules(String.self) == "" && rules(Int?.self) == "" && rules([Double].self) == "" && rules(Date.self) == "")
        #expect(try rules(Level.self) == "" && rules([Level?].self) == "" && rules(JSONValue.self) == "" && rules(URL.self) == "")
        #expect(try rules(Set<String>.self) == #""/m":{"as":"set"}"# && rules([Set<Int>].self) == #""/m/*":{"as":"set"}"#)
        let phones = #""/m":{"as":"list","key":["/id"]},"/m/*/calls":{"as":"counter"}"#
        #expect(try rules([Phone].self) == phones && rules([Phone]?.self) == phones)
        #expect(try rules([String: Phone].self) == #""/m/*/calls":{"as":"counter"}"#)
        #expect(try rules([String: [Phone]].self) == #""/m/*":{"as":"list","key":["/id"]},"/m/*/*/calls":{"as":"counter"}"#)
        #expect(try rules(Picture.self) == #""/m":{"as":"register"}"# && rules([Picture].self) == #""/m/*":{"as":"register"}"#)
    }

    @Test func rulesThatAreGiven() throws {
        #expect(try rules([String].self, .list(key: "")) == #""/m":{"as":"list","key":[""]}"#)
        #expect(try rules([Phone].self, .set(key: "id")) == #""/m":{"as":"set","key":["/id"]},"/m/*/calls":{"as":"counter"}"#)
        #expect(try rules([String].self, .list(key: "/id", "a/b~")) == #""/m":{"as":"list","key":["/id","/a~1b~0"]}"#)
        #expect(try rules([Int].self, .tuple) == #""/m":{"as":"tuple"}"# && rules([Int].self, .list) == #""/m":{"as":"list"}"#)
        #expect(try rules(Int.self, .counter(from: 5, min: 0, max: 9)) == #""/m":{"as":"counter","from":5,"max":9,"min":0}"#)
        #expect(try rules(Double.self, .counter(from: 0.5, max: 9)) == #""/m":{"as":"counter","from":0.5,"max":9.0}"#)
        #expect(try rules(Int?.self, .counter) == #""/m":{"as":"counter"}"#)
        #expect(try rules(String.self, .text(by: .line)) == #""/m":{"as":"text","unit":"line"}"#)
        #expect(try rules(String.self, .text, .pick(.older)) == #""/m":{"as":"text","pick":"older"}"#)
        for side in [MergeRule.Side.newer, .older, .max, .min, .arbiter] {
            #expect(try rules(Int.self, .pick(side)) == "\"/m\":{\"pick\":\"\(side)\"}")
        }
        #expect(try rules(Picture.self, .pick(maxOf: "width")) == #""/m":{"as":"register","pick":{"max":"/width"}}"#)
        #expect(try rules(Phone.self, .pick(minOf: "/a/b")) == #""/m":{"pick":{"min":"/a/b"}},"/m/calls":{"as":"counter"}"#)
        #expect(try rules(Int?.self, .deleteWins) == #""/m":{"delete":"delete"}"#)
        #expect(try rules([String: Int].self, .absent([:])) == #""/m":{"absent":{}}"#)
        #expect(try rules(JSONValue.self, .absent(["a": [1, 0.5, "\"x\"", true]])) == #""/m":{"absent":{"a":[1,0.5,"\"x\"",true]}}"#)
        #expect(try rules(Picture.self, .auto, .identity("name", "/a/b")) == #""/m":{"identity":["/name","/a/b"]}"#)
        #expect(try rules(Int.self, .json(["as": "counter", "from": 7])) == #""/m":{"as":"counter","from":7}"#)
        // A member that is merged as a whole has no rules inside. An implied key is dropped together with its list.
        let register = #""/m":{"as":"register"}"#
        #expect(try rules([Phone].self, .register) == register && rules(Phone.self, .register) == register)
        #expect(try rules(Set<Phone>.self) == #""/m":{"as":"set"}"# && rules([Phone].self, .auto) == #""/m/*/calls":{"as":"counter"}"#)
        #expect(try rules(String.self, .text, name: "*") == #""/~2":{"as":"text"}"#)
        #expect(try rules(String.self, .text, name: "a/b~\u{301}c") == "\"/a~1b~0\u{301}c\":{\"as\":\"text\"}")
    }

    /// Both devices begin with 100 and add 5 and 3. The result is 108, not 208 (P5).
    @Test func aCounterBeginsWithTheDefault() throws {
        #expect(try rules(Int.self, .counter, from: 100) == #""/m":{"as":"counter","from":100}"#)
        #expect(try rules(Int.self, .counter(from: 100), from: 100) == #""/m":{"as":"counter","from":100}"#)
        #expect(try rules(Int?.self, .counter, from: 100) == #""/m":{"as":"counter","from":100}"#)
        #expect(try rules(Decimal.self, .counter, from: Decimal(string: "0.1")) == #""/m":{"as":"counter","from":0.1}"#)
        #expect(try rules(Int.self, .counter, from: 0) == #""/m":{"as":"counter"}"#)
    }

    /// Both sides edit the default text, which must not occur twice.
    @Test func aTextBeginsWithTheDefault() throws {
        #expect(try rules(String.self, .text, from: "a \"b\"") == #""/m":{"absent":"a \"b\"","as":"text"}"#)
        #expect(try rules(String?.self, .text, from: "a") == #""/m":{"absent":"a","as":"text"}"#)
        #expect(try rules(String.self, .text, .absent("a"), from: "a") == #""/m":{"absent":"a","as":"text"}"#)
        #expect(try rules(String.self, .text, from: "") == #""/m":{"as":"text"}"#)
    }

    /// A rule that has no effect, or that contradicts the default, is refused. The message suggests a correction.
    @Test func removalsAndAbsenceThatCannotBe() throws {
        func problem<Member>(_ type: Member.Type, _ rule: MergeRule, from initial: Member? = nil) -> String {
            MergePattern.member("m", type, [rule], from: initial).compactMap(\.problem).joined()
        }
        let useless = "deleteWins is about what one side removed, and this member is always written. Make it optional"
        #expect(problem(Int.self, .deleteWins) == useless && problem([String].self, .deleteWins) == useless)
        for told in [problem([Phone].self, .deleteWins), problem([String: Int].self, .deleteWins)] {
            #expect(told == useless + "; for what is removed from it, give \"/m/*\" the rule in the static member rules")
        }
        #expect(problem([Phone]?.self, .deleteWins) == "")
        #expect(
            problem([String: String].self, .absent(["a": "b"]), from: [:])
                == "where the member is missing it is merged as {\"a\":\"b\"}, and read as its default, {}. Let both be the same")
        #expect(problem(String.self, .absent("a"), from: "b").contains("read as its default, \"b\""))
        #expect(problem(Int.self, .absent(1), from: 1) == "" && problem([String: Int].self, .absent([:]), from: [:]) == "")
        #expect(problem(Line.self, .absent([:]), from: Line()) == "" && problem(Line.self, .absent(["calls": 1]), from: Line()) != "")
        #expect(problem(Int.self, .absent(0), from: 1).contains("merged as 0, and read as its default, 1"))
    }

    @Test func aStructureThatHoldsItself() throws {
        let devices = try Devices(), nodes = try devices.phone.collection(Node.self)
        #expect(String(decoding: Node.mergeRules, as: UTF8.self) == #"{"merge":1,"ids":{"node/":{"":"auto"}}}"#)
        let one = Node("a", [Node("b", [Node("c")])])
        try nodes.save(one, id: "1")
        #expect(try nodes["1"] == one)
        let error = #expect(throws: StoreError.self) { try devices.phone.collection(Deep.self) }
        #expect(error?.code == .invalidArgument && error?.message.contains("holds itself") == true && error?.path == "/inner/*/names")
    }

    private func problem<Model: StorableModel>(_ model: Model.Type) throws -> String {
        let devices = try Devices()
        let error = #expect(throws: StoreError.self) { try devices.phone.collection(model) }
        #expect(error?.code == .invalidArgument)
        #expect(try devices.phone.store.history().isEmpty)
        return error?.message ?? ""
    }

    @Test func whatCannotBeAModel() throws {
        #expect(try problem(CounterOfText.self).contains("\"counter\" is for a number, and the member is of the type String"))
        #expect(try problem(TextOfNumbers.self).contains("\"text\" is for a string"))
        #expect(try problem(ListOfNothing.self).contains("\"list\" is for an array"))
        #expect(try problem(TwoKinds.self).contains("TwoKinds: the member \"/m\": the rules say different things of \"as\""))
        #expect(try problem(KeyOfRegister.self).contains("a key is for a list or a set"))
        #expect(try problem(Bounds.self).contains("/ids/wrong~1/~1m/min"))
        #expect(try problem(NoNumber.self).contains("JSON is expected"))
        #expect(try problem(UnknownMember.self).contains("/fold"))
        #expect(try problem(TwoBeginnings.self).contains("the member \"/m\": the counter begins with 100, and its member with 0"))
        #expect(try problem(LongText.self).contains("the default of a text is 1,024 bytes"))
        #expect(try problem(Whole.self).contains("say different things of \"pick\""))
        for told in [try problem(NoPrefix.self), try problem(ReservedPrefix.self)] { #expect(told.contains("cannot be the prefix")) }
    }

    /// `identity`, `absent`, `pick(.arbiter)` and `deleteWins` on two devices.
    @Test func rulesOfABook() throws {
        #expect(
            String(decoding: Book.mergeRules, as: UTF8.self) == #"{"merge":1,"ids":{"book/":{"":{"identity":["/isbn"]},"#
                + #""/draft":{"delete":"delete"},"/shelf":{"pick":"arbiter"},"/state":{"absent":"free"}}}}"#)
        struct Shelves: ValueMerger {
            func merge(_ question: ValueQuestion) -> ValueAnswer {
                guard question.path.elementsEqual(#"["shelf"]"#.utf8), let a = question.newer, let b = question.older else { return .pass }
                return .value(min(String(decoding: a, as: UTF8.self), String(decoding: b, as: UTF8.self)).utf8.map { $0 })
            }
        }
        let devices = try Devices(merger: Shelves())
        let phone = try devices.phone.collection(Book.self), laptop = try devices.laptop.collection(Book.self)
        // Two different books under one id are not merged; the same book is.
        var other = Book("a", "A")
        other.draft = ["x": "1"]
        try phone.save(["1": other, "2": Book("c", "C")])
        try laptop.save(["1": Book("b", "B"), "2": Book("c", "C")])
        try save(#"{"isbn":"d"}"#, "book/3", in: devices.phone)
        try devices.sync()
        #expect(try phone["1"] == Book("b", "B") && phone["2"] == Book("c", "C"))
        // Both changed the shelf. One removed the draft that the other changed. One wrote the unchanged state.
        try phone.edit("2") {
            $0.shelf = "B"; $0.draft = ["x": "1"]
        }
        try devices.sync()
        try phone.edit("2") {
            $0.shelf = "K"; $0.draft = nil
        }
        try phone.edit("3") { $0.state = "lent" }
        try laptop.edit("2") {
            $0.shelf = "X"; $0.draft?["x"] = "2"
        }
        try save(#"{"isbn":"d","state":"free"}"#, "book/3", in: devices.laptop)
        try devices.sync()
        for books in [phone, laptop] {
            #expect(try books["2"]?.shelf == "K" && books["2"]?.draft == nil)
            #expect(try books["3"]?.state == "lent")
        }
        #expect(try phone.openConflicts(of: "2").contains { $0.record.kind == .arbiter })
    }
}
