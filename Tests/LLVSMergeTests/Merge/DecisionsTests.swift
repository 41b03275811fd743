import LLVSCore
import LLVSDocuments
import LLVSMerge
import LLVSTestHelpers
import Testing

/// Decisions of the host's arbiters, change by change.
@Suite struct DecisionsTests {
    @Test func theLastWordOnAnIDCounts() throws {
        var decisions = Decisions()
        decisions.add([.update(try id("a"), data: [1]), .remove(try id("b"))])
        decisions.add([.update(try id("b"), data: [2]), .remove(try id("a"))])
        #expect(decisions.changes.map(\.id) == [try id("a"), try id("b")])
        #expect(decisions.changes.map(\.kind) == [.remove, .update])
    }

    @Test func anAnswerIsOneChangeOfTheIDThatWasAskedAbout() throws {
        func answer(_ changes: [Value.Change], passes: Bool = false) throws -> ValueAnswer {
            var decisions = Decisions()
            decisions.add(changes)
            return try decisions.answer(for: id("a"), passes: passes)
        }
        guard case .pass = try answer([], passes: true) else { Issue.record("no pass"); return }
        guard case .value([1]) = try answer([.insert(try id("a"), data: [1])]) else { Issue.record("no bytes"); return }
        guard case .value(nil) = try answer([.remove(try id("a"))], passes: true) else { Issue.record("no removal"); return }
        func code(_ changes: [Value.Change]) throws -> StoreError.Code? {
            do { _ = try answer(changes); return nil } catch { return (error as? StoreError)?.code }
        }
        #expect(try code([]) == .unresolvedConflict)
        #expect(try code([.remove(id("b"))]) == .unresolvedConflict)
        #expect(try code([.remove(id("a")), .remove(id("b"))]) == .unresolvedConflict)
        #expect(try code([.preserveRemoval(id("a"))]) == .invalidReference)
    }

    @Test func whatIsLeftOpenGoesToTheOtherArbiter() throws {
        let store = try memoryStore()
        let base = try store.set(["a": "0", "b": "0"], nil)
        let older = try store.set(["a": "1", "b": "1"], base), newer = try store.set(["a": "2", "b": "2"], base)
        struct Mine: MergeArbiter {
            func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
                var decisions = Decisions()
                decisions.add([.update(try id("a"), data: bytes("mine"))])
                return try decisions.completed(by: BuiltInArbiter.mostRecentBranch, merge, in: store)
            }
        }
        let merged = try store.merge(older.id, with: newer.id, arbiter: Mine())
        #expect(try store.text("a", merged) == "mine" && store.text("b", merged) == "2")
    }
}
