/// Identifies the elements of lists and sets: gives the same number to the same element on several sides.
struct ElementKeys {
    /// The source of an element's key. Keys of different sources are never equal.
    enum Source: UInt8, Sendable { case declared, id, value }

    private let values: DocumentValues
    private let declared: [[[UInt8]]]?
    /// The name of the member that is the key of objects, if the key is one top-level member.
    private let name: [UInt8]?
    /// Whether keys are made from members, which scalars lack.
    private let isByParts: Bool

    private struct Known {
        /// The lower half of the digest. Equal halves are checked by comparing the keys.
        let digest: UInt32
        /// The node in 27 bits (no tree has more words than a word and a half for each byte), its tree in 3, its source in 2.
        private let place: UInt32

        init(digest: UInt32, _ element: ValueRef, _ source: Source) {
            self.digest = digest
            place = element.node & 0x07FF_FFFF | (element.tree & 7) << 27 | UInt32(source.rawValue) << 30
        }
        var element: ValueRef { ValueRef(tree: place >> 27 & 7, node: place & 0x07FF_FFFF) }
        var source: Source { place >> 30 == 0 ? .declared : place >> 30 == 1 ? .id : .value }
    }
    /// Numbers in a hash table, `.max` in free slots. There may be few keys for many elements: reserved pages take no memory until they
    /// are written.
    private final class Slots {
        private let memory: UnsafeMutablePointer<UInt32>
        private let isFew: Bool
        let count: Int

        /// - Parameter count: a power of two. If the memory does not suffice, the table is smaller.
        init(_ count: Int) {
            var size = count, found: UnsafeMutableRawPointer?
            while size > Self.few {
                found = calloc(size, MemoryLayout<UInt32>.stride)
                if found != nil { break }
                size /= 2
            }
            isFew = found == nil
            memory = found?.bindMemory(to: UInt32.self, capacity: size) ?? .allocate(capacity: size)
            if isFew { memory.initialize(repeating: 0, count: size) }
            self.count = size
        }
        deinit { if isFew { memory.deallocate() } else { free(memory) } }
        private static let few = 16
        /// Stands for "no table". Nothing is ever written to it.
        nonisolated(unsafe) static let none = Slots(few)

        /// (Stored as complements, since fresh memory is zeros.)
        @inline(__always)
        subscript(_ i: Int) -> UInt32 {
            get { ~memory[i] }
            set { memory[i] = ~newValue }
        }
    }
    private var known: [Known] = []
    private var slots: Slots
    /// The number of elements that are fetched at once.
    static let batch = 16
    /// Smaller tables are in the cache in any case.
    private static let large = 1 << 16
    private var touched: UInt32 = 0
    /// The numbers of the shortest keys: numbers of one digit, and empty values.
    private var shortest: [UInt32] = []

    /// - Parameters:
    ///   - usesID: whether objects are known by their member `id` if no key is declared.
    ///   - count: the elements of one side.
    ///   - total: the most elements of all sides.
    init(_ values: DocumentValues, declared: [[[UInt8]]]?, usesID: Bool, atMost count: Int, of total: Int = 0) {
        self.values = values
        self.declared = declared
        isByParts = declared?.allSatisfy { !$0.isEmpty } ?? true
        if let declared {
            name = declared.count == 1 && declared[0].count == 1 ? declared[0][0] : nil
        } else {
            name = usesID ? Self.id : nil
        }
        var size = 16
        while size < count + count / 2 { size *= 2 }
        slots = Slots(size)
        // Most sides have most elements in common. Reserved pages take no memory until they are written.
        known.reserveCapacity(max(count, total))
    }

    var count: Int { known.count }
    func element(_ number: Int) -> ValueRef { known[number].element }
    func source(_ number: Int) -> Source { known[number].source }

    /// Returns the number of the element's key: the same for the same key, from 0 on. The element must be in one of the first 8 trees.
    mutating func number(of element: ValueRef) throws -> UInt32 {
        guard let place = placeInShortest(element) else { return try found(element) }
        if shortest.isEmpty { shortest = [UInt32](repeating: .max, count: 12) }
        if shortest[place] == .max { shortest[place] = try found(element) }
        return shortest[place]
    }

    @inline(__always)
    private func placeInShortest(_ element: ValueRef) -> Int? {
        guard isByParts else { return nil }
        let tree = values.tree(element), code = tree.code(element.node)
        if code == JSONCode.shortNumber { return Int(tree.bytes[tree.start(element.node)] &- 0x30) }
        guard JSONCode.isContainer(code), tree.isEmpty(element.node) else { return nil }
        return code <= JSONCode.canonicalArray ? 10 : 11
    }

    private mutating func found(_ element: ValueRef) throws -> UInt32 {
        let (slot, digest, source) = try find(element)
        if slots[slot] != .max { return slots[slot] }
        let number = UInt32(truncatingIfNeeded: known.count)
        known.append(Known(digest: digest, element, source))
        slots[slot] = number
        if 4 * known.count > 3 * slots.count { try grow() }
        return number
    }

    /// Fetches the memory for at most `batch` elements with short keys that will be looked up next, so that their cache misses overlap.
    /// It has no other effect.
    @inline(__always)
    mutating func touch(_ node: (Int) -> UInt32, _ range: Range<Int>, of tree: JSONTree) {
        // (Few keys are in the cache, also in a large table.)
        guard slots.count >= Self.large, known.count >= Self.large >> 3, isByParts else { return }
        let mask = slots.count - 1
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 2 * Self.batch) { memory in
            let found = UnsafeMutableBufferPointer(rebasing: memory[..<Self.batch])
            let trees = UnsafeMutableBufferPointer(rebasing: memory[Self.batch...])
            var count = 0
            for i in range {
                var node = node(i)
                if let name, let part = name.withUnsafeBytes({ tree.member($0, of: node) }) { node = part }
                let code = tree.code(node)
                guard code >= JSONCode.shortNumber, count < Self.batch else { continue }
                let kind = code >= JSONCode.shortString ? JSONKind.string : .number
                found[count] = UInt32(truncatingIfNeeded: Int(UInt32(truncatingIfNeeded: values.scalarDigest(tree, node, kind))) & mask)
                count += 1
            }
            for k in 0..<count { found[k] = slots[Int(found[k])] }
            // Known keys will be compared: fetch the entry, the node and the text.
            var places = 0
            for k in 0..<count where found[k] != .max {
                let element = known[Int(found[k])].element
                (found[places], trees[places]) = (element.node, element.tree)
                places += 1
            }
            for k in 0..<places {
                found[k] = UInt32(truncatingIfNeeded: values.tree(ValueRef(tree: trees[k], node: 0)).start(found[k]))
            }
            for k in 0..<places { touched &+= UInt32(values.tree(ValueRef(tree: trees[k], node: 0)).bytes[Int(found[k])]) }
            for k in places..<count { touched &+= found[k] }
        }
    }

    /// Releases the table. No more elements may be looked up.
    mutating func close() { slots = .none }

    /// Returns whether an element with the same key is known, the digest of that key, and its source. The element gets no number.
    func find(like element: ValueRef) throws -> (isKnown: Bool, digest: UInt32, source: Source) {
        let (slot, digest, source) = try find(element)
        return (slots[slot] != .max, digest, source)
    }

    /// Returns the slot of the key, or the free slot for it.
    @inline(__always)
    private func find(_ element: ValueRef) throws -> (slot: Int, digest: UInt32, source: Source) {
        let tree = values.tree(element), code = tree.code(element.node)
        // A short scalar is its own key, unless the declared key is the element itself.
        if code >= JSONCode.shortNumber, isByParts {
            try values.work.done(4)
            let kind = code >= JSONCode.shortString ? JSONKind.string : .number
            let digest = UInt32(truncatingIfNeeded: values.scalarDigest(tree, element.node, kind)), mask = slots.count - 1
            var i = Int(digest) & mask
            while slots[i] != .max {
                let other = known[Int(slots[i])]
                if other.digest == digest, other.source == .value {
                    let ref = other.element, its = values.tree(ref), itsCode = its.code(ref.node)
                    if itsCode == code ? values.sameShort(tree, element.node, its, ref.node, code) : try values.same(element, ref) { break }
                }
                i = (i + 1) & mask
            }
            return (i, digest, .value)
        }
        let (source, part) = identify(element)
        var whole = try part.map { try values.digest($0) } ?? 0
        if source == .declared, part == nil {
            for pointer in declared ?? [] {
                if let part = values.find(pointer, from: element) { whole = ValueDigest.mix(whole, try values.digest(part), values.seed) }
            }
        }
        try values.work.done(4)
        let digest = UInt32(truncatingIfNeeded: whole), mask = slots.count - 1
        var i = Int(digest) & mask
        while slots[i] != .max {
            let other = known[Int(slots[i])]
            if other.digest == digest, other.source == source, try areSame(element, other.element, source) { break }
            i = (i + 1) & mask
        }
        return (i, digest, source)
    }

    private mutating func grow() throws {
        let size = 2 * slots.count
        // Release the old table first, so that both never exist at once.
        slots = .none
        slots = Slots(size)
        // At least one slot must be free, or the search for an unknown key would never end.
        guard slots.count > known.count else {
            throw StoreError(.outOfMemory, "Merging a list needs \(4 * size) bytes of memory at once. Free some, and try again.")
        }
        let mask = slots.count - 1
        for (number, entry) in known.enumerated() {
            var i = Int(entry.digest) & mask
            while slots[i] != .max { i = (i + 1) & mask }
            slots[i] = UInt32(truncatingIfNeeded: number)
        }
    }

    private static let id = Array("id".utf8)

    /// Returns the source of the element's key; and if the key has exactly one part, that part.
    private func identify(_ element: ValueRef) -> (Source, ValueRef?) {
        let tree = values.tree(element)
        if let name, tree.kind(element.node) == .object {
            // The most frequent case.
            guard let node = name.withUnsafeBytes({ tree.member($0, of: element.node) }) else { return (.value, element) }
            let kind = tree.kind(node), part = ValueRef(tree: element.tree, node: node)
            if declared != nil { return kind < .array ? (.declared, part) : (.value, element) }
            return kind == .string || kind == .number ? (.id, part) : (.value, element)
        }
        if let declared {
            for pointer in declared {
                guard let part = values.find(pointer, from: element), values.kind(part) < .array else { return (.value, element) }
            }
            return (.declared, nil)
        }
        return (.value, element)
    }

    private static func id(of element: ValueRef, in values: DocumentValues) -> ValueRef? {
        let tree = values.tree(element)
        guard let node = id.withUnsafeBytes({ tree.member($0, of: element.node) }) else { return nil }
        let kind = tree.kind(node)
        return kind == .string || kind == .number ? ValueRef(tree: element.tree, node: node) : nil
    }

    /// Returns the source of the element's key without a lookup.
    func source(of element: ValueRef) -> Source { identify(element).0 }

    /// Returns bytes that are equal for equal keys of a source.
    func bytes(of element: ValueRef, _ source: Source) throws -> [UInt8] {
        let written = try parts(of: element, source).map { try CanonicalWriter.bytes(of: $0, in: values, normalises: true) }
        return Array(written.joined(separator: [UInt8(ascii: ",")]))
    }

    /// Returns the values that make the key of an element: those at the declared pointers, its `id`, or itself.
    func parts(of element: ValueRef, _ source: Source) -> [ValueRef] {
        switch source {
        case .declared: (declared ?? []).compactMap { values.find($0, from: element) }
        case .id: Self.id(of: element, in: values).map { [$0] } ?? []
        case .value: [element]
        }
    }

    private func member(_ name: [UInt8], of element: ValueRef) -> ValueRef {
        let node = name.withUnsafeBytes { values.tree(element).member($0, of: element.node) }
        return node.map { ValueRef(tree: element.tree, node: $0) } ?? .absent
    }

    private func areSame(_ a: ValueRef, _ b: ValueRef, _ source: Source) throws -> Bool {
        switch source {
        case .value: return try values.same(a, b)
        case .id: return try values.same(Self.id(of: a, in: values) ?? .absent, Self.id(of: b, in: values) ?? .absent)
        case .declared:
            // The most frequent case.
            if let name, values.isKind(a, .object), values.isKind(b, .object) {
                return try values.same(member(name, of: a), member(name, of: b))
            }
            for pointer in declared ?? [] {
                guard try values.same(values.find(pointer, from: a) ?? .absent, values.find(pointer, from: b) ?? .absent) else {
                    return false
                }
            }
            return true
        }
    }
}
