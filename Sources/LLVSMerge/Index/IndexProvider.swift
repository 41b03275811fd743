import CLLVSShims

/// Provides the tree of an index at a version: from memory, or built from the nearest version that has one and the differences, or from all
/// values.
///
/// One per store. Safe from all threads; no lock is held while values are read. If two threads request one tree, the second waits for the
/// first.
final class IndexProvider: @unchecked Sendable {
    // Sendable: `lock` guards the mutable state.
    private struct Place: Hashable {
        let digest: [UInt8]
        let ordinal: UInt32
    }

    /// A tree under construction. Abandoned if the host's progress callback never returns.
    private final class Making: HostCallMark, @unchecked Sendable {
        // Sendable: immutable, except for what the runtime does to the weak reference.
        let place: Place
        let thread = llvs_shim_thread_number()
        private weak var provider: IndexProvider?
        init(_ place: Place, _ provider: IndexProvider) {
            self.place = place
            self.provider = provider
        }
        func hostLeft() { provider?.end(self) }
    }

    private let lock = Lock(.leaf)
    private let ended = Condition()
    private let cache: IndexCache
    private var running: [Making] = []
    /// The declarations in rules, by the version that stored them.
    private let declared = Guarded<[UInt32: IndexDeclarations]>([:])
    private static let mostDeclarations = 16

    /// Returns the provider of a store.
    static func of(_ store: Store) -> IndexProvider {
        store.attachments.object(IndexProvider.self) { IndexProvider(store.maps.account) }
    }

    private init(_ account: MemoryAccount) {
        cache = IndexCache(account)
        GivingWay.add(self) { [weak self] in self?.removeAll() }
    }
    deinit { GivingWay.remove(self) }

    /// Evicts all trees. They are rebuilt on demand.
    func removeAll() {
        let gone = lock.withLock { cache.removeAll() }
        withExtendedLifetime(gone) {}
    }

    /// The number of trees in memory and their bytes, for tests.
    var kept: (trees: Int, bytes: Int) { lock.withLock { (cache.treeCount, cache.cost) } }

    // MARK: Trees

    /// - Throws: `.damaged` with the id of a value that cannot be read, `.busy` from within a callback of the call that builds it, errors
    ///   of the control, `.outOfMemory`.
    func tree(_ definition: IndexDefinition, _ ordinal: UInt32, in store: Store, _ control: PacedControl) throws -> IndexCache.Tree {
        let place = Place(digest: definition.digest, ordinal: ordinal)
        while true {
            switch try claim(place, isComputed: definition.callback != nil) {
            case .kept(let tree): return tree
            case .others: try control.look()
            case .own(let making, let basis):
                defer { end(making) }
                return try HostCalls.run(making) {
                    let basis = try basis ?? IndexFiles.tree(definition, in: store, control).map { keep($0, on: nil) }
                    if let basis, basis.ordinal == ordinal { return basis }
                    let (tree, from) = try IndexMaking(store, definition, control).tree(ordinal, from: basis.map(withoutOverlay))
                    let isSaved = IndexFiles.save(tree, definition, changes: from == nil ? nil : tree.changes, in: store)
                    return keep(isSaved ? tree.asSaved : tree, on: from)
                }
            }
        }
    }

    /// Caches a tree, unless another thread has cached it meanwhile, and returns it.
    private func keep(_ tree: IndexCache.Tree, on basis: IndexCache.Tree?) -> IndexCache.Tree {
        let gone = lock.withLock { cache.store(tree, on: basis) }
        return withExtendedLifetime(gone) { tree }
    }

    /// Returns a tree from which others can be built. It replaces a tree with an overlay, which would otherwise be merged again for each.
    private func withoutOverlay(_ tree: IndexCache.Tree) throws -> IndexCache.Tree {
        guard tree.overlay != nil else { return tree }
        let whole = try tree.withoutOverlay(), gone = lock.withLock { cache.replace(tree, with: whole) }
        return withExtendedLifetime(gone) { whole }
    }

    private enum Claimed {
        case kept(IndexCache.Tree)
        /// The caller must build it, best from the given tree.
        case own(Making, IndexCache.Tree?)
        /// Another thread was building it a moment ago.
        case others
    }

    /// Seconds to wait for another thread between checks of the control.
    private static let turn = 0.02

    private func claim(_ place: Place, isComputed: Bool) throws -> Claimed {
        try lock.withLock {
            if let tree = cache.find(place.digest, place.ordinal) { return .kept(tree) }
            let thread = llvs_shim_thread_number(), isMaking = running.contains { $0.thread == thread }
            // A callback that computes keys would be called for one version after the other, each call nested in the one before.
            if running.contains(where: { $0.thread == thread && $0.place.digest == place.digest && (isComputed || $0.place == place) }) {
                throw StoreError(
                    .busy, "An index was queried within a callback of the call that builds it. Query it after that has returned.")
            }
            // A thread inside a callback waits for no other, which may be waiting for it; the tree is then built twice.
            if !isMaking, running.contains(where: { $0.place == place }) {
                _ = ended.wait(lock, until: Clock.steady() + IndexProvider.turn)
                return .others
            }
            let making = Making(place, self)
            running.append(making)
            return .own(making, cache.nearest(place.digest, place.ordinal))
        }
    }

    private func end(_ making: Making) {
        lock.withLock {
            running.removeAll { $0 === making }
            ended.broadcast()
        }
    }

    // MARK: Declarations

    /// Returns the indexes declared at a version.
    func declarations(at ordinal: UInt32, in store: Store) throws -> IndexDeclarations {
        guard let entry = try store.rules.schemaEntry(at: ordinal) else { return IndexDeclarations() }
        if let known = declared.withLock({ $0[entry.version] }) { return known }
        let read = try MergeSchema.idBytes.withUnsafeBytes { id in
            try store.records.withBody(store.place(of: entry.version), entry, id: id, stored: store.versionID(entry.version)) {
                try IndexDeclarations($0)
            }
        }
        declared.withLock { declared in
            if declared.count >= IndexProvider.mostDeclarations { declared = [:] }
            declared[entry.version] = read
        }
        return read
    }
}
