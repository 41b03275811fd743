import LLVSDocuments
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSMerge

/// Conflicts before a merge, of a merge, and open ones; deciding them; reverting and cherry-picking versions.
@Suite("Conflicts, and taking back") struct ConflictTests {
    static let rules = """
        {"merge":1,"ids":{"d":{"/n":"counter","/t":"text","/s":"set","/l":{"as":"list","key":["/k"]}}}}
        """

    /// A store with rules and a base, and two versions made on it, of which the second is newer.
    private func fork(_ base: String, _ older: String, _ newer: String, beside: [String: String] = [:]) throws
        -> (store: Store, base: Version, older: Version, newer: Version)
    {
        let store = try memoryStore()
        let root = try store.set([MergeSchema.valueID: Self.rules, "d": base].merging(beside) { $1 }, nil)
        return (store, root, try store.set(["d": older], root), try store.set(["d": newer], root))
    }
    private func paths(_ conflicts: [Conflict]) -> [String] {
        conflicts.map { "\($0.id)\(String(decoding: $0.record.path, as: UTF8.self)) \($0.record.kind.name)" }
    }
    private func merge(_ store: Store, _ a: Version, _ b: Version) throws -> Version {
        try store.merge(a.id, with: b.id, arbiter: RulesArbiter())
    }

    @Test("a preview has the conflicts of the merge, and stores nothing") func beforeAndAfter() throws {
        let (store, base, older, newer) = try fork("{\"a\":0,\"n\":1}", "{\"a\":1,\"n\":2}", "{\"a\":2,\"n\":3}")
        let versions = try store.allVersionIDs().count
        let found = try store.conflicts(between: older.id, and: newer.id)
        #expect(try paths(found.items) == ["d[\"a\"] pick"] && store.allVersionIDs().count == versions)
        #expect(found.items[0].version == nil && found.items[0].isByRules)
        #expect(
            try store.conflicts(between: base.id, and: newer.id).items.isEmpty
                && store.conflicts(between: newer.id, and: newer.id).items.isEmpty)
        let merged = try merge(store, older, newer), explained = try store.explain(merged.id)
        #expect(explained.areRecorded && explained.digest == found.digest && explained.items.map(\.record) == found.items.map(\.record))
        #expect(explained.items[0].version == merged.id)
        let none = try store.explain(merged.id, Store.ConflictQuery(only: id("other")))
        #expect(none.items.isEmpty)
        #expect(try store.explain(newer.id).items.isEmpty)
        #expect(throws: StoreError.self) { try store.explain(VersionID("nothing")) }
    }

    @Test("a conflict is open until its place is edited or a side chosen") func openAndChosen() throws {
        let (store, _, older, newer) = try fork("{\"a\":0,\"b\":0}", "{\"a\":1,\"b\":1}", "{\"a\":2,\"b\":2}")
        let merged = try merge(store, older, newer)
        var open = try store.openConflicts(at: merged.id)
        #expect(paths(open) == ["d[\"a\"] pick", "d[\"b\"] pick"])
        let edited = try store.set(["d": "{\"a\":2,\"b\":7,\"c\":1}"], merged)
        open = try store.openConflicts(at: edited.id)
        #expect(paths(open) == ["d[\"a\"] pick"])
        #expect(try store.openConflicts(at: edited.id, Store.ConflictQuery(only: id("x"))).isEmpty)
        let older1 = try store.makeVersion(basedOn: edited.id, changes: store.resolve(open[0], with: .older, at: edited.id))
        #expect(try store.text("d", older1) == "{\"a\":1,\"b\":7,\"c\":1}" && store.openConflicts(at: older1.id).isEmpty)
        let stands = try store.makeVersion(basedOn: edited.id, changes: store.resolve(open[0], with: .result, at: edited.id))
        #expect(try store.text("d", stands) == store.text("d", edited) && store.openConflicts(at: stands.id).isEmpty)
        // One device chose and the other did not. The choice is an edit and prevails in the merge.
        let both = try merge(store, older1, store.set(["d": "{\"a\":2,\"b\":7,\"c\":2}"], edited))
        #expect(try store.text("d", both) == "{\"a\":1,\"b\":7,\"c\":2}" && store.openConflicts(at: both.id).isEmpty)
        do {
            _ = try store.resolve(open[0], with: .older, at: older1.id)
            Issue.record("a decided conflict was decided again")
        } catch let error as StoreError { #expect(error.code == .moved) }
    }

    @Test("a removed counter: the result can be chosen, a side cannot, since two devices would add both") func counters() throws {
        let (store, _, older, newer) = try fork("{\"n\":1}", "{}", "{\"n\":3}")
        let merged = try merge(store, older, newer), open = try store.openConflicts(at: merged.id)
        #expect(try paths(open) == ["d[\"n\"] delete-edit"] && store.text("d", merged) == "{\"n\":2}")
        for side in [Store.Choice.newer, .older] {
            do {
                _ = try store.resolve(open[0], with: side, at: merged.id)
                Issue.record("a side of a counter was chosen")
            } catch let error as StoreError { #expect(error.code == .invalidArgument) }
        }
        let stands = try store.makeVersion(basedOn: merged.id, changes: store.resolve(open[0], with: .result, at: merged.id))
        #expect(try store.openConflicts(at: stands.id).isEmpty)
    }

    @Test("open conflicts are found by merging again only the values that a merge names") func namedValues() throws {
        let many = Dictionary(uniqueKeysWithValues: (0..<300).map { ("d\($0)", "{\"n\":0}") })
        let (store, base, _, _) = try fork("{\"a\":0}", "{}", "{}", beside: many)
        let a = try store.set(many.mapValues { _ in "{\"n\":1}" }.merging(["d": "{\"a\":1}"]) { $1 }, base)
        let b = try store.set(many.mapValues { _ in "{\"n\":2}" }.merging(["d": "{\"a\":2}"]) { $1 }, base)
        let merged = try merge(store, a, b)
        #expect(try store.text("d7", merged) == "{\"n\":3}")
        #if DEBUG
        var open: [Conflict] = [], all: [Conflict] = []
        let few = try Work.merges.counting { open = try store.openConflicts(at: merged.id) }
        let whole = try Work.merges.counting { all = try store.explain(merged.id).items }
        #expect(open == all && open.count == 1 && few == 1 && whole == 301, "\(few) of \(whole)")
        #expect(try Work.merges.counting { _ = try store.openConflicts(at: merged.id, Store.ConflictQuery(only: id("d1"))) } == 0)
        #endif
    }

    @Test("rules that are not valid are recorded by the merge that brings them in, and by none after it") func notValid() throws {
        let (store, base, older, _) = try fork("{\"a\":0}", "{\"a\":1}", "{\"a\":2}")
        let broken = try store.set([MergeSchema.valueID: "no rules"], base)
        var merged = try merge(store, broken, older)
        let conflict = try #require(try store.openConflicts(at: merged.id).first)
        #expect(conflict.id.description == MergeSchema.valueID)
        for i in 0..<3 {
            let left = try store.set(["d": "{\"a\":1,\"l\(i)\":1}"], merged), right = try store.set(["d": "{\"a\":1,\"r\(i)\":1}"], merged)
            merged = try merge(store, left, right)
            #expect(merged.metadata[MergeMarks.conflictsKey] == nil)
            #expect(try store.explain(merged.id).areRecorded && store.openConflicts(at: merged.id) == [conflict])
        }
    }

    // MARK: Taking back

    @Test("a revert keeps later changes, member by member") func revert() throws {
        let (store, base, older, _) = try fork(
            "{\"a\":0,\"n\":1,\"s\":[\"x\"],\"t\":\"The cat.\"}", "{\"a\":1,\"n\":5,\"s\":[],\"t\":\"The big cat.\"}", "{}")
        let later = try store.set(["d": "{\"a\":1,\"b\":1,\"n\":7,\"s\":[\"y\"],\"t\":\"The big cat sat.\"}"], older)
        let undone = try store.revert(older.id, at: later.id), made = try #require(undone.version)
        #expect(try store.text("d", made) == "{\"a\":0,\"b\":1,\"n\":3,\"s\":[\"x\",\"y\"],\"t\":\"The cat sat.\"}")
        #expect(try undone.undone == [id("d")] && undone.superseded.isEmpty && undone.conflicts.isEmpty)
        // Reverting the revert restores the later contents.
        let again = try #require(try store.revert(made.id, at: made.id).version)
        #expect(try store.text("d", again) == store.text("d", later))
        // Reverting at the version itself restores the base, byte for byte.
        let exact = try #require(try store.revert(older.id, at: older.id).version)
        #expect(try store.text("d", exact) == store.text("d", base))
    }

    @Test("values that were changed since stay, and are reported") func superseded() throws {
        let (store, _, older, _) = try fork("{\"a\":0}", "{\"a\":1}", "{}")
        let later = try store.set(["d": "{\"a\":5}"], older)
        let undone = try store.revert(older.id, at: later.id)
        #expect(try undone.version == nil && undone.superseded == [id("d")] && paths(undone.conflicts) == ["d[\"a\"] pick"])
    }

    @Test("a pick repeats the changes of a version, and reports that it had an effect") func pick() throws {
        let (store, _, older, newer) = try fork("{\"a\":0,\"n\":1}", "{\"a\":1,\"n\":4}", "{\"a\":0,\"b\":1,\"n\":2}")
        let picked = try store.cherryPick(older.id, onto: newer.id), made = try #require(picked.version)
        #expect(try store.text("d", made) == "{\"a\":1,\"b\":1,\"n\":5}" && picked.counts && picked.conflicts.isEmpty)
        // P4: once both lines are merged, the increment counts twice.
        #expect(try store.text("d", merge(store, made, older)) == "{\"a\":1,\"b\":1,\"n\":8}")
    }

    @Test("a merge is reverted against either side") func revertMerge() throws {
        let (store, _, older, newer) = try fork("{\"n\":0}", "{\"n\":1}", "{\"n\":10}")
        let merged = try merge(store, older, newer)
        let first = try #require(try store.revert(merged.id, at: merged.id, parent: .first).version)
        let second = try #require(try store.revert(merged.id, at: merged.id, parent: .second).version)
        #expect(try store.text("d", first) == "{\"n\":10}" && store.text("d", second) == "{\"n\":1}")
        #expect(throws: StoreError.self) { try store.revert(newer.id, at: merged.id, parent: .second) }
    }

    @Test("the version that was current at a time") func times() throws {
        let store = try memoryStore()
        func made(_ base: Version?, _ time: Double) throws -> Version {
            try store.makeVersion(basedOn: base?.id, changes: [.update(id("x"), data: bytes("\(time)"))], timestamp: time)
        }
        let a = try made(nil, 10), b = try made(a, 20), c = try made(a, 30), m = try merge(store, b, c)
        for (time, expected) in [(9, nil), (10, a), (19.9, a), (20, b), (30, c), (1e9, m)] as [(Double, Version?)] {
            #expect(try store.version(at: time) == expected, "\(time)")
        }
        #expect(try store.version(at: 25, head: c.id) == a)
        #expect(throws: StoreError.self) { try store.version(at: .nan) }
    }
}
