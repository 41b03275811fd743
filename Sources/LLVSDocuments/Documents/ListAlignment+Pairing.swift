/// Pairs replaced elements. If both sides replaced as many elements one for one, these are edits of the elements that they replaced.
extension ListAlignment {
    /// Sets of the keys of a side: all, and those that it moved.
    private struct Held {
        var all: TokenBits
        var moved: TokenBits

        init(_ keys: [UInt32], _ anchors: TokenBits, of count: Int, base: Int) {
            all = TokenBits(count: count)
            moved = TokenBits(count: base)
            for (i, key) in keys.enumerated() {
                all[Int(key)] = true
                if key < base, !anchors[i] { moved[Int(key)] = true }
            }
        }
    }

    /// Gives replaced elements the keys of the elements that they replaced, if as many were replaced on both sides, one for one (8.1 of the
    /// specification of texts and lists of plain values).
    func pair() throws {
        paired = TokenBits(count: base.count)
        let inNewer = Held(newerKeys, newerAnchors, of: keyCount, base: base.count)
        let inOlder = Held(olderKeys, olderAnchors, of: keyCount, base: base.count)
        let end = base.count
        var from = (o: 0, x: 0, y: 0), x = 0, y = 0

        func areValues(_ keys: some Sequence<UInt32>) -> Bool { keys.allSatisfy { self.keys.source(Int(classes[Int($0)])) == .value } }
        // An element of the base in a slice must not be moved.
        func areInPlace(_ slice: ArraySlice<UInt32>, _ anchors: TokenBits) -> Bool {
            slice.indices.allSatisfy { slice[$0] >= end || anchors[$0] }
        }
        // An element of the base that a side has must be at its place in the side's slice (a).
        func stays(_ element: UInt32, as one: UInt32, _ side: Held) -> Bool { one == element || !side.all[Int(element)] }
        // A new element that the other side has, too, must be at the same place of the other side's slice (b).
        func isAlone(_ one: UInt32, beside other: UInt32, _ side: Held) -> Bool { one < end || one == other || !side.all[Int(one)] }
        func replaces(_ o: Range<Int>, _ p: Range<Int>, _ q: Range<Int>) -> Bool {
            guard o.count == p.count, o.count == q.count, !o.isEmpty else { return false }
            let left = newerKeys[p], right = olderKeys[q], middle = o.lazy.map { UInt32(truncatingIfNeeded: $0) }
            guard !left.elementsEqual(right), !left.elementsEqual(middle), !right.elementsEqual(middle) else { return false }
            guard areValues(middle), areValues(left), areValues(right) else { return false }
            guard o.allSatisfy({ !inNewer.moved[$0] && !inOlder.moved[$0] }) else { return false }
            guard o.contains(where: { !inNewer.all[$0] && !inOlder.all[$0] }), areInPlace(left, newerAnchors),
                areInPlace(right, olderAnchors)
            else { return false }
            return (0..<o.count).allSatisfy { k in
                let element = UInt32(truncatingIfNeeded: o.lowerBound + k)
                let one = left[p.lowerBound + k], other = right[q.lowerBound + k]
                return stays(element, as: one, inNewer) && stays(element, as: other, inOlder)
                    && isAlone(one, beside: other, inOlder) && isAlone(other, beside: one, inNewer)
            }
        }
        for place in 0...end {
            // The anchors of a side are in the order of the base.
            while x < newerKeys.count, !newerAnchors[x] || newerKeys[x] < place { x += 1 }
            while y < olderKeys.count, !olderAnchors[y] || olderKeys[y] < place { y += 1 }
            let isEnd = place == end
            guard isEnd || (x < newerKeys.count && newerKeys[x] == place && y < olderKeys.count && olderKeys[y] == place) else { continue }
            let to = isEnd ? (o: end, x: newerKeys.count, y: olderKeys.count) : (o: place, x: x, y: y)
            if replaces(from.o..<to.o, from.x..<to.x, from.y..<to.y) {
                for k in 0..<to.o - from.o {
                    newerKeys[from.x + k] = UInt32(truncatingIfNeeded: from.o + k)
                    olderKeys[from.y + k] = UInt32(truncatingIfNeeded: from.o + k)
                    paired[from.o + k] = true
                    // The pairs lie between two anchors, in order. So the longest increasing subsequence has all of them.
                    newerAnchors[from.x + k] = true
                    olderAnchors[from.y + k] = true
                }
            }
            from = (to.o + 1, to.x + 1, to.y + 1)
        }
        try values.work.done(base.count + newerKeys.count + olderKeys.count)
    }

    private func isValue(_ key: Int) -> Bool { keys.source(Int(classes[key])) == .value }
    private func isAtPlace(_ i: Int) -> Bool { classes[Int(olderKeys[i])] == classes[i] }

    /// Returns whether the base can be an app's rendering of the older side. If so, both have equally many elements in the same order, and
    /// the app spells some differently, or knows a part of them. False if the older side was changed: an element has another place or
    /// another key.
    func isMadeOfOlder() -> Bool {
        let count = base.count
        guard count > 0, olderKeys.count == count else { return false }
        var others = TokenBits(count: keys.count)
        for i in 0..<count where !isAtPlace(i) { others[Int(classes[i])] = true }
        for i in 0..<count where !isAtPlace(i) {
            let key = Int(olderKeys[i])
            if others[Int(classes[key])] || !isValue(key) && !isValue(i) { return false }
        }
        return true
    }

    /// Pairs elements in a save: gives each element of the older side the key of the base's element at its place. If the app replaced
    /// elements one for one, these are edits. Returns false if the base cannot be what the app makes of the older side.
    func pairSaved() throws -> Bool {
        guard isMadeOfOlder() else { return false }
        let count = base.count
        paired = TokenBits(count: count)
        for i in 0..<count {
            if !isAtPlace(i) { paired[i] = true }
            olderKeys[i] = UInt32(truncatingIfNeeded: i)
            olderAnchors[i] = true
        }
        let held = Held(newerKeys, newerAnchors, of: keyCount, base: count)
        var from = (o: 0, x: 0), x = 0
        for place in 0...count {
            while x < newerKeys.count, !newerAnchors[x] || newerKeys[x] < place { x += 1 }
            let isEnd = place == count
            guard isEnd || (x < newerKeys.count && newerKeys[x] == place) else { continue }
            let o = from.o..<place, p = from.x..<(isEnd ? newerKeys.count : x)
            if !o.isEmpty, o.count == p.count, o.allSatisfy({ !held.all[$0] && isValue($0) }),
                p.allSatisfy({ newerKeys[$0] >= count && isValue(Int(newerKeys[$0])) })
            {
                for k in 0..<o.count {
                    newerKeys[p.lowerBound + k] = UInt32(truncatingIfNeeded: o.lowerBound + k)
                    newerAnchors[p.lowerBound + k] = true
                    paired[o.lowerBound + k] = true
                }
            }
            from = (place + 1, x + 1)
        }
        try values.work.done(2 * count + newerKeys.count)
        return true
    }
}
