import LLVS
import LLVSModel
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Adding the rules of models to those of the store: missing rules are added, contradictions are reported.
@Suite struct RegistrationTests {
    private static let own =
        #""/bio":"text","/phones":{"as":"list","key":["/id"]},"/phones/*/calls":"counter","/picture":"register","#
        + #""/seen":{"pick":"max"},"/stock":{"as":"counter","from":100,"max":120},"/tags":"set","/visits":"counter""#

    private func ids(_ coordinator: StoreCoordinator) throws -> JSONValue? {
        try coordinator.value(ValueID(MergeSchema.valueID)).flatMap {
            guard case .object(let all) = try JSONDecoder().decode(JSONValue.self, from: Data($0.data)) else { return nil }
            return all["ids"]
        }
    }

    private func expected(_ text: String) throws -> JSONValue { try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8)) }

    @Test func rulesComeWithTheFirstSave() throws {
        let devices = try Devices(), root = devices.phone.currentVersion
        let people = try devices.phone.collection(Contact.self)
        #expect(try devices.phone.currentVersion == root && ids(devices.phone) == nil)
        try people.save(Contact(name: "Ann"), id: "1")
        #expect(try ids(devices.phone) == expected("{\"contact/\":{\"\":\"auto\",\(Self.own)}}"))
        let stored = try devices.phone.value(ValueID(MergeSchema.valueID))?.storedVersion
        try people.save(Contact(name: "Ben"), id: "2")
        #expect(try devices.phone.collection(Contact.self).contradictions == [])
        #expect(try devices.phone.value(ValueID(MergeSchema.valueID))?.storedVersion == stored)
    }

    /// Two devices that start apart with the same model get the same version of the rules.
    @Test func devicesThatBeginApart() throws {
        let devices = try Devices()
        for (device, sold) in [(devices.phone, 5), (devices.laptop, 3)] {
            try device.collection(Contact.self).edit("1", default: Contact(name: "Ann")) { $0.stock += sold }
        }
        try devices.sync()
        for device in [devices.phone, devices.laptop] {
            #expect(try device.collection(Contact.self)["1"]?.stock == 108)
            #expect(try ids(device) == expected("{\"contact/\":{\"\":\"auto\",\(Self.own)}}"))
        }
    }

    @Test func whatIsMissingIsAdded() throws {
        let devices = try Devices(), phone = devices.phone
        try save(
            #"{"merge":1,"models":{"x":1},"ids":{"a/":{"/n":"counter"},"contact/":{"/tags":"set","/other":"text"}}}"#,
            MergeSchema.valueID, in: phone)
        #expect(try phone.collection(Contact.self).contradictions == [])
        #expect(try ids(phone) == expected("{\"a/\":{\"/n\":\"counter\"},\"contact/\":{\"\":\"auto\",\"/other\":\"text\",\(Self.own)}}"))
        #expect(try text(phone, MergeSchema.valueID)?.contains(#""models":{"x":1}"#) == true)
    }

    @Test func rulesThatSayTheSameOtherwise() throws {
        let devices = try Devices(), phone = devices.phone
        let held = #"{"merge":1,"ids":{"watched/":{"":{},"/n":{"as":"counter","from":0.0,"pick":"newer"}}}}"#
        try save(held, MergeSchema.valueID, in: phone)
        #expect(try phone.collection(Watched.self).contradictions == [] && text(phone, MergeSchema.valueID) == held)
    }

    @Test func contradictionsAreToldAndTheStoresRulesStand() throws {
        let devices = try Devices(), phone = devices.phone
        try save(#"{"merge":1,"ids":{"contact/":{"/tags":"register","/visits":{"as":"counter","min":0}}}}"#, MergeSchema.valueID, in: phone)
        let people = try phone.collection(Contact.self)
        #expect(people.contradictions.map(\.pattern) == ["/tags", "/visits"])
        #expect(people.contradictions.map(\.prefix) == ["contact/", "contact/"])
        #expect(people.contradictions.map(\.store) == ["\"register\"", #"{"as":"counter","min":0}"#])
        #expect(people.contradictions.map(\.model) == ["\"set\"", "\"counter\""] && people.rulesProblem == nil)
        #expect(
            people.contradictions.first?.description
                == #"the rule for "contact/" at "/tags" is "register" in the store and "set" in the model; the store's stands"#)
        // `tags` is merged as a register, as the store's rules say.
        try people.save(Contact(name: "Ann"), id: "1")
        try people.edit("1") { mine in
            try people.edit("1") { $0.tags = ["b"] }
            mine.tags = ["c"]
        }
        #expect(try people["1"]?.tags == ["c"])
        // Rules saved by others are compared at the next save.
        try save(#"{"merge":1,"ids":{"contact/":{"/tags":"set","/bio":"register"}}}"#, MergeSchema.valueID, in: phone)
        try people.edit("1") { $0.visits += 1 }
        #expect(people.contradictions.map(\.pattern) == ["/bio"])
        guard case .object(let rules)? = try ids(phone), case .object(let contact)? = rules["contact/"] else {
            Issue.record("no rules")
            return
        }
        #expect(contact["/visits"] == "counter" && contact["/bio"] == "register", "added at that save, beside what contradicts")
    }

    @Test(arguments: [#""register""#, #"{"as":"register","pick":"older"}"#])
    func aRuleWithoutPatternsIsThatOfTheWhole(_ rule: String) throws {
        let devices = try Devices()
        try save("{\"merge\":1,\"ids\":{\"contact/\":\(rule)}}", MergeSchema.valueID, in: devices.phone)
        let people = try devices.phone.collection(Contact.self)
        #expect(people.contradictions.map(\.pattern) == [""] && people.contradictions.map(\.store) == [rule])
        #expect(try ids(devices.phone) == expected("{\"contact/\":{\"\":\(rule),\(Self.own)}}"))
    }

    @Test(arguments: ["{", #"{"merge":1,"ids":{"a":"sum"}}"#, "[]"])
    func rulesThatAreNotValidAreToldAndPutRight(_ bad: String) throws {
        let devices = try Devices(), phone = devices.phone
        try save(#"{"merge":1,"ids":{"note/":"auto"}}"#, MergeSchema.valueID, in: phone)
        try save(bad, MergeSchema.valueID, in: phone)
        let people = try phone.collection(Contact.self)
        #expect(people.rulesProblem?.contains("so the newest valid ones count") == true)
        try people.save(Contact(name: "Ann"), id: "1")
        #expect(try ids(phone) == expected("{\"contact/\":{\"\":\"auto\",\(Self.own)},\"note/\":\"auto\"}") && people.rulesProblem == nil)
    }

    @Test func rulesOfANewerLibraryAreLeftAlone() throws {
        let devices = try Devices(), phone = devices.phone
        try save(#"{"merge":2,"ids":{}}"#, MergeSchema.valueID, in: phone)
        let people = try phone.collection(Contact.self)
        #expect(people.rulesProblem?.contains("cannot be followed, and stay as they are") == true)
        try people.save(Contact(name: "Ann"), id: "1")
        try people.edit("1") { $0.visits += 1 }
        #expect(try people["1"]?.visits == 1 && text(phone, MergeSchema.valueID) == #"{"merge":2,"ids":{}}"#)
    }

    @Test func rulesCameFromElsewhereBeforeTheFirstSave() throws {
        let devices = try Devices()
        try save(#"{"merge":1,"ids":{"note/":"auto"}}"#, MergeSchema.valueID, in: devices.laptop)
        _ = try devices.laptop.exchange()
        let people = try devices.phone.collection(Contact.self)
        _ = try devices.phone.sync()
        try people.save(Contact(name: "Ann"), id: "1")
        #expect(try ids(devices.phone) == expected("{\"contact/\":{\"\":\"auto\",\(Self.own)},\"note/\":\"auto\"}"))
    }

    /// If an app continues from an earlier version that has no rules, the rules are added again.
    @Test func rulesAreAddedAgainWhereTheCurrentVersionHasNone() throws {
        let devices = try Devices(), phone = devices.phone
        try save(#"{"name":"Ann"}"#, "contact/1", in: phone)
        let before = phone.currentVersion, people = try phone.collection(Contact.self)
        #expect(phone.currentVersion != before)
        try phone.setCurrentVersion(before)
        try people.edit("1") { $0.visits += 1 }
        #expect(try ids(phone) == expected("{\"contact/\":{\"\":\"auto\",\(Self.own)}}") && people["1"]?.visits == 1)
    }

    @Test func aStoreOpenedForReading() throws {
        let devices = try Devices()
        try save(#"{"name":"Ann"}"#, "contact/1", in: devices.phone)
        try devices.phone.close()
        var options = StoreCoordinator.Options()
        options.store.readOnly = true
        let people = try StoreCoordinator(path: devices.directory + "/phone.llvs", options: options).collection(Contact.self)
        #expect(try people["1"]?.name == "Ann")
        let error = #expect(throws: StoreError.self) { try people.save(Contact(name: "Bob"), id: "1") }
        #expect(error?.code == .readOnly)
    }
}
