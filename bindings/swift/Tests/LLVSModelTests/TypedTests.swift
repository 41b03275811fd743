import LLVS
import LLVSAsync
import Observation
import Testing

@testable import LLVSModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Model struct Address: Equatable {
    var street = ""
    var town = ""
    @Named("zip/code") var zip = ""
}

/// A model with its id in it, indexes, and rules by key paths.
@Model(prefix: "member/")
struct Member: Identifiable, Equatable {
    var id: UUID
    var last = "", first = ""
    var age = 0
    var tags: [String] = []
    var address = Address()
    @Merge(.list(key: \Phone.number)) var phones: [Phone] = []
    var joined: Date?

    static var indexes: [ModelIndex<Member>] {
        [
            ModelIndex("members-by-name", on: \.last, \.first, text: .fold), ModelIndex("members-by-town", on: \.address.town, \.age),
            ModelIndex("members-by-tag", on: \.tags), ModelIndex("members-by-age", on: \.age),
        ]
    }
    static var rules: [String: [MergeRule]] {
        placed {
            ModelRule(.identity(\Member.last, \Member.address.zip))
            ModelRule(\.address, .register)
            ModelRule(each: \.phones, .deleteWins)
        }
    }

    init(_ last: String, _ first: String, age: Int = 0, town: String = "", tags: [String] = []) {
        (id, self.last, self.first, self.age, self.tags) = (UUID(), last, first, age, tags)
        address.town = town
    }
    var computed: Int { age + 1 }
}

/// A model with a rule for a property that is not stored.
@Model(prefix: "wrong/") struct Wrong {
    var n = 0
    var twice: Int { n * 2 }
    static var rules: [String: [MergeRule]] { placed { ModelRule(\.twice, .counter) } }
}
@Model(prefix: "wrong/") struct WrongIndex {
    var n = 0
    var twice: Int { n * 2 }
    static var indexes: [ModelIndex<WrongIndex>] { [ModelIndex("twice", on: \.twice)] }
}
@Model(prefix: "wrong/") struct WrongKey {
    @Merge(.list(key: \Plain.computed)) var all: [Plain] = []
}
extension Plain { var computed: Int { 0 } }

/// What is named by key paths is what is named by text.
@Suite struct TypedTests {
    @Test func placesOfMembers() {
        #expect(Member.pointer(\.last) == "/last" && Member.pointer(\.address.zip) == "/address/zip~1code")
        #expect(Member.pointer(\.computed) == nil && Member.pointer(\.address.zip.count) == nil && Contact.pointer(\.town) == "/home_town")
        let json = String(decoding: Member.mergeRules, as: UTF8.self)
        for part in [
            #""":{"identity":["/last","/address/zip~1code"]}"#, #""/address":"register""#, #""/phones/*":{"delete":"delete"}"#,
            #""/phones":{"as":"list","key":["/number"]}"#,
            #""members-by-name":{"on":["/last","/first"],"prefix":"member/","text":"fold"}"#,
            #""members-by-tag":{"on":["/tags/*"],"prefix":"member/"}"#,
        ] { #expect(json.contains(part), "\(part) in \(json)") }
    }

    @Test func whatIsNoMemberIsRefused() throws {
        let devices = try Devices()
        func problem<Model: StorableModel>(_ model: Model.Type) -> String {
            do { _ = try devices.phone.collection(model); return "" } catch { return (error as? StoreError)?.message ?? "" }
        }
        for told in [problem(Wrong.self), problem(WrongIndex.self), problem(WrongKey.self)] {
            #expect(told.contains("stored member"), "\(told)")
        }
        let members = try devices.phone.collection(Member.self)
        let error = #expect(throws: StoreError.self) { try members.filter(where: \.computed == 3).ids() }
        #expect(error?.code == .invalidArgument)
        let twice = #expect(throws: StoreError.self) { try members.filter(where: \.age > 3, \.age > 4).ids() }
        #expect(twice?.code == .invalidArgument)
    }

    @Test func questions() throws {
        let devices = try Devices(), members = try devices.phone.collection(Member.self)
        let ages = [17, 30, 45, 71], towns = ["Ulm", "Rom", "Ulm", "Ulm"], names = ["Smith", "Smart", "smith", "Zoë"]
        var all = (0..<4).map { Member(names[$0], "F\($0)", age: ages[$0], town: towns[$0], tags: $0 == 1 ? [] : ["t\($0)", "all"]) }
        all[3].first = "Ann"
        try members.save(all)
        func found(_ selection: ModelSelection<Member>) throws -> [Int] { try selection.all().map(\.object.age) }
        #expect(try found(members.filter(where: \.last == "SMITH").ordered(by: \.first)) == [17, 45])
        #expect(try found(members.filter(where: \.last == "smith", \.first == "f2")) == [45])
        #expect(try found(members.filter(where: .hasPrefix(\.last, "Sm")).ordered(by: \.last, reversed: true)) == [45, 17, 30])
        #expect(try found(members.filter(where: \.address.town == "Ulm", \.age >= 45)) == [45, 71])
        #expect(try found(members.filter(where: \.address.town == "Ulm", \.age > 17, \.age < 71)) == [45])
        #expect(try found(members.filter(where: \.age <= 30)) == [17, 30] && members.filter(where: \.age > 71).count() == 0)
        #expect(try found(members.ordered(by: \.age, reversed: true)) == [71, 45, 30, 17])
        #expect(try members.filter(where: .contains(\.tags, "all")).count() == 3)
        #expect(try members.filter(where: .contains(\.tags, "t3")).first()?.object.first == "Ann")
    }

    @Test func objectsWithTheirIds() async throws {
        let devices = try Devices(), members = try await devices.phone.collection(Member.self)
        var ann = Member("Smith", "Ann")
        try await members.save(ann)
        #expect(try await members.ids() == [ann.id.description])
        #expect(try await members.object(ann.id.description) == ann)
        ann.age = 3
        let ben = Member("Smith", "Ben")
        try await members.save([ann, ben])
        #expect(try await members.count() == 2)
        #expect(try await members.object(ann.id.description)?.age == 3)
        try await members.remove(ann)
        #expect(try await members.all().map(\.object) == [ben])
        let there = try #require(try await devices.phone.store.version(at: Date(timeIntervalSinceNow: 3_600)))
        #expect(there.id == devices.phone.currentVersion && abs(there.date.timeIntervalSinceNow) < 3_600)
    }

    @Test func sidesOfConflicts() throws {
        let devices = try Devices(), phone = try devices.phone.collection(Contact.self),
            laptop = try devices.laptop.collection(Contact.self)
        try phone.save(Contact(name: "Ann"), id: "1")
        try devices.sync()
        try phone.edit("1") {
            $0.name = "Anne"; $0.town = "Ulm"
        }
        try laptop.edit("1") {
            $0.name = "Anna"; $0.town = "Rom"
        }
        try devices.sync()
        let conflicts = try phone.conflicts()
        #expect(conflicts.count == 2 && conflicts.allSatisfy { $0.id == "1" })
        let name = try #require(conflicts.first { $0.concerns(\.name) }), town = try #require(conflicts.first { $0.concerns(\.town) })
        #expect(try name.value(.base, of: \.name) == "Ann" && name.value(.newer, of: \.name) == "Anna")
        #expect(try name.value(.older, of: \.name) == "Anne" && name.value(.newer, of: \.town) == nil && name.path == ["name"])
        #expect(try town.value(.result, of: \.town) == .some("Rom") && town.path == ["home_town"] && town.json(.older) == "Ulm")
        #expect(try name.object(with: .older, in: phone)?.name == "Anne" && phone["1"]?.name == "Anna")
        try phone.resolve(name, with: .older)
        #expect(try phone["1"]?.name == "Anne" && phone.conflicts().map(\.path) == [["home_town"]])
    }

    @Test func changesAsTheyCome() async throws {
        let devices = try Devices(), phone = try await devices.phone.collection(Contact.self),
            laptop = try await devices.laptop.collection(Contact.self)
        try await phone.save(["1": Contact(name: "Ann"), "2": Contact(name: "Ben")])
        try devices.sync()
        let start = devices.phone.currentVersion
        var iterator = phone.changes.makeAsyncIterator()
        try await laptop.edit("1") { $0.name = "Anna" }
        try await laptop.remove("2")
        try await laptop.save(Contact(name: "Cyd"), id: "3")
        try devices.sync()
        var found: [ModelChange<Contact>] = []
        while found.count < 3, let more = try await iterator.next() { found += more }
        #expect(found.map(\.id) == ["1", "2", "3"] && found.map(\.kind) == [.changed, .removed, .added])
        #expect(found.map(\.before?.name) == ["Ann", "Ben", nil] && found.map(\.object?.name) == ["Anna", nil, "Cyd"])
        #expect(found.map(\.device) == ["laptop", "laptop", "laptop"] && found.allSatisfy { $0.problem == nil })
        #expect(try await phone.changes(from: devices.phone.currentVersion, to: start).map(\.kind) == [.changed, .added, .removed])
        try await devices.phone.close()
        #expect(try await iterator.next() == nil)
    }

    /// One side removes an object that the other one changes.
    @Test func aConflictAboutAWholeObject() throws {
        let devices = try Devices()
        let phone = try devices.phone.collection(Contact.self), laptop = try devices.laptop.collection(Contact.self)
        try phone.save(Contact(name: "Ann"), id: "1")
        try devices.sync()
        try phone.remove("1")
        try laptop.edit("1") { $0.name = "Anna" }
        try devices.sync()
        let conflicts = try phone.conflicts(), conflict = try #require(conflicts.first)
        #expect(conflicts.count == 1 && conflict.path.isEmpty && !conflict.concerns(\.name))
        #expect(try conflict.object(.base)?.name == "Ann" && conflict.object(.newer)?.name == "Anna" && conflict.object(.older) == nil)
        #expect(try conflict.value(.newer, of: \.name) == nil)
        try phone.resolve(conflict, with: .older)
        #expect(try phone["1"] == nil && phone.conflicts().isEmpty)
        for device in [devices.phone, devices.laptop] { try device.close() }
    }

    /// The async forms, once as they are and once in a cancelled task.
    @Test func asyncForms() async throws {
        let devices = try Devices(), people = try await devices.phone.collection(Contact.self)
        let start = devices.phone.currentVersion
        try await people.save(["1": Contact(name: "Ann"), "2": Contact(name: "Ben")])
        try save(#"{"name":1}"#, "contact/3", in: devices.phone)
        let past = people.at()
        try await people.removeAll()
        let forms: [(String, @Sendable () async throws -> Bool)] = [
            ("object", { try await past.object("1")?.name == "Ann" }), ("contains", { try await past.contains("3") }),
            ("count", { try await past.count() == 3 }), ("ids", { try await past.ids() == ["1", "2", "3"] }),
            ("readAll", { try await past.readAll().objects.map(\.object.name) == ["Ann", "Ben"] }),
            ("problems", { try await past.problems().count == 1 }), ("no problems", { try await people.problems().isEmpty }),
            ("all", { try await people.at(start).all().isEmpty }), ("all of now", { try await people.all().isEmpty }),
            ("changes", { try await people.changes(from: start, to: past.version).count == 3 }),
        ]
        for (name, call) in forms {
            let ends = await Task {
                withUnsafeCurrentTask { $0?.cancel() }
                do { _ = try await call(); return false } catch { return error is CancellationError }
            }.value
            #expect(ends, "\(name), cancelled")
            #expect(try await call(), "\(name)")
        }
        await #expect(throws: ModelDecodingError.self) { try await past.all() }
        for device in [devices.phone, devices.laptop] { try await device.close() }
    }

    #if canImport(Observation)
    @MainActor @Test func observedObjectsFollow() async throws {
        let devices = try Devices(), phone = try await devices.phone.collection(Contact.self)
        try await phone.save(Contact(name: "Ben"), id: "2")
        let observed = try await ObservedModels(phone)
        #expect(observed.objects.map(\.id) == ["2"])
        try await phone.save(["1": Contact(name: "Ann"), "3": Contact(name: "Cyd")], removing: ["2"])
        while observed.objects.map(\.object.name) != ["Ann", "Cyd"] {
            await withCheckedContinuation { waiting in
                withObservationTracking {
                    _ = observed.objects
                } onChange: {
                    waiting.resume()
                }
            }
        }
        #expect(observed.objects.map(\.id) == ["1", "3"] && observed.failure == nil)
        try await devices.phone.close()
    }
    #endif
}
