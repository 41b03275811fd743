import CLLVSShims

/// Reads the tuple of a document in one pass, without a tree, where nothing in it is unusual. What it is not sure of is left to
/// `IndexTuples`, so that nobody sees which of both has read: text that is no JSON, names with escapes, what is wanted with some, numbers
/// with exponents or many digits, objects of many members, and deep ones. Used by one thread.
final class IndexScan {
    enum Outcome {
        /// `IndexTuples` is to be asked.
        case unsure
        /// It is in no index.
        case absent
        /// `tuple` is what it has, as long as its bytes are there.
        case found
    }

    private let definition: IndexDefinition
    private let plan: IndexPlan
    private let levels: UnsafeMutablePointer<Level>
    private let names: UnsafeMutablePointer<Name>
    /// What was found, and whether anything was, by slot.
    private let found: UnsafeMutablePointer<IndexPart>
    private let isThere: UnsafeMutablePointer<Bool>
    /// What was found last.
    let tuple: UnsafeMutableBufferPointer<IndexPart>

    private static let mostBytes = 1 << 20, mostLevels = 32, mostNames = 256, mostUnsorted = 32, mostDigits = 31

    /// Nil for a definition that is to be looked for otherwise.
    init?(_ definition: IndexDefinition) {
        guard let plan = definition.plan else { return nil }
        self.definition = definition
        self.plan = plan
        levels = .allocate(capacity: IndexScan.mostLevels)
        names = .allocate(capacity: IndexScan.mostNames)
        found = .allocate(capacity: plan.slots)
        isThere = .allocate(capacity: plan.slots)
        tuple = .allocate(capacity: plan.parts.count)
        tuple.initialize(repeating: .missing)
    }
    deinit {
        levels.deallocate()
        names.deallocate()
        found.deallocate()
        isThere.deallocate()
        tuple.deallocate()
    }

    /// Reads a value under whose id it may be in the index.
    func read(_ data: UnsafeRawBufferPointer) -> Outcome {
        guard let base = data.baseAddress, data.count <= IndexScan.mostBytes, Bytes.isValidUTF8(data) else { return .unsure }
        found.initialize(repeating: .missing, count: plan.slots)
        isThere.initialize(repeating: false, count: plan.slots)
        let isRead = plan.nodes.withUnsafeBufferPointer { nodes in
            plan.names.withUnsafeBufferPointer { wanted in
                plan.text.withUnsafeBytes { text in
                    var cursor = Cursor(base: base, count: data.count)
                    return read(&cursor, Wanted(nodes: nodes, names: wanted, text: text))
                }
            }
        }
        guard isRead else { return .unsure }
        for (i, condition) in definition.conditions.enumerated() where !holds(condition.wanted, plan.conditions[i]) { return .absent }
        for (i, slot) in plan.parts.enumerated() { tuple[i] = found[slot] }
        return tuple[0].isMissing ? .absent : .found
    }

    private func holds(_ wanted: IndexDefinition.Condition.Wanted, _ slot: Int) -> Bool {
        switch (wanted, found[slot]) {
        case (.present(let wanted), _): isThere[slot] == wanted
        case (.null, .null): true
        case (.bool(let wanted), .bool(let value)): wanted == value
        case (.number(let wanted), .number(let lexeme)): JSONDecimal(lexeme) == wanted
        case (.string(let wanted), .string(let text)): wanted.withUnsafeBytes { Bytes.equal(text, $0) }
        default: false
        }
    }

    // MARK: The text

    /// An object or array that is being read.
    private struct Level {
        var isObject: Bool
        /// What it is of the plan; negative: nothing.
        var node: Int
        /// Where its names begin.
        var first: Int
        /// Whether they stand in order so far.
        var isSorted = true
    }
    private struct Name {
        /// What it begins with, as `Bytes.word` has it.
        var word: UInt64
        var start: Int, count: Int
    }
    /// What is looked for.
    private struct Wanted {
        let nodes: UnsafeBufferPointer<IndexPlan.Node>
        let names: UnsafeBufferPointer<IndexPlan.Name>
        let text: UnsafeRawBufferPointer
    }
    private struct Cursor {
        let base: UnsafeRawPointer
        let count: Int
        var at = 0
        var depth = 0
        /// Names of the objects that are being read.
        var names = 0
        /// Whether an object or array was just begun.
        var isOpened = false

        /// The next byte that is no space; 0 at the end.
        @inline(__always)
        mutating func next() -> UInt8 {
            while at < count {
                let byte = base.load(fromByteOffset: at, as: UInt8.self)
                if byte > 0x20 { return byte }
                guard JSONString.isSpace(byte) else { return 0 }
                at &+= 1
            }
            return 0
        }
    }

    /// False where it is not sure.
    private func read(_ c: inout Cursor, _ wanted: Wanted) -> Bool {
        var node = 0
        _ = c.next()
        while true {
            guard value(&c, wanted, node) else { return false }
            // On to the next value.
            while true {
                guard c.depth > 0 else {
                    _ = c.next()
                    return c.at == c.count
                }
                let byte = c.next(), level = levels[c.depth &- 1], isFirst = c.isOpened
                c.isOpened = false
                if byte == (level.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
                    guard !level.isObject || level.isSorted || areDistinct(level.first..<c.names, c.base) else { return false }
                    c.names = level.first
                    c.depth &-= 1
                    c.at &+= 1
                    continue
                }
                if !isFirst {
                    guard byte == UInt8(ascii: ",") else { return false }
                    c.at &+= 1
                    _ = c.next()
                }
                guard level.isObject else { node = -1; break }
                guard let found = name(&c, wanted) else { return false }
                node = found
                break
            }
        }
    }

    /// Reads a value that is that node of the plan; of an object or array its beginning.
    @inline(__always)
    private func value(_ c: inout Cursor, _ wanted: Wanted, _ node: Int) -> Bool {
        guard c.at < c.count else { return false }
        let slot = node >= 0 ? wanted.nodes[node].slot : -1, start = c.at, byte = c.base.load(fromByteOffset: start, as: UInt8.self)
        let part: IndexPart
        switch byte {
        case UInt8(ascii: "\""):
            var isEscaped = false
            guard string(&c, &isEscaped) else { return false }
            guard slot >= 0 else { return true }
            if isEscaped { return false }
            part = .string(UnsafeRawBufferPointer(start: c.base + start + 1, count: c.at - start - 2))
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            let isObject = byte == UInt8(ascii: "{")
            // A name may be the number of an element.
            guard c.depth < IndexScan.mostLevels, isObject || node < 0 || wanted.nodes[node].names.isEmpty else { return false }
            levels[c.depth] = Level(isObject: isObject, node: node, first: c.names)
            c.depth &+= 1
            c.at &+= 1
            c.isOpened = true
            part = .missing
        case UInt8(ascii: "t"):
            guard word("true", &c) else { return false }
            part = .bool(true)
        case UInt8(ascii: "f"):
            guard word("false", &c) else { return false }
            part = .bool(false)
        case UInt8(ascii: "n"):
            guard word("null", &c) else { return false }
            part = .null
        default:
            guard number(&c) else { return false }
            part = .number(UnsafeRawBufferPointer(start: c.base + start, count: c.at - start))
        }
        if slot >= 0 {
            found[slot] = part
            isThere[slot] = true
        }
        return true
    }

    /// Reads a name and what is between it and its value; answers which node that is, or -1, and nil where it is not sure.
    @inline(__always)
    private func name(_ c: inout Cursor, _ wanted: Wanted) -> Int? {
        guard c.at < c.count, c.base.load(fromByteOffset: c.at, as: UInt8.self) == UInt8(ascii: "\""), c.names < IndexScan.mostNames else {
            return nil
        }
        let start = c.at &+ 1
        var isEscaped = false
        guard string(&c, &isEscaped), !isEscaped else { return nil }
        let count = c.at &- 1 &- start, text = UnsafeRawBufferPointer(start: c.base + start, count: count)
        let word = Bytes.word(text, at: 0), i = c.depth &- 1
        if levels[i].isSorted, c.names > levels[i].first {
            let before = names[c.names &- 1]
            if before.word > word {
                levels[i].isSorted = false
            } else if before.word == word {
                let order = Bytes.compare(UnsafeRawBufferPointer(start: c.base + before.start, count: before.count), text)
                if order == 0 { return nil }
                if order > 0 { levels[i].isSorted = false }
            }
        }
        names[c.names] = Name(word: word, start: start, count: count)
        c.names &+= 1
        guard c.next() == UInt8(ascii: ":") else { return nil }
        c.at &+= 1
        _ = c.next()
        guard levels[i].node >= 0 else { return -1 }
        for j in wanted.nodes[levels[i].node].names {
            let name = wanted.names[j]
            if name.word == word, name.count == count,
                count <= 8 || Bytes.equal(UnsafeRawBufferPointer(rebasing: wanted.text[name.start..<name.start + count]), text)
            {
                return name.node
            }
        }
        return -1
    }

    /// Whether no two of the names are the same; false also where they are many.
    private func areDistinct(_ range: Range<Int>, _ base: UnsafeRawPointer) -> Bool {
        guard range.count <= IndexScan.mostUnsorted else { return false }
        for i in range {
            let a = names[i]
            for j in range.lowerBound..<i where names[j].word == a.word && names[j].count == a.count {
                if a.count <= 8 || memcmp(base + a.start, base + names[j].start, a.count) == 0 { return false }
            }
        }
        return true
    }

    /// Goes behind a string whose opening quote is next.
    @inline(__always)
    private func string(_ c: inout Cursor, _ isEscaped: inout Bool) -> Bool {
        var i = c.at &+ 1
        while true {
            while i &+ 8 <= c.count {
                let found = JSONTreeParser.special(UInt64(littleEndian: c.base.loadUnaligned(fromByteOffset: i, as: UInt64.self)))
                if found != 0 {
                    i &+= found.trailingZeroBitCount >> 3
                    break
                }
                i &+= 8
            }
            guard i < c.count else { return false }
            let byte = c.base.load(fromByteOffset: i, as: UInt8.self)
            if byte == UInt8(ascii: "\"") {
                c.at = i &+ 1
                return true
            }
            if byte < 0x20 { return false }
            i &+= 1
            if byte == UInt8(ascii: "\\") {
                isEscaped = true
                guard JSONString.escape(UnsafeRawBufferPointer(start: c.base, count: c.count), at: &i) != nil else { return false }
            }
        }
    }

    /// Goes behind a number that has no exponent, and not many digits.
    @inline(__always)
    private func number(_ c: inout Cursor) -> Bool {
        var i = c.at
        func byte() -> UInt8 { i < c.count ? c.base.load(fromByteOffset: i, as: UInt8.self) : 0 }
        func digits() -> Bool {
            let start = i
            while byte() &- 0x30 < 10 { i &+= 1 }
            return i > start
        }
        if byte() == UInt8(ascii: "-") { i &+= 1 }
        if byte() == 0x30 { i &+= 1 } else if !digits() { return false }
        if byte() == UInt8(ascii: ".") {
            i &+= 1
            guard digits() else { return false }
        }
        guard byte() | 0x20 != UInt8(ascii: "e"), i &- c.at <= IndexScan.mostDigits else { return false }
        c.at = i
        return true
    }

    @inline(__always)
    private func word(_ word: StaticString, _ c: inout Cursor) -> Bool {
        let size = word.utf8CodeUnitCount
        guard c.count &- c.at >= size, memcmp(c.base + c.at, word.utf8Start, size) == 0 else { return false }
        c.at &+= size
        return true
    }
}
