/// Reads JSON (RFC 8259) from bytes, strictly, piece by piece, without building a tree.
///
/// The caller asks for what it expects (`beginObject`, `nextMember`, `string`, ...) and skips what it does
/// not know. Nothing recurses; nesting is bounded. The bytes must outlive the reader. Every failure
/// throws `JSONReader.Failure`; nothing traps. O(n) over all.
struct JSONReader {
    /// What is wrong, and at which byte.
    struct Failure: Error {
        enum Reason { case syntax, utf8 }
        var reason: Reason
        var message: String
        var position: Int
    }
    enum Kind { case object, array, string, number, bool, null }
    /// How deeply objects and arrays may be nested in what is skipped.
    static let depthLimit = 512

    let bytes: UnsafeRawBufferPointer
    private(set) var position = 0
    /// Whether an object or array was just opened, so that no comma precedes the next member.
    private var opened = false

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    func failure(_ message: String, _ reason: Failure.Reason = .syntax) -> Failure {
        Failure(reason: reason, message: message, position: position)
    }

    // MARK: Structure

    /// What comes next.
    mutating func kind() throws -> Kind {
        skipSpace()
        guard position < bytes.count else { throw failure("it ends too early") }
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

    mutating func beginObject() throws {
        guard try kind() == .object else { throw failure("an object is expected") }
        position += 1; opened = true
    }
    mutating func beginArray() throws {
        guard try kind() == .array else { throw failure("an array is expected") }
        position += 1; opened = true
    }

    /// The name of the next member, its value being next; nil behind the last.
    mutating func nextMember() throws -> Text? {
        guard try advance(to: UInt8(ascii: "}")) else { return nil }
        let name = try text()
        skipSpace()
        guard position < bytes.count, bytes[position] == UInt8(ascii: ":") else { throw failure("a colon is expected") }
        position += 1
        return name
    }

    /// Whether another element is next; false behind the last.
    mutating func nextElement() throws -> Bool { try advance(to: UInt8(ascii: "]")) }

    /// Throws unless only white space is left.
    mutating func end() throws {
        skipSpace()
        guard position == bytes.count else { throw failure("something follows the value") }
    }

    private mutating func advance(to close: UInt8) throws -> Bool {
        skipSpace()
        guard position < bytes.count else { throw failure("it ends too early") }
        if bytes[position] == close { position += 1; opened = false; return false }
        if !opened {
            guard bytes[position] == UInt8(ascii: ",") else { throw failure("a comma or a closing bracket is expected") }
            position += 1
            skipSpace()
            // A comma with nothing behind it is found by whoever reads what follows.
        }
        opened = false
        return true
    }

    private mutating func skipSpace() {
        while position < bytes.count, JSONString.isSpace(bytes[position]) { position += 1 }
    }

    // MARK: Values

    /// A string as it stands between its quotes, checked for its end only.
    struct Text {
        var start: Int
        var end: Int
        var escaped: Bool
    }

    /// Passes over a string; `string(_:)` and `equals` look into it.
    mutating func text() throws -> Text {
        guard try kind() == .string else { throw failure("a string is expected") }
        var i = position + 1
        var escaped = false
        while i < bytes.count {
            let b = bytes[i]
            if b == UInt8(ascii: "\"") {
                let text = Text(start: position + 1, end: i, escaped: escaped)
                position = i + 1
                return text
            }
            if b == UInt8(ascii: "\\") { escaped = true; i += 1 } else if b < 0x20 {
                position = i
                throw failure("a string holds a control character")
            }
            i += 1
        }
        throw failure("a string has no end")
    }

    /// The bytes of the string, escapes resolved, valid UTF-8.
    func string(_ text: Text) throws -> [UInt8] {
        let raw = slice(text)
        guard Bytes.isValidUTF8(raw) else { throw Failure(reason: .utf8, message: "a string is not valid UTF-8", position: text.start) }
        guard text.escaped else { return Array(raw) }
        var quote = text.start - 1
        guard let bytes = JSONString.read(bytes, at: &quote) else {
            throw Failure(reason: .syntax, message: "a string has an invalid escape", position: text.start)
        }
        return bytes
    }
    mutating func string() throws -> [UInt8] { try string(try text()) }

    /// The bytes between the quotes; all of the string when it is not `escaped`.
    func slice(_ text: Text) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[text.start..<text.end]) }

    func equals(_ text: Text, _ name: StaticString) throws -> Bool {
        let expected = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        if !text.escaped { return Bytes.equal(slice(text), expected) }
        return try string(text).withUnsafeBytes { Bytes.equal($0, expected) }
    }

    private mutating func number() throws -> UnsafeRawBufferPointer {
        guard try kind() == .number, let end = JSONNumber.end(of: bytes, from: position) else { throw failure("a number is expected") }
        defer { position = end }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<end])
    }
    /// Correctly rounded; finite.
    mutating func double() throws -> Double {
        guard let value = JSONNumber.double(try number()) else { throw failure("a number is too large") }
        return value
    }
    /// A whole number from 0 on, exactly or refused.
    mutating func unsigned() throws -> UInt64 {
        guard let value = JSONNumber.unsigned(try number()) else { throw failure("a whole number is expected") }
        return value
    }

    private mutating func word(_ word: StaticString) throws {
        let end = position + word.utf8CodeUnitCount
        let expected = UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard end <= bytes.count, Bytes.equal(UnsafeRawBufferPointer(rebasing: bytes[position..<end]), expected) else { throw failure("a value is expected") }
        position = end
    }
    /// Passes over a `null` if one is next.
    mutating func skipNull() throws -> Bool {
        guard try kind() == .null else { return false }
        try word("null")
        return true
    }

    /// Passes over one value of any kind, checking it.
    mutating func skip() throws {
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
