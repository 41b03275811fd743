import LLVS
import LLVSModel
import Testing

@testable import LLVSModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Model struct Phone: Identifiable, Equatable {
    var id: String
    var number = ""
    @Merge(.counter) var calls = 0

    init(_ id: String, _ number: String) { self.id = id; self.number = number }
}

/// No part of a model: it stands as a whole.
struct Picture: Codable, Equatable, Sendable {
    var name: String
    var width: Int
}

@Model(prefix: "contact/")
struct Contact: Equatable {
    var name = ""
    var tags: Set<String> = []
    var phones: [Phone] = []
    @Merge(.counter) var visits = 0
    @Merge(.counter(max: 120)) var stock = 100
    @Merge(.text) var bio = ""
    @Merge(.pick(.max)) var seen: Date?
    @Named("home_town") var town: String? = nil
    var picture: Picture?
    var more: [String: Int] = [:]
    let kind = "contact"
    var initial: String { String(name.prefix(1)) }

    init(name: String = "") { self.name = name }
}

/// What an older version of the app knows.
@Model(prefix: "contact/")
struct OldContact: Equatable {
    var name = ""
    var tags: Set<String> = []
    init(name: String = "") { self.name = name }
}

/// Two devices that exchange through a folder.
final class Devices {
    let directory: String
    let phone: StoreCoordinator, laptop: StoreCoordinator

    init() throws {
        let directory = FileManager.default.temporaryDirectory.path + "/llvs-model-\(UUID())"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        func open(_ name: String) throws -> StoreCoordinator {
            let device = try StoreCoordinator(path: "\(directory)/\(name).llvs")
            try device.attach(Exchange(store: device.store, transport: FolderTransport(path: directory + "/shared")), name: "shared")
            return device
        }
        self.directory = directory
        (phone, laptop) = (try open("phone"), try open("laptop"))
    }

    func sync() throws { for device in [phone, laptop, phone] { _ = try device.sync() } }
    deinit { try? FileManager.default.removeItem(atPath: directory) }
}

func text(_ coordinator: StoreCoordinator, _ id: String) throws -> String? {
    try coordinator.value(ValueID(id)).map { String(decoding: $0.data, as: UTF8.self) }
}

@Suite struct MergingTests {
    @Test func rulesComeFromTheTypes() throws {
        let expected = #"{"merge":1,"ids":{"contact/":{"":"auto","/bio":"text","/phones":{"as":"list","key":["/id"]},"#
            + #""/phones/*/calls":"counter","/picture":"register","/seen":{"pick":"max"},"#
            + #""/stock":{"as":"counter","from":100,"max":120},"/tags":"set","/visits":"counter"}}}"#
        #expect(String(decoding: Contact.mergeRules, as: UTF8.self) == expected)
    }

    @Test func editsOfTwoDevicesMeet() throws {
        let devices = try Devices()
        let phone = try devices.phone.collection(Contact.self), laptop = try devices.laptop.collection(Contact.self)
        var ann = Contact(name: "Ann")
        ann.bio = "Plays the violin on Sundays"
        ann.phones = [Phone("home", "1")]
        try phone.save(ann, id: "1")
        try devices.sync()
        try phone.edit("1") {
            $0.tags.insert("friend")
            $0.visits += 2
            $0.stock += 5
            $0.bio = "Plays the violin on Sundays and Mondays"
            $0.phones[0].calls += 1
        }
        try laptop.edit("1") {
            $0.tags.insert("orchestra")
            $0.visits += 3
            $0.stock += 3
            $0.bio = "Plays the old violin on Sundays"
            $0.phones[0].calls += 1
            $0.phones.append(Phone("work", "2"))
            $0.town = "Ulm"
        }
        try devices.sync()
        let found = try #require(try phone["1"])
        #expect(try laptop["1"] == found)
        #expect(found.tags == ["friend", "orchestra"] && found.visits == 5 && found.stock == 108 && found.town == "Ulm")
        #expect(found.bio == "Plays the old violin on Sundays and Mondays")
        #expect(found.phones.map(\.id) == ["home", "work"] && found.phones[0].calls == 2)
    }

    @Test func whatAnOlderAppDoesNotKnowStays() throws {
        let devices = try Devices()
        let new = try devices.phone.collection(Contact.self), old = try devices.laptop.collection(OldContact.self)
        try devices.phone.save([.insert(ValueID("contact/1"), data: Array(#"{"weight": 1.50, "name": "Ann", "stock": 7}"#.utf8))])
        try devices.sync()
        try old.edit("1") { $0.name = "Anna" }
        try old.save(OldContact(name: "Ben"), id: "2")
        try devices.sync()
        let found = try #require(try text(devices.phone, "contact/1"))
        #expect([#""weight":1.50"#, #""name":"Anna""#, #""stock":7"#].allSatisfy(found.contains), "\(found)")
        #expect(try new["1"]?.stock == 7 && new["1"]?.name == "Anna")
        try old.save(OldContact(name: "Anne"), id: "1")
        #expect(try text(devices.laptop, "contact/1")?.contains("1.50") == true)
    }

    @Test func whatChangesNothingIsNotSaved() throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Contact.self)
        var ann = Contact(name: "Ann")
        ann.tags = ["c", "a", "b"]
        #expect(try people.save(ann, id: "1") != nil)
        let before = devices.phone.currentVersion
        #expect(try people.save(ann, id: "1") == nil)
        #expect(try people.edit("1") { $0.visits += 0 } == nil)
        #expect(try people.remove("2") == nil)
        #expect(throws: CancellationError.self) { try people.edit("1") { $0.name = "?"; throw CancellationError() } }
        #expect(devices.phone.currentVersion == before)
    }

    @Test func anEditKeepsWhatOthersSavedMeanwhile() throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Contact.self)
        try people.save(Contact(name: "Ann"), id: "1")
        try people.edit("1") { ann in
            try people.edit("1") { $0.town = "Ulm"; $0.visits += 1 }
            ann.visits += 1
        }
        #expect(try people["1"]?.town == "Ulm" && people["1"]?.visits == 2)
    }

    @Test func objectsAreListedAtAVersion() throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Contact.self)
        let all = Dictionary(uniqueKeysWithValues: (0 ..< 250).map { ("\(1_000 + $0)", Contact(name: "\($0)")) })
        let version = try #require(try people.save(all))
        try people.save(["x": Contact()], removing: ["1000", "1001"])
        #expect(try people.ids().count == 249 && people.all().map(\.id) == people.ids())
        #expect(try people.at(version.id).ids().count == 250 && people.at(version.id)["1000"]?.name == "0")
        #expect(try people["1000"] == nil)
    }
}

@Suite struct ReadingTests {
    @Test func whatIsMissingIsItsDefault() throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Contact.self)
        try devices.phone.save([.insert(ValueID("contact/1"), data: Array(#"{"tags":null,"phones":[{"id":"a"}],"seen":null}"#.utf8))])
        let found = try #require(try people["1"])
        #expect(found.name == "" && found.stock == 100 && found.tags == [] && found.phones == [Phone("a", "")] && found.seen == nil)
    }

    @Test(arguments: ["[]", "{", "", #"{"name":1}"#, #"{"phones":[{}]}"#, #"{"seen":"yesterday"}"#, "{\"name\":\"\\ud800\"}"])
    func whatCannotBeReadIsToldAndStays(_ bad: String) throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Contact.self)
        try devices.phone.save([.insert(ValueID("contact/1"), data: Array(bad.utf8))])
        let error = #expect(throws: ModelDecodingError.self) { try people["1"] }
        #expect(error?.description.contains("\"contact/1\" cannot be read as Contact") == true)
        #expect(throws: ModelDecodingError.self) { try people.edit("1") { $0.name = "x" } }
        #expect(throws: ModelDecodingError.self) { try people.save(Contact(), id: "1") }
        #expect(try people.at().problems().count == 1)
        #expect(try text(devices.phone, "contact/1") == bad)
        try people.remove("1")
        #expect(try people["1"] == nil)
    }

    @Test func datesAreTextInUTC() throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Contact.self)
        var ann = Contact(name: "Ann")
        ann.seen = Date(timeIntervalSince1970: 1_800_000_000)
        try people.save(ann, id: "1")
        #expect(try text(devices.phone, "contact/1")?.contains(#""seen":"2027-01-15T08:00:00Z""#) == true)
        #expect(try people["1"] == ann)
        try people.edit("1") { $0.seen = Date(timeIntervalSince1970: 1_800_000_000.25) }
        #expect(try people["1"]?.seen?.timeIntervalSince1970 == 1_800_000_000.25)
    }

    @Test func whatJSONCannotHoldIsRefused() throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Odd.self)
        var odd = Odd()
        odd.number = .nan
        let error = #expect(throws: StoreError.self) { try people.save(odd, id: "1") }
        #expect(error?.code == .invalidArgument)
        #expect(try people["1"] == nil)
    }
}

/// An app of before.
@Model(prefix: "person/")
struct FirstPerson: Equatable {
    var name = ""
    var phone = ""
    init(_ name: String, _ phone: String) { (self.name, self.phone) = (name, phone) }
}

@Model(prefix: "person/")
struct Person: Equatable {
    struct NoName: Error {}
    var name = ""
    var phones: [String] = []
    var initials = ""
    static let upgrades: [ModelUpgrade] = [
        { person in if case .string(let phone)? = person["phone"] { person["phones"] = .array([.string(phone)]) } },
        { person in
            guard case .string(let name)? = person["name"] else { throw NoName() }
            person["initials"] = .string(String(name.prefix(1)))
        },
    ]
    init() {}
}

@Model(prefix: "counted/")
struct Counted {
    var form = ""
    static let upgrades: [ModelUpgrade] = [{ _ in }]
    init() {}
}

@Suite struct UpgradeTests {
    @Test func oldFormsAreReadAndKeptUntilTheyAreEdited() throws {
        let devices = try Devices()
        let old = try devices.laptop.collection(FirstPerson.self), new = try devices.phone.collection(Person.self)
        let before = #"{"name":"Ann","phone":"11","weight":1.50}"#
        try devices.laptop.save([.insert(ValueID("person/1"), data: Array(before.utf8))])
        try devices.sync()
        #expect(try new["1"]?.phones == ["11"] && new["1"]?.initials == "A")
        #expect(try new.edit("1") { $0.phones += [] } == nil)
        #expect(try text(devices.phone, "person/1") == before)
        try new.edit("1") { $0.phones.append("12") }
        // The old app goes on, and keeps what it does not know.
        try old.edit("1") { $0.name = "Anne" }
        try devices.sync()
        let after = #"{"form":3,"initials":"A","name":"Anne","phone":"11","phones":["11","12"],"weight":1.50}"#
        #expect(try text(devices.phone, "person/1") == after && text(devices.laptop, "person/1") == after)
        #expect(try old["1"] == FirstPerson("Anne", "11"))
        #expect(String(decoding: Person.mergeRules, as: UTF8.self).contains(#""/form":{"pick":"max"}"#))
    }

    @Test func aLaterFormKeepsItsNumber() throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Person.self)
        try devices.phone.save([.insert(ValueID("person/1"), data: Array(#"{"form":7,"name":"Ann","new":1}"#.utf8))])
        try people.edit("1") { $0.phones = ["1"] }
        let found = try text(devices.phone, "person/1") ?? ""
        #expect(found.contains(#""form":7"#) && found.contains(#""new":1"#) && found.contains(#""phones":["1"]"#), "\(found)")
        try people.save(Person(), id: "2")
        #expect(try text(devices.phone, "person/2")?.contains(#""form":3"#) == true)
    }

    @Test(arguments: [#"{"form":0}"#, #"{"form":"2"}"#, #"{"form":1.5}"#, #"{"name":7}"#, "[]", "{"])
    func whatCannotBeUpgradedIsToldAndStays(_ bad: String) throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Person.self)
        try devices.phone.save([.insert(ValueID("person/1"), data: Array(bad.utf8))])
        #expect(throws: ModelDecodingError.self) { try people["1"] }
        #expect(throws: ModelDecodingError.self) { try people.edit("1") { $0.name = "x" } }
        #expect(try people.at().problems().count == 1 && text(devices.phone, "person/1") == bad)
    }

    @Test func noPropertyCountsForms() throws {
        let devices = try Devices()
        let error = #expect(throws: StoreError.self) { try devices.phone.collection(Counted.self).save(Counted(), id: "1") }
        #expect(error?.code == .invalidArgument && error?.message.contains("formName") == true)
    }
}

@Model(prefix: "odd/")
struct Odd {
    var number = 0.5
    init() {}
}
