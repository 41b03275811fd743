/// A set that is merged by the keys of its elements.
final class SetPlan {
    private var keys: ElementKeys
    /// For each key the elements of the three sides.
    private var nodes: [[UInt32]] = []
    /// Of a key, its class and how many elements of that class are before it.
    private var parts: [(kind: UInt32, occurrence: UInt32)] = []
    private let isKeyed: Bool

    init(_ values: DocumentValues, _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, key: [[[UInt8]]]?) throws {
        let inputs = [o, x, y].map { ref in (ref, values.isKind(ref, .array) ? values.tree(ref).children(of: ref.node) : []) }
        let most = inputs.map(\.1.count).max() ?? 0, none = MergeFrame.none
        try Memory.expect(32 * inputs.reduce(0) { $0 + $1.1.count }, "Merging a set")
        isKeyed = key != nil
        keys = ElementKeys(values, declared: key, usesID: false, atMost: most)
        // Equal elements are one, in the first's spelling: for each of them the last side that had it.
        var whole = ElementKeys(values, declared: nil, usesID: false, atMost: isKeyed ? most : 0), seen: [UInt8] = []
        // The first key of each class, and behind each key the next one of its class.
        var first: [UInt32] = [], next: [UInt32] = []
        for (side, (container, elements)) in inputs.enumerated() {
            let mark = UInt8(truncatingIfNeeded: side + 1)
            var nodes = [UInt32](repeating: none, count: parts.count), last = [UInt32](repeating: none, count: first.count)
            for element in elements {
                let ref = ValueRef(tree: container.tree, node: element)
                if isKeyed {
                    let number = Int(try whole.number(of: ref))
                    if number == seen.count { seen.append(0) }
                    if seen[number] == mark { continue }
                    seen[number] = mark
                }
                let kind = Int(try keys.number(of: ref))
                if kind == first.count { first.append(none) }
                while last.count < first.count { last.append(none) }
                let before = isKeyed ? last[kind] : none
                var place = before == none ? first[kind] : next[Int(before)]
                if place == none {
                    place = UInt32(truncatingIfNeeded: parts.count)
                    if before == none { first[kind] = place } else { next[Int(before)] = place }
                    next.append(none)
                    let occurrence = before == none ? 0 : parts[Int(before)].occurrence + 1
                    parts.append((UInt32(truncatingIfNeeded: kind), occurrence))
                    nodes.append(element)
                } else if nodes[Int(place)] == none {
                    nodes[Int(place)] = element
                }
                last[kind] = place
            }
            self.nodes.append(nodes)
        }
    }

    func children(of frame: MergeFrame) {
        func filled(_ nodes: [UInt32]) -> [UInt32] { nodes + [UInt32](repeating: MergeFrame.none, count: parts.count - nodes.count) }
        frame.base = filled(nodes[0])
        frame.newer = filled(nodes[1])
        frame.older = filled(nodes[2])
        nodes = []
        guard !isKeyed else { return }
        // Elements that are known by their value are there or not: nothing is merged inside them.
        for i in 0..<parts.count {
            let stays = frame.base[i] == MergeFrame.none || (frame.newer[i] != MergeFrame.none && frame.older[i] != MergeFrame.none)
            frame.deliver(!stays ? .absent : frame.newer[i] == MergeFrame.none ? frame.y(i) : frame.x(i))
        }
    }

    func step(_ child: Int) -> RecordPath.Step {
        let kind = Int(parts[child].kind), source = keys.source(kind)
        guard source != .value else { return .index(0) }
        return .key(keys.parts(of: keys.element(kind), source), occurrence: Int(parts[child].occurrence))
    }

    func contestedStep(_ child: Int) throws -> ContestedValues.Step {
        let kind = Int(parts[child].kind), source = keys.source(kind)
        return .key(source, try keys.bytes(of: keys.element(kind), source), occurrence: Int(parts[child].occurrence))
    }

    /// The elements that came out, in the order of their bytes.
    func emit(_ results: [ValueRef], _ values: DocumentValues) throws -> [ValueRef] {
        var written: [UInt8] = [], elements: [(start: Int, end: Int, ref: ValueRef)] = []
        var writer = CanonicalWriter(values, normalises: true)
        for result in results where !result.isAbsent {
            writer.clear()
            try writer.write(result)
            let start = written.count
            written += writer.bytes
            elements.append((start, written.count, result))
        }
        written.withUnsafeBytes { all in
            func bytes(_ element: (start: Int, end: Int, ref: ValueRef)) -> UnsafeRawBufferPointer {
                UnsafeRawBufferPointer(rebasing: all[element.start..<element.end])
            }
            elements.sort { Bytes.compare(bytes($0), bytes($1)) < 0 }
        }
        try values.work.done(4 * elements.count)
        return elements.map(\.ref)
    }
}
