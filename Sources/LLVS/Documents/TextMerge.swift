/// Merges texts: what both kept, what each inserted, and what is left where both replaced the same words.
struct TextMerge {
    struct Overlap {
        var base: [UInt8]
        var newer: [UInt8]
        var older: [UInt8]
        var result: [UInt8]
    }

    struct Merged {
        var text: [UInt8]
        var overlaps: [Overlap]
        /// Whether a part was compared as one replacement, since it was too different.
        var isLimited: Bool
    }

    static func merge(
        _ o: UnsafeRawBufferPointer, _ x: UnsafeRawBufferPointer, _ y: UnsafeRawBufferPointer, unit: MergeRule.Unit, keepsBoth: Bool,
        newerWins: Bool, steps: inout Int, work: DocumentControl
    ) throws -> Merged {
        let tokens = TextTokens(unit, work: work)
        guard let style = LineEnds.common(LineEnds(o), LineEnds(x), LineEnds(y)) else {
            var merge = TextMerge(tokens, try [o, x, y].map(tokens.tokens(of:)), keepsBoth, newerWins)
            return try merge.run(&steps, work)
        }
        let texts = [o, x, y].map(LineEnds.unified)
        var merged = try texts[0].withUnsafeBytes { o in
            try texts[1].withUnsafeBytes { x in
                try texts[2].withUnsafeBytes { y in
                    var merge = TextMerge(tokens, try [o, x, y].map(tokens.tokens(of:)), keepsBoth, newerWins)
                    return try merge.run(&steps, work)
                }
            }
        }
        merged.text = LineEnds.write(merged.text, style)
        return merged
    }

    private let tokens: TextTokens
    private let base: [UInt32]
    private let newer: [UInt32]
    private let older: [UInt32]
    private let keepsBoth: Bool
    private let newerWins: Bool
    private var out: [UInt8] = []
    private var overlaps: [Overlap] = []

    private init(_ tokens: TextTokens, _ texts: [[UInt32]], _ keepsBoth: Bool, _ newerWins: Bool) {
        self.tokens = tokens
        (base, newer, older) = (texts[0], texts[1], texts[2])
        self.keepsBoth = keepsBoth
        self.newerWins = newerWins
    }

    private mutating func run(_ steps: inout Int, _ work: DocumentControl) throws -> Merged {
        let left = try TextAlignment(base, newer, count: tokens.count, steps: &steps, work: work)
        let right = try TextAlignment(base, older, count: tokens.count, steps: &steps, work: work)
        var from = (o: 0, x: 0, y: 0), i = 0, x = 0, y = 0
        while true {
            // Up to the next token that both kept, or the end.
            var start = i
            while i < base.count, !(left.keptBase[i] && right.keptBase[i]) {
                if left.keptBase[i] { while !left.keptSide[x] { x += 1 }; x += 1 }
                if right.keptBase[i] { while !right.keptSide[y] { y += 1 }; y += 1 }
                i += 1
            }
            while x < newer.count, !left.keptSide[x] { x += 1 }
            while y < older.count, !right.keptSide[y] { y += 1 }
            if from.x < x || from.y < y || start < i { chunk(from.o..<i, from.x..<x, from.y..<y, left, right) }
            guard i < base.count else { break }
            // What both kept goes on as it is.
            start = i
            while i < base.count, x < newer.count, y < older.count, left.keptBase[i], right.keptBase[i], left.keptSide[x], right.keptSide[y]
            {
                i += 1
                x += 1
                y += 1
            }
            tokens.write(base[start..<i], to: &out)
            from = (i, x, y)
        }
        try work.done(base.count + newer.count + older.count)
        return Merged(text: out, overlaps: overlaps, isLimited: left.isLimited || right.isLimited)
    }

    private mutating func chunk(_ o: Range<Int>, _ x: Range<Int>, _ y: Range<Int>, _ left: TextAlignment, _ right: TextAlignment) {
        if newer[x] == base[o] { return tokens.write(older[y], to: &out) }
        if older[y] == base[o] || newer[x] == older[y] { return tokens.write(newer[x], to: &out) }
        let bothDeleted = o.contains { !left.keptBase[$0] && !right.keptBase[$0] }
        guard bothDeleted, x.contains(where: { !left.keptSide[$0] }), y.contains(where: { !right.keptSide[$0] }) else {
            return weave(o, x, y, left, right)
        }
        let start = out.count
        if keepsBoth { weave(o, x, y, left, right) } else { tokens.write(newerWins ? newer[x] : older[y], to: &out) }
        let texts = (tokens.bytes(base[o]), tokens.bytes(newer[x]), tokens.bytes(older[y]))
        overlaps.append(Overlap(base: texts.0, newer: texts.1, older: texts.2, result: Array(out[start...])))
    }

    /// At each gap what the older side inserted, then what the newer did; what both begin or end with once.
    private mutating func weave(_ o: Range<Int>, _ x: Range<Int>, _ y: Range<Int>, _ left: TextAlignment, _ right: TextAlignment) {
        var i = x.lowerBound, j = y.lowerBound
        for place in o.lowerBound...o.upperBound {
            let isEnd = place == o.upperBound
            var inserted = (newer: i..<i, older: j..<j)
            if isEnd || left.keptBase[place] {
                let start = i
                while i < x.upperBound, !left.keptSide[i] { i += 1 }
                inserted.newer = start..<i
                if !isEnd { i += 1 }
            }
            if isEnd || right.keptBase[place] {
                let start = j
                while j < y.upperBound, !right.keptSide[j] { j += 1 }
                inserted.older = start..<j
                if !isEnd { j += 1 }
            }
            insert(inserted.newer, inserted.older)
        }
    }

    private mutating func insert(_ x: Range<Int>, _ y: Range<Int>) {
        var (i, p) = (x.lowerBound, x.upperBound), (j, q) = (y.lowerBound, y.upperBound)
        while i < p, j < q, newer[i] == older[j] { i += 1; j += 1 }
        while i < p, j < q, newer[p - 1] == older[q - 1] { p -= 1; q -= 1 }
        tokens.write(newer[x.lowerBound..<i], to: &out)
        tokens.write(older[j..<q], to: &out)
        tokens.write(newer[i..<p], to: &out)
        tokens.write(newer[p..<x.upperBound], to: &out)
    }
}

/// How the lines of a text end.
enum LineEnds: Equatable {
    /// There is one line.
    case none
    case lf, crlf, cr
    case mixed

    init(_ text: UnsafeRawBufferPointer) {
        if !Bytes.contains(0x0D, text) {
            self = Bytes.contains(0x0A, text) ? .lf : .none
            return
        }
        var style = LineEnds.none, i = 0
        while i < text.count {
            let byte = text[i]
            i += 1
            guard byte == 0x0A || byte == 0x0D else { continue }
            var found = byte == 0x0A ? LineEnds.lf : .cr
            if found == .cr, i < text.count, text[i] == 0x0A { found = .crlf; i += 1 }
            if style == .none { style = found } else if style != found { self = .mixed; return }
        }
        self = style
    }

    /// The style to write where each text has one style but not all the same; else nil: the texts are merged as they are.
    static func common(_ o: LineEnds, _ x: LineEnds, _ y: LineEnds) -> LineEnds? {
        let styles = [o, x, y].filter { $0 != .none }
        guard !styles.contains(.mixed), let first = styles.first, styles.contains(where: { $0 != first }) else { return nil }
        // Who has no line ends takes those of the other.
        if x == .none || y == .none { return x == .none ? y : x }
        return x == o ? y : x
    }

    static func unified(_ text: UnsafeRawBufferPointer) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(text.count)
        var i = 0
        while i < text.count {
            if text[i] == 0x0D {
                out.append(0x0A)
                if i + 1 < text.count, text[i + 1] == 0x0A { i += 1 }
            } else { out.append(text[i]) }
            i += 1
        }
        return out
    }

    static func write(_ text: [UInt8], _ style: LineEnds) -> [UInt8] {
        guard style == .crlf || style == .cr else { return text }
        var out: [UInt8] = []
        out.reserveCapacity(text.count + text.count / 16)
        for byte in text {
            if byte == 0x0A { out.append(0x0D) }
            if byte != 0x0A || style == .crlf { out.append(byte) }
        }
        return out
    }
}
