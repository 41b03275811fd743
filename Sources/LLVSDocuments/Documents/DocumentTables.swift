/// Tables of the children of a value's containers by what records identify them by. With them, many places are found in one value without
/// a walk over all members or elements for each. Tables are built on first use.
package final class DocumentTables {
    /// Nil if there is no value.
    let text: JSONText?
    let states: RuleStates
    private let bytes: ByteArena?
    private let values: DocumentValues
    private var lists: [UInt32: [UInt32]] = [:]
    private var names: [UInt32: [[UInt8]: Int]] = [:]
    private var keys: [UInt32: [[UInt8]: [Int]]] = [:]
    private var digests: [UInt32: [UInt64: [Int]]] = [:]
    private var sources: [UInt32: [[UInt8]: [Int]]] = [:]
    private var same: [Pair: (first: Int, last: Int)] = [:]
    private var texts: [Pair: TextParts?] = [:]

    /// An array or a string of this value and one of another value, which were compared.
    private struct Pair: Hashable { let node: UInt32, other: ObjectIdentifier, otherNode: UInt32 }

    /// - Parameter bytes: holds the bytes of the text; nil if they outlive this object.
    package init(_ text: JSONText?, _ rules: ValueRules, bytes: ByteArena? = nil, work: DocumentControl = DocumentControl()) {
        self.text = text
        self.bytes = bytes
        states = RuleStates(rules)
        values = DocumentValues(text.map { [$0] } ?? [], work: work)
    }

    private func ref(_ node: UInt32) -> ValueRef { ValueRef(tree: 0, node: node) }

    /// Returns the elements of an array, or the values of an object's members, in the order of the text.
    func children(of node: UInt32) -> [UInt32] {
        if let known = lists[node] { return known }
        let children = values.tree(ref(node)).children(of: node)
        lists[node] = children
        return children
    }

    /// Returns the index of the member of that name.
    func child(named name: UnsafeRawBufferPointer, of node: UInt32) throws -> Int? {
        if names[node] == nil {
            let tree = values.tree(ref(node))
            var table: [[UInt8]: Int] = [:]
            for (i, child) in children(of: node).enumerated() {
                try values.work.done(1)
                table[Array(tree.name(of: child))] = i
            }
            names[node] = table
        }
        return names[node]?[Array(name)]
    }

    /// Returns the index of the `occurrence`th element with a key, as canonical JSON.
    func child(keyed key: [UInt8], occurrence: Int, of node: UInt32, _ declared: [[[UInt8]]]?) throws -> Int? {
        if keys[node] == nil {
            let known = ElementKeys(values, declared: declared, usesID: declared == nil, atMost: 0)
            var table: [[UInt8]: [Int]] = [:]
            for (i, child) in children(of: node).enumerated() {
                let source = known.source(of: ref(child))
                guard source != .value else { continue }
                let bytes = try known.bytes(of: ref(child), source), several = known.parts(of: ref(child), source).count > 1
                table[several ? [UInt8(ascii: "[")] + bytes + [UInt8(ascii: "]")] : bytes, default: []].append(i)
            }
            keys[node] = table
        }
        guard let found = keys[node]?[key], found.indices.contains(occurrence) else { return nil }
        return found[occurrence]
    }

    /// Returns the indexes of all elements with a key.
    func children(knownBy key: [UInt8], _ source: ElementKeys.Source, of node: UInt32, _ declared: [[[UInt8]]]?) throws -> [Int] {
        if sources[node] == nil {
            let known = ElementKeys(values, declared: declared, usesID: declared == nil, atMost: 0)
            var table: [[UInt8]: [Int]] = [:]
            for (i, child) in children(of: node).enumerated() {
                let own = known.source(of: ref(child))
                if own != .value { table[[own.rawValue] + (try known.bytes(of: ref(child), own)), default: []].append(i) }
            }
            sources[node] = table
        }
        return sources[node]?[[source.rawValue] + key] ?? []
    }

    /// Returns how many elements at the beginning, and how many of the rest at the end, equal those of an array of another value. The
    /// other value must live as long as this one.
    func ends(
        _ node: UInt32, of other: DocumentTables, _ otherNode: UInt32, _ isSame: (Int, Int) throws -> Bool
    ) throws -> (first: Int, last: Int) {
        let pair = Pair(node: node, other: ObjectIdentifier(other), otherNode: otherNode)
        if let known = same[pair] { return known }
        let own = children(of: node).count, count = other.children(of: otherNode).count, most = min(own, count)
        var ends = (first: 0, last: 0)
        while ends.first < most, try isSame(ends.first, ends.first) { ends.first += 1 }
        while ends.first + ends.last < most, try isSame(count - 1 - ends.last, own - 1 - ends.last) { ends.last += 1 }
        same[pair] = ends
        return ends
    }

    /// Returns the comparison of a string of this value with a string of another value. Computes it once. The other value must live as long
    /// as this one.
    func parts(_ node: UInt32, of other: DocumentTables, _ otherNode: UInt32, _ make: () throws -> TextParts?) throws -> TextParts? {
        let pair = Pair(node: node, other: ObjectIdentifier(other), otherNode: otherNode)
        if let known = texts[pair] { return known }
        let made = try make()
        texts[pair] = .some(made)
        return made
    }

    /// Returns the indexes of all elements with a digest.
    func children(of digest: UInt64, _ node: UInt32) throws -> [Int] {
        let children = children(of: node)
        if digests[node] == nil {
            var table: [UInt64: [Int]] = [:]
            for (i, child) in children.enumerated() { table[try values.digest(ref(child)), default: []].append(i) }
            digests[node] = table
        }
        return digests[node]?[digest] ?? []
    }
}
