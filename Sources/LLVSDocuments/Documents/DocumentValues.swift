/// A value in one of the trees of a merge, a computed value, or none.
package struct ValueRef: Equatable {
    package var tree: UInt32
    package var node: UInt32
    package init(tree: UInt32, node: UInt32) { self.tree = tree; self.node = node }

    static let absent = ValueRef(tree: .max, node: 0)
    static let computedTree = UInt32.max - 1

    var isAbsent: Bool { tree == .max }
    var isComputed: Bool { tree == Self.computedTree }
}

/// A value that is in none of the inputs.
enum ComputedValue {
    case number([UInt8])
    case text([UInt8])
    case array(ValueRefs)
    /// The members in the order of their names, which are strings of some tree.
    case object([(name: ValueRef, value: ValueRef)])
}

/// The values that a merge works with: the trees of its inputs and of its rules, and what it computed.
///
/// (The same holds for this class, frames and lists: one thread uses them, for one merge. Checking each access for exclusivity takes as
/// long as the work itself if values are small.)
package final class DocumentValues {
    @exclusivity(unchecked) private var texts: [JSONText]
    @exclusivity(unchecked) private var trees: UnsafeMutablePointer<JSONTree>
    @exclusivity(unchecked) private(set) var computed: [ComputedValue] = []
    let work: DocumentControl
    /// Digests of large containers, computed when they are first compared with containers of another spelling.
    @exclusivity(unchecked) private var digests: [UInt64: UInt64] = [:]
    @exclusivity(unchecked) private var openDigests: [OpenDigest] = []
    let seed = ValueDigest.seed
    @exclusivity(unchecked) private var touched: UInt8 = 0

    package init(_ texts: [JSONText], work: DocumentControl) {
        self.texts = texts
        trees = UnsafeMutablePointer.allocate(capacity: texts.count)
        for (i, text) in texts.enumerated() { (trees + i).initialize(to: text.tree) }
        self.work = work
    }
    deinit { trees.deallocate() }

    /// Adds a tree, and returns its number.
    func add(_ text: JSONText) -> UInt32 {
        let larger = UnsafeMutablePointer<JSONTree>.allocate(capacity: texts.count + 1)
        larger.moveInitialize(from: trees, count: texts.count)
        (larger + texts.count).initialize(to: text.tree)
        trees.deallocate()
        trees = larger
        texts.append(text)
        return UInt32(truncatingIfNeeded: texts.count - 1)
    }

    func add(_ value: ComputedValue) -> ValueRef {
        computed.append(value)
        return ValueRef(tree: ValueRef.computedTree, node: UInt32(truncatingIfNeeded: computed.count - 1))
    }

    @inline(__always)
    func tree(_ ref: ValueRef) -> JSONTree { trees[Int(ref.tree)] }

    func kind(_ ref: ValueRef) -> JSONKind {
        guard ref.isComputed else { return tree(ref).kind(ref.node) }
        switch computed[Int(ref.node)] {
        case .number: return .number
        case .text: return .string
        case .array: return .array
        case .object: return .object
        }
    }

    /// Returns whether a value of a tree is neither a container nor raw bytes.
    @inline(__always)
    func isScalar(_ ref: ValueRef) -> Bool {
        let code = tree(ref).code(ref.node)
        return !JSONCode.isContainer(code) && code != JSONCode.raw
    }

    func isKind(_ ref: ValueRef, _ kind: JSONKind) -> Bool { !ref.isAbsent && self.kind(ref) == kind }

    /// Returns the text of a string or the spelling of a number. The value must be in a tree.
    @inline(__always)
    func text(_ ref: ValueRef) -> UnsafeRawBufferPointer { tree(ref).text(ref.node) }

    /// Returns the bytes of a string or a text, computed or not.
    func size(_ ref: ValueRef) -> Int {
        guard ref.isComputed else { return ref.isAbsent ? 0 : text(ref).count }
        if case .text(let text) = computed[Int(ref.node)] { return text.count }
        return 0
    }

    /// The number of values that are fetched at once.
    static let batch = 32
    /// Below this number, the values are in the cache in any case.
    static let many = 1 << 10

    /// Fetches the memory of at most `batch` values that will be read next, so that their cache misses overlap. It has no other effect.
    @inline(__always)
    func touch(_ count: Int, _ ref: (Int) -> ValueRef) {
        withUnsafeTemporaryAllocation(of: UnsafeRawPointer.self, capacity: Self.batch) { places in
            var n = 0, sum: UInt8 = 0
            for i in 0..<min(count, Self.batch) {
                let ref = ref(i)
                guard !ref.isAbsent, !ref.isComputed else { continue }
                let tree = trees + Int(ref.tree)
                guard let base = tree.pointee.bytes.baseAddress, !tree.pointee.isEscaped(ref.node) else { continue }
                places[n] = base + tree.pointee.start(ref.node)
                n += 1
            }
            for i in 0..<n { sum &+= places[i].load(as: UInt8.self) }
            touched &+= sum
        }
    }

    /// Returns whether both are one value, or scalars of the same spelling. Computed values must be the same value.
    @inline(__always)
    func areWrittenAlike(_ a: ValueRef, _ b: ValueRef) -> Bool {
        if a == b { return true }
        guard !a.isAbsent, !b.isAbsent, !a.isComputed, !b.isComputed else { return false }
        let p = tree(a), q = tree(b), code = p.code(a.node)
        return !JSONCode.isContainer(code) && JSONCode.kind(code) == q.kind(b.node) && Bytes.equal(p.text(a.node), q.text(b.node))
    }

    /// Returns what the writer would write for a scalar with `normalises`, or nil unless the text has those bytes.
    func normalised(_ ref: ValueRef) -> UnsafeRawBufferPointer? {
        guard !ref.isComputed else { return nil }
        let tree = tree(ref)
        switch tree.kind(ref.node) {
        case .null, .bool: return tree.text(ref.node)
        case .string: return tree.quoted(ref.node)
        case .number:
            let text = tree.text(ref.node)
            return text.count <= 21 && JSONDecimal.isWhole(text) && !JSONDecimal.isWholeZero(text) ? text : nil
        default: return nil
        }
    }

    func find(_ pointer: [[UInt8]], from ref: ValueRef) -> ValueRef? {
        guard !ref.isAbsent, !ref.isComputed else { return nil }
        return tree(ref).find(pointer, from: ref.node).map { ValueRef(tree: ref.tree, node: $0) }
    }

    /// Returns the values of an object's members in the order of their names.
    func sortedMembers(of ref: ValueRef) throws -> [UInt32] {
        let tree = tree(ref)
        var values = tree.children(of: ref.node)
        if !tree.isSorted(ref.node) { try MemberOrder.sort(&values, in: tree, work) }
        return values
    }

    // MARK: Equality

    /// Returns whether both are the same JSON; false if one is not JSON.
    package static func areSame(_ a: [UInt8], _ b: [UInt8]) throws -> Bool {
        let work = DocumentControl()
        return try a.withUnsafeBytes { a in
            try b.withUnsafeBytes { b in
                guard let x = try JSONTreeParser.parse(a, work: work), let y = try JSONTreeParser.parse(b, work: work) else { return false }
                return try DocumentValues([x, y], work: work).same(ValueRef(tree: 0, node: 0), ValueRef(tree: 1, node: 0))
            }
        }
    }

    /// Returns whether both are equal or both absent. Not for different computed values.
    func same(_ a: ValueRef, _ b: ValueRef) throws -> Bool {
        if a == b { return true }
        if a.isAbsent || b.isAbsent { return false }
        let p = tree(a), q = tree(b), code = p.code(a.node), kind = JSONCode.kind(code)
        if code >= JSONCode.shortNumber, q.code(b.node) == code { return sameShort(p, a.node, q, b.node, code) }
        guard kind == q.kind(b.node) else { return false }
        switch kind {
        case .null: return true
        case .bool: return p.bool(a.node) == q.bool(b.node)
        case .number: return sameNumber(text(a), text(b))
        case .string, .raw:
            try work.done(1 + min(text(a).count, text(b).count) >> 4)
            return Bytes.equal(text(a), text(b))
        case .array, .object: return try sameContainer(a, b)
        }
    }

    /// Returns whether two short scalars of one code are equal.
    @inline(__always)
    func sameShort(_ p: JSONTree, _ a: UInt32, _ q: JSONTree, _ b: UInt32, _ code: UInt32) -> Bool {
        let x = p.text(a), y = q.text(b)
        if Bytes.equalShort(x, y) { return true }
        return code < JSONCode.shortString && sameNumber(x, y)
    }

    private func sameNumber(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        if Bytes.equal(a, b) { return true }
        // Whole numbers have one spelling each, except zero.
        if JSONDecimal.isWhole(a), JSONDecimal.isWhole(b) { return JSONDecimal.isWholeZero(a) && JSONDecimal.isWholeZero(b) }
        if let a = JSONDecimal.Short(a), let b = JSONDecimal.Short(b) { return a == b }
        guard let a = JSONDecimal(a), let b = JSONDecimal(b) else { return false }
        return a == b
    }

    /// For each two inputs, the containers in which a difference was found. Merging descends into these, and compares on each level.
    @exclusivity(unchecked) private var differing: [KnownDifference] = []
    private static let short = 16
    /// Values with at most this many levels are compared again.
    private static let fewLevels = 4

    private func areKnownToDiffer(_ a: ValueRef, _ b: ValueRef) -> Bool {
        guard !differing.isEmpty, a.tree < 3, b.tree < 3 else { return false }
        return differing[Int(3 * a.tree + b.tree)].contains(a.node, b.node)
    }

    private func sameContainer(_ a: ValueRef, _ b: ValueRef) throws -> Bool {
        let p = tree(a), q = tree(b), size = p.length(a.node)
        if size <= Self.short, size == q.length(b.node), Bytes.equalShort(p.text(a.node), q.text(b.node)) { return true }
        if areKnownToDiffer(a, b) { return false }
        // Compare step by step within a budget. If it does not suffice, compare digests first: a merge that compares on every level would
        // otherwise walk the whole container on every level.
        let end = p.next(a.node), isInputs = a.tree < 3 && b.tree < 3
        var budget = 1 << 14
        if !isInputs || differing.isEmpty || !differing[Int(3 * a.tree + b.tree)].isTooMuch(a.node, end) {
            if let same = try walk(a, b, &budget) { return same }
            if isInputs {
                makeKnown()
                differing[Int(3 * a.tree + b.tree)].tooMuch = (a.node, end)
            }
        }
        guard try digest(a) == digest(b) else { return false }
        budget = .max
        return try walk(a, b, &budget) ?? false
    }

    private func makeKnown() {
        if differing.isEmpty { differing = Array(repeating: KnownDifference(), count: 9) }
    }

    /// Compares both step by step. Returns nil if the budget does not suffice.
    private func walk(_ a: ValueRef, _ b: ValueRef, _ budget: inout Int) throws -> Bool? {
        let p = tree(a), q = tree(b)
        // The pairs that remain to be compared, each with its index in `around` plus one.
        var next = (a.node, b.node, 0), pairs: [(UInt32, UInt32, Int)] = [], around: [[OpenPair]] = []
        var texts = AlikeTexts()
        while true {
            var (i, j, place) = next
            let end = p.next(i), otherEnd = q.next(j)
            // The innermost open container, and those around it. (Most containers hold no others, and take no memory for this.)
            var open: OpenPair?, outer: [OpenPair] = []
            func all() -> [OpenPair] { (place > 0 ? around[place - 1] : []) + outer + (open.map { [$0] } ?? []) }
            func differ() -> Bool {
                guard outer.count >= Self.fewLevels || place > 0, a.tree < 3, b.tree < 3 else { return false }
                let levels = all()
                guard levels.count > Self.fewLevels else { return false }
                makeKnown()
                differing[Int(3 * a.tree + b.tree)].add(
                    levels.map { KnownDifference.Level(node: $0.node, other: $0.other) }, end: levels[0].end)
                return false
            }
            while i < end || j < otherEnd {
                while let top = open, i == top.end || j == top.otherEnd {
                    guard i == top.end, j == top.otherEnd else { return differ() }
                    open = outer.popLast()
                }
                if i >= end || j >= otherEnd { break }
                budget -= 1
                if budget < 0 { return nil }
                if let top = open, top.isObject {
                    if !Bytes.equal(p.text(i), q.text(j)) {
                        // The members have another order, or other names. Adding up digests is faster than sorting many members.
                        if top.end - top.node > budget { return nil }
                        guard let members = try matched(p, top.node, q, top.other) else { return differ() }
                        // The members before these are compared already. Comparing them again on each level would take exponential time.
                        let at = i, rest = members.filter { $0.0 > at }
                        budget -= rest.count
                        // With an unlimited budget the digests were found equal before, so no difference is expected.
                        around.append(budget > 1 << 32 ? [] : all())
                        for (one, other) in rest { pairs.append((one, other, around.count)) }
                        (i, j) = (top.end, top.otherEnd)
                        continue
                    }
                    i += JSONTree.nameSize
                    j += JSONTree.nameSize
                }
                let kind = p.kind(i)
                guard kind == q.kind(j) else { return differ() }
                if kind == .array || kind == .object {
                    let s = p.text(i), t = q.text(j)
                    if s.count == t.count {
                        let (areSame, compared) = texts.areSame(s, t, p.start(i), q.start(j))
                        budget -= compared >> 6
                        try work.done(1 + compared >> 5)
                        if areSame { (i, j) = (p.next(i), q.next(j)); continue }
                    }
                    if let open { outer.append(open) }
                    open = OpenPair(node: i, other: j, end: p.next(i), otherEnd: q.next(j), isObject: kind == .object)
                    i += JSONTree.containerSize
                    j += JSONTree.containerSize
                } else {
                    guard try same(ValueRef(tree: a.tree, node: i), ValueRef(tree: b.tree, node: j)) else { return differ() }
                    try work.done(1)
                    (i, j) = (p.next(i), q.next(j))
                }
            }
            guard i == end, j == otherEnd else { return differ() }
            guard let pair = pairs.popLast() else { return true }
            next = pair
        }
    }

    /// Two containers that are compared step by step, and their ends.
    private struct OpenPair {
        var node: UInt32
        var other: UInt32
        var end: UInt32
        var otherEnd: UInt32
        var isObject: Bool
    }

    /// Returns the pairs of members that have the same name, or nil if the names differ.
    private func matched(_ p: JSONTree, _ node: UInt32, _ q: JSONTree, _ other: UInt32) throws -> [(UInt32, UInt32)]? {
        var left = p.children(of: node), right = q.children(of: other)
        guard left.count == right.count else { return nil }
        if !p.isSorted(node) { try MemberOrder.sort(&left, in: p, work) }
        if !q.isSorted(other) { try MemberOrder.sort(&right, in: q, work) }
        guard MemberOrder.agrees(left, p, right, q) else { return nil }
        return Array(zip(left, right))
    }

    // MARK: Digests

    /// Returns a digest that is the same for equal values. Not for computed values.
    func digest(_ ref: ValueRef) throws -> UInt64 {
        let tree = tree(ref), kind = tree.kind(ref.node)
        if kind != .array, kind != .object {
            try work.done(1)
            return scalarDigest(tree, ref.node, kind)
        }
        if tree.isEmpty(ref.node) { return digest(ofEmpty: kind) }
        // The buffer is reused, since there may be very many small containers.
        var outer: [OpenDigest] = []
        swap(&outer, &openDigests)
        outer.removeAll(keepingCapacity: true)
        defer { swap(&outer, &openDigests) }
        // The innermost open container.
        var top = OpenDigest(ref.node, tree.next(ref.node), kind)
        var i = ref.node + JSONTree.containerSize, steps = 0
        while true {
            var hash: UInt64
            if i == top.end {
                hash = digest(top.sum, isObject: top.isObject)
                if isKept(top.node, i) { digests[UInt64(ref.tree) << 32 | UInt64(top.node)] = hash }
                guard let next = outer.popLast() else {
                    try work.done(steps)
                    return hash
                }
                top = next
            } else {
                if top.isObject {
                    top.name = textDigest(tree.text(i))
                    i += JSONTree.nameSize
                }
                let code = tree.code(i), kind = JSONCode.kind(code)
                if JSONCode.isContainer(code) {
                    let end = tree.next(i)
                    if end == i + JSONTree.containerSize {
                        hash = digest(ofEmpty: kind)
                    } else if isKept(i, end), let known = digests[UInt64(ref.tree) << 32 | UInt64(i)] {
                        hash = known
                    } else {
                        outer.append(top)
                        top = OpenDigest(i, end, kind)
                        i += JSONTree.containerSize
                        continue
                    }
                    i = end
                } else {
                    hash = scalarDigest(tree, i, kind)
                    i = tree.next(i)
                    steps += 1
                    if steps == 1 << 16 {
                        try work.done(steps)
                        steps = 0
                    }
                }
            }
            // The order of members must not matter.
            top.sum =
                top.isObject
                ? top.sum &+ ValueDigest.mix(top.name, hash, seed) : ValueDigest.mix(top.sum, hash, seed) &+ 1
        }
    }

    @inline(__always)
    private func digest(_ sum: UInt64, isObject: Bool) -> UInt64 { ValueDigest.mix(sum, isObject ? 7 : 11, seed) }
    @inline(__always)
    private func digest(ofEmpty kind: JSONKind) -> UInt64 { digest(UInt64(kind.rawValue), isObject: kind == .object) }
    @inline(__always)
    private func textDigest(_ text: UnsafeRawBufferPointer) -> UInt64 {
        text.baseAddress.map { ValueDigest.of(word: $0, text.count, seed) } ?? 0
    }

    private struct OpenDigest {
        var node: UInt32
        var end: UInt32
        var isObject: Bool
        var sum: UInt64
        /// The digest of the current member's name.
        var name: UInt64 = 0

        @inline(__always)
        init(_ node: UInt32, _ end: UInt32, _ kind: JSONKind) {
            (self.node, self.end, isObject, sum) = (node, end, kind == .object, UInt64(kind.rawValue))
        }
    }

    /// Returns whether the digest of a container is cached: if it is large, and for one in eight of the smaller ones, chosen by a random
    /// seed, since very many of these may be nested.
    @inline(__always)
    private func isKept(_ node: UInt32, _ end: UInt32) -> Bool {
        let size = end - node
        return size >= 512 && (size >= 4_096 || ValueDigest.mix(UInt64(node), 1, seed) >> 61 == 0)
    }

    @inline(__always)
    func scalarDigest(_ tree: JSONTree, _ node: UInt32, _ kind: JSONKind) -> UInt64 {
        switch kind {
        case .null: ValueDigest.mix(1, 13, seed)
        case .bool: ValueDigest.mix(tree.bool(node) ? 2 : 3, 17, seed)
        case .number: ValueDigest.of(number: tree.text(node), seed)
        default: ValueDigest.mix(textDigest(tree.text(node)), 19, seed)
        }
    }

    // MARK: Order

    /// Compares two values; not for computed ones. Returns a number below, at or above 0. Values are ordered by type, and within a type
    /// as documents are compared: arrays by their elements, objects by their members in the order of the names. A prefix comes first.
    func compare(_ a: ValueRef, _ b: ValueRef) throws -> Int {
        var open: [(left: [UInt32], right: [UInt32], next: Int, isObject: Bool)] = []
        let p = tree(a), q = tree(b)
        var i = a.node, j = b.node
        while true {
            try work.done(1)
            let kind = p.kind(i), other = q.kind(j)
            guard kind == other else { return kind < other ? -1 : 1 }
            if kind == .array || kind == .object {
                let isObject = kind == .object
                let left = isObject ? try sortedMembers(of: ValueRef(tree: a.tree, node: i)) : p.children(of: i)
                let right = isObject ? try sortedMembers(of: ValueRef(tree: b.tree, node: j)) : q.children(of: j)
                open.append((left, right, 0, isObject))
            } else {
                let order = compareScalars(p, i, q, j, kind)
                if order != 0 { return order }
            }
            while let top = open.last, top.next == min(top.left.count, top.right.count) {
                if top.left.count != top.right.count { return top.left.count - top.right.count }
                open.removeLast()
            }
            guard let top = open.last else { return 0 }
            (i, j) = (top.left[top.next], top.right[top.next])
            open[open.count - 1].next += 1
            if top.isObject {
                let order = Bytes.compare(p.name(of: i), q.name(of: j))
                if order != 0 { return order }
            }
        }
    }

    private func compareScalars(_ p: JSONTree, _ i: UInt32, _ q: JSONTree, _ j: UInt32, _ kind: JSONKind) -> Int {
        switch kind {
        case .bool: (p.bool(i) ? 1 : 0) - (q.bool(j) ? 1 : 0)
        case .number: JSONDecimal.compare(p.decimal(i), q.decimal(j))
        case .string: Bytes.compare(p.text(i), q.text(j))
        default: 0
        }
    }
}
