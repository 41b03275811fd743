/// Lists of plain values with equal elements: an element's place and hunk decide which element of the base it is, as in texts (8.2 of the
/// specification of texts and lists of plain values).
extension ListAlignment {
    /// Gives the elements of both sides the keys of the base's elements that they are, and others if they are new.
    ///
    /// Precondition: the keys are those of classes and occurrences.
    /// - Parameters:
    ///   - isSaved: the older side is the base, element by element.
    ///   - steps: how many steps comparing may still take.
    func findPlaces(isSaved: Bool, _ steps: inout Int) throws {
        let count = base.count
        isByPlace = true
        // The classes of each side, in the memory of its keys.
        for i in newerKeys.indices { newerKeys[i] = classes[Int(newerKeys[i])] }
        for i in olderKeys.indices { olderKeys[i] = classes[Int(olderKeys[i])] }
        classes.removeLast(classes.count - count)
        let newerClasses = newerKeys, olderClasses = olderKeys
        newerKeys = try places(of: newerClasses, &steps)
        olderKeys = try isSaved ? Self.numbers(count) : places(of: olderClasses, &steps)
        paired = TokenBits(count: count)
        for (keys, side) in [(newerKeys, newerClasses), (olderKeys, olderClasses)] {
            for (key, kind) in zip(keys, side) where key < count && classes[Int(key)] != kind { paired[Int(key)] = true }
        }
        countConflicts(newerClasses, olderClasses)
        for i in newerKeys.indices where newerKeys[i] == .max { newerKeys[i] = addKey(of: newerClasses[i]) }
        shareNew(newerClasses, olderClasses)
        for i in olderKeys.indices where olderKeys[i] == .max { olderKeys[i] = addKey(of: olderClasses[i]) }
        keyCount = classes.count
        newerAnchors = anchors(newerKeys)
        olderAnchors = anchors(olderKeys)
        try values.work.done(4 * (count + newerKeys.count + olderKeys.count))
    }

    /// Counts the elements that both sides replaced by different scalars.
    private func countConflicts(_ newerClasses: [UInt32], _ olderClasses: [UInt32]) {
        var i = 0
        for (j, key) in olderKeys.enumerated() where key < base.count && paired[Int(key)] {
            while i < newerKeys.count, newerKeys[i] >= base.count || newerKeys[i] < key { i += 1 }
            guard i < newerKeys.count else { return }
            let kinds = (classes[Int(key)], newerClasses[i], olderClasses[j])
            guard newerKeys[i] == key, kinds.0 != kinds.1, kinds.0 != kinds.2, kinds.1 != kinds.2 else { continue }
            let (one, other) = (keys.element(Int(kinds.1)), keys.element(Int(kinds.2)))
            if values.isScalar(one), values.isScalar(other) { conflictCount += 1 }
        }
    }

    /// Numbers from 0 on.
    private static func numbers(_ count: Int) -> [UInt32] { (0..<count).map { UInt32(truncatingIfNeeded: $0) } }

    /// Adds a key for a new element of a class.
    private func addKey(of kind: UInt32) -> UInt32 {
        classes.append(kind)
        return UInt32(truncatingIfNeeded: classes.count - 1)
    }

    /// Returns the elements of a side that are in the base. All of these are anchors, since nothing is moved.
    private func anchors(_ sideKeys: [UInt32]) -> TokenBits {
        var anchors = TokenBits(count: sideKeys.count)
        for (i, key) in sideKeys.enumerated() where key < base.count { anchors[i] = true }
        return anchors
    }

    /// Returns for each element of a side its place in the base; `.max` for a new element.
    /// - Parameter side: the classes of its elements.
    private func places(of side: [UInt32], _ steps: inout Int) throws -> [UInt32] {
        let base = classes, largest = base.max().map { Int($0) + 1 } ?? 0
        let differing = base.count == side.count ? zip(base, side).reduce(0) { $0 + ($1.0 == $1.1 ? 0 : 1) } : nil
        // If one element was replaced, the shortest script removes one and inserts one. The steps are those of the distances 0, 1 and 2.
        if differing == 1, steps >= 1 + 2 + 3 {
            steps -= 1 + 2 + 3
            return Self.numbers(base.count)
        }
        let alignment = try TextAlignment(base, side, count: largest, steps: &steps, work: values.work)
        let keptBase = alignment.keptBase, keptSide = alignment.keptSide
        isLimited = isLimited || alignment.isLimited
        if let differing, differing <= base.indices.reduce(0, { $0 + (keptBase[$1] ? 0 : 1) + (keptSide[$1] ? 0 : 1) }) {
            return Self.numbers(base.count)
        }
        var places = [UInt32](repeating: .max, count: side.count), i = 0, j = 0
        while i < base.count || j < side.count {
            let start = (base: i, side: j)
            while i < base.count, j < side.count, keptBase[i], keptSide[j] {
                places[j] = UInt32(truncatingIfNeeded: i)
                i += 1
                j += 1
            }
            // A hunk. If it has as many elements on both sides, these are paired one by one.
            let hunk = (base: i, side: j)
            while i < base.count, !keptBase[i] { i += 1 }
            while j < side.count, !keptSide[j] { j += 1 }
            if i - hunk.base == j - hunk.side {
                for k in 0..<j - hunk.side { places[hunk.side + k] = UInt32(truncatingIfNeeded: hunk.base + k) }
            }
            guard i > start.base || j > start.side else { break }
        }
        return places
    }

    /// If both sides have new elements in a gap, and one side has all of the other's in their order, these are the same elements: the
    /// older side's elements get the keys of the newer side's.
    private func shareNew(_ newerClasses: [UInt32], _ olderClasses: [UInt32]) {
        var i = 0, j = 0
        guard var left = nextNew(newerKeys, &i), var right = nextNew(olderKeys, &j) else { return }
        while true {
            if left.gap == right.gap {
                let (p, q) = (left.range, right.range)
                if p.count <= q.count {
                    if Self.has(olderClasses[q], all: newerClasses[p], { _, _ in }) {
                        _ = Self.has(olderClasses[q], all: newerClasses[p]) { olderKeys[$1] = newerKeys[$0] }
                    }
                } else if Self.has(newerClasses[p], all: olderClasses[q], { _, _ in }) {
                    _ = Self.has(newerClasses[p], all: olderClasses[q]) { olderKeys[$0] = newerKeys[$1] }
                }
            }
            let (one, other) = (left.gap, right.gap)
            if one <= other {
                guard let next = nextNew(newerKeys, &i) else { return }
                left = next
            }
            if other <= one {
                guard let next = nextNew(olderKeys, &j) else { return }
                right = next
            }
        }
    }

    /// Returns the next run of new elements of a side, and the place in the base before which it is.
    private func nextNew(_ sideKeys: [UInt32], _ at: inout Int) -> (gap: UInt32, range: Range<Int>)? {
        while at < sideKeys.count, sideKeys[at] < base.count { at += 1 }
        guard at < sideKeys.count else { return nil }
        let start = at
        while at < sideKeys.count, sideKeys[at] >= base.count { at += 1 }
        return (start == 0 ? 0 : sideKeys[start - 1] + 1, start..<at)
    }

    /// Returns whether all elements of a part are in a whole in their order, each as early as possible. Calls with the places of both.
    private static func has(_ whole: ArraySlice<UInt32>, all part: ArraySlice<UInt32>, _ body: (Int, Int) -> Void) -> Bool {
        var at = whole.startIndex
        for i in part.indices {
            while at < whole.endIndex, whole[at] != part[i] { at += 1 }
            guard at < whole.endIndex else { return false }
            body(i, at)
            at += 1
        }
        return true
    }
}
