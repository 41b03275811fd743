/// Folds strings in keys of indexes, removing case and diacritics, scalar by scalar, by a table that never changes (docs/index-keys.md,
/// *Folding*).
enum Folding {
    private struct Entry {
        var first: UInt32
        var last: UInt32
        /// The range in `results` of the UTF-8 that each scalar becomes.
        var start: UInt16
        var end: UInt16
    }

    private struct Table {
        var entries: [Entry] = []
        var results: [UInt8] = []

        init(_ text: StaticString) {
            var words: [UInt32] = [], number: UInt32 = 0, digits = 0, isRange = false
            func flush(_ words: inout [UInt32]) {
                if digits > 0 { words.append(number) }
                number = 0
                digits = 0
            }
            for byte in UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount) {
                switch byte {
                case 0x30...0x39: number = number << 4 | UInt32(byte - 0x30); digits += 1
                case 0x41...0x46: number = number << 4 | UInt32(byte - 0x37); digits += 1
                case UInt8(ascii: "-"): flush(&words); isRange = true
                case UInt8(ascii: ";"):
                    flush(&words)
                    add(words, isRange)
                    words.removeAll(keepingCapacity: true)
                    isRange = false
                default: flush(&words)
                }
            }
        }

        private mutating func add(_ words: [UInt32], _ isRange: Bool) {
            let known = isRange ? 2 : 1
            guard words.count >= known else { return }
            let start = results.count
            for word in words[known...] {
                if let scalar = Unicode.Scalar(word), let encoded = UTF8.encode(scalar) { results.append(contentsOf: encoded) }
            }
            entries.append(
                Entry(
                    first: words[0], last: words[known - 1], start: UInt16(truncatingIfNeeded: start),
                    end: UInt16(truncatingIfNeeded: results.count)))
        }

        /// Returns the range of the result; nil if the scalar is unchanged.
        func find(_ scalar: UInt32) -> Range<Int>? {
            var low = 0, high = entries.count
            while low < high {
                let middle = (low + high) >> 1
                if entries[middle].last < scalar { low = middle + 1 } else { high = middle }
            }
            guard low < entries.count, entries[low].first <= scalar else { return nil }
            return Int(entries[low].start)..<Int(entries[low].end)
        }
    }

    private static let table = Table(FoldingTable.text)

    private static let firstSyllable: UInt32 = 0xAC00, syllables: UInt32 = 11_172

    /// Calls `body` with the folded UTF-8 of each scalar of a text, in order, until it returns false.
    /// - Parameter text: well-formed UTF-8; malformed bytes are passed unchanged.
    static func forEach(_ text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Bool) {
        let table = table
        withUnsafeTemporaryAllocation(byteCount: 12, alignment: 1) { scratch in
            table.results.withUnsafeBytes { results in
                var i = 0
                while i < text.count {
                    let byte = text[i]
                    if byte < 0x80 {
                        scratch[0] = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
                        i += 1
                        guard body(UnsafeRawBufferPointer(rebasing: scratch[..<1])) else { return }
                        continue
                    }
                    let size = min(text.count - i, byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2)
                    let spelled = UnsafeRawBufferPointer(rebasing: text[i..<i + size])
                    i += size
                    let scalar = spelled.dropFirst().reduce(UInt32(byte) & (0xFF >> UInt32(size + 1))) { $0 << 6 | UInt32($1 & 0x3F) }
                    if scalar &- firstSyllable < syllables {
                        guard body(syllable(scalar - firstSyllable, scratch)) else { return }
                    } else {
                        guard body(table.find(scalar).map { UnsafeRawBufferPointer(rebasing: results[$0]) } ?? spelled) else { return }
                    }
                }
            }
        }
    }

    /// Decomposes a Hangul syllable into its letters.
    private static func syllable(_ number: UInt32, _ scratch: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer {
        var count = 0
        let trailing = number % 28
        for letter in [0x1100 + number / 588, 0x1161 + number % 588 / 28] + (trailing > 0 ? [0x11A7 + trailing] : []) {
            scratch[count] = 0xE0 | UInt8(truncatingIfNeeded: letter >> 12)
            scratch[count + 1] = 0x80 | UInt8(truncatingIfNeeded: letter >> 6 & 0x3F)
            scratch[count + 2] = 0x80 | UInt8(truncatingIfNeeded: letter & 0x3F)
            count += 3
        }
        return UnsafeRawBufferPointer(rebasing: scratch[..<count])
    }

    /// Returns the folded text.
    static func folded(_ text: UnsafeRawBufferPointer) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(text.count)
        forEach(text) {
            out.append(contentsOf: $0); return true
        }
        return out
    }
}
