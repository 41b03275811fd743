/// A value in one of the trees of a merge, or one that the merge computed, or none.
struct ValueRef: Equatable {
    var tree: UInt32
    var node: UInt32

    static let absent = ValueRef(tree: .max, node: 0)
    static let computedTree = UInt32.max - 1

    var isAbsent: Bool { tree == .max }
    var isComputed: Bool { tree == Self.computedTree }
}

/// A value that is in no input.
enum ComputedValue {
    case number([UInt8])
    case text([UInt8])
    case array(ValueRefs)
    /// In the order of their names, which are strings of some tree.
    case object([(name: ValueRef, value: ValueRef)])
}

/// The values that a merge works with: the trees of its inputs and of its rules, and what it computed.
final class DocumentValues {
    private var texts: [JSONText]
    private var trees: UnsafeMutablePointer<JSONTree>
    private(set) var computed: [ComputedValue] = []
    let work: DocumentControl
    /// Digests of large containers, made when they are first compared with others that are written otherwise.
    private var digests: [UInt64: UInt64] = [:]
    private var openDigests: [OpenDigest] = []
    private var touched: UInt8 = 0

    init(_ texts: [JSONText], work: DocumentControl) {
        self.texts = texts
        trees = UnsafeMutablePointer.allocate(capacity: texts.count)
        for (i, text) in texts.enumerated() { (trees + i).initialize(to: text.tree) }
        self.work = work
    }
    deinit { trees.deallocate() }

    /// Adds a tree, and gives its number.
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

    /// Whether a value of a tree is no container, and JSON.
    @inline(__always)
    func isScalar(_ ref: ValueRef) -> Bool {
        let code = tree(ref).code(ref.node)
        return !JSONCode.isContainer(code) && code != JSONCode.raw
    }

    func isKind(_ ref: ValueRef, _ kind: JSONKind) -> Bool { !ref.isAbsent && self.kind(ref) == kind }

    /// What a string stands for, or how a number is spelled; of values in a tree.
    @inline(__always)
    func text(_ ref: ValueRef) -> UnsafeRawBufferPointer { tree(ref).text(ref.node) }

    /// So many values are fetched at once.
    static let batch = 32
    /// Fewer values are near in any case.
    static let many = 1 << 10

    /// Fetches where some values stand, at most `batch`, that are to be looked at next and may stand anywhere: all at once, instead of one
    /// after the other. Nothing else comes of it.
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

    /// Whether both are one value, or scalars that are written alike. Not for computed ones, but for one value.
    @inline(__always)
    func areWrittenAlike(_ a: ValueRef, _ b: ValueRef) -> Bool {
        if a == b { return true }
        guard !a.isAbsent, !b.isAbsent, !a.isComputed, !b.isComputed else { return false }
        let p = tree(a), q = tree(b), code = p.code(a.node)
        return !JSONCode.isContainer(code) && JSONCode.kind(code) == q.kind(b.node) && Bytes.equal(p.text(a.node), q.text(b.node))
    }

    /// What the writer would write of a scalar with its number in the shortest form, where that stands in the text.
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

    /// Names and values of an object's members, in the order of the names.
    func sortedMembers(of ref: ValueRef) throws -> [UInt32] {
        let tree = tree(ref)
        var values = tree.children(of: ref.node)
        if !tree.isSorted(ref.node) { try MemberOrder.sort(&values, in: tree, work) }
        return values
    }

    // MARK: Equality

    /// Whether both are the same JSON; false where one is none.
    static func areSame(_ a: [UInt8], _ b: [UInt8]) throws -> Bool {
        let work = DocumentControl()
        return try a.withUnsafeBytes { a in
            try b.withUnsafeBytes { b in
                guard let x = try JSONTreeParser.parse(a, work: work), let y = try JSONTreeParser.parse(b, work: work) else { return false }
                return try DocumentValues([x, y], work: work).same(ValueRef(tree: 0, node: 0), ValueRef(tree: 1, node: 0))
            }
        }
    }

    /// Whether both are the same value, or both are absent. Not for computed ones.
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

    /// Whether two scalars of one code are the same, both of which are short.
    @inline(__always)
    func sameShort(_ p: JSONTree, _ a: UInt32, _ q: JSONTree, _ b: UInt32, _ code: UInt32) -> Bool {
        let x = p.text(a), y = q.text(b)
        if Bytes.equalShort(x, y) { return true }
        return code < JSONCode.shortString && sameNumber(x, y)
    }

    private func sameNumber(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        if Bytes.equal(a, b) { return true }
        // Whole numbers have one spelling, but for zero.
        if JSONDecimal.isWhole(a), JSONDecimal.isWhole(b) { return JSONDecimal.isWholeZero(a) && JSONDecimal.isWholeZero(b) }
        if let a = JSONDecimal.Short(a), let b = JSONDecimal.Short(b) { return a == b }
        guard let a = JSONDecimal(a), let b = JSONDecimal(b) else { return false }
        return a == b
    }

    /// Of each two inputs the containers in which a difference was found last, the outer before the inner. Merging goes down just there,
    /// and asks on each level.
    private var differing: [[(node: UInt32, other: UInt32)]] = []
    private static let short = 16
    /// Fewer levels are gone through again.
    private static let fewLevels = 4

    private func areKnownToDiffer(_ a: ValueRef, _ b: ValueRef) -> Bool {
        guard !differing.isEmpty, a.tree < 3, b.tree < 3 else { return false }
        let known = differing[Int(3 * a.tree + b.tree)]
        var low = 0, high = known.count
        while low < high {
            let middle = (low + high) / 2
            if known[middle].node < a.node { low = middle + 1 } else { high = middle }
        }
        return low < known.count && known[low].node == a.node && known[low].other == b.node
    }

    private func sameContainer(_ a: ValueRef, _ b: ValueRef) throws -> Bool {
        let p = tree(a), q = tree(b), size = p.length(a.node)
        if size <= Self.short, size == q.length(b.node), Bytes.equalShort(p.text(a.node), q.text(b.node)) { return true }
        if areKnownToDiffer(a, b) { return false }
        // Walks both as long as that takes few steps; whoever is asked about on every level would else be walked on every level.
        var budget = 1 << 14
        if let same = try walk(a, b, &budget) { return same }
        guard try digest(a) == digest(b) else { return false }
        budget = .max
        return try walk(a, b, &budget) ?? false
    }

    /// Goes through both side by side. Nil when the budget does not suffice.
    private func walk(_ a: ValueRef, _ b: ValueRef, _ budget: inout Int) throws -> Bool? {
        let p = tree(a), q = tree(b)
        // Two by two; those that are still to be gone through.
        var next = (a.node, b.node), pairs: [(UInt32, UInt32)] = []
        while true {
            var (i, j) = next
            let end = p.next(i), otherEnd = q.next(j)
            // The innermost that is open, and those around it. (Most have no others in them, and take no memory for this.)
            var open: OpenPair?, outer: [OpenPair] = []
            func differ() -> Bool {
                if outer.count >= Self.fewLevels, a.tree < 3, b.tree < 3, let open {
                    if differing.isEmpty { differing = Array(repeating: [], count: 9) }
                    differing[Int(3 * a.tree + b.tree)] = (outer + [open]).map { ($0.node, $0.other) }
                }
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
                        // Another order of members, or others. To sort many takes longer than to add up what they are.
                        if top.end - top.node > budget { return nil }
                        guard let members = try matched(p, top.node, q, top.other) else { return differ() }
                        // Those before were gone through, side by side: again, on each level, would take a power of two of steps.
                        let at = i, rest = members.filter { $0.0 > at }
                        budget -= rest.count
                        pairs += rest
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
                        try work.done(1 + s.count >> 5)
                        if Bytes.equal(s, t) { (i, j) = (p.next(i), q.next(j)); continue }
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
            guard i == end, j == otherEnd else { return false }
            guard let pair = pairs.popLast() else { return true }
            next = pair
        }
    }

    /// Two containers that are gone through side by side, and where they end.
    private struct OpenPair {
        var node: UInt32
        var other: UInt32
        var end: UInt32
        var otherEnd: UInt32
        var isObject: Bool
    }

    /// The values of members that have the same names; nil when the names are not the same.
    private func matched(_ p: JSONTree, _ node: UInt32, _ q: JSONTree, _ other: UInt32) throws -> [(UInt32, UInt32)]? {
        var left = p.children(of: node), right = q.children(of: other)
        guard left.count == right.count else { return nil }
        if !p.isSorted(node) { try MemberOrder.sort(&left, in: p, work) }
        if !q.isSorted(other) { try MemberOrder.sort(&right, in: q, work) }
        guard MemberOrder.agrees(left, p, right, q) else { return nil }
        return Array(zip(left, right))
    }

    // MARK: Digests

    /// The same for values that are the same. Not for computed ones.
    func digest(_ ref: ValueRef) throws -> UInt64 {
        let tree = tree(ref)
        var i = ref.node
        let end = tree.next(ref.node), kind = tree.kind(i)
        if kind != .array, kind != .object {
            try work.done(1)
            return scalarDigest(tree, i, kind)
        }
        if tree.isEmpty(i) { return Self.digest(ofEmpty: kind) }
        // Taken along from one to the next: there may be very many that are small.
        var open: [OpenDigest] = []
        swap(&open, &openDigests)
        open.removeAll(keepingCapacity: true)
        defer { swap(&open, &openDigests) }
        while true {
            var hash: UInt64
            let kind = i < end && !(open.last.map { i >= tree.next($0.node) } ?? false) ? tree.kind(i) : nil
            if let kind {
                if let top = open.last, top.isObject, top.name == 0 {
                    open[open.count - 1].name = ValueDigest.of(tree.text(i)) | 1
                    i += JSONTree.nameSize
                    continue
                }
                if kind == .array || kind == .object {
                    if tree.isEmpty(i) {
                        hash = Self.digest(ofEmpty: kind)
                        i = tree.next(i)
                    } else if Self.isKept(i, tree.next(i)), let known = digests[UInt64(ref.tree) << 32 | UInt64(i)] {
                        hash = known
                        i = tree.next(i)
                    } else {
                        open.append(OpenDigest(node: i, isObject: kind == .object, sum: UInt64(kind.rawValue)))
                        i += JSONTree.containerSize
                        continue
                    }
                } else {
                    hash = scalarDigest(tree, i, kind)
                    try work.done(1)
                    i = tree.next(i)
                }
            } else {
                guard let top = open.popLast() else { return 0 }
                hash = Self.digest(top.sum, isObject: top.isObject)
                if Self.isKept(top.node, i) { digests[UInt64(ref.tree) << 32 | UInt64(top.node)] = hash }
            }
            guard !open.isEmpty else { return hash }
            let last = open.count - 1
            if open[last].isObject {
                // The order of members is not to matter.
                open[last].sum = open[last].sum &+ ValueDigest.mix(open[last].name, hash)
                open[last].name = 0
            } else {
                open[last].sum = ValueDigest.mix(open[last].sum, hash) &+ 1
            }
        }
    }

    @inline(__always)
    private static func digest(_ sum: UInt64, isObject: Bool) -> UInt64 { ValueDigest.mix(sum, isObject ? 7 : 11) }
    private static func digest(ofEmpty kind: JSONKind) -> UInt64 { digest(UInt64(kind.rawValue), isObject: kind == .object) }

    private struct OpenDigest {
        var node: UInt32
        var isObject: Bool
        var sum: UInt64
        var name: UInt64 = 0
    }

    /// Whether the digest of a container is kept, of those that are large one in eight, and nobody knows which: many levels may be as large
    /// as each other.
    @inline(__always)
    private static func isKept(_ node: UInt32, _ end: UInt32) -> Bool { end - node >= 512 && ValueDigest.mix(UInt64(node), 1) >> 61 == 0 }

    func scalarDigest(_ tree: JSONTree, _ node: UInt32, _ kind: JSONKind) -> UInt64 {
        switch kind {
        case .null: ValueDigest.mix(1, 13)
        case .bool: ValueDigest.mix(tree.bool(node) ? 2 : 3, 17)
        case .number: ValueDigest.of(number: tree.text(node))
        default: ValueDigest.mix(ValueDigest.of(tree.text(node)), 19)
        }
    }

    // MARK: Order

    /// Less than 0, 0, or more than 0: by type, and within a type as documents are compared; arrays by their elements and objects by their
    /// members in the order of the names, shorter first where one begins as the other. Not for computed ones.
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
