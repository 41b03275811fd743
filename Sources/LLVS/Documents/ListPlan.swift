/// A list that is merged by the keys of its elements: which elements are the same on the three sides, and in which order they come out.
final class ListPlan {
    private let values: DocumentValues
    private var base: [UInt32]
    private var newer: [UInt32]
    private var older: [UInt32]
    /// The key of each element: numbers, unique within a side. Those of the base are its places.
    private var newerKeys: [UInt32] = []
    private var olderKeys: [UInt32] = []
    private var keyCount = 0
    /// The class of each key: which elements would have the same key but for their occurrence.
    private var classes: [UInt32] = []
    /// How many elements of its class a key has before it.
    private var occurrences: [UInt32] = []
    private var keys: ElementKeys
    private var newerAnchors: [Bool] = []
    private var olderAnchors: [Bool] = []

    init(_ values: DocumentValues, _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, key: [[[UInt8]]]?) throws {
        self.values = values
        base = values.isKind(o, .array) ? values.tree(o).children(of: o.node) : []
        newer = values.tree(x).children(of: x.node)
        older = values.tree(y).children(of: y.node)
        try Memory.expect(48 * (base.count + newer.count + older.count), "Merging a list")
        keys = ElementKeys(values, declared: key, usesID: true, atMost: max(base.count, newer.count, older.count))
        try number(o, x, y)
        try findAnchors()
        if key == nil, try pair() { try findAnchors() }
    }

    // MARK: Keys

    /// Gives each element its key: the first of a class has one, the next of that class the one after it.
    private func number(_ o: ValueRef, _ x: ValueRef, _ y: ValueRef) throws {
        var first: [UInt32] = [], next: [UInt32] = [], keys = keys
        defer { self.keys = keys }
        func assign(_ container: ValueRef, _ elements: [UInt32]) throws -> [UInt32] {
            var last = [UInt32](repeating: .max, count: keys.count)
            var numbers: [UInt32] = []
            numbers.reserveCapacity(elements.count)
            for element in elements {
                let kind = Int(try keys.number(of: ValueRef(tree: container.tree, node: element)))
                while first.count <= kind { first.append(.max) }
                while last.count <= kind { last.append(.max) }
                var key = last[kind] == .max ? first[kind] : next[Int(last[kind])]
                if key == .max {
                    key = UInt32(truncatingIfNeeded: keyCount)
                    keyCount += 1
                    if last[kind] == .max { first[kind] = key } else { next[Int(last[kind])] = key }
                    next.append(.max)
                    classes.append(UInt32(truncatingIfNeeded: kind))
                    occurrences.append(last[kind] == .max ? 0 : occurrences[Int(last[kind])] + 1)
                }
                last[kind] = key
                numbers.append(key)
            }
            return numbers
        }
        _ = try assign(o, base)
        newerKeys = try assign(x, newer)
        olderKeys = try assign(y, older)
    }

    /// The base's places of a side's elements, -1 for those that are new.
    private func places(_ keys: [UInt32]) -> [Int32] { keys.map { $0 < base.count ? Int32(truncatingIfNeeded: $0) : -1 } }

    private func findAnchors() throws {
        newerAnchors = try IncreasingRun.members(places(newerKeys), values.work)
        olderAnchors = try IncreasingRun.members(places(olderKeys), values.work)
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
            let to = isEnd ? (o: base.count, x: newer.count, y: older.count) : (o: place, x: Int(x[place]), y: Int(y[place]))
            if replaces(from.o..<to.o, from.x..<to.x, from.y..<to.y) {
                for k in 0..<to.o - from.o {
                    newerKeys[from.x + k] = UInt32(truncatingIfNeeded: from.o + k)
                    olderKeys[from.y + k] = UInt32(truncatingIfNeeded: from.o + k)
                }
                paired = true
            }
            from = (to.o + 1, to.x + 1, to.y + 1)
        }
        try values.work.done(base.count + newer.count + older.count)
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
        let none = [UInt32](repeating: MergeFrame.none, count: keyCount)
        frame.base = base + none[base.count...]
        frame.newer = none
        frame.older = none
        for (i, key) in newerKeys.enumerated() { frame.newer[Int(key)] = newer[i] }
        for (i, key) in olderKeys.enumerated() { frame.older[Int(key)] = older[i] }
    }

    /// What a record's path calls a child: by its key, or, where that is its value, by its place in the base.
    func step(_ child: Int) -> RecordPath.Step {
        let kind = Int(classes[child]), source = keys.source(kind)
        guard source != .value else { return .index(child < base.count ? child : 0) }
        return .key(keys.parts(of: keys.element(kind), source), occurrence: Int(occurrences[child]))
    }

    func contestedStep(_ child: Int) throws -> ContestedValues.Step {
        let kind = Int(classes[child]), source = keys.source(kind)
        return .key(source, try keys.bytes(of: keys.element(kind), source), occurrence: Int(occurrences[child]))
    }

    // MARK: Order

    /// The elements that came out, in order, and the keys that both sides moved to different places.
    func emit(_ results: [ValueRef]) throws -> (elements: [ValueRef], moved: [Int]) {
        let x = anchored(newerKeys, newerAnchors), y = anchored(olderKeys, olderAnchors)
        // The gap of each key that the side added or moved, or -1.
        let newerGaps = gaps(newerKeys, newerAnchors, results), olderGaps = gaps(olderKeys, olderAnchors, results)
        var elements: [ValueRef] = [], moved: [Int] = []
        elements.reserveCapacity(results.count)
        var i = 0, j = 0
        for gap in 0...base.count {
            if gap > 0 {
                if x[gap - 1] >= 0 { i = Int(x[gap - 1]) + 1 }
                if y[gap - 1] >= 0 { j = Int(y[gap - 1]) + 1 }
            }
            var left: [Int] = [], right: [Int] = []
            // Without an anchor just before it, a gap has no run.
            if gap == 0 || x[gap - 1] >= 0 {
                while i < newerKeys.count, !newerAnchors[i] { left.append(Int(newerKeys[i])); i += 1 }
            }
            if gap == 0 || y[gap - 1] >= 0 {
                while j < olderKeys.count, !olderAnchors[j] { right.append(Int(olderKeys[j])); j += 1 }
            }
            if !left.isEmpty || !right.isEmpty {
                left.removeAll { results[$0].isAbsent }
                right.removeAll { results[$0].isAbsent }
                try weave(left, right, gap, newerGaps, olderGaps, results, &elements, &moved)
            }
            if gap < base.count, newerGaps[gap] < 0, olderGaps[gap] < 0, !results[gap].isAbsent { elements.append(results[gap]) }
        }
        try values.work.done(2 * results.count)
        return (elements, moved.sorted())
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
        _ left: [Int], _ right: [Int], _ gap: Int, _ newerGaps: [Int32], _ olderGaps: [Int32], _ results: [ValueRef],
        _ elements: inout [ValueRef], _ moved: inout [Int]
    ) throws {
        var place: [Int: Int32] = [:]
        if !left.isEmpty { for (j, key) in right.enumerated() where newerGaps[key] == gap { place[key] = Int32(truncatingIfNeeded: j) } }
        let shared = try IncreasingRun.members(left.map { place[$0] ?? -1 }, values.work)
        var i = 0, j = 0
        for end in 0...left.count where end == left.count || shared[end] {
            let to = end == left.count ? right.count : Int(place[left[end]] ?? 0)
            while j < to {
                // What the newer side has in a run of its own stands there.
                if newerGaps[right[j]] < 0 { elements.append(results[right[j]]) }
                j += 1
            }
            while i < end {
                elements.append(results[left[i]])
                if left[i] < base.count, olderGaps[left[i]] >= 0 { moved.append(left[i]) }
                i += 1
            }
            guard end < left.count else { break }
            elements.append(results[left[end]])
            i += 1
            j += 1
        }
    }
}
