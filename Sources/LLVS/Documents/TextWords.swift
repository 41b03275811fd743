/// Merges a line that both sides have and both changed, each otherwise, by its tokens (texts.md, 5). It does so only where that is clean:
/// else nothing comes of it, and a whole line is to stand.
struct TextWords {
    /// A token of the result, and where it stands in each side that has it there; -1: it does not.
    private struct Token {
        var number: UInt32
        var newer: Int
        var older: Int

        func standsBefore(_ other: Token) -> Bool {
            newer >= 0 && other.newer == newer + 1 || older >= 0 && other.older == older + 1
        }
    }

    private let tokens: TextTokens
    private let base: [UInt32]
    private let newer: [UInt32]
    private let older: [UInt32]
    private var made: [Token] = []

    /// Appends what comes of lines without their ends; false where that is not clean, and then nothing is appended.
    /// - Parameters:
    ///   - steps: how many comparing may still take.
    ///   - isLimited: becomes true where an alignment met a limit.
    static func merge(
        _ o: UnsafeRawBufferPointer, _ x: UnsafeRawBufferPointer, _ y: UnsafeRawBufferPointer, to out: inout [UInt8], steps: inout Int,
        isLimited: inout Bool, work: DocumentControl
    ) throws -> Bool {
        let tokens = TextTokens(.word, work: work)
        let base = try tokens.tokens(of: o), known = tokens.count
        let newer = try tokens.tokens(of: x), older = try tokens.tokens(of: y)
        tokens.close()
        let left = try TextAlignment(base, newer, count: known, steps: &steps, work: work)
        let right = try TextAlignment(base, older, count: known, steps: &steps, work: work)
        if left.isLimited || right.isLimited {
            isLimited = true
            return false
        }
        var merge = TextWords(tokens: tokens, base: base, newer: newer, older: older)
        guard merge.run(left, right) else { return false }
        try work.done(merge.made.count)
        for token in merge.made { tokens.write(token.number, to: &out) }
        return true
    }

    private init(tokens: TextTokens, base: [UInt32], newer: [UInt32], older: [UInt32]) {
        self.tokens = tokens
        self.base = base
        self.newer = newer
        self.older = older
        made.reserveCapacity(max(newer.count, older.count))
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
            guard one.standsBefore(next) || tokens.isSpace(one.number) || tokens.isSpace(next.number) else { return false }
        }
        return true
    }

    /// A place between tokens that both sides kept; false where it is not clean by (a) to (c).
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

    /// The hunks that are not written, since one of the other side stands for them; nil where some are not clean together.
    private func dropped(_ mine: [TextHunk], _ others: [TextHunk]) -> (newer: Set<Int>, older: Set<Int>)? {
        var dropped = (newer: Set<Int>(), older: Set<Int>()), first = 0
        for (i, one) in mine.enumerated() {
            // Those that end before it touch none of the next ones either.
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
                    if Self.borders(replaced, inserted), !inserted.allSatisfy(tokens.isSpace) {
                        if one.inserts { dropped.newer.insert(i) } else { dropped.older.insert(j) }
                    }
                }
                j += 1
            }
        }
        return dropped
    }

    /// (c), of two insertions at one place.
    private func ofInsertions(
        _ mine: ArraySlice<UInt32>, _ other: ArraySlice<UInt32>, _ i: Int, _ j: Int, _ dropped: inout (newer: Set<Int>, older: Set<Int>)
    ) -> Bool {
        if Self.borders(other, mine) {
            dropped.newer.insert(i)
        } else if Self.borders(mine, other) {
            dropped.older.insert(j)
        } else {
            func hasSpace(_ before: ArraySlice<UInt32>, _ behind: ArraySlice<UInt32>) -> Bool {
                before.last.map(tokens.isSpace) ?? false || behind.first.map(tokens.isSpace) ?? false
            }
            return hasSpace(other, mine) && hasSpace(mine, other)
        }
        return true
    }

    /// Whether one begins or ends with the other, which is not empty.
    private static func borders(_ whole: ArraySlice<UInt32>, _ part: ArraySlice<UInt32>) -> Bool {
        !part.isEmpty && part.count <= whole.count && (whole.prefix(part.count) == part || whole.suffix(part.count) == part)
    }
}
