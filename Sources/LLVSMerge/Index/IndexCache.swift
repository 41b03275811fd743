/// The trees of indexes in memory, within a budget. Evicts the least recently used first, but never the newest.
///
/// Guarded by the lock of its `IndexProvider`.
final class IndexCache {
    /// An index at a version: its entries in order, each a key and the id of a value that has it. Immutable except for the cache's fields.
    final class Tree: @unchecked Sendable {
        // Sendable: the mutable fields belong to the cache, whose lock guards them.
        let digest: [UInt8]
        /// The version, in this process's history.
        let ordinal: UInt32
        /// Nil when it is empty.
        let root: MapNode?
        /// The differences between the entries and those of `root`; nil if there are none.
        let overlay: IndexOverlay?
        /// The number of values at the version whose ids begin with the prefix of the index.
        let values: Int
        /// The number of version differences applied since a file of the index was read or written.
        let changes: Int
        /// The tree that it was made from and shares nodes with, while the cache holds that.
        fileprivate var basis: Tree?
        fileprivate var dependents: [Tree] = []
        /// Bytes that it does not share with its basis.
        fileprivate var cost = 0
        fileprivate var lastUse: UInt64 = 0

        init(
            _ digest: [UInt8], _ ordinal: UInt32, _ root: MapNode?, _ overlay: IndexOverlay? = nil, values: Int, changes: Int = 0
        ) {
            self.changes = changes
            self.overlay = overlay
            self.digest = digest
            self.ordinal = ordinal
            self.root = root
            self.values = values
        }

        /// The same tree, marked as saved in a file.
        var asSaved: Tree { Tree(digest, ordinal, root, overlay, values: values) }
    }

    /// The minimal cost of a tree.
    private static let leastCost = 1 << 10

    private let account: MemoryAccount
    private var trees: [[UInt8]: [UInt32: Tree]] = [:]
    private(set) var cost = 0
    private var uses: UInt64 = 0
    private var count = 0

    init(_ account: MemoryAccount) { self.account = account }
    // Trees and their bases refer to each other.
    deinit { _ = removeAll() }

    func find(_ digest: [UInt8], _ ordinal: UInt32) -> Tree? {
        guard let tree = trees[digest]?[ordinal] else { return nil }
        use(tree)
        return tree
    }

    /// Returns the tree of the same index whose version is nearest in the order of ordinals. O(trees of the index).
    func nearest(_ digest: [UInt8], _ ordinal: UInt32) -> Tree? {
        func distance(_ other: UInt32) -> UInt32 { other < ordinal ? ordinal - other : other - ordinal }
        return trees[digest]?.values.min { a, b in
            let (x, y) = (distance(a.ordinal), distance(b.ordinal))
            return x != y ? x < y : a.ordinal < b.ordinal
        }
    }

    /// Stores a tree. Returns the evicted trees, for release outside the lock.
    func store(_ tree: Tree, on basis: Tree?) -> [Tree] {
        guard trees[tree.digest]?[tree.ordinal] == nil else { return [] }
        trees[tree.digest, default: [:]][tree.ordinal] = tree
        count += 1
        let isKept = basis.map { trees[$0.digest]?[$0.ordinal] === $0 } ?? false
        weigh(tree, on: isKept ? basis : nil)
        use(tree)
        defer { account.note(indexes: cost) }
        return trim(but: tree)
    }

    /// Replaces a tree by one with the same entries.
    func replace(_ tree: Tree, with other: Tree) -> [Tree] {
        guard trees[tree.digest]?[tree.ordinal] === tree else { return [] }
        let basis = tree.basis
        forget(tree)
        return store(other, on: basis) + [tree]
    }

    private func use(_ tree: Tree) {
        uses += 1
        tree.lastUse = uses
    }

    private func weigh(_ tree: Tree, on basis: Tree?) {
        tree.basis = basis
        basis?.dependents.append(tree)
        tree.cost = IndexCache.leastCost + (tree.root?.memory(beside: basis?.root) ?? 0) + (tree.overlay?.cost ?? 0)
        cost += tree.cost
    }

    /// Evicts an eighth of the budget at a time, so that the sorting pays.
    private func trim(but newest: Tree) -> [Tree] {
        let budget = account.indexes
        guard cost > budget else { return [] }
        var gone: [Tree] = []
        for tree in trees.values.flatMap(\.values).sorted(by: { $0.lastUse < $1.lastUse }) where tree !== newest {
            guard cost > budget - budget / 8 else { break }
            forget(tree)
            gone.append(tree)
        }
        return gone
    }

    /// Nodes that it shared with trees made from it count as theirs from now on.
    private func forget(_ tree: Tree) {
        trees[tree.digest]?[tree.ordinal] = nil
        if trees[tree.digest]?.isEmpty ?? false { trees[tree.digest] = nil }
        count -= 1
        cost -= tree.cost
        let basis = tree.basis
        tree.basis = nil
        basis?.dependents.removeAll { $0 === tree }
        for dependent in tree.dependents {
            cost -= dependent.cost
            weigh(dependent, on: basis)
        }
        tree.dependents = []
    }

    /// Removes all trees. Returns them, for release outside the lock.
    func removeAll() -> [Tree] {
        let gone = trees.values.flatMap(\.values)
        for tree in gone {
            tree.basis = nil
            tree.dependents = []
        }
        trees = [:]
        (cost, count) = (0, 0)
        account.note(indexes: 0)
        return gone
    }

    /// The number of trees, for tests.
    var treeCount: Int { count }
}
