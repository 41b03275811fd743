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
    /// How many digests, and that there were too many: then there are none, whatever is added.
    private var count = 0, isTooMuch = false
    /// Each level of a ladder of merges has those of all levels below.
    private static let most = 1_024

    /// None.
    public init() {}

    /// Whether there are none.
    public var isEmpty: Bool { places.isEmpty }

    /// Adds what another merge told.
    public mutating func formUnion(_ other: ContestedValues) {
        if other.isTooMuch { dropAll() }
        for (place, digests) in other.places { for digest in digests { add(digest, at: place) } }
    }

    mutating func add(_ value: ValueRef, at place: [Step], in values: DocumentValues) throws {
        guard !value.isAbsent, !isTooMuch else { return }
        add(try Self.digest(value, in: values), at: place)
    }

    private mutating func add(_ digest: [UInt8], at place: [Step]) {
        guard !isTooMuch, places[place, default: []].insert(digest).inserted else { return }
        count += 1
        if count > Self.most { dropAll() }
    }

    private mutating func dropAll() {
        isTooMuch = true
        places = [:]
    }

    /// The same for equal values only.
    static func digest(_ value: ValueRef, in values: DocumentValues) throws -> [UInt8] {
        if values.isKind(value, .raw) { return [0] + SHA256.digest(values.text(value)) }
        return try [1] + CanonicalWriter.bytes(of: value, in: values, normalises: true).withUnsafeBytes { SHA256.digest($0) }
    }

    /// The steps from the whole value down to a place of a merge.
    static func steps(_ place: UInt32, _ places: KeptPlaces, in values: DocumentValues) throws -> [Step] {
        var steps: [Step] = [], place = place
        while place != KeptPlaces.whole {
            if let name = places.name(of: place) { steps.append(.name(Array(values.text(name)))) }
            if let known = places.element(of: place) { steps.append(try step(to: known, in: values)) }
            if let (frame, child) = places.holder(of: place) {
                switch frame.shape {
                case .object: break
                case .tuple: steps.append(.slot(child))
                case .chain(let chain):
                    for step in try chain.steps(of: frame.inputs, values).reversed() {
                        switch step {
                        case .name(let name): steps.append(.name(Array(values.text(name))))
                        case .element(let known): steps.append(try Self.step(to: known, in: values))
                        }
                    }
                case .elements: break
                case .list(let plan): steps.append(try plan.contestedStep(child))
                case .set(let plan): steps.append(try plan.contestedStep(child))
                }
            }
            place = places.parent(of: place)
        }
        return steps.reversed()
    }

    private static func step(to known: ShortLists.Known, in values: DocumentValues) throws -> Step {
        switch known {
        case .value(let base, _): .key(.value, try CanonicalWriter.bytes(of: base, in: values, normalises: true), occurrence: 0)
        case .id(let id, let occurrence):
            .key(.id, try CanonicalWriter.bytes(of: id, in: values, normalises: true), occurrence: occurrence)
        }
    }

    /// Finds places in values. What a container holds is put into a table when something is first looked for in it: there may be many
    /// places, and many elements.
    final class Finder {
        private struct Key: Hashable {
            var source: ElementKeys.Source
            var bytes: [UInt8]
        }
        private let values: DocumentValues
        private let rules: RuleStates
        private var names: [UInt64: [[UInt8]: UInt32]] = [:]
        private var elements: [UInt64: [Key: [ValueRef]]] = [:]

        init(_ values: DocumentValues, _ rules: RuleStates) {
            self.values = values
            self.rules = rules
        }

        private func number(_ ref: ValueRef) -> UInt64 { UInt64(ref.tree) << 32 | UInt64(ref.node) }

        /// What is at a place of a side, and the state of the rules there.
        func find(_ place: [Step], from value: ValueRef) throws -> (value: ValueRef, state: Int) {
            var value = value, state = RuleStates.start
            for step in place {
                guard !value.isAbsent else { return (.absent, RuleStates.none) }
                let tree = values.tree(value)
                switch step {
                case .name(let name):
                    state = name.withUnsafeBytes { rules.step(state, $0) }
                    value = try member(name, of: value)
                case .slot(let slot):
                    let children = tree.kind(value.node) == .array ? tree.children(of: value.node) : []
                    state = rules.step(state, slot: slot)
                    value = slot < children.count ? ValueRef(tree: value.tree, node: children[slot]) : .absent
                case .key(let source, let bytes, let occurrence):
                    let declared = rules.rule(state).flatMap { rules.rules.rules[$0].key }
                    state = rules.stepToElement(state)
                    let found = try elements(of: value, declared)[Key(source: source, bytes: bytes)] ?? []
                    value = found.indices.contains(occurrence) ? found[occurrence] : .absent
                }
            }
            return (value, state)
        }

        private func member(_ name: [UInt8], of value: ValueRef) throws -> ValueRef {
            let tree = values.tree(value)
            guard tree.kind(value.node) == .object else { return .absent }
            if names[number(value)] == nil {
                var table: [[UInt8]: UInt32] = [:]
                for child in tree.children(of: value.node) {
                    try values.work.done(1)
                    table[Array(tree.name(of: child))] = child
                }
                names[number(value)] = table
            }
            return names[number(value)]?[name].map { ValueRef(tree: value.tree, node: $0) } ?? .absent
        }

        private func elements(of value: ValueRef, _ declared: [[[UInt8]]]?) throws -> [Key: [ValueRef]] {
            if let known = elements[number(value)] { return known }
            let tree = values.tree(value), keys = ElementKeys(values, declared: declared, usesID: declared == nil, atMost: 0)
            var table: [Key: [ValueRef]] = [:]
            for child in tree.kind(value.node) == .array ? tree.children(of: value.node) : [] {
                let element = ValueRef(tree: value.tree, node: child), source = keys.source(of: element)
                table[Key(source: source, bytes: try keys.bytes(of: element, source)), default: []].append(element)
            }
            elements[number(value)] = table
            return table
        }
    }
}
