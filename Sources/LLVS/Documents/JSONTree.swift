/// What a node of a `JSONTree` is. The raw values are the order of types when values are compared.
enum JSONKind: UInt8, Comparable {
    case null, bool, number, string, array, object
    /// Bytes that are no JSON that can be merged.
    case raw

    static func < (a: JSONKind, b: JSONKind) -> Bool { a.rawValue < b.rawValue }
}

/// A value as a table of nodes in the order of its text: twelve bytes a node, strings and numbers as they stand in the text.
///
///     {"a": [1, 2]}   ->   object · "a" · array · 1 · 2
///
/// A member is its name and then its value, so the name of the value at `i` is at `i - 1`. `next` of a container is
/// behind all that is in it.
/// This is a view, good while the `JSONText` lives that it is of.
struct JSONTree {
    ///     head   bits 0-25 where it starts in its bytes · 26-28 kind · 29 a string with escapes · 30 as it is written canonically ·
    ///            31 an object whose members are in order
    struct Node {
        var head: UInt32
        /// Bytes; of a string without its quotes.
        var length: UInt32
        /// The node behind this one and all in it.
        var next: UInt32
    }

    static let escapedBit: UInt32 = 1 << 29
    static let canonicalBit: UInt32 = 1 << 30
    static let sortedBit: UInt32 = 1 << 31
    static let startMask: UInt32 = 1 << 26 - 1

    let bytes: UnsafeRawBufferPointer
    let count: Int
    fileprivate let nodes: UnsafeMutablePointer<Node>
    /// What strings with escapes stand for.
    fileprivate let decoded: UnsafeMutableRawPointer?

    @inline(__always)
    subscript(_ node: UInt32) -> Node { nodes[Int(node)] }

    @inline(__always)
    func kind(_ node: UInt32) -> JSONKind {
        switch nodes[Int(node)].head >> 26 & 7 {
        case 0: .null
        case 1: .bool
        case 2: .number
        case 3: .string
        case 4: .array
        case 5: .object
        default: .raw
        }
    }

    @inline(__always)
    func next(_ node: UInt32) -> UInt32 { nodes[Int(node)].next }
    /// Whether the bytes of the node are what the writer would write.
    @inline(__always)
    func isCanonical(_ node: UInt32) -> Bool { nodes[Int(node)].head & Self.canonicalBit != 0 }
    @inline(__always)
    func isSorted(_ node: UInt32) -> Bool { nodes[Int(node)].head & Self.sortedBit != 0 }
    @inline(__always)
    func isEscaped(_ node: UInt32) -> Bool { nodes[Int(node)].head & Self.escapedBit != 0 }

    /// What a string stands for, in UTF-8; of all else the bytes in the text.
    @inline(__always)
    func text(_ node: UInt32) -> UnsafeRawBufferPointer {
        let entry = nodes[Int(node)]
        let start = Int(entry.head & Self.startMask)
        guard let base = entry.head & Self.escapedBit != 0 ? UnsafeRawPointer(decoded) : bytes.baseAddress else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: base + start, count: Int(entry.length))
    }

    /// A string with its quotes, where it has no escapes and they are there.
    @inline(__always)
    func quoted(_ node: UInt32) -> UnsafeRawBufferPointer? {
        let entry = nodes[Int(node)], start = Int(entry.head & Self.startMask)
        guard entry.head & (Self.escapedBit | Self.canonicalBit) == Self.canonicalBit, start > 0, let base = bytes.baseAddress else {
            return nil
        }
        return UnsafeRawBufferPointer(start: base + start - 1, count: Int(entry.length) + 2)
    }

    /// Where in its bytes stands what the writer would write of the node: all of it, and a string with its quotes; nil where that is not
    /// there as it is to be.
    @inline(__always)
    func written(_ node: UInt32) -> Range<Int>? {
        let entry = nodes[Int(node)], start = Int(entry.head & Self.startMask), end = start + Int(entry.length)
        guard entry.head & (Self.escapedBit | Self.canonicalBit) == Self.canonicalBit else { return nil }
        guard kind(node) == .string else { return start..<end }
        return start > 0 ? start - 1..<end + 1 : nil
    }

    /// `true` for the word of that name; for nodes of the kind `bool`.
    func bool(_ node: UInt32) -> Bool { text(node).first == UInt8(ascii: "t") }

    func decimal(_ node: UInt32) -> JSONDecimal { JSONDecimal(text(node)) ?? .zero }

    /// The elements of an array, or the values of an object's members, in the order of the text.
    func children(of node: UInt32) -> [UInt32] {
        let end = next(node), step: UInt32 = kind(node) == .object ? 1 : 0
        var children: [UInt32] = [], count = 0, i = node + 1
        while i < end { i = next(i + step); count += 1 }
        // Room for just so many: those of long lists take as much memory as all else.
        children.reserveCapacity(count)
        appendChildren(of: node, to: &children)
        return children
    }

    /// - Parameter most: how many at most.
    func appendChildren(of node: UInt32, to children: inout [UInt32], most: Int = .max) {
        let end = next(node), step: UInt32 = kind(node) == .object ? 1 : 0
        var i = node + 1, left = most
        while i < end, left > 0 {
            left -= 1
            children.append(i + step)
            i = next(i + step)
        }
    }

    /// The value of the member of that name.
    func member(_ name: UnsafeRawBufferPointer, of node: UInt32) -> UInt32? {
        guard kind(node) == .object else { return nil }
        let end = next(node)
        var i = node + 1
        while i < end {
            if Bytes.equal(text(i), name) { return i + 1 }
            i = next(i + 1)
        }
        return nil
    }

    /// What an RFC 6901 pointer, split at its slashes, leads to.
    func find(_ pointer: [[UInt8]], from node: UInt32) -> UInt32? {
        var node = node
        for segment in pointer {
            switch kind(node) {
            case .object:
                guard let value = segment.withUnsafeBytes({ member($0, of: node) }) else { return nil }
                node = value
            case .array:
                guard var index = JSONPointer.index(segment) else { return nil }
                let end = next(node)
                var i = node + 1
                while i < end, index > 0 { i = next(i); index -= 1 }
                guard i < end else { return nil }
                node = i
            default: return nil
            }
        }
        return node
    }
}

/// Owns the tree of a value. The bytes that it was made from stay the caller's, unless it was given them.
final class JSONText {
    let tree: JSONTree
    private let owned: UnsafeMutableRawPointer?

    /// Takes over `nodes`, `decoded` and `owned`, which are released by `free`.
    init(
        _ bytes: UnsafeRawBufferPointer, nodes: UnsafeMutablePointer<JSONTree.Node>, count: Int, decoded: UnsafeMutableRawPointer?,
        owned: UnsafeMutableRawPointer? = nil
    ) {
        tree = JSONTree(bytes: bytes, count: count, nodes: nodes, decoded: decoded)
        self.owned = owned
    }

    /// A value that is not parsed: text as one string, or bytes.
    convenience init(whole bytes: UnsafeRawBufferPointer, as kind: JSONKind) throws {
        let size = MemoryLayout<JSONTree.Node>.stride
        let memory = try Memory.allocate(size, "Merging a value").bindMemory(to: JSONTree.Node.self)
        guard let nodes = memory.baseAddress else { throw StoreError(.outOfMemory, "Merging a value needs \(size) bytes of memory.") }
        nodes.initialize(to: JSONTree.Node(head: UInt32(kind.rawValue) << 26, length: UInt32(clamping: bytes.count), next: 1))
        self.init(bytes, nodes: nodes, count: 1, decoded: nil)
    }

    /// What an app answered, which it keeps: JSON where it can be read so, else bytes, or text as a whole.
    static func answer(_ bytes: [UInt8], as kind: JSONKind?, work: DocumentControl) throws -> JSONText {
        if kind == nil, let text = try bytes.withUnsafeBytes({ try JSONTreeParser.parse($0, copying: true, work: work) }) { return text }
        let isText = try kind == .string && bytes.withUnsafeBytes { Bytes.isValidUTF8($0) }
        let size = MemoryLayout<JSONTree.Node>.stride
        let owned = try Memory.allocate(max(1, bytes.count), "Merging a value"), memory = try Memory.allocate(size, "Merging a value")
        guard let start = owned.baseAddress, let nodes = memory.bindMemory(to: JSONTree.Node.self).baseAddress else {
            throw StoreError(.outOfMemory, "Merging a value needs \(bytes.count + size) bytes of memory.")
        }
        owned.copyBytes(from: bytes)
        let raw = isText ? JSONKind.string : .raw
        nodes.initialize(to: JSONTree.Node(head: UInt32(raw.rawValue) << 26, length: UInt32(clamping: bytes.count), next: 1))
        return JSONText(UnsafeRawBufferPointer(start: start, count: bytes.count), nodes: nodes, count: 1, decoded: nil, owned: start)
    }

    deinit {
        free(tree.nodes)
        free(tree.decoded)
        free(owned)
    }
}

/// RFC 6901.
enum JSONPointer {
    /// The place in an array that a segment names: digits without a zero in front.
    static func index(_ segment: [UInt8]) -> Int? {
        guard !segment.isEmpty, segment.count <= 9, segment[0] != 0x30 || segment.count == 1 else { return nil }
        var index = 0
        for byte in segment {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            index = 10 * index + Int(byte - 0x30)
        }
        return index
    }

    /// A segment as it is written in a pointer.
    static func escaped(_ segment: UnsafeRawBufferPointer) -> [UInt8] {
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
