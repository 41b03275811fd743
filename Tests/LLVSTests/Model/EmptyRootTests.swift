import LLVS
import LLVSTestHelpers
import Testing

/// The empty root is an empty state that can be read and compared in every store.
@Suite struct EmptyRootTests {
    static let root = EmptyRoot.id

    /// Checks every call that reads a state.
    private func checkIsReadable(_ store: Store) throws {
        let root = Self.root, k = try id("k")
        #expect(try store.version(root) == EmptyRoot.version)
        #expect(try store.value(k, at: root) == nil && store.reference(k, at: root) == nil && store.openValue(k, at: root) == nil)
        #expect(try store.values([k, id("l")], at: root).allSatisfy { $0 == nil })
        #expect(try store.values(at: root, limit: 10).isEmpty && store.references(at: root, limit: 10).isEmpty)
        #expect(try store.count(at: root) == 0 && store.count(at: root, in: .prefix(bytes("k"))) == 0)
        #expect(try store.recordedChanges(madeIn: root).isEmpty && store.changes(madeIn: root).isEmpty && store.changeCount(of: root) == 0)
        #expect(try store.differences(from: root, to: root).isEmpty)
        #expect(try !store.isAncestor(root, of: root) && store.mergeBases(root, root) == [root])
        #expect(try store.value(Value.Reference(id: k, version: root)) == nil)
        #expect(try store.merge(root, with: root, arbiter: BuiltInArbiter.mostRecentChange).id == root)
    }

    /// Checks that it is invisible without descendants.
    private func checkIsVirtual(_ store: Store, versions: UInt64 = 0) throws {
        #expect(try store.heads().allSatisfy { $0.id != Self.root } && !store.history().contains(Self.root))
        #expect(try store.walk(HistoryQuery(from: [Self.root])).next(.max).isEmpty && store.successors(of: Self.root).isEmpty)
        #expect(try store.statistics().versions == versions && !store.contains(Self.root))
    }

    @Test func itIsReadBeforeAnythingWasSaved() throws {
        let store = try memoryStore()
        try checkIsReadable(store)
        try checkIsReadable(store)
        try checkIsVirtual(store)
        #expect(try store.mergeHeads(into: Self.root, arbiter: BuiltInArbiter.mostRecentChange) == nil)
    }

    @Test func itIsReadInAStoreWhoseHistoryNeverHadIt() throws {
        let store = try memoryStore()
        let a = try store.set(["k": "1", "l": "2"], nil)
        try checkIsReadable(store)
        try checkIsVirtual(store, versions: 1)
        #expect(try store.differences(from: Self.root, to: a.id).map(\.kind) == [.insert, .insert])
        #expect(try store.differences(from: a.id, to: Self.root).map(\.kind) == [.remove, .remove])
        #expect(try store.mergeBases(a.id, Self.root).isEmpty && !store.isAncestor(Self.root, of: a.id))
        // There is nothing to merge, in either order.
        #expect(try store.merge(Self.root, with: a.id, arbiter: BuiltInArbiter.mostRecentChange) == a)
        #expect(try store.merge(a.id, with: Self.root, arbiter: BuiltInArbiter.ours) == a)
        #expect(try store.mergeHeads(into: Self.root, arbiter: BuiltInArbiter.mostRecentChange) == a)
        try checkIsVirtual(store, versions: 1)
    }

    @Test func itIsTheAncestorOfWhatIsBuiltOnIt() throws {
        let store = try memoryStore()
        try checkIsReadable(store)
        let a = try store.set(["k": "1"], EmptyRoot.version)
        try checkIsReadable(store)
        #expect(a.predecessors == [Self.root])
        #expect(try store.isAncestor(Self.root, of: a.id) && store.mergeBases(a.id, Self.root) == [Self.root])
        #expect(try store.heads() == [a] && store.successors(of: Self.root) == [a])
        #expect(try store.differences(from: Self.root, to: a.id).count == 1)
        // A second version on it shares it, although it was read before.
        let b = try store.set(["l": "1"], EmptyRoot.version)
        #expect(try store.mergeBases(a.id, b.id) == [Self.root])
        #expect(try store.verify().isWhole)
    }

    @Test func itIsReadInStoresOnDiskAndLeavesNothingThere() throws {
        let directory = TemporaryDirectory()
        try withExtendedLifetime(directory) {
            for storage in [Store.StorageChoice.file, .sqlite] {
                var options = Store.Options()
                options.storage = storage
                let path = directory.path + "/\(storage)"
                var store = try Store(path: path, options: options)
                try checkIsReadable(store)
                try checkIsVirtual(store)
                try store.close()
                #expect(code { _ = try store.version(Self.root) } == .closed)
                options.readOnly = true
                store = try Store(path: path, options: options)
                try checkIsReadable(store)
                try checkIsVirtual(store)
                try store.close()
                options.readOnly = false
                // One handle read it before another handle built on it.
                let one = try Store(path: path, options: options), other = try Store(path: path, options: options)
                try checkIsReadable(one)
                let made = try other.set(["k": "1"], EmptyRoot.version)
                #expect(try one.isAncestor(Self.root, of: made.id))
                try checkIsReadable(one)
                try one.close()
                try other.close()
                store = try Store(path: path, options: options)
                try checkIsReadable(store)
                #expect(try store.heads() == [made] && store.isAncestor(Self.root, of: made.id))
                try store.close()
            }
        }
    }

    @Test func exchangesDoNotCountIt() throws {
        let area = "root \(VersionID.random())"
        let a = try memoryStore(), b = try memoryStore()
        let one = Exchange(store: a, transport: MemoryTransport(name: area)),
            other = Exchange(store: b, transport: MemoryTransport(name: area))
        try checkIsReadable(a)
        #expect(try one.send().versions.isEmpty)
        let made = try a.set(["k": "1"], EmptyRoot.version)
        #expect(try one.send().versions == [made.id])
        try checkIsReadable(b)
        #expect(try other.retrieve().versions == [made.id])
        #expect(try b.isAncestor(Self.root, of: made.id) && b.heads() == [made])
    }
}
