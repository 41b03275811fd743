/// Parses the tree of a text that can be merged: RFC 8259 in UTF-8, no name twice in one object, within the limits.
package struct JSONTreeParser {
    static let depthLimit = 128
    package static let sizeLimit = 64 << 20

    /// Returns nil if the text cannot be merged inside.
    /// - Parameters:
    ///   - copying: whether the tree has a copy of the bytes.
    ///   - other: the tree of another text. Equal parts are copied from it instead of parsed. The result is the same without it.
    /// - Throws: the errors of `work`, and `.outOfMemory`.
    package static func parse(
        _ bytes: UnsafeRawBufferPointer, copying: Bool = false, like other: JSONTree? = nil, work: DocumentControl
    ) throws -> JSONText? {
        guard bytes.count > 0, bytes.count <= sizeLimit, Bytes.isValidUTF8(bytes) else { return nil }
        guard copying else {
            var parser = JSONTreeParser(bytes, other, work)
            return try parser.run(owned: nil)
        }
        let memory = try Memory.allocate(bytes.count, "Reading JSON")
        memory.copyMemory(from: bytes)
        var parser = JSONTreeParser(UnsafeRawBufferPointer(memory), other, work)
        return try parser.run(owned: memory.baseAddress)
    }

    struct Open {
        var node: UInt32
        var isObject: Bool
        var canonical = true
        var sorted = true
        var members = 0
        /// The previous name, while the members are in order.
        var name: UInt32 = 0
        /// In the other text: the child after the last one that was found, and the child that corresponds to the current one.
        var beside: UInt32 = 0
        var ahead: UInt32 = 0
        /// The end of the children in the other text; 0 if there is none to follow.
        var besideEnd: UInt32 = 0
    }

    let bytes: UnsafeRawBufferPointer
    private let other: JSONTree?
    /// The bytes that may still be compared with the other text. Without this limit, many nested levels with much in common would take
    /// long.
    private var comparable: Int
    /// The container of the other text that corresponds to the next value, if there is one.
    private var partner: UInt32?
    /// Whether it is known that the next value differs from its partner.
    private var isOther = false
    private let work: DocumentControl
    private var words: UnsafeMutablePointer<UInt32>?
    private var count = 0
    private var capacity = 0
    /// The decoded text of strings with escapes.
    var decoded: UnsafeMutableRawPointer?
    var decodedCount = 0
    /// Two words for each large container.
    private var large: UnsafeMutablePointer<UInt32>?
    private var largeCount = 0, largeCapacity = 0
    var position = 0
    /// The innermost open container, if there is one, and those around it.
    var top = Open(node: 0, isObject: false)
    private var depth = 0
    /// Has room for the most levels. Allocated on first use.
    private var outer: UnsafeMutablePointer<Open>?
    private var names = DistinctNames()

    private init(_ bytes: UnsafeRawBufferPointer, _ other: JSONTree?, _ work: DocumentControl) {
        self.bytes = bytes
        self.other = other
        self.work = work
        comparable = 16 * bytes.count
        partner = other == nil ? nil : 0
    }

    private mutating func run(owned: UnsafeMutableRawPointer?) throws -> JSONText? {
        defer { outer?.deallocate() }
        do {
            if try parse(), let words {
                return JSONText(bytes, words: words, count: count, decoded: decoded, large: large, owned: owned)
            }
        } catch {
            free(words)
            free(decoded)
            free(large)
            free(owned)
            throw error
        }
        free(words)
        free(decoded)
        free(large)
        free(owned)
        return nil
    }

    // MARK: The text

    private mutating func parse() throws -> Bool {
        skipSpace()
        guard try value() else { return false }
        var checked = position
        while depth > 0 {
            if position - checked >= 1 << 18 {
                try work.done(position - checked)
                checked = position
            }
            skipSpace()
            guard position < bytes.count else { return false }
            let byte = bytes[position], isFirst = top.members == 0
            if byte == (top.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                position += 1
                guard try close() else { return false }
                continue
            }
            if !isFirst {
                guard byte == UInt8(ascii: ",") else { return false }
                position += 1
                skipSpace()
            }
            top.members += 1
            if top.isObject {
                let name = UInt32(truncatingIfNeeded: count)
                guard position < bytes.count, bytes[position] == UInt8(ascii: "\""), try string(isName: true) else { return false }
                follow(name, first: isFirst)
                skipSpace()
                guard position < bytes.count, bytes[position] == UInt8(ascii: ":") else { return false }
                position += 1
                skipSpace()
                if top.besideEnd > 0, isContainer { partner = member(named: name) }
            } else if top.besideEnd > 0, isContainer, try takeElement() {
                continue
            }
            guard try value() else { return false }
        }
        try work.done(position - checked)
        skipSpace()
        return position == bytes.count
    }

    /// Checks whether the name comes after the previous one in order.
    @inline(__always)
    private mutating func follow(_ name: UInt32, first: Bool) {
        guard top.sorted else { return }
        if !first, Bytes.compare(texts[top.name], texts[name]) >= 0 { top.sorted = false }
        top.name = name
    }

    @inline(__always)
    private mutating func skipSpace() {
        guard position < bytes.count, bytes[position] <= 0x20 else { return }
        skipAllSpace()
    }

    private mutating func skipAllSpace() {
        let start = position
        while position < bytes.count, JSONString.isSpace(bytes[position]) { position += 1 }
        if position > start { top.canonical = false }
    }

    @inline(__always)
    private mutating func value() throws -> Bool {
        guard position < bytes.count else { return false }
        switch bytes[position] {
        case UInt8(ascii: "\""): return try string(isName: false)
        case UInt8(ascii: "{"): return try begin(isObject: true)
        case UInt8(ascii: "["): return try begin(isObject: false)
        case UInt8(ascii: "t"): return try word("true", JSONCode.yes)
        case UInt8(ascii: "f"): return try word("false", JSONCode.no)
        case UInt8(ascii: "n"): return try word("null", JSONCode.null)
        default: return try number()
        }
    }

    private mutating func begin(isObject: Bool) throws -> Bool {
        guard depth < Self.depthLimit else { return false }
        if let node = partner, !isOther, try take(node) { return true }
        isOther = false
        var container = Open(node: UInt32(truncatingIfNeeded: count), isObject: isObject)
        if let other, let node = partner, other.kind(node) == (isObject ? .object : .array) {
            let first = node + JSONTree.containerSize
            (container.beside, container.ahead, container.besideEnd) = (first, first, other.next(node))
        }
        partner = nil
        if depth > 0 {
            let outer = outer ?? .allocate(capacity: Self.depthLimit)
            (outer + depth - 1).initialize(to: top)
            self.outer = outer
        }
        top = container
        depth += 1
        let first = try room(2)
        first[0] = UInt32(truncatingIfNeeded: position) | (isObject ? JSONCode.object : JSONCode.array) << 26
        count += 2
        position += 1
        return true
    }

    private mutating func number() throws -> Bool {
        // Mostly digits alone.
        let start = position, n = bytes.count
        var i = start
        if bytes[i] == UInt8(ascii: "-") { i += 1 }
        let first = i
        while i < n, bytes[i] &- 0x30 <= 9 { i += 1 }
        let digits = i - first, isWhole = i == n || (bytes[i] != UInt8(ascii: ".") && bytes[i] | 0x20 != UInt8(ascii: "e"))
        if isWhole, digits > 0, digits <= JSONDecimal.digitLimit, digits == 1 || bytes[first] != 0x30 {
            position = i
        } else {
            guard let number = JSONNumberSpelling(bytes, at: start), Self.isWithinLimits(number) else { return false }
            position = number.end
        }
        let length = position - start
        if length <= JSONCode.longestNumber {
            try add(JSONCode.shortNumber - 1 + UInt32(truncatingIfNeeded: length), from: start)
        } else {
            try add(JSONCode.number, from: start, length: length)
        }
        return true
    }

    static func isWithinLimits(_ number: JSONNumberSpelling) -> Bool {
        number.significant <= JSONDecimal.digitLimit && abs(number.exponent) <= JSONDecimal.exponentLimit
            && abs(number.magnitude) <= JSONDecimal.exponentLimit
    }

    private mutating func word(_ word: StaticString, _ code: UInt32) throws -> Bool {
        let size = word.utf8CodeUnitCount
        guard bytes.count - position >= size, let base = bytes.baseAddress, memcmp(base + position, word.utf8Start, size) == 0 else {
            return false
        }
        try add(code, from: position)
        position += size
        return true
    }

    private mutating func close() throws -> Bool {
        guard let words else { return false }
        let closed = top, first = words + Int(closed.node)
        let length = UInt32(truncatingIfNeeded: position) - first[0] & JSONTree.startMask, end = UInt32(truncatingIfNeeded: count)
        let size = end - closed.node
        if length < JSONTree.isLarge >> JSONTree.lengthShift, size <= JSONTree.wordsMask {
            first[1] = length << JSONTree.lengthShift | size
        } else {
            first[1] = try addLarge(length, end)
        }
        if closed.isObject, !closed.sorted { guard try areDistinct(closed) else { return false } }
        let isCanonical = closed.canonical && (!closed.isObject || closed.sorted)
        // The codes are ordered: each later one promises more.
        var code = closed.isObject ? JSONCode.object : JSONCode.array
        if closed.isObject, closed.sorted { code = JSONCode.sortedObject }
        if isCanonical { code += 1 }
        first[0] = first[0] & JSONTree.startMask | code << 26
        depth -= 1
        if depth > 0, let outer { top = outer[depth - 1] }
        if !isCanonical { top.canonical = false }
        return true
    }

    /// - Returns: the second word of a container.
    private mutating func addLarge(_ length: UInt32, _ end: UInt32) throws -> UInt32 {
        if 2 * largeCount == largeCapacity {
            let wanted = max(16, 2 * largeCapacity)
            guard let more = realloc(large, wanted * MemoryLayout<UInt32>.stride) else {
                throw StoreError(.outOfMemory, "Merging a value needs memory. Free some, and try again.")
            }
            (large, largeCapacity) = (more.bindMemory(to: UInt32.self, capacity: wanted), wanted)
        }
        guard let large else { return JSONTree.isLarge }
        (large[2 * largeCount], large[2 * largeCount + 1]) = (length, end)
        largeCount += 1
        return JSONTree.isLarge | UInt32(truncatingIfNeeded: largeCount - 1)
    }

    // MARK: Following another text

    private var isContainer: Bool {
        position < bytes.count && (bytes[position] == UInt8(ascii: "{") || bytes[position] == UInt8(ascii: "["))
    }

    /// Returns the first child of the other text, from `child` on, that is a container.
    private func container(_ other: JSONTree, from child: UInt32) -> UInt32 {
        var child = child
        let step = top.isObject ? JSONTree.nameSize : 0
        while child < top.besideEnd {
            if JSONCode.isContainer(other.code(child + step)) { break }
            child = other.next(child + step)
        }
        return child
    }

    /// Returns the value of the member of that name in the other text, if it is one of the next two containers.
    private mutating func member(named name: UInt32) -> UInt32? {
        guard let other else { return nil }
        var child = top.beside
        for _ in 0..<2 {
            child = container(other, from: child)
            guard child < top.besideEnd else { return nil }
            let value = child + JSONTree.nameSize, next = other.next(value)
            if Bytes.equal(other.text(child), texts[name]) {
                top.beside = next
                return value
            }
            child = next
        }
        return nil
    }

    /// Copies the next element if it is among the next ones of the other text, and the equal elements after it.
    private mutating func takeElement() throws -> Bool {
        guard let other else { return false }
        // If both lists have one element, it differs where the list differs.
        let first = top.beside
        if top.members == 1, first == top.ahead, JSONCode.isContainer(other.code(first)), other.next(first) == top.besideEnd {
            (partner, isOther, top.ahead) = (first, true, top.besideEnd)
            return false
        }
        var child = container(other, from: top.beside)
        top.beside = child
        var found: UInt32?
        if child < top.besideEnd, try take(child) { found = child }
        child = container(other, from: top.ahead)
        let ahead = child
        for _ in 0..<3 where found == nil && child < top.besideEnd {
            if try take(child) { found = child }
            child = container(other, from: other.next(child))
        }
        if let found {
            let next = try takeNeighbours(of: found, in: other)
            (top.beside, top.ahead) = (next, next)
            return true
        }
        if ahead < top.besideEnd {
            (partner, isOther) = (ahead, true)
            top.ahead = other.next(ahead)
        }
        return false
    }

    /// Copies a container of the other text if this text continues with the same bytes.
    private mutating func take(_ node: UInt32) throws -> Bool {
        guard let other, let base = bytes.baseAddress, JSONCode.isContainer(other.code(node)) else { return false }
        let text = other.text(node)
        guard let there = text.baseAddress, text.count <= bytes.count - position, comparable > 0 else { return false }
        // Most different containers differ in their last byte.
        guard text[text.count - 1] == bytes[position + text.count - 1] else { return false }
        comparable -= text.count
        guard memcmp(base + position, there, text.count) == 0 else { return false }
        guard try copy(node, other.next(node), shift: position - other.start(node), of: other) else { return false }
        position += text.count
        partner = nil
        if !other.isCanonical(node) { top.canonical = false }
        return true
    }

    /// Copies the elements that follow one in the other text, up to the first that differs.
    /// - Returns: that first element.
    private mutating func takeNeighbours(of element: UInt32, in other: JSONTree) throws -> UInt32 {
        let first = other.next(element), shift = position - other.start(element) - other.length(element)
        guard first < top.besideEnd, comparable > 0 else { return first }
        let common = Bytes.common(other.bytes, position - shift, bytes, position)
        comparable -= common
        // The byte that ends a scalar must be equal, too.
        let end = position - shift + common
        var node = first, before = position - shift, canonical = true, members = 0
        while node < top.besideEnd {
            let code = other.code(node), quote = code >= JSONCode.shortString || code == JSONCode.string
            guard !JSONCode.isEscaped(code) else { break }
            let start = other.start(node) - (quote ? 1 : 0), behind = other.start(node) + other.length(node) + (quote ? 1 : 0)
            guard behind < end else { break }
            if start != before + 1 || !JSONCode.isCanonical(code) { canonical = false }
            before = behind
            members += 1
            node = other.next(node)
        }
        guard members > 0, try copy(first, node, shift: shift, of: other) else { return first }
        position = before + shift
        top.members += members
        if !canonical { top.canonical = false }
        return node
    }

    /// Appends a range of the other text's nodes, whose text is `shift` bytes further on in this text.
    private mutating func copy(_ first: UInt32, _ end: UInt32, shift: Int, of other: JSONTree) throws -> Bool {
        let out = try room(Int(end - first)), from = other.words + Int(first), size = Int(end - first)
        let step = UInt32(truncatingIfNeeded: count) &- first, by = UInt32(truncatingIfNeeded: shift)
        var i = 0
        while i < size {
            let word = from[i], code = word >> 26
            out[i] = word &+ by
            if code >= JSONCode.shortNumber || code <= JSONCode.yes { i += 1; continue }
            out[i + 1] = from[i + 1]
            if JSONCode.isContainer(code), from[i + 1] & JSONTree.isLarge != 0 {
                let node = first + UInt32(truncatingIfNeeded: i)
                out[i + 1] = try addLarge(UInt32(truncatingIfNeeded: other.length(node)), other.next(node) &+ step)
            }
            if JSONCode.isEscaped(code) {
                guard let decoded = try decodedRoom() else { return false }
                out[i] = code << 26 | UInt32(truncatingIfNeeded: decodedCount)
                let text = other.text(first + UInt32(truncatingIfNeeded: i))
                if let start = text.baseAddress { memcpy(decoded + decodedCount, start, text.count) }
                decodedCount += text.count
            }
            i += 2
        }
        count += size
        return true
    }

    // MARK: Nodes

    /// Appends a node of one word.
    @inline(__always)
    mutating func add(_ code: UInt32, from start: Int) throws {
        try room(1)[0] = UInt32(truncatingIfNeeded: start) | code << 26
        count += 1
    }
    /// Appends a node of two words.
    @inline(__always)
    mutating func add(_ code: UInt32, from start: Int, length: Int) throws {
        let first = try room(2)
        first[0] = UInt32(truncatingIfNeeded: start) | code << 26
        first[1] = UInt32(truncatingIfNeeded: length)
        count += 2
    }

    /// Returns where the next `size` words go.
    @inline(__always)
    private mutating func room(_ size: Int) throws -> UnsafeMutablePointer<UInt32> {
        if capacity - count < size { try grow(size) }
        guard let words else { throw StoreError(.outOfMemory, "Merging a value needs memory.") }
        return words + count
    }

    private mutating func grow(_ more: Int) throws {
        let wanted = max(64, capacity + capacity / 2, bytes.count / 16, count + more), stride = MemoryLayout<UInt32>.stride
        guard let more = realloc(words, wanted * stride) else {
            throw StoreError(
                .outOfMemory,
                "Merging a value of \(bytes.count) bytes needs \(wanted * stride) bytes of memory at once, which are not free. "
                    + "Free some, and try again.")
        }
        words = more.bindMemory(to: UInt32.self, capacity: wanted)
        capacity = wanted
    }

    private var texts: NameTexts { NameTexts(words: words, bytes: bytes.baseAddress, decoded: decoded) }

    /// Returns whether no name occurs twice. For objects whose names are not in order.
    private mutating func areDistinct(_ object: Open) throws -> Bool {
        guard let words else { return false }
        let texts = texts, end = UInt32(truncatingIfNeeded: count)
        let tree = JSONTree(bytes: bytes, count: count, words: words, decoded: decoded, large: large)
        var i = object.node + JSONTree.containerSize
        if object.members <= 8 {
            while i < end {
                let next = tree.next(i + JSONTree.nameSize)
                var j = next
                while j < end {
                    if Bytes.equal(texts[i], texts[j]) { return false }
                    j = tree.next(j + JSONTree.nameSize)
                }
                i = next
            }
            return true
        }
        return names.areDistinct(tree, from: i, to: end, count: object.members, texts)
    }
}
