import LLVS

/// A store with rules, two versions that changed one value, and an app that merges values. Tests what a merge finds and makes, the open
/// conflicts after it and each way to decide them, adding rules, and reverting and cherry-picking either side. It also decides a conflict
/// that was never reported.
///
///     input = how u8 (bit 0: no rules are stored; 1: the base is absent; 2: the newer side; 3: the older one; 4: the app
///             removes; 5: it passes; 6: it answers another value each time; 7: there is none) · kind u8
///             · (size u16 · rules) · (size u16 · rules to be added) · (size u16 · base) · (size u16 · newer) · (size u16 · older)
///             · (size u16 · the app's answer) · path
///
/// What must hold: a decided conflict is no longer open, a merge is explained as it was recorded, added rules are valid, and errors have a
/// message.
enum ConflictsTarget {
    static let target = FuzzTarget(name: "conflicts", run: run, seeds: seeds)

    private struct Input {
        var how: UInt8
        var kind: UInt8
        var rules, added, base, newer, older, answer, path: [UInt8]
    }

    /// An app that answers as the input says.
    private final class App: ValueMerger, @unchecked Sendable {
        private let input: Input
        private var asked: UInt8 = 0
        init(_ input: Input) { self.input = input }

        func merge(_ question: ValueQuestion) throws -> ValueAnswer {
            if input.how & 32 != 0 { return .pass }
            if input.how & 16 != 0 { return .value(nil) }
            asked &+= 1
            return .value(input.answer + (input.how & 64 != 0 ? [UInt8(ascii: "0") + asked % 10] : []))
        }
    }

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte(), kind = input.byte()
        let given = Input(
            how: how, kind: kind, rules: input.part(), added: input.part(), base: input.part(), newer: input.part(), older: input.part(),
            answer: input.part(), path: input.rest())
        Examining.attempt { try examine(given) }
    }

    private static func examine(_ given: Input) throws {
        let store = try Examining.memoryStore()
        let id = try ValueID("v"), schema = ValueID(unchecked: MergeSchema.idBytes)
        func change(_ bytes: [UInt8], isAbsent: Bool) -> Value.Change { isAbsent ? .remove(id) : .update(id, data: bytes) }
        let how = given.how
        let rules: [Value.Change] = how & 1 != 0 ? [] : [.update(schema, data: given.rules)]
        let root = try store.makeVersion(basedOn: nil, changes: [change(given.base, isAbsent: how & 2 != 0)] + rules, timestamp: 1)
        let older = try store.makeVersion(basedOn: root.id, changes: [change(given.older, isAbsent: how & 8 != 0)], timestamp: 2)
        let newer = try store.makeVersion(basedOn: root.id, changes: [change(given.newer, isAbsent: how & 4 != 0)], timestamp: 3)
        Examining.attempt { try register(given.added, in: store, at: newer.id) }
        Examining.attempt { try takeBack(older.id, newer.id, in: store) }
        let arbiter = how & 128 != 0 ? RulesArbiter() : RulesArbiter(merger: App(given)), query = Store.ConflictQuery(arbiter: arbiter)
        let found = try store.conflicts(between: newer.id, and: older.id, query)
        let merged = try store.merge(newer.id, with: older.id, arbiter: arbiter)
        let again = how & 128 != 0 ? RulesArbiter() : RulesArbiter(merger: App(given))
        let explained = try store.explain(merged.id, Store.ConflictQuery(arbiter: again))
        if how & 64 == 0 {
            require(explained.digest == found.digest && explained.areRecorded, "a merge is explained as it was found and recorded")
        }
        for conflict in try store.openConflicts(at: merged.id) { try decide(conflict, at: merged.id, in: store) }
        let sides = [given.base, given.newer, given.older, given.answer]
        let forged = ConflictRecord(
            kind: ConflictRecord.Kind(rawValue: UInt32(given.kind % 12)) ?? .pick, path: given.path, base: sides[0], newer: sides[1],
            older: sides[2], result: given.kind & 128 != 0 ? nil : sides[3], rule: nil)
        Examining.attempt {
            try decide(Conflict(id: id, version: merged.id, record: forged.canonical()), at: merged.id, in: store, isForged: true)
        }
    }

    private static func decide(_ conflict: Conflict, at version: VersionID, in store: Store, isForged: Bool = false) throws {
        for choice in [Store.Choice.newer, .older, .result] {
            Examining.attempt {
                let changes = try store.resolve(conflict, with: choice, at: version)
                let chosen = try store.makeVersion(basedOn: version, changes: changes)
                if isForged { return }
                require(try !store.openConflicts(at: chosen.id).contains { $0.record == conflict.record }, "a chosen conflict is closed")
            }
        }
    }

    private static func register(_ rules: [UInt8], in store: Store, at version: VersionID) throws {
        let registered = try store.schema(at: version, adding: rules)
        guard registered.isChanged, let bytes = registered.rules else { return }
        require((try? bytes.withUnsafeBytes { try MergeSchema($0) }) != nil, "rules that were added are valid")
        let again = try store.makeVersion(basedOn: version, changes: [.update(ValueID(unchecked: MergeSchema.idBytes), data: bytes)])
        require(try !store.schema(at: again.id, adding: rules).isChanged, "rules are added once")
    }

    private static func takeBack(_ older: VersionID, _ newer: VersionID, in store: Store) throws {
        let undone = try store.revert(newer, at: newer)
        require(undone.conflicts.isEmpty, "a revert of the newest version has no conflicts")
        Examining.attempt { _ = try store.cherryPick(older, onto: newer) }
        Examining.attempt { _ = try store.revert(older, at: store.cherryPick(older, onto: newer).version?.id ?? newer) }
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        func part(_ text: String) -> [UInt8] { FuzzInput.part(Array(text.utf8)) }
        let rules =
            "{\"merge\":1,\"ids\":{\"v\":{\"/n\":{\"as\":\"counter\",\"max\":3},\"/t\":\"text\",\"/a\":{\"pick\":\"arbiter\"},"
            + "\"/l\":{\"as\":\"list\",\"key\":[\"/k\"]},\"/s\":\"set\",\"/p\":\"tuple\",\"/z\":{\"absent\":[]}}}}"
        let base = "{\"a\":1,\"f\":0,\"l\":[{\"k\":1,\"v\":0},{\"k\":2}],\"n\":1,\"p\":[1,2],\"t\":\"The cat.\",\"x\":[1,2]}"
        let newer = "{\"a\":2,\"f\":1,\"l\":[{\"k\":2},{\"k\":1,\"v\":1}],\"n\":3,\"p\":[3,2],\"t\":\"The dog.\",\"x\":[7,2]}"
        let older = "{\"a\":3,\"f\":2,\"l\":[{\"k\":1,\"v\":2}],\"n\":2,\"p\":[4,5],\"t\":\"The fox.\",\"x\":[9,2],\"z\":[1]}"
        let more = "{\"merge\":1,\"ids\":{\"v\":{\"/n\":\"set\",\"/q\":\"text\"},\"w\":\"auto\"}}"
        let cases: [(String, UInt8, String, String, String, String, String, String)] = [
            ("members", 0, rules, base, newer, older, "[4]", "[\"f\"]"),
            ("elements", 128, rules, base, newer, older, "{}", "[\"l\",{\"key\":1},\"v\"]"),
            ("no-rules", 1, "", base, newer, older, "an answer", "[]"),
            ("removed", 1 + 8 + 16, "", base, newer, older, "", "[\"x\",{\"index\":0}]"),
            ("added-twice", 2 + 32, rules, base, newer, older, "", "[\"t\"]"),
            ("not-valid", 0, "no rules", base, newer, older, "7", "[{\"key\":[1,\"a\"],\"occurrence\":1}]"),
            ("other-answers", 64, "{\"merge\":1,\"ids\":{\"v\":{\"pick\":\"arbiter\"}}}", "1", "2", "3", "4", "{"),
            ("words", 128, "{\"merge\":1,\"ids\":{\"v\":\"text\"}}", "The cat.", "The dog.", "The fox.", "", "[]"),
        ]
        return cases.map { name, how, rules, base, newer, older, answer, path in
            let parts = [rules, more, base, newer, older, answer].flatMap(part)
            return FuzzTarget.Seed(name: name, bytes: [how, 1] + parts + Array(path.utf8))
        }
    }
}
