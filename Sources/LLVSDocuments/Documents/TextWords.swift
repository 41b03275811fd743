/// Merges a line that both sides changed differently by its tokens, if that is clean (docs/merging-texts.md, 5). Its buffers are reused
/// from one line to the next.
struct TextWords {
    /// A token of the result, and its index in each side that it comes from; -1 if it does not come from that side.
    private struct Token {
        var number: UInt32
        var newer: Int
        var older: Int

        func standsBefore(_ other: Token) -> Bool {
            newer >= 0 && other.newer == newer + 1 || older >= 0 && other.older == older + 1
        }
    }

    /// The most bytes of three lines that `numbers` numbers; for more, `tokens` is faster.
    private static let short = 4_096

    private var numbers = WordNumbers()
    /// The tokens of long lines. Nil for short lines.
    private var tokens: TextTokens?
    private var base: [UInt32] = []
    private var newer: [UInt32] = []
    private var older: [UInt32] = []
    private var made: [Token] = []

    /// Merges lines without their ends, and appends the result if the merge is clean.
    /// - Parameters:
    ///   - steps: how many comparing may still take.
    ///   - isLimited: becomes true if an alignment met a limit.
    /// - Returns: whether it is clean. If it is not, nothing is appended.
    mutating func merge(
        _ o: UnsafeRawBufferPointer, _ x: UnsafeRawBufferPointer, _ y: UnsafeRawBufferPointer, to out: inout [UInt8], steps: inout Int,
        isLimited: inout Bool, work: DocumentControl
    ) throws -> Bool {
        let known = try cut(o, x, y, work)
        let left = try TextAlignment(base, newer, count: known, steps: &steps, work: work)
        let right = try TextAlignment(base, older, count: known, steps: &steps, work: work)
        if left.isLimited || right.isLimited {
            isLimited = true
            return false
        }
        made.removeAll(keepingCapacity: true)
        guard run(left, right) else { return false }
        try work.done(made.count)
        for token in made { write(token.number, to: &out) }
        return true
    }

    /// Numbers the tokens of three lines.
    /// - Returns: one more than the largest token of the base.
    private mutating func cut(
        _ o: UnsafeRawBufferPointer, _ x: UnsafeRawBufferPointer, _ y: UnsafeRawBufferPointer, _ work: DocumentControl
    ) throws -> Int {
        let size = o.count + x.count + y.count
        if size > Self.short {
            let tokens = TextTokens(.word, work: work)
            self.tokens = tokens
            base = try tokens.tokens(of: o)
            let known = tokens.count, places = try TokenPlaces(base, tokens)
            newer = try tokens.tokens(of: x, like: (o, places))
            older = try tokens.tokens(of: y, like: (o, places))
            tokens.close()
            return known
        }
        tokens = nil
        numbers.begin(size)
        try work.done(size)
        func number(_ line: UnsafeRawBufferPointer, _ into: inout [UInt32], _ numbers: inout WordNumbers) {
            into.removeAll(keepingCapacity: true)
            var at = 0
            while at < line.count {
                let end = TextTokens.tokenEnd(line, at)
                into.append(numbers.number(UnsafeRawBufferPointer(rebasing: line[at..<end])))
                at = end
            }
        }
        number(o, &base, &numbers)
        let known = numbers.words.count
        number(x, &newer, &numbers)
        number(y, &older, &numbers)
        return known
    }

    private func isSpace(_ number: UInt32) -> Bool {
        tokens?.isSpace(number) ?? TextScalars.isSpace(TextScalars.decode(numbers.words[Int(number)], 0).scalar)
    }

    private func write(_ number: UInt32, to out: inout [UInt8]) {
        if let tokens { tokens.write(number, to: &out) } else { out.append(contentsOf: numbers.words[Int(number)]) }
    }

    private mutating func run(_ left: TextAlignment, _ right: TextAlignment) -> Bool {
        var from = (o: 0, x: 0, y: 0), x = 0, y = 0
        for i in 0...base.count {
            let isEnd = i == base.count
            if isEnd || left.keptBase[i] { while x < newer.count, !left.keptSide[x] { x += 1 } }
            if isEnd || right.keptBase[i] { while y < older.count, !right.keptSide[y] { y += 1 } }
            if isEnd || left.keptBase[i] && right.keptBase[i] {
                guard place(from.o..<i, from.x..<x, from.y..<y, left, right) else { return false }
                if !isEnd { made.append(Token(number: base[i], newer: x, older: y)) }
                from = (i + 1, x + 1, y + 1)
            }
            if !isEnd, left.keptBase[i] { x += 1 }
            if !isEnd, right.keptBase[i] { y += 1 }
        }
        // (d)
        for (one, next) in zip(made, made.dropFirst()) {
            guard one.standsBefore(next) || isSpace(one.number) || isSpace(next.number) else { return false }
        }
        return true
    }

    /// Merges a place between tokens that both sides kept. Returns false if it is not clean by (a) to (c).
    private mutating func place(
        _ o: Range<Int>, _ x: Range<Int>, _ y: Range<Int>, _ left: TextAlignment, _ right: TextAlignment
    ) -> Bool {
        if o.isEmpty, x.isEmpty, y.isEmpty { return true }
        if newer[x] == older[y] {
            for k in 0..<x.count { made.append(Token(number: newer[x.lowerBound + k], newer: x.lowerBound + k, older: y.lowerBound + k)) }
            return true
        }
        if newer[x] == base[o] { appendOlder(y); return true }
        if older[y] == base[o] { appendNewer(x); return true }
        let mine = left.hunks(o, x), others = right.hunks(o, y)
        guard let dropped = dropped(mine, others) else { return false }
        var i = 0, j = 0
        while i < mine.count || j < others.count {
            if j < others.count, i == mine.count || others[j].isBefore(mine[i], isOlder: true) {
                if !dropped.older.contains(j) { appendOlder(others[j].side) }
                j += 1
            } else {
                if !dropped.newer.contains(i) { appendNewer(mine[i].side) }
                i += 1
            }
        }
        return true
    }

    private mutating func appendNewer(_ range: Range<Int>) {
        for k in range { made.append(Token(number: newer[k], newer: k, older: -1)) }
    }

    private mutating func appendOlder(_ range: Range<Int>) {
        for k in range { made.append(Token(number: older[k], newer: -1, older: k)) }
    }

    /// Returns the indexes of the hunks that are not written because a hunk of the other side writes the same. Returns nil if two hunks are
    /// not clean together.
    private func dropped(_ mine: [TextHunk], _ others: [TextHunk]) -> (newer: Set<Int>, older: Set<Int>)? {
        var dropped = (newer: Set<Int>(), older: Set<Int>()), first = 0
        for (i, one) in mine.enumerated() {
            // Hunks that end before this one touch no later hunk either.
            while first < others.count, others[first].base.upperBound < one.base.lowerBound { first += 1 }
            var j = first
            while j < others.count, others[j].base.lowerBound <= one.base.upperBound {
                let other = others[j]
                if one.overlaps(other) {
                    // (a)
                    guard one.base == other.base, newer[one.side] == older[other.side] else { return nil }
                    dropped.newer.insert(i)
                } else if one.inserts, other.inserts {
                    guard ofInsertions(newer[one.side], older[other.side], i, j, &dropped) else { return nil }
                } else if one.inserts || other.inserts {
                    let (inserted, replaced) = one.inserts ? (newer[one.side], older[other.side]) : (older[other.side], newer[one.side])
                    // (b)
                    if replaced.isEmpty { return nil }
                    if Self.borders(replaced, inserted), !inserted.allSatisfy(isSpace) {
                        if one.inserts { dropped.newer.insert(i) } else { dropped.older.insert(j) }
                    }
                }
                j += 1
            }
        }
        return dropped
    }

    /// Applies (c) to two insertions at one place.
    private func ofInsertions(
        _ mine: ArraySlice<UInt32>, _ other: ArraySlice<UInt32>, _ i: Int, _ j: Int, _ dropped: inout (newer: Set<Int>, older: Set<Int>)
    ) -> Bool {
        if Self.borders(other, mine) {
            dropped.newer.insert(i)
        } else if Self.borders(mine, other) {
            dropped.older.insert(j)
        } else {
            func hasSpace(_ before: ArraySlice<UInt32>, _ behind: ArraySlice<UInt32>) -> Bool {
                before.last.map(isSpace) ?? false || behind.first.map(isSpace) ?? false
            }
            return hasSpace(other, mine) && hasSpace(mine, other)
        }
        return true
    }

    /// Returns whether `whole` begins or ends with `part`, which is not empty.
    private static func borders(_ whole: ArraySlice<UInt32>, _ part: ArraySlice<UInt32>) -> Bool {
        !part.isEmpty && part.count <= whole.count && (whole.prefix(part.count) == part || whole.suffix(part.count) == part)
    }
}
