/// Packs of one exchange with versions that wait for others, by these. A pack is read again when all versions that it waits for have
/// arrived; if there is no such pack, when some have. So packs that unlock one another cost in proportion to their size, in whatever order
/// they are read.
struct WaitingPacks {
    private struct Waiting {
        let size: Int
        /// The versions that must arrive before it is read again.
        var left: Set<VersionID>
    }
    private var packs: [PackName: Waiting] = [:]
    private var followers: [VersionID: [PackName]] = [:]
    /// Packs for which all missing versions have arrived, and packs for which some have.
    private var ready: Set<PackName> = [], partial: Set<PackName> = []
    /// How often each was read.
    private var looks: [PackName: Int] = [:]

    /// Returns whether a pack waits.
    func contains(_ name: PackName) -> Bool { packs[name] != nil }

    /// Resets the counts of reads.
    mutating func lookAnew() { looks = [:] }

    /// Records that a pack was read; it stops waiting until `wait` is called again.
    mutating func looked(at name: PackName) {
        looks[name, default: 0] += 1
        packs[name] = nil
        ready.remove(name)
        partial.remove(name)
    }

    /// Adds a waiting pack.
    /// - Parameters:
    ///   - size: its listed size.
    ///   - ids: the missing versions that it waits for.
    ///   - others: those of them that are not in the pack itself; if there are none, the pack is ready when one of its own arrives.
    mutating func wait(_ name: PackName, size: Int, for ids: Set<VersionID>, others: Set<VersionID>) {
        var left = others.isEmpty ? ids : others
        // The ids are bounded, since each takes memory. Packs with more of them are rare.
        if left.count > PackedSettings.followed { left = Set(left.prefix(PackedSettings.followed)) }
        packs[name] = Waiting(size: size, left: left)
        for id in others.isEmpty ? left : left.union(ids.prefix(PackedSettings.followed)) { followers[id, default: []].append(name) }
    }

    /// Adds a pack whose versions have arrived already.
    mutating func isReady(_ name: PackName, size: Int) {
        packs[name] = Waiting(size: size, left: [])
        ready.insert(name)
    }

    /// Records that versions have arrived.
    mutating func came(_ ids: some Sequence<VersionID>) {
        guard !followers.isEmpty else { return }
        for id in ids {
            for name in followers.removeValue(forKey: id) ?? [] {
                guard packs[name] != nil else { continue }
                packs[name]?.left.remove(id)
                if packs[name]?.left.isEmpty ?? false { ready.insert(name) } else { partial.insert(name) }
            }
        }
    }

    /// Returns the packs to read again, with their sizes, in the order of their numbers: those for which all versions have arrived,
    /// otherwise those for which some have. None is read more than `PackedSettings.looks` times.
    mutating func next() -> [(name: PackName, size: Int)] {
        for isWhole in [true, false] {
            let names = isWhole ? ready : partial
            if isWhole { ready = [] } else { partial = [] }
            let found = names.filter { packs[$0] != nil && looks[$0] ?? 0 < PackedSettings.looks }
            guard found.isEmpty else {
                return found.sorted { ($0.kind.rawValue, $0.last, $0.id) < ($1.kind.rawValue, $1.last, $1.id) }
                    .compactMap { name in packs[name].map { (name, $0.size) } }
            }
        }
        return []
    }
}
