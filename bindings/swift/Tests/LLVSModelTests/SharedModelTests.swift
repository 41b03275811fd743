import LLVS
import Testing

@testable import LLVSModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Model struct SharedPhone: Identifiable, Equatable {
    var id: String
    var number = ""
    @Merge(.counter) var calls = 0
}

struct SharedPlace: Codable, Equatable, Sendable { var x: Double, y: Double }

@Model(prefix: "shared/")
struct SharedContact: Equatable {
    var name = ""
    var tags: Set<String> = []
    var phones: [SharedPhone] = []
    @Merge(.counter(min: 0)) var stock = 100
    @Merge(.text(by: .line)) var bio = ""
    @Merge(.pick(.max)) var seen: Date?
    @Merge(.pick(.arbiter)) var shelf = ""
    @Merge(.absent([:])) var settings: [String: String] = [:]
    @Named("home_town") var town: String?
    var photo: Data?
    var level = Level.low
    var more: [String: Int] = [:]
    var place: SharedPlace?
    var ratio = 0.5
    var active = true
    static let rules: [String: [MergeRule]] = ["": [.identity("name")]]
    init() {}
}

/// Tests/Vectors/models.json: the same model in Swift and in Python (Tests/Python/test_model_shared.py).
@Suite struct SharedModelTests {
    private static var vectors: [String: JSONValue] {
        get throws {
            var folder = URL(fileURLWithPath: #filePath)
            for _ in 0..<5 { folder.deleteLastPathComponent() }
            let file = folder.appendingPathComponent("Tests/Vectors/models.json")
            return try JSONDecoder().decode([String: JSONValue].self, from: Data(contentsOf: file))
        }
    }

    private func vector(_ name: String) throws -> String {
        guard case .string(let text)? = try Self.vectors[name] else { throw CancellationError() }
        return text
    }

    @Test func theRulesAreOne() throws {
        let written = try JSONDecoder().decode(JSONValue.self, from: Data(SharedContact.mergeRules))
        let rules = try #require(try Self.vectors["rules"])
        #expect(written == ["merge": 1, "ids": .object([SharedContact.idPrefix: rules])])
    }

    @Test func aMomentIsOneText() throws {
        guard case .array(let moments)? = try Self.vectors["moments"], case .array(let more)? = try Self.vectors["more_digits"] else {
            throw CancellationError()
        }
        #expect(moments.count > 5 && more.count > 2)
        for case .string(let text) in moments {
            let date = try #require(Moment.date(text), "\(text)")
            #expect(try Moment.text(date) == text)
        }
        // Other languages read the text that Swift writes for a date between two microseconds.
        for case .string(let text) in more {
            let date = try #require(Moment.date(text), "\(text)"), written = try Moment.text(date)
            #expect(Moment.date(written) == date && written.dropLast().hasPrefix(text.dropLast()))
        }
    }

    @Test func valuesAreReadAndEditedAlike() throws {
        let devices = try Devices(), people = try devices.phone.collection(SharedContact.self)
        let whole = try vector("whole")
        try save(whole, "shared/1", in: devices.phone)
        try save(try vector("empty"), "shared/2", in: devices.phone)
        var zoe = SharedContact()
        (zoe.name, zoe.tags, zoe.stock, zoe.bio, zoe.shelf, zoe.town) = ("Zoë", ["a", "b"], 7, "one\ntwo\n", "B", "Ulm")
        var home = try #require(try people["1"]?.phones.first), work = home
        (home.id, home.number, home.calls, work.id, work.number, work.calls) = ("home", "030 1", 2, "work", "", 0)
        (zoe.phones, zoe.seen, zoe.settings) = ([home, work], Date(timeIntervalSince1970: 1_800_000_000), ["k": "v"])
        (zoe.photo, zoe.level, zoe.more) = (Data([1, 2, 255]), .high, ["a": 1, "b": 2])
        (zoe.place, zoe.ratio, zoe.active) = (SharedPlace(x: 1.5, y: -2), 0.25, false)
        #expect(try people["1"] == zoe && people["2"] == SharedContact())
        #expect(try people.save(zoe, id: "1") == nil && text(devices.phone, "shared/1") == whole)
        try people.edit("1") {
            $0.name = "Ann"; $0.phones[1].calls += 1
        }
        #expect(try text(devices.phone, "shared/1") == vector("edited"))
    }
}
