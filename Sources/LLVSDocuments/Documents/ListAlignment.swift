/// Merges a list by the keys of its elements: which elements are the same on the three sides, and their order in the result.
final class ListAlignment {
    let values: DocumentValues
    private let declared: [[[UInt8]]]?
    private let saves: Bool
    /// The items of each side: elements, and runs of elements that are equal on all sides. A run is given by its first element.
    @exclusivity(unchecked) var base = ElementNodes()
    @exclusivity(unchecked) var newer = ElementNodes()
    @exclusivity(unchecked) var older = ElementNodes()
    /// The key of each item: numbers, unique within a side. Those of the base are its places. While the elements are merged, the frame has
    /// the place of each key instead.
    @exclusivity(unchecked) var newerKeys: [UInt32] = []
    @exclusivity(unchecked) var olderKeys: [UInt32] = []
    @exclusivity(unchecked) var keyCount = 0
    @exclusivity(unchecked) var runCount = 0
    /// The number of elements in each item of the base. Empty if there are no runs: then each item is one element.
    @exclusivity(unchecked) var sizes: [Int32] = []
    /// The class of each key. Keys of one class differ in their occurrence only.
    @exclusivity(unchecked) var classes: [UInt32] = []
    /// For each key, the number of elements of its class before it. Computed when a record first needs one.
    @exclusivity(unchecked) var occurrences: [UInt32] = []
    @exclusivity(unchecked) var keys: ElementKeys
    @exclusivity(unchecked) var touched: UInt32 = 0
    /// Elements of the base whose counterpart on a side is not equal to them.
    @exclusivity(unchecked) var paired = TokenBits(count: 0)
    /// Whether every element is its own key, and no key is declared.
    @exclusivity(unchecked) private(set) var isOfPlain = false
    /// Whether the elements are merged by place, and whether comparing them met a limit.
    @exclusivity(unchecked) var isByPlace = false, isLimited = false
    /// How many elements both sides replaced by different scalars, in a list that is merged by place.
    @exclusivity(unchecked) var conflictCount = 0
    @exclusivity(unchecked) var newerAnchors = TokenBits(count: 0)
    @exclusivity(unchecked) var olderAnchors = TokenBits(count: 0)
    /// The places in the base of its items, made when a record asks for one.
    @exclusivity(unchecked) var places: [Int] = []
    /// For each item of the base, the place in the result of the last item before it that survived. Computed on first use.
    var before: [Int] = []
    /// The place of each key in the result, if places are asked for.
    @exclusivity(unchecked) var outcomes: [UInt32] = []

    /// - Parameters:
    ///   - saves: the base is what an app makes of the older side.
    ///   - steps: how many steps comparing may still take in this value.
    init(
        _ values: DocumentValues, _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, key: [[[UInt8]]]?, saves: Bool = false, steps: inout Int
    ) throws {
        self.values = values
        self.saves = saves
        declared = key
        keys = ElementKeys(values, declared: key, usesID: true, atMost: 0)
        func side(_ ref: ValueRef) -> ListRuns.Elements {
            ListRuns.Elements(tree: values.tree(ref), nodes: ElementNodes(values.tree(ref), of: ref.node))
        }
        let none = ListRuns.Elements(tree: values.tree(x), nodes: ElementNodes())
        let sides = [values.isKind(o, .array) ? side(o) : none, side(x), side(y)]
        let trees = [o, x, y].map(\.tree), counts = sides.map(\.nodes.count)
        // (An app may decode different elements to equal ones. Then each element needs its own place.)
        var runs = saves ? [] : try ListRuns.find(sides[0], sides[1], sides[2], values.work)
        let inRuns = runs.reduce(0) { $0 + $1.count }
        // Each element of a run is looked up among the elements outside of runs. That pays only if most elements are in runs.
        if 2 * inRuns < counts[0] { runs = [] }
        let largest = (counts.max() ?? 0) - (runs.isEmpty ? 0 : inRuns)
        try Memory.expect(48 * (counts.reduce(0, +) - (runs.isEmpty ? 0 : 3 * inRuns)), "Merging a list")
        if try runs.isEmpty || !plan(sides, trees, runs, atMost: largest, &steps) {
            if !runs.isEmpty { try Memory.expect(48 * counts.reduce(0, +), "Merging a list") }
            _ = try plan(sides, trees, [], atMost: counts.max() ?? 0, &steps)
        }
    }

    /// Aligns the elements.
    /// - Returns: false if there may be no runs: one would be moved, or the list is merged by place.
    private func plan(
        _ sides: [ListRuns.Elements], _ trees: [UInt32], _ runs: [ListRun], atMost count: Int, _ steps: inout Int
    ) throws -> Bool {
        let total = sides.reduce(0) { $0 + $1.nodes.count } - 3 * runs.reduce(0) { $0 + $1.count - 1 }
        keys = ElementKeys(values, declared: declared, usesID: true, atMost: count, of: total)
        (keyCount, classes) = (0, [])
        var rest: [ListRun] = [], areRunsOfPlain = true
        if !runs.isEmpty {
            guard let split = try split(runs, sides, trees) else { return false }
            (rest, areRunsOfPlain) = split
        }
        try number(sides, trees, rest)
        // All elements are numbered: release the memory of the table.
        keys.close()
        isOfPlain = declared == nil && areRunsOfPlain && areOutsideOfRunsPlain(keys)
        // (If there are more keys than classes, some class has two elements on one side.)
        if isOfPlain, keyCount - runCount > keys.count || areEqualEditsInTwoSlots {
            if runCount > 0 { return false }
            try findPlaces(isSaved: saves && isMadeOfOlder(), &steps)
            return true
        }
        try findAnchors()
        guard areAnchors else { return false }
        if saves, try pairSaved() { return true }
        if declared == nil { try pair() }
        return areAnchors
    }

    /// Whether both sides are as long as the base, and have put equal new elements into different slots. Each class has one key.
    private var areEqualEditsInTwoSlots: Bool {
        let count = base.count
        guard newerKeys.count == count, olderKeys.count == count else { return false }
        // (A run is one item and takes a slot for each of its elements.)
        func forEachSlot(_ keys: [UInt32], _ body: (_ key: Int, _ slot: Int) -> Bool) {
            var slot = 0
            for key in keys.lazy.map(Int.init) {
                if !body(key, slot) { return }
                slot += key < sizes.count ? Int(sizes[key]) : 1
            }
        }
        // The new keys of the newer side are numbered in the order of its elements.
        var slots: [Int] = [], areInTwoSlots = false
        forEachSlot(newerKeys) { key, slot in
            if key >= count { slots.append(slot) }
            return true
        }
        forEachSlot(olderKeys) { key, slot in
            areInTwoSlots = key >= count && key - count < slots.count && slots[key - count] != slot
            return !areInTwoSlots
        }
        return areInTwoSlots
    }

    /// Whether no run was moved.
    private var areAnchors: Bool {
        // Runs have no class. A run may be a single element.
        func anchored(_ sideKeys: [UInt32], _ anchors: TokenBits) -> Int {
            sideKeys.indices.reduce(0) { $0 + (anchors[$1] && classes[Int(sideKeys[$1])] == .max ? 1 : 0) }
        }
        return runCount == 0 || anchored(newerKeys, newerAnchors) == runCount && anchored(olderKeys, olderAnchors) == runCount
    }

    // MARK: Keys

    /// Returns whether all elements outside of runs are their own keys.
    private func areOutsideOfRunsPlain(_ keys: ElementKeys) -> Bool { (0..<keys.count).allSatisfy { keys.source($0) == .value } }

    /// Returns the runs, cut at each element that has an equal one outside of runs: its occurrence is counted over all of its class. Also
    /// returns whether all elements in runs are their own keys.
    ///
    /// Returns nil if two equal elements were found before any element with another key. Then the list is compared without runs.
    private func split(
        _ runs: [ListRun], _ sides: [ListRuns.Elements], _ trees: [UInt32]
    ) throws -> (runs: [ListRun], areOfPlain: Bool)? {
        var keys = ElementKeys(values, declared: nil, usesID: false, atMost: 0)
        swap(&keys, &self.keys)
        defer { self.keys = keys }
        let starts = [runs.map(\.base), runs.map(\.newer), runs.map(\.older)]
        for (s, side) in sides.enumerated() {
            var at = 0
            for r in 0...runs.count {
                let end = r < runs.count ? starts[s][r] : side.nodes.count
                for i in at..<end { _ = try keys.number(of: ValueRef(tree: trees[s], node: side.nodes[i])) }
                at = r < runs.count ? end + runs[r].count : end
            }
        }
        func element(_ i: Int) -> ValueRef { ValueRef(tree: trees[0], node: sides[0].nodes[i]) }
        var arePlain = declared == nil && areOutsideOfRunsPlain(keys), out: [ListRun] = []
        var elements = try DistinctElements(values, atMost: arePlain ? runs.reduce(0) { $0 + $1.count } : 0)
        for run in runs {
            var rest = run, i = 0
            func cut(at end: Int, skipping: Int) {
                if end > 0 { out.append(ListRun(base: rest.base, newer: rest.newer, older: rest.older, count: end)) }
                let by = end + skipping
                rest = ListRun(base: rest.base + by, newer: rest.newer + by, older: rest.older + by, count: rest.count - by)
                i = 0
            }
            while i < rest.count {
                let found = try keys.find(like: element(rest.base + i))
                arePlain = arePlain && found.source == .value
                if arePlain, try found.isKnown || !elements.add(element(rest.base + i), found.digest) { return nil }
                if found.isKnown { cut(at: i, skipping: 1) } else { i += 1 }
            }
            cut(at: rest.count, skipping: 0)
        }
        guard arePlain else { return (out, false) }
        return try elements.areDistinct(runs.map { $0.base..<$0.base + $0.count }, element) ? (out, true) : nil
    }

    /// Gives each item its key. Elements of one class get different keys, in their order.
    private func number(_ sides: [ListRuns.Elements], _ trees: [UInt32], _ runs: [ListRun]) throws {
        var first: [UInt32] = [], next: [UInt32] = []
        // Moved out, since a second reference would make a write copy them.
        var keys = ElementKeys(values, declared: nil, usesID: false, atMost: 0)
        swap(&keys, &self.keys)
        defer { self.keys = keys }
        // Reserve for the most there can be. Pages that are never written take no memory.
        let most = sides.reduce(0) { $0 + $1.nodes.count } - 3 * runs.reduce(0) { $0 + $1.count - 1 }
        next.reserveCapacity(most)
        classes.reserveCapacity(most)
        // The key of each run.
        var runKeys: [UInt32] = []
        (sizes, runCount) = ([], runs.count)
        // Elements are looked up in batches, so that their cache misses overlap.
        var kinds = [UInt32](repeating: 0, count: ElementKeys.batch), touched: UInt32 = 0
        defer { self.touched = touched }
        func key(ofKind number: UInt32, _ last: inout [UInt32]) -> UInt32 {
            let kind = Int(number), before = last[kind]
            var key = before == .max ? first[kind] : next[Int(before)]
            if key == .max {
                key = UInt32(truncatingIfNeeded: keyCount)
                keyCount += 1
                if before == .max { first[kind] = key } else { next[Int(before)] = key }
                next.append(.max)
                classes.append(UInt32(truncatingIfNeeded: kind))
            }
            last[kind] = key
            return key
        }
        func assign(_ s: Int, _ starts: [Int]) throws -> (items: ElementNodes, keys: [UInt32]) {
            let nodes = sides[s].nodes
            // (The search for runs numbered some classes already.)
            while first.count < keys.count { first.append(.max) }
            var items: [UInt32] = [], numbers: [UInt32] = [], last = [UInt32](repeating: .max, count: keys.count), at = 0
            // The keys of the base are its places.
            numbers.reserveCapacity(s > 0 && starts.isEmpty ? nodes.count : 0)
            for r in 0...starts.count {
                let end = r < starts.count ? starts[r] : nodes.count
                for i in at..<end {
                    let place = (i - at) & (ElementKeys.batch - 1)
                    if place == 0 {
                        let some = i..<min(end, i + ElementKeys.batch)
                        keys.touch({ nodes[$0] }, some, of: sides[s].tree)
                        for k in some {
                            let kind = try keys.number(of: ValueRef(tree: trees[s], node: nodes[k]))
                            kinds[k - i] = kind
                            if kind < last.count { touched &+= last[Int(kind)] &+ first[Int(kind)] }
                        }
                        while first.count < keys.count { first.append(.max) }
                        while last.count < keys.count { last.append(.max) }
                    }
                    let number = key(ofKind: kinds[place], &last)
                    if s > 0 { numbers.append(number) }
                    if !starts.isEmpty { items.append(nodes[i]) }
                }
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
                } else {
                    numbers.append(runKeys[r])
                }
            }
            return (starts.isEmpty ? nodes : ElementNodes(items), numbers)
        }
        base = try assign(0, runs.map(\.base)).items
        (newer, newerKeys) = try assign(1, runs.map(\.newer))
        (older, olderKeys) = try assign(2, runs.map(\.older))
    }

    private func findAnchors() throws {
        newerAnchors = try IncreasingRun.members(newerKeys, below: base.count, sizes: sizes, values.work)
        olderAnchors = try IncreasingRun.members(olderKeys, below: base.count, sizes: sizes, values.work)
    }

    // MARK: Members

    /// Delivers the results of elements that need no merge, from the next one on. Elements with one key by value are equal on all sides, so
    /// an element that a side removed is gone, and one that a side added is in the result.
    func deliverTold(to frame: MergeFrame, _ results: inout ValueRefs) {
        let count = keyCount, classes = self.classes, paired = self.paired, newer = frame.newer, older = frame.older
        let none = MergeFrame.none, (base, x, y) = (self.base, self.newer, self.older)
        let (p, q) = (frame.inputs.x.tree, frame.inputs.y.tree)
        var i = results.count
        while i < count {
            let kind = classes[i]
            // Runs have no class.
            guard kind == .max || keys.source(Int(kind)) == .value, !(i < paired.count && paired[i]) else { return }
            let left = newer[i], right = older[i]
            if i < base.count {
                let stays = left != none && right != none
                results.append(stays ? ValueRef(tree: q, node: y[Int(right)]) : .absent)
            } else if left != none {
                results.append(ValueRef(tree: p, node: x[Int(left)]))
            } else {
                results.append(right == none ? .absent : ValueRef(tree: q, node: y[Int(right)]))
            }
            i += 1
        }
    }

    /// One child for each key: those of the base, then the newer side's new ones, then the older's. The frame gets the places of the keys
    /// in both sides.
    func children(of frame: MergeFrame) {
        func places(_ sideKeys: inout [UInt32]) -> [UInt32] {
            var places = [UInt32](repeating: MergeFrame.none, count: keyCount)
            for (place, key) in sideKeys.enumerated() { places[Int(key)] = UInt32(truncatingIfNeeded: place) }
            sideKeys = []
            return places
        }
        frame.newer = places(&newerKeys)
        frame.older = places(&olderKeys)
        frame.reserve(keyCount)
    }

    /// The path segment of a child in records: its key, or its place in the base if its key is its value.
    func step(_ child: Int) -> RecordPath.Step {
        let kind = Int(classes[child]), source = keys.source(kind)
        guard source != .value else { return .index(child < base.count ? place(child) : 0) }
        return .key(keys.parts(of: keys.element(kind), source), occurrence: occurrence(child))
    }

    /// Returns the place in the base where an item begins.
    private func place(_ item: Int) -> Int {
        if sizes.isEmpty { return item }
        if places.isEmpty {
            var at = 0
            for size in sizes { places.append(at); at += Int(size) }
        }
        return places[item]
    }

    /// The place of a child in the result. If the child is not in the result, the place of the element that it would follow. Nil if neither
    /// is known.
    func outcome(_ child: Int) -> (at: Int?, after: Int?) {
        if outcomes[child] != MergeFrame.none { return (Int(outcomes[child]), nil) }
        guard child < base.count else { return (nil, nil) }
        if before.isEmpty {
            var last = -1
            before = (0..<base.count).map { item in
                defer { if outcomes[item] != MergeFrame.none { last = Int(outcomes[item]) + (sizes.isEmpty ? 1 : Int(sizes[item])) - 1 } }
                return last
            }
        }
        return (nil, before[child])
    }

    func contestedStep(_ child: Int) throws -> ContestedValues.Step {
        // A new element by place that is not in the result gets a key that no element has. (No value is written with a zero byte.)
        if isByPlace, child >= base.count { return .key(.value, [0], occurrence: child) }
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
}
