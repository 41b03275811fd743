/// Merges a set by the keys of its elements.
final class SetPlan {
    @exclusivity(unchecked) private var keys: ElementKeys
    /// For each side, the element of each key.
    @exclusivity(unchecked) private var nodes: [[UInt32]] = []
    /// For each declared key, its class and the number of elements of that class before it.
    @exclusivity(unchecked) private var parts: [(kind: UInt32, occurrence: UInt32)] = []
    private let isKeyed: Bool
    private let saves: Bool
    private let values: DocumentValues

    /// - Parameter saves: whether the base is an app's rendering of the older side.
    init(_ values: DocumentValues, _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, key: [[[UInt8]]]?, saves: Bool = false) throws {
        self.saves = saves
        let inputs = [o, x, y].map { ref in (ref, values.isKind(ref, .array) ? values.tree(ref).children(of: ref.node) : []) }
        let most = inputs.map(\.1.count).max() ?? 0, none = MergeFrame.none
        try Memory.expect(32 * inputs.reduce(0) { $0 + $1.1.count }, "Merging a set")
        isKeyed = key != nil
        self.values = values
        let total = inputs.reduce(0) { $0 + $1.1.count }
        keys = ElementKeys(values, declared: key, usesID: false, atMost: most, of: total)
        guard isKeyed else {
            // Equal elements count once. The first one's spelling is used.
            for (container, elements) in inputs {
                var nodes = [UInt32](repeating: none, count: keys.count)
                for (i, element) in elements.enumerated() {
                    if i & (ElementKeys.batch - 1) == 0 {
                        keys.touch({ elements[$0] }, i..<min(elements.count, i + ElementKeys.batch), of: values.tree(container))
                    }
                    let number = Int(try keys.number(of: ValueRef(tree: container.tree, node: element)))
                    if number == nodes.count { nodes.append(element) } else if nodes[number] == none { nodes[number] = element }
                }
                self.nodes.append(nodes)
            }
            keys.close()
            return
        }
        parts.reserveCapacity(total)
        // The first key of each class, and after each key the next one of its class.
        var first: [UInt32] = [], next: [UInt32] = []
        first.reserveCapacity(total)
        next.reserveCapacity(total)
        for (container, elements) in inputs {
            // Equal elements count once.
            var whole = ElementKeys(values, declared: nil, usesID: false, atMost: elements.count)
            var nodes = [UInt32](repeating: none, count: parts.count), last = [UInt32](repeating: none, count: first.count)
            for element in elements {
                let ref = ValueRef(tree: container.tree, node: element)
                let known = whole.count
                if Int(try whole.number(of: ref)) < known { continue }
                let kind = Int(try keys.number(of: ref))
                if kind == first.count { first.append(none) }
                while last.count < first.count { last.append(none) }
                let before = last[kind]
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
        keys.close()
    }

    /// Gives the frame its children. Without a declared key, elements are not merged inside, but are present or absent.
    func children(of frame: MergeFrame) {
        let none = MergeFrame.none
        defer { nodes = [] }
        guard !isKeyed else {
            func filled(_ side: Int) -> [UInt32] {
                var nodes: [UInt32] = []
                swap(&nodes, &self.nodes[side])
                let missing = parts.count - nodes.count
                nodes.reserveCapacity(parts.count)
                nodes.append(contentsOf: repeatElement(none, count: missing))
                return nodes
            }
            frame.base = filled(0)
            frame.newer = filled(1)
            frame.older = filled(2)
            frame.reserve(parts.count)
            return
        }
        let count = keys.count, (x, y) = (frame.inputs.x.tree, frame.inputs.y.tree)
        // The table of elements is no longer needed.
        keys = ElementKeys(values, declared: nil, usesID: false, atMost: 0)
        func node(_ side: Int, _ i: Int) -> UInt32 { i < nodes[side].count ? nodes[side][i] : none }
        frame.reserve(count)
        let made = saves ? madeOfOthers(count, frame, node) : [:], known = Set(made.values)
        for i in 0..<count {
            let newer = node(1, i), older = node(2, i)
            if let source = made[i] {
                // The element stays as the older side's element that it was made from, unless the app also has that element itself.
                let stays = newer != none && node(1, source) == none
                frame.deliver(stays ? ValueRef(tree: y, node: node(2, source)) : .absent)
                continue
            }
            if known.contains(i) {
                frame.deliver(newer == none ? .absent : ValueRef(tree: x, node: newer))
                continue
            }
            let stays = node(0, i) == none || (newer != none && older != none)
            frame.deliver(!stays ? .absent : newer != none ? ValueRef(tree: x, node: newer) : ValueRef(tree: y, node: older))
        }
    }

    /// In a save, pairs the elements that only the base has with the elements that only the older side has, if there are equally many of
    /// both. The app knows a part of them, or spells them differently.
    private func madeOfOthers(_ count: Int, _ frame: MergeFrame, _ node: (Int, Int) -> UInt32) -> [Int: Int] {
        let none = MergeFrame.none, (o, y) = (frame.inputs.o, frame.inputs.y)
        let made = (0..<count).filter { node(0, $0) != none && node(2, $0) == none }
        let sources = (0..<count).filter { node(0, $0) == none && node(2, $0) != none }
        guard made.count == sources.count else { return [:] }
        let pairs = zip(made.sorted { node(0, $0) < node(0, $1) }, sources.sorted { node(2, $0) < node(2, $1) })
        let areAlike = pairs.allSatisfy { a, b in
            values.kind(ValueRef(tree: o.tree, node: node(0, a))) == values.kind(ValueRef(tree: y.tree, node: node(2, b)))
        }
        return areAlike ? Dictionary(uniqueKeysWithValues: pairs.map { ($0, $1) }) : [:]
    }

    func step(_ child: Int) -> RecordPath.Step {
        guard isKeyed else { return .index(child) }
        let kind = Int(parts[child].kind), source = keys.source(kind)
        guard source != .value else { return .index(0) }
        return .key(keys.parts(of: keys.element(kind), source), occurrence: Int(parts[child].occurrence))
    }

    func contestedStep(_ child: Int) throws -> ContestedValues.Step {
        guard isKeyed else { return .slot(child) }
        let kind = Int(parts[child].kind), source = keys.source(kind)
        return .key(source, try keys.bytes(of: keys.element(kind), source), occurrence: Int(parts[child].occurrence))
    }

    /// Returns the elements of the result, in the order of their bytes.
    func emit(_ frame: MergeFrame, _ values: DocumentValues) throws -> ValueRefs {
        let places = 0..<frame.next, count = places.reduce(0) { $0 + (frame.isAbsent($1) ? 0 : 1) }
        try Memory.expect(count * 2 * MemoryLayout<MemberOrder.Named>.stride, "Merging a set")
        var bytes: [UInt8] = [], starts: [UInt32] = [], elements: [MemberOrder.Named] = []
        // Most elements are copied as they are.
        let likely = places.reduce(0) { sum, place in
            let result = frame.result(place)
            return result.isAbsent || result.isComputed ? sum : sum + values.text(result).count + 2
        }
        try Memory.grow(&bytes, by: likely, "Merging a set")
        starts.reserveCapacity(frame.next + 1)
        elements.reserveCapacity(count)
        var writer = CanonicalWriter(values, normalises: true)
        for place in places {
            let result = frame.result(place)
            starts.append(UInt32(truncatingIfNeeded: bytes.count))
            guard !result.isAbsent else { continue }
            let start = bytes.count
            if let text = values.normalised(result) {
                bytes.append(contentsOf: text)
            } else {
                writer.clear()
                try writer.write(result)
                bytes += writer.bytes
            }
            // The first eight bytes decide most comparisons.
            let word = bytes.withUnsafeBytes { Bytes.word($0, at: start) }
            elements.append(MemberOrder.Named(word: word, node: UInt32(truncatingIfNeeded: place), note: 0))
        }
        starts.append(UInt32(truncatingIfNeeded: bytes.count))
        bytes.withUnsafeBytes { all in
            func bytes(_ element: MemberOrder.Named) -> UnsafeRawBufferPointer {
                UnsafeRawBufferPointer(rebasing: all[Int(starts[Int(element.node)])..<Int(starts[Int(element.node) + 1])])
            }
            MemberOrder.sort(&elements) { Bytes.compare(bytes($0), bytes($1)) < 0 }
        }
        try values.work.done(4 * elements.count)
        var sorted = elements.map(\.node)
        return ValueRefs(of: frame.results, taking: &sorted)
    }
}
