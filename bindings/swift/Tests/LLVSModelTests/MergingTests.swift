import LLVS
import LLVSModel
import Testing

@testable import LLVSModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Model struct Phone: Identifiable, Hashable {
    var id: String
    var number = ""
    @Merge(.counter) var calls = 0

    init(_ id: String, _ number: String) { self.id = id; self.number = number }
}

/// Not a part of a model: merged as a whole.
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

/// The models of an older version of the app.
@Model struct OldPhone: Identifiable, Equatable {
    var id: String
    var number = ""
}
@Model(prefix: "contact/")
struct OldContact: Equatable {
    var name = ""
    var tags: Set<String> = []
    var phones: [OldPhone] = []
    init(name: String = "") { self.name = name }
}

/// Not a part of a model: it has no defaults.
struct Both: Codable, Equatable, Sendable { var a: Int, b: Int }
@Model(prefix: "pair/")
struct Pair: Equatable {
    var both = Both(a: 0, b: 0)
    init(both: Both) { self.both = both }
}

@Suite struct MergingTests {
    @Test func rulesComeFromTheTypes() throws {
        let expected =
            #"{"merge":1,"ids":{"contact/":{"":"auto","/bio":"text","/phones":{"as":"list","key":["/id"]},"#
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

    /// Two devices with different versions of the app edit one value concurrently. The rules of the newer app are added to those of the
    /// older.
    @Test(arguments: [true, false]) func twoVersionsOfAModelOnTwoDevices(_ isOldFirst: Bool) throws {
        let devices = try Devices()
        let old = try devices.laptop.collection(OldContact.self)
        let before =
            #"{"weight":1.50,"later":{"z":1e2},"name":"Ann","tags":["a","b"],"visits":2.0,"#
            + #""phones":[{"id":"1","number":"11","label":"home"},{"id":"2","number":"22","calls":3}]}"#
        try save(before, "contact/1", in: devices.laptop)
        try devices.sync()
        let new = try devices.phone.collection(Contact.self)
        let edits: [() throws -> Void] = [
            {
                try old.edit("1") {
                    $0.tags.insert("old"); $0.phones[0].number = "12"; $0.phones.swapAt(0, 1)
                }
            },
            {
                try new.edit("1") {
                    $0.name = "Anne"; $0.tags.remove("a"); $0.visits += 1; $0.phones[1].calls += 1; $0.town = "Ulm"
                }
            },
        ]
        for edit in isOldFirst ? edits : edits.reversed() { try edit() }
        try devices.sync()
        try old.edit("1") { $0.tags.insert("later") }
        try devices.sync()
        let after =
            #"{"home_town":"Ulm","later":{"z":1e2},"name":"Anne","#
            + #""phones":[{"calls":4,"id":"2","number":"22"},{"id":"1","label":"home","number":"12"}],"#
            + #""tags":["b","later","old"],"visits":3,"weight":1.50}"#
        #expect(try text(devices.phone, "contact/1") == after && text(devices.laptop, "contact/1") == after)
        #expect(new.contradictions == [] && old.contradictions == [])
        // A save of a whole object sets only the members that the model knows.
        try old.save(OldContact(name: "Bob"), id: "1")
        let bob = #"{"home_town":"Ulm","later":{"z":1e2},"name":"Bob","phones":[],"tags":[],"visits":3,"weight":1.50}"#
        #expect(try text(devices.laptop, "contact/1") == bob)
    }

    /// If the app removes an object or element, the members in it that the app does not know are removed, too.
    @Test func whatTheAppRemovesIsGone() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        let before = #"{"name":"Ann","picture":{"name":"p","width":1,"new":2},"phones":[{"id":"1","label":"home"},{"id":"2"}]}"#
        try save(before, "contact/1", in: devices.phone)
        try people.edit("1") {
            $0.picture = nil; $0.phones.removeFirst()
        }
        #expect(try text(devices.phone, "contact/1") == #"{"name":"Ann","phones":[{"id":"2"}]}"#)
    }

    /// Rules without a model may merge a value into one that no app wrote. It is reported as unreadable, and both apps continue to work.
    @Test func whatWasMergedAndCannotBeRead() throws {
        let devices = try Devices()
        try save(#"{"merge":1,"ids":{"pair/":"auto"}}"#, MergeSchema.valueID, in: devices.phone)
        try save(#"{"both":{"a":1}}"#, "pair/1", in: devices.phone)
        try save(#"{"both":{"a":3,"b":4}}"#, "pair/2", in: devices.phone)
        try devices.sync()
        try save(#"{"both":{"a":1,"b":2},"c":1}"#, "pair/1", in: devices.phone)
        try save(#"{"both":{}}"#, "pair/1", in: devices.laptop)
        try devices.sync()
        let pairs = try devices.laptop.collection(Pair.self), merged = try text(devices.laptop, "pair/1")
        #expect(merged == #"{"both":{"b":2},"c":1}"#, "one removed what the other left alone")
        let error = #expect(throws: ModelDecodingError.self) { try pairs["1"] }
        #expect(error?.member == "/both/a" && error?.id.description == "pair/1")
        #expect(throws: ModelDecodingError.self) { try pairs.save(Pair(both: Both(a: 7, b: 7)), id: "1") }
        #expect(try pairs["2"]?.both == Both(a: 3, b: 4) && pairs.readAll().problems.map(\.id) == ["1"])
        #expect(try text(devices.laptop, "pair/1") == merged)
        try save(#"{"both":{"a":5,"b":9}}"#, "pair/1", in: devices.laptop)
        #expect(try pairs["1"]?.both == Both(a: 5, b: 9))
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
        #expect(throws: CancellationError.self) {
            try people.edit("1") {
                $0.name = "?"; throw CancellationError()
            }
        }
        #expect(devices.phone.currentVersion == before)
    }

    @Test func anEditKeepsWhatOthersSavedMeanwhile() throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Contact.self)
        try people.save(Contact(name: "Ann"), id: "1")
        try people.edit("1") { ann in
            try people.edit("1") {
                $0.town = "Ulm"; $0.visits += 1
            }
            ann.visits += 1
        }
        #expect(try people["1"]?.town == "Ulm" && people["1"]?.visits == 2)
    }

    @Test func objectsAreListedAtAVersion() throws {
        let devices = try Devices()
        let people = try devices.phone.collection(Contact.self)
        let all = Dictionary(uniqueKeysWithValues: (0..<250).map { ("\(1_000 + $0)", Contact(name: "\($0)")) })
        let version = try #require(try people.save(all))
        try people.save(["x": Contact()], removing: ["1000", "1001"])
        #expect(try people.ids().count == 249 && people.all().map(\.id) == people.ids())
        #expect(try people.at(version.id).ids().count == 250 && people.at(version.id)["1000"]?.name == "0")
        #expect(try people["1000"] == nil)
    }
}
