/// Merges texts: what both kept, what each inserted, and what is left where both replaced the same words.
struct TextMerge {
    struct Overlap {
        var base: [UInt8]
        var newer: [UInt8]
        var older: [UInt8]
        var result: [UInt8]
        /// Where in the text the result begins.
        var start: Int
    }

    struct Merged {
        var text: [UInt8]
        var overlaps: [Overlap]
        /// Whether a part was compared as one replacement, since it was too different.
        var isLimited: Bool
        /// Whether both sides wrote all line ends otherwise, each in its own way: those of one of them stand.
        var areEndsPicked = false
    }

    static func merge(
        _ o: UnsafeRawBufferPointer, _ x: UnsafeRawBufferPointer, _ y: UnsafeRawBufferPointer, unit: MergeRule.Unit, keepsBoth: Bool,
        newerWins: Bool, steps: inout Int, work: DocumentControl
    ) throws -> Merged {
        guard let ends = LineEnds.common(LineEnds(o), LineEnds(x), LineEnds(y), newerWins: newerWins) else {
            return try compare([o, x, y], unit, keepsBoth, newerWins, &steps, work)
        }
        let texts = [o, x, y].map(LineEnds.unified)
        var merged = try texts[0].withUnsafeBytes { o in
            try texts[1].withUnsafeBytes { x in
                try texts[2].withUnsafeBytes { y in try compare([o, x, y], unit, keepsBoth, newerWins, &steps, work) }
            }
        }
        merged.areEndsPicked = ends.arePicked
        let unified = merged.text
        merged.text = LineEnds.write(merged.text, ends.style)
        // As they are in the text, where what stands is looked for. They are in the order of the text.
        var at = 0, start = 0
        for i in merged.overlaps.indices {
            let part = merged.overlaps[i]
            func written(_ text: [UInt8]) -> [UInt8] { LineEnds.write(text, ends.style) }
            if part.start < at { (at, start) = (0, 0) }
            start += written(Array(unified[at..<part.start])).count
            try work.done(1 + (part.start - at) >> 5)
            at = part.start
            merged.overlaps[i] = Overlap(
                base: written(part.base), newer: written(part.newer), older: written(part.older), result: written(part.result),
                start: start)
        }
        return merged
    }

    private static func compare(
        _ texts: [UnsafeRawBufferPointer], _ unit: MergeRule.Unit, _ keepsBoth: Bool, _ newerWins: Bool, _ steps: inout Int,
        _ work: DocumentControl
    ) throws -> Merged {
        // What was replaced on both sides is copied when all that was needed to find it is gone.
        let (text, overlaps, isLimited) = try places(texts, unit, keepsBoth, newerWins, &steps, work)
        return Merged(
            text: text,
            overlaps: overlaps.map { overlap in
                func part(_ text: Int, _ range: Range<Int>) -> [UInt8] { Array(texts[text][range]) }
                let parts = (part(0, overlap.base), part(1, overlap.newer), part(2, overlap.older))
                let result = keepsBoth ? Array(text[overlap.result]) : newerWins ? parts.1 : parts.2
                return Overlap(base: parts.0, newer: parts.1, older: parts.2, result: result, start: overlap.result.lowerBound)
            }, isLimited: isLimited)
    }

    private static func places(
        _ texts: [UnsafeRawBufferPointer], _ unit: MergeRule.Unit, _ keepsBoth: Bool, _ newerWins: Bool, _ steps: inout Int,
        _ work: DocumentControl
    ) throws -> (text: [UInt8], overlaps: [Place], isLimited: Bool) {
        var merge = try TextMerge(texts, unit, keepsBoth, newerWins, work)
        return try merge.run(&steps, work)
    }

    /// What both sides replaced: where it is in the three texts and in what comes out, in bytes.
    private struct Place {
        var base: Range<Int>
        var newer: Range<Int>
        var older: Range<Int>
        var result: Range<Int>
    }

    private let texts: [UnsafeRawBufferPointer]
    private let tokens: TextTokens
    private let base: [UInt32]
    private let newer: [UInt32]
    private let older: [UInt32]
    /// Where the base's tokens begin.
    private let places: TokenPlaces
    /// One more than the largest token of the base.
    private let known: Int
    private let keepsBoth: Bool
    private let newerWins: Bool
    private var out: [UInt8] = []
    private var overlaps: [Place] = []
    /// In bytes, how far each of the three texts is written.
    private var written = (o: 0, x: 0, y: 0)

    private init(
        _ texts: [UnsafeRawBufferPointer], _ unit: MergeRule.Unit, _ keepsBoth: Bool, _ newerWins: Bool, _ work: DocumentControl
    ) throws {
        self.texts = texts
        tokens = TextTokens(unit, work: work)
        base = try tokens.tokens(of: texts[0])
        known = tokens.count
        places = try TokenPlaces(base, tokens)
        newer = try tokens.tokens(of: texts[1], like: (texts[0], places))
        older = try tokens.tokens(of: texts[2], like: (texts[0], places))
        tokens.close()
        self.keepsBoth = keepsBoth
        self.newerWins = newerWins
        // Room for a text as large as the largest: seldom is there more.
        let size = texts.reduce(0) { max($0, $1.count) }
        try Memory.grow(&out, by: size + size / 64, "Merging a text")
    }

    private mutating func run(_ steps: inout Int, _ work: DocumentControl) throws -> (text: [UInt8], overlaps: [Place], isLimited: Bool) {
        let left = try TextAlignment(base, newer, count: known, steps: &steps, work: work)
        let right = try TextAlignment(base, older, count: known, steps: &steps, work: work)
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
            while true {
                let kept = min(
                    left.keptBase.run(from: i), right.keptBase.run(from: i), left.keptSide.run(from: x), right.keptSide.run(from: y))
                if kept == 0 { break }
                i += kept
                x += kept
                y += kept
            }
            let size = places.start(of: i) - places.start(of: start)
            out.append(contentsOf: UnsafeRawBufferPointer(rebasing: texts[0][written.o..<written.o + size]))
            written = (written.o + size, written.x + size, written.y + size)
            from = (i, x, y)
        }
        try work.done(base.count + newer.count + older.count)
        return (out, overlaps, left.isLimited || right.isLimited)
    }

    private mutating func chunk(_ o: Range<Int>, _ x: Range<Int>, _ y: Range<Int>, _ left: TextAlignment, _ right: TextAlignment) {
        let ends = (o: written.o + tokens.size(base[o]), x: written.x + tokens.size(newer[x]), y: written.y + tokens.size(older[y]))
        let bytes = (o: written.o..<ends.o, x: written.x..<ends.x, y: written.y..<ends.y), start = out.count
        written = ends
        func write(_ text: Int, _ range: Range<Int>) { out.append(contentsOf: UnsafeRawBufferPointer(rebasing: texts[text][range])) }
        if newer[x] == base[o] { return write(2, bytes.y) }
        if older[y] == base[o] || newer[x] == older[y] { return write(1, bytes.x) }
        let bothDeleted = o.contains { !left.keptBase[$0] && !right.keptBase[$0] }
        guard bothDeleted, x.contains(where: { !left.keptSide[$0] }), y.contains(where: { !right.keptSide[$0] }) else {
            return weave(o, x, y, left, right)
        }
        if keepsBoth { weave(o, x, y, left, right) } else if newerWins { write(1, bytes.x) } else { write(2, bytes.y) }
        overlaps.append(Place(base: bytes.o, newer: bytes.x, older: bytes.y, result: start..<out.count))
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

    /// The style to write where each text has one style but not all the same, and whether it was picked since both sides changed it; else
    /// nil: the texts are merged as they are.
    static func common(_ o: LineEnds, _ x: LineEnds, _ y: LineEnds, newerWins: Bool) -> (style: LineEnds, arePicked: Bool)? {
        let styles = [o, x, y].filter { $0 != .none }
        guard !styles.contains(.mixed), let first = styles.first, styles.contains(where: { $0 != first }) else { return nil }
        // Who has no line ends takes those of the other.
        if x == .none || y == .none { return (x == .none ? y : x, false) }
        if x == o || y == o || x == y { return (x == o ? y : x, false) }
        return (newerWins ? x : y, true)
    }

    static func unified(_ text: UnsafeRawBufferPointer) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(text.count)
        var i = 0
        while i < text.count {
            if text[i] == 0x0D {
                out.append(0x0A)
                if i + 1 < text.count, text[i + 1] == 0x0A { i += 1 }
            } else {
                out.append(text[i])
            }
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
