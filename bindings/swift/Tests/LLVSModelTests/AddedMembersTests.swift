import LLVS
import LLVSModel
import Testing

@Model struct Line: Identifiable {
    var id = ""
    @Merge(.counter) var calls = 0
    @Merge(.text) var note = ""
}

/// The upgrade of the models below: sets a member.
private func filling(_ name: String, _ value: JSONValue) -> [ModelUpgrade] { [{ $0[name] = value }] }

@Model(prefix: "page/") struct FilledCounter {
    @Merge(.counter) var visits = 0
    static let upgrades: [ModelUpgrade] = [{ $0["visits"] = $0["count"] }]
}
@Model(prefix: "page/") struct FilledStock {
    @Merge(.counter) var stock = 100
    static let upgrades = filling("stock", 0)
}
@Model(prefix: "page/") struct FilledText {
    @Merge(.text) var body = "Dear"
    static let upgrades = filling("body", "Dear Ann")
}
@Model(prefix: "page/") struct FilledLines {
    var lines: [Line] = []
    static let upgrades = filling("lines", [["id": "a", "calls": 3], ["id": "b", "note": "x"]])
}
@Model(prefix: "page/") struct FilledByName {
    var byName: [String: Line] = [:]
    static let upgrades = filling("byName", ["a/b": ["id": "x", "calls": 1]])
}

/// An upgrade that only sets members to their defaults, and moves elements.
@Model(prefix: "page/") struct LeftAlone {
    var name = ""
    var note = ""
    @Merge(.counter) var visits = 0
    @Merge(.counter) var stock = 100
    @Merge(.text) var body = "Dear"
    var lines: [Line] = []
    static let upgrades: [ModelUpgrade] = [
        { page in
            (page["stock"], page["body"]) = (100, "Dear")
            if case .array(let lines)? = page["lines"] { page["lines"] = .array([["id": "new", "calls": 0]] + lines.reversed()) }
        }
    ]
}

@Model(prefix: "page/") struct Renamed {
    var name = ""
    var note = ""
    @Merge(.counter) var visits = 0
    static let upgrades: [ModelUpgrade] = [{ if let count = $0["count"] { $0["visits"] = count } }]
    static let rules: [String: [MergeRule]] = [
        "schema": [.json(["at": "/form", "renames": [["to": 2, "from": "/count", "path": "/visits"]]])]
    ]
}

@Model(prefix: "page/") struct ReplacedWhole {
    var name = ""
    @Merge(.counter) var visits = 0
    static let upgrades = filling("name", "Ann")
    static let rules: [String: [MergeRule]] = ["": [.register], "schema": [.json(["at": "/form"])]]
}

/// Two devices upgrade the same value independently.
@Suite struct AddedMembersTests {
    private func refusal<Model: StorableModel>(_ model: Model.Type, _ value: String = #"{"count":100}"#) throws -> ModelDecodingError? {
        let devices = try Devices(), pages = try devices.phone.collection(model)
        try save(value, "page/1", in: devices.phone)
        let error = #expect(throws: ModelDecodingError.self) { try pages["1"] }
        #expect(throws: ModelDecodingError.self) { try pages.edit("1") { _ in } }
        #expect(try text(devices.phone, "page/1") == value)
        return error
    }

    @Test func whatWouldBeThereTwiceIsRefused() throws {
        let counter = try refusal(FilledCounter.self)
        let told = "is a counter that the upgrade makes 100 of 0: two devices"
        #expect(counter?.member == "/visits" && counter?.reason.contains(told) == true)
        #expect(try refusal(FilledStock.self)?.reason.contains("makes 0 of 100") == true)
        let body = try refusal(FilledText.self)
        #expect(body?.member == "/body" && body?.reason.contains(#"a text that the upgrade makes "Dear Ann" of "Dear""#) == true)
        #expect(try refusal(FilledLines.self)?.member == "/lines/0/calls")
        #expect(try refusal(FilledLines.self, #"{"lines":[{"id":"a","calls":3}]}"#)?.member == "/lines/1/note")
        #expect(try refusal(FilledByName.self)?.member == "/byName/a~1b/calls")
    }

    private func edited<Model: StorableModel>(
        _ model: Model.Type, _ value: String, _ one: @escaping (inout Model) -> Void, _ other: @escaping (inout Model) -> Void
    ) throws -> Model {
        let devices = try Devices()
        try save(value, "page/1", in: devices.phone)
        try devices.sync()
        try devices.phone.collection(model).edit("1") { one(&$0) }
        try devices.laptop.collection(model).edit("1") { other(&$0) }
        try devices.sync()
        #expect(try text(devices.phone, "page/1") == text(devices.laptop, "page/1"))
        #expect(try devices.phone.collection(model).openConflicts().isEmpty)
        return try #require(try devices.phone.collection(model)["1"])
    }

    @Test func whatIsThereOnce() throws {
        let value = #"{"visits":4,"lines":[{"id":"a","calls":3},{"id":"b","note":"b"}]}"#
        let found = try edited(LeftAlone.self, value) {
            $0.name = "Ann"
            $0.visits += 1
            $0.stock -= 1
            $0.body = "Hello! Dear"
            $0.lines[1].calls += 1
        } _: {
            $0.note = "hi"
            $0.visits += 1
            $0.stock -= 2
            $0.body += " Bob"
            $0.lines[2].calls += 2
        }
        #expect(found.name == "Ann" && found.note == "hi" && found.visits == 6 && found.stock == 97 && found.body == "Hello! Dear Bob")
        #expect(found.lines.map(\.id) == ["new", "b", "a"] && found.lines.map(\.calls) == [0, 1, 5])
    }

    @Test func valuesThatAreMergedAsWholesAreUpgraded() throws {
        let devices = try Devices()
        try save(#"{"visits":5}"#, "page/1", in: devices.phone)
        let read = try #require(try devices.phone.collection(ReplacedWhole.self)["1"])
        #expect(read.name == "Ann" && read.visits == 5)
    }

    @Test(arguments: [(#"{"count":100}"#, 102), (#"{"form":2,"visits":7,"count":3}"#, 9), ("{}", 2)])
    func renamesOfTheRulesAreThereOnce(_ value: String, _ visits: Int) throws {
        let found = try edited(Renamed.self, value) {
            $0.name = "Ann"; $0.visits += 1
        } _: {
            $0.note = "hi"; $0.visits += 1
        }
        #expect(found.name == "Ann" && found.note == "hi" && found.visits == visits)
    }
}
