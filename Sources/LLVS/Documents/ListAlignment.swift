/// A list that is merged by the keys of its elements: which elements are the same on the three sides, and in which order they come out.
final class ListAlignment {
    private let values: DocumentValues
    private let declared: [[[UInt8]]]?
    /// The items of each side: elements, and runs of elements that are the same on all sides, by the first of them.
    private var base: [UInt32] = []
    private var newer: [UInt32] = []
    private var older: [UInt32] = []
    /// The key of each item: numbers, unique within a side. Those of the base are its places.
    private var newerKeys: [UInt32] = []
    private var olderKeys: [UInt32] = []
    private var keyCount = 0
    /// How many elements each item of the base is; empty without runs: then all are one.
    private var sizes: [Int32] = []
    /// The class of each key: which elements would have the same key but for their occurrence.
    private var classes: [UInt32] = []
    /// How many elements of its class a key has before it, made when a record asks for one.
    private var occurrences: [UInt32] = []
    private var keys: ElementKeys
    private var newerAnchors: [Bool] = []
    private var olderAnchors: [Bool] = []
    /// The places in the base of its items, made when a record asks for one.
    private var places: [Int] = []

    init(_ values: DocumentValues, _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, key: [[[UInt8]]]?) throws {
        self.values = values
        declared = key
        keys = ElementKeys(values, declared: key, usesID: true, atMost: 0)
        func side(_ ref: ValueRef) -> ListRuns.Elements {
            ListRuns.Elements(tree: values.tree(ref), nodes: values.tree(ref).children(of: ref.node))
        }
        let none = ListRuns.Elements(tree: values.tree(x), nodes: [])
        let sides = [values.isKind(o, .array) ? side(o) : none, side(x), side(y)]
        let trees = [o, x, y].map(\.tree), counts = sides.map(\.nodes.count)
        var runs = try ListRuns.find(sides[0], sides[1], sides[2], values.work)
        let inRuns = runs.reduce(0) { $0 + $1.count }
        // Each element of a run is looked for among the others: that is to be less than to give it a key on all sides.
        if 2 * inRuns < counts[0] { runs = [] }
        let largest = (counts.max() ?? 0) - (runs.isEmpty ? 0 : inRuns)
        try Memory.expect(48 * (counts.reduce(0, +) - (runs.isEmpty ? 0 : 3 * inRuns)), "Merging a list")
        if try runs.isEmpty || !plan(sides, trees, runs, atMost: largest) { _ = try plan(sides, trees, [], atMost: counts.max() ?? 0) }
        keys.close()
    }

    /// False when a run is none: it would be moved.
    private func plan(_ sides: [ListRuns.Elements], _ trees: [UInt32], _ runs: [ListRun], atMost count: Int) throws -> Bool {
        keys = ElementKeys(values, declared: declared, usesID: true, atMost: count)
        (keyCount, classes) = (0, [])
        try number(sides, trees, runs.isEmpty ? [] : split(runs, sides, trees))
        try findAnchors()
        guard areAnchors else { return false }
        if declared == nil, try pair() { try findAnchors() }
        return areAnchors
    }

    /// Whether each run is where it was.
    private var areAnchors: Bool {
        if sizes.isEmpty { return true }
        let x = anchored(newerKeys, newerAnchors), y = anchored(olderKeys, olderAnchors)
        // Runs are of no class; what is left of one may be a single element.
        return sizes.indices.allSatisfy { classes[$0] != .max || (x[$0] >= 0 && y[$0] >= 0) }
    }

    // MARK: Keys

    /// The runs without those elements that are of a class with one that is in no run: which of a class an element is, is told by
    /// counting all of them.
    private func split(_ runs: [ListRun], _ sides: [ListRuns.Elements], _ trees: [UInt32]) throws -> [ListRun] {
        var keys = ElementKeys(values, declared: nil, usesID: false, atMost: 0)
        swap(&keys, &self.keys)
        defer { self.keys = keys }
        let starts = [runs.map(\.base), runs.map(\.newer), runs.map(\.older)]
        for (s, side) in sides.enumerated() {
            var at = 0
            for r in 0...runs.count {
                let end = r < runs.count ? starts[s][r] : side.nodes.count
                for node in side.nodes[at..<end] { _ = try keys.number(of: ValueRef(tree: trees[s], node: node)) }
                at = r < runs.count ? end + runs[r].count : end
            }
        }
        var out: [ListRun] = []
        for run in runs {
            var rest = run, i = 0
            func cut(at end: Int, skipping: Int) {
                if end > 0 { out.append(ListRun(base: rest.base, newer: rest.newer, older: rest.older, count: end)) }
                let by = end + skipping
                rest = ListRun(base: rest.base + by, newer: rest.newer + by, older: rest.older + by, count: rest.count - by)
                i = 0
            }
            while i < rest.count {
                let element = ValueRef(tree: trees[0], node: sides[0].nodes[rest.base + i])
                if try keys.contains(element) { cut(at: i, skipping: 1) } else { i += 1 }
            }
            cut(at: rest.count, skipping: 0)
        }
        return out
    }

    /// Gives each item its key: the first of a class has one, the next of that class the one after it.
    private func number(_ sides: [ListRuns.Elements], _ trees: [UInt32], _ runs: [ListRun]) throws {
        var first: [UInt32] = [], next: [UInt32] = []
        // Taken out: a second holder would have them copied, and their room lost.
        var keys = ElementKeys(values, declared: nil, usesID: false, atMost: 0)
        swap(&keys, &self.keys)
        defer { self.keys = keys }
        // The key of each run.
        var runKeys: [UInt32] = []
        sizes = []
        func key(of element: ValueRef, _ last: inout [UInt32]) throws -> UInt32 {
            let kind = Int(try keys.number(of: element))
            while first.count <= kind { first.append(.max) }
            while last.count <= kind { last.append(.max) }
            var key = last[kind] == .max ? first[kind] : next[Int(last[kind])]
            if key == .max {
                key = UInt32(truncatingIfNeeded: keyCount)
                keyCount += 1
                if last[kind] == .max { first[kind] = key } else { next[Int(last[kind])] = key }
                next.append(.max)
                classes.append(UInt32(truncatingIfNeeded: kind))
            }
            last[kind] = key
            return key
        }
        func assign(_ s: Int, _ starts: [Int]) throws -> (items: [UInt32], keys: [UInt32]) {
            let nodes = sides[s].nodes
            var items: [UInt32] = [], numbers: [UInt32] = [], last = [UInt32](repeating: .max, count: keys.count), at = 0
            if starts.isEmpty { items = nodes }
            numbers.reserveCapacity(starts.isEmpty ? nodes.count : 0)
            for r in 0...starts.count {
                let end = r < starts.count ? starts[r] : nodes.count
                for node in nodes[at..<end] { numbers.append(try key(of: ValueRef(tree: trees[s], node: node), &last)) }
                if !starts.isEmpty { items += nodes[at..<end] }
                if !starts.isEmpty, s == 0 { sizes += repeatElement(1, count: end - at) }
                guard r < starts.count else { break }
                at = end + runs[r].count
                items.append(nodes[end])
                if s == 0 {
                    runKeys.append(UInt32(truncatingIfNeeded: keyCount))
                    sizes.append(Int32(truncatingIfNeeded: runs[r].count))
                    keyCount += 1
                    next.append(.max)
                    classes.append(.max)
                }
                numbers.append(runKeys[r])
            }
            return (items, numbers)
        }
        base = try assign(0, runs.map(\.base)).items
        (newer, newerKeys) = try assign(1, runs.map(\.newer))
        (older, olderKeys) = try assign(2, runs.map(\.older))
    }

    /// The base's places of a side's elements, -1 for those that are new.
    private func basePlaces(_ keys: [UInt32]) -> [Int32] { keys.map { $0 < base.count ? Int32(truncatingIfNeeded: $0) : -1 } }

    private func findAnchors() throws {
        newerAnchors = try IncreasingRun.members(basePlaces(newerKeys), sizes: sizes, values.work)
        olderAnchors = try IncreasingRun.members(basePlaces(olderKeys), sizes: sizes, values.work)
    }

    // MARK: Pairing

    /// Where as many elements were replaced on both sides, one for one, gives them the keys of those that they replaced.
    private func pair() throws -> Bool {
        let x = anchored(newerKeys, newerAnchors), y = anchored(olderKeys, olderAnchors)
        var inNewer = [Bool](repeating: false, count: keyCount), inOlder = inNewer
        for key in newerKeys { inNewer[Int(key)] = true }
        for key in olderKeys { inOlder[Int(key)] = true }
        var paired = false, from = (o: 0, x: 0, y: 0)

        func areValues(_ slice: ArraySlice<UInt32>) -> Bool { slice.allSatisfy { keys.source(Int(classes[Int($0)])) == .value } }
        // An element of the base in a slice must be where it was; one that is new must not be on the other side.
        func areInPlace(_ slice: ArraySlice<UInt32>, _ anchors: [Int32], _ other: [Bool]) -> Bool {
            slice.allSatisfy { $0 < base.count ? anchors[Int($0)] >= 0 : !other[Int($0)] }
        }
        func replaces(_ o: Range<Int>, _ p: Range<Int>, _ q: Range<Int>) -> Bool {
            guard o.count == p.count, o.count == q.count, !o.isEmpty else { return false }
            let left = newerKeys[p], right = olderKeys[q], middle = o.map { UInt32(truncatingIfNeeded: $0) }[...]
            guard !left.elementsEqual(right), !left.elementsEqual(middle), !right.elementsEqual(middle) else { return false }
            guard areValues(middle), areValues(left), areValues(right) else { return false }
            guard o.allSatisfy({ !(inNewer[$0] && x[$0] < 0) && !(inOlder[$0] && y[$0] < 0) }) else { return false }
            return o.contains { !inNewer[$0] && !inOlder[$0] } && areInPlace(left, x, inOlder) && areInPlace(right, y, inNewer)
        }
        for place in 0...base.count {
            let isEnd = place == base.count
            guard isEnd || (x[place] >= 0 && y[place] >= 0) else { continue }
            let to = isEnd ? (o: base.count, x: newerKeys.count, y: olderKeys.count) : (o: place, x: Int(x[place]), y: Int(y[place]))
            if replaces(from.o..<to.o, from.x..<to.x, from.y..<to.y) {
                for k in 0..<to.o - from.o {
                    newerKeys[from.x + k] = UInt32(truncatingIfNeeded: from.o + k)
                    olderKeys[from.y + k] = UInt32(truncatingIfNeeded: from.o + k)
                }
                paired = true
            }
            from = (to.o + 1, to.x + 1, to.y + 1)
        }
        try values.work.done(base.count + newerKeys.count + olderKeys.count)
        return paired
    }

    /// For each place of the base where a side has it as an anchor, or -1.
    private func anchored(_ keys: [UInt32], _ anchors: [Bool]) -> [Int32] {
        var places = [Int32](repeating: -1, count: base.count)
        for (i, key) in keys.enumerated() where anchors[i] { places[Int(key)] = Int32(truncatingIfNeeded: i) }
        return places
    }

    // MARK: Members

    /// One child for each key: those of the base, then the newer side's new ones, then the older's.
    func children(of frame: MergeFrame) {
        func filled(_ items: [UInt32], _ keys: some Sequence<UInt32>) -> [UInt32] {
            var nodes = [UInt32](repeating: MergeFrame.none, count: keyCount)
            for (node, key) in zip(items, keys) { nodes[Int(key)] = node }
            return nodes
        }
        frame.base = filled(base, 0..<UInt32(truncatingIfNeeded: base.count))
        frame.newer = filled(newer, newerKeys)
        frame.older = filled(older, olderKeys)
        frame.reserve(keyCount)
    }

    /// The nodes of a key that both sides have, and the base.
    func nodes(of key: Int) -> (base: UInt32, newer: UInt32, older: UInt32) {
        func node(_ items: [UInt32], _ keys: [UInt32]) -> UInt32 { keys.firstIndex { $0 == key }.map { items[$0] } ?? MergeFrame.none }
        return (base[key], node(newer, newerKeys), node(older, olderKeys))
    }

    /// What a record's path calls a child: by its key, or, where that is its value, by its place in the base.
    func step(_ child: Int) -> RecordPath.Step {
        let kind = Int(classes[child]), source = keys.source(kind)
        guard source != .value else { return .index(child < base.count ? place(child) : 0) }
        return .key(keys.parts(of: keys.element(kind), source), occurrence: occurrence(child))
    }

    /// Where in the base an item of it begins.
    private func place(_ item: Int) -> Int {
        if sizes.isEmpty { return item }
        if places.isEmpty {
            var at = 0
            for size in sizes { places.append(at); at += Int(size) }
        }
        return places[item]
    }

    func contestedStep(_ child: Int) throws -> ContestedValues.Step {
        let kind = Int(classes[child]), source = keys.source(kind)
        return .key(source, try keys.bytes(of: keys.element(kind), source), occurrence: occurrence(child))
    }

    /// The keys of a class are in the order of their elements.
    private func occurrence(_ child: Int) -> Int {
        if occurrences.isEmpty {
            var counts = [UInt32](repeating: 0, count: keys.count)
            occurrences = classes.map { kind in
                guard kind != .max else { return 0 }
                counts[Int(kind)] += 1
                return counts[Int(kind)] - 1
            }
        }
        return Int(occurrences[child])
    }

    // MARK: Order

    /// The elements that came out, in order, and the keys that both sides moved to different places.
    func emit(_ results: [ValueRef]) throws -> (elements: [ValueRef], moved: [Int]) {
        let (order, moved) = try self.order(results)
        var elements: [ValueRef] = []
        elements.reserveCapacity(sizes.isEmpty ? order.count : sizes.reduce(results.count) { $0 + Int($1) - 1 })
        for key in order.lazy.map(Int.init) {
            elements.append(results[key])
            if key < sizes.count, sizes[key] > 1 { appendRun(from: results[key], Int(sizes[key]), to: &elements) }
        }
        return (elements, moved)
    }

    /// The keys of what came out, in order.
    private func order(_ results: [ValueRef]) throws -> (keys: [UInt32], moved: [Int]) {
        let x = anchored(newerKeys, newerAnchors), y = anchored(olderKeys, olderAnchors)
        // The gap of each key that the side added or moved, or -1.
        let newerGaps = gaps(newerKeys, newerAnchors, results), olderGaps = gaps(olderKeys, olderAnchors, results)
        var order: [UInt32] = [], moved: [Int] = [], i = 0, j = 0
        order.reserveCapacity(results.count)
        for gap in 0...base.count {
            if gap > 0 {
                if x[gap - 1] >= 0 { i = Int(x[gap - 1]) + 1 }
                if y[gap - 1] >= 0 { j = Int(y[gap - 1]) + 1 }
            }
            var left: [UInt32] = [], right: [UInt32] = []
            // Without an anchor just before it, a gap has no run.
            if gap == 0 || x[gap - 1] >= 0 {
                while i < newerKeys.count, !newerAnchors[i] { left.append(newerKeys[i]); i += 1 }
            }
            if gap == 0 || y[gap - 1] >= 0 {
                while j < olderKeys.count, !olderAnchors[j] { right.append(olderKeys[j]); j += 1 }
            }
            if !left.isEmpty || !right.isEmpty {
                left.removeAll { results[Int($0)].isAbsent }
                right.removeAll { results[Int($0)].isAbsent }
                try weave(left, right, gap, newerGaps, olderGaps, &order, &moved)
            }
            if gap < base.count, newerGaps[gap] < 0, olderGaps[gap] < 0, !results[gap].isAbsent {
                order.append(UInt32(truncatingIfNeeded: gap))
            }
        }
        try values.work.done(2 * results.count)
        return (order, moved.sorted())
    }

    private func appendRun(from first: ValueRef, _ count: Int, to elements: inout [ValueRef]) {
        let tree = values.tree(first)
        var node = first.node
        for _ in 1..<count {
            node = tree.next(node)
            elements.append(ValueRef(tree: first.tree, node: node))
        }
    }

    private func gaps(_ keys: [UInt32], _ anchors: [Bool], _ results: [ValueRef]) -> [Int32] {
        var gaps = [Int32](repeating: -1, count: keyCount), gap: Int32 = 0
        for (i, key) in keys.enumerated() {
            if anchors[i] { gap = Int32(truncatingIfNeeded: key) + 1 } else if !results[Int(key)].isAbsent { gaps[Int(key)] = gap }
        }
        return gaps
    }

    /// The runs of one gap: shared elements hold them together; in each piece between those the older side's come first.
    private func weave(
        _ left: [UInt32], _ right: [UInt32], _ gap: Int, _ newerGaps: [Int32], _ olderGaps: [Int32], _ order: inout [UInt32],
        _ moved: inout [Int]
    ) throws {
        var place: [UInt32: Int32] = [:]
        if !left.isEmpty {
            for (j, key) in right.enumerated() where newerGaps[Int(key)] == gap { place[key] = Int32(truncatingIfNeeded: j) }
        }
        let shared = try IncreasingRun.members(left.map { place[$0] ?? -1 }, values.work)
        var i = 0, j = 0
        for end in 0...left.count where end == left.count || shared[end] {
            let to = end == left.count ? right.count : Int(place[left[end]] ?? 0)
            while j < to {
                // What the newer side has in a run of its own stands there.
                if newerGaps[Int(right[j])] < 0 { order.append(right[j]) }
                j += 1
            }
            while i < end {
                order.append(left[i])
                if left[i] < base.count, olderGaps[Int(left[i])] >= 0 { moved.append(Int(left[i])) }
                i += 1
            }
            guard end < left.count else { break }
            order.append(left[end])
            i += 1
            j += 1
        }
    }
}
