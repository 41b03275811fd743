/// The order of the elements in the result.
extension ListAlignment {
    /// Up to this many pairs of elements, two runs of a gap are compared directly. For more, the place of each key is noted first.
    private static let fewPairs = 1 << 12

    /// A move to report. A node is `MergeFrame.none` if that side removed the element.
    struct Move {
        var key: Int
        var nodes: (base: UInt32, newer: UInt32, older: UInt32)
    }

    /// The keys of moves that are reported.
    private struct Moved {
        let count: Int, most: Int
        private var members = TokenBits(count: 0)
        /// The keys; at most one more than `most`.
        private(set) var keys: [Int] = []

        init(below count: Int, most: Int) { (self.count, self.most) = (count, most) }

        var areTooMany: Bool { keys.count > most }

        /// Adds the key of a surviving element of the base.
        mutating func add(_ key: UInt32) {
            if keys.isEmpty { members = TokenBits(count: count) }
            guard !areTooMany, !members[Int(key)] else { return }
            members[Int(key)] = true
            keys.append(Int(key))
        }
    }

    /// Restores the keys of each side from their places in the frame.
    private func takeKeys(from frame: MergeFrame) {
        func sideKeys(_ places: inout [UInt32], _ count: Int) -> [UInt32] {
            var sideKeys = [UInt32](repeating: 0, count: count)
            for (key, place) in places.enumerated() where place != MergeFrame.none {
                sideKeys[Int(place)] = UInt32(truncatingIfNeeded: key)
            }
            places = []
            return sideKeys
        }
        newerKeys = sideKeys(&frame.newer, newer.count)
        olderKeys = sideKeys(&frame.older, older.count)
    }

    /// The nodes of a key that both sides have, and the base.
    private func nodes(of key: Int) -> (base: UInt32, newer: UInt32, older: UInt32) {
        func node(_ items: ElementNodes, _ keys: [UInt32]) -> UInt32 { keys.firstIndex { $0 == key }.map { items[$0] } ?? MergeFrame.none }
        return (base[key], node(newer, newerKeys), node(older, olderKeys))
    }

    /// Returns the elements of the result, in order, and the moves to report; nil instead of more than `mostMoves`.
    func emit(_ frame: MergeFrame, mostMoves: Int, tellsPlaces: Bool) throws -> (elements: ValueRefs, moved: [Move]?) {
        takeKeys(from: frame)
        var (order, moved) = try self.order(frame, mostMoves: mostMoves)
        let moves = moved.areTooMany ? nil : moved.keys.sorted().map { Move(key: $0, nodes: nodes(of: $0)) }
        (newerKeys, olderKeys, newer, older) = ([], [], ElementNodes(), ElementNodes())
        if tellsPlaces {
            outcomes = [UInt32](repeating: MergeFrame.none, count: keyCount)
            var at: UInt32 = 0
            for key in order.lazy.map(Int.init) {
                outcomes[key] = at
                at += key < sizes.count ? UInt32(truncatingIfNeeded: sizes[key]) : 1
            }
        }
        if sizes.isEmpty { return (ValueRefs(of: frame.results, taking: &order), moves) }
        var elements = ValueRefs()
        elements.reserve(sizes.reduce(frame.next) { $0 + Int($1) - 1 })
        for key in order.lazy.map(Int.init) {
            elements.append(frame.result(key))
            if key < sizes.count, sizes[key] > 1 { appendRun(from: frame.result(key), Int(sizes[key]), to: &elements) }
        }
        return (elements, moves)
    }

    /// Returns the keys of the result, in order, and the keys of moves to report: of elements that both sides moved to different places,
    /// and of elements that one side moved behind an element that the other side moved away.
    private func order(_ frame: MergeFrame, mostMoves: Int) throws -> (keys: [UInt32], moved: Moved) {
        let inNewer = inRuns(newerKeys, newerAnchors), inOlder = inRuns(olderKeys, olderAnchors), count = frame.next
        let results = frame.results, newerKeys = self.newerKeys, olderKeys = self.olderKeys
        let newerAnchors = self.newerAnchors, olderAnchors = self.olderAnchors
        var order: [UInt32] = [], moved = Moved(below: base.count, most: mostMoves), i = 0, j = 0
        var left: [UInt32] = [], right: [UInt32] = []
        // The place of each key in a run.
        var place: [Int32] = []
        order.reserveCapacity(count)
        for gap in 0...base.count {
            // Without an anchor just before it, a gap has no run.
            func begins(_ at: inout Int, _ sideKeys: [UInt32], _ anchors: TokenBits) -> Bool {
                if gap == 0 { return true }
                guard at < sideKeys.count, sideKeys[at] == gap - 1, anchors[at] else { return false }
                at += 1
                return true
            }
            func run(_ at: inout Int, _ sideKeys: [UInt32], _ anchors: TokenBits, _ out: inout [UInt32]) {
                out.removeAll(keepingCapacity: true)
                guard begins(&at, sideKeys, anchors) else { return }
                while at < sideKeys.count, !anchors[at] {
                    if !results.isAbsent(Int(sideKeys[at])) { out.append(sideKeys[at]) }
                    at += 1
                }
            }
            run(&i, newerKeys, newerAnchors, &left)
            run(&j, olderKeys, olderAnchors, &right)
            if !left.isEmpty || !right.isEmpty {
                let isLong = left.count * right.count > Self.fewPairs
                if isLong, place.isEmpty { place = [Int32](repeating: -1, count: count) }
                // If the older side alone replaced the element behind the gap, or moved it away, the newer side's run comes first, before
                // the element that is there now.
                let hasNewer = i < newerKeys.count && newerKeys[i] == gap, hasOlder = j < olderKeys.count && olderKeys[j] == gap
                try weave(left, right, inNewer, inOlder, isNewerFirst: hasNewer && !hasOlder, &place, &order, &moved)
                if gap > 0, inOlder[gap - 1] { for key in left where key < base.count { moved.add(key) } }
                if gap > 0, inNewer[gap - 1] { for key in right where key < base.count { moved.add(key) } }
            }
            if gap < base.count, !inNewer[gap], !inOlder[gap], !results.isAbsent(gap) { order.append(UInt32(truncatingIfNeeded: gap)) }
        }
        try values.work.done(2 * count)
        return (order, moved)
    }

    private func appendRun(from first: ValueRef, _ count: Int, to elements: inout ValueRefs) {
        let tree = values.tree(first)
        var node = first.node
        for _ in 1..<count {
            node = tree.next(node)
            elements.append(ValueRef(tree: first.tree, node: node))
        }
    }

    /// Whether a side has a key in a run, by key. A key of the base that is in a run was moved.
    private func inRuns(_ sideKeys: [UInt32], _ anchors: TokenBits) -> TokenBits {
        var keys = TokenBits(count: keyCount)
        for (i, key) in sideKeys.enumerated() where !anchors[i] { keys[Int(key)] = true }
        return keys
    }

    /// Appends the runs of one gap. Shared elements synchronise both runs. In each piece between them the older side's elements come
    /// first, unless `isNewerFirst`.
    private func weave(
        _ left: [UInt32], _ right: [UInt32], _ inNewer: TokenBits, _ inOlder: TokenBits, isNewerFirst: Bool, _ place: inout [Int32],
        _ order: inout [UInt32], _ moved: inout Moved
    ) throws {
        let isLong = left.count * right.count > Self.fewPairs
        if isLong {
            for (j, key) in right.enumerated() where inNewer[Int(key)] { place[Int(key)] = Int32(truncatingIfNeeded: j) }
        }
        let places =
            right.isEmpty
            ? []
            : left.map { key in
                isLong ? place[Int(key)] : Int32(truncatingIfNeeded: inOlder[Int(key)] ? right.firstIndex(of: key) ?? -1 : -1)
            }
        let shared = right.isEmpty ? TokenBits(count: left.count) : try IncreasingRun.members(places, values.work)
        var i = 0, j = 0
        for end in 0...left.count where end == left.count || shared[end] {
            let to = end == left.count ? right.count : Int(places[end])
            if isNewerFirst { order.append(contentsOf: left[i..<end]) }
            while j < to {
                // An element of a run of the newer side is placed by that run.
                if !inNewer[Int(right[j])] { order.append(right[j]) }
                j += 1
            }
            if !isNewerFirst { order.append(contentsOf: left[i..<end]) }
            while i < end {
                if left[i] < base.count, inOlder[Int(left[i])] { moved.add(left[i]) }
                i += 1
            }
            guard end < left.count else { break }
            order.append(left[end])
            i += 1
            j += 1
        }
        if isLong { for key in right where inNewer[Int(key)] { place[Int(key)] = -1 } }
    }
}
