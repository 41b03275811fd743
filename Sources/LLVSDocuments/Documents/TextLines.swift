/// Finds the lines of a text, their ends and their words (docs/merging-texts.md, 2.1, 2.3 and 2.4).
enum TextLines {
    private static let lineFeed: UInt8 = 0x0A, carriageReturn: UInt8 = 0x0D

    static func isEnd(_ byte: UInt8) -> Bool { byte == lineFeed || byte == carriageReturn }

    /// Returns where the line that begins at `start` ends: after its `\n`, its `\r\n`, or its `\r` that no `\n` follows.
    @inline(__always)
    static func end(of text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        guard let base = text.baseAddress else { return start }
        var i = start
        // Eight bytes at a time: a byte of `found` has its high bit if it is an end. (Only the lowest one is sure.)
        while i + 8 <= text.count {
            let word = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: i, as: UInt64.self))
            let found = zeros(word ^ 0x0A0A_0A0A_0A0A_0A0A) | zeros(word ^ 0x0D0D_0D0D_0D0D_0D0D)
            if found != 0 {
                i += found.trailingZeroBitCount >> 3
                break
            }
            i += 8
        }
        while i < text.count {
            let byte = text[i]
            i += 1
            if byte == lineFeed { return i }
            if byte == carriageReturn { return i < text.count && text[i] == lineFeed ? i + 1 : i }
        }
        return i
    }

    /// Returns a word in which the lowest byte that is zero in `word` has its high bit.
    @inline(__always)
    private static func zeros(_ word: UInt64) -> UInt64 { (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080 }

    /// Returns the size of a line's end in bytes: 0, 1 or 2.
    static func endSize(of line: UnsafeRawBufferPointer) -> Int {
        guard let last = line.last, isEnd(last) else { return 0 }
        return last == lineFeed && line.count > 1 && line[line.count - 2] == carriageReturn ? 2 : 1
    }

    /// Returns whether the last line has an end. An empty text has no say: nil.
    static func hasLastEnd(_ text: UnsafeRawBufferPointer) -> Bool? { text.last.map(isEnd) }

    /// Returns whether the merge of three texts has its last end (2.3).
    static func mergedLastEnd(_ o: Bool?, _ x: Bool?, _ y: Bool?) -> Bool {
        guard let x, let y, x != y else { return x ?? y ?? false }
        return o.map { x != $0 ? x : y } ?? true
    }

    /// Removes the end of the last line.
    static func removeLastEnd(from text: inout [UInt8]) { text.removeLast(text.withUnsafeBytes { endSize(of: $0) }) }

    /// Returns the text without the end of its last line.
    static func withoutLastEnd(_ text: [UInt8]) -> [UInt8] {
        var text = text
        removeLastEnd(from: &text)
        return text
    }

    /// Returns the offset of each line, and of the end of the text.
    static func starts(of text: UnsafeRawBufferPointer, _ work: DocumentControl) throws -> [UInt32] {
        var starts: [UInt32] = [0], at = 0
        while at < text.count {
            at = end(of: text, at)
            starts.append(UInt32(truncatingIfNeeded: at))
        }
        try work.done(text.count)
        return starts
    }

    // MARK: Words

    /// Returns whether a line has a word.
    static func hasWord(_ line: UnsafeRawBufferPointer) -> Bool {
        var i = 0
        while i < line.count {
            let scalar = TextScalars.decode(line, i)
            if isOfWord(scalar.scalar) { return true }
            i += scalar.size
        }
        return false
    }

    @inline(__always)
    private static func isOfWord(_ scalar: UInt32) -> Bool {
        scalar < 0x80 ? TextScalars.isWord(UInt8(truncatingIfNeeded: scalar)) : scalar != TextScalars.wideSpace
    }

    /// Calls `body` with the range of each word.
    @inline(__always)
    static func forEachWord(in line: UnsafeRawBufferPointer, _ body: (Range<Int>) -> Void) {
        var i = 0, start = -1
        while i < line.count {
            let (scalar, size) = TextScalars.decode(line, i)
            let standsAlone = TextScalars.standsAlone(scalar)
            if start >= 0, standsAlone || !isOfWord(scalar) {
                body(start..<i)
                start = -1
            }
            if standsAlone { body(i..<i + size) } else if start < 0, isOfWord(scalar) { start = i }
            i += size
        }
        if start >= 0 { body(start..<i) }
    }
}

/// The one kind of line end that a text has (2.2).
enum LineEnds: Equatable {
    /// The text has no line end.
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

    /// Merges the line ends of three texts. Returns nil if one of them mixes kinds.
    /// - Returns: the style to write, and whether it was picked because both sides changed it differently.
    static func merged(_ o: LineEnds, _ x: LineEnds, _ y: LineEnds, newerWins: Bool) -> (style: LineEnds, isPicked: Bool)? {
        guard o != .mixed, x != .mixed, y != .mixed else { return nil }
        if x == .none || y == .none { return ([x, y, o].first { $0 != .none } ?? .lf, false) }
        if x == o || y == o || x == y { return (x == o ? y : x, false) }
        return (newerWins ? x : y, true)
    }

    /// Returns the text with each line end written as `\n`.
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

    /// Returns a text whose lines end in `\n` with its line ends written in this style.
    func write(_ text: [UInt8]) -> [UInt8] {
        guard self == .crlf || self == .cr else { return text }
        var out: [UInt8] = []
        out.reserveCapacity(text.count + text.count / 16)
        for byte in text {
            if byte == 0x0A { out.append(0x0D) }
            if byte != 0x0A || self == .crlf { out.append(byte) }
        }
        return out
    }

    /// Returns the size in bytes that `write` gives.
    func size(of text: ArraySlice<UInt8>) -> Int {
        self == .crlf ? text.reduce(text.count) { $0 + ($1 == 0x0A ? 1 : 0) } : text.count
    }
}

/// A text in the form in which it is merged: its last line has an end, and if each of the texts has one style, its lines end in `\n`.
struct WholeLines {
    private let given: UnsafeRawBufferPointer
    /// Nil if `given` has that form already.
    private let made: [UInt8]?

    init(_ text: UnsafeRawBufferPointer, unifies: Bool) throws {
        given = text
        let isChanged = unifies && Bytes.contains(0x0D, text), lacksEnd = TextLines.hasLastEnd(text) == false
        guard isChanged || lacksEnd else { made = nil; return }
        try Memory.expect(text.count + 1, "Merging a text")
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count + 1)
        if isChanged { bytes = LineEnds.unified(text) } else { bytes.append(contentsOf: text) }
        if lacksEnd { bytes.append(0x0A) }
        made = bytes
    }

    func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        if let made { return try made.withUnsafeBytes(body) }
        return try body(given)
    }
}
