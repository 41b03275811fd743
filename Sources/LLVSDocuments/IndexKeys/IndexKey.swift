/// One part of a tuple of an index. The memory belongs to the caller.
package enum IndexPart {
    case missing
    case null
    case bool(Bool)
    /// Spelled as in RFC 8259, within the limits of `IndexNumber`.
    case number(UnsafeRawBufferPointer)
    /// The unescaped text in UTF-8.
    case string(UnsafeRawBufferPointer)

    var isMissing: Bool { if case .missing = self { true } else { false } }
}

/// The bytes of tuples, whose order is that of the tuples: docs/index-keys.md, which is normative.
///
///     key       = part ... · spelling ... · 00          cut to 1,023 bytes and FF if longer than 1,024
package enum IndexKey {
    package static let limit = 1_024
    static let cutMark: UInt8 = 0xFF

    /// The first byte of a part.
    package enum Tag {
        static let missing: UInt8 = 1, null: UInt8 = 2, no: UInt8 = 3, yes: UInt8 = 4
        static let negative: UInt8 = 5, zero: UInt8 = 6, positive: UInt8 = 7, string: UInt8 = 8
    }

    // MARK: Writing

    /// Appends parts, as queries compare them.
    /// - Parameter most: after this many bytes the rest may be left out.
    static func append(_ parts: some Collection<IndexPart>, folds: Bool, most: Int = .max, to out: inout [UInt8]) {
        let end = most == .max ? Int.max : out.count + most
        for part in parts {
            guard out.count <= end else { return }
            switch part {
            case .missing: out.append(Tag.missing)
            case .null: out.append(Tag.null)
            case .bool(let value): out.append(value ? Tag.yes : Tag.no)
            case .number(let lexeme): IndexNumber.append(lexeme, to: &out)
            case .string(let text):
                out.append(Tag.string)
                appendText(text, folds: folds, until: end, to: &out)
                out.append(0)
            }
        }
    }

    /// Appends the common beginning of the parts of all strings that begin with `text`.
    static func append(beginning text: UnsafeRawBufferPointer, folds: Bool, to out: inout [UInt8]) {
        out.append(Tag.string)
        appendText(text, folds: folds, until: .max, to: &out)
    }

    /// Appends the uncut key of a tuple.
    /// - Parameter most: as above; at least `limit` for a key that is cut afterwards.
    package static func append(whole parts: some Collection<IndexPart>, folds: Bool, most: Int = .max, to out: inout [UInt8]) {
        let end = most == .max ? Int.max : out.count + most
        append(parts, folds: folds, most: most, to: &out)
        if folds {
            for case .string(let text) in parts where out.count <= end {
                appendText(text, folds: false, until: end, to: &out)
                out.append(0)
            }
        }
        out.append(0)
    }

    /// Returns a key as it is stored.
    package static func cut(_ whole: [UInt8]) -> [UInt8] { whole.count <= limit ? whole : whole[..<(limit - 1)] + [cutMark] }

    /// Returns a tuple as a JSON array.
    package static func tuple(_ parts: [IndexPart]) -> [UInt8] {
        var out = [UInt8(ascii: "[")]
        for (i, part) in parts.enumerated() {
            if i > 0 { out.append(UInt8(ascii: ",")) }
            switch part {
            case .missing: out += Array("{}".utf8)
            case .null: out += Array("null".utf8)
            case .bool(let value): out += Array((value ? "true" : "false").utf8)
            case .number(let lexeme): out += (JSONDecimal(lexeme) ?? .zero).spelling
            case .string(let text): CanonicalText.append(text, to: &out)
            }
        }
        return out + [UInt8(ascii: "]")]
    }

    /// Appends the key of a tuple.
    package static func append(key parts: some Collection<IndexPart>, folds: Bool, to out: inout [UInt8]) {
        let start = out.count
        append(whole: parts, folds: folds, most: limit, to: &out)
        guard out.count - start > limit else { return }
        out.removeLast(out.count - start - limit)
        out[out.count - 1] = cutMark
    }

    private static func appendText(_ text: UnsafeRawBufferPointer, folds: Bool, until end: Int, to out: inout [UInt8]) {
        guard folds else {
            // One byte more than needed shows that the key continues.
            let count = end == .max ? text.count : min(text.count, max(0, end - out.count) + 1)
            return appendEscaped(UnsafeRawBufferPointer(rebasing: text[..<count]), to: &out)
        }
        Folding.forEach(text) { folded in
            appendEscaped(folded, to: &out)
            return out.count <= end
        }
    }

    private static func appendEscaped(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        if !text.contains(where: { $0 < 2 }) {
            out.append(contentsOf: text)
            return
        }
        for byte in text {
            if byte < 2 { out.append(1) }
            out.append(byte < 2 ? byte + 1 : byte)
        }
    }

    // MARK: Bounds

    /// Returns the least bytes above all that begin with these; nil if there are none.
    package static func behind(_ bytes: [UInt8]) -> [UInt8]? {
        guard let last = bytes.lastIndex(where: { $0 != 0xFF }) else { return nil }
        var out = Array(bytes[...last])
        out[last] += 1
        return out
    }

    /// Returns whether a key is at least `low` and below `high`; nil if it is cut before that shows.
    package static func isWithin(_ key: UnsafeRawBufferPointer, _ low: [UInt8], _ high: [UInt8]?) -> Bool? {
        low.withUnsafeBytes { low in
            guard isCut(key) else { return Bytes.compare(key, low) >= 0 && isBelow(key, high) }
            let kept = UnsafeRawBufferPointer(rebasing: key[..<(limit - 1)])
            let isBelowLow = Bytes.compare(kept, low) < 0
            if isBelowLow, !low.starts(with: kept) { return false }
            if !isBelow(kept, high) { return false }
            return isBelowLow || (high?.starts(with: kept) ?? false) ? nil : true
        }
    }

    private static func isBelow(_ key: UnsafeRawBufferPointer, _ high: [UInt8]?) -> Bool {
        high.map { high in high.withUnsafeBytes { Bytes.compare(key, $0) < 0 } } ?? true
    }

    /// Returns whether the bytes begin with a cut key. The last byte shows it, since no id contains such a byte.
    package static func isCut(_ entry: UnsafeRawBufferPointer) -> Bool { entry.count >= limit && entry[limit - 1] == cutMark }
}
