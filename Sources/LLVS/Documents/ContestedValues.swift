/// Values between which merges had to choose, by their place in a value. Merges for virtual bases tell theirs, and the merge above looks
/// whether its sides hold two of them.
public struct ContestedValues: Sendable {
    /// A step down to a place, so that it can be found again in any side.
    enum Step: Hashable, Sendable {
        case name([UInt8])
        case slot(Int)
        case key(ElementKeys.Source, [UInt8], occurrence: Int)
    }

    /// Digests of the values, by place.
    private(set) var places: [[Step]: Set<[UInt8]>] = [:]

    /// None.
    public init() {}

    /// Whether there are none.
    public var isEmpty: Bool { places.isEmpty }

    /// Adds what another merge told.
    public mutating func formUnion(_ other: ContestedValues) { places.merge(other.places) { $0.union($1) } }

    mutating func add(_ value: ValueRef, at place: [Step], in values: DocumentValues) throws {
        guard !value.isAbsent else { return }
        places[place, default: []].insert(try Self.digest(value, in: values))
    }

    /// The same for equal values only.
    static func digest(_ value: ValueRef, in values: DocumentValues) throws -> [UInt8] {
        if values.isKind(value, .raw) { return [0] + SHA256.digest(values.text(value)) }
        return try [1] + CanonicalWriter.bytes(of: value, in: values, normalises: true).withUnsafeBytes { SHA256.digest($0) }
    }

    /// The steps from the whole value down to a place of a merge.
    static func steps(_ place: ValueMerge.Place, in values: DocumentValues) throws -> [Step] {
        var steps: [Step] = [], place = place
        while let frame = place.frame {
            switch frame.shape {
            case .object: steps.append(.name(Array(values.text(frame.name(place.child)))))
            case .tuple: steps.append(.slot(place.child))
            case .list(let plan): steps.append(try plan.contestedStep(place.child))
            case .set(let plan): steps.append(try plan.contestedStep(place.child))
            }
            place = frame.place
        }
        return steps.reversed()
    }

    /// What is at a place of a side, and the state of the rules there.
    static func find(
        _ place: [Step], from value: ValueRef, _ rules: RuleStates, in values: DocumentValues
    ) throws -> (value: ValueRef, state: Int) {
        var value = value, state = RuleStates.start
        for step in place {
            guard !value.isAbsent else { return (.absent, RuleStates.none) }
            let tree = values.tree(value)
            switch step {
            case .name(let name):
                let node = name.withUnsafeBytes { tree.member($0, of: value.node) }
                state = name.withUnsafeBytes { rules.step(state, $0) }
                value = node.map { ValueRef(tree: value.tree, node: $0) } ?? .absent
            case .slot(let slot):
                let children = tree.kind(value.node) == .array ? tree.children(of: value.node) : []
                state = rules.step(state, slot: slot)
                value = slot < children.count ? ValueRef(tree: value.tree, node: children[slot]) : .absent
            case .key:
                let declared = rules.rule(state).flatMap { rules.rules.rules[$0].key }
                let children = tree.kind(value.node) == .array ? tree.children(of: value.node) : []
                state = rules.stepToElement(state)
                value = try element(step, of: children.map { ValueRef(tree: value.tree, node: $0) }, declared, in: values)
            }
        }
        return (value, state)
    }

    private static func element(
        _ step: Step, of elements: [ValueRef], _ declared: [[[UInt8]]]?, in values: DocumentValues
    ) throws -> ValueRef {
        guard case .key(let source, let bytes, let occurrence) = step else { return .absent }
        let keys = ElementKeys(values, declared: declared, usesID: declared == nil, atMost: 0)
        var left = occurrence
        for element in elements {
            let own = keys.source(of: element)
            guard own == source, try keys.bytes(of: element, own) == bytes else { continue }
            if left == 0 { return element }
            left -= 1
        }
        return .absent
    }
}
