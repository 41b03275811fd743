import LLVS
import LLVSTestSupport

/// One history of stores with rules: counters, sets, keyed lists, lists of values, texts, members, reverts, criss-crosses, rules that
/// devices add and change, and rules mixed with arbiters of an app.
///
/// Half of the histories merge by rules only, with any metadata. Then every version is exact. In a text, or in a list without keys, each
/// line and value that was not removed is present, or is in the record of a merge that had to leave it out. Where a merge can only choose,
/// the newest edit prevails, however often it was merged.
///
/// In the other histories some devices have arbiters of their own, decide one conflict differently, or change rules of existing values.
///
/// In all histories all devices come to one state and then make no more versions. If two merges have the same edits, and one of them merged
/// by rules while the other chose between whole values, the first one wins.
final class RulesHistory {
    /// How a device merges.
    enum Resolver: Int, CaseIterable { case store, given, marked, merger, newest, host }

    /// What is known of an edit or a revert.
    private struct Edit {
        var device: Int
        var delta = 0
        var added: String?
        var removed: [String] = []
        /// The value of the device's own member after it.
        var member: Int?
        /// The value of `last` after it, if it set that.
        var last: Int?
        /// The increments of the counters whose rules were added later.
        var more: [String: Int] = [:]
    }

    static let rules = """
        {"merge":1,"ids":{"count":"counter","doc":{"/list":{"as":"list","key":["/id"]},"/n":"counter","/set":"set",
        "/text":{"as":"text","unit":"line"}},"last":{"as":"register"}}}
        """
    /// Counters whose rule a device adds together with the value.
    static let later = ["more/0", "more/1", "more/2"]
    /// The rules that devices set for `plain`.
    static let others = ["\"register\"", "\"counter\"", "{\"pick\":\"older\"}", "\"bytes\"", "{\"pick\":\"arbiter\"}"]
    static let roundsAllowed = 12

    let seed: UInt64
    private var random: SeededRandom
    private let isExact: Bool
    private let reverts: Bool
    private var resolvers: [Resolver] = []
    private var stores: [Store] = []
    private var exchanges: [Exchange] = []
    private var current: [VersionID] = []
    private var edits: [VersionID: Edit] = [:]
    private var checked: Set<VersionID> = []
    private var counts = Simulation.Counts()
    private let trace: ((String) -> Void)?
    private let defect: Defect?

    /// - Parameter defect: with `.arbiter`, one of the devices that should merge by rules does not.
    init(seed: UInt64, defect: Defect? = nil, trace: ((String) -> Void)? = nil) {
        self.seed = seed
        self.defect = defect
        self.trace = trace
        random = SeededRandom(seed: seed)
        isExact = Bool.random(using: &random)
        reverts = Int.random(in: 0..<3, using: &random) == 0
    }

    static func run(seed: UInt64, defect: Defect? = nil, trace: ((String) -> Void)? = nil) -> Result<Simulation.Counts, Failure> {
        let history = RulesHistory(seed: seed, defect: defect, trace: trace)
        do { return .success(try history.run()) } catch let failure as Failure { return .failure(failure) } catch {
            return .failure(Failure("error", "\(error)"))
        }
    }

    private func chance(_ n: Int) -> Bool { Int.random(in: 0..<n, using: &random) == 0 }
    private func say(_ text: @autoclosure () -> String) { if let trace { trace(text()) } }

    private func run() throws -> Simulation.Counts {
        counts.histories = 1
        try begin()
        for _ in 0..<Int.random(in: 5...40, using: &random) {
            counts.steps += 1
            let device = Int.random(in: stores.indices, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0...3: try edit(device)
            case 4: if reverts { try revert(device) } else { try edit(device) }
            case 5: try merge(device)
            case 6: try mergeTwo(device)
            case 7: try exchange(device, retrieves: true)
            default: try exchange(device, retrieves: chance(2))
            }
        }
        try settle()
        for exchange in exchanges { exchange.close() }
        for store in stores { try store.close() }
        return counts
    }

    private func begin() throws {
        let count = Int.random(in: 2...5, using: &random)
        let safe: [Resolver] = [.store, .store, .given, .marked], name = "rules \(seed)"
        for i in 0..<count {
            resolvers.append(
                defect == .arbiter && i == 0 ? .newest : (isExact ? safe : Resolver.allCases).randomElement(using: &random) ?? .store)
            var options = Store.Options()
            options.storage = .memory
            stores.append(try Store(path: "", options: options))
            exchanges.append(Exchange(store: stores[i], transport: MemoryTransport(name: name)))
        }
        say("\(count) devices merge by \(resolvers), \(isExact ? "exact" : "mixed")\(reverts ? ", and revert" : "")")
        let start = RulesDocument(members: [Int](repeating: 0, count: count))
        let root = try stores[0].makeVersion(
            basedOn: nil,
            changes: [
                try change(MergeSchema.valueID, Self.rules), try change("doc", start.text), try change("count", "0"),
                try change("plain", "0"),
                try change("last", "{\"n\":0}"),
            ])
        edits[root.id] = Edit(device: 0, last: 0)
        current = [VersionID](repeating: root.id, count: count)
        try exchange(0, retrieves: false)
        for device in stores.indices.dropFirst() { try exchange(device, retrieves: true) }
    }

    private func change(_ id: String, _ text: String) throws -> Value.Change { .update(try ValueID(id), data: Array(text.utf8)) }

    private func text(_ device: Int, _ id: String, _ version: VersionID) throws -> String {
        let value = try stores[device].value(try ValueID(id), at: version)
        return value.map { String(decoding: $0.data, as: UTF8.self) } ?? ""
    }

    // MARK: Steps

    /// Saves a version that is newer than those that changed the document, and does not change the document.
    private func editOther(_ device: Int) throws {
        let edit = Edit(device: device, last: edits.count), value = try change("last", "{\"n\":\(edits.count)}")
        let made = try stores[device].makeVersion(basedOn: current[device], changes: [value])
        edits[made.id] = edit
        current[device] = made.id
        counts.versions += 1
        say("device \(device) saves \(made.id): \(edits.count - 1)")
        try check(device)
    }

    private func edit(_ device: Int) throws {
        if chance(4) { return try editOther(device) }
        var edit = Edit(device: device, delta: [1, 1, 2, -3].randomElement(using: &random) ?? 1)
        var document = try document(device, current[device])
        edit.added = "t\(edits.count)"
        edit.member = edits.count
        document.number += edit.delta
        document.members[device] = edits.count
        document.last = edits.count
        if chance(3), let gone = document.set.randomElement(using: &random) {
            edit.removed = [gone]
            document.set.removeAll { $0 == gone }
            document.list.removeAll { $0 == gone }
            document.lines.removeAll { $0 == gone }
            document.values.removeAll { $0 == gone }
        }
        if let added = edit.added {
            document.set.append(added)
            document.list.insert(added, at: Int.random(in: 0...document.list.count, using: &random))
            document.lines.insert(added, at: Int.random(in: 0...document.lines.count, using: &random))
            document.values.insert(added, at: Int.random(in: 0...document.values.count, using: &random))
        }
        if chance(4) { document.list.shuffle(using: &random) }
        if chance(4) { document.values.shuffle(using: &random) }
        var changes = [try change("doc", document.text)]
        changes.append(try change("count", "\((Int(try text(device, "count", current[device])) ?? 0) + edit.delta)"))
        if chance(3) { changes.append(try change("plain", "\(edits.count)")) }
        if chance(2) {
            edit.last = edits.count
            changes.append(try change("last", "{\"n\":\(edits.count)}"))
        }
        // (A revert of an edit that added rules would remove them.)
        if !reverts { changes += try changesOfRules(device, &edit) }
        let made = try stores[device].makeVersion(basedOn: current[device], changes: changes)
        edits[made.id] = edit
        current[device] = made.id
        counts.versions += 1
        say("device \(device) saves \(made.id): \(document.text)")
        try check(device)
    }

    /// A counter with its rule, whether new or present. If devices need not be exact, also another rule for `plain`.
    private func changesOfRules(_ device: Int, _ edit: inout Edit) throws -> [Value.Change] {
        var rules = try text(device, MergeSchema.valueID, current[device]), changes: [Value.Change] = []
        let before = rules
        func set(_ id: String, _ rule: String) {
            let start = "\"ids\":{"
            guard let ids = Self.range(of: start, in: rules) else { return }
            if let old = Self.range(of: "\"\(id)\":", in: rules) {
                // A rule ends before the next one, or at the end of all rules. None of these rules contains another.
                let end = rules[old.upperBound...].firstIndex { $0 == "," || $0 == "}" } ?? rules.endIndex
                let isObject = rules[old.upperBound...].first == "{"
                rules.replaceSubrange(old.upperBound..<(isObject ? rules.index(after: end) : end), with: rule)
            } else {
                rules.insert(contentsOf: "\"\(id)\":\(rule),", at: ids.upperBound)
            }
        }
        if chance(4), let id = Self.later.randomElement(using: &random) {
            edit.more[id] = edit.delta
            set(id, "\"counter\"")
            changes.append(try change(id, "\((Int(try text(device, id, current[device])) ?? 0) + edit.delta)"))
        }
        if !isExact, chance(6) { set("plain", Self.others.randomElement(using: &random) ?? "\"auto\"") }
        if rules != before { changes.append(try change(MergeSchema.valueID, rules)) }
        return changes
    }

    private static func range(of part: String, in text: String) -> Range<String.Index>? {
        var at = text.startIndex
        while at < text.endIndex {
            if text[at...].hasPrefix(part) { return at..<text.index(at, offsetBy: part.count) }
            at = text.index(after: at)
        }
        return nil
    }

    /// Reverts one of the device's own edits that was not reverted yet.
    private func revert(_ device: Int) throws {
        let store = stores[device], at = current[device]
        let own = try edits.filter { entry in
            try entry.value.device == device && entry.value.added != nil && store.isAncestor(entry.key, of: at)
        }
        guard let (version, edit) = own.min(by: { $0.key.description < $1.key.description }) else { return }
        guard let made = try store.revert(version, at: at).version else { return }
        var undone = Edit(device: device, delta: -edit.delta)
        undone.removed = edit.added.map { [$0] } ?? []
        edits[version]?.added = nil
        edits[made.id] = undone
        current[device] = made.id
        say("device \(device) reverts \(version): \(made.id)")
        try check(device)
    }

    private func arbiter(_ device: Int) throws -> any MergeArbiter {
        let counters = Self.later.map { "\"\($0)\":\"counter\"," }.joined()
        var rules = Self.rules
        rules.replaceSubrange(rules.startIndex..<rules.index(rules.startIndex, offsetBy: 18), with: "{\"merge\":1,\"ids\":{" + counters)
        let schema = try Array(rules.utf8).withUnsafeBytes { try MergeSchema($0) }
        return switch resolvers[device] {
        case .store, .marked: RulesArbiter()
        case .given: RulesArbiter(schema)
        case .merger: RulesArbiter(merger: Longer())
        case .newest: BuiltInArbiter.mostRecentChange
        case .host: FirstSide()
        }
    }

    /// A value merger: the larger bytes win.
    private struct Longer: ValueMerger {
        func merge(_ question: ValueQuestion) -> ValueAnswer {
            let newer = question.newer ?? [], older = question.older ?? []
            return .value(newer.lexicographicallyPrecedes(older) ? older : newer)
        }
    }

    /// An arbiter of the app that does not look at values.
    private struct FirstSide: MergeArbiter {
        func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
            merge.forks.filter(\.fork.isConflicting).map { id, fork in fork.first.map { .preserve($0) } ?? .remove(id) }
        }
    }

    private func metadata(_ device: Int) throws -> Metadata {
        guard resolvers[device] == .marked || resolvers[device] == .host else { return Metadata() }
        return try Metadata([(Array("by".utf8), Array("\"\(device)\"".utf8))])
    }

    private func merge(_ device: Int) throws {
        let made = try stores[device].mergeHeads(into: current[device], arbiter: arbiter(device), metadata: metadata(device))
        if let made { current[device] = made.id }
        counts.merges += 1
        try check(device)
    }

    private func mergeTwo(_ device: Int) throws {
        guard let other = try stores[device].heads().randomElement(using: &random) else { return }
        current[device] = try stores[device].merge(
            current[device], with: other.id, arbiter: arbiter(device), metadata: metadata(device)
        ).id
        counts.merges += 1
        try check(device)
    }

    private func exchange(_ device: Int, retrieves: Bool) throws {
        _ = try retrieves ? exchanges[device].retrieve() : exchanges[device].send()
    }

    // MARK: Checks

    private func document(_ device: Int, _ version: VersionID) throws -> RulesDocument {
        let text = try text(device, "doc", version)
        guard let document = RulesDocument(text) else { throw Failure("not a document", text) }
        return document
    }

    /// Checks that the current version is exact, if all devices merge by rules.
    private func check(_ device: Int) throws {
        let version = current[device]
        guard checked.insert(version).inserted else { return }
        try checkRank(device, version)
        guard isExact else { return }
        let behind = try behind(version, device)
        let known = behind.compactMap { id in edits[id].map { (id, $0) } }
        let document = try document(device, version), total = known.reduce(0) { $0 + $1.1.delta }
        let count = try text(device, "count", version)
        guard document.number == total, count == "\(total)" else {
            throw Failure("counter not exact", "\(version): \(document.number) and \(count), not \(total)")
        }
        for id in Self.later {
            let deltas = known.compactMap { $0.1.more[id] }, count = try text(device, id, version)
            guard count == (deltas.isEmpty ? "" : "\(deltas.reduce(0, +))") else {
                throw Failure("counter not exact", "\(version): \(id) is \(count), not the sum of \(deltas)")
            }
        }
        guard Set(document.set).count == document.set.count, Set(document.list).count == document.list.count else {
            throw Failure("twice in a list", "\(version): \(document.text)")
        }
        guard !reverts else { return }
        try checkRecency(document, known.map { ($0.0, $0.1) }, device)
        let there = Set(known.compactMap(\.1.added)).subtracting(known.flatMap(\.1.removed))
        guard Set(document.set) == there, Set(document.list) == there else {
            throw Failure("edit lost", "\(version): \(document.text), not \(there.sorted())")
        }
        try check(document, added: Set(known.compactMap(\.1.added)), there: there, behind: behind, device)
        for other in stores.indices {
            let last = known.filter { $0.1.device == other }.compactMap(\.1.member).max() ?? 0
            guard document.members[other] == last else {
                throw Failure("edit lost", "\(version): member \(other) is \(document.members[other]), not \(last)")
            }
        }
    }

    private func behind(_ version: VersionID, _ device: Int) throws -> [VersionID] {
        var behind: [VersionID] = []
        let walk = try stores[device].walk(HistoryQuery(from: [version]))
        while case let page = try walk.next(256), !page.isEmpty { behind += page.map(\.version) }
        return behind
    }

    /// Where a merge can only choose, the newest edit prevails, since no merge makes a value newer than its edits.
    private func checkRecency(_ document: RulesDocument, _ known: [(VersionID, Edit)], _ device: Int) throws {
        func newest(_ edits: [(VersionID, Edit)]) throws -> (VersionID, Edit)? {
            let timed: [(time: Double, edit: (VersionID, Edit))] = try edits.map { (try stores[device].version($0.0)?.timestamp ?? 0, $0) }
            return timed.max { a, b in a.time != b.time ? a.time < b.time : a.edit.0.description < b.edit.0.description }?.edit
        }
        let version = current[device], all = try newest(known.filter { $0.1.member != nil })
        let set = try newest(known.filter { $0.1.last != nil })?.1.last ?? 0
        guard document.last == all?.1.member ?? 0, try text(device, "last", version) == "{\"n\":\(set)}" else {
            throw Failure("not the newest", "\(version): \(document.text) and \(try text(device, "last", version)), not \(set)")
        }
    }

    /// Checks that of two merges of the same edits, the one of higher rank wins.
    private func checkRank(_ device: Int, _ version: VersionID) throws {
        let store = stores[device], parents = try store.version(version)?.predecessors ?? []
        guard parents.count == 2 else { return }
        let sides = try parents.map { Set(try behind($0, device)) }
        guard sides[0].symmetricDifference(sides[1]).allSatisfy({ edits[$0] == nil }) else { return }
        let ranks = try parents.map { parent -> Int in
            let mark = try store.version(parent)?.metadata[Array("__llvs_arbiter".utf8)]
            return mark == Array("\"host\"".utf8) ? 2 : mark == Array("\"rules\"".utf8) ? 1 : 0
        }
        counts.settled += 1
        guard ranks[0] != ranks[1] else { return }
        let higher = ranks[0] > ranks[1] ? parents[0] : parents[1]
        for id in Self.ids where try text(device, id, version) != text(device, id, higher) {
            throw Failure("rank", "\(version) of \(parents), ranks \(ranks): \(id) is not that of \(higher)")
        }
    }

    /// Checks lines and values that only their bytes distinguish. Each present one was added by an edit. Each one that was not removed is
    /// present, unless a merge recorded that it left out this one.
    private func check(_ document: RulesDocument, added: Set<String>, there: Set<String>, behind: [VersionID], _ device: Int) throws {
        guard Set(document.values).count == document.values.count else { throw Failure("twice in a list", document.text) }
        for (name, found) in [("text", Set(document.lines)), ("values", Set(document.values))] {
            guard found.isSubset(of: added) else { throw Failure("invented", "in \(name): \(document.text)") }
            var lost = there.subtracting(found)
            if !lost.isEmpty { for version in behind { lost.subtract(try leftOut(of: name, version, device)) } }
            guard lost.isEmpty else {
                throw Failure("edit lost", "in \(name), without a record: \(lost.sorted()) of \(document.text)")
            }
        }
    }

    /// The words that a merge left out of a member of the document: its records say that a side held them, and the result does not.
    private func leftOut(of name: String, _ version: VersionID, _ device: Int) throws -> Set<String> {
        let store = stores[device], beginning = Array("[\"\(name)\"".utf8)
        guard try store.version(version)?.metadata[Array("__llvs_conflicts".utf8)] != nil else { return [] }
        func added(_ part: [UInt8]?) -> Set<String> {
            // (Records have lines and values in JSON, with `
            // ` after a line.)
            let words = (part ?? []).split { !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) && $0 != UInt8(ascii: "t") }
            return Set(words.map { String(decoding: $0, as: UTF8.self) })
        }
        return try store.explain(version, Store.ConflictQuery(only: ValueID("doc"))).items.map(\.record).reduce(into: []) { all, record in
            guard record.path.starts(with: beginning) else { return }
            all.formUnion(added(record.newer).union(added(record.older)).subtracting(added(record.result)))
        }
    }

    private static let ids = ["doc", "count", "plain", "last", MergeSchema.valueID] + later

    // MARK: The end

    private func settle() throws {
        let fixed = chance(2)
        var rounds = 0
        while true {
            rounds += 1
            guard rounds <= Self.roundsAllowed else {
                throw Failure("not settled", "after \(Self.roundsAllowed) rounds by \(resolvers): at \(current)")
            }
            let before = try stores.map { try $0.allVersionIDs().count }
            if fixed {
                for device in stores.indices {
                    try exchange(device, retrieves: true)
                    try exchange(device, retrieves: false)
                    try merge(device)
                }
            } else {
                for device in stores.indices { try exchange(device, retrieves: false) }
                for device in stores.indices { try exchange(device, retrieves: true) }
                for device in stores.indices { try merge(device) }
            }
            let after = try stores.map { try $0.allVersionIDs().count }
            if before == after, try haveOneState() { break }
        }
        counts.rounds += rounds
        counts.worst = max(counts.worst, rounds)
        for device in stores.indices { try check(device) }
    }

    private func haveOneState() throws -> Bool {
        let states = try stores.indices.map { device in
            try Self.ids.map { try text(device, $0, current[device]) }
        }
        return states.allSatisfy { $0 == states[0] }
    }
}
