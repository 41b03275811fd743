/// Which tokens of a text a side kept: the common prefix and suffix, tokens that are there once on both sides, and what a
/// shortest edit script keeps between those.
struct TextAlignment {
    /// Steps of comparing that one value may take.
    static let stepLimit = 1 << 26
    /// Edits between two anchors.
    static let distanceLimit = 1_024

    let base: [UInt32]
    let side: [UInt32]
    private(set) var keptBase: [Bool]
    private(set) var keptSide: [Bool]
    /// Whether a part was too different to be compared.
    private(set) var isLimited = false
    private let work: DocumentControl

    struct Part {
        var base: Range<Int>
        var side: Range<Int>
        var size: Int { base.count + side.count }
    }

    /// - Parameters:
    ///   - count: one more than the largest token.
    ///   - steps: how many may still be taken.
    init(_ base: [UInt32], _ side: [UInt32], count: Int, steps: inout Int, work: DocumentControl) throws {
        self.base = base
        self.side = side
        self.work = work
        keptBase = [Bool](repeating: false, count: base.count)
        keptSide = [Bool](repeating: false, count: side.count)
        var parts = try anchor(count)
        parts.sort { $0.base.lowerBound < $1.base.lowerBound }
        var script = EditScript()
        for part in parts {
            if try !script.find(base, part.base, side, part.side, steps: &steps, work: work) { isLimited = true; continue }
            script.keep { keptBase[$0] = true; keptSide[$1] = true }
        }
        try slide()
    }

    // MARK: Anchors

    private struct Count {
        var base: Int32 = 0
        var side: Int32 = 0
        /// Sums of places, as far as they go into 32 bits: the place, where there is one.
        var basePlaces: UInt32 = 0
        var sidePlaces: UInt32 = 0
    }

    /// Finds what is kept for certain; the parts that are left have no token that is there once on both sides.
    ///
    /// The largest part of each is gone on with at once, with what is counted already: so no token is counted
    /// more than a logarithmic number of times.
    private mutating func anchor(_ count: Int) throws -> [Part] {
        try Memory.expect(count * MemoryLayout<Count>.stride, "Comparing texts")
        // By hand: these are looked at for every token.
        let counts = UnsafeMutablePointer<Count>.allocate(capacity: count)
        counts.initialize(repeating: Count(), count: count)
        defer { counts.deallocate() }
        var candidates: [UInt32] = []
        var open = [Part(base: 0..<base.count, side: 0..<side.count)], left: [Part] = []

        func drop(_ part: Part) {
            for i in part.base {
                let token = Int(base[i])
                counts[token].base -= 1
                counts[token].basePlaces &-= UInt32(truncatingIfNeeded: i)
                if counts[token].base == 1, counts[token].side == 1 { candidates.append(base[i]) }
            }
            for i in part.side {
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
                if isCounted {
                    drop(Part(base: part.base.lowerBound..<inner.base.lowerBound, side: part.side.lowerBound..<inner.side.lowerBound))
                    drop(Part(base: inner.base.upperBound..<part.base.upperBound, side: inner.side.upperBound..<part.side.upperBound))
                }
                part = inner
                try work.done(1 + part.base.count + part.side.count)
                guard !part.base.isEmpty, !part.side.isEmpty else { break }
                if !isCounted {
                    for i in part.base {
                        let token = Int(base[i])
                        counts[token].base += 1
                        counts[token].basePlaces &+= UInt32(truncatingIfNeeded: i)
                    }
                    for i in part.side {
                        let token = Int(side[i])
                        counts[token].side += 1
                        counts[token].sidePlaces &+= UInt32(truncatingIfNeeded: i)
                    }
                    candidates.removeAll(keepingCapacity: true)
                    for i in part.side where counts[Int(side[i])].side == 1 && counts[Int(side[i])].base == 1 { candidates.append(side[i]) }
                    isCounted = true
                } else {
                    candidates.removeAll { counts[Int($0)].base != 1 || counts[Int($0)].side != 1 }
                    candidates.sort { counts[Int($0)].sidePlaces < counts[Int($1)].sidePlaces }
                    for i in candidates.indices.dropFirst().reversed() where candidates[i] == candidates[i - 1] { candidates.remove(at: i) }
                }
                guard !candidates.isEmpty else { left.append(part); break }
                let members = try IncreasingRun.members(candidates.map { Int32(truncatingIfNeeded: counts[Int($0)].basePlaces) }, work)
                let anchors = candidates.indices.filter { members[$0] }.map { i in
                    let count = counts[Int(candidates[i])]
                    return (base: Int(count.basePlaces), side: Int(count.sidePlaces))
                }
                candidates.removeAll(keepingCapacity: true)
                for anchor in anchors {
                    keptBase[anchor.base] = true
                    keptSide[anchor.side] = true
                }
                let parts = Self.parts(of: part, between: anchors)
                let largest = parts.indices.max { parts[$0].size < parts[$1].size } ?? 0
                if 2 * parts[largest].size <= part.size, count <= part.size {
                    // All are small: each is counted anew.
                    counts.update(repeating: Count(), count: count)
                    open += parts.filter { !$0.base.isEmpty && !$0.side.isEmpty }
                    isCounted = false
                    break
                }
                for anchor in anchors { drop(Part(base: anchor.base..<anchor.base + 1, side: anchor.side..<anchor.side + 1)) }
                for (i, between) in parts.enumerated() where i != largest {
                    drop(between)
                    if !between.base.isEmpty, !between.side.isEmpty { open.append(between) }
                }
                part = parts[largest]
            }
            if isCounted { drop(part) }
        }
        return left
    }

    private static func parts(of part: Part, between anchors: [(base: Int, side: Int)]) -> [Part] {
        var parts: [Part] = [], from = (base: part.base.lowerBound, side: part.side.lowerBound)
        parts.reserveCapacity(anchors.count + 1)
        for anchor in anchors + [(part.base.upperBound, part.side.upperBound)] {
            parts.append(Part(base: from.base..<anchor.base, side: from.side..<anchor.side))
            from = (anchor.base + 1, anchor.side + 1)
        }
        return parts
    }

    private mutating func trim(_ part: Part) -> Part {
        var (i, j) = (part.base.lowerBound, part.side.lowerBound)
        var (p, q) = (part.base.upperBound, part.side.upperBound)
        while i < p, j < q, base[i] == side[j] { keptBase[i] = true; keptSide[j] = true; i += 1; j += 1 }
        while i < p, j < q, base[p - 1] == side[q - 1] { p -= 1; q -= 1; keptBase[p] = true; keptSide[q] = true }
        return Part(base: i..<p, side: j..<q)
    }

    // MARK: Sliding

    /// Moves what was inserted where nothing was deleted as far to the right as it can go, the last insertion first; it takes along
    /// insertions that it meets.
    private mutating func slide() throws {
        var j = side.count - 1, partner = base.count
        while j >= 0 {
            if keptSide[j] {
                partner -= 1
                while !keptBase[partner] { partner -= 1 }
                j -= 1
                continue
            }
            var end = j + 1
            while j >= 0, !keptSide[j] { j -= 1 }
            // The base's token before the insertion, and the one behind it.
            var before = partner - 1, first = j + 1
            guard partner < base.count, before < 0 || keptBase[before], (before >= 0) == (j >= 0) else { continue }
            while end < side.count, before + 1 < base.count, keptBase[before + 1], side[first] == side[end] {
                keptSide[first] = true
                keptSide[end] = false
                before += 1
                first += 1
                end += 1
                while end < side.count, !keptSide[end] { end += 1 }
            }
        }
        try work.done(base.count + side.count)
    }
}
