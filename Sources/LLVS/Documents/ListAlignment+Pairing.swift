/// Where both sides replaced as many elements one for one: those are edits of the elements that they replaced.
extension ListAlignment {
    /// What of a side there is, by key: all that it has, and what it moved.
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

    /// Where as many elements were replaced on both sides, one for one, gives them the keys of those that they replaced.
    func pair() throws {
        paired = TokenBits(count: base.count)
        let inNewer = Held(newerKeys, newerAnchors, of: keyCount, base: base.count)
        let inOlder = Held(olderKeys, olderAnchors, of: keyCount, base: base.count)
        let end = base.count
        var from = (o: 0, x: 0, y: 0), x = 0, y = 0

        func areValues(_ keys: some Sequence<UInt32>) -> Bool { keys.allSatisfy { self.keys.source(Int(classes[Int($0)])) == .value } }
        // An element of the base in a slice must be where it was; one that is new must not be on the other side.
        func areInPlace(_ slice: ArraySlice<UInt32>, _ anchors: TokenBits, _ other: Held) -> Bool {
            slice.indices.allSatisfy { slice[$0] < end ? anchors[$0] : !other.all[Int(slice[$0])] }
        }
        func replaces(_ o: Range<Int>, _ p: Range<Int>, _ q: Range<Int>) -> Bool {
            guard o.count == p.count, o.count == q.count, !o.isEmpty else { return false }
            let left = newerKeys[p], right = olderKeys[q], middle = o.lazy.map { UInt32(truncatingIfNeeded: $0) }
            guard !left.elementsEqual(right), !left.elementsEqual(middle), !right.elementsEqual(middle) else { return false }
            guard areValues(middle), areValues(left), areValues(right) else { return false }
            guard o.allSatisfy({ !inNewer.moved[$0] && !inOlder.moved[$0] }) else { return false }
            return o.contains { !inNewer.all[$0] && !inOlder.all[$0] } && areInPlace(left, newerAnchors, inOlder)
                && areInPlace(right, olderAnchors, inNewer)
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
                    // They stand between anchors, in their order, and so the longest run is what it was and all of them.
                    newerAnchors[from.x + k] = true
                    olderAnchors[from.y + k] = true
                }
            }
            from = (to.o + 1, to.x + 1, to.y + 1)
        }
        try values.work.done(base.count + newerKeys.count + olderKeys.count)
    }

    /// In a save the base is what an app makes of the older side, which then has as many elements in the same order: those that it spells
    /// otherwise, or knows a part of, are told by their places; and where it replaced elements one for one, they are edits of these.
    /// False where it cannot be so, since the older side was changed: an element is at another place, or known by another key.
    func pairSaved() throws -> Bool {
        let count = base.count
        guard count > 0, olderKeys.count == count else { return false }
        func isValue(_ key: Int) -> Bool { keys.source(Int(classes[key])) == .value }
        func isAtPlace(_ i: Int) -> Bool { classes[Int(olderKeys[i])] == classes[i] }
        var others = TokenBits(count: keys.count)
        for i in 0..<count where !isAtPlace(i) { others[Int(classes[i])] = true }
        for i in 0..<count where !isAtPlace(i) {
            let key = Int(olderKeys[i])
            if others[Int(classes[key])] || !isValue(key) && !isValue(i) { return false }
        }
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
