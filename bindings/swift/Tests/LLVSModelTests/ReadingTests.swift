import LLVS
import LLVSModel
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
        #expect(try text(devices.phone, "contact/1")?.contains(#""seen":"2027-01-15T08:00:00.000000Z""#) == true)
        #expect(try people["1"] == ann)
        try people.edit("1") { $0.seen = Date(timeIntervalSince1970: 1_800_000_000.25) }
        #expect(try people["1"]?.seen?.timeIntervalSince1970 == 1_800_000_000.25)
        // A date without the digits is read as well, and stays unchanged until it is edited.
        let before = #"{"name":"Ann","seen":"2027-01-15T08:00:00Z"}"#
        try save(before, "contact/1", in: devices.phone)
        #expect(try people["1"] == ann && people.save(ann, id: "1") == nil && text(devices.phone, "contact/1") == before)
    }

    /// The engine compares texts. Dates that are picked by size must therefore sort by time as texts.
    @Test func datesThatArePickedBySizeAreWrittenInOrder() throws {
        let moments = [
            -62_135_596_800, -1.5, -1, -0.25, 0, 0.000_001, 0.5, 1, 1_800_000_000, 1_800_000_000.25, 1_800_000_001, 253_402_300_799,
        ]
        let texts = try moments.map { try ModelCoding.sortable(Date(timeIntervalSince1970: $0)) }
        #expect(texts == texts.sorted() && Set(texts).count == moments.count && Set(texts.map(\.count)) == [27], "\(texts)")
        #expect(texts[9] == "2027-01-15T08:00:00.250000Z")
        let last = try ModelCoding.sortable(Date(timeIntervalSince1970: 0.999_999_9))
        #expect(last == "1970-01-01T00:00:00.9999999Z")
        for none in [Double.infinity, -.infinity, .nan, 1e300] {
            #expect(throws: EncodingError.self) { try ModelCoding.sortable(Date(timeIntervalSince1970: none)) }
        }
    }

    @Test func nilWhereTheDefaultIsAnother() throws {
        let devices = try Devices(), limits = try devices.phone.collection(Limits.self)
        try limits.save(Limits(most: nil, names: nil, bio: nil, last: nil), id: "1")
        #expect(try text(devices.phone, "limits/1") == #"{"bio":null,"most":null,"names":null}"#)
        #expect(try limits["1"] == Limits(most: nil, names: nil, bio: nil, last: nil))
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

@Model(prefix: "limits/")
struct Limits: Equatable {
    var most: Int? = 5
    var names: Set<String>? = ["a"]
    @Merge(.text) var bio: String? = "Dear"
    var last: Date? = nil
}

/// The model of an earlier version of the app.
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
        // The old app continues to work, and keeps the members that it does not know.
        try old.edit("1") { $0.name = "Anne" }
        try devices.sync()
        let after = #"{"form":3,"initials":"A","name":"Anne","phone":"11","phones":["11","12"],"weight":1.50}"#
        #expect(try text(devices.phone, "person/1") == after && text(devices.laptop, "person/1") == after)
        #expect(try old["1"] == FirstPerson("Anne", "11"))
        #expect(String(decoding: Person.mergeRules, as: UTF8.self).contains(#""schema":{"at":"/form"}"#))
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
