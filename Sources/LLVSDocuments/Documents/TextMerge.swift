/// Merges texts by lines, and a line that both sides changed by its words, if that is clean (docs/merging-texts.md, 1 to 6).
struct TextMerge {
    /// Lines that both sides changed: whole lines of all three texts and of the result.
    struct LineConflict: Equatable {
        var kind: ConflictRecord.Kind
        var base: [UInt8]
        var newer: [UInt8]
        var older: [UInt8]
        var result: [UInt8]
        /// The offset of `result` in the merged text, in bytes.
        var start: Int
    }

    struct Merged: Equatable {
        var text: [UInt8]
        var conflicts: [LineConflict]
        /// Whether an alignment met a limit.
        var isLimited: Bool
        /// Whether both sides changed the line ends differently, so that one style was picked.
        var isStylePicked = false
    }

    /// - Parameters:
    ///   - unit: with `.line`, no line is merged by its words.
    ///   - newerWins: which side's lines win if both sides wrote.
    ///   - undoes: lines that the newer side only removed stay removed, whatever the older side has there.
    ///   - steps: how many comparing may still take.
    static func merge(
        _ o: UnsafeRawBufferPointer, _ x: UnsafeRawBufferPointer, _ y: UnsafeRawBufferPointer, unit: SchemaRule.Unit, newerWins: Bool,
        undoes: Bool = false, steps: inout Int, work: DocumentControl
    ) throws -> Merged {
        let style = LineEnds.merged(LineEnds(o), LineEnds(x), LineEnds(y), newerWins: newerWins)
        let whole = try [o, x, y].map { try WholeLines($0, unifies: style != nil) }
        let hasEnd = TextLines.mergedLastEnd(TextLines.hasLastEnd(o), TextLines.hasLastEnd(x), TextLines.hasLastEnd(y))
        var merged = try whole[0].withBytes { o in
            try whole[1].withBytes { x in
                try whole[2].withBytes { y in try lines([o, x, y], unit, newerWins, undoes, &steps, work) }
            }
        }
        if !hasEnd { merged.endWithoutLineEnd() }
        guard let style else { return merged }
        merged.isStylePicked = style.isPicked
        if style.style == .crlf || style.style == .cr { try merged.write(in: style.style, work) }
        return merged
    }

    private static func lines(
        _ texts: [UnsafeRawBufferPointer], _ unit: SchemaRule.Unit, _ newerWins: Bool, _ undoes: Bool, _ steps: inout Int,
        _ work: DocumentControl
    ) throws -> Merged {
        var merge = try TextMerge(texts, unit, newerWins, undoes, steps, work)
        try merge.run()
        steps = merge.steps
        let (text, found, isLimited, tokens) = (merge.out, merge.found, merge.isLimited, merge.tokens)
        func part(_ side: [UInt32], _ range: Range<Int>) -> [UInt8] {
            var out: [UInt8] = []
            tokens.write(side[range], to: &out)
            return out
        }
        let conflicts = found.map { draft in
            LineConflict(
                kind: draft.kind, base: part(merge.base, draft.base), newer: part(merge.newer, draft.newer),
                older: part(merge.older, draft.older), result: Array(text[draft.result]), start: draft.result.lowerBound)
        }
        return Merged(text: text, conflicts: conflicts, isLimited: isLimited)
    }

    /// A conflict: ranges of lines of the three texts, and a range of bytes of the merged text.
    private struct FoundConflict {
        var kind: ConflictRecord.Kind
        var base: Range<Int>
        var newer: Range<Int>
        var older: Range<Int>
        var result: Range<Int>
    }

    private let texts: [UnsafeRawBufferPointer]
    private let unit: SchemaRule.Unit
    private let newerWins: Bool, undoes: Bool
    private let work: DocumentControl
    private let tokens: TextTokens
    private let base: [UInt32]
    private let newer: [UInt32]
    private let older: [UInt32]
    /// The offsets of the base's lines.
    private let places: TokenPlaces
    /// One more than the largest line of the base.
    private let known: Int
    private var steps: Int
    private var isLimited = false
    private var out: [UInt8] = []
    private var found: [FoundConflict] = []
    /// The offset in each of the three texts up to which it is merged.
    private var written = (o: 0, x: 0, y: 0)
    private var pairs = LinePairs()
    private var words = TextWords()
    /// For each number of a line, which sides have the line in the current place: 1 the newer, 2 the older, 3 both.
    private var marks: [UInt8] = []

    private init(
        _ texts: [UnsafeRawBufferPointer], _ unit: SchemaRule.Unit, _ newerWins: Bool, _ undoes: Bool, _ steps: Int,
        _ work: DocumentControl
    ) throws {
        (self.texts, self.unit, self.newerWins, self.undoes) = (texts, unit, newerWins, undoes)
        (self.steps, self.work) = (steps, work)
        tokens = TextTokens(.line, work: work)
        base = try tokens.tokens(of: texts[0])
        known = tokens.count
        places = try TokenPlaces(base, tokens)
        newer = try tokens.tokens(of: texts[1], like: (texts[0], places))
        older = try tokens.tokens(of: texts[2], like: (texts[0], places))
        tokens.close()
        // The result is seldom larger than the largest text.
        let size = texts.reduce(0) { max($0, $1.count) }
        try Memory.grow(&out, by: size + size / 64, "Merging a text")
    }

    // MARK: Places between lines that both kept (4.1)

    private mutating func run() throws {
        let left = try TextAlignment(base, newer, count: known, steps: &steps, work: work)
        let right = try TextAlignment(base, older, count: known, steps: &steps, work: work)
        isLimited = left.isLimited || right.isLimited
        var from = (o: 0, x: 0, y: 0), i = 0, x = 0, y = 0
        while true {
            // Go to the next line that both sides kept, or to the end.
            var start = i
            while i < base.count, !(left.keptBase[i] && right.keptBase[i]) {
                if left.keptBase[i] { while !left.keptSide[x] { x += 1 }; x += 1 }
                if right.keptBase[i] { while !right.keptSide[y] { y += 1 }; y += 1 }
                i += 1
            }
            while x < newer.count, !left.keptSide[x] { x += 1 }
            while y < older.count, !right.keptSide[y] { y += 1 }
            if from.x < x || from.y < y || start < i { try place(from.o..<i, from.x..<x, from.y..<y, left, right) }
            guard i < base.count else { break }
            // Copy the lines that both sides kept.
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
    }

    private mutating func place(
        _ o: Range<Int>, _ x: Range<Int>, _ y: Range<Int>, _ left: TextAlignment, _ right: TextAlignment
    ) throws {
        let ends = (o: written.o + tokens.size(base[o]), x: written.x + tokens.size(newer[x]), y: written.y + tokens.size(older[y]))
        let bytes = (x: written.x..<ends.x, y: written.y..<ends.y)
        written = ends
        if newer[x] == base[o] {
            out.append(contentsOf: UnsafeRawBufferPointer(rebasing: texts[2][bytes.y]))
        } else if older[y] == base[o] || newer[x] == older[y] {
            out.append(contentsOf: UnsafeRawBufferPointer(rebasing: texts[1][bytes.x]))
        } else {
            try anchors(o, x, y, left, right)
        }
    }

    // MARK: Lines that are paired on both sides (4.2, 4.3)

    private mutating func anchors(
        _ o: Range<Int>, _ x: Range<Int>, _ y: Range<Int>, _ left: TextAlignment, _ right: TextAlignment
    ) throws {
        if marks.isEmpty {
            try Memory.grow(&marks, by: tokens.count, "Merging a text")
            marks.append(contentsOf: repeatElement(0, count: tokens.count))
        }
        for line in newer[x] { marks[Int(line)] |= 1 }
        for line in older[y] { marks[Int(line)] |= 2 }
        let toX = try paired(o, newer, x, left), toY = try paired(o, older, y, right)
        for line in newer[x] { marks[Int(line)] = 0 }
        for line in older[y] { marks[Int(line)] = 0 }
        try work.done(4 * (x.count + y.count) + o.count)
        var from = (o: o.lowerBound, x: x.lowerBound, y: y.lowerBound)
        for i in o where toX[i - o.lowerBound] >= 0 && toY[i - o.lowerBound] >= 0 {
            let p = Int(toX[i - o.lowerBound]), q = Int(toY[i - o.lowerBound])
            try section(LineSides(o: from.o..<i, x: from.x..<p, y: from.y..<q), toX, toY, o.lowerBound)
            try line(i, p, q)
            from = (i + 1, p + 1, q + 1)
        }
        try section(LineSides(o: from.o..<o.upperBound, x: from.x..<x.upperBound, y: from.y..<y.upperBound), toX, toY, o.lowerBound)
    }

    /// Returns for each line of the base in a place the index of the side's line that is kept from it or paired with it, or -1.
    private mutating func paired(_ o: Range<Int>, _ side: [UInt32], _ s: Range<Int>, _ alignment: TextAlignment) throws -> [Int32] {
        try Memory.expect(4 * o.count, "Merging a text")
        var to = [Int32](repeating: -1, count: o.count), i = o.lowerBound, j = s.lowerBound
        let (tokens, texts, marks) = (self.tokens, self.base, self.marks)
        while true {
            let (p, q) = (i, j)
            while i < o.upperBound, !alignment.keptBase[i] { i += 1 }
            while j < s.upperBound, !alignment.keptSide[j] { j += 1 }
            if p < i, q < j {
                try pairs.find(
                    i - p, j - q, { tokens.line(texts[p + $0]) }, { tokens.line(side[q + $0]) },
                    isOnBoth: { marks[Int(side[q + $0])] == 3 }, steps: &steps, work: work
                ) { to[p + $0 - o.lowerBound] = Int32(truncatingIfNeeded: q + $1) }
            }
            guard i < o.upperBound, j < s.upperBound else { return to }
            to[i - o.lowerBound] = Int32(truncatingIfNeeded: j)
            i += 1
            j += 1
        }
    }

    /// Merges a line that both sides have (5).
    private mutating func line(_ i: Int, _ p: Int, _ q: Int) throws {
        let (o, x, y) = (base[i], newer[p], older[q]), start = out.count
        if x == o { return tokens.write(y, to: &out) }
        if y == o || x == y { return tokens.write(x, to: &out) }
        let lines = [o, x, y].map(tokens.line)
        let bodies = lines.map { UnsafeRawBufferPointer(rebasing: $0.dropLast(TextLines.endSize(of: $0))) }
        let ends = zip(lines, bodies).map { UnsafeRawBufferPointer(rebasing: $0[$1.count...]) }
        /// Returns the index of the text that wins, or nil if both sides changed it differently.
        func standing(_ all: [UnsafeRawBufferPointer]) -> Int? {
            if Bytes.equal(all[1], all[0]) { return 2 }
            return Bytes.equal(all[2], all[0]) || Bytes.equal(all[1], all[2]) ? 1 : nil
        }
        if let end = standing(ends) {
            var isClean = true
            if let body = standing(bodies) {
                out.append(contentsOf: bodies[body])
            } else if unit == .word {
                isClean = try words.merge(
                    bodies[0], bodies[1], bodies[2], to: &out, steps: &steps, isLimited: &isLimited, work: work)
            } else {
                isClean = false
            }
            if isClean { return out.append(contentsOf: ends[end]) }
        }
        tokens.write(newerWins ? x : y, to: &out)
        found.append(FoundConflict(kind: .overlap, base: i..<i + 1, newer: p..<p + 1, older: q..<q + 1, result: start..<out.count))
    }

    // MARK: Lines between those (4.4)

    /// Reads the hunks of a side between two anchors, one after another. Paired lines that differ count as replaced.
    private struct HunkReader {
        let base: [UInt32]
        let side: [UInt32]
        /// For each line of the base from `first` on, the side's line that is kept from it or paired with it, or -1.
        let to: [Int32]
        let first: Int
        private var left: (o: Range<Int>, s: Range<Int>)?
        /// The next hunk; nil after the last one.
        private(set) var next: TextHunk?

        init(_ base: [UInt32], _ o: Range<Int>, _ side: [UInt32], _ s: Range<Int>, _ to: [Int32], _ first: Int) {
            (self.base, self.side, self.to, self.first) = (base, side, to, first)
            left = (o, s)
            advance()
        }

        mutating func advance() {
            next = nil
            while next == nil, let (o, s) = left {
                var i = o.lowerBound
                while i < o.upperBound, to[i - first] < 0 || side[Int(to[i - first])] != base[i] { i += 1 }
                let isLast = i == o.upperBound, j = isLast ? s.upperBound : Int(to[i - first])
                left = isLast ? nil : (i + 1..<o.upperBound, j + 1..<s.upperBound)
                let hunk = TextHunk(base: o.lowerBound..<i, side: s.lowerBound..<j)
                if !hunk.base.isEmpty || !hunk.side.isEmpty { next = hunk }
            }
        }
    }

    /// Hunks that are merged together, and their result.
    private struct Cluster {
        var sides: LineSides
        var newer: [TextHunk]
        var older: [TextHunk]
        var result: ArraySlice<UInt32> = []
        var conflict: (kind: ConflictRecord.Kind, sides: LineSides, before: Int, count: Int)?

        /// Reads the next cluster. Returns nil after the last hunk.
        init?(_ x: inout HunkReader, _ y: inout HunkReader) {
            var newer: [TextHunk] = [], older: [TextHunk] = [], start = Int.max, end = 0
            /// Returns whether the next hunk is of the older side; nil after the last one.
            func isOlderNext() -> Bool? {
                guard let other = y.next else { return x.next == nil ? nil : false }
                return x.next.map { other.isBefore($0, isOlder: true) } ?? true
            }
            while let isOlder = isOlderNext(), let next = isOlder ? y.next : x.next {
                // The next hunk of a side can only meet the last hunk of the other side.
                let last = isOlder ? newer.last : older.last
                let meets = last.map { $0.overlaps(next) || $0.inserts && next.inserts && $0.base == next.base } ?? false
                guard meets || newer.isEmpty && older.isEmpty else { break }
                (start, end) = (min(start, next.base.lowerBound), max(end, next.base.upperBound))
                if isOlder { older.append(next); y.advance() } else { newer.append(next); x.advance() }
            }
            guard !newer.isEmpty || !older.isEmpty else { return nil }
            /// Returns the lines of a side in the cluster: its hunks, and the lines between them that it kept.
            func range(_ hunks: [TextHunk]) -> Range<Int> {
                guard let first = hunks.first, let last = hunks.last else { return 0..<0 }
                return first.side.lowerBound - (first.base.lowerBound - start)..<last.side.upperBound + (end - last.base.upperBound)
            }
            sides = LineSides(o: start..<end, x: range(newer), y: range(older))
            (self.newer, self.older) = (newer, older)
        }
    }

    private mutating func section(_ sides: LineSides, _ toX: [Int32], _ toY: [Int32], _ first: Int) throws {
        let o = base[sides.o], x = newer[sides.x], y = older[sides.y]
        if x == o { return tokens.write(y, to: &out) }
        if y == o || x == y { return tokens.write(x, to: &out) }
        var left = HunkReader(base, sides.o, newer, sides.x, toX, first), right = HunkReader(base, sides.o, older, sides.y, toY, first)
        func read(_ merge: inout TextMerge) throws -> Cluster? {
            guard var cluster = Cluster(&left, &right) else { return nil }
            let isPaired = cluster.sides.o.contains { toX[$0 - first] >= 0 || toY[$0 - first] >= 0 }
            try merge.resolve(&cluster, isPaired: isPaired)
            return cluster
        }
        var before: Cluster?, current = try read(&self)
        while let cluster = current {
            let next = try read(&self)
            if !isWritten(cluster, in: before), !isWritten(cluster, in: next) {
                if let conflict = cluster.conflict {
                    let start = out.count + tokens.size(cluster.result.prefix(conflict.before))
                    let size = tokens.size(cluster.result.dropFirst(conflict.before).prefix(conflict.count)), sides = conflict.sides
                    found.append(
                        FoundConflict(kind: conflict.kind, base: sides.o, newer: sides.x, older: sides.y, result: start..<start + size))
                }
                tokens.write(cluster.result, to: &out)
            }
            (before, current) = (cluster, next)
        }
        try work.done(4 * (o.count + x.count + y.count))
    }

    /// Returns whether a cluster is an insertion with a word that the other side also wrote, in place of the touching lines (4.4).
    private func isWritten(_ cluster: Cluster, in other: Cluster?) -> Bool {
        guard let other, cluster.newer.count + cluster.older.count == 1, cluster.sides.o.isEmpty, cluster.result.contains(where: hasWord)
        else { return false }
        let isNewer = !cluster.newer.isEmpty, new = cluster.result, place = cluster.sides.o.lowerBound
        let side = isNewer ? older : newer
        return (isNewer ? other.older : other.newer).contains { replaced in
            guard !replaced.inserts, place == replaced.base.lowerBound || place == replaced.base.upperBound else { return false }
            let by = side[replaced.side]
            return by.prefix(new.count) == new && other.result.prefix(new.count) == new
                || by.suffix(new.count) == new && other.result.suffix(new.count) == new
        }
    }

    private func hasWord(_ line: UInt32) -> Bool { TextLines.hasWord(tokens.line(line)) }

    // MARK: Results of clusters (4.5 to 4.7)

    private mutating func resolve(_ cluster: inout Cluster, isPaired: Bool) throws {
        let sides = cluster.sides
        if cluster.older.isEmpty { cluster.result = newer[sides.x]; return }
        if cluster.newer.isEmpty { cluster.result = older[sides.y]; return }
        if sides.o.isEmpty { return try insert(&cluster, sides) }
        if newer[sides.x] == older[sides.y] { cluster.result = newer[sides.x]; return }
        let removes = (x: cluster.newer.allSatisfy(\.removes), y: cluster.older.allSatisfy(\.removes))
        if removes.x || removes.y {
            // If both sides only remove, nothing is left.
            guard !removes.x || !removes.y else { return }
            let (edits, side) = removes.x ? (cluster.older, older) : (cluster.newer, newer)
            if !removes.x || !undoes { cluster.result = left(of: edits, side, sides.o.upperBound)[...] }
            cluster.conflict = (.deleteEdit, sides, 0, cluster.result.count)
            return
        }
        try bothWrote(&cluster, isPaired: isPaired)
    }

    /// Returns the lines that stay of a side's hunks if the other side removed everything: the new lines of each hunk, and the base's lines
    /// without a word right behind it (4.6).
    private func left(of edits: [TextHunk], _ side: [UInt32], _ end: Int) -> [UInt32] {
        var lines: [UInt32] = []
        for (i, edit) in zip(edits.indices, edits) {
            lines += side[edit.side]
            let next = i + 1 < edits.endIndex ? edits[i + 1].base.lowerBound : end
            lines += base[edit.base.upperBound..<next].prefix { !hasWord($0) }
        }
        return lines
    }

    /// Merges two insertions at one place (4.5).
    /// - Parameter sides: the cluster without the lines that 4.7 took.
    private mutating func insert(_ cluster: inout Cluster, _ sides: LineSides) throws {
        let mine = newer[sides.x], others = older[sides.y]
        // Align from the smaller to the larger, so that the pairs do not depend on which side is newer.
        let isOlderSmaller = compare(others, mine) < 0
        let (smaller, larger) = isOlderSmaller ? (others, mine) : (mine, others)
        var numbers: [UInt32: UInt32] = [:]
        let from = smaller.map { line -> UInt32 in
            if let known = numbers[line] { return known }
            let next = UInt32(truncatingIfNeeded: numbers.count)
            numbers[line] = next
            return next
        }
        // All lines that are not in `smaller` have the same number.
        let none = UInt32(truncatingIfNeeded: numbers.count), to = larger.map { numbers[$0] ?? none }
        let alignment = try TextAlignment(from, to, count: numbers.count, steps: &steps, work: work)
        isLimited = isLimited || alignment.isLimited
        let kept = from.indices.filter { alignment.keptBase[$0] }, keptInLarger = to.indices.filter { alignment.keptSide[$0] }
        if kept.count == others.count { cluster.result = mine; return }
        if kept.count == mine.count { cluster.result = others; return }
        func words(_ lines: ArraySlice<UInt32>) -> Int { lines.reduce(0) { $0 + (hasWord($1) ? 1 : 0) } }
        let common = kept.reduce(0) { $0 + (hasWord(smaller[smaller.startIndex + $1]) ? 1 : 0) }
        guard 2 * common > min(words(mine), words(others)) else { cluster.result = (others + mine)[...]; return }
        var lines: [UInt32] = [], i = mine.startIndex, j = others.startIndex
        for (one, other) in isOlderSmaller ? zip(keptInLarger, kept) : zip(kept, keptInLarger) {
            let (p, q) = (mine.startIndex + one, others.startIndex + other)
            lines += others[j..<q]
            lines += mine[i...p]
            (i, j) = (p + 1, q + 1)
        }
        lines += others[j...]
        lines += mine[i...]
        cluster.result = lines[...]
        cluster.conflict = (.overlap, LineSides(o: sides.o.lowerBound..<sides.o.lowerBound, x: sides.x, y: sides.y), 0, lines.count)
    }

    /// Compares two runs of lines in code point order, which is the order of their bytes.
    private func compare(_ a: ArraySlice<UInt32>, _ b: ArraySlice<UInt32>) -> Int {
        // (Equal lines have equal numbers, so a common prefix need not be compared.)
        let common = zip(a, b).prefix { $0 == $1 }.count
        var parts = (a: [UInt8](), b: [UInt8]())
        tokens.write(a.dropFirst(common), to: &parts.a)
        tokens.write(b.dropFirst(common), to: &parts.b)
        return Bytes.compare(parts.a, parts.b)
    }

    /// Merges a cluster in which both sides wrote lines (4.7).
    private mutating func bothWrote(_ cluster: inout Cluster, isPaired: Bool) throws {
        let sides = cluster.sides
        var first = 0, last = 0
        if !isPaired {
            let most = min(sides.o.count, sides.x.count, sides.y.count)
            func isShared(_ x: Int, _ y: Int) -> Bool { newer[x] == older[y] && hasWord(newer[x]) }
            while first < most, isShared(sides.x.lowerBound + first, sides.y.lowerBound + first) { first += 1 }
            while first + last < most, isShared(sides.x.upperBound - 1 - last, sides.y.upperBound - 1 - last) { last += 1 }
        }
        func left(_ range: Range<Int>) -> Range<Int> { range.lowerBound + first..<range.upperBound - last }
        let rest = LineSides(o: left(sides.o), x: left(sides.x), y: left(sides.y))
        let (o, x, y) = (base[rest.o], newer[rest.x], older[rest.y])
        if x == o || y == o {
            cluster.result = x == o ? y : x
        } else if o.isEmpty {
            try insert(&cluster, rest)
        } else {
            let isDeleted = x.isEmpty || y.isEmpty
            cluster.result = isDeleted ? (x.isEmpty && !undoes ? y : x) : newerWins ? x : y
            cluster.conflict = (isDeleted ? .deleteEdit : .overlap, rest, 0, cluster.result.count)
        }
        guard first + last > 0 else { return }
        let around = newer[sides.x]
        cluster.conflict?.before = first
        cluster.result = (around.prefix(first) + cluster.result + around.suffix(last))[...]
    }
}

/// Ranges of lines of the base, the newer and the older side.
struct LineSides {
    var o: Range<Int>
    var x: Range<Int>
    var y: Range<Int>
}

extension TextMerge.Merged {
    /// Removes the last line's end (2.3), also from the parts of a conflict at the end, unless a part would be a blank line alone.
    fileprivate mutating func endWithoutLineEnd() {
        for i in conflicts.indices.reversed() where conflicts[i].start + conflicts[i].result.count == text.count {
            let parts = [conflicts[i].base, conflicts[i].newer, conflicts[i].older, conflicts[i].result]
            let shorter = parts.map(TextLines.withoutLastEnd)
            if zip(parts, shorter).contains(where: { !$0.isEmpty && $1.isEmpty }) { continue }
            conflicts[i] = TextMerge.LineConflict(
                kind: conflicts[i].kind, base: shorter[0], newer: shorter[1], older: shorter[2], result: shorter[3],
                start: conflicts[i].start)
        }
        TextLines.removeLastEnd(from: &text)
    }

    /// Writes the line ends in a style. The conflicts must be in the order of the text.
    fileprivate mutating func write(in style: LineEnds, _ work: DocumentControl) throws {
        var at = 0, start = 0
        for i in conflicts.indices {
            let part = conflicts[i]
            start += style.size(of: text[at..<min(part.start, text.count)])
            at = min(part.start, text.count)
            conflicts[i] = TextMerge.LineConflict(
                kind: part.kind, base: style.write(part.base), newer: style.write(part.newer), older: style.write(part.older),
                result: style.write(part.result), start: start)
        }
        text = style.write(text)
        try work.done(2 * text.count)
    }
}
