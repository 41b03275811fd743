/// Merges single values: picks one of them, adds up numbers, or merges texts by their lines.
extension DocumentMergeRun {
    // MARK: Picks

    func pick(_ inputs: RecordDraft.Inputs, _ rule: SchemaRule, _ place: Place, as given: ConflictRecord.Kind? = nil) throws -> ValueRef {
        let (x, y) = (inputs.x, inputs.y)
        let p = values.kind(x), q = values.kind(y)
        var kind = given ?? (p == q ? .pick : .type)
        if given == nil, p == .raw || q == .raw { kind = rule.kind == .bytes ? .pick : .notJSON }
        var newer = true
        switch rule.pick {
        case _ where saves: break
        case .newer: break
        case .older: newer = false
        case .arbiter:
            kind = .arbiter
            if let result = try answer(inputs, place) {
                try record(kind, inputs, result, place)
                return result
            }
        case .extreme(let greatest, let pointer):
            guard p != .raw, q != .raw else { break }
            switch (values.find(pointer, from: x), values.find(pointer, from: y)) {
            case (let a?, let b?):
                let order = try values.compare(a, b)
                newer = greatest ? order >= 0 : order <= 0
            case (nil, .some): newer = false
            default: break
            }
        }
        let result = try madeOfTheOther(inputs, rule, place) ?? (newer ? x : y)
        try record(kind, inputs, result, place)
        return result
    }

    /// Returns the side that was made from the value of the other side, if the merges of virtual bases chose between values here. If one
    /// side holds one of those values and the other side holds none, the first left its value alone and the second changed it. So the
    /// second wins.
    private func madeOfTheOther(_ inputs: RecordDraft.Inputs, _ rule: SchemaRule, _ place: Place) throws -> ValueRef? {
        guard !contested.isEmpty, !saves, rule.pick == .newer || rule.pick == .older,
            let known = contested.places[try ContestedValues.steps(keep(place), self, nil)]
        else { return nil }
        let isNewerKnown = try known.contains(ContestedValues.digest(inputs.x, in: values))
        let isOlderKnown = try known.contains(ContestedValues.digest(inputs.y, in: values))
        return isNewerKnown == isOlderKnown ? nil : isNewerKnown ? inputs.y : inputs.x
    }

    /// Asks the app's merger; nil if there is none, or it leaves the value alone.
    private func answer(_ inputs: RecordDraft.Inputs, _ place: Place) throws -> ValueRef? {
        guard let asked else { return nil }
        let isWhole = place.frame == nil
        func given(_ ref: ValueRef) throws -> [UInt8]? {
            if ref.isAbsent { return nil }
            return isWhole ? Array(values.tree(ref).bytes) : try CanonicalWriter.bytes(of: ref, in: values)
        }
        let path = try RecordPath.json(try keep(place), places, values)
        switch try asked.ask(path, given(inputs.o), given(inputs.x), given(inputs.y)) {
        case .pass: return nil
        case .value(nil): return .absent
        case .value(let bytes?):
            let top = rules.rules.top?.kind
            if isWhole {
                let tree = values.add(try JSONText.answer(bytes, as: top == .text ? .string : nil, work: values.work))
                return ValueRef(tree: tree, node: 0)
            }
            let text = try JSONText.answer([UInt8(ascii: "[")] + bytes + [UInt8(ascii: "]")], as: nil, work: values.work)
            guard text.tree.kind(0) == .array, text.tree.children(of: 0).count == 1 else {
                throw StoreError(
                    .invalidArgument,
                    "The value merger's result for \(String(decoding: path, as: UTF8.self)) of "
                        + "\"\(String(decoding: asked.id, as: UTF8.self))\" is not one JSON text. "
                        + "Return one, remove the place, or leave it to the merge.",
                    valueID: ValueID(unchecked: asked.id))
            }
            return ValueRef(tree: values.add(text), node: JSONTree.containerSize)
        }
    }

    // MARK: Counters and texts

    /// Restarts a counter that one side removed: the result is the counter's start plus what the other side added since. Returns nil if
    /// the value is not such a counter.
    func begunAnew(_ inputs: RecordDraft.Inputs, _ rule: SchemaRule, _ place: Place) throws -> ValueRef? {
        let there = inputs.x.isAbsent ? inputs.y : inputs.x
        guard rule.kind == .counter, !rule.deletes, !saves, !swaps, values.isKind(there, .number), values.isKind(inputs.o, .number),
            let sum = JSONDecimal.sum(decimal(there), rule.from, decimal(inputs.o).negated)
        else { return nil }
        let result = values.add(.number(sum.spelling))
        try record(.deleteEdit, inputs, result, place)
        try report(sum, result, inputs, rule, place)
        return result
    }

    private func decimal(_ ref: ValueRef) -> JSONDecimal { values.tree(ref).decimal(ref.node) }

    /// Records that a counter is out of its bounds.
    private func report(
        _ sum: JSONDecimal, _ result: ValueRef, _ inputs: RecordDraft.Inputs, _ rule: SchemaRule, _ place: Place
    ) throws {
        if rule.min.map({ JSONDecimal.compare(sum, $0) < 0 }) ?? false || rule.max.map({ JSONDecimal.compare(sum, $0) > 0 }) ?? false {
            try record(.bound, inputs, result, place)
        }
    }

    /// - Parameter inputs: the newer side is present. If the base or the older side is absent, it counts as the rule's start.
    func counter(_ inputs: RecordDraft.Inputs, _ rule: SchemaRule, _ place: Place) throws -> ValueRef {
        let (o, x, y) = (inputs.o, inputs.x, inputs.y)
        func counts(_ ref: ValueRef) -> Bool { ref.isAbsent || values.isKind(ref, .number) }
        guard values.isKind(x, .number), counts(y), counts(o) else {
            return try pick(inputs, rule, place, as: .type)
        }
        func short(_ ref: ValueRef) -> Int64? {
            ref.isAbsent ? (rule.from.isZero ? 0 : nil) : JSONDecimal.short(values.text(ref))
        }
        if rule.min == nil, rule.max == nil, let p = short(x), let q = short(y), let before = short(o) {
            return values.add(.number(Array(String(p + q - before).utf8)))
        }
        func amount(_ ref: ValueRef) -> JSONDecimal { ref.isAbsent ? rule.from : decimal(ref) }
        guard let sum = JSONDecimal.sum(amount(x), amount(y), amount(o).negated) else {
            if y.isAbsent { return try removed(inputs, rule, place) }
            return try pick(inputs, rule, place, as: .limit)
        }
        let result = values.add(.number(sum.spelling))
        try report(sum, result, inputs, rule, place)
        return result
    }

    func text(_ inputs: RecordDraft.Inputs, _ rule: SchemaRule, _ place: Place) throws -> ValueRef {
        let base = values.isKind(inputs.o, .string) ? values.text(inputs.o) : UnsafeRawBufferPointer(start: nil, count: 0)
        let merged: TextMerge.Merged
        do {
            merged = try TextMerge.merge(
                base, values.text(inputs.x), values.text(inputs.y), unit: rule.unit, newerWins: saves || !rule.pick.isOlder,
                undoes: undoes, steps: &textSteps, work: values.work)
        } catch is TokenTable.TooManyTokens { return try pick(inputs, rule, place, as: .limit) }
        let result = values.add(.text(merged.text))
        for conflict in merged.conflicts {
            let part = RecordDraft.Inputs(
                o: values.add(.text(conflict.base)), x: values.add(.text(conflict.newer)), y: values.add(.text(conflict.older)),
                state: Int(inputs.state))
            // If the result is a side's text, it is stored once.
            let result =
                conflict.result == conflict.newer
                ? part.x : conflict.result == conflict.older ? part.y : values.add(.text(conflict.result))
            if tellsPlaces { starts[records.count] = conflict.start }
            try record(conflict.kind, part, result, place)
        }
        if merged.isStylePicked { try record(.pick, inputs, result, place) }
        if merged.isLimited { try record(.limit, inputs, result, place) }
        return result
    }
}
