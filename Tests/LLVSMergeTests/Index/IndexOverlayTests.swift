import LLVSDocuments
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSMerge

/// A tree with an overlay has the same entries as the tree with the changes applied.
@Suite struct IndexOverlayTests {
    private static func tree(_ root: MapNode?, _ overlay: IndexOverlay? = nil) -> IndexCache.Tree {
        IndexCache.Tree([1], 7, root, overlay, values: 3, changes: 5)
    }

    private static func applying(_ keys: [[UInt8]: MapEntry?], to root: MapNode?) throws -> (root: MapNode?, overlay: IndexOverlay) {
        var arena = KeyArena()
        for (key, entry) in keys { key.withUnsafeBytes { arena.append($0, entry) } }
        return try arena.withChanges(isSorted: false) { (try MapNode.applying($0, to: root), try IndexOverlay($0)) }
    }

    private static func entries(
        _ tree: IndexCache.Tree, _ low: [UInt8], _ high: [UInt8]?, isBackwards: Bool, most: Int = .max
    ) -> [[UInt8]] {
        var found: [[UInt8]] = []
        func walk(_ high: UnsafeRawBufferPointer?) {
            low.withUnsafeBytes { low in
                tree.forEach(from: low, to: high, isBackwards: isBackwards) { key in
                    #expect(found.count < most, "the walk does not end")
                    found.append(Array(key))
                    return found.count < most
                }
            }
        }
        if let high { high.withUnsafeBytes { walk($0) } } else { walk(nil) }
        return found
    }

    private static func count(_ tree: IndexCache.Tree, _ low: [UInt8], _ high: [UInt8]?) -> Int {
        low.withUnsafeBytes { low in
            guard let high else { return tree.count(from: low, to: nil) }
            return high.withUnsafeBytes { tree.count(from: low, to: $0) }
        }
    }

    @Test(arguments: 0..<6 as Range<UInt64>) func itHasTheEntriesOfTheWholeTree(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        func key() -> [UInt8] { (0..<Int.random(in: 1...3, using: &random)).map { _ in UInt8.random(in: 0...9, using: &random) } }
        let many = Int.random(in: 0...2, using: &random) * 300
        let there = Set((0..<many).map { _ in key() })
        let root = try Self.applying(Dictionary(uniqueKeysWithValues: there.map { ($0, IndexMaking.slot) }), to: nil).root
        // Each change has an effect: it removes a present entry or adds an absent one.
        var changes: [[UInt8]: MapEntry?] = [:]
        for _ in 0..<Int.random(in: 1...200, using: &random) {
            let key = key()
            changes[key] = .some(there.contains(key) ? nil : IndexMaking.slot)
        }
        let (whole, overlay) = try Self.applying(changes, to: root)
        let apart = Self.tree(root, overlay), one = Self.tree(whole)
        #expect(overlay.cost > changes.count)
        for _ in 0..<300 {
            let low = Int.random(in: 0..<4, using: &random) == 0 ? [] : key(), most = Int.random(in: 1...50, using: &random)
            let high = Int.random(in: 0..<4, using: &random) == 0 ? nil : key()
            #expect(Self.count(apart, low, high) == Self.count(one, low, high))
            for isBackwards in [false, true] {
                // (Skip an empty range: it is never walked.)
                if let high, Bytes.compare(low, high) >= 0 { continue }
                let expected = Self.entries(one, low, high, isBackwards: isBackwards)
                #expect(Self.entries(apart, low, high, isBackwards: isBackwards) == expected)
                #expect(Self.entries(apart, low, high, isBackwards: isBackwards, most: most) == Array(expected.prefix(most)))
            }
        }
        let put = try apart.withoutOverlay()
        #expect(MapNode.haveSameContents(put.root, whole) && put.overlay == nil)
        #expect(put.digest == apart.digest && put.ordinal == 7 && put.values == 3 && put.changes == 5)
    }

    /// The first query at a distant version uses an overlay. The next version near it is built from a tree with the changes applied.
    @Test func aFarVersionHasAnOverlayUntilOthersAreMadeFromIt() throws {
        let store = try memoryStore(), provider = IndexProvider.of(store)
        let definition = try Array(#"{"prefix":"v","on":["/a"]}"#.utf8).withUnsafeBytes { try IndexDefinition($0) }
        func data(_ a: Int) -> [UInt8] { Array(#"{"a":\#(a)}"#.utf8) }
        let first = try store.makeVersion(basedOn: nil, changes: try (0..<400).map { .insert(try id("v\($0)"), data: data($0)) })
        let second = try store.makeVersion(
            basedOn: first.id, changes: try (0..<60).map { .update(try id("v\($0)"), data: data(-$0 - 1)) })
        let third = try store.makeVersion(basedOn: second.id, changes: [.remove(try id("v0"))])
        func tree(_ version: Version) throws -> IndexCache.Tree {
            try provider.tree(definition, store.requireOrdinal(version.id), in: store, .none)
        }
        let near = try tree(first), far = try tree(second)
        #expect(near.overlay == nil && far.overlay?.changes.count == 120 && far.root === near.root)
        #expect(try tree(second) === far, "it is made once")
        let kept = provider.kept
        #expect(kept.trees == 2 && kept.bytes >= far.overlay?.cost ?? 0)
        let next = try tree(third)
        #expect(next.overlay == nil && next.root?.count == 399)
        let whole = try tree(second)
        #expect(whole.overlay == nil && whole.root?.count == 400 && provider.kept.trees == 3)
    }
}
