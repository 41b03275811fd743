import LLVSCore
import LLVSMerge
import LLVSTestHelpers
import Testing

/// The table of forks, row by row, and what replaces the ancestor if several bases disagree.
@Suite struct ForkTests {
    /// Passes the merge to a closure, and lets the first side win.
    struct Listener: MergeArbiter {
        let heard: @Sendable (Merge) -> Void
        func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
            heard(merge)
            return try BuiltInArbiter.mostRecentBranch.resolve(merge, in: store)
        }
    }
    /// The fork of "k" in words: kind, side, what the ancestor holds, whether it conflicts; nil if there is none.
    static func fork(_ store: Store, _ older: Version, _ newer: Version) throws -> String? {
        nonisolated(unsafe) var words: String?
        let key = try id("k")
        let listener = Listener { merge in
            #expect(merge.first == newer && merge.second == older)
            words = merge.fork(key).map { fork in
                let ancestor = (try? fork.ancestor.flatMap { try store.value($0) }).map { String(decoding: $0.data, as: UTF8.self) }
                return "\(fork.kind)" + (fork.side.map { "(\($0))" } ?? "") + (ancestor.map { " from \($0)" } ?? "")
                    + (fork.isConflicting ? " !" : "")
            }
        }
        try store.merge(older.id, with: newer.id, arbiter: listener)
        return words
    }
    /// A version on the base with "k" set, removed (nil) or unchanged ("="), and always with a value of its own.
    static func step(_ store: Store, _ base: Version?, _ value: String?, _ own: String) throws -> Version {
        var pairs = [own: own]
        if let value, value != "=" { pairs["k"] = value }
        return try store.set(pairs, base, remove: value == nil ? ["k"] : [])
    }

    @Test(
        arguments: [
            (nil, "x", nil, "inserted(first)"), (nil, nil, "y", "inserted(second)"), (nil, "x", "y", "twiceInserted !"),
            (nil, "x", "x", nil),
            ("o", "x", "=", "updated(first) from o"), ("o", "=", "y", "updated(second) from o"), ("o", "x", "y", "twiceUpdated from o !"),
            ("o", "x", "x", nil),
            ("o", nil, "=", "removed(first) from o"), ("o", "=", nil, "removed(second) from o"), ("o", nil, nil, "twiceRemoved from o"),
            ("o", nil, "y", "removedAndUpdated(first) from o !"), ("o", "x", nil, "removedAndUpdated(second) from o !"),
            // Storing the same bytes again is not a change.
            ("o", "o", "=", nil), ("o", "o", nil, "removed(second) from o"), ("o", nil, "o", "removed(first) from o"),
            ("o", "o", "y", "updated(second) from o"), ("o", "x", "o", "updated(first) from o"), ("o", "o", "o", nil),
        ] as [(String?, String?, String?, String?)])
    func oneAncestor(_ ancestor: String?, _ first: String?, _ second: String?, _ expected: String?) throws {
        let store = try memoryStore()
        let base = try Self.step(store, nil, ancestor, "base")
        let older = try Self.step(store, base, second, "older"), newer = try Self.step(store, base, first, "newer")
        #expect(try Self.fork(store, older, newer) == expected)
    }

    /// Two bases hold a and b, or nothing (nil), for "k". The older side comes from a merge that keeps the first base's value, the newer
    /// side from one that keeps the second's.
    @Test(
        arguments: [
            // Neither side changed anything: the table also decides which of the two values stays.
            ("a", "b", "=", "=", "twiceUpdated !"), ("a", nil, "=", "=", "removedAndUpdated(first) !"),
            (nil, "b", "=", "=", "removedAndUpdated(second) !"),
            // One side has the value of one of the bases and counts as unchanged; the other side has a new one.
            ("a", "b", "x", "=", "updated(first) from a"), ("a", "b", "=", "y", "updated(second) from b"),
            ("a", "b", nil, "=", "removed(first) from a"), ("a", "b", "=", nil, "removed(second) from b"),
            ("a", nil, "=", "y", "inserted(second)"), (nil, "b", "x", "=", "inserted(first)"),
            // The same holds if a side stored the bytes of one of the bases again.
            ("a", "b", "x", "a", "updated(first) from a"), ("a", "b", "b", "y", "updated(second) from b"),
            ("a", "b", "a", "y", "updated(second) from a"), ("a", "b", "b", "a", "twiceUpdated !"), ("a", "b", "a", "=", nil),
            // Both sides differ from both bases.
            ("a", "b", "x", "y", "twiceUpdated !"), ("a", "b", nil, "y", "removedAndUpdated(first) !"),
            ("a", "b", "x", nil, "removedAndUpdated(second) !"),
            ("a", "b", nil, nil, nil), ("a", "b", "x", "x", nil),
            // If the bases hold the same bytes, the reference that was stored later is the ancestor.
            ("a", "a", "x", "=", "updated(first) from a"), ("a", "a", "=", "=", nil), ("a", "a", "x", "y", "twiceUpdated from a !"),
            ("a", "a", nil, nil, "twiceRemoved from a"),
        ] as [(String?, String?, String?, String?, String?)])
    func twoAncestorsThatDisagree(_ one: String?, _ two: String?, _ first: String?, _ second: String?, _ expected: String?) throws {
        let store = try memoryStore()
        let root = try Self.step(store, nil, "o", "root")
        let a = try Self.step(store, root, one, "a"), b = try Self.step(store, root, two, "b")
        let keepsA = try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.ours, metadata: Metadata([(bytes("keeps"), bytes("1"))]))
        let keepsB = try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.theirs, metadata: Metadata([(bytes("keeps"), bytes("2"))]))
        let older = try Self.step(store, keepsA, second, "older"), newer = try Self.step(store, keepsB, first, "newer")
        #expect(try store.mergeBases(older.id, newer.id) == [b.id, a.id])
        #expect(try Self.fork(store, older, newer) == expected)
    }
}
