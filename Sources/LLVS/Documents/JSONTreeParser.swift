/// Makes the tree of a text that can be merged: RFC 8259 in UTF-8, no name twice in one object, within the limits.
struct JSONTreeParser {
    static let depthLimit = 128
    static let sizeLimit = 64 << 20

    /// Nil when the text cannot be merged inside.
    /// - Parameters:
    ///   - copying: the tree keeps bytes of its own.
    ///   - other: the tree of another text: what is the same there is not read again. The result is the same without it.
    /// - Throws: what `work` throws, and `.outOfMemory`.
    static func parse(
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
        /// The name before, while the members are in order.
        var name: UInt32 = 0
        /// In the other text the child behind the last one that was found there, and the one as far on as this text is since.
        var beside: UInt32 = 0
        var ahead: UInt32 = 0
        /// Behind the children there; 0 where there is nothing to go along.
        var besideEnd: UInt32 = 0
    }

    let bytes: UnsafeRawBufferPointer
    private let other: JSONTree?
    /// Bytes that may still be compared with those of the other text, which else took long for many levels of much that is alike.
    private var comparable: Int
    /// What the value that is to be read next is in the other text, if it is there.
    private var partner: UInt32?
    private let work: DocumentControl
    private var nodes: UnsafeMutablePointer<JSONTree.Node>?
    private var count = 0
    private var capacity = 0
    /// What strings stand for in which something is escaped.
    var decoded: UnsafeMutableRawPointer?
    var decodedCount = 0
    var position = 0
    var open: [Open] = []
    private var names = DistinctNames()

    private init(_ bytes: UnsafeRawBufferPointer, _ other: JSONTree?, _ work: DocumentControl) {
        self.bytes = bytes
        self.other = other
        self.work = work
        comparable = 16 * bytes.count
        partner = other == nil ? nil : 0
        open.reserveCapacity(16)
    }

    private mutating func run(owned: UnsafeMutableRawPointer?) throws -> JSONText? {
        do {
            if try parse(), let nodes {
                return JSONText(bytes, nodes: nodes, count: count, decoded: decoded, owned: owned)
            }
        } catch {
            free(nodes)
            free(decoded)
            free(owned)
            throw error
        }
        free(nodes)
        free(decoded)
        free(owned)
        return nil
    }

    // MARK: The text

    private mutating func parse() throws -> Bool {
        skipSpace()
        guard try value() else { return false }
        var checked = position
        while let top = open.last {
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
            open[open.count - 1].members += 1
            if top.isObject {
                let name = UInt32(truncatingIfNeeded: count)
                guard position < bytes.count, bytes[position] == UInt8(ascii: "\""), try string() else { return false }
                follow(name, first: isFirst)
                skipSpace()
                guard position < bytes.count, bytes[position] == UInt8(ascii: ":") else { return false }
                position += 1
                skipSpace()
                if top.besideEnd > 0, isContainer { partner = member(named: name) }
            } else if top.besideEnd > 0, isContainer, try takeElement() { continue }
            guard try value() else { return false }
        }
        try work.done(position - checked)
        skipSpace()
        return position == bytes.count
    }

    /// Whether the name stands behind the one before it in order.
    private mutating func follow(_ name: UInt32, first: Bool) {
        let i = open.count - 1
        if open[i].sorted {
            if !first, Bytes.compare(texts[open[i].name], texts[name]) >= 0 { open[i].sorted = false }
            open[i].name = name
        }
    }

    @inline(__always)
    private mutating func skipSpace() {
        guard position < bytes.count, bytes[position] <= 0x20 else { return }
        let start = position
        while position < bytes.count, JSONString.isSpace(bytes[position]) { position += 1 }
        if position > start, !open.isEmpty { open[open.count - 1].canonical = false }
    }

    private mutating func value() throws -> Bool {
        guard position < bytes.count else { return false }
        switch bytes[position] {
        case UInt8(ascii: "\""): return try string()
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard open.count < Self.depthLimit else { return false }
            let isObject = bytes[position] == UInt8(ascii: "{")
            if let node = partner, try take(node) { return true }
            var container = Open(node: UInt32(truncatingIfNeeded: count), isObject: isObject)
            if let other, let node = partner, other.kind(node) == (isObject ? .object : .array) {
                (container.beside, container.ahead, container.besideEnd) = (node + 1, node + 1, other.next(node))
            }
            partner = nil
            open.append(container)
            try add(isObject ? .object : .array, from: position, length: 0)
            position += 1
            return true
        case UInt8(ascii: "t"): return try word("true", .bool)
        case UInt8(ascii: "f"): return try word("false", .bool)
        case UInt8(ascii: "n"): return try word("null", .null)
        default:
            guard let number = JSONNumberSpelling(bytes, at: position), Self.isWithinLimits(number) else { return false }
            try add(.number, from: position, length: number.end - position, JSONTree.canonicalBit)
            position = number.end
            return true
        }
    }

    static func isWithinLimits(_ number: JSONNumberSpelling) -> Bool {
        number.significant <= JSONDecimal.digitLimit && abs(number.exponent) <= JSONDecimal.exponentLimit
            && abs(number.magnitude) <= JSONDecimal.exponentLimit
    }

    // MARK: Along another text

    private var isContainer: Bool {
        position < bytes.count && (bytes[position] == UInt8(ascii: "{") || bytes[position] == UInt8(ascii: "["))
    }

    /// The first child there that is a container, from one on.
    private func container(_ other: JSONTree, from child: UInt32, _ top: Open) -> UInt32 {
        var child = child
        let step: UInt32 = top.isObject ? 1 : 0
        while child < top.besideEnd {
            let kind = other.kind(child + step)
            if kind == .array || kind == .object { break }
            child = other.next(child + step)
        }
        return child
    }

    /// What the member of that name is there: the next that is a container, or the one behind that.
    private mutating func member(named name: UInt32) -> UInt32? {
        guard let other, let top = open.last else { return nil }
        var child = top.beside
        for _ in 0..<2 {
            child = container(other, from: child, top)
            guard child < top.besideEnd else { return nil }
            let next = other.next(child + 1)
            if Bytes.equal(other.text(child), texts[name]) {
                open[open.count - 1].beside = next
                return child + 1
            }
            child = next
        }
        return nil
    }

    /// Takes over the next element, where it is among the next ones there.
    private mutating func takeElement() throws -> Bool {
        guard let other, let top = open.last else { return false }
        let i = open.count - 1
        var child = container(other, from: top.beside, top)
        open[i].beside = child
        var next: UInt32?
        if child < top.besideEnd, try take(child) { next = child }
        child = container(other, from: top.ahead, top)
        let ahead = child
        for _ in 0..<3 where next == nil && child < top.besideEnd {
            if try take(child) { next = child }
            child = container(other, from: other.next(child), top)
        }
        if let next {
            (open[i].beside, open[i].ahead) = (other.next(next), other.next(next))
            return true
        }
        if ahead < top.besideEnd {
            partner = ahead
            open[i].ahead = other.next(ahead)
        }
        return false
    }

    /// Takes over a container of the other text, if it stands here just so.
    private mutating func take(_ node: UInt32) throws -> Bool {
        guard let other, let base = bytes.baseAddress else { return false }
        let kind = other.kind(node)
        guard kind == .array || kind == .object else { return false }
        let text = other.text(node)
        guard let there = text.baseAddress, text.count <= bytes.count - position, comparable > 0 else { return false }
        comparable -= text.count
        guard memcmp(base + position, there, text.count) == 0 else { return false }
        let end = other.next(node), size = Int(end - node)
        if capacity - count < size { try grow(size) }
        guard let nodes else { return false }
        let shift = UInt32(truncatingIfNeeded: position) &- other[node].head & JSONTree.startMask
        let step = UInt32(truncatingIfNeeded: count) &- node
        for i in node..<end {
            var entry = other[i]
            if entry.head & JSONTree.escapedBit == 0 {
                entry.head = entry.head & ~JSONTree.startMask | (entry.head &+ shift) & JSONTree.startMask
            } else {
                guard let decoded = try decodedRoom() else { return false }
                entry.head = entry.head & ~JSONTree.startMask | UInt32(truncatingIfNeeded: decodedCount)
                if let start = other.text(i).baseAddress { memcpy(decoded + decodedCount, start, Int(entry.length)) }
                decodedCount += Int(entry.length)
            }
            entry.next = entry.next &+ step
            nodes[count] = entry
            count += 1
        }
        position += text.count
        partner = nil
        if !other.isCanonical(node), !open.isEmpty { open[open.count - 1].canonical = false }
        return true
    }

    private mutating func word(_ word: StaticString, _ kind: JSONKind) throws -> Bool {
        let size = word.utf8CodeUnitCount
        guard bytes.count - position >= size, let base = bytes.baseAddress, memcmp(base + position, word.utf8Start, size) == 0 else {
            return false
        }
        try add(kind, from: position, length: size, JSONTree.canonicalBit)
        position += size
        return true
    }

    private mutating func close() throws -> Bool {
        guard let top = open.popLast(), let nodes else { return false }
        let i = Int(top.node), start = nodes[i].head & JSONTree.startMask
        nodes[i].length = UInt32(truncatingIfNeeded: position) - start
        nodes[i].next = UInt32(truncatingIfNeeded: count)
        if top.isObject {
            if top.sorted { nodes[i].head |= JSONTree.sortedBit } else {
                guard try areDistinct(top) else { return false }
            }
        }
        if top.canonical, !top.isObject || top.sorted {
            nodes[i].head |= JSONTree.canonicalBit
        } else if !open.isEmpty { open[open.count - 1].canonical = false }
        return true
    }

    // MARK: Nodes

    @inline(__always)
    mutating func add(_ kind: JSONKind, from start: Int, length: Int, _ flags: UInt32 = 0) throws {
        if count == capacity { try grow() }
        nodes?[count] = JSONTree.Node(
            head: UInt32(truncatingIfNeeded: start) | UInt32(kind.rawValue) << 26 | flags, length: UInt32(truncatingIfNeeded: length),
            next: UInt32(truncatingIfNeeded: count + 1))
        count += 1
    }

    private mutating func grow(_ more: Int = 1) throws {
        let wanted = max(16, capacity + capacity / 2, bytes.count / 32, count + more), stride = MemoryLayout<JSONTree.Node>.stride
        guard let more = realloc(nodes, wanted * stride) else {
            throw StoreError(
                .outOfMemory,
                "Merging a value of \(bytes.count) bytes needs \(wanted * stride) bytes of memory at once, which there are not. "
                    + "Free some, and try again.")
        }
        nodes = more.bindMemory(to: JSONTree.Node.self, capacity: wanted)
        capacity = wanted
    }

    private var texts: NodeTexts { NodeTexts(nodes: nodes, bytes: bytes.baseAddress, decoded: decoded) }

    /// Whether no name is there twice; for objects whose names are not in order.
    private mutating func areDistinct(_ object: Open) throws -> Bool {
        guard let nodes else { return false }
        let texts = texts, end = nodes[Int(object.node)].next
        var i = object.node + 1
        if object.members <= 8 {
            while i < end {
                var j = nodes[Int(i) + 1].next
                while j < end {
                    if Bytes.equal(texts[i], texts[j]) { return false }
                    j = nodes[Int(j) + 1].next
                }
                i = nodes[Int(i) + 1].next
            }
            return true
        }
        names.begin(object.members)
        while i < end {
            if !names.insert(i, texts) { return false }
            i = nodes[Int(i) + 1].next
        }
        return true
    }
}
