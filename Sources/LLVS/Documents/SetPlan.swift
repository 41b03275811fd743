/// A set that is merged by the keys of its elements.
final class SetPlan {
    private var keys: ElementKeys
    /// For each key the elements of the three sides.
    private var nodes: [[UInt32]] = []
    /// Of a key, its class and how many elements of that class are before it.
    private var parts: [(kind: UInt32, occurrence: Int)] = []
    private let isKeyed: Bool

    init(_ values: DocumentValues, _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, key: [[[UInt8]]]?) throws {
        let inputs = [o, x, y].map { ref in (ref, values.isKind(ref, .array) ? values.tree(ref).children(of: ref.node) : []) }
        let most = inputs.map(\.1.count).max() ?? 0
        isKeyed = key != nil
        keys = ElementKeys(values, declared: key, usesID: false, atMost: most)
        // Equal elements are one, in the first's spelling.
        var whole = ElementKeys(values, declared: nil, usesID: false, atMost: isKeyed ? most : 0)
        var places: [UInt64: Int] = [:]
        for (container, elements) in inputs {
            var nodes = [UInt32](repeating: MergeFrame.none, count: parts.count)
            var seen: Set<UInt32> = [], counts: [UInt32: Int] = [:]
            for element in elements {
                let ref = ValueRef(tree: container.tree, node: element)
                if isKeyed, !seen.insert(try whole.number(of: ref)).inserted { continue }
                let kind = try keys.number(of: ref), occurrence = counts[kind] ?? 0
                if isKeyed { counts[kind] = occurrence + 1 }
                let slot = UInt64(kind) << 32 | UInt64(occurrence)
                let place = places[slot] ?? parts.count
                if place == parts.count {
                    places[slot] = place
                    parts.append((kind, occurrence))
                }
                while nodes.count <= place { nodes.append(MergeFrame.none) }
                if nodes[place] == MergeFrame.none { nodes[place] = element }
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
        return .key(keys.parts(of: keys.element(kind), source), occurrence: parts[child].occurrence)
    }

    func contestedStep(_ child: Int) throws -> ContestedValues.Step {
        let kind = Int(parts[child].kind), source = keys.source(kind)
        return .key(source, try keys.bytes(of: keys.element(kind), source), occurrence: parts[child].occurrence)
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
