import LLVS
import Testing

@testable import LLVSModel

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Random numbers that are the same in each run (SplitMix64).
struct Seeded: RandomNumberGenerator {
    var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
    mutating func upTo(_ most: Int) -> Int { Int.random(in: 0...most, using: &self) }
}

enum Grade: String, Codable, CaseIterable, Sendable { case low, mid, high, top, sky }
enum Rank: Int, Codable, CaseIterable, Sendable { case first = 1, second, third }
enum Aspect: String, Codable, CaseIterable, CodingKeyRepresentable, Sendable { case size, colour, weight }
indirect enum Kind: Codable, Hashable, Sendable {
    case none, tagged(Set<String>), graded([Grade: Set<Int>], note: String), either(Kind, Kind)
}
/// Not parts of a model.
struct Held: Codable, Hashable, Sendable {
    var names: Set<String> = []
    var byGrade: [Grade: [Date]] = [:]
    var inside: [Set<Kind>] = []
}
final class Shared: Codable, Hashable, Sendable {
    let numbers: Set<Int>
    init(_ numbers: Set<Int>) { self.numbers = numbers }
    static func == (one: Shared, other: Shared) -> Bool { one.numbers == other.numbers }
    func hash(into hasher: inout Hasher) { hasher.combine(numbers) }
}
/// Encodes its set itself. The encoder cannot know that the elements have no order.
struct Tags: Codable, Hashable, Sendable {
    var names: Set<String>
    init(_ names: Set<String>) { self.names = names }
    init(from decoder: any Decoder) throws { names = try Set(from: decoder) }
    func encode(to encoder: any Encoder) throws { try names.encode(to: encoder) }
}
struct Listed: Codable, Equatable, Sendable {
    enum CodingKeys: CodingKey { case names, note }
    var names: Set<String> = []
    var note = ""
    init() {}
    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        names = Set(try members.decode([String].self, forKey: .names))
        note = try members.decode(String.self, forKey: .note)
    }
    func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(Array(names), forKey: .names)
        try members.encode(note, forKey: .note)
    }
}
struct Pairs: Codable, Equatable, Sendable {
    var grades: [Grade: Grade]
    init(_ grades: [Grade: Grade]) { self.grades = grades }
    init(from decoder: any Decoder) throws { grades = try [Grade: Grade](from: decoder) }
    func encode(to encoder: any Encoder) throws { try grades.encode(to: encoder) }
}
/// Equal if the ids are equal, as apps often declare it for views.
struct Playlist: Codable, Equatable, Sendable {
    var id = 0
    var songs: [String] = []
    var tags = Tags([])
    static func == (one: Playlist, other: Playlist) -> Bool { one.id == other.id }
}
@Model struct Piece: Identifiable, Hashable {
    var id: UUID
    var title = ""
    var at: Date?
    var kinds: Set<Kind> = []
    var tags = Tags([])
    @Merge(.counter) var count = 0
}
@Model struct Corner: Hashable {
    var x = 0.0, y = 0.0
    var grades: [Grade: Set<Grade>] = [:]
}

/// A model with a member of every supported type.
@Model(prefix: "every/")
struct Everything: Equatable {
    var bool = false
    var int = 0
    var int8: Int8 = 0
    var int16: Int16 = 0
    var int32: Int32 = 0
    var int64: Int64 = 0
    var uint = UInt(0)
    var uint8: UInt8 = 0
    var uint16: UInt16 = 0
    var uint32: UInt32 = 0
    var uint64: UInt64 = 0
    var float: Float = 0
    var double = 0.0
    var decimal = Decimal(0)
    var string = ""
    var date = Date(timeIntervalSince1970: 0)
    var data = Data()
    var uuid = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
    var url: URL?
    var grade = Grade.low
    var rank = Rank.first
    var kind = Kind.none
    var whole = Held()
    var shared = Shared([])
    var tags = Tags([])
    var listed = Listed()
    var pairs = Pairs([:])
    var json = JSONValue.null
    var range = 0...1
    var optional: Int?
    var nilByDefault: Set<Date>?
    var byDefault: Int? = 5
    var strings: Set<String> = []
    var dates: Set<Date> = []
    var sets: Set<Set<Int>> = []
    var kinds: Set<Kind> = []
    var corners: Set<Corner> = []
    var array: [Double] = []
    var arrays: [[Grade: Set<Int>]] = []
    var pieces: [Piece] = []
    var byName: [String: Int] = [:]
    var byNumber: [Int: Set<String>] = [:]
    var byGrade: [Grade: Int] = [:]
    var byAspect: [Aspect: [Grade: Int]] = [:]
    var byDate: [Date: Set<UUID>] = [:]
    var bySet: [Set<String>: [Grade: Set<Int>]] = [:]
    var names: [String: Set<Grade>] = [:]
    var corner = Corner()
    var cornerByName: [String: Corner] = [:]
    @Merge(.counter) var counter = 0
    @Merge(.text) var text = ""
    @Merge(.text(by: .line)) var lines: String?
    @Merge(.tuple) var slots = [0, 0, 0]
    @Merge(.register) var register: Set<Grade> = []
    @Merge(.list(key: "")) var once: [String] = []
    @Merge(.pick(.max)) var seen: Date?
    @Merge(.pick(.min)) var least = Date(timeIntervalSince1970: 1_700_000_000)
    @Named("other_name") var named: [Grade: String] = [:]
    #if os(Linux) || os(macOS)
    var conditional: [Grade: Int] = [:]
    #else
    var elsewhere = 0
    #endif
    init() {}
}

/// Gives a member another random value.
struct Change: Sendable {
    let member: String
    let make: @Sendable (inout Everything, inout Seeded) -> Void

    init<Value>(
        _ member: String, _ path: any WritableKeyPath<Everything, Value> & Sendable, _ value: @escaping @Sendable (inout Seeded) -> Value
    ) {
        (self.member, make) = (member, { $0[keyPath: path] = value(&$1) })
    }

    static func some<Value>(_ most: Int, _ random: inout Seeded, _ value: (inout Seeded) -> Value) -> [Value] {
        (0..<random.upTo(most)).map { _ in value(&random) }
    }
    static func set<Value: Hashable>(_ random: inout Seeded, _ value: (inout Seeded) -> Value) -> Set<Value> {
        Set(some(4, &random, value))
    }
    static func names<Key: Hashable, Value>(
        _ random: inout Seeded, _ key: (inout Seeded) -> Key, _ value: (inout Seeded) -> Value
    ) -> [Key: Value] {
        Dictionary(some(4, &random) { (key(&$0), value(&$0)) }) { $1 }
    }
    @Sendable static func word(_ random: inout Seeded) -> String {
        some(6, &random) { ["a", "b", "é", "\"", "\\", "/", "\n", "\u{1}", "日", "👩‍👩‍👧", " ", "z"][$0.upTo(11)] }.joined()
    }
    @Sendable static func date(_ random: inout Seeded) -> Date {
        switch random.upTo(4) {
        case 0: Date(timeIntervalSince1970: Double(random.upTo(4_000_000_000)))
        case 1: Date(timeIntervalSince1970: Double(random.upTo(2_000_000_000)) + Double(random.upTo(999)) / 1_000)
        case 2: Date(timeIntervalSince1970: Double.random(in: -60_000_000_000...250_000_000_000, using: &random))
        case 3: Date(timeIntervalSinceReferenceDate: Double.random(in: -2...2, using: &random))
        default: Date(timeIntervalSinceReferenceDate: Double.random(in: 0...1_000_000_000, using: &random))
        }
    }
    @Sendable static func grade(_ random: inout Seeded) -> Grade { Grade.allCases[random.upTo(4)] }
    @Sendable static func number(_ random: inout Seeded) -> Int { random.upTo(99) }
    @Sendable static func double(_ random: inout Seeded) -> Double {
        let any = Double(bitPattern: random.next())
        return random.upTo(1) == 0 ? Double(random.upTo(2_000) - 1_000) / 10 : any.isFinite ? any : 0.1
    }
    @Sendable static func uuid(_ random: inout Seeded) -> UUID {
        func byte() -> UInt8 { UInt8.random(in: 0...255, using: &random) }
        return UUID(uuid: (byte(), 1, 2, 3, 4, 5, 6, 7, 8, 9, byte(), 11, 12, 13, 14, 15))
    }
    @Sendable static func kind(_ random: inout Seeded) -> Kind {
        switch random.upTo(4) {
        case 0: .none
        case 1, 2: .tagged(set(&random, word))
        case 3: .graded(names(&random, grade) { set(&$0, number) }, note: word(&random))
        default: .either(kind(&random), .tagged(set(&random, word)))
        }
    }
    @Sendable static func json(_ random: inout Seeded) -> JSONValue { json(&random, 0) }
    private static func json(_ random: inout Seeded, _ depth: Int) -> JSONValue {
        switch random.upTo(depth < 3 ? 6 : 3) {
        case 0: .bool(random.upTo(1) == 0)
        case 1: .int(Int(truncatingIfNeeded: random.next()))
        case 2: .double(Double(random.upTo(1_000)) + 0.5)
        case 3: .string(word(&random))
        case 4: .array(some(3, &random) { json(&$0, depth + 1) })
        default: .object(names(&random, word) { json(&$0, depth + 1) })
        }
    }
    @Sendable static func corner(_ random: inout Seeded) -> Corner {
        var made = Corner()
        (made.x, made.grades) = (double(&random), names(&random, grade) { set(&$0, grade) })
        return made
    }
    @Sendable static func piece(_ random: inout Seeded) -> Piece {
        Piece(
            id: uuid(&random), title: word(&random), at: random.upTo(1) == 0 ? nil : date(&random), kinds: set(&random, kind),
            tags: Tags(set(&random, word)), count: number(&random))
    }
    @Sendable static func integer<Value: FixedWidthInteger>(_ random: inout Seeded) -> Value { Value(truncatingIfNeeded: random.next()) }

    static let all: [Change] = [
        Change("bool", \.bool) { $0.upTo(1) == 0 },
        Change("int", \.int, integer), Change("int8", \.int8, integer), Change("int16", \.int16, integer),
        Change("int32", \.int32, integer), Change("int64", \.int64, integer), Change("uint", \.uint, integer),
        Change("uint8", \.uint8, integer), Change("uint16", \.uint16, integer), Change("uint32", \.uint32, integer),
        Change("uint64", \.uint64, integer),
        Change("float", \.float) {
            let any = Float(bitPattern: UInt32.random(in: 0...(.max), using: &$0)); return any.isFinite ? any : 0.1
        },
        Change("double", \.double, double),
        Change("decimal", \.decimal) { Decimal(sign: .minus, exponent: -$0.upTo(20), significand: Decimal($0.upTo(.max))) },
        Change("string", \.string, word), Change("date", \.date, date),
        Change("data", \.data) { Data(some(20, &$0) { UInt8.random(in: 0...255, using: &$0) }) },
        Change("uuid", \.uuid, uuid),
        Change("url", \.url) { $0.upTo(4) == 0 ? nil : URL(string: "https://example.org/a/\($0.upTo(99))?q=1#f") },
        Change("grade", \.grade, grade), Change("rank", \.rank) { Rank.allCases[$0.upTo(2)] }, Change("kind", \.kind, kind),
        Change("whole", \.whole) {
            Held(names: set(&$0, word), byGrade: names(&$0, grade) { some(3, &$0, date) }, inside: some(3, &$0) { set(&$0, kind) })
        },
        Change("shared", \.shared) { Shared(set(&$0, number)) }, Change("tags", \.tags) { Tags(set(&$0, word)) },
        Change("listed", \.listed) {
            var made = Listed(); (made.names, made.note) = (set(&$0, word), word(&$0)); return made
        },
        Change("pairs", \.pairs) { Pairs(names(&$0, grade, grade)) }, Change("json", \.json, json),
        Change("range", \.range) {
            let low = number(&$0); return low...(low + number(&$0))
        },
        Change("optional", \.optional) { $0.upTo(2) == 0 ? nil : number(&$0) },
        Change("nilByDefault", \.nilByDefault) { $0.upTo(2) == 0 ? nil : set(&$0, date) },
        Change("byDefault", \.byDefault) { $0.upTo(2) == 0 ? nil : number(&$0) },
        Change("strings", \.strings) { set(&$0, word) }, Change("dates", \.dates) { set(&$0, date) },
        Change("sets", \.sets) { set(&$0) { set(&$0, number) } }, Change("kinds", \.kinds) { set(&$0, kind) },
        Change("corners", \.corners) { set(&$0, corner) }, Change("array", \.array) { some(5, &$0, double) },
        Change("arrays", \.arrays) { some(4, &$0) { names(&$0, grade) { set(&$0, number) } } },
        Change("pieces", \.pieces) {
            var ids: Set<UUID> = []; return some(4, &$0, piece).filter { ids.insert($0.id).inserted }
        },
        Change("byName", \.byName) { names(&$0, word, number) }, Change("byNumber", \.byNumber) { names(&$0, number) { set(&$0, word) } },
        Change("byGrade", \.byGrade) { names(&$0, grade, number) },
        Change("byAspect", \.byAspect) { names(&$0, { Aspect.allCases[$0.upTo(2)] }) { names(&$0, grade, number) } },
        Change("byDate", \.byDate) { names(&$0, date) { set(&$0, uuid) } },
        Change("bySet", \.bySet) { names(&$0, { set(&$0, word) }) { names(&$0, grade) { set(&$0, number) } } },
        Change("names", \.names) { names(&$0, word) { set(&$0, grade) } }, Change("corner", \.corner, corner),
        Change("cornerByName", \.cornerByName) { names(&$0, word, corner) }, Change("counter", \.counter, number),
        Change("text", \.text, word), Change("lines", \.lines) { $0.upTo(2) == 0 ? nil : word(&$0) },
        Change("slots", \.slots) { [number(&$0), number(&$0), number(&$0)] }, Change("register", \.register) { set(&$0, grade) },
        Change("once", \.once) { set(&$0, word).sorted() }, Change("seen", \.seen) { $0.upTo(2) == 0 ? nil : date(&$0) },
        Change("least", \.least, date), Change("other_name", \.named) { names(&$0, grade, word) },
        Change("conditional", \.conditional) { names(&$0, grade, number) },
    ]

    static func random(_ random: inout Seeded) -> Everything {
        var made = Everything()
        for change in all { change.make(&made, &random) }
        return made
    }
}

@Suite struct UnchangedTests {
    /// The text of each member of a JSON object without white space.
    private func texts(_ object: String?) -> [String: String] {
        var found: [String: String] = [:], parts: [[UInt8]] = [[]], depth = 0, isInside = false, isEscaped = false
        for byte in (object ?? "{}").utf8.dropFirst().dropLast() {
            if isInside {
                if byte == UInt8(ascii: "\""), !isEscaped { isInside = false }
                isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
            } else {
                switch byte {
                case UInt8(ascii: "\""): isInside = true
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
                case UInt8(ascii: ",") where depth == 0:
                    parts.append([])
                    continue
                default: break
                }
            }
            parts[parts.count - 1].append(byte)
        }
        for part in parts {
            let text = String(decoding: part, as: UTF8.self), name = text.dropFirst().prefix { $0 != "\"" }
            found[String(name)] = text
        }
        return found
    }

    private func members(_ text: String?) throws -> [String: JSONValue] {
        try JSONDecoder().decode([String: JSONValue].self, from: Data((text ?? "").utf8))
    }

    /// Every member has a change; otherwise it would not be tested.
    @Test func everyMemberHasAChange() throws {
        let written = try ModelEncoder.node(of: Everything())
        guard case .object(let members) = written.content else { throw CancellationError() }
        let optional = ["url", "optional", "nilByDefault", "lines", "seen"]
        #expect(Set(Change.all.map(\.member)) == Set(members.keys).union(optional) && Change.all.count == members.count + optional.count)
    }

    /// Random objects, six for each member. Saved as they were read, they make no version. If one member was changed, the save changes that
    /// member.
    @Test func whatIsUnchangedMakesNoVersion() throws {
        let count = 6 * Change.all.count, devices = try Devices(), all = try devices.phone.collection(Everything.self)
        var random = Seeded(32), objects: [String: Everything] = [:]
        for number in 0..<count { objects["\(number)"] = Change.random(&random) }
        try all.save(objects)
        #expect(try all.save(objects) == nil, "the objects themselves")
        let read = Dictionary(uniqueKeysWithValues: try all.all())
        for (id, object) in objects where read[id] != object { Issue.record("object \(id) is read as another one") }
        #expect(try all.save(read) == nil, "as they were read")
        let before = try (0..<count).map { texts(try text(devices.phone, "every/\($0)")) }
        var changed = read, whats: [String] = []
        for number in 0..<count {
            let change = Change.all[number % Change.all.count], id = "\(number)"
            var object = try #require(read[id])
            while object == read[id] { change.make(&object, &random) }
            (changed[id], whats) = (object, whats + [change.member])
        }
        #expect(try all.save(changed) != nil)
        for number in 0..<count {
            let after = texts(try text(devices.phone, "every/\(number)"))
            let differing = Set(after.keys).union(before[number].keys).filter { after[$0] != before[number][$0] }
            #expect(differing == [whats[number]], "object \(number)")
            #expect(try all["\(number)"] == changed["\(number)"], "object \(number), \(whats[number])")
        }
        #expect(try all.save(changed) == nil)
    }

    /// A device changes one member in each of many objects. Later the other device changes another member, and saves the whole objects.
    @Test func aSaveOfTheWholeKeepsWhatOthersChanged() throws {
        let devices = try Devices()
        let phone = try devices.phone.collection(Everything.self), laptop = try devices.laptop.collection(Everything.self)
        let changes = Change.all.filter { !["counter", "text", "lines", "seen", "least"].contains($0.member) }
        var random = Seeded(33), objects: [String: Everything] = [:]
        for change in changes { objects[change.member] = Change.random(&random) }
        try phone.save(objects)
        try devices.sync()
        var theirs = Dictionary(uniqueKeysWithValues: try laptop.all())
        for change in changes {
            while theirs[change.member] == objects[change.member] {
                guard var object = theirs[change.member] else { throw CancellationError() }
                change.make(&object, &random)
                theirs[change.member] = object
            }
        }
        try laptop.save(theirs)
        var ours = Dictionary(uniqueKeysWithValues: try phone.all())
        for id in ours.keys { ours[id]?.counter += 7 }
        try phone.save(ours)
        try devices.sync()
        for id in theirs.keys { theirs[id]?.counter += 7 }
        for change in changes {
            #expect(try phone[change.member] == theirs[change.member] && laptop[change.member] == theirs[change.member], "\(change.member)")
        }
        #expect(try phone.openConflicts().isEmpty)
    }

    /// If a type encodes a set itself, another order is no change. Another order of an array is a change, also if `==` ignores the array.
    @Test func theOrderIsAChangeWhereATypeKeepsIt() throws {
        let devices = try Devices(), lists = try devices.phone.collection(Lists.self)
        for seed in 0..<20 as Range<UInt64> {
            var random = Seeded(seed), list = Lists(), other = Lists()
            let names = Change.some(30, &random, Change.word) + ["1", "2"]
            func set(_ room: Int) -> Set<String> {
                var made = Set<String>(minimumCapacity: room)
                for name in names { made.insert(name) }
                return made
            }
            (list.listed.names, other.listed.names) = (set(0), set(4_096))
            (list.playlist.tags, other.playlist.tags) = (Tags(set(0)), Tags(set(4_096)))
            (list.pieces, other.pieces) = ([Piece(id: UUID(), tags: Tags(set(1_024)))], [])
            other.pieces = [Piece(id: list.pieces[0].id, tags: Tags(set(8)))]
            list.playlist.songs = ["a", "b", "c"]
            other.playlist.songs = list.playlist.songs
            let id = "\(seed)"
            try lists.save(list, id: id)
            #expect(try lists.save(other, id: id) == nil, "seed \(seed)")
            other.playlist.songs = ["c", "a", "b"]
            #expect(try lists.save(other, id: id) != nil && lists[id]?.playlist.songs == ["c", "a", "b"])
            // If a part was changed, its unchanged members keep their text.
            let before = try members(text(devices.phone, "lists/\(id)"))
            other.pieces[0].title = "new"
            other.pieces[0].tags = Tags(set(2_048))
            other.pieces.append(Piece(id: UUID()))
            #expect(try lists.save(other, id: id) != nil)
            guard case .array(let old)? = before["pieces"], case .object(var one)? = old.first,
                case .array(let new)? = try members(text(devices.phone, "lists/\(id)"))["pieces"]
            else { throw CancellationError() }
            one["title"] = "new"
            #expect(new.first == .object(one) && new.count == 2)
        }
        // The same words in other pairs are another value.
        var list = Lists()
        list.pairs = Pairs([.low: .high, .high: .low, .mid: .top, .top: .mid])
        try lists.save(list, id: "pairs")
        #expect(try lists.save(lists["pairs"] ?? Lists(), id: "pairs") == nil)
        list.pairs = Pairs([.low: .top, .top: .low, .mid: .high, .high: .mid])
        #expect(try lists.save(list, id: "pairs") != nil && lists["pairs"] == list)
    }

    /// An id or date in another program's spelling is the same id or date.
    @Test func theSpellingOfOthersIsKept() throws {
        let devices = try Devices(), all = try devices.phone.collection(Everything.self)
        let (one, two) = ("0000000A-0000-0000-0000-00000000000A", "0000000b-0000-0000-0000-00000000000b")
        let date = #""2027-01-15T08:00:00.25Z""#, string = #""string":"\#(one)""#
        let start =
            #"{\#(string),"dates":[\#(date)],"pieces":[{"id":"\#(one)","title":"1","x":1},{"id":"\#(two)","title":"2"}],"uuid":"\#(one)"}"#
        try save(start, "every/1", in: devices.phone)
        let read = try #require(try all["1"])
        #expect(try all.save(read, id: "1") == nil)
        try all.edit("1") {
            $0.pieces[0].title = "new"
            $0.pieces[1].title = "newer"
            $0.dates.insert(Date(timeIntervalSince1970: 1_800_000_001))
        }
        let expected =
            #"{\#(string),"dates":[\#(date),"2027-01-15T08:00:01Z"],"pieces":[{"id":"\#(one)","title":"new","x":1},"#
            + #"{"id":"\#(two)","title":"newer"}],"uuid":"\#(one)"}"#
        let found = try text(devices.phone, "every/1") ?? ""
        #expect(try members(found) == members(expected), "\(found)")
        // A string that looks like an id is not an id, and its spelling is a change.
        try all.edit("1") { $0.string = one.lowercased() }
        #expect(try members(text(devices.phone, "every/1"))["string"] == .string(one.lowercased()))
        #expect(try members(text(devices.phone, "every/1"))["uuid"] == .string(one))
    }

    /// Members under `#if` are kept, and merged by their rules.
    @Test func whatTheBuildDecidesIsKept() throws {
        let devices = try Devices()
        let phone = try devices.phone.collection(Decided.self), laptop = try devices.laptop.collection(Decided.self)
        var one = Decided()
        (one.here, one.deep, one.plain) = (1, ["a"], 2)
        try phone.save(one, id: "1")
        try devices.sync()
        try phone.edit("1") {
            $0.here += 1; $0.deep.insert("b")
        }
        try laptop.edit("1") {
            $0.here += 10; $0.deep.insert("c")
        }
        try devices.sync()
        #expect(try phone["1"]?.here == 12 && phone["1"]?.deep == ["a", "b", "c"] && phone["1"]?.plain == 2)
        #expect(try text(devices.phone, "decided/1") == #"{"deep":["a","b","c"],"here":12,"plain":2}"#)
        try phone.save(Decided(), id: "2")
        let all = try devices.phone.collection(AllDecided.self)
        var other = AllDecided()
        other.number = 7
        try all.save(other, id: "1")
        #expect(try all["1"] == other)
        try devices.phone.collection(NoneDecided.self).save(NoneDecided(), id: "1")
        #expect(try text(devices.phone, "none/1") == "{}")
    }

    @Test func whatIsNestedTooDeeplyIsRefused() throws {
        let devices = try Devices(), all = try devices.phone.collection(Everything.self)
        var one = Everything()
        one.json = 1
        for _ in 0..<126 { one.json = .array([one.json]) }
        try all.save(one, id: "1")
        #expect(try all["1"] == one && all.save(one, id: "1") == nil)
        for _ in 0..<2 { one.json = .array([one.json]) }
        let error = #expect(throws: StoreError.self) { try all.save(one, id: "1") }
        #expect(error?.code == .invalidArgument && error?.message.contains("deep") == true)
    }
}

@Model(prefix: "lists/")
struct Lists: Equatable {
    var listed = Listed()
    var playlist = Playlist()
    var pairs = Pairs([:])
    var pieces: [Piece] = []
    init() {}
}

@Model(prefix: "decided/")
struct Decided: Equatable {
    #if os(Linux) || os(macOS)
    @Merge(.counter) var here = 0
    #if swift(>=5)
    var deep: Set<String> = []
    #endif
    #elseif os(Windows)
    var elsewhere = ""
    #else
    var nowhere: [Int] = []
    #endif
    var plain = 0
    #if os(WASI)
    static let none = 1
    #endif
    init() {}
}

@Model(prefix: "alldecided/")
struct AllDecided: Equatable {
    #if swift(>=5)
    var number = 0
    #endif
}

@Model(prefix: "none/")
struct NoneDecided: Equatable {
    #if os(WASI)
    var number = 0
    #endif
}
