/// A place in a value that a record of a merge names, found again in this or another state of the value.
struct DocumentPlace {
    /// A container on the way, and what is to be known to write it with another child.
    private struct Level {
        let container: ValueRef
        /// Which of its children leads on; nil where none does.
        var child: Int?
        /// Of an object's member.
        var name: ValueRef?
    }

    private let values: DocumentValues
    private let tables: DocumentTables
    private var levels: [Level] = []
    /// What is there; absent where there is nothing.
    private(set) var value: ValueRef

    /// The trees of `values`: the value, the path, what is expected there, and what is to be put there.
    private enum Tree { static let value: UInt32 = 0, path: UInt32 = 1, expected: UInt32 = 2, other: UInt32 = 3 }

    /// - Parameters:
    ///   - path: as records have it.
    ///   - tables: of the value.
    ///   - expected: JSON that belongs there: tells elements without a key apart.
    ///   - other: JSON that can be put there.
    /// - Throws: `.invalidArgument` when the path is none, or the others are no JSON.
    init(
        _ path: [UInt8], in tables: DocumentTables, expected: [UInt8]?, other: [UInt8]? = nil, work: DocumentControl = DocumentControl()
    ) throws {
        let parsed = try path.withUnsafeBytes { try JSONTreeParser.parse($0, copying: true, work: work) }
        guard let path = parsed, path.tree.kind(0) == .array else {
            throw StoreError(.invalidArgument, "A conflict names its place as a JSON array; give the conflict as it was told.")
        }
        let scalars = try [expected, other].map { try $0.map { try Self.scalar($0, work) } }
        let whole = UnsafeRawBufferPointer(start: nil, count: 0)
        let absent = try JSONText(whole: whole, as: .raw)
        self.tables = tables
        values = DocumentValues([tables.text ?? absent, path] + scalars.map { $0 ?? absent }, work: work)
        value = tables.text == nil ? .absent : ValueRef(tree: Tree.value, node: 0)
        let states = tables.states
        var state = RuleStates.start
        let wanted = expected == nil ? ValueRef.absent : ValueRef(tree: Tree.expected, node: JSONTree.containerSize)
        let steps = path.tree.children(of: 0)
        for (i, step) in steps.enumerated() {
            let isLast = i == steps.count - 1
            try go(ValueRef(tree: Tree.path, node: step), &state, states, isLast ? wanted : .absent)
        }
    }

    /// JSON of any type, as the one element of an array: what is parsed has a container at its top.
    private static func scalar(_ json: [UInt8], _ work: DocumentControl) throws -> JSONText {
        let bytes = [UInt8(ascii: "[")] + json + [UInt8(ascii: "]")]
        guard let text = try bytes.withUnsafeBytes({ try JSONTreeParser.parse($0, copying: true, work: work) }),
              text.tree.children(of: 0).count == 1 else {
            throw StoreError(.invalidArgument, "The values of a conflict are JSON; give the conflict as it was told.")
        }
        return text
    }

    private mutating func go(_ step: ValueRef, _ state: inout Int, _ states: RuleStates, _ wanted: ValueRef) throws {
        let container = value
        value = .absent
        guard !container.isAbsent else {
            levels.append(Level(container: .absent))
            return
        }
        let tree = values.tree(container), kind = tree.kind(container.node)
        switch values.kind(step) {
        case .string:
            let name = values.text(step)
            state = states.step(state, name)
            var level = Level(container: container, name: step)
            if kind == .object {
                level.child = try tables.child(named: name, of: container.node)
                value = level.child.map { ValueRef(tree: container.tree, node: tables.children(of: container.node)[$0]) } ?? .absent
            }
            levels.append(level)
        case .object:
            let declared = states.rule(state).flatMap { states.rules.rules[$0].key }
            let isTuple = states.rule(state).map { states.rules.rules[$0].kind == .tuple } ?? false
            var level = Level(container: container)
            if kind == .array {
                let children = tables.children(of: container.node)
                if let index = member("index", of: step).flatMap({ JSONPointer.index(Array(values.text($0))) }) {
                    level.child = try isTuple || wanted.isAbsent ? index : tables.child(of: values.digest(wanted), container.node) {
                        try values.same(ValueRef(tree: container.tree, node: $0), wanted)
                    } ?? index
                    if let child = level.child, child >= children.count { level.child = nil }
                    state = isTuple ? states.step(state, slot: index) : states.stepToElement(state)
                } else {
                    level.child = try keyed(step, container.node, declared)
                    state = states.stepToElement(state)
                }
                value = level.child.map { ValueRef(tree: container.tree, node: children[$0]) } ?? .absent
            }
            levels.append(level)
        default: throw StoreError(.invalidArgument, "The place of a conflict has names and elements; give the conflict as it was told.")
        }
    }

    private func member(_ name: StaticString, of step: ValueRef) -> ValueRef? {
        let name = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        return values.tree(step).member(name, of: step.node).map { ValueRef(tree: step.tree, node: $0) }
    }

    /// Which element is known by the key of a step.
    private func keyed(_ step: ValueRef, _ container: UInt32, _ declared: [[[UInt8]]]?) throws -> Int? {
        guard let key = member("key", of: step) else { return nil }
        let occurrence = member("occurrence", of: step).flatMap { JSONPointer.index(Array(values.text($0))) } ?? 0
        let wanted = try CanonicalWriter.bytes(of: key, in: values, normalises: true)
        return try tables.child(keyed: wanted, occurrence: occurrence, of: container, declared)
    }

    // MARK: What is there

    /// As records have it; nil where nothing is.
    func json() throws -> [UInt8]? { value.isAbsent ? nil : try CanonicalWriter.bytes(of: value, in: values) }

    /// Whether JSON, as records have it, is what is there.
    static func areSame(_ a: [UInt8]?, _ b: [UInt8]?) throws -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        if a == b { return true }
        let both = try [a, b].map { json -> [UInt8] in
            let work = DocumentControl(), text = try scalar(json, work)
            let first = ValueRef(tree: 0, node: JSONTree.containerSize)
            return try CanonicalWriter.bytes(of: first, in: DocumentValues([text], work: work), normalises: true)
        }
        return both[0] == both[1]
    }

    /// Where a part stands in the string that is there; nil where it does not, or more than once.
    func range(ofPart part: [UInt8]) throws -> Range<Int>? {
        guard values.isKind(value, .string), let text = try Self.string(part), !text.isEmpty else { return nil }
        let whole = values.text(value)
        guard let start = Bytes.first(text, in: whole, from: 0), Bytes.first(text, in: whole, from: start + 1) == nil else { return nil }
        return start..<start + text.count
    }

    /// Whether the string that is there has a part.
    func hasPart(_ part: [UInt8]) throws -> Bool {
        guard values.isKind(value, .string), let text = try Self.string(part) else { return false }
        return text.isEmpty || Bytes.first(text, in: values.text(value), from: 0) != nil
    }

    /// What a JSON string stands for.
    static func string(_ json: [UInt8]) throws -> [UInt8]? {
        let text = try scalar(json, DocumentControl()), first = JSONTree.containerSize
        return text.tree.kind(first) == .string ? Array(text.tree.text(first)) : nil
    }

    // MARK: Another value

    /// The value as a whole, with what was given as `other` in this place, or nothing; nil when nothing is left of it.
    /// - Parameter part: the part of the string there which is replaced by the string given.
    /// - Returns: canonical bytes; nil as well where there is no way to the place.
    func replaced(isAbsent: Bool, part: Range<Int>? = nil) throws -> [UInt8]? {
        var new = isAbsent ? ValueRef.absent : ValueRef(tree: Tree.other, node: JSONTree.containerSize)
        if let part {
            let whole = Array(values.text(value))
            new = values.add(.text(Array(whole[..<part.lowerBound]) + Array(values.text(new)) + Array(whole[part.upperBound...])))
        }
        for level in levels.reversed() {
            guard !level.container.isAbsent else { return nil }
            let tree = values.tree(level.container), children = tree.children(of: level.container.node)
            func ref(_ node: UInt32) -> ValueRef { ValueRef(tree: level.container.tree, node: node) }
            switch tree.kind(level.container.node) {
            case .object:
                guard let own = level.name else { return nil }
                var members: [(name: ValueRef, value: ValueRef)] = children.enumerated().compactMap { i, child in
                    i == level.child ? nil : (ref(tree.nameNode(of: child)), ref(child))
                }
                if !new.isAbsent { members.append((own, new)) }
                members.sort { Bytes.compare(values.text($0.name), values.text($1.name)) < 0 }
                new = values.add(.object(members))
            case .array:
                guard level.name == nil else { return nil }
                var elements = children.map(ref)
                if let child = level.child {
                    elements.remove(at: child)
                    if !new.isAbsent { elements.insert(new, at: child) }
                } else if !new.isAbsent {
                    elements.append(new)
                }
                new = values.add(.array(ValueRefs(elements)))
            default: return nil
            }
        }
        return new.isAbsent ? nil : try CanonicalWriter.bytes(of: new, in: values)
    }
}
