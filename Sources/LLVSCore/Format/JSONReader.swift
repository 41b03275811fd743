/// Reads JSON (RFC 8259) strictly, from front to back, without building a tree: from bytes, or through a window on a document that arrives
/// in pieces.
///
/// The caller requests the expected parts (`beginObject`, `nextMember`, `string`, ...) and skips unknown ones. Nothing recurses; nesting is
/// bounded. Bytes must outlive the reader. If a document arrives in pieces, only the window and its longest string that is not base64 are
/// in memory. Failures throw `JSONReader.Failure` or errors of the window; nothing traps. O(n) in total.
package struct JSONReader {
    /// A fault, and its offset.
    package struct Failure: Error {
        /// What is wrong: the syntax of JSON, the encoding, or (`end`) the bytes end too early, and may be the beginning of a document.
        package enum Reason { case syntax, utf8, end }
        var reason: Reason
        var message: String
        var position: Int
    }
    package enum Kind { case object, array, string, number, bool, null }
    /// The deepest nesting of objects and arrays in skipped values.
    static let depthLimit = 512

    /// The document, or its part in the window, and the position in it.
    private var bytes: UnsafeRawBufferPointer
    private var position = 0
    private let window: PieceWindow?
    /// Bytes of the document before `bytes`.
    private var passed = 0
    /// The string that was skipped last. It stays in the window until something else is read.
    private var kept = Int.max
    /// Whether an object or array was just opened, so that no comma precedes the next member.
    private var opened = false

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes; window = nil }
    /// The window must outlive the reader.
    init(_ window: PieceWindow) { bytes = UnsafeRawBufferPointer(start: nil, count: 0); self.window = window }

    package func failure(_ message: String, _ reason: Failure.Reason = .syntax) -> Failure {
        Failure(reason: reason, message: message, position: passed + position)
    }

    /// Whether there is a byte at `position`.
    @inline(__always)
    private mutating func hasByte() throws -> Bool { try position < bytes.count || more() }

    /// Moves the window forward, so that it has more bytes. Returns false at the end of the document. When `passed` grows, positions within
    /// `bytes` shift by the same amount.
    @inline(never)
    private mutating func more() throws -> Bool {
        guard let window else { return false }
        let gone = min(kept, position)
        let isMore = try window.advance(keepingFrom: gone)
        bytes = window.bytes
        position -= gone
        if kept != .max { kept -= gone }
        passed += gone
        return isMore
    }

    // MARK: Structure

    /// Returns the kind of the next value.
    package mutating func kind() throws -> Kind {
        kept = .max
        try skipSpace()
        guard try hasByte() else { throw failure("it ends too early", .end) }
        switch bytes[position] {
        case UInt8(ascii: "{"): return .object
        case UInt8(ascii: "["): return .array
        case UInt8(ascii: "\""): return .string
        case UInt8(ascii: "-"), 0x30...0x39: return .number
        case UInt8(ascii: "t"), UInt8(ascii: "f"): return .bool
        case UInt8(ascii: "n"): return .null
        default: throw failure("a value is expected")
        }
    }

    package mutating func beginObject() throws {
        guard try kind() == .object else { throw failure("an object is expected") }
        position += 1; opened = true
    }
    package mutating func beginArray() throws {
        guard try kind() == .array else { throw failure("an array is expected") }
        position += 1; opened = true
    }

    /// Reads the name of the next member, and stops before its value; nil after the last.
    package mutating func nextMember() throws -> Text? {
        guard try advance(to: UInt8(ascii: "}")) else { return nil }
        let name = try text()
        try skipSpace()
        guard try hasByte() else { throw failure("it ends too early", .end) }
        guard bytes[position] == UInt8(ascii: ":") else { throw failure("a colon is expected") }
        position += 1
        return name
    }

    /// Returns whether there is another element; false after the last.
    package mutating func nextElement() throws -> Bool { try advance(to: UInt8(ascii: "]")) }

    /// Throws unless only white space is left.
    package mutating func end() throws {
        kept = .max
        try skipSpace()
        guard try !hasByte() else { throw failure("something follows the value") }
    }

    private mutating func advance(to close: UInt8) throws -> Bool {
        kept = .max
        try skipSpace()
        guard try hasByte() else { throw failure("it ends too early", .end) }
        if bytes[position] == close { position += 1; opened = false; return false }
        if !opened {
            guard bytes[position] == UInt8(ascii: ",") else { throw failure("a comma or a closing bracket is expected") }
            position += 1
            try skipSpace()
            // The next read finds a comma with nothing after it.
        }
        opened = false
        return true
    }

    private mutating func skipSpace() throws {
        repeat {
            while position < bytes.count, JSONString.isSpace(bytes[position]) { position += 1 }
        } while try position == bytes.count && more()
    }

    // MARK: Values

    /// A string between its quotes, with its escapes. Only its end was checked. Valid until the next read. Positions are those of the
    /// document.
    package struct Text {
        var start: Int
        var end: Int
        var escaped: Bool
    }

    /// Skips a string; `string(_:)` and `equals` read its contents.
    /// - Parameter limit: the most bytes between the quotes. A longer string is not read further than the window.
    /// - Throws: `TooLong` if there are more.
    package mutating func text(atMost limit: Int = .max) throws -> Text {
        guard try kind() == .string else { throw failure("a string is expected") }
        kept = position
        var i = position + 1
        var escaped = false
        repeat {
            while i < bytes.count {
                let b = bytes[i]
                if b == UInt8(ascii: "\"") {
                    let text = Text(start: passed + position + 1, end: passed + i, escaped: escaped)
                    guard text.end - text.start <= limit else { throw TooLong(start: text.start) }
                    position = i + 1
                    return text
                }
                if b == UInt8(ascii: "\\") {
                    escaped = true; i += 1
                } else if b < 0x20 {
                    position = i
                    throw failure("a string holds a control character")
                }
                i += 1
            }
            guard i - position - 1 <= limit else { throw TooLong(start: passed + position + 1) }
        } while try more(&i)
        throw failure("a string has no end", .end)
    }

    /// The same as `more`, for another position in `bytes` that shifts as well.
    private mutating func more(_ other: inout Int) throws -> Bool {
        let before = passed
        defer { other -= passed - before }
        return try more()
    }

    /// Decodes the next string as base64 while reading it; returns nil if it is not base64, and the offset of the string.
    /// - Throws: `TooLong` if the result has more than `limit` bytes.
    mutating func base64(atMost limit: Int) throws -> (data: [UInt8]?, start: Int) {
        guard window != nil else {
            let text = try text()
            try Memory.expect((text.end - text.start) / 4 * 3, "Reading a value in base64")
            let data = text.escaped ? try string(text).withUnsafeBytes(Base64.decode) : try Base64.decode(slice(text))
            guard data?.count ?? 0 <= limit else { throw TooLong(start: text.start) }
            return (data, text.start)
        }
        guard try kind() == .string else { throw failure("a string is expected") }
        position += 1
        let start = passed + position
        var decoder = Base64.Decoder(), data: [UInt8] = []
        while true {
            var end = position
            while end < bytes.count, bytes[end] != UInt8(ascii: "\""), bytes[end] != UInt8(ascii: "\\"), bytes[end] >= 0x20 { end += 1 }
            // The rest of the document may be one string. A few more bytes make up for rounding down, so that no further step is needed.
            let room = (end - position) / 4 * 3 + 3, whole = min(limit, data.count + room + (window?.left ?? 0) / 4 * 3) + 64
            try Memory.grow(&data, by: room, towards: whole, "Reading a value in base64")
            guard decoder.append(UnsafeRawBufferPointer(rebasing: bytes[position..<end]), to: &data) else { return (nil, start) }
            position = end
            guard data.count <= limit else { throw TooLong(start: start) }
            guard try hasByte() else { throw failure("a string has no end", .end) }
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                guard decoder.finish(&data) else { return (nil, start) }
                guard data.count <= limit else { throw TooLong(start: start) }
                return (data, start)
            case UInt8(ascii: "\\"):
                // Other implementations write "/" as "\/".
                while try bytes.count - position < 12 && more() {}
                position += 1
                guard let scalar = JSONString.escape(bytes, at: &position) else {
                    throw bytes[position...].contains(UInt8(ascii: "\""))
                        ? failure("a string has an invalid escape") : failure("a string has no end", .end)
                }
                var letter = UInt8(truncatingIfNeeded: scalar.value)
                guard scalar.isASCII, withUnsafeBytes(of: &letter, { decoder.append($0, to: &data) }) else { return (nil, start) }
            case 0..<0x20: throw failure("a string holds a control character")
            default: break
            }
        }
    }
    /// The error for a string that is longer than allowed.
    package struct TooLong: Error { var start: Int }

    /// Returns the bytes of the string with escapes resolved, in valid UTF-8.
    package func string(_ text: Text) throws -> [UInt8] {
        let raw = try slice(text)
        try Memory.expect(raw.count, "Reading a string of JSON")
        guard Bytes.isValidUTF8(raw) else { throw Failure(reason: .utf8, message: "a string is not valid UTF-8", position: text.start) }
        guard text.escaped else { return Array(raw) }
        var quote = text.start - 1 - passed
        guard quote >= 0, let bytes = JSONString.read(bytes, at: &quote) else {
            throw Failure(reason: .syntax, message: "a string has an invalid escape", position: text.start)
        }
        return bytes
    }
    package mutating func string() throws -> [UInt8] {
        // Two statements, since the window may have moved.
        let text = try text()
        return try string(text)
    }

    /// Returns the bytes between the quotes: the whole string unless it is `escaped`.
    package func slice(_ text: Text) throws -> UnsafeRawBufferPointer {
        guard text.start >= passed, text.end - passed <= bytes.count else {
            throw Failure(reason: .syntax, message: "a string is requested after the reader has left it", position: text.start)
        }
        return UnsafeRawBufferPointer(rebasing: bytes[text.start - passed..<text.end - passed])
    }

    package func equals(_ text: Text, _ name: StaticString) throws -> Bool {
        let expected = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        if !text.escaped { return Bytes.equal(try slice(text), expected) }
        return try string(text).withUnsafeBytes { Bytes.equal($0, expected) }
    }

    private mutating func number() throws -> UnsafeRawBufferPointer {
        guard try kind() == .number else { throw failure("a number is expected") }
        if window != nil {
            var i = position
            repeat {
                while i < bytes.count, JSONNumber.canHold(bytes[i]) { i += 1 }
            } while try i == bytes.count && more(&i)
        }
        guard let end = JSONNumber.end(of: bytes, from: position) else {
            throw bytes[position...].allSatisfy(JSONNumber.canHold) ? failure("a number has no end", .end) : failure("a number is expected")
        }
        defer { position = end }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<end])
    }
    /// Reads a number, correctly rounded and finite.
    package mutating func double() throws -> Double {
        guard let value = JSONNumber.double(try number()) else { throw failure("a number is too large") }
        return value
    }
    /// Reads a whole number from 0 on, exactly, or throws.
    package mutating func unsigned() throws -> UInt64 {
        guard let value = JSONNumber.unsigned(try number()) else { throw failure("a whole number is expected") }
        return value
    }

    private mutating func word(_ word: StaticString) throws {
        while try bytes.count - position < word.utf8CodeUnitCount && more() {}
        let end = position + word.utf8CodeUnitCount
        let expected = UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard end <= bytes.count else {
            throw expected.starts(with: bytes[position...]) ? failure("it ends too early", .end) : failure("a value is expected")
        }
        guard Bytes.equal(UnsafeRawBufferPointer(rebasing: bytes[position..<end]), expected) else { throw failure("a value is expected") }
        position = end
    }
    package mutating func bool() throws -> Bool {
        guard try kind() == .bool else { throw failure("true or false is expected") }
        let isTrue = bytes[position] == UInt8(ascii: "t")
        try word(isTrue ? "true" : "false")
        return isTrue
    }
    /// Skips a `null`, if it is next.
    package mutating func skipNull() throws -> Bool {
        guard try kind() == .null else { return false }
        try word("null")
        return true
    }

    /// Skips and checks one value of any kind.
    package mutating func skip() throws {
        var objects: [Bool] = [] // what is open, innermost last
        repeat {
            if let inObject = objects.last {
                if inObject {
                    guard let name = try nextMember() else { objects.removeLast(); continue }
                    _ = try string(name)
                } else {
                    guard try nextElement() else { objects.removeLast(); continue }
                }
            }
            switch try kind() {
            case .object: try beginObject(); objects.append(true)
            case .array: try beginArray(); objects.append(false)
            case .string: _ = try string()
            case .number: _ = try number()
            case .bool: try word(bytes[position] == UInt8(ascii: "t") ? "true" : "false")
            case .null: try word("null")
            }
            if objects.count > JSONReader.depthLimit { throw failure("it is nested more than \(JSONReader.depthLimit) deep") }
        } while !objects.isEmpty
    }
}
