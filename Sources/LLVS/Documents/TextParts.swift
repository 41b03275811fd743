/// What a text has in the places of parts of another one, which it came from.
struct TextParts {
    /// Where the tokens begin, and the last one ends, in bytes.
    private let base: [UInt32]
    private let side: [UInt32]
    /// Of each token of the base which of the side's it is; `none`: it is gone.
    private var kept: [UInt32]
    private static let none = UInt32.max

    /// Nil where there are too many tokens.
    /// - Parameter steps: how many comparing may still take.
    init?(
        _ base: UnsafeRawBufferPointer, _ side: UnsafeRawBufferPointer, unit: MergeRule.Unit, steps: inout Int, work: DocumentControl
    ) throws {
        let tokens = TextTokens(unit, work: work), left: [UInt32], right: [UInt32], known: Int
        do {
            left = try tokens.tokens(of: base)
            known = tokens.count
            right = try tokens.tokens(of: side)
        } catch is TokenTable.TooManyTokens { return nil }
        let alignment = try TextAlignment(left, right, count: known, steps: &steps, work: work)
        func starts(_ all: [UInt32]) throws -> [UInt32] {
            var starts: [UInt32] = [], at = 0
            try Memory.grow(&starts, by: all.count + 1, "Comparing texts")
            for token in all {
                starts.append(UInt32(truncatingIfNeeded: at))
                at += tokens.size(token)
            }
            starts.append(UInt32(truncatingIfNeeded: at))
            return starts
        }
        (self.base, self.side) = (try starts(left), try starts(right))
        kept = []
        try Memory.grow(&kept, by: left.count, "Comparing texts")
        var j = 0
        for i in left.indices {
            guard alignment.keptBase[i] else { kept.append(Self.none); continue }
            while j < right.count, !alignment.keptSide[j] { j += 1 }
            kept.append(UInt32(truncatingIfNeeded: j))
            j += 1
        }
        try work.done(left.count + right.count)
    }

    /// What stands between the tokens before and behind a part that were kept; nil where the part is not of whole tokens.
    func inPlace(of part: Range<Int>) -> Range<Int>? {
        guard var first = token(at: part.lowerBound), var end = token(at: part.upperBound) else { return nil }
        while first > 0, kept[first - 1] == Self.none { first -= 1 }
        while end < kept.count, kept[end] == Self.none { end += 1 }
        let from = first > 0 ? Int(kept[first - 1]) + 1 : 0, to = end < kept.count ? Int(kept[end]) : side.count - 1
        return from <= to ? Int(side[from])..<Int(side[to]) : nil
    }

    /// The token that begins at a place, or one more than the last where the text ends there.
    private func token(at place: Int) -> Int? {
        var low = 0, high = base.count
        while low < high {
            let middle = (low + high) / 2
            if Int(base[middle]) < place { low = middle + 1 } else { high = middle }
        }
        return low < base.count && Int(base[low]) == place ? low : nil
    }
}

extension TextTokens {
    /// Whether a range of a text is of whole tokens.
    func areWhole(_ range: Range<Int>, of text: UnsafeRawBufferPointer) throws -> Bool {
        var at = 0
        for bound in [range.lowerBound, range.upperBound] {
            let before = at
            while at < min(bound, text.count) { at = end(of: text, at) }
            try work.done(at - before)
            guard at == bound else { return false }
        }
        return true
    }

    /// Where a part stands in a text as whole tokens, when it stands there so once.
    func onlyPlace(of part: [UInt8], in text: UnsafeRawBufferPointer) throws -> Range<Int>? {
        var found: Range<Int>?, isOnly = true, start = 0, end = 0
        try work.done(text.count)
        Bytes.forEachPlace(of: part, in: text) { at in
            // Tokens are walked over twice: by where a part would begin, and by where it would end.
            while start < at { start = self.end(of: text, start) }
            while end < at + part.count { end = self.end(of: text, end) }
            guard start == at, end == at + part.count else { return true }
            isOnly = found == nil
            found = at..<end
            return isOnly
        }
        return isOnly ? found : nil
    }
}
