import CLLVSShims

/// The tree of an index at a version: from memory, or made from the nearest version that has one and what differs, or from all values.
///
/// One for each store. Safe from all threads; no lock is held while values are read. Two threads that ask for one tree: the second waits
/// for the first.
final class IndexProvider: @unchecked Sendable {
    // Sendable: `lock` guards what changes.
    private struct Place: Hashable {
        let digest: [UInt8]
        let ordinal: UInt32
    }

    /// A tree that is being made. Where the host's progress callback never returns, it is not made any more.
    private final class Making: HostCallMark, @unchecked Sendable {
        // Sendable: it never changes, but for what the runtime does to a weak reference.
        let place: Place
        let thread = llvs_shim_thread_number()
        private weak var provider: IndexProvider?
        init(_ place: Place, _ provider: IndexProvider) {
            self.place = place
            self.provider = provider
        }
        override func hostLeft() { provider?.end(self) }
    }

    private let lock = Lock(.leaf)
    private let ended = Condition()
    private let cache: IndexCache
    private var running: [Making] = []
    /// What rules declare, by the version that stored them.
    private let declared = Guarded<[UInt32: IndexDeclarations]>([:])
    private static let mostDeclarations = 16

    /// That of a store.
    static func of(_ store: Store) -> IndexProvider {
        store.attachments.object(IndexProvider.self) { IndexProvider(store.maps.account) }
    }

    private init(_ account: MemoryAccount) {
        cache = IndexCache(account)
        GivingWay.add(self) { [weak self] in self?.removeAll() }
    }
    deinit { GivingWay.remove(self) }

    /// Forgets all trees: they are made again when they are asked for.
    func removeAll() {
        let gone = lock.withLock { cache.removeAll() }
        withExtendedLifetime(gone) {}
    }

    /// Trees in memory and the bytes they take, for tests.
    var kept: (trees: Int, bytes: Int) { lock.withLock { (cache.treeCount, cache.cost) } }

    // MARK: Trees

    /// - Throws: `.damaged` with the id of a value that cannot be read, `.busy` from within a callback of the call that makes it, what the
    ///   control throws, `.outOfMemory`.
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

    /// Keeps a tree that another thread may have made, too; answers the one that is kept.
    private func keep(_ tree: IndexCache.Tree, on basis: IndexCache.Tree?) -> IndexCache.Tree {
        let gone = lock.withLock { cache.store(tree, on: basis) }
        return withExtendedLifetime(gone) { tree }
    }

    /// A tree that others are made from. It takes the place of one with an overlay: each of them would make it again.
    private func withoutOverlay(_ tree: IndexCache.Tree) throws -> IndexCache.Tree {
        guard tree.overlay != nil else { return tree }
        let whole = try tree.withoutOverlay(), gone = lock.withLock { cache.replace(tree, with: whole) }
        return withExtendedLifetime(gone) { whole }
    }

    private enum Claimed {
        case kept(IndexCache.Tree)
        /// To be made here, best from that one.
        case own(Making, IndexCache.Tree?)
        /// Another thread was making it, a moment ago.
        case others
    }

    /// How long another thread is waited for before the control is looked at.
    private static let turn = 0.02

    private func claim(_ place: Place, isComputed: Bool) throws -> Claimed {
        try lock.withLock {
            if let tree = cache.find(place.digest, place.ordinal) { return .kept(tree) }
            let thread = llvs_shim_thread_number(), isMaking = running.contains { $0.thread == thread }
            // A callback that gives keys would be called for one version after the other, each call within the one before.
            if running.contains(where: { $0.thread == thread && $0.place.digest == place.digest && (isComputed || $0.place == place) }) {
                throw StoreError(
                    .busy, "An index was asked for from within a callback of the call that makes it. Ask after that has returned.")
            }
            // From within a callback nobody is waited for, who may be waiting for this thread: it is made twice.
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

    /// What is declared at a version.
    func declarations(at ordinal: UInt32, in store: Store) throws -> IndexDeclarations {
        guard let entry = try store.schemaEntry(at: ordinal) else { return IndexDeclarations() }
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
