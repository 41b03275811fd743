/// What a persisted map says of single ids, before anybody has looked over all of it: for processes that open a store, read a
/// few values, and end. Each block is checked when it is first needed.
///
/// Looking so costs some microseconds an id, and what was looked at stays in memory; so after some ids it is cheaper to check all of the
/// map once and to read it without checks; whoever asks is told so. Safe from all threads.
final class LazyMapReader: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    enum Found {
        case entry(MapEntry)
        case absent
        /// The bytes are not what was written, or nothing that can be read.
        case void
    }

    let file: FlatMapFile
    /// How a later version differs.
    let patch: MapPatch?
    private let versionLimit: Int
    private let lock = Lock(.persistedMap)
    private var left: Int
    /// Bytes of the map that may be in memory.
    private let most: Int

    init(_ file: FlatMapFile, _ patch: MapPatch?, versionLimit: Int, most: Int = .max) {
        self.file = file
        self.patch = patch
        self.versionLimit = versionLimit
        left = file.count / 256
        self.most = most
    }

    /// Bytes of memory that the map may come to take here.
    var mostMemory: Int { min(most, file.memory.memory) }

    /// What prevails under an id; nil when the whole map had better be asked. `patched`: at the version of the patch.
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

    /// As `FlatMap.find`, believing nothing.
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
            // Children come before their parents, so every walk ends.
            guard node.child(i) < offset else { return .void }
            offset = node.child(i)
        }
    }
}
