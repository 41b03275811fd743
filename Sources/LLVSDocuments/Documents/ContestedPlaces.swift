/// Finds places in a value. Since there may be many places and many elements, the children of a container are put into a table on the
/// first search in it.
final class ContestedPlaces {
    /// A place in the value, and the state of the rules for it.
    struct Place {
        var value = ValueRef(tree: 0, node: 0)
        var state = RuleStates.start

        static let none = Place(value: .absent, state: RuleStates.none)
    }

    struct Key: Hashable {
        var source: ElementKeys.Source
        var bytes: [UInt8]
        var occurrence = 0
    }

    /// The keys of the elements of an array.
    struct Elements {
        fileprivate(set) var keys: [Key] = []
        fileprivate(set) var places: [Key: Int] = [:]
    }

    private struct Pair: Hashable {
        var base: UInt64
        var side: UInt64
    }

    let values: DocumentValues
    private let rules: RuleStates
    private var names: [UInt64: [[UInt8]: UInt32]] = [:]
    private var elements: [UInt64: Elements] = [:]
    private var replaced: [Pair: [Int: Int]] = [:]

    init(_ values: DocumentValues, _ rules: RuleStates) {
        self.values = values
        self.rules = rules
    }

    private func number(_ ref: ValueRef) -> UInt64 { UInt64(ref.tree) << 32 | UInt64(ref.node) }

    /// Returns the place to which a step leads.
    func go(_ step: ContestedValues.Step, from place: Place) throws -> Place {
        if place.value.isAbsent { return .none }
        switch step {
        case .name(let name):
            return Place(value: try member(name, of: place.value), state: name.withUnsafeBytes { rules.step(place.state, $0) })
        case .slot(let slot): return Place(value: child(slot, of: place.value), state: rules.step(place.state, slot: slot))
        case .key(let source, let bytes, let occurrence):
            let at = try elements(of: place).places[Key(source: source, bytes: bytes, occurrence: occurrence)]
            return element(at, of: place)
        case .part: return .none
        }
    }

    /// Returns the element of a list at an index.
    func element(_ at: Int?, of place: Place) -> Place {
        Place(value: at.map { child($0, of: place.value) } ?? .absent, state: rules.stepToElement(place.state))
    }

    /// Returns the key of the element of a list at an index.
    func key(ofElement at: Int, of place: Place) throws -> Key? {
        let keys = place.value.isAbsent ? [] : try elements(of: place).keys
        return keys.indices.contains(at) ? keys[at] : nil
    }

    private func child(_ i: Int, of value: ValueRef) -> ValueRef {
        let tree = values.tree(value), children = tree.kind(value.node) == .array ? tree.children(of: value.node) : []
        return children.indices.contains(i) ? ValueRef(tree: value.tree, node: children[i]) : .absent
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

    func elements(of place: Place) throws -> Elements {
        let value = place.value
        if let known = elements[number(value)] { return known }
        let declared = rules.rule(place.state).flatMap { rules.rules.rules[$0].key }
        let tree = values.tree(value), keys = ElementKeys(values, declared: declared, usesID: declared == nil, atMost: 0)
        var all = Elements(), counts: [Key: Int] = [:]
        for child in tree.kind(value.node) == .array ? tree.children(of: value.node) : [] {
            let element = ValueRef(tree: value.tree, node: child), source = keys.source(of: element)
            var key = Key(source: source, bytes: try keys.bytes(of: element, source))
            let before = counts[key, default: 0]
            counts[key] = before + 1
            key.occurrence = before
            all.places[key] = all.keys.count
            all.keys.append(key)
        }
        elements[number(value)] = all
        return all
    }

    /// Returns which element of a list corresponds to an element of the base. That is the element with the same key. If an element
    /// without a key is gone, it is the element in its place, unless the number of elements between its two remaining neighbours changed.
    func element(for at: Int, of base: Place, _ inBase: ContestedPlaces, in place: Place) throws -> Int? {
        guard !place.value.isAbsent, values.isKind(place.value, .array) else { return nil }
        let before = try inBase.elements(of: base), now = try elements(of: place)
        guard before.keys.indices.contains(at) else { return nil }
        if let same = now.places[before.keys[at]] { return same }
        let pair = Pair(base: number(base.value), side: number(place.value))
        if let known = replaced[pair] { return known[at] }
        let numbers = now.keys.map { key in before.places[key].map { Int32(truncatingIfNeeded: $0) } ?? -1 }
        let anchors = try IncreasingRun.members(numbers, values.work)
        var table: [Int: Int] = [:], from = (base: 0, side: 0)
        for end in 0...numbers.count where end == numbers.count || anchors[end] {
            let to = end == numbers.count ? before.keys.count : Int(numbers[end]), gone = from.base..<to, new = from.side..<end
            if gone.count == new.count, gone.allSatisfy({ before.keys[$0].source == .value && now.places[before.keys[$0]] == nil }),
                new.allSatisfy({ now.keys[$0].source == .value && numbers[$0] < 0 })
            {
                for (old, other) in zip(gone, new) { table[old] = other }
            }
            from = (to + 1, end + 1)
        }
        try values.work.done(2 * (before.keys.count + now.keys.count))
        replaced[pair] = table
        return table[at]
    }
}

/// Finds contested places side by side in the base, the newer side, the older side and the result.
final class ContestedSides {
    struct Found {
        var base: ValueRef
        var newer: ValueRef
        var older: ValueRef
        /// The resulting value, or absent if the result has none, and the values to search it in.
        var result: ValueRef
        var resultValues: DocumentValues?
        var state: Int
        /// The path, as records have it.
        var path: [UInt8]
        /// The place in the result, as `MergedValue` writes places; nil if the result has no such place.
        var place: [UInt8]?
    }

    private let inInputs: ContestedPlaces
    private let inResult: ContestedPlaces?
    private let roots: [ContestedPlaces.Place]
    private var texts: [[UInt64]: TextParts] = [:]
    private var textSteps = TextAlignment.stepLimit

    /// - Parameters:
    ///   - inputs: the base, the newer and the older side.
    ///   - made: the result, or nil if the merge removed the value.
    init(_ values: DocumentValues, _ states: RuleStates, _ inputs: [ValueRef], made: DocumentValues?) {
        inInputs = ContestedPlaces(values, states)
        inResult = made.map { ContestedPlaces($0, states) }
        roots = inputs.map { ContestedPlaces.Place(value: $0) } + [made == nil ? .none : ContestedPlaces.Place()]
    }

    private func places(_ side: Int) -> ContestedPlaces { side < 3 ? inInputs : inResult ?? inInputs }

    /// - Parameter isContested: returns whether merges chose between a part of the base's text and others.
    /// - Returns: nil unless both sides have a value at the place.
    func find(_ steps: [ContestedValues.Step], isContested: (ValueRef) throws -> Bool) throws -> Found? {
        var at = roots, path: [[UInt8]] = [], place: [[UInt8]] = []
        for step in steps {
            if case .part(let from, let count) = step { return try part(from, count, at, path, place, isContested) }
            var next = try at.enumerated().map { side, value in try places(side).go(step, from: value) }, inBase = 0
            if case .key(let source, let bytes, let occurrence) = step {
                let key = ContestedPlaces.Key(source: source, bytes: bytes, occurrence: occurrence)
                if source == .value, !at[0].value.isAbsent, let known = try inInputs.elements(of: at[0]).places[key] {
                    inBase = known
                    for side in 1..<at.count {
                        let element = try places(side).element(for: known, of: at[0], inInputs, in: at[side])
                        next[side] = places(side).element(element, of: at[side])
                    }
                }
            }
            path.append(RecordPath.step(step, inBase: inBase))
            place.append(isElement(step) ? try inResult.map { try $0.step(to: next[3], of: at[3]) } ?? [] : path[path.count - 1])
            at = next
            guard !at[1].value.isAbsent, !at[2].value.isAbsent else { return nil }
        }
        return Found(
            base: at[0].value, newer: at[1].value, older: at[2].value, result: at[3].value, resultValues: inResult?.values,
            state: at[1].state, path: RecordPath.json(path), place: at[3].value.isAbsent ? nil : RecordPath.json(place))
    }

    private func isElement(_ step: ContestedValues.Step) -> Bool { if case .key = step { true } else { false } }

    /// Finds what the sides have in place of a part of the base's text.
    private func part(
        _ from: Int, _ count: Int, _ at: [ContestedPlaces.Place], _ path: [[UInt8]], _ place: [[UInt8]],
        _ isContested: (ValueRef) throws -> Bool
    ) throws -> Found? {
        let values = inInputs.values
        guard from >= 0, count >= 0, (0..<3).allSatisfy({ values.isKind(at[$0].value, .string) }) else { return nil }
        let whole = values.text(at[0].value)
        // (A record may give a part a line end that the text lacks.)
        guard from <= whole.count, count <= whole.count - from + 2, let own = TextParts.told(from..<from + count, of: whole) else {
            return nil
        }
        let base = values.add(.text(own))
        // Another merge may have moved the part.
        guard try isContested(base) else { return nil }
        let isWithoutEnd = count > 0 && from + count <= whole.count && !(own.last.map(TextLines.isEnd) ?? false)
        var found: [(bytes: [UInt8], from: Int)?] = []
        for side in 1..<4 {
            let values = places(side).values
            guard values.isKind(at[side].value, .string) else { found.append(nil); continue }
            let key = [UInt64(side), UInt64(at[0].value.node), UInt64(at[side].value.node)]
            if texts[key] == nil {
                texts[key] = try TextParts(whole, values.text(at[side].value), steps: &textSteps, work: inInputs.values.work)
            }
            found.append(texts[key]?.inPlace(of: from..<from + count, isWithoutEnd: isWithoutEnd))
        }
        guard let newer = found[0], let older = found[1] else { return nil }
        // (The resulting part is added to the values of the inputs, like the other parts found in this function.)
        let result = found[2].map { values.add(.text($0.bytes)) } ?? .absent
        return Found(
            base: base, newer: values.add(.text(newer.bytes)), older: values.add(.text(older.bytes)), result: result,
            resultValues: values, state: at[1].state, path: RecordPath.json(path),
            // The place is that of a part of a text, also if the merge left nothing of the part.
            place: RecordPath.json((found[2] == nil ? path : place) + [Array("{\"from\":\(found[2]?.from ?? from)}".utf8)]))
    }
}

extension ContestedPlaces {
    /// Returns the step to an element, as in places of results.
    fileprivate func step(to element: Place, of list: Place) throws -> [UInt8] {
        guard !element.value.isAbsent, !list.value.isAbsent else { return [] }
        let at = values.tree(list.value).children(of: list.value.node).firstIndex(of: element.value.node) ?? 0
        return Array("{\"at\":\(at)}".utf8)
    }
}
