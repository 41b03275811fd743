/// Reading keys.
extension IndexKey {
    /// The content of a key.
    package struct Read {
        /// The bytes of the key; an id may follow.
        package var size: Int
        /// The tuple as a JSON array, strings as they were spelled; nil for a cut key.
        package var tuple: [UInt8]?
    }

    /// Reads the key at the beginning of the bytes; nil for anything that `append(key:)` would not have written.
    /// - Parameter parts: the number of parts of a tuple.
    package static func read(_ entry: UnsafeRawBufferPointer, parts: Int, folds: Bool) -> Read? {
        var reader = IndexKeyReader(entry)
        do {
            let tuple = try reader.tuple(parts, folds: folds)
            return Read(size: reader.at, tuple: tuple)
        } catch IndexKeyReader.Stop.cut {
            return Read(size: limit, tuple: nil)
        } catch { return nil }
    }

    /// Returns the size of the key, written by `append(key:)`, at the beginning of an entry; nil if it does not end.
    package static func size(_ entry: UnsafeRawBufferPointer, parts: Int, folds: Bool) -> Int? {
        if isCut(entry) { return limit }
        var at = 0, strings = 0
        /// Moves behind the next `end` byte.
        func skip(_ end: UInt8) -> Bool {
            guard at < entry.count, let base = entry.baseAddress, let found = memchr(base + at, Int32(end), entry.count - at) else {
                return false
            }
            at = UnsafeRawPointer(found) - base + 1
            return true
        }
        for _ in 0..<parts {
            guard at < entry.count else { return nil }
            at += 1
            switch entry[at - 1] {
            case Tag.negative:
                at += 2
                guard skip(0xFF) else { return nil }
            case Tag.positive:
                at += 2
                guard skip(0) else { return nil }
            case Tag.string:
                strings += 1
                guard skip(0) else { return nil }
            default: break
            }
        }
        for _ in 0..<(folds ? strings : 0) {
            guard skip(0) else { return nil }
        }
        guard at < entry.count, entry[at] == 0 else { return nil }
        return at + 1
    }
}

/// Reads a key byte by byte, and rejects anything that no writer writes.
private struct IndexKeyReader {
    enum Stop: Error { case cut, noKey }

    private let bytes: UnsafeRawBufferPointer
    private(set) var at = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    private enum Part {
        case other([UInt8])
        /// The bytes of the part.
        case string([UInt8])
    }

    mutating func tuple(_ count: Int, folds: Bool) throws -> [UInt8] {
        var parts: [Part] = []
        for i in 0..<count {
            let tag = try byte()
            switch tag {
            case IndexKey.Tag.missing:
                // Checked at the end, since the key may have been cut before.
                parts.append(.other(i == 0 ? [] : Array("{}".utf8)))
            case IndexKey.Tag.null: parts.append(.other(Array("null".utf8)))
            case IndexKey.Tag.no: parts.append(.other(Array("false".utf8)))
            case IndexKey.Tag.yes: parts.append(.other(Array("true".utf8)))
            case IndexKey.Tag.zero: parts.append(.other([0x30]))
            case IndexKey.Tag.negative: parts.append(.other(try number(0xFF)))
            case IndexKey.Tag.positive: parts.append(.other(try number(0)))
            case IndexKey.Tag.string: parts.append(.string(try string()))
            default: throw Stop.noKey
            }
        }
        if folds {
            for i in parts.indices {
                guard case .string(let text) = parts[i] else { continue }
                let spelled = try string()
                guard Bytes.equal(spelled.withUnsafeBytes { Folding.folded($0) }, text) else { throw Stop.noKey }
                parts[i] = .string(spelled)
            }
        }
        if case .other(let first)? = parts.first, first.isEmpty { throw Stop.noKey }
        guard try byte() == 0 else { throw Stop.noKey }
        var out = [UInt8(ascii: "[")]
        for (i, part) in parts.enumerated() {
            if i > 0 { out.append(UInt8(ascii: ",")) }
            switch part {
            case .other(let text): out += text
            case .string(let text): text.withUnsafeBytes { CanonicalText.append($0, to: &out) }
            }
        }
        out.append(UInt8(ascii: "]"))
        return out
    }

    private mutating func byte() throws -> UInt8 {
        if at == IndexKey.limit - 1, IndexKey.isCut(bytes) { throw Stop.cut }
        guard at < min(bytes.count, IndexKey.limit) else { throw Stop.noKey }
        at += 1
        return bytes[at - 1]
    }

    private mutating func string() throws -> [UInt8] {
        var out: [UInt8] = []
        while true {
            var next = try byte()
            if next == 0 { break }
            if next == 1 {
                let second = try byte()
                guard second == 1 || second == 2 else { throw Stop.noKey }
                next = second - 1
            }
            out.append(next)
        }
        guard out.withUnsafeBytes({ Bytes.isValidUTF8($0) }) else { throw Stop.noKey }
        return out
    }

    private mutating func number(_ flip: UInt8) throws -> [UInt8] {
        let high = try byte(), low = try byte()
        let exponent = (Int(high ^ flip) << 8 | Int(low ^ flip)) - IndexNumber.exponentLimit - 1
        guard abs(exponent) <= IndexNumber.exponentLimit else { throw Stop.noKey }
        var lexeme: [UInt8] = flip == 0 ? [] : [UInt8(ascii: "-")]
        let start = lexeme.count
        while true {
            let pair = try byte() ^ flip
            if pair == 0 { break }
            guard pair <= 100 else { throw Stop.noKey }
            lexeme += [(pair - 1) / 10 + 0x30, (pair - 1) % 10 + 0x30]
        }
        let count = lexeme.count - start
        guard count > 0, count <= IndexNumber.digitLimit, lexeme[start] != 0x30,
            lexeme[lexeme.count - 1] != 0x30
                || lexeme[lexeme.count - 2] != 0x30
        else { throw Stop.noKey }
        lexeme += Array("e\(exponent - count + 1)".utf8)
        guard let decimal = lexeme.withUnsafeBytes({ JSONDecimal($0) }) else { throw Stop.noKey }
        return decimal.spelling
    }
}
