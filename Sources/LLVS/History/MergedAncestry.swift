/// All versions that a result brings together, itself included, while one head after another is merged into it: each
/// version is walked over once, however many heads there are.
struct MergedAncestry {
    private var bits: [UInt64] = []

    func contains(_ ordinal: UInt32) -> Bool {
        let word = Int(ordinal >> 6)
        return word < bits.count && bits[word] & (1 << UInt64(ordinal & 63)) != 0
    }

    /// Adds a version and all its ancestors.
    mutating func add(_ ordinal: UInt32, in dag: History) {
        var stack = [ordinal]
        while let next = stack.popLast() {
            guard !contains(next) else { continue }
            let word = Int(next >> 6)
            while bits.count <= word { bits.append(0) }
            bits[word] |= 1 << UInt64(next & 63)
            let row = dag.rows[Int(next)]
            if row.second != History.none { stack.append(row.second) }
            if row.first != History.none { stack.append(row.first) }
        }
    }

    /// The best common ancestors of the result and a version that is not part of it, newest first.
    func bases(of ordinal: UInt32, in dag: History) -> [UInt32] {
        var common: Set<UInt32> = [], seen: Set<UInt32> = [ordinal]
        var stack = [ordinal]
        while let next = stack.popLast() {
            for predecessor in dag.predecessors(next) {
                if contains(predecessor) { common.insert(predecessor) } else if seen.insert(predecessor).inserted { stack.append(predecessor) }
            }
        }
        return dag.withoutAncestors(common).sorted(by: dag.isNewer)
    }
}

extension History {
    /// Those that are no ancestors of others among them. O(versions between the highest and the lowest).
    func withoutAncestors(_ ordinals: Set<UInt32>) -> Set<UInt32> {
        guard ordinals.count > 1, let floor = ordinals.map({ rows[Int($0)].generation }).min() else { return ordinals }
        var left = ordinals, seen: Set<UInt32> = []
        var stack = Array(ordinals)
        while let next = stack.popLast() {
            for predecessor in predecessors(next) where rows[Int(predecessor)].generation >= floor && seen.insert(predecessor).inserted {
                left.remove(predecessor)
                // What is below those that began is walked to from there.
                if !ordinals.contains(predecessor) { stack.append(predecessor) }
            }
        }
        return left
    }

    /// Those that are neither among the given versions nor ancestors of one. O(versions above the lowest of them).
    func strangers(among ordinals: Set<UInt32>, to versions: [UInt32]) -> Set<UInt32> {
        guard let floor = ordinals.map({ rows[Int($0)].generation }).min() else { return [] }
        var left = ordinals.subtracting(versions), seen = Set(versions)
        var stack = versions
        while !left.isEmpty, let next = stack.popLast() {
            for predecessor in predecessors(next) where rows[Int(predecessor)].generation >= floor && seen.insert(predecessor).inserted {
                left.remove(predecessor)
                stack.append(predecessor)
            }
        }
        return left
    }

    /// Those of the versions that have `ancestor` among their ancestors. O(versions since).
    func descendants(of ancestor: UInt32, among ordinals: [UInt32]) -> Set<UInt32> {
        // Predecessors have lower ordinals.
        let first = Int(ancestor)
        var isBehind = [Bool](repeating: false, count: rows.count - first)
        isBehind[0] = true
        for i in (first + 1)..<max(first + 1, rows.count) {
            for predecessor in [rows[i].first, rows[i].second] where predecessor != History.none && predecessor >= ancestor && isBehind[Int(predecessor) - first] {
                isBehind[i - first] = true
            }
        }
        return Set(ordinals.filter { $0 > ancestor && isBehind[Int($0) - first] })
    }
}
