import Dispatch
import LLVS
import LLVSModel
import Synchronization
import Testing

/// A model without the macro. Calls a closure at each encoding.
struct Watched: StorableModel, Equatable {
    static let idPrefix = "watched/"
    static var mergePatterns: [MergePattern] { MergePattern.member("n", Int.self, [.counter], from: 0) }
    static let whenWritten = Mutex<(@Sendable () throws -> Void)?>(nil)

    var n = 0
    enum CodingKeys: String, CodingKey { case n }
    init(_ n: Int) { self.n = n }
    init(from decoder: any Decoder) throws { n = try decoder.container(keyedBy: CodingKeys.self).value(forKey: .n, else: 0) }
    func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(n, forKey: .n)
        try Self.whenWritten.withLock { $0 }?()
    }
}

@Model struct Colour: Hashable {
    var red = 0, green = 0
    init(_ red: Int, _ green: Int) { (self.red, self.green) = (red, green) }
}
@Model(prefix: "palette/")
struct Palette: Equatable {
    var colours: Set<Colour> = []
    var numbers: Set<Int>?
    init() {}
}

/// A structure with members only.
@Model(prefix: "plain/") struct Plain: Equatable {
    let id: String
    var name = ""
    var more: Int?
}

@Suite struct CollectionTests {
    /// A model keeps its memberwise initializer.
    @Test func aModelIsMadeOfItsMembers() throws {
        let devices = try Devices(), all = try devices.phone.collection(Plain.self)
        try all.save(["1": Plain(id: "a"), "2": Plain(id: "b", name: "B", more: 2)])
        #expect(try text(devices.phone, "plain/1") == #"{"id":"a","name":""}"# && all["2"] == Plain(id: "b", name: "B", more: 2))
    }

    @Test func whatThereIs() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        #expect(try people.count() == 0 && people.ids() == [] && people.openConflicts().isEmpty && people.history("1").isEmpty)
        #expect(try people.removeAll() == nil)
        try people.save(["1": Contact(name: "Ann"), "2": Contact(name: "Ben")])
        try save("{}", "contacts", in: devices.phone)
        #expect(try people.count() == 2 && people.contains("1") && !people.contains("3"))
        let before = people.at()
        let removed = try #require(try people.removeAll(description: "forget all"))
        #expect(try people.count() == 0 && before.count() == 2 && before.contains("2") && text(devices.phone, "contacts") == "{}")
        #expect(removed.metadata["__llvs_description"] == Array("\"forget all\"".utf8))
    }

    /// If one value cannot be read, the others are read, and the error is reported.
    @Test func badValuesAreTold() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        try people.save(["1": Contact(name: "Ann"), "4": Contact(name: "Dan")])
        try save("{", "contact/2", in: devices.phone)
        try save(#"{"phones":[{"id":"a"},{"number":"1"}]}"#, "contact/3", in: devices.phone)
        let found = try people.readAll()
        #expect(found.objects.map(\.id) == ["1", "4"] && found.objects.map(\.object.name) == ["Ann", "Dan"])
        #expect(found.problems.map(\.id) == ["2", "3"] && found.problems.map(\.error.member) == ["", "/phones/1/id"])
        #expect(try people.problems().map(\.bytes) == [Array("{".utf8), Array(#"{"phones":[{"id":"a"},{"number":"1"}]}"#.utf8)])
        #expect(try people.count() == 4 && people.contains("2"))
        #expect(throws: ModelDecodingError.self) { try people.all() }
        #expect(try people.removeAll() != nil && people.readAll().problems.isEmpty)
    }

    @Test func theHistoryOfOne() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        try people.save(Contact(name: "Ann"), id: "1")
        try people.save(Contact(name: "Ben"), id: "2")
        try people.edit("1") { $0.name = "Anne" }
        try save(#"{"name":7}"#, "contact/1", in: devices.phone)
        try people.remove("1")
        let found = try people.history("1")
        #expect(found.map(\.kind) == [.remove, .update, .update, .insert] && found.map { $0.object?.name } == [nil, nil, "Anne", "Ann"])
        #expect(found.map { $0.problem?.member } == [nil, "/name", nil, nil])
        #expect(found.first?.version.id == devices.phone.currentVersion)
        #expect(try people.history("1", limit: 2).map(\.kind) == [.remove, .update] && people.history("1", limit: 0).isEmpty)
        try people.save(Dictionary(uniqueKeysWithValues: [("3", Contact())]))
        for visits in 1...150 { try people.edit("3") { $0.visits = visits } }
        #expect(try people.history("3").compactMap { $0.object?.visits } == (0...150).reversed())
    }

    @Test func conflictsAreListedAndChosen() throws {
        let devices = try Devices()
        let phone = try devices.phone.collection(Contact.self), laptop = try devices.laptop.collection(Contact.self)
        try phone.save(["1": Contact(name: "Ann"), "2": Contact(name: "Ben"), "3": Contact(name: "Cyd")])
        _ = try devices.phone.register(Array(#"{"merge":1,"ids":{"note":"auto"}}"#.utf8))
        try save("{}", "note", in: devices.phone)
        try devices.sync()
        for (people, letter) in [(phone, "x"), (laptop, "y")] {
            try people.edit("2") {
                $0.name += letter; $0.visits += 1
            }
            try people.edit("1") {
                $0.name += letter; $0.town = letter
            }
            try save("{\"by\":\"\(letter)\"}", "note", in: people.coordinator)
        }
        try devices.sync()
        let open = try phone.openConflicts()
        #expect(open.map(\.id) == ["1", "2"] && open.map(\.conflicts.count) == [2, 1])
        #expect(try devices.phone.store.openConflicts(at: devices.phone.currentVersion).count == 4)
        let names = try phone.openConflicts(of: "2"), name = try #require(names.first)
        #expect(names.count == 1 && open.last?.conflicts == names && name.record.path == Array(#"["name"]"#.utf8))
        #expect(name.record.newer == Array("\"Beny\"".utf8) && name.record.older == Array("\"Benx\"".utf8))
        #expect(try phone["2"]?.name == "Beny")
        try phone.resolve(name, with: .older)
        #expect(try phone["2"]?.name == "Benx" && phone["2"]?.visits == 2 && phone.openConflicts(of: "2").isEmpty)
        // The choice is an ordinary save.
        let one = try #require(open.first?.conflicts.first)
        try laptop.resolve(one, with: .result)
        try devices.sync()
        #expect(try laptop["2"]?.name == "Benx" && phone.openConflicts().map(\.conflicts.count) == [1])
        let error = #expect(throws: StoreError.self) { try phone.resolve(name, with: .newer) }
        #expect(error?.code == .moved)
    }

    @Test func undoTakesBackMembers() throws {
        let devices = try Devices()
        let phone = try devices.phone.collection(Contact.self), laptop = try devices.laptop.collection(Contact.self)
        try phone.save(Contact(name: "Ann"), id: "1", description: "add Ann")
        try devices.sync()
        try phone.edit("1", description: "call her Anne") {
            $0.name = "Anne"; $0.visits += 1
        }
        for number in ["3", "4"] {
            try phone.edit("1", group: "phones", description: "telephones") { $0.phones.append(Phone(number, number)) }
        }
        try laptop.edit("1") {
            $0.tags.insert("other"); $0.visits += 10
        }
        try devices.sync()
        #expect(try phone["1"]?.visits == 11 && phone["1"]?.phones.count == 2)
        #expect(try devices.phone.undoable().undo?.description == "telephones")
        _ = try devices.phone.undo()
        #expect(try phone["1"]?.phones == [] && phone["1"]?.name == "Anne")
        _ = try devices.phone.undo()
        let after = try #require(try phone["1"])
        #expect(after.name == "Ann" && after.visits == 10 && after.tags == ["other"])
        _ = try devices.phone.redo()
        #expect(try phone["1"]?.name == "Anne" && phone["1"]?.visits == 11)
    }
}

@Suite struct SavingTests {
    /// A save with the version that it expects.
    @Test func anExpectedVersion() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        let first = try #require(try people.save(Contact(name: "Ann"), id: "1"))
        let second = try #require(try people.save(Contact(name: "Anne"), id: "1", expected: first.id))
        let errors = [
            #expect(throws: StoreError.self) { try people.save(Contact(name: "Bob"), id: "1", expected: first.id) },
            #expect(throws: StoreError.self) { try people.remove("1", expected: first.id) },
            #expect(throws: StoreError.self) { try people.remove("9", expected: first.id) },
            #expect(throws: StoreError.self) { try people.save(Contact(name: "Anne"), id: "1", expected: first.id) },
        ]
        #expect(errors.map { $0?.code } == [.moved, .moved, .moved, .moved])
        #expect(try people["1"]?.name == "Anne" && devices.phone.currentVersion == second.id)
        #expect(try people.remove("1", expected: second.id) != nil)
    }

    /// Other saves come between the read and the save of an edit, several times. The edit is repeated until it succeeds.
    @Test func anEditIsRepeatedUntilItStands() throws {
        let devices = try Devices(), phone = devices.phone, watched = try phone.collection(Watched.self)
        try watched.save(Watched(1), id: "1")
        let moves = Mutex([7, 5])
        Watched.whenWritten.withLock {
            $0 = {
                guard let more = moves.withLock({ $0.popLast() }) else { return }
                let found = try text(phone, "watched/1"), n = found.flatMap { Int($0.filter(\.isNumber)) } ?? 0
                try save("{\"n\":\(n + more)}", "watched/1", in: phone)
            }
        }
        defer { Watched.whenWritten.withLock { $0 = nil } }
        try watched.edit("1") { $0.n += 1 }
        #expect(try watched["1"]?.n == 1 + 7 + 5 + 1 && moves.withLock { $0.isEmpty })
    }

    @Test func manyThreadsAdd() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        try people.save(Contact(name: "Ann"), id: "1")
        let failures = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            do {
                for number in 0..<25 {
                    try people.edit("1") {
                        $0.visits += 1; $0.tags.insert("\(thread).\(number)")
                    }
                }
            } catch { failures.withLock { $0.append("\(error)") } }
        }
        #expect(failures.withLock { $0 } == [])
        #expect(try people["1"]?.visits == 100 && people["1"]?.tags.count == 100)
    }

    /// A form was filled at an earlier version. Its save keeps the changes made since then.
    @Test func anEditOfWhatWasReadBefore() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        let then = try #require(try people.save(Contact(name: "Ann"), id: "1")).id
        try people.edit("1") {
            $0.town = "Ulm"; $0.visits += 10
        }
        try people.edit("1", at: then) { form in
            #expect(form.town == nil)
            form.name = "Anne"
            form.visits += 1
        }
        let found = try #require(try people["1"])
        #expect(found.name == "Anne" && found.town == "Ulm" && found.visits == 11)
        #expect(try devices.phone.store.openConflicts(at: devices.phone.currentVersion).isEmpty)
        let root = try #require(try devices.phone.store.history().last)
        #expect(throws: StoreError.self) { try people.edit("1", at: root) { $0.name = "?" } }
    }

    /// If both changed a member, the result is a conflict, as between two devices.
    @Test func anEditOfWhatOthersChangedMeanwhile() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        try people.save(Contact(name: "Ann"), id: "1")
        try people.edit("1") { first in
            first.name = "Anna"
            try people.edit("1") { $0.name = "Anne" }
        }
        #expect(try people["1"]?.name == "Anna")
        let open = try devices.phone.store.openConflicts(at: devices.phone.currentVersion)
        #expect(open.count == 1 && open.first?.record.kind == .pick)
    }

    @Test func whatWasRemovedMeanwhile() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        try people.save(Contact(name: "Ann"), id: "1")
        try people.edit("1") {
            try people.remove("1"); $0.visits += 1
        }
        #expect(try people["1"]?.visits == 1, "an edit beats a removal")
        try people.edit("1") { _ in try people.remove("1") }
        #expect(try people["1"] == nil, "nothing was edited")
    }

    @Test func bothBeginOne() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        try people.edit("1", default: Contact(name: "Ann")) { mine in
            var other = Contact(name: "Bob")
            (other.tags, other.town) = (["b"], "Ulm")
            try people.save(other, id: "1")
            mine.tags.insert("a")
            mine.visits += 1
        }
        let found = try #require(try people["1"])
        #expect(found.name == "Bob" && found.tags == ["a", "b"] && found.town == "Ulm" && found.visits == 1)
        try people.edit("2", default: Contact(name: "Ann")) { _ in try people.save(Contact(name: "Bob"), id: "2") }
        #expect(try people["2"]?.name == "Bob")
        try people.edit("3", default: Contact(name: "Ann")) { _ in }
        #expect(try people["3"]?.name == "Ann", "nothing was changed, and it is begun")
    }

    @Test func whatWasRemovedKeepsWhatTheModelDoesNotKnow() throws {
        let devices = try Devices(), people = try devices.phone.collection(Contact.self)
        try save(#"{"name":"Ann","unknown":{"z":1.50}}"#, "contact/1", in: devices.phone)
        let then = devices.phone.currentVersion
        try people.edit("1") {
            try people.remove("1"); $0.name = "Anne"
        }
        #expect(try text(devices.phone, "contact/1") == #"{"name":"Anne","unknown":{"z":1.50}}"#)
        try people.remove("1")
        #expect(try people.edit("1", at: then) { _ in } == nil && people["1"] == nil)
        try people.edit("1", at: then) { $0.name = "Eve" }
        #expect(try text(devices.phone, "contact/1") == #"{"name":"Eve","unknown":{"z":1.50}}"#)
    }

    /// Sets have no order; equal sets have the same JSON.
    @Test func equalSetsAreNoChange() throws {
        let devices = try Devices(), palettes = try devices.phone.collection(Palette.self)
        func palette(_ room: Int) -> Palette {
            var made = Palette()
            made.colours.reserveCapacity(room)
            for i in 0..<20 { made.colours.insert(Colour(i, i)) }
            var numbers: Set<Int> = []
            numbers.reserveCapacity(room)
            for i in 0..<20 { numbers.insert(i) }
            made.numbers = numbers
            return made
        }
        try palettes.save(palette(0), id: "1")
        for room in [64, 512, 4_096] { #expect(try palettes.save(palette(room), id: "1") == nil) }
        #expect(try palettes["1"] == palette(0))
    }
}
