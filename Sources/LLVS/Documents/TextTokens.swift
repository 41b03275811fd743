/// The tokens of texts as numbers: the same number for the same bytes. The rules for what is a token are those of merge semantics 1,
/// for ever: no table of Unicode's is consulted.
final class TextTokens {
    private struct Entry {
        var start: UnsafeRawPointer?
        var count: Int32
        var hash: UInt32
    }

    private let unit: MergeRule.Unit
    private let seed = ValueDigest.seed
    private let work: DocumentControl
    /// ASCII characters are their own numbers. (Memory by hand: these are looked at for every token.)
    private var entries: UnsafeMutablePointer<Entry>
    private var room = 1_024
    /// One more than the largest number.
    private(set) var count = 128
    private var slots: UnsafeMutablePointer<UInt32>
    private var slotCount = 1_024

    init(_ unit: MergeRule.Unit, work: DocumentControl) {
        self.unit = unit
        self.work = work
        entries = .allocate(capacity: room)
        entries.initialize(repeating: Entry(start: nil, count: 1, hash: 0), count: 128)
        slots = .allocate(capacity: slotCount)
        slots.initialize(repeating: .max, count: slotCount)
    }

    deinit {
        entries.deallocate()
        slots.deallocate()
    }

    /// Appends what the tokens stand for.
    func write(_ tokens: ArraySlice<UInt32>, to out: inout [UInt8]) {
        for token in tokens {
            let entry = entries[Int(token)]
            if let start = entry.start {
                out.append(contentsOf: UnsafeRawBufferPointer(start: start, count: Int(entry.count)))
            } else {
                out.append(UInt8(truncatingIfNeeded: token))
            }
        }
    }

    func bytes(_ tokens: ArraySlice<UInt32>) -> [UInt8] {
        var out: [UInt8] = []
        write(tokens, to: &out)
        return out
    }

    /// The tokens of a text in UTF-8, whose bytes must stay while this is used.
    func tokens(of text: UnsafeRawBufferPointer) throws -> [UInt32] {
        guard let base = text.baseAddress else { return [] }
        var tokens: [UInt32] = []
        // As many as there are most often; a text of shorter ones takes more.
        let likely = unit == .word ? text.count / 2 : unit == .char ? text.count : text.count / 32
        try Memory.expect(4 * likely, "Merging a text")
        tokens.reserveCapacity(likely)
        var start = 0, checked = 0
        while start < text.count {
            let end = unit == .line ? lineEnd(text, start) : unit == .char ? characterEnd(text, start) : wordEnd(text, start)
            tokens.append(end - start == 1 && text[start] < 0x80 ? UInt32(text[start]) : try number(base + start, end - start))
            start = end
            if start - checked >= 1 << 18 {
                try work.done(start - checked)
                checked = start
            }
        }
        try work.done(start - checked)
        return tokens
    }

    private func number(_ start: UnsafeRawPointer, _ size: Int) throws -> UInt32 {
        let hash = UInt32(truncatingIfNeeded: ValueDigest.of(word: start, size, seed) >> 32)
        let mask = slotCount - 1
        var i = Int(hash) & mask
        while slots[i] != .max {
            let entry = entries[Int(slots[i])]
            if entry.hash == hash, Int(entry.count) == size, let known = entry.start, Self.areSame(known, start, size) { return slots[i] }
            i = (i + 1) & mask
        }
        if count == room { try growEntries() }
        let number = UInt32(truncatingIfNeeded: count)
        slots[i] = number
        (entries + count).initialize(to: Entry(start: start, count: Int32(truncatingIfNeeded: size), hash: hash))
        count += 1
        if 4 * (count - 128) > 3 * slotCount { try growSlots() }
        return number
    }

    /// As memcmp, without a call for short words.
    @inline(__always)
    private static func areSame(_ a: UnsafeRawPointer, _ b: UnsafeRawPointer, _ size: Int) -> Bool {
        func eight(_ p: UnsafeRawPointer, _ at: Int) -> UInt64 { p.loadUnaligned(fromByteOffset: at, as: UInt64.self) }
        func four(_ p: UnsafeRawPointer, _ at: Int) -> UInt32 { p.loadUnaligned(fromByteOffset: at, as: UInt32.self) }
        if size > 16 || size < 4 { return memcmp(a, b, size) == 0 }
        if size >= 8 { return eight(a, 0) == eight(b, 0) && eight(a, size - 8) == eight(b, size - 8) }
        return four(a, 0) == four(b, 0) && four(a, size - 4) == four(b, size - 4)
    }

    private func growEntries() throws {
        let wanted = room + room / 2
        try Memory.expect(wanted * MemoryLayout<Entry>.stride, "Merging a text")
        let more = UnsafeMutablePointer<Entry>.allocate(capacity: wanted)
        more.moveInitialize(from: entries, count: count)
        entries.deallocate()
        (entries, room) = (more, wanted)
    }

    private func growSlots() throws {
        let wanted = 2 * slotCount, mask = wanted - 1
        try Memory.expect(wanted * MemoryLayout<UInt32>.stride, "Merging a text")
        let more = UnsafeMutablePointer<UInt32>.allocate(capacity: wanted)
        more.initialize(repeating: .max, count: wanted)
        for number in 128..<count {
            var i = Int(entries[number].hash) & mask
            while more[i] != .max { i = (i + 1) & mask }
            more[i] = UInt32(truncatingIfNeeded: number)
        }
        slots.deallocate()
        (slots, slotCount) = (more, wanted)
    }

    // MARK: Where tokens end

    private func lineEnd(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var i = start
        while i < text.count {
            let byte = text[i]
            i += 1
            if byte == 0x0A { return i }
            if byte == 0x0D { return i < text.count && text[i] == 0x0A ? i + 1 : i }
        }
        return i
    }

    private func characterEnd(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        let first = TextScalars.decode(text, start)
        var end = start + first.size
        if first.scalar == TextScalars.joiner, end < text.count { end += TextScalars.decode(text, end).size }
        if TextScalars.isRegional(first.scalar), end < text.count {
            let second = TextScalars.decode(text, end)
            if TextScalars.isRegional(second.scalar) { end += second.size }
        }
        return attached(text, end)
    }

    @inline(__always)
    private func wordEnd(_ text: UnsafeRawBufferPointer, _ start: Int) -> Int {
        var i = start
        let byte = text[start]
        if byte < 0x80, !TextScalars.isWord(byte) {
            i += byte == 0x0D && start + 1 < text.count && text[start + 1] == 0x0A ? 2 : 1
            return attached(text, i)
        }
        if byte >= 0x80 {
            let first = TextScalars.decode(text, start)
            i += first.size
            // Only at the beginning of a text: what a joiner joins goes with it, whatever it is.
            if first.scalar == TextScalars.joiner, i < text.count { i += TextScalars.decode(text, i).size }
            if TextScalars.standsAlone(first.scalar) { return attached(text, i) }
        }
        while i < text.count {
            let byte = text[i]
            if byte < 0x80 {
                guard TextScalars.isWord(byte) else { return i }
                i += 1
                continue
            }
            let behind = attached(text, i)
            if behind > i { i = behind; continue }
            let next = TextScalars.decode(text, i)
            if TextScalars.standsAlone(next.scalar) { return i }
            i += next.size
        }
        return i
    }

    /// Behind all that attaches to a token that ends there.
    @inline(__always)
    private func attached(_ text: UnsafeRawBufferPointer, _ end: Int) -> Int {
        var i = end
        while i < text.count, text[i] >= 0x80 {
            let next = TextScalars.decode(text, i)
            guard TextScalars.attaches(next.scalar) else { break }
            i += next.size
            // A joiner takes along what it joins.
            if next.scalar == TextScalars.joiner, i < text.count { i += TextScalars.decode(text, i).size }
        }
        return i
    }
}

/// The classes of scalars that tokens are made by.
enum TextScalars {
    /// A scalar of valid UTF-8, and how many bytes it takes.
    @inline(__always)
    static func decode(_ text: UnsafeRawBufferPointer, _ i: Int) -> (scalar: UInt32, size: Int) {
        let first = UInt32(text[i])
        if first < 0x80 { return (first, 1) }
        func more(_ k: Int) -> UInt32 { i + k < text.count ? UInt32(text[i + k]) & 0x3F : 0 }
        if first < 0xE0 { return ((first & 0x1F) << 6 | more(1), min(2, text.count - i)) }
        if first < 0xF0 { return ((first & 0x0F) << 12 | more(1) << 6 | more(2), min(3, text.count - i)) }
        return ((first & 0x07) << 18 | more(1) << 12 | more(2) << 6 | more(3), min(4, text.count - i))
    }

    /// ASCII letters and digits.
    @inline(__always)
    static func isWord(_ byte: UInt8) -> Bool {
        let letter = byte | 0x20
        return (letter >= 0x61 && letter <= 0x7A) || (byte >= 0x30 && byte <= 0x39)
    }

    static let joiner: UInt32 = 0x200D

    static func isRegional(_ scalar: UInt32) -> Bool { scalar >= 0x1F1E6 && scalar <= 0x1F1FF }

    static func standsAlone(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x3040...0x30FF, 0x3400...0x9FFF, 0xAC00...0xD7AF, 0xF900...0xFAFF, 0x20000...0x3FFFF: true
        default: false
        }
    }

    static func attaches(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x0300...0x036F, 0x0483...0x0489, 0x0591...0x05BD, 0x064B...0x065F, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x200D, 0x20D0...0x20FF,
             0xFE00...0xFE0F, 0xFE20...0xFE2F, 0x1F3FB...0x1F3FF, 0xE0020...0xE007F: true
        default: false
        }
    }
}
