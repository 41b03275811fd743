/// A set that is merged by the keys of its elements.
final class SetPlan {
    private let values: DocumentValues
    private var keys: ElementKeys
    private var nodes: [[UInt32]] = []

    init(_ values: DocumentValues, _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, key: [[[UInt8]]]?) throws {
        self.values = values
        let inputs = [o, x, y].map { ref in (ref, values.isKind(ref, .array) ? values.tree(ref).children(of: ref.node) : []) }
        keys = ElementKeys(values, declared: key, usesID: false, atMost: inputs.map(\.1.count).max() ?? 0)
        for (container, elements) in inputs {
            // Of elements with one key the first stays.
            var nodes = [UInt32](repeating: MergeFrame.none, count: keys.count)
            for element in elements {
                let number = Int(try keys.number(of: ValueRef(tree: container.tree, node: element)))
                while nodes.count <= number { nodes.append(MergeFrame.none) }
                if nodes[number] == MergeFrame.none { nodes[number] = element }
            }
            self.nodes.append(nodes)
        }
    }

    func children(of frame: MergeFrame) {
        func filled(_ nodes: [UInt32]) -> [UInt32] { nodes + [UInt32](repeating: MergeFrame.none, count: keys.count - nodes.count) }
        frame.base = filled(nodes[0])
        frame.newer = filled(nodes[1])
        frame.older = filled(nodes[2])
        nodes = []
    }

    func step(_ child: Int) -> RecordPath.Step {
        let source = keys.source(child)
        guard source != .value else { return .index(child) }
        return .key(keys.parts(of: keys.element(child), source))
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
            elements.sort { a, b in
                Bytes.compare(UnsafeRawBufferPointer(rebasing: all[a.start..<a.end]), UnsafeRawBufferPointer(rebasing: all[b.start..<b.end])) < 0
            }
        }
        try values.work.done(4 * elements.count)
        return elements.map(\.ref)
    }
}
