/// Looks up single ids in a persisted map before all of it is checked: for processes that open a store, read a few values, and end. Each
/// block is checked on first use.
///
/// A lookup takes some microseconds, and the blocks read stay in memory. After some lookups it is cheaper to check the whole map once and
/// to read it without checks; `find` then returns nil. Safe from all threads.
final class LazyMapReader: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    enum Found {
        case entry(MapEntry)
        case absent
        /// The bytes are damaged, or no valid map.
        case void
    }

    let file: FlatMapFile
    /// The differences of a later version.
    let patch: MapPatch?
    private let versionLimit: Int
    private let lock = Lock(.persistedMap)
    private var left: Int
    /// The most bytes of the map that may be in memory.
    private let most: Int

    init(_ file: FlatMapFile, _ patch: MapPatch?, versionLimit: Int, most: Int = .max) {
        self.file = file
        self.patch = patch
        self.versionLimit = versionLimit
        left = file.count / 256
        self.most = most
    }

    /// The most memory that the map may take by such lookups.
    var mostMemory: Int { min(most, file.memory.memory) }

    /// Returns the entry under an id; nil if the whole map should be used instead.
    /// - Parameter patched: whether to apply the patch.
    func find(_ key: UnsafeRawBufferPointer, patched: Bool) -> Found? {
        let patch = patched ? patch : nil
        if let change = patch?.change(of: key) { return change.entry.map { .entry($0) } ?? .absent }
        return lock.withLock {
            guard left > 0, file.checkedBytes < most else { return nil }
            left -= 1
            switch number(of: key) {
            case .absent: return .absent
            case .void: return .void
            case .entry(let number):
                if let entry = patch?.update(of: number) { return .entry(entry) }
                guard file.isGood(slot: number), file.slots[number].isPossible(versionLimit: versionLimit) else { return .void }
                return .entry(file.slots[number])
            }
        }
    }

    private enum Number { case entry(Int), absent, void }

    /// Finds a key as `FlatMap.find` does, with all checks.
    private func number(of key: UnsafeRawBufferPointer) -> Number {
        guard let base = file.nodes.baseAddress else { return .void }
        var offset = file.root
        while true {
            MapWork.read()
            let at = Int(offset) * 4
            guard file.extent(of: at, where: file.isGood) != nil else { return .void }
            let node = FlatMap.Node(at: base + at)
            if node.isLeaf { return node.index(of: key).map { .entry(node.first + $0) } ?? .absent }
            guard key.count >= node.prefixCount, let i = node.childIndex(MapNode.symbol(of: key, at: node.prefixCount)) else {
                return .absent
            }
            // Children precede their parents, so every walk ends.
            guard node.child(i) < offset else { return .void }
            offset = node.child(i)
        }
    }
}
