/// The place in a value that a record of a merge names, found in this or another state of the value.
package struct DocumentPlace {
    /// A container on the way to the place, and what is needed to write it with another child.
    private struct Level {
        let container: ValueRef
        /// The child that leads on, or nil if none does.
        var child: Int?
        /// The name if the child is a member.
        var name: ValueRef?
        /// The index at which to insert an element that is missing.
        var insertion: Int?
    }

    private let values: DocumentValues
    private let tables: DocumentTables
    /// The result of the merge, and the value in it at the steps taken so far.
    private let made: DocumentTables?
    private var madeValue: ValueRef
    /// The offset of a part in the text that the merge made.
    private var start: Int?
    /// Whether an element on the way cannot be identified, or a container on the way is gone.
    package private(set) var isLost = false
    private var levels: [Level] = []
    /// The value at the place, or absent if there is none.
    private(set) var value: ValueRef

    /// The trees of `values`: the value, the path, the value expected at the place, the value to put there, and the result of the merge.
    private enum Tree { static let value: UInt32 = 0, path: UInt32 = 1, expected: UInt32 = 2, other: UInt32 = 3, made: UInt32 = 4 }

    /// Finds the place of a conflict in a state of the value, starting from its place in the result of the merge.
    /// - Parameter place: the place as `MergedValue` writes it, or nil if it is not known.
    package init(
        of record: ConflictRecord, at place: [UInt8]?, in tables: DocumentTables, made: DocumentTables, other: [UInt8]? = nil
    ) throws {
        try self.init(place ?? record.path, in: tables, made: place == nil ? nil : made, expected: record.result, other: other)
    }

    /// - Parameters:
    ///   - path: as records have it, or a place in the result as `MergedValue` writes it.
    ///   - tables: the tables of the value.
    ///   - made: the tables of the result of the merge.
    ///   - expected: JSON of the value at the place, which identifies elements without a key.
    ///   - other: JSON of a value to put there.
    /// - Throws: `.invalidArgument` if the path is not a path, or the others are not JSON.
    package init(
        _ path: [UInt8], in tables: DocumentTables, made: DocumentTables? = nil, expected: [UInt8]?, other: [UInt8]? = nil,
        work: DocumentControl = DocumentControl()
    ) throws {
        let parsed = try path.withUnsafeBytes { try JSONTreeParser.parse($0, copying: true, work: work) }
        guard let path = parsed, path.tree.kind(0) == .array else {
            throw StoreError(.invalidArgument, "A conflict names its place as a JSON array; pass the conflict as it was reported.")
        }
        let scalars = try [expected, other].map { try $0.map { try Self.scalar($0, work) } }
        let whole = UnsafeRawBufferPointer(start: nil, count: 0)
        let absent = try JSONText(whole: whole, as: .raw)
        self.tables = tables
        self.made = made
        values = DocumentValues([tables.text ?? absent, path] + scalars.map { $0 ?? absent } + [made?.text ?? absent], work: work)
        madeValue = made?.text == nil ? .absent : ValueRef(tree: Tree.made, node: 0)
        value = tables.text == nil ? .absent : ValueRef(tree: Tree.value, node: 0)
        let states = tables.states
        var state = RuleStates.start
        let wanted = expected == nil ? ValueRef.absent : ValueRef(tree: Tree.expected, node: JSONTree.containerSize)
        let steps = path.tree.children(of: 0)
        for (i, step) in steps.enumerated() {
            let isLast = i == steps.count - 1
            let step = ValueRef(tree: Tree.path, node: step)
            if isLast, values.isKind(step, .object), let from = member("from", of: step) {
                start = JSONPointer.index(Array(values.text(from)))
                break
            }
            try go(step, &state, states, isLast ? wanted : .absent)
        }
    }

    /// Parses JSON of any type. It becomes the one element of an array, since parsed texts have a container at their top.
    private static func scalar(_ json: [UInt8], _ work: DocumentControl) throws -> JSONText {
        let bytes = [UInt8(ascii: "[")] + json + [UInt8(ascii: "]")]
        guard let text = try bytes.withUnsafeBytes({ try JSONTreeParser.parse($0, copying: true, work: work) }),
            text.tree.children(of: 0).count == 1
        else {
            throw StoreError(.invalidArgument, "The values of a conflict are JSON; pass the conflict as it was reported.")
        }
        return text
    }

    private mutating func go(_ step: ValueRef, _ state: inout Int, _ states: RuleStates, _ wanted: ValueRef) throws {
        let container = value, before = madeValue
        value = .absent
        madeValue = .absent
        guard !container.isAbsent else {
            isLost = true
            levels.append(Level(container: .absent))
            return
        }
        let tree = values.tree(container), kind = tree.kind(container.node)
        isLost = isLost || kind != (values.isKind(step, .string) ? .object : .array)
        switch values.kind(step) {
        case .string:
            let name = values.text(step)
            state = states.step(state, name)
            if let made, !before.isAbsent, values.isKind(before, .object), let child = try made.child(named: name, of: before.node) {
                madeValue = ValueRef(tree: Tree.made, node: made.children(of: before.node)[child])
            }
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
                func number(_ name: StaticString) -> Int? {
                    member(name, of: step).flatMap { Int(String(decoding: values.text($0), as: UTF8.self)) }
                }
                if let index = number("index"), isTuple {
                    level.child = children.indices.contains(index) ? index : nil
                    if let made, !before.isAbsent, values.isKind(before, .array), made.children(of: before.node).indices.contains(index) {
                        madeValue = ValueRef(tree: Tree.made, node: made.children(of: before.node)[index])
                    }
                    state = states.step(state, slot: index)
                } else if let at = number("at") {
                    level.child = try element(at, of: before, in: container, declared)
                    isLost = isLost || level.child == nil
                    if level.child != nil, let made {
                        madeValue = ValueRef(tree: Tree.made, node: made.children(of: before.node)[at])
                    }
                    state = states.stepToElement(state)
                } else {
                    if number("index") == nil {
                        level.child = try keyed(step, container.node, declared)
                    } else if !wanted.isAbsent {
                        // The element's index in the base identifies nothing here: search for an equal element.
                        let found = try some(wanted, in: container)
                        level.child = found.count == 1 ? found[0] : nil
                        isLost = isLost || level.child == nil
                    } else {
                        isLost = true
                    }
                    if let after = number("after") {
                        let place = after < 0 ? -1 : try element(after, of: before, in: container, declared)
                        level.insertion = place.map { $0 + 1 }
                    }
                    state = states.stepToElement(state)
                }
                value = level.child.map { ValueRef(tree: container.tree, node: children[$0]) } ?? .absent
            }
            levels.append(level)
        default: throw StoreError(.invalidArgument, "The place of a conflict has names and elements; pass the conflict as it was reported.")
        }
    }

    /// Returns the index in an array of an element of the merge's result, or nil if it cannot be identified.
    private func element(_ at: Int, of made: ValueRef, in container: ValueRef, _ declared: [[[UInt8]]]?) throws -> Int? {
        guard let table = self.made, !made.isAbsent, values.isKind(made, .array), values.isKind(container, .array) else { return nil }
        let before = table.children(of: made.node), now = tables.children(of: container.node)
        guard before.indices.contains(at) else { return nil }
        let ends = try tables.ends(container.node, of: table, made.node) { i, j in
            try values.same(ValueRef(tree: made.tree, node: before[i]), ValueRef(tree: container.tree, node: now[j]))
        }
        if ends.first == before.count, before.count == now.count { return at }
        let element = ValueRef(tree: made.tree, node: before[at])
        let keys = ElementKeys(values, declared: declared, usesID: declared == nil, atMost: 0), source = keys.source(of: element)
        if source != .value {
            let bytes = try keys.bytes(of: element, source)
            let old = try table.children(knownBy: bytes, source, of: made.node, declared)
            let new = try tables.children(knownBy: bytes, source, of: container.node, declared)
            if new.isEmpty { return nil }
            if old.count == 1, new.count == 1 { return new[0] }
        }
        let found = try some(element, in: container)
        if found.count == 1, try some(element, in: made, table).count == 1 { return found[0] }
        // If only one element was changed, it is at the same index.
        let isAlone = before.count == now.count && ends.first + 1 + ends.last == before.count && at == ends.first
        return isAlone ? at : nil
    }

    /// Returns which elements of an array are equal to a value: at most two.
    private func some(_ value: ValueRef, in container: ValueRef, _ table: DocumentTables? = nil) throws -> [Int] {
        let table = table ?? tables, children = table.children(of: container.node)
        var found: [Int] = []
        for child in try table.children(of: values.digest(value), container.node) where found.count < 2 {
            if try values.same(ValueRef(tree: container.tree, node: children[child]), value) { found.append(child) }
        }
        return found
    }

    private func member(_ name: StaticString, of step: ValueRef) -> ValueRef? {
        let name = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        return values.tree(step).member(name, of: step.node).map { ValueRef(tree: step.tree, node: $0) }
    }

    /// Returns the index of the element that has the key of a step.
    private func keyed(_ step: ValueRef, _ container: UInt32, _ declared: [[[UInt8]]]?) throws -> Int? {
        guard let key = member("key", of: step) else { return nil }
        let occurrence = member("occurrence", of: step).flatMap { JSONPointer.index(Array(values.text($0))) } ?? 0
        let wanted = try CanonicalWriter.bytes(of: key, in: values, normalises: true)
        return try tables.child(keyed: wanted, occurrence: occurrence, of: container, declared)
    }

    // MARK: The value at the place

    /// Returns the value as records have it, or nil if there is none.
    package func json() throws -> [UInt8]? { value.isAbsent ? nil : try CanonicalWriter.bytes(of: value, in: values) }

    /// Returns whether JSON from a record equals other JSON or is absent like it.
    package static func areSame(_ a: [UInt8]?, _ b: [UInt8]?) throws -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        if a == b { return true }
        let both = try [a, b].map { json -> [UInt8] in
            let work = DocumentControl(), text = try scalar(json, work)
            let first = ValueRef(tree: 0, node: JSONTree.containerSize)
            return try CanonicalWriter.bytes(of: first, in: DocumentValues([text], work: work), normalises: true)
        }
        return both[0] == both[1]
    }

    /// Lines of a text that a merge made, found in the current text.
    package struct Part {
        fileprivate let parts: TextParts
        fileprivate let lines: Range<Int>
    }

    /// Returns where the lines of a part, as a record has them in JSON, are in the current text; nil if they are absent, or occur more than
    /// once. They are searched between the unchanged lines around the part. If the offset of the part is not known, they are searched in
    /// the whole text.
    package func part(_ told: [UInt8]) throws -> Part? {
        guard values.isKind(value, .string), let text = try Self.string(told), !text.isEmpty else { return nil }
        func compared(_ made: UnsafeRawBufferPointer) throws -> TextParts? {
            var steps = TextAlignment.stepLimit
            return try TextParts(made, values.text(value), steps: &steps, work: values.work)
        }
        let first: Int, parts: TextParts?
        if let start, let made, values.isKind(madeValue, .string) {
            let text = values.text(madeValue)
            guard start <= text.count else { return nil }
            (first, parts) = (start, try tables.parts(value.node, of: made, madeValue.node) { try compared(text) })
        } else {
            (first, parts) = (0, try text.withUnsafeBytes { try compared($0) })
        }
        guard let parts else { return nil }
        return try parts.onlyPlace(of: first..<first + text.count, values.work).map { Part(parts: parts, lines: $0) }
    }

    /// Returns whether the place holds what the merge made.
    /// - Parameter isPart: whether the record is about a part of the text.
    package func holds(_ record: ConflictRecord, isPart: Bool) throws -> Bool {
        let result = record.result
        if isPart { return try result.map { try part($0) != nil } ?? false }
        return try !isLost && Self.areSame(json(), result)
    }

    /// Returns whether the place holds the same as in another state.
    package func stands(as before: DocumentPlace, _ record: ConflictRecord, isPart: Bool) throws -> Bool {
        if isPart { return try before.holds(record, isPart: true) && holds(record, isPart: true) }
        return try !isLost && !before.isLost && Self.areSame(before.json(), json())
    }

    /// Returns whether a place as merges report it is a part of a text.
    package static func isPart(_ place: [UInt8]) -> Bool {
        // (Strings in JSON never contain an unescaped quote.)
        place.lastIndex(of: UInt8(ascii: "{")).map { place[$0...].starts(with: "{\"from\":".utf8) } ?? false
    }

    /// Returns the text of a JSON string.
    package static func string(_ json: [UInt8]) throws -> [UInt8]? {
        let text = try scalar(json, DocumentControl()), first = JSONTree.containerSize
        return text.tree.kind(first) == .string ? Array(text.tree.text(first)) : nil
    }

    // MARK: Another value

    /// Returns the current text with other lines in place of a part.
    package func text(with chosen: [UInt8], inPlaceOf part: Part) throws -> [UInt8] {
        try part.parts.replacing(part.lines, with: chosen)
    }

    /// Returns the whole value with `other`, or nothing, at the place; nil if nothing is left.
    /// - Parameter text: if not nil, a string to write there instead of `other`.
    /// - Returns: canonical bytes; nil also if the place cannot be reached.
    package func replaced(isAbsent: Bool, text: [UInt8]? = nil) throws -> [UInt8]? {
        var new = isAbsent ? ValueRef.absent : ValueRef(tree: Tree.other, node: JSONTree.containerSize)
        if let text { new = values.add(.text(text)) }
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
                    elements.insert(new, at: min(level.insertion ?? elements.count, elements.count))
                }
                new = values.add(.array(ValueRefs(elements)))
            default: return nil
            }
        }
        return new.isAbsent ? nil : try CanonicalWriter.bytes(of: new, in: values)
    }
}
