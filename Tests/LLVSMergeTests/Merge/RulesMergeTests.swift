import LLVSCore
import LLVSDocuments
import LLVSTestHelpers
import Testing

@testable import LLVSMerge

/// Merging stores by rules: counters, bases that disagree, recency, merging the rules themselves, and ranks.
@Suite("Merging by rules") struct RulesMergeTests {
    static let rules = """
        {"merge":1,"ids":{"c":"counter","d":{"/n":"counter","/t":"set"},"o":"auto"}}
        """

    /// A store with rules, and its first version.
    private func begin(_ pairs: [String: String] = [:], rules: String = RulesMergeTests.rules) throws -> (Store, Version) {
        let store = try memoryStore()
        return (store, try store.set(pairs.merging([MergeSchema.valueID: rules]) { $1 }, nil))
    }
    private func merged(_ store: Store, _ a: Version, _ b: Version, by: String? = nil) throws -> Version {
        let metadata = try Metadata(by.map { [(bytes("by"), bytes($0))] } ?? [])
        return try store.merge(a.id, with: b.id, arbiter: RulesArbiter(), metadata: metadata)
    }
    private func told(_ version: Version, _ key: String) -> String? {
        version.metadata[bytes(key)].map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("both sides' edits stay, and the merge says so") func bothSidesStay() throws {
        let (store, base) = try begin(["d": "{\"n\":1,\"t\":[\"x\"],\"f\":0}", "p": "0"])
        let a = try store.set(["d": "{\"n\":2,\"t\":[\"x\",\"a\"],\"f\":1}", "p": "1"], base)
        let b = try store.set(["d": "{\"n\":4,\"t\":[],\"f\":0}", "p": "2"], base)
        let m = try merged(store, a, b)
        #expect(try store.text("d", m) == "{\"f\":1,\"n\":5,\"t\":[\"a\"]}")
        // No rule applies to this value.
        #expect(try store.text("p", m) == "2")
        #expect(told(m, "__llvs_arbiter") == "\"rules\"" && told(m, "__llvs_conflicts") == nil)
        #expect(try merged(store, b, a) == m)
        #expect(try store.changes(madeIn: m.id).map(\.kind) == [.update])
    }

    @Test("conflicts are counted, with a digest") func conflictsAreCounted() throws {
        let (store, base) = try begin(["o1": "{\"f\":0}", "o2": "{\"f\":0}"])
        let a = try store.set(["o1": "{\"f\":1}", "o2": "{\"f\":1}"], base),
            b = try store.set(["o1": "{\"f\":2}", "o2": "{\"f\":2}"], base)
        let m = try merged(store, a, b)
        let expected = try ["o1", "o2"].flatMap { id in
            let merge = DocumentMerge(schema: try bytes(Self.rules).withUnsafeBytes { try MergeSchema($0) }, id: bytes(id))
            return try bytes("{\"f\":0}").withUnsafeBytes { o in
                try bytes("{\"f\":2}").withUnsafeBytes { x in
                    try bytes("{\"f\":1}").withUnsafeBytes { try merge.merge(base: o, newer: x, older: $0).records.map { (bytes(id), $0) } }
                }
            }
        }
        let json = bytes("[") + expected.map { $0.1.json(id: $0.0) }.joined(separator: bytes(",")) + bytes("]")
        let digest = json.withUnsafeBytes { SHA256.digest($0) }
        let hash = digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        #expect(told(m, "__llvs_conflicts") == "{\"hash\":\"\(hash)\",\"ids\":[\"o1\",\"o2\"],\"n\":2}")
        // The newer side's value prevails, with its reference.
        #expect(try store.changes(madeIn: m.id).isEmpty && store.text("o1", m) == "{\"f\":2}")
    }

    @Test("without rules it is most recent change, to the id") func withoutRules() throws {
        func make(_ arbiter: any MergeArbiter, rules: String?) throws -> (Version, [String: String]) {
            let store = try memoryStore()
            func version(_ base: Version?, _ pairs: [String: String], at: Double) throws -> Version {
                try store.makeVersion(
                    basedOn: base?.id, changes: pairs.map { .insert(try ValueID($0.key), data: bytes($0.value)) }, timestamp: at)
            }
            let base = try version(nil, ["x": "{\"a\":0}", "y": "0"].merging(rules.map { [MergeSchema.valueID: $0] } ?? [:]) { $1 }, at: 1)
            let a = try version(base, ["x": "{\"a\":1}", "z": "1"], at: 2), b = try version(base, ["x": "{\"b\":1}", "y": "1"], at: 3)
            let merged = try store.merge(a.id, with: b.id, arbiter: arbiter)
            return (merged, try store.state(merged.id))
        }
        let (plain, state) = try make(BuiltInArbiter.mostRecentChange, rules: nil)
        #expect(try make(RulesArbiter(), rules: nil) == (plain, state))
        // Rules for other ids do not change how these are merged.
        let (other, otherState) = try make(RulesArbiter(), rules: "{\"merge\":1,\"ids\":{\"q\":\"auto\"}}")
        #expect(otherState["x"]?.hasPrefix("{\"b\":1}") == true && told(other, "__llvs_arbiter") == "\"rules\"")
    }

    @Test("the same bytes counted twice are two events") func sameBytesTwice() throws {
        let (store, base) = try begin(["c": "0", "o": "{}"])
        let a = try store.set(["c": "1", "o": "{\"a\":1}"], base), b = try store.set(["c": "1", "o": "{\"a\":1}"], base)
        #expect(try store.equalStates.groupedByState([a, b].map { try store.requireOrdinal($0.id) }).count == 2)
        let m = try #require(try store.mergeHeads(into: a.id, arbiter: RulesArbiter()))
        #expect(try store.text("c", m) == "2" && store.text("o", m) == "{\"a\":1}")
        // An arbiter of the host is shown this fork as well.
        nonisolated(unsafe) var shown: [String] = []
        let listener = ForkTests.Listener { shown = $0.forks.map { "\($0.id) \($0.fork.kind)" } }
        let hosts = try store.merge(a.id, with: b.id, arbiter: listener)
        #expect(shown == ["c twiceUpdated"] && told(hosts, "__llvs_arbiter") == "\"host\"")
    }

    @Test("bases that disagree are merged first") func crissCross() throws {
        let (store, base) = try begin(["c": "0", "d": "{\"n\":0,\"t\":[],\"f\":{\"a\":0,\"b\":0}}"])
        let a = try store.set(["c": "1", "d": "{\"n\":1,\"t\":[\"a\"],\"f\":{\"a\":1,\"b\":0}}"], base)
        let b = try store.set(["c": "10", "d": "{\"n\":10,\"t\":[\"b\"],\"f\":{\"a\":0,\"b\":1}}"], base)
        let m = try merged(store, a, b, by: "1"), n = try merged(store, a, b, by: "2")
        #expect(try m != n && store.text("c", m) == "11")
        let x = try store.set(["c": "111", "d": "{\"n\":111,\"t\":[\"a\",\"b\",\"x\"],\"f\":{\"a\":2,\"b\":1}}"], m)
        let y = try store.set(["c": "1011", "d": "{\"n\":1011,\"t\":[\"b\"],\"f\":{\"a\":1,\"b\":2}}"], n)
        let last = try merged(store, x, y)
        #expect(try store.mergeBases(x.id, y.id).count == 2)
        #expect(try store.text("c", last) == "1111")
        #expect(try store.text("d", last) == "{\"f\":{\"a\":2,\"b\":2},\"n\":1111,\"t\":[\"b\",\"x\"]}")
        #expect(told(last, "__llvs_conflicts") == nil)
    }

    @Test("an edit does not lose to what it had overwritten, where another merge kept that") func overwritten() throws {
        let (store, base) = try begin(["o": "{\"p\":0,\"q\":0}"])
        let u = try store.set(["o": "{\"p\":1,\"q\":0}"], base), t = try store.set(["o": "{\"p\":2,\"q\":0}"], base)
        let edit = try store.set(["o": "{\"p\":4,\"q\":0}"], u), other = try store.set(["o": "{\"p\":1,\"q\":5}"], u)
        let m = try merged(store, edit, t), n = try merged(store, other, t)
        #expect(try store.text("o", m) == "{\"p\":4,\"q\":0}" && store.text("o", n) == "{\"p\":1,\"q\":5}")
        let last = try merged(store, m, n)
        #expect(try store.mergeBases(m.id, n.id).count == 2)
        #expect(try store.text("o", last) == "{\"p\":4,\"q\":5}")
        let records = try store.explain(last.id).items.map(\.record)
        #expect(records.map(\.kind) == [.pick] && records.map(\.result) == [bytes("4")])
    }

    @Test("a counter that one side removed starts again: later additions of the other count") func removedCounters() throws {
        let (store, base) = try begin(["c": "1", "d": "{\"n\":1}"])
        let removed = try store.set(["d": "{}"], base, remove: ["c"]), counted = try store.set(["c": "2", "d": "{\"n\":2}"], base)
        let m = try merged(store, removed, counted)
        #expect(try store.text("c", m) == "1" && store.text("d", m) == "{\"n\":1}")
        // The counter also starts again if the first increment is undone.
        let (other, root) = try begin(["d": "{}"])
        let first = try other.set(["d": "{\"n\":1}"], root), second = try other.set(["d": "{\"n\":2}"], first)
        let undone = try #require(try other.revert(first.id, at: first.id).version)
        #expect(try other.text("d", undone) == "{}" && other.text("d", merged(other, undone, second)) == "{\"n\":1}")
    }

    @Test("a high ladder of criss-crosses stays exact, on a small stack") func ladder() throws {
        let (store, base) = try begin(["c": "0"])
        var left = try store.set(["c": "1"], base), right = try store.set(["c": "1"], base)
        var total = 2
        for step in 0..<60 {
            let m = try merged(store, left, right, by: "1\(step)"), n = try merged(store, left, right, by: "2\(step)")
            left = try store.set(["c": "\(total + 1)"], m)
            right = try store.set(["c": "\(total + 2)"], n)
            total += 3
        }
        #expect(try store.text("c", merged(store, left, right)) == "\(total)")
    }

    @Test("many heads are folded in one call") func manyHeads() throws {
        let (store, base) = try begin(["c": "0", "d": "{\"t\":[]}"])
        for i in 0..<20 { _ = try store.set(["c": "1", "d": "{\"t\":[\(i)]}"], base) }
        let m = try #require(try store.mergeHeads(into: base.id, arbiter: RulesArbiter()))
        #expect(try store.text("c", m) == "20" && store.heads() == [m])
        #expect(try store.text("d", m)?.split(separator: ",").count == 20)
    }

    @Test("a merge makes no value newer than its sides") func recency() throws {
        let (store, base) = try begin(["o": "{\"f\":0,\"g\":0}"])
        let a = try store.set(["o": "{\"f\":1,\"g\":0}"], base), b = try store.set(["o": "{\"f\":0,\"g\":1}"], base)
        let later = try store.set(["o": "{\"f\":3,\"g\":0}"], base)
        // This merge is newer than `later`, but its values are older.
        let m = try merged(store, a, store.set(["q": "1"], b))
        #expect(m.timestamp > later.timestamp)
        #expect(try store.text("o", merged(store, m, later)) == "{\"f\":3,\"g\":1}")
    }

    @Test("rules that are given go before the store's") func givenRules() throws {
        let (store, base) = try begin(["c": "0", "x": "{\"n\":1}"])
        let a = try store.set(["c": "1", "x": "{\"n\":2}"], base), b = try store.set(["c": "2", "x": "{\"n\":2}"], base)
        let given = try bytes("{\"merge\":1,\"ids\":{\"x\":{\"/n\":\"counter\"}}}").withUnsafeBytes { try MergeSchema($0) }
        let m = try store.merge(a.id, with: b.id, arbiter: RulesArbiter(given))
        #expect(try store.text("x", m) == "{\"n\":3}" && store.text("c", m) == "2")
    }

    @Test("an arbiter of the host may leave the rest to rules") func fallback() throws {
        struct Leaving: MergeArbiter {
            func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] { try RulesArbiter().resolve(merge, in: store) }
        }
        let (store, base) = try begin(["c": "0", "d": "{\"n\":0}", "p": "0", "o": "{}"])
        let a = try store.set(["c": "1", "d": "{\"n\":1}", "p": "1"], base, remove: ["o"])
        let b = try store.set(["c": "1", "d": "{\"n\":3}", "p": "2", "o": "{\"a\":1}"], base)
        let m = try store.merge(a.id, with: b.id, arbiter: Leaving()), r = try merged(store, a, b)
        for key in ["c", "d", "p", "o"] { #expect(try store.text(key, m) == store.text(key, r)) }
        #expect(told(m, "__llvs_arbiter") == "\"host\"")
    }

    // MARK: The rules themselves

    @Test("two edits of the rules are merged, and the merge follows them") func rulesAreMerged() throws {
        let (store, base) = try begin(["c": "0", "d": "{\"n\":0}"], rules: "{\"merge\":1,\"ids\":{\"d\":{}}}")
        let a = try store.set(
            [MergeSchema.valueID: "{\"merge\":1,\"ids\":{\"c\":\"counter\",\"d\":{}}}", "c": "1", "d": "{\"n\":1}"], base)
        let b = try store.set(
            [MergeSchema.valueID: "{\"merge\":1,\"ids\":{\"d\":{\"/n\":\"counter\"}}}", "c": "1", "d": "{\"n\":1}"], base)
        let m = try merged(store, a, b)
        #expect(try store.text("c", m) == "2" && store.text("d", m) == "{\"n\":2}")
        #expect(try store.text(MergeSchema.valueID, m) == "{\"ids\":{\"c\":\"counter\",\"d\":{\"/n\":\"counter\"}},\"merge\":1}")
    }

    @Test("rules that are not valid do not count, and the merge says so") func rulesThatAreNotValid() throws {
        let (store, base) = try begin(["c": "0"])
        let a = try store.set([MergeSchema.valueID: "no rules", "c": "1"], base), b = try store.set(["c": "1"], base)
        let m = try merged(store, a, b)
        #expect(try store.text("c", m) == "2" && store.text(MergeSchema.valueID, m) == "no rules")
        #expect(told(m, "__llvs_conflicts")?.hasSuffix("\"ids\":[\"__llvs_schema\"],\"n\":1}") == true)
        // If no rules were ever valid, there are none.
        let other = try memoryStore()
        let root = try other.set([MergeSchema.valueID: "[", "c": "0"], nil)
        let x = try other.set(["c": "1"], root), y = try other.set(["c": "2"], root)
        #expect(try other.text("c", merged(other, x, y)) == "2" && told(merged(other, x, y), "__llvs_arbiter") == nil)
    }

    @Test("rules of a number that is not known keep heads apart") func unknownNumber() throws {
        let (store, base) = try begin(["c": "0"])
        let a = try store.set([MergeSchema.valueID: "{\"merge\":2}", "c": "1"], base), b = try store.set(["c": "1"], base)
        func isRefused(_ merge: () throws -> Void) -> Bool {
            do { try merge(); return false } catch let error as StoreError {
                return error.code == .unsupported && error.path == "/merge"
            } catch { return false }
        }
        #expect(isRefused { _ = try merged(store, a, b) })
        #expect(isRefused { _ = try store.mergeHeads(into: a.id, arbiter: RulesArbiter()) })
        #expect(try store.heads().count == 2)
        // The two do not count as equal states either.
        let c = try store.set(["c": "1"], a), d = try store.set(["c": "1"], a)
        #expect(try store.equalStates.groupedByState([c, d].map { try store.requireOrdinal($0.id) }).count == 2)
        // A caller can choose to merge whole values.
        #expect(try store.text("c", store.merge(c.id, with: d.id, arbiter: BuiltInArbiter.mostRecentChange)) == "1")
    }

    @Test("removed rules are none") func removedRules() throws {
        let (store, base) = try begin(["c": "0"])
        let a = try store.set(["c": "1"], base, remove: [MergeSchema.valueID]), b = try store.set(["c": "1"], base)
        let m = try merged(store, a, b)
        #expect(try store.text("c", m) == "1" && store.text(MergeSchema.valueID, m) == nil && m.metadata.isEmpty)
    }

    // MARK: Ranks

    @Test("an answer by rules beats one that chose between whole values") func ranks() throws {
        let (store, base) = try begin(["c": "0"])
        let a = try store.set(["c": "1"], base), b = try store.set(["c": "1"], base)
        let byRules = try merged(store, a, b)
        for other in [BuiltInArbiter.mostRecentChange, .ours, .theirs] {
            let whole = try store.merge(a.id, with: b.id, arbiter: other, metadata: Metadata([(bytes("by"), bytes("\(other.rawValue)"))]))
            let settled = try store.merge(whole.id, with: byRules.id, arbiter: other)
            #expect(try store.text("c", settled) == "2")
            #expect(told(settled, "__llvs_arbiter") == "\"rules\"" && settled.metadata.entries.count == 1)
            #expect(try store.merge(byRules.id, with: whole.id, arbiter: RulesArbiter()) == settled)
            // The merge that chose this result carries the rank.
            let metadata = try Metadata([(bytes("by"), bytes("again \(other.rawValue)"))])
            let again = try store.merge(a.id, with: b.id, arbiter: other, metadata: metadata)
            #expect(try store.text("c", store.merge(settled.id, with: again.id, arbiter: other)) == "2")
        }
        struct Host: MergeArbiter {
            func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] { [.update(try ValueID("c"), data: bytes("7"))] }
        }
        let byHost = try store.merge(a.id, with: b.id, arbiter: Host())
        #expect(try store.text("c", merged(store, byHost, byRules)) == "7")
    }
}
