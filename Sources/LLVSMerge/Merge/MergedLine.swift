/// The chain of first predecessors of the version into which others are merged, and how old the bytes are that its versions preserve.
///
/// It is retained while heads are folded: each merge of a fold has the previous one as predecessor, and the versions below were walked
/// already. So each version of the line is read once, however many heads there are.
final class MergedLine {
    /// A version of the line. Also the oldest version, in canonical order, whose bytes the versions above it preserve, down from the
    /// first link; `History.none` if they preserve none.
    private struct Link {
        var ordinal: UInt32
        var generation: UInt32
        var oldestAbove = History.none
    }
    /// The line from its first version back, as far as it was needed.
    private var links: [Link] = []
    /// The version on top, and the oldest version that those above the first link preserve, the top included.
    private var top = History.none
    private var oldestOnTop = History.none
    /// A version that is known to hold no rules, and whether the last prepared merge is one.
    var withoutRules = History.none, hasFoundNoRules = false
    /// How recent the values are that its merges stored.
    let recencies = Recencies()
    /// The heads that were merged into it.
    let heads = FoldedHeads()

    /// Returns whether everything that versions of the line from `base` up to `first` preserve was stored after `base`; false if `base`
    /// is not on the line.
    func preservesNothingOlder(than base: UInt32, behindItUpTo first: UInt32, in store: Store, _ control: PacedControl = .none) throws
        -> Bool
    {
        try go(to: first, in: store, control)
        let generation = store.lock.withRead { store.dag.rows[Int(base)].generation }
        try extend(down: generation, in: store, control)
        var low = 0, high = links.count
        while low < high {
            let middle = (low + high) / 2
            if links[middle].generation > generation { low = middle + 1 } else { high = middle }
        }
        // A merge on top is not the base of a merge in a fold.
        guard low < links.count, links[low].ordinal == base else { return false }
        let oldest = store.older(oldestOnTop, links[low].oldestAbove)
        return oldest == History.none || store.lock.withRead { store.dag.isNewer(oldest, base) }
    }

    /// Adds the versions between the top and `first`, which becomes the top. If they do not lead to the top, restarts at `first`.
    private func go(to first: UInt32, in store: Store, _ control: PacedControl) throws {
        if first == top { return }
        let more = store.lock.withRead { () -> [UInt32]? in
            guard top != History.none else { return nil }
            var more: [UInt32] = [], at = first
            while at != top {
                Work.versions.count()
                more.append(at)
                at = store.dag.rows[Int(at)].first
                if at == History.none || store.dag.rows[Int(at)].generation < store.dag.rows[Int(top)].generation { return nil }
            }
            return more
        }
        if let more {
            // If this is interrupted, the next call restarts.
            top = History.none
            for ordinal in more {
                try control.step(0)
                oldestOnTop = store.older(oldestOnTop, try store.oldestPreserved(by: ordinal))
            }
        } else {
            links = [Link(ordinal: first, generation: store.lock.withRead { store.dag.rows[Int(first)].generation })]
            oldestOnTop = History.none
        }
        top = first
    }

    private func extend(down generation: UInt32, in store: Store, _ control: PacedControl) throws {
        if links.count == 1, let first = links.first, first.generation > generation {
            links.reserveCapacity(1 + Int(min(first.generation - generation, 4_096)))
        }
        while let last = links.last, last.generation > generation {
            try control.step(0)
            Work.versions.count()
            let next = store.lock.withRead { () -> Link? in
                let first = store.dag.rows[Int(last.ordinal)].first
                return first == History.none ? nil : Link(ordinal: first, generation: store.dag.rows[Int(first)].generation)
            }
            guard var next else { return }
            next.oldestAbove = store.older(last.oldestAbove, try store.oldestPreserved(by: last.ordinal))
            links.append(next)
        }
    }
}

extension Store {
    /// Returns the older of two versions in canonical order, either of which may be none.
    fileprivate func older(_ a: UInt32, _ b: UInt32) -> UInt32 {
        if a == History.none || b == History.none { return min(a, b) }
        return lock.withRead { dag.isNewer(a, b) } ? b : a
    }

    /// Returns the oldest version whose bytes a version preserves; `History.none` if it preserves none. Reads its header, which names
    /// them, and not its changes.
    fileprivate func oldestPreserved(by ordinal: UInt32) throws -> UInt32 {
        let (preserves, place) = lock.withRead { (dag.rows[Int(ordinal)].traits.contains(.preserves), dag.rows[Int(ordinal)].place) }
        guard preserves else { return History.none }
        var named: [UInt32] = []
        if !maps.changeLists.forEach(ordinal, { if $0.kind == .preserve, let entry = $0.entry { named.append(entry.version) } }) {
            let header = try records.header(place)
            named = try header.dependencies.map { id in
                guard let version = lock.withRead({ dag.ordinalIncludingStaged(of: id) }) else {
                    throw records.damaged(place, "names a version that is not in the store", version: header.id)
                }
                return version
            }
        }
        return lock.withRead { named.min { dag.isNewer($1, $0) } } ?? History.none
    }
}
