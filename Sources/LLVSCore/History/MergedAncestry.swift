/// The union of the ancestries of versions, including themselves, extended one version at a time. Each version is visited once, however
/// many are added.
package struct MergedAncestry {
    private var versions = OrdinalSet()
    package init() {}

    package func contains(_ ordinal: UInt32) -> Bool { versions.contains(ordinal) }

    /// Moves the set out, so that the caller can change it without a copy.
    package mutating func taken() -> MergedAncestry {
        defer { versions = OrdinalSet() }
        return self
    }

    /// Adds a version and all its ancestors.
    mutating func add(_ ordinal: UInt32, in dag: History) {
        var adding = Adding(ordinal, to: taken())
        self = adding.finish(in: dag)
    }

    /// Adds a version and all its ancestors.
    package struct Adding: HistoryPass {
        private var merged: MergedAncestry
        private var stack: [UInt32]
        package init(_ ordinal: UInt32, to merged: consuming MergedAncestry) { self.merged = merged; stack = [ordinal] }

        package mutating func go(_ steps: Int, in dag: History) -> MergedAncestry? {
            var left = steps
            while let next = stack.popLast() {
                guard !merged.contains(next) else { continue }
                if left <= 0 { stack.append(next); return nil }
                left -= 1
                Work.versions.count()
                merged.versions.insert(next)
                let row = dag.rows[Int(next)]
                if row.second != History.none { stack.append(row.second) }
                if row.first != History.none { stack.append(row.first) }
            }
            let outcome = merged
            merged.versions = OrdinalSet()
            return outcome
        }
    }
}

/// The versions that some versions have and another one lacks: the former and their ancestors, without the latter and its ancestors, each
/// after its predecessors. O(the ancestries of all).
package struct Brought: HistoryPass {
    private var held = OrdinalSet(), stack: [UInt32]
    /// The starts of the second walk, after that of `other`; nil once it runs.
    private var heads: [UInt32]?
    private var found: [UInt32] = []

    package init(by heads: [UInt32], beside other: UInt32) {
        self.heads = heads
        stack = [other]
    }

    package mutating func go(_ steps: Int, in dag: History) -> [UInt32]? {
        var left = steps
        while true {
            while let at = stack.popLast() {
                guard !held.contains(at) else { continue }
                if left <= 0 { stack.append(at); return nil }
                left -= 1
                Work.versions.count()
                held.insert(at)
                if heads == nil { found.append(at) }
                let row = dag.rows[Int(at)]
                if row.second != History.none { stack.append(row.second) }
                if row.first != History.none { stack.append(row.first) }
            }
            // Predecessors have lower ordinals.
            guard let next = heads else { return found.sorted() }
            stack = next
            heads = nil
        }
    }
}

/// Finds which of up to 64 versions are ancestors of others, up to another one. O(versions since the first of them).
package struct LaterVersions: HistoryPass {
    /// The result: for each version from the first of them on, a bit for each of the versions asked about.
    package struct Found {
        fileprivate let first: UInt32
        fileprivate let bits: [UInt64]

        /// Returns which of the versions asked about are ancestors of this one: a bit for each, in their order.
        package func ancestors(of ordinal: UInt32) -> UInt64 {
            guard ordinal >= first, Int(ordinal - first) < bits.count else { return 0 }
            return bits[Int(ordinal - first)]
        }

        package func contains(_ ordinal: UInt32) -> Bool { ancestors(of: ordinal) != 0 }
    }

    private let first: UInt32, last: UInt32
    /// The bits of the versions asked about.
    private var own: [UInt32: UInt64] = [:]
    private var bits: [UInt64] = []

    package init(of ancestors: [UInt32], upTo last: UInt32) {
        first = ancestors.min() ?? last
        self.last = last
        for (i, ancestor) in ancestors.prefix(64).enumerated() { own[ancestor, default: 0] |= 1 << UInt64(i) }
    }

    package mutating func go(_ steps: Int, in dag: History) -> Found? {
        // Predecessors have lower ordinals. Versions added since are not asked about.
        let end = min(max(Int(first), Int(last)) + 1, dag.rows.count)
        if bits.isEmpty { bits.reserveCapacity(max(0, end - Int(first))) }
        var left = steps
        while Int(first) + bits.count < end {
            if left <= 0 { return nil }
            left -= 1
            Work.versions.count()
            let row = dag.rows[Int(first) + bits.count]
            var found: UInt64 = 0
            for predecessor in [row.first, row.second] where predecessor != History.none && predecessor >= first {
                let at = Int(predecessor - first)
                if at < bits.count { found |= bits[at] | own[predecessor, default: 0] }
            }
            bits.append(found)
        }
        return Found(first: first, bits: bits)
    }
}

/// Finds which of some versions have `ancestor` among their ancestors. O(versions since).
package struct Descendants: HistoryPass {
    private let ordinals: [UInt32]
    private var later: LaterVersions

    package init(of ancestor: UInt32, among ordinals: [UInt32]) {
        self.ordinals = ordinals
        later = LaterVersions(of: [ancestor], upTo: ordinals.max() ?? 0)
    }

    package mutating func go(_ steps: Int, in dag: History) -> Set<UInt32>? {
        later.go(steps, in: dag).map { found in Set(ordinals.filter(found.contains)) }
    }
}

/// Finds which of some versions are ancestors of others. O(versions since the first of them).
package struct Ancestors: HistoryPass {
    private let ordinals: Set<UInt32>
    private let floor: UInt32
    private var stack: [UInt32], seen: Set<UInt32> = [], found: Set<UInt32> = []

    package init(of versions: [UInt32], among ordinals: [UInt32]) {
        self.ordinals = Set(ordinals)
        floor = ordinals.min() ?? .max
        stack = versions
    }

    package mutating func go(_ steps: Int, in dag: History) -> Set<UInt32>? {
        var left = steps
        while let at = stack.popLast() {
            if left <= 0 { stack.append(at); return nil }
            left -= 1
            Work.versions.count()
            // Predecessors have lower ordinals.
            for predecessor in [dag.rows[Int(at)].first, dag.rows[Int(at)].second] where predecessor != History.none && predecessor >= floor
            {
                guard seen.insert(predecessor).inserted else { continue }
                if ordinals.contains(predecessor) { found.insert(predecessor) }
                stack.append(predecessor)
            }
        }
        return found
    }
}

/// Finds for many pairs of versions whether one is an ancestor of the other. O(versions since the first of them) for all pairs that first
/// predecessors decide. For the other pairs, the same again for every 64 ancestors.
package struct NamedAncestors: HistoryPass {
    package struct Pair {
        package let version: UInt32, name: UInt32
        package init(version: UInt32, name: UInt32) { self.version = version; self.name = name }
    }
    private let pairs: [Pair]
    private let first: UInt32, last: UInt32
    /// For each version since the first: the number of first predecessors before it, the nearest of these and a farther one, and the number
    /// of merges up to the version.
    private var depths: [UInt32] = [], firsts: [UInt32] = [], jumps: [UInt32] = [], merges: [UInt32] = []
    private var looked = 0
    private var isAncestor: [Bool]
    /// The pairs that only merges may decide, by name. For each version, which of the 64 wanted names it reaches.
    private var left: [Int] = []
    private var reached: [UInt64] = [], bits: [UInt32: UInt64] = [:], start = 0, end = 0, from: UInt32 = 0, to: UInt32 = 0

    package init(_ pairs: [Pair]) {
        self.pairs = pairs
        first = pairs.map(\.name).min() ?? .max
        last = pairs.map(\.version).max() ?? 0
        isAncestor = [Bool](repeating: false, count: pairs.count)
    }

    package mutating func go(_ steps: Int, in dag: History) -> [Pair]? {
        var steps = steps
        while first <= last, depths.count <= Int(last - first) {
            if steps <= 0 { return nil }
            steps -= 1
            Work.versions.count()
            add(dag.rows[Int(first) + depths.count])
        }
        while looked < pairs.count {
            if steps <= 0 { return nil }
            steps -= 1
            let pair = pairs[looked]
            if leads(pair.version, to: pair.name) {
                isAncestor[looked] = true
            } else if pair.name < pair.version, merges[Int(pair.version - first)] > merges[Int(pair.name - first)] {
                left.append(looked)
            }
            looked += 1
            if looked == pairs.count { left.sort { pairs[$0].name < pairs[$1].name } }
        }
        while start < left.count {
            if bits.isEmpty { begin() }
            while from <= to, reached.count <= Int(to - from) {
                if steps <= 0 { return nil }
                steps -= 1
                Work.versions.count()
                let at = from + UInt32(truncatingIfNeeded: reached.count), row = dag.rows[Int(at)]
                reached.append((bits[at] ?? 0) | mask(row.first) | mask(row.second))
            }
            for one in left[start..<end] { isAncestor[one] = mask(pairs[one].version) & (bits[pairs[one].name] ?? 0) != 0 }
            start = end
            bits = [:]
        }
        return pairs.indices.filter { isAncestor[$0] }.map { pairs[$0] }
    }

    /// Begins with the next 64 names.
    private mutating func begin() {
        end = start
        (from, to) = (pairs[left[start]].name, 0)
        while end < left.count {
            let pair = pairs[left[end]]
            if bits[pair.name] == nil {
                if bits.count == 64 { break }
                bits[pair.name] = 1 << UInt64(bits.count)
            }
            to = max(to, pair.version)
            end += 1
        }
        reached = []
    }
    private func mask(_ version: UInt32) -> UInt64 {
        version == History.none || version < from || Int(version - from) >= reached.count ? 0 : reached[Int(version - from)]
    }

    /// Adds the next version. Its jump leads over a number of versions that doubles, so that each walk takes O(log) steps.
    private mutating func add(_ row: History.Row) {
        let own = UInt32(truncatingIfNeeded: depths.count)
        merges.append((merges.last ?? 0) &+ (row.second == History.none ? 0 : 1))
        guard row.first != History.none, row.first >= first, row.first - first < own else {
            depths.append(0)
            firsts.append(own)
            jumps.append(own)
            return
        }
        let before = row.first - first, jump = jumps[Int(before)], next = jumps[Int(jump)]
        depths.append(depths[Int(before)] &+ 1)
        jumps.append(depths[Int(before)] &- depths[Int(jump)] == depths[Int(jump)] &- depths[Int(next)] ? next : before)
        firsts.append(before)
    }
    /// Returns whether first predecessors lead from a version to another one.
    private func leads(_ version: UInt32, to name: UInt32) -> Bool {
        guard name < version else { return false }
        var at = version - first
        let goal = name - first, depth = depths[Int(goal)]
        while depths[Int(at)] > depth {
            let jump = jumps[Int(at)]
            at = depths[Int(jump)] >= depth ? jump : firsts[Int(at)]
        }
        return at == goal
    }
}

/// Finds whether a merge is among the versions from one ordinal to before another.
package struct MergeBetween: HistoryPass {
    private var next: Int
    private let end: Int

    package init(_ start: UInt32, _ end: UInt32) { (next, self.end) = (Int(start), Int(end)) }

    package mutating func go(_ steps: Int, in dag: History) -> Bool? {
        let stop = min(end, dag.rows.count), (pause, isPast) = next.addingReportingOverflow(steps)
        for at in next..<max(next, isPast ? stop : min(stop, pause)) {
            Work.versions.count()
            if dag.rows[at].second != History.none { return true }
            next = at + 1
        }
        return next >= stop ? false : nil
    }
}

extension History {
    /// Returns those of the versions that have `ancestor` among their ancestors. O(versions since).
    func descendants(of ancestor: UInt32, among ordinals: [UInt32]) -> Set<UInt32> {
        var pass = Descendants(of: ancestor, among: ordinals)
        return pass.finish(in: self)
    }
}
