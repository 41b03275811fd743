/// Finds which tokens of a base a side kept (docs/merging-texts.md, 3): the common prefix and suffix, tokens that occur once on both sides,
/// and between those the tokens that a shortest edit script keeps. Tokens are lines, tokens of a line, or elements of a list.
struct TextAlignment {
    /// The most steps of comparing that one value may take.
    static let stepLimit = 1 << 26
    /// The most edits between two anchors.
    static let distanceLimit = 1_024

    let base: [UInt32]
    let side: [UInt32]
    private(set) var keptBase: TokenBits
    private(set) var keptSide: TokenBits
    /// Whether a part was too different to be compared.
    private(set) var isLimited = false
    private let work: DocumentControl

    struct Part: Equatable {
        var base: Range<Int>
        var side: Range<Int>
        var size: Int { base.count + side.count }
    }

    /// - Parameters:
    ///   - count: one more than the largest token of the base. The base has no larger token.
    ///   - steps: the steps that remain.
    init(_ base: [UInt32], _ side: [UInt32], count: Int, steps: inout Int, work: DocumentControl) throws {
        self.base = base
        self.side = side
        self.work = work
        keptBase = TokenBits(count: base.count)
        keptSide = TokenBits(count: side.count)
        var parts = try anchor(count)
        parts.sort { $0.base.lowerBound < $1.base.lowerBound }
        var script = EditScript()
        for part in parts {
            if try !script.find(base, part.base, side, part.side, steps: &steps, work: work) { isLimited = true; continue }
            script.keep { i, j, count in
                keptBase.set(i..<i + count)
                keptSide.set(j..<j + count)
            }
        }
        try slide()
    }

    // MARK: Anchors

    private struct Count {
        var base: Int32 = 0
        var side: Int32 = 0
        /// Sums of indexes, truncated to 32 bits. If a token occurs once, the sum is its index.
        var basePlaces: UInt32 = 0
        var sidePlaces: UInt32 = 0
        var places: (base: Int, side: Int) { (Int(basePlaces), Int(sidePlaces)) }
    }

    /// Finds the anchors. The parts that are left have no token that occurs once on both sides.
    ///
    /// The search continues with the largest gap of each part at once and reuses the counts. So each token is counted at most a
    /// logarithmic number of times.
    private mutating func anchor(_ count: Int) throws -> [Part] {
        let whole = trim(Part(base: 0..<base.count, side: 0..<side.count))
        guard try haveAnchors(whole, count) else { return whole.base.isEmpty || whole.side.isEmpty ? [] : [whole] }
        try Memory.expect(count * MemoryLayout<Count>.stride, "Comparing texts")
        // Unsafe memory, since it is accessed for every token.
        let counts = UnsafeMutablePointer<Count>.allocate(capacity: count)
        counts.initialize(repeating: Count(), count: count)
        defer { counts.deallocate() }
        let known = UInt32(truncatingIfNeeded: count)
        var candidates: [UInt32] = []
        var open = [whole], left: [Part] = []

        func drop(_ part: Part) {
            for i in part.base {
                let token = Int(base[i])
                counts[token].base -= 1
                counts[token].basePlaces &-= UInt32(truncatingIfNeeded: i)
                if counts[token].base == 1, counts[token].side == 1 { candidates.append(base[i]) }
            }
            for i in part.side where side[i] < known {
                let token = Int(side[i])
                counts[token].side -= 1
                counts[token].sidePlaces &-= UInt32(truncatingIfNeeded: i)
                if counts[token].base == 1, counts[token].side == 1 { candidates.append(side[i]) }
            }
        }

        while let fresh = open.popLast() {
            var part = fresh, isCounted = false
            while true {
                let inner = trim(part)
                // Reused counts cost only the steps of trimming.
                try work.done(1 + (isCounted ? part.size - inner.size : part.size))
                if isCounted {
                    drop(Part(base: part.base.lowerBound..<inner.base.lowerBound, side: part.side.lowerBound..<inner.side.lowerBound))
                    drop(Part(base: inner.base.upperBound..<part.base.upperBound, side: inner.side.upperBound..<part.side.upperBound))
                }
                part = inner
                guard !part.base.isEmpty, !part.side.isEmpty else { break }
                if !isCounted {
                    for i in part.base {
                        let token = Int(base[i])
                        counts[token].base += 1
                        counts[token].basePlaces &+= UInt32(truncatingIfNeeded: i)
                    }
                    for i in part.side where side[i] < known {
                        let token = Int(side[i])
                        counts[token].side += 1
                        counts[token].sidePlaces &+= UInt32(truncatingIfNeeded: i)
                    }
                    candidates.removeAll(keepingCapacity: true)
                    for i in part.side where side[i] < known && counts[Int(side[i])].side == 1 && counts[Int(side[i])].base == 1 {
                        candidates.append(side[i])
                    }
                    isCounted = true
                } else {
                    candidates.removeAll { counts[Int($0)].base != 1 || counts[Int($0)].side != 1 }
                    candidates.sort { counts[Int($0)].sidePlaces < counts[Int($1)].sidePlaces }
                }
                guard !candidates.isEmpty else { left.append(part); break }
                let members = try IncreasingRun.members(candidates.map { Int32(truncatingIfNeeded: counts[Int($0)].basePlaces) }, work)
                let largest = largestGap(of: part, between: candidates, members, counts)
                let isLargeLeft = 2 * largest.size > part.size || count > part.size
                // Dropping tokens may leave others that occur once.
                var anchors: [UInt32] = []
                swap(&anchors, &candidates)
                var from = (base: part.base.lowerBound, side: part.side.lowerBound)
                for i in 0...anchors.count {
                    let isEnd = i == anchors.count
                    guard isEnd || members[i] else { continue }
                    let place = isEnd ? (part.base.upperBound, part.side.upperBound) : counts[Int(anchors[i])].places
                    let gap = Part(base: from.base..<place.0, side: from.side..<place.1)
                    from = (place.0 + 1, place.1 + 1)
                    if !isEnd {
                        keptBase[place.0] = true
                        keptSide[place.1] = true
                        if isLargeLeft { drop(Part(base: place.0..<place.0 + 1, side: place.1..<place.1 + 1)) }
                    }
                    guard gap.size > 0, !isLargeLeft || gap != largest else { continue }
                    if isLargeLeft { drop(gap) }
                    if !gap.base.isEmpty, !gap.side.isEmpty { open.append(gap) }
                }
                guard isLargeLeft else {
                    // All gaps are small: count each from the start.
                    counts.update(repeating: Count(), count: count)
                    isCounted = false
                    break
                }
                part = largest
            }
            if isCounted { drop(part) }
        }
        return left
    }

    /// Returns whether there is a token that occurs once on both sides.
    private func haveAnchors(_ part: Part, _ count: Int) throws -> Bool {
        if part.base.isEmpty || part.side.isEmpty { return false }
        try Memory.expect(count, "Comparing texts")
        // How often each token occurs, up to twice: in the base, and, times four, in the side.
        var seen = [UInt8](repeating: 0, count: count)
        let hasOne = seen.withUnsafeMutableBufferPointer { seen in
            for i in part.base {
                let token = Int(base[i])
                if seen[token] < 2 { seen[token] += 1 }
            }
            for i in part.side where side[i] < count {
                let token = Int(side[i])
                if seen[token] < 8 { seen[token] += 4 }
            }
            return seen.contains(5)
        }
        try work.done(part.base.count + part.side.count)
        return hasOne
    }

    /// Returns the largest gap between anchors. The search continues with it and reuses the counts.
    private func largestGap(
        of part: Part, between candidates: [UInt32], _ members: TokenBits, _ counts: UnsafeMutablePointer<Count>
    ) -> Part {
        var largest = Part(base: part.base.lowerBound..<part.base.lowerBound, side: part.side.lowerBound..<part.side.lowerBound)
        var from = (base: part.base.lowerBound, side: part.side.lowerBound)
        func look(_ base: Int, _ side: Int) {
            let gap = Part(base: from.base..<base, side: from.side..<side)
            if gap.size > largest.size { largest = gap }
            from = (base + 1, side + 1)
        }
        for (i, token) in candidates.enumerated() where members[i] {
            let places = counts[Int(token)].places
            look(places.base, places.side)
        }
        look(part.base.upperBound, part.side.upperBound)
        return largest
    }

    private mutating func trim(_ part: Part) -> Part {
        var (i, j) = (part.base.lowerBound, part.side.lowerBound)
        var (p, q) = (part.base.upperBound, part.side.upperBound)
        base.withUnsafeBufferPointer { a in
            side.withUnsafeBufferPointer { b in
                while i < p, j < q, a[i] == b[j] { i += 1; j += 1 }
                while i < p, j < q, a[p - 1] == b[q - 1] { p -= 1; q -= 1 }
            }
        }
        keptBase.set(part.base.lowerBound..<i)
        keptBase.set(p..<part.base.upperBound)
        keptSide.set(part.side.lowerBound..<j)
        keptSide.set(q..<part.side.upperBound)
        return Part(base: i..<p, side: j..<q)
    }

    // MARK: Sliding

    /// From the end on, slides each hunk that only inserts or only removes to the right while its first token equals the kept token behind
    /// it. The hunk joins what it meets, and continues while it only inserts or only removes.
    private mutating func slide() throws {
        var i = base.count, j = side.count, steps = base.count + side.count
        while i > 0 || j > 0 {
            // Skip tokens that are kept on both sides, many at once.
            let kept = min(keptBase.run(before: i), keptSide.run(before: j))
            if kept > 0 {
                i -= kept
                j -= kept
                continue
            }
            var o = i..<i, s = j..<j
            while i > 0, !keptBase[i - 1] { i -= 1 }
            while j > 0, !keptSide[j - 1] { j -= 1 }
            o = i..<o.upperBound
            s = j..<s.upperBound
            while o.upperBound < base.count, s.upperBound < side.count {
                if o.isEmpty, !s.isEmpty, side[s.lowerBound] == side[s.upperBound] {
                    keptSide[s.lowerBound] = true
                    keptSide[s.upperBound] = false
                } else if s.isEmpty, !o.isEmpty, base[o.lowerBound] == base[o.upperBound] {
                    keptBase[o.lowerBound] = true
                    keptBase[o.upperBound] = false
                } else {
                    break
                }
                o = o.lowerBound + 1..<o.upperBound + 1
                s = s.lowerBound + 1..<s.upperBound + 1
                var (p, q) = (o.upperBound, s.upperBound)
                while p < base.count, !keptBase[p] { p += 1 }
                while q < side.count, !keptSide[q] { q += 1 }
                o = o.lowerBound..<p
                s = s.lowerBound..<q
                steps += 1
            }
        }
        try work.done(steps)
    }
}

/// A longest place between kept tokens: a range of the base, and a range of the side in its place. Either may be empty.
struct TextHunk: Equatable {
    var base: Range<Int>
    var side: Range<Int>

    var inserts: Bool { base.isEmpty }
    var removes: Bool { side.isEmpty }

    /// Returns whether this hunk inserts strictly inside the range of the other.
    func isInside(_ other: TextHunk) -> Bool {
        inserts && other.base.lowerBound < base.lowerBound && base.lowerBound < other.base.upperBound
    }

    /// Returns whether two hunks of different sides share a token of the base, or one inserts strictly inside the other's range.
    func overlaps(_ other: TextHunk) -> Bool {
        max(base.lowerBound, other.base.lowerBound) < min(base.upperBound, other.base.upperBound) || isInside(other) || other.isInside(self)
    }

    /// Returns whether it comes before a hunk of the other side. An insertion comes before a replacement that begins there, and the older
    /// side's insertion before the newer side's.
    /// - Parameter isOlder: whether this is a hunk of the older side.
    func isBefore(_ other: TextHunk, isOlder: Bool) -> Bool {
        let (a, b) = (base, other.base)
        if a.lowerBound != b.lowerBound { return a.lowerBound < b.lowerBound }
        return a.upperBound != b.upperBound ? a.upperBound < b.upperBound : isOlder
    }
}

extension TextAlignment {
    /// Returns the hunks within a range of the base and a range of the side. Both ranges begin after a kept token, or at the beginning.
    func hunks(_ o: Range<Int>, _ s: Range<Int>) -> [TextHunk] {
        var found: [TextHunk] = [], i = o.lowerBound, j = s.lowerBound
        while true {
            let (p, q) = (i, j)
            while i < o.upperBound, !keptBase[i] { i += 1 }
            while j < s.upperBound, !keptSide[j] { j += 1 }
            if p < i || q < j { found.append(TextHunk(base: p..<i, side: q..<j)) }
            guard i < o.upperBound, j < s.upperBound else { return found }
            i += 1
            j += 1
        }
    }
}
