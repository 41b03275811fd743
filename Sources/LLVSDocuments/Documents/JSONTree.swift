/// The kind of a node of a `JSONTree`. The raw values are the order of types when values are compared.
package enum JSONKind: UInt8, Comparable {
    case null, bool, number, string, array, object
    /// Bytes that are not JSON, or not JSON that can be merged.
    case raw

    package static func < (a: JSONKind, b: JSONKind) -> Bool { a.rawValue < b.rawValue }
}

/// The highest six bits of a node's first word: its kind, its spelling, and the length of short nodes.
package enum JSONCode {
    static let null: UInt32 = 0, no: UInt32 = 1, yes: UInt32 = 2
    /// Strings with escapes: in any spelling, and in the canonical one.
    static let escaped: UInt32 = 3, escapedCanonical: UInt32 = 4
    /// A string without escapes; a text without quotes.
    static let string: UInt32 = 5, whole: UInt32 = 6
    static let raw: UInt32 = 7, number: UInt32 = 8
    static let array: UInt32 = 9, canonicalArray: UInt32 = 10
    /// Objects: in any order; with members in order; canonical.
    static let object: UInt32 = 11, sortedObject: UInt32 = 12, canonicalObject: UInt32 = 13
    /// From these values on, the code includes the length: numbers from length 1 on, strings from length 0 on.
    static let shortNumber: UInt32 = 16, shortString: UInt32 = 36
    static let longestNumber = 20, longestString = 27

    /// The codes below 16 of canonical nodes.
    private static let canonical: UInt32 =
        1 << null | 1 << no | 1 << yes | 1 << escapedCanonical | 1 << string | 1 << number
        | 1 << canonicalArray | 1 << canonicalObject

    @inline(__always)
    static func isCanonical(_ code: UInt32) -> Bool { code >= shortNumber || canonical >> code & 1 != 0 }
    @inline(__always)
    static func isEscaped(_ code: UInt32) -> Bool { code == escaped || code == escapedCanonical }
    @inline(__always)
    static func isContainer(_ code: UInt32) -> Bool { code >= array && code <= canonicalObject }
    /// Returns whether a second word has the length.
    @inline(__always)
    static func isLong(_ code: UInt32) -> Bool { code >= escaped && code <= number }

    @inline(__always)
    static func kind(_ code: UInt32) -> JSONKind {
        if code >= shortString { return .string }
        if code >= shortNumber { return .number }
        return switch code {
        case null: .null
        case no, yes: .bool
        case raw: .raw
        case number: .number
        case array, canonicalArray: .array
        case object, sortedObject, canonicalObject: .object
        default: .string
        }
    }
}

/// A value as a table of words in the order of its text. The bytes of strings and numbers stay in the text.
///
///     {"a": [1, 2]}   ->   object · "a" · array · 1 · 2
///
/// A node is identified by the index of its first word, which has its code and its offset in the text (`JSONCode`). A second word has the
/// length of a long node or a name. The second word of a container has both its length and the number of words in it; large ones are
/// stored apart. So a short scalar takes four bytes, a container eight, and a member eight more. A member is its name and then its value.
/// This struct is a view, valid while its `JSONText` lives.
package struct JSONTree {
    static let startMask: UInt32 = 1 << 26 - 1
    /// The words of a name, and the words before the first child of a container.
    static let nameSize: UInt32 = 2, containerSize: UInt32 = 2
    /// The second word of a container: its length above its word count, or, with this bit, its index among the large ones.
    static let isLarge: UInt32 = 1 << 31
    static let lengthShift: UInt32 = 16, wordsMask: UInt32 = 1 << 16 - 1

    let bytes: UnsafeRawBufferPointer
    /// The number of words.
    let count: Int
    let words: UnsafeMutablePointer<UInt32>
    /// The decoded text of strings with escapes.
    let decoded: UnsafeMutableRawPointer?
    /// For each large container its length, and the node after all that it contains.
    let large: UnsafeMutablePointer<UInt32>?

    @inline(__always)
    func code(_ node: UInt32) -> UInt32 { words[Int(node)] >> 26 }
    @inline(__always)
    package func kind(_ node: UInt32) -> JSONKind { JSONCode.kind(code(node)) }
    @inline(__always)
    func start(_ node: UInt32) -> Int { Int(words[Int(node)] & Self.startMask) }

    /// Returns the bytes of a node; of a string without its quotes.
    @inline(__always)
    func length(_ node: UInt32) -> Int {
        let code = code(node)
        if code >= JSONCode.shortString { return Int(code - JSONCode.shortString) }
        if code >= JSONCode.shortNumber { return Int(code - JSONCode.shortNumber + 1) }
        if code <= JSONCode.yes { return code == JSONCode.no ? 5 : 4 }
        let word = words[Int(node) + 1]
        if code <= JSONCode.number { return Int(word) }
        return word & Self.isLarge == 0 ? Int(word >> Self.lengthShift) : Int(largePart(word, 0))
    }

    /// Returns the length of a large container, or the node after it.
    private func largePart(_ word: UInt32, _ part: Int) -> UInt32 { large.map { $0[2 * Int(word & ~Self.isLarge) + part] } ?? 0 }

    /// Returns the node after this one and all that it contains.
    @inline(__always)
    func next(_ node: UInt32) -> UInt32 {
        let code = code(node)
        if code >= JSONCode.shortNumber || code <= JSONCode.yes { return node + 1 }
        if code <= JSONCode.number { return node + 2 }
        let word = words[Int(node) + 1]
        return word & Self.isLarge == 0 ? node &+ (word & Self.wordsMask) : largePart(word, 1)
    }
    /// Returns the next node in the order of the text: for a container the first in it.
    @inline(__always)
    func following(_ node: UInt32) -> UInt32 { JSONCode.isContainer(code(node)) ? node + Self.containerSize : next(node) }

    /// Returns whether the bytes of the node are what the writer would write.
    @inline(__always)
    func isCanonical(_ node: UInt32) -> Bool { JSONCode.isCanonical(code(node)) }
    @inline(__always)
    func isSorted(_ node: UInt32) -> Bool { code(node) >= JSONCode.sortedObject && code(node) <= JSONCode.canonicalObject }
    @inline(__always)
    func isEscaped(_ node: UInt32) -> Bool { JSONCode.isEscaped(code(node)) }

    /// Returns the decoded text of a string in UTF-8, or the bytes of any other node.
    @inline(__always)
    package func text(_ node: UInt32) -> UnsafeRawBufferPointer {
        guard let base = isEscaped(node) ? UnsafeRawPointer(decoded) : bytes.baseAddress else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: base + start(node), count: length(node))
    }

    /// Returns the node of the name of a member, given its value.
    @inline(__always)
    package func nameNode(of value: UInt32) -> UInt32 { value &- Self.nameSize }
    /// Returns the name of a member, given its value.
    @inline(__always)
    package func name(of value: UInt32) -> UnsafeRawBufferPointer { text(value &- Self.nameSize) }

    /// Returns a string with its quotes, or nil if it has escapes or no quotes.
    @inline(__always)
    func quoted(_ node: UInt32) -> UnsafeRawBufferPointer? {
        let code = code(node), start = start(node)
        guard JSONCode.isCanonical(code), !JSONCode.isEscaped(code), start > 0, let base = bytes.baseAddress else { return nil }
        return UnsafeRawBufferPointer(start: base + start - 1, count: length(node) + 2)
    }

    /// Returns the range of the text that is exactly what the writer would write for the node, a string with its quotes; nil if the text
    /// is not canonical.
    @inline(__always)
    func written(_ node: UInt32) -> Range<Int>? {
        let code = code(node)
        guard JSONCode.isCanonical(code), !JSONCode.isEscaped(code) else { return nil }
        let start = start(node), end = start + length(node)
        guard JSONCode.kind(code) == .string else { return start..<end }
        return start > 0 ? start - 1..<end + 1 : nil
    }

    /// Returns whether a node of the kind `bool` is `true`.
    package func bool(_ node: UInt32) -> Bool { code(node) == JSONCode.yes }

    func decimal(_ node: UInt32) -> JSONDecimal { JSONDecimal(text(node)) ?? .zero }

    /// Returns the elements of an array, or the values of an object's members, in the order of the text.
    package func children(of node: UInt32) -> [UInt32] {
        let end = next(node), step = kind(node) == .object ? Self.nameSize : 0
        var count = 0, i = node + Self.containerSize
        while i < end { i = next(i + step); count += 1 }
        return children(of: node, count: count)
    }

    /// Returns the children of a node whose number is known.
    func children(of node: UInt32, count: Int) -> [UInt32] {
        var children: [UInt32] = []
        // Reserve exactly: the children of long lists take as much memory as everything else.
        children.reserveCapacity(count)
        appendChildren(of: node, to: &children)
        return children
    }

    /// - Parameter most: the maximum number of children.
    func appendChildren(of node: UInt32, to children: inout [UInt32], most: Int = .max) {
        let end = next(node), step = kind(node) == .object ? Self.nameSize : 0
        var i = node + Self.containerSize, left = most
        while i < end, left > 0 {
            left -= 1
            children.append(i + step)
            i = next(i + step)
        }
    }

    func isEmpty(_ node: UInt32) -> Bool { next(node) == node + Self.containerSize }

    /// Returns the value of the member of that name.
    package func member(_ name: UnsafeRawBufferPointer, of node: UInt32) -> UInt32? {
        guard kind(node) == .object else { return nil }
        let end = next(node)
        var i = node + Self.containerSize
        while i < end {
            if Bytes.equal(text(i), name) { return i + Self.nameSize }
            i = next(i + Self.nameSize)
        }
        return nil
    }

    /// Returns the node to which an RFC 6901 pointer, split at its slashes, leads.
    package func find(_ pointer: [[UInt8]], from node: UInt32) -> UInt32? {
        var node = node
        for segment in pointer {
            switch kind(node) {
            case .object:
                guard let value = segment.withUnsafeBytes({ member($0, of: node) }) else { return nil }
                node = value
            case .array:
                guard var index = JSONPointer.index(segment) else { return nil }
                let end = next(node)
                var i = node + Self.containerSize
                while i < end, index > 0 { i = next(i); index -= 1 }
                guard i < end else { return nil }
                node = i
            default: return nil
            }
        }
        return node
    }
}

/// Owns the tree of a value. The parsed bytes belong to the caller, unless they were handed over.
package final class JSONText {
    package let tree: JSONTree
    private let owned: UnsafeMutableRawPointer?

    /// Takes ownership of `words`, `decoded`, `large` and `owned`, which are released by `free`.
    init(
        _ bytes: UnsafeRawBufferPointer, words: UnsafeMutablePointer<UInt32>, count: Int, decoded: UnsafeMutableRawPointer?,
        large: UnsafeMutablePointer<UInt32>? = nil, owned: UnsafeMutableRawPointer? = nil
    ) {
        tree = JSONTree(bytes: bytes, count: count, words: words, decoded: decoded, large: large)
        self.owned = owned
    }

    /// A value that is not parsed: a text as one string, or bytes.
    convenience init(whole bytes: UnsafeRawBufferPointer, as kind: JSONKind) throws {
        self.init(bytes, words: try Self.words(of: bytes.count, isText: kind == .string), count: 2, decoded: nil)
    }

    /// Returns the words of a value that is not parsed.
    private static func words(of count: Int, isText: Bool) throws -> UnsafeMutablePointer<UInt32> {
        let size = 2 * MemoryLayout<UInt32>.stride
        guard let words = try Memory.allocate(size, "Merging a value").bindMemory(to: UInt32.self).baseAddress else {
            throw StoreError(.outOfMemory, "Merging a value needs \(size) bytes of memory.")
        }
        words.initialize(to: (isText ? JSONCode.whole : JSONCode.raw) << 26)
        (words + 1).initialize(to: UInt32(clamping: count))
        return words
    }

    /// Parses what an app answered, and owns the bytes: JSON if possible, else bytes, or a text as a whole.
    static func answer(_ bytes: [UInt8], as kind: JSONKind?, work: DocumentControl) throws -> JSONText {
        if kind == nil, let text = try bytes.withUnsafeBytes({ try JSONTreeParser.parse($0, copying: true, work: work) }) { return text }
        let isText = kind == .string && bytes.withUnsafeBytes { Bytes.isValidUTF8($0) }
        let words = try words(of: bytes.count, isText: isText), owned: UnsafeMutableRawBufferPointer
        do { owned = try Memory.allocate(max(1, bytes.count), "Merging a value") } catch {
            free(words)
            throw error
        }
        owned.copyBytes(from: bytes)
        return JSONText(
            UnsafeRawBufferPointer(start: owned.baseAddress, count: bytes.count), words: words, count: 2, decoded: nil,
            owned: owned.baseAddress)
    }

    deinit {
        free(tree.words)
        free(tree.decoded)
        free(tree.large)
        free(owned)
    }
}

/// RFC 6901.
package enum JSONPointer {
    /// Returns a segment as an index of an array: digits without a leading zero.
    static func index(_ segment: [UInt8]) -> Int? {
        guard !segment.isEmpty, segment.count <= 9, segment[0] != 0x30 || segment.count == 1 else { return nil }
        var index = 0
        for byte in segment {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            index = 10 * index + Int(byte - 0x30)
        }
        return index
    }

    /// Returns a segment as it is escaped in a pointer.
    package static func escaped(_ segment: UnsafeRawBufferPointer) -> [UInt8] {
        var out: [UInt8] = []
        for byte in segment {
            switch byte {
            case UInt8(ascii: "~"): out += [byte, UInt8(ascii: "0")]
            case UInt8(ascii: "/"): out += [UInt8(ascii: "~"), UInt8(ascii: "1")]
            default: out.append(byte)
            }
        }
        return out
    }
}
