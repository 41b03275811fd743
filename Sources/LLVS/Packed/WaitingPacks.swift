/// Packs of one exchange with versions that wait for others, by what these are. A pack is looked at again when all that it waits for has
/// come, or some of it and nothing else goes on; and not whenever something has. So packs that unlock one another cost what they are, in
/// whatever order they are read.
struct WaitingPacks {
    private struct Waiting {
        let size: Int
        /// What is to come before it is looked at again.
        var left: Set<VersionID>
    }
    private var packs: [PackName: Waiting] = [:]
    private var followers: [VersionID: [PackName]] = [:]
    /// Those that have all, and those that have some of it.
    private var ready: Set<PackName> = [], partial: Set<PackName> = []
    /// How often each was looked at.
    private var looks: [PackName: Int] = [:]

    /// Whether a pack waits.
    func contains(_ name: PackName) -> Bool { packs[name] != nil }

    /// Each may be looked at as often as at first.
    mutating func lookAnew() { looks = [:] }

    /// A pack was looked at, and waits no more unless it is said anew.
    mutating func looked(at name: PackName) {
        looks[name, default: 0] += 1
        packs[name] = nil
        ready.remove(name)
        partial.remove(name)
    }

    /// A pack waits.
    /// - Parameters:
    ///   - size: its bytes, as a listing has them.
    ///   - ids: what it waits for, and is not here.
    ///   - others: those of them that are not in the pack itself; without any the pack is ready when one of its own has come.
    mutating func wait(_ name: PackName, size: Int, for ids: Set<VersionID>, others: Set<VersionID>) {
        var left = others.isEmpty ? ids : others
        // So many are rarely met, and each is some memory.
        if left.count > PackedSettings.followed { left = Set(left.prefix(PackedSettings.followed)) }
        packs[name] = Waiting(size: size, left: left)
        for id in others.isEmpty ? left : left.union(ids.prefix(PackedSettings.followed)) { followers[id, default: []].append(name) }
    }

    /// What it waited for is here already.
    mutating func isReady(_ name: PackName, size: Int) {
        packs[name] = Waiting(size: size, left: [])
        ready.insert(name)
    }

    /// Versions are here now.
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

    /// The packs to look at again, in the order of their numbers, with their sizes: those that have all they wait for, or else those that
    /// have some of it. None is looked at more than `PackedSettings.looks` times.
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
