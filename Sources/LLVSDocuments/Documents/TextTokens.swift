/// Numbers the lines of texts, or the tokens of lines: the same number for equal bytes. What a line or a token is belongs to merge
/// semantics 1 and never changes (docs/merging-texts.md, 2.1 and 2.5). No Unicode database is used.
final class TextTokens {
    /// The units into which a text is cut.
    enum Unit { case line, word }

    /// One more than the largest of the fixed numbers. The number of an ASCII character is its code.
    fileprivate static let firstNumber = 128

    private let unit: Unit
    let work: DocumentControl
    private var table = TokenTable()

    /// The ASCII characters.
    private let ascii: UnsafeRawBufferPointer

    init(_ unit: Unit, work: DocumentControl) {
        self.unit = unit
        self.work = work
        let ascii = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.firstNumber, alignment: 1)
        ascii.copyBytes(from: 0..<UInt8(Self.firstNumber))
        self.ascii = UnsafeRawBufferPointer(ascii)
    }

    deinit {
        table.release()
        ascii.deallocate()
    }

    /// One more than the largest number.
    var count: Int { table.count }

    fileprivate var known: TokenTable { table }

    /// Returns the size of a token in bytes.
    @inline(__always)
    func size(_ number: UInt32) -> Int { table.size(number) }

    func size(_ tokens: ArraySlice<UInt32>) -> Int {
        let table = table
        return tokens.reduce(0) { $0 + table.size($1) }
    }

    /// Returns the offset after the first occurrence of a token in the first text.
    func first(_ token: UInt32) -> Int? { table.first(token) }

    /// Appends the bytes of the tokens.
    func write(_ tokens: ArraySlice<UInt32>, to out: inout [UInt8]) { for token in tokens { write(token, to: &out) } }

    func write(_ token: UInt32, to out: inout [UInt8]) {
        if token < Self.firstNumber {
            out.append(UInt8(truncatingIfNeeded: token))
        } else {
            out.append(contentsOf: bytes(token))
        }
    }

    /// Releases the lookup by bytes. No more texts may be cut.
    func close() { table.close() }

    /// Returns the tokens of a text in UTF-8. Its bytes must stay valid while this object is used.
    /// - Parameter like: another text and its tokens, from which the tokens of equal parts are copied.
    func tokens(
        of text: UnsafeRawBufferPointer, like other: (text: UnsafeRawBufferPointer, places: TokenPlaces)? = nil
    ) throws -> [UInt32] {
        guard let base = text.baseAddress else { return [] }
        var tokens: [UInt32] = []
        // A typical number; a text of shorter tokens needs more room.
        let likely = text.count / (unit == .word ? 4 : 32)
        try Memory.expect(4 * likely, "Merging a text")
        tokens.reserveCapacity(likely)
        // This copy grows, which moves the memory that both copies refer to. `self.table` must not be read until it is stored back.
        var table = table
        defer { self.table = table }
        table.begin(base)
        var start = 0, checked = 0, beside = other.map { KnownTokens($0.text, $0.places) }
        while start < text.count {
            if beside?.isAlike == true {
                start += beside?.copy(text, start, &tokens, table) ?? 0
                guard start < text.count else { break }
            }
            let end = end(of: text, start)
            let token = end - start == 1 && text[start] < 0x80 ? UInt32(text[start]) : try table.number(base, start, end - start, work)
            tokens.append(token)
            start = end
            beside?.find(token, text, start, table)
            if start - checked >= 1 << 18 {
                try work.done(start - checked)
                checked = start
            }
        }
        try work.done(start - checked)
        return tokens
    }

    // MARK: Where tokens end

    /// Returns where the token that begins at an offset ends.
    @inline(__always)
    func end(of text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        unit == .line ? TextLines.end(of: text, start) : Self.tokenEnd(text, start)
    }

    /// Returns where the token of a line that begins at `start` ends.
    @inline(__always)
    static func tokenEnd(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        let first = TextScalars.decode(text, start)
        var i = start + first.size
        if TextScalars.standsAlone(first.scalar) {
            while i < text.count, text[i] >= 0x80 {
                let next = TextScalars.decode(text, i)
                guard TextScalars.attaches(next.scalar) else { break }
                i += next.size
            }
            return i
        }
        let isSpace = TextScalars.isSpace(first.scalar)
        while i < text.count {
            let next = TextScalars.decode(text, i)
            guard TextScalars.isSpace(next.scalar) == isSpace, !TextScalars.standsAlone(next.scalar) else { break }
            i += next.size
        }
        return i
    }

    /// Returns whether a token of a line is a run of white space.
    func isSpace(_ number: UInt32) -> Bool {
        if number < Self.firstNumber { return TextScalars.isSpace(number) }
        guard let start = table.start(number) else { return false }
        let bytes = UnsafeRawBufferPointer(start: start, count: table.size(number))
        return TextScalars.isSpace(TextScalars.decode(bytes, 0).scalar)
    }

    /// Returns the bytes of a token that is not a single ASCII character.
    private func bytes(_ number: UInt32) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: table.start(number), count: table.size(number))
    }

    /// Returns the bytes of any token. They are valid while this object and the texts are.
    func line(_ number: UInt32) -> UnsafeRawBufferPointer {
        number < Self.firstNumber ? UnsafeRawBufferPointer(rebasing: ascii[Int(number)...Int(number)]) : bytes(number)
    }
}

/// The table of tokens. (Unsafe memory, since it is accessed for every token.)
struct TokenTable {
    /// Thrown if there are more different tokens than numbers.
    struct TooManyTokens: Error {}

    /// Where the bytes of a token occur first. The token's number decides in which text that is.
    private struct Entry {
        var start: UInt32
        var count: UInt32
    }

    private let seed = ValueDigest.seed
    /// In blocks, so that growing copies no entries.
    private var blocks: UnsafeMutablePointer<UnsafeMutablePointer<Entry>>?
    private var blockCount = 0
    private static let blockBits = 12
    private(set) var count = TextTokens.firstNumber
    /// A number and four bits of the hash each. Texts with more than 2^28 tokens are not merged.
    private var slots: UnsafeMutablePointer<UInt32>?
    private var slotCount = 0
    private static let numberMask: UInt32 = 1 << 28 - 1
    /// The addresses of the texts, and the first new numbers of the second and the third text.
    private var texts: (UnsafeRawPointer?, UnsafeRawPointer?, UnsafeRawPointer?)
    private var second = UInt32.max
    private var third = UInt32.max

    /// Begins another text. There are at most three.
    mutating func begin(_ text: UnsafeRawPointer) {
        let next = UInt32(truncatingIfNeeded: count)
        if texts.0 == nil {
            texts.0 = text
        } else if texts.1 == nil {
            (texts.1, second) = (text, next)
        } else {
            (texts.2, third) = (text, next)
        }
    }

    @inline(__always)
    private func entry(_ number: UInt32) -> Entry {
        let place = Int(number) - TextTokens.firstNumber
        return blocks.map { $0[place >> Self.blockBits][place & (1 << Self.blockBits - 1)] } ?? Entry(start: 0, count: 0)
    }

    /// Returns the bytes of a token that is not a single ASCII character.
    @inline(__always)
    func start(_ number: UInt32) -> UnsafeRawPointer? {
        (number < second ? texts.0 : number < third ? texts.1 : texts.2).map { $0 + Int(entry(number).start) }
    }

    @inline(__always)
    func size(_ number: UInt32) -> Int { number < TextTokens.firstNumber ? 1 : Int(entry(number).count) }

    /// Returns the offset after the first occurrence of a token in the first text.
    func first(_ token: UInt32) -> Int? {
        guard token >= TextTokens.firstNumber, token < second else { return nil }
        return Int(entry(token).start) + size(token)
    }

    mutating func close() {
        slots?.deallocate()
        (slots, slotCount) = (nil, 0)
    }

    /// Releases all memory.
    func release() {
        slots?.deallocate()
        for i in 0..<blockCount { blocks?[i].deallocate() }
        free(blocks)
    }

    @inline(__always)
    mutating func number(_ base: UnsafeRawPointer, _ start: Int, _ size: Int, _ work: DocumentControl) throws -> UInt32 {
        if 4 * (count - TextTokens.firstNumber) >= 3 * slotCount { try growSlots(work) }
        guard let slots else { return 0 }
        let bytes = base + start, hash = ValueDigest.of(word: bytes, size, seed)
        let mask = slotCount - 1, tag = UInt32(truncatingIfNeeded: hash >> 60) << 28
        var i = Int(truncatingIfNeeded: hash >> 28) & mask
        while slots[i] != .max {
            let known = slots[i] & Self.numberMask
            if slots[i] & ~Self.numberMask == tag, self.size(known) == size, let other = self.start(known),
                Self.areSame(other, bytes, size)
            {
                return known
            }
            i = (i + 1) & mask
        }
        guard count <= Int(Self.numberMask) else { throw TooManyTokens() }
        let number = UInt32(truncatingIfNeeded: count)
        slots[i] = number | tag
        try add(Entry(start: UInt32(truncatingIfNeeded: start), count: UInt32(truncatingIfNeeded: size)))
        return number
    }

    private mutating func add(_ entry: Entry) throws {
        let place = count - TextTokens.firstNumber
        if place >> Self.blockBits == blockCount {
            try Memory.check()
            let size = MemoryLayout<UnsafeMutablePointer<Entry>>.stride
            // Grow at powers of two.
            if blockCount & (blockCount - 1) == 0 {
                guard let more = realloc(blocks, max(1, 2 * blockCount) * size) else {
                    throw StoreError(.outOfMemory, "Merging a text needs memory for \(count) words. Free some, and try again.")
                }
                blocks = more.bindMemory(to: UnsafeMutablePointer<Entry>.self, capacity: max(1, 2 * blockCount))
            }
            blocks?[blockCount] = .allocate(capacity: 1 << Self.blockBits)
            blockCount += 1
        }
        if let blocks { (blocks[place >> Self.blockBits] + place & (1 << Self.blockBits - 1)).initialize(to: entry) }
        count += 1
    }

    /// The same as memcmp, without a call for short words.
    @inline(__always)
    private static func areSame(_ a: UnsafeRawPointer, _ b: UnsafeRawPointer, _ size: Int) -> Bool {
        func eight(_ p: UnsafeRawPointer, _ at: Int) -> UInt64 { p.loadUnaligned(fromByteOffset: at, as: UInt64.self) }
        func four(_ p: UnsafeRawPointer, _ at: Int) -> UInt32 { p.loadUnaligned(fromByteOffset: at, as: UInt32.self) }
        func two(_ p: UnsafeRawPointer, _ at: Int) -> UInt16 { p.loadUnaligned(fromByteOffset: at, as: UInt16.self) }
        if size > 16 || size < 2 { return memcmp(a, b, size) == 0 }
        if size >= 8 { return eight(a, 0) == eight(b, 0) && eight(a, size - 8) == eight(b, size - 8) }
        if size >= 4 { return four(a, 0) == four(b, 0) && four(a, size - 4) == four(b, size - 4) }
        return two(a, 0) == two(b, 0) && two(a, size - 2) == two(b, size - 2)
    }

    /// Doubles the table. The old one is released first, so that both never exist at once.
    private mutating func growSlots(_ work: DocumentControl) throws {
        let wanted = max(1_024, 2 * slotCount), mask = wanted - 1
        close()
        try Memory.expect(wanted * MemoryLayout<UInt32>.stride, "Merging a text")
        let more = UnsafeMutablePointer<UInt32>.allocate(capacity: wanted)
        more.initialize(repeating: .max, count: wanted)
        for number in UInt32(TextTokens.firstNumber)..<UInt32(truncatingIfNeeded: count) {
            guard let start = start(number) else { continue }
            let hash = ValueDigest.of(word: start, size(number), seed)
            var i = Int(truncatingIfNeeded: hash >> 28) & mask
            while more[i] != .max { i = (i + 1) & mask }
            more[i] = number | UInt32(truncatingIfNeeded: hash >> 60) << 28
        }
        (slots, slotCount) = (more, wanted)
        try work.done(4 * count)
    }
}

/// The offsets of a text's tokens: stored for every 32nd token, and computed from the sizes for the others.
struct TokenPlaces {
    private static let bits = 5

    let tokens: [UInt32]
    private let table: TextTokens
    /// The offset of every 32nd token.
    private let noted: [UInt32]

    init(_ tokens: [UInt32], _ all: TextTokens) throws {
        let table = all.known
        self.tokens = tokens
        self.table = all
        var noted: [UInt32] = [], at = 0
        try Memory.grow(&noted, by: tokens.count >> Self.bits + 1, "Merging a text")
        for (i, token) in tokens.enumerated() {
            if i & (1 << Self.bits - 1) == 0 { noted.append(UInt32(truncatingIfNeeded: at)) }
            at += table.size(token)
        }
        self.noted = noted
    }

    /// Returns where a token begins. For the index after the last token, returns where the last token ends.
    func start(of token: Int) -> Int {
        let known = min(token >> Self.bits, noted.count - 1)
        return known < 0 ? 0 : Int(noted[known]) + table.size(tokens[known << Self.bits..<token])
    }

    /// Skips the tokens that end at or before `end`, starting from a token and its offset. Returns the next token and its offset.
    /// - Parameter table: the table of the text that is being cut. The one of `self.table` may refer to memory that was freed.
    fileprivate func last(endingBy end: Int, from token: Int, at place: Int, _ table: TokenTable) -> (token: Int, place: Int) {
        var next = token, at = place
        // The last stored offset that is not beyond `end`.
        var low = token >> Self.bits, high = noted.count - 1
        while low < high {
            let middle = (low + high + 1) / 2
            if noted[middle] <= end { low = middle } else { high = middle - 1 }
        }
        if low << Self.bits > next { (next, at) = (low << Self.bits, Int(noted[low])) }
        while next < tokens.count {
            let more = at + table.size(tokens[next])
            guard more <= end else { break }
            at = more
            next += 1
        }
        return (next, at)
    }
}

/// Follows another text while a text is cut into tokens. Where both have the same bytes, they have the same tokens. If a common part is
/// missed, that only costs time.
private struct KnownTokens {
    /// The number of bytes after a token that decide where it ends: the size of the longest scalar.
    private static let decisive = 4
    /// After this many equal bytes, a longer equal part is expected.
    private static let believed = 16
    /// The number of tokens to search back and ahead.
    private static let nearby = 8

    private let text: UnsafeRawBufferPointer
    private let places: TokenPlaces
    private let tokens: [UInt32]
    /// The next token of the other text, and its offset.
    private var next = 0
    private var place = 0
    /// The tokens that may still be walked over.
    private var walks: Int
    /// The searches that may still fail. Each token that is copied adds one.
    private var tries: Int
    /// Whether both texts may continue alike from here.
    private(set) var isAlike = true

    init(_ text: UnsafeRawBufferPointer, _ places: TokenPlaces) {
        self.text = text
        self.places = places
        tokens = places.tokens
        walks = 2 * tokens.count
        tries = 1_024
    }

    /// Copies the tokens of the common bytes from `start` on.
    /// - Returns: the size of these tokens in bytes.
    mutating func copy(_ other: UnsafeRawBufferPointer, _ start: Int, _ out: inout [UInt32], _ table: TokenTable) -> Int {
        isAlike = false
        let common = Bytes.common(text, place, other, start)
        let isWhole = place + common == text.count && start + common == other.count
        let sure = isWhole ? common : common - Self.decisive
        let first = next, before = place
        if sure > 0 { (next, place) = places.last(endingBy: place + sure, from: next, at: place, table) }
        let size = place - before
        out.append(contentsOf: tokens[first..<next])
        tries += next - first
        return size
    }

    /// Finds a token after which both texts continue alike: near the current one, or at its first occurrence.
    /// - Parameter start: the offset after the token in the text being cut.
    mutating func find(_ token: UInt32, _ other: UnsafeRawBufferPointer, _ start: Int, _ table: TokenTable) {
        guard tries > 0 else { return }
        tries -= 1
        var ahead = next, at = place
        while ahead < min(tokens.count, next + Self.nearby) {
            at += table.size(tokens[ahead])
            ahead += 1
            if tokens[ahead - 1] == token, goesOn(at, other, start) { return set(ahead, at) }
        }
        var back = next
        at = place
        while back > max(0, next - Self.nearby) {
            if tokens[back - 1] == token, goesOn(at, other, start) { return set(back, at) }
            back -= 1
            at -= table.size(tokens[back])
        }
        if let first = table.first(token), goesOn(first, other, start), walk(to: first, table) { return set(next, place) }
        if next < tokens.count {
            place += table.size(tokens[next])
            next += 1
        }
    }

    /// Moves to where a token begins; false if too many tokens were walked over.
    private mutating func walk(to goal: Int, _ table: TokenTable) -> Bool {
        while place != goal, walks > 0 {
            walks -= 1
            if place < goal, next < tokens.count {
                place += table.size(tokens[next])
                next += 1
            } else if place > goal, next > 0 {
                next -= 1
                place -= table.size(tokens[next])
            } else {
                break
            }
        }
        return place == goal
    }

    private func goesOn(_ at: Int, _ other: UnsafeRawBufferPointer, _ start: Int) -> Bool {
        let size = min(Self.believed, text.count - at, other.count - start)
        guard size > 0, let a = text.baseAddress, let b = other.baseAddress else { return false }
        return memcmp(a + at, b + start, size) == 0
    }

    private mutating func set(_ next: Int, _ place: Int) { (self.next, self.place, isAlike) = (next, place, true) }
}

/// The classes of scalars that define tokens.
enum TextScalars {
    /// Decodes a scalar of valid UTF-8, and returns it with its size in bytes.
    @inline(__always)
    static func decode(_ text: UnsafeRawBufferPointer, _ i: Int) -> (scalar: UInt32, size: Int) {
        let first = UInt32(text[i])
        if first < 0x80 { return (first, 1) }
        func more(_ k: Int) -> UInt32 { i + k < text.count ? UInt32(text[i + k]) & 0x3F : 0 }
        if first < 0xE0 { return ((first & 0x1F) << 6 | more(1), min(2, text.count - i)) }
        if first < 0xF0 { return ((first & 0x0F) << 12 | more(1) << 6 | more(2), min(3, text.count - i)) }
        return ((first & 0x07) << 18 | more(1) << 12 | more(2) << 6 | more(3), min(4, text.count - i))
    }

    /// Returns whether a byte is an ASCII letter or digit.
    @inline(__always)
    static func isWord(_ byte: UInt8) -> Bool {
        let letter = byte | 0x20
        return (letter >= 0x61 && letter <= 0x7A) || (byte >= 0x30 && byte <= 0x39)
    }

    static let wideSpace: UInt32 = 0x3000

    @inline(__always)
    static func isSpace(_ scalar: UInt32) -> Bool { scalar == 0x20 || scalar == 0x09 || scalar == wideSpace }

    /// Returns whether a scalar is a word, and a token, by itself.
    @inline(__always)
    static func standsAlone(_ scalar: UInt32) -> Bool {
        if scalar < 0x3040 { return false }
        switch scalar {
        case 0x3040...0x30FF, 0x3400...0x9FFF, 0xF900...0xFAFF, 0x20000...0x3FFFF: return true
        default: return false
        }
    }

    /// Returns whether a scalar attaches to the scalar before it, as a combining mark does.
    static func attaches(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x0300...0x036F, 0x0483...0x0489, 0x0591...0x05BD, 0x064B...0x065F, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x200D, 0x20D0...0x20FF,
            0x3099...0x309A, 0xFE00...0xFE0F, 0xFE20...0xFE2F, 0xE0100...0xE01EF:
            true
        default: false
        }
    }
}
