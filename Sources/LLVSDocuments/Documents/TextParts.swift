/// Compares a text with a later one, to find lines of the former in the latter (docs/merging-texts.md, 6).
struct TextParts {
    /// The offset of each line of the former text, and of its end.
    private let starts: [UInt32]
    /// The size of its last line's end in bytes.
    private let lastEnd: Int
    private let ends: LineEnds
    private let base: [UInt32]
    /// The later text: its lines as numbers, and their offsets.
    private let side: [UInt32]
    private let sideStarts: [UInt32]
    private let sideEnds: LineEnds
    private let sideHasEnd: Bool
    /// The later text in the form in which it is merged, and the offsets of its lines there.
    private let lines: [UInt8]
    private let lineStarts: [UInt32]
    /// For each line of the former text its number in the later text, or `none` if it is gone.
    private var kept: [UInt32]
    private static let none = UInt32.max

    private var isOfOneKind: Bool { ends != .mixed && sideEnds != .mixed }

    /// Returns nil if there are too many lines.
    /// - Parameter steps: how many comparing may still take.
    init?(_ base: UnsafeRawBufferPointer, _ side: UnsafeRawBufferPointer, steps: inout Int, work: DocumentControl) throws {
        (ends, sideEnds) = (LineEnds(base), LineEnds(side))
        starts = try TextLines.starts(of: base, work)
        sideStarts = try TextLines.starts(of: side, work)
        lastEnd = TextLines.endSize(of: base)
        sideHasEnd = TextLines.hasLastEnd(side) ?? false
        let unifies = ends != .mixed && sideEnds != .mixed
        let whole = try (WholeLines(base, unifies: unifies), WholeLines(side, unifies: unifies))
        let tokens = TextTokens(.line, work: work), left: [UInt32], right: [UInt32], known: Int
        do {
            (left, known, right) = try whole.0.withBytes { a in
                let left = try tokens.tokens(of: a), known = tokens.count
                return try (left, known, whole.1.withBytes { try tokens.tokens(of: $0) })
            }
        } catch is TokenTable.TooManyTokens { return nil }
        (lines, lineStarts) = try whole.1.withBytes { bytes in
            try Memory.expect(bytes.count, "Comparing texts")
            return (Array(bytes), try TextLines.starts(of: bytes, work))
        }
        (self.base, self.side) = (left, right)
        let alignment = try TextAlignment(left, right, count: known, steps: &steps, work: work)
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

    /// Returns the lines of the former text that a part of it has, or nil if it is not of whole lines. As records do, the part may leave
    /// out the last line's end, or have an end that the text does not have.
    private func lines(of part: Range<Int>) -> Range<Int>? {
        let size = Int(starts[starts.count - 1])
        var end = part.upperBound
        if end < size, size - end <= 2, line(at: end) == nil, size - end == 1 ? lastEnd > 0 : lastEnd == 2 { end = size }
        if end > size, end <= size + 2, size > 0, lastEnd == 0 { end = size }
        guard let first = line(at: part.lowerBound), let last = line(at: end), first <= last else { return nil }
        return first..<last
    }

    /// Returns the line that begins at an offset, or one more than the last line if the text ends there.
    private func line(at place: Int) -> Int? {
        var low = 0, high = starts.count
        while low < high {
            let middle = (low + high) / 2
            if Int(starts[middle]) < place { low = middle + 1 } else { high = middle }
        }
        return low < starts.count && Int(starts[low]) == place ? low : nil
    }

    /// Returns the lines of the later text that replaced a part: those between the nearest lines before and after it that were kept.
    private func region(_ part: Range<Int>) -> Range<Int>? {
        var (first, end) = (part.lowerBound, part.upperBound)
        while first > 0, kept[first - 1] == Self.none { first -= 1 }
        while end < kept.count, kept[end] == Self.none { end += 1 }
        let from = first > 0 ? Int(kept[first - 1]) + 1 : 0, to = end < kept.count ? Int(kept[end]) : side.count
        return from <= to ? from..<to : nil
    }

    /// Returns a part of a text as records have it. If the part reaches beyond the text, it ends with a line end that the text does not
    /// have.
    static func told(_ part: Range<Int>, of text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard part.lowerBound >= 0, part.lowerBound <= text.count else { return nil }
        let own = Array(text[part.lowerBound..<min(part.upperBound, text.count)])
        guard part.upperBound > text.count else { return own }
        let style = LineEnds(text)
        return own + (style == .mixed ? LineEnds.lf : style).write([0x0A])
    }

    /// Returns what the later text has in place of a part, in the style of the former text, and its offset in the later text. Returns nil
    /// if the part is not of whole lines.
    func inPlace(of part: Range<Int>, isWithoutEnd: Bool) -> (bytes: [UInt8], from: Int)? {
        guard let wanted = lines(of: part), let found = region(wanted) else { return nil }
        var bytes = Array(lines[Int(lineStarts[found.lowerBound])..<Int(lineStarts[found.upperBound])])
        if isOfOneKind { bytes = ends.write(bytes) }
        if isWithoutEnd {
            let shorter = TextLines.withoutLastEnd(bytes)
            if !shorter.isEmpty { bytes = shorter }
        }
        return (bytes, Int(sideStarts[found.lowerBound]))
    }

    /// Returns the lines of the later text that are the lines of a part, searched between the lines around the part that were kept. Returns
    /// nil if they are not there, or more than once.
    func onlyPlace(of part: Range<Int>, _ work: DocumentControl) throws -> Range<Int>? {
        guard let wanted = lines(of: part), !wanted.isEmpty, let within = region(wanted) else { return nil }
        let size = MemoryLayout<UInt32>.stride
        var found: Int?, isOnly = true
        try work.done(wanted.count + within.count)
        let lines = base[wanted].withUnsafeBytes { Array($0) }
        side[within].withUnsafeBytes { all in
            Bytes.forEachPlace(of: lines, in: all) { at in
                guard at % size == 0 else { return true }
                isOnly = found == nil
                found = within.lowerBound + at / size
                return isOnly
            }
        }
        return isOnly ? found.map { $0..<$0 + wanted.count } : nil
    }

    /// Returns the later text with other lines in place of some of its own. It keeps its style and its last end.
    func replacing(_ place: Range<Int>, with chosen: [UInt8]) throws -> [UInt8] {
        let new = try chosen.withUnsafeBytes { try WholeLines($0, unifies: isOfOneKind).withBytes { Array($0) } }
        var text = Array(lines[..<Int(lineStarts[place.lowerBound])]) + new + lines[Int(lineStarts[place.upperBound])...]
        if !sideHasEnd { TextLines.removeLastEnd(from: &text) }
        return isOfOneKind ? (sideEnds != .none ? sideEnds : ends != .none ? ends : .lf).write(text) : text
    }
}
