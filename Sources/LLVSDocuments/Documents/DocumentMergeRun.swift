/// Merges one value. Descends where both sides changed something, on an explicit stack.
final class DocumentMergeRun {
    let values: DocumentValues
    let rules: RuleStates
    /// Whether the newer side is an application that saves: its removals and its decisions win.
    let saves: Bool
    /// Whether the base is an undone value, or the base of a pick, and no common ancestor. If both sides have a value that the base
    /// lacks, it may come from the same edit.
    let swaps: Bool
    /// Whether the merge undoes an edit: places that the newer side lacks were removed after the undone edit, and stay removed.
    let undoes: Bool
    let tellsPlaces: Bool
    /// If places are reported: for each record that is about a part of a text, where the part begins in the resulting text.
    var starts: [Int: Int] = [:]
    private let rulesTree: UInt32
    let asked: AskedMerger?
    @exclusivity(unchecked) private var frames: [MergeFrame] = []
    /// Ended frames for reuse.
    @exclusivity(unchecked) private var spare: [MergeFrame] = []
    private static let mostSpare = 128
    @exclusivity(unchecked) var records = Pieces<RecordDraft>()
    /// Whether the records exceed their budget: then none is held.
    @exclusivity(unchecked) private(set) var hasTooMany = false
    /// The least number of bytes that the records have.
    @exclusivity(unchecked) private var leastSize = 0
    private let budget: ConflictRecordBudget
    /// The places of the records.
    @exclusivity(unchecked) private(set) var places = KeptPlaces()
    /// The values between which inner merges chose when they computed the base.
    let contested: ContestedValues
    /// The steps that remain for comparing the texts and lists of the value.
    var textSteps = TextAlignment.stepLimit

    private static let auto = SchemaRule()
    /// The most moves of a list's elements that are reported one by one. If there are more, one record of the list covers all.
    private static let mostMoves = 64

    init(
        _ values: DocumentValues, _ rules: RuleStates, rulesTree: UInt32, saves: Bool, swaps: Bool = false, undoes: Bool = false,
        tellsPlaces: Bool = false, budget: ConflictRecordBudget, contested: ContestedValues = ContestedValues(), asking: AskedMerger? = nil
    ) {
        self.budget = budget
        self.values = values
        self.rules = rules
        self.rulesTree = rulesTree
        self.saves = saves
        self.swaps = swaps
        self.undoes = undoes
        self.tellsPlaces = tellsPlaces || !contested.isEmpty
        self.contested = contested
        asked = asking
    }

    /// A place in the merged value: a child of a frame, or the whole.
    struct Place {
        var frame: MergeFrame?
        var child = 0
    }

    /// Returns the number of a place in `places`, and adds it and its containers if they are missing.
    func keep(_ place: Place) throws -> UInt32 {
        guard let frame = place.frame else { return KeptPlaces.whole }
        if frame.keptPlace == nil {
            // From the outermost frame on and without recursion: there may be many levels, and the stack is small.
            var open: [MergeFrame] = [], next: MergeFrame? = frame
            while let one = next, one.keptPlace == nil {
                open.append(one)
                next = one.place.frame
            }
            for one in open.reversed() {
                one.keptPlace = try number(one.place)
                if let outer = one.place.frame { one.pathSize = outer.pathSize + Self.leastStep(outer, one.place.child, values) }
            }
        }
        return try number(place)
    }

    /// Adds the place to `places` and returns its number. The number of its frame is known.
    private func number(_ place: Place) throws -> UInt32 {
        guard let frame = place.frame, let parent = frame.keptPlace else { return KeptPlaces.whole }
        if case .elements = frame.shape {
            let base = ValueRef(tree: frame.inputs.o.tree, node: frame.base[place.child])
            return places.add(try ShortLists.known(base, at: place.child, in: frame.inputs.o.node, values), in: parent)
        }
        return frame.isObject ? places.add(frame.name(place.child), in: parent) : places.add(place.child, of: frame, in: parent)
    }

    /// Returns the least number of bytes that a step to a child adds to a path.
    private static func leastStep(_ frame: MergeFrame, _ child: Int, _ values: DocumentValues) -> Int {
        switch frame.shape {
        case .object: values.text(frame.name(child)).count + 3
        // A chain covers at least two members, whose names may be empty.
        case .chain: 6
        case .elements, .list, .set, .tuple: 10
        }
    }

    func run(_ o: ValueRef, _ x: ValueRef, _ y: ValueRef) throws -> ValueRef {
        var result = try begin(o, x, y, RuleStates.start, Place())
        while let frame = frames.last {
            if let result { frame.deliver(result) }
            result = nil
            // Set if no rule applies to the elements.
            var told: ListAlignment?
            let hasPlainMembers = frame.isObject && rules.endsBelow(frame.state) && contested.isEmpty
            if case .list(let plan) = frame.shape, rules.stepToElement(frame.state) == RuleStates.none { told = plan }
            if let told { frame.deliverTold(told) }
            if hasPlainMembers { try deliverScalars(frame) }
            while frame.next < frame.count {
                let i = frame.next
                let place = Place(frame: frame, child: i)
                guard let done = try pickedRow(place) ?? begin(frame.o(i), frame.x(i), frame.y(i), state(frame, i), place) else { break }
                frame.deliver(done)
                if let told { frame.deliverTold(told) }
                if hasPlainMembers { try deliverScalars(frame) }
            }
            if frame === frames.last {
                frames.removeLast()
                let merged = try finish(frame)
                if frame.givesBack, frame.place.frame.map({ !$0.givesBack }) ?? true {
                    let given = RecordDraft.Inputs(o: frame.inputs.o, x: frame.inputs.x, y: .absent, state: frame.state)
                    try record(.deleteEdit, given, merged, frame.place)
                }
                result = try frame.stand.map { try missing(merged, $0) } ?? merged
                // Records that name the frame need it for their places.
                if frame.holder == nil {
                    frame.end()
                    if spare.count < Self.mostSpare { spare.append(frame) }
                }
            }
        }
        return result ?? .absent
    }

    /// Delivers the next members, up to the first container, if no rule applies to them. The same decisions as in `lines`, without what
    /// members do not need.
    private func deliverScalars(_ frame: MergeFrame) throws {
        let count = frame.count, first = frame.next, areMany = count - first >= DocumentValues.many
        var i = first
        while i < count {
            if areMany, i & (DocumentValues.batch / 4 - 1) == 0 {
                values.touch(4 * (count - i)) { frame.member(i + $0 >> 2, $0 & 3) }
            }
            let x = frame.member(i, 1), y = frame.member(i, 2)
            guard x.isAbsent || values.isScalar(x), y.isAbsent || values.isScalar(y) else { break }
            let o = frame.member(i, 0)
            i += 1
            if try values.same(x, o) { frame.deliver(y); continue }
            if try values.same(y, o) { frame.deliver(x); continue }
            // A value that one side removed is decided in `begin`.
            guard !x.isAbsent, !y.isAbsent else { break }
            if try !values.same(x, y) {
                let inputs = RecordDraft.Inputs(o: o, x: x, y: y, state: RuleStates.none)
                try record(values.kind(x) == values.kind(y) ? .pick : .type, inputs, x, Place(frame: frame, child: i - 1))
            }
            frame.deliver(x)
        }
        try values.work.done(2 * (i - first))
    }

    /// Merges objects that have few members with the same names in the same order, none of them a container or with a rule. There may be
    /// very many such objects as elements of a list. Returns nil for other objects.
    private func mergedAtOnce(_ inputs: RecordDraft.Inputs, _ place: Place) throws -> ValueRef? {
        let (o, x, y) = (inputs.o, inputs.x, inputs.y)
        guard !saves, contested.isEmpty, place.frame != nil, rules.endsBelow(Int(inputs.state)), values.isKind(o, .object) else {
            return nil
        }
        let b = values.tree(o), p = values.tree(x), q = values.tree(y)
        guard b.isSorted(o.node), p.isSorted(x.node), q.isSorted(y.node) else { return nil }
        var i = o.node + JSONTree.containerSize, j = x.node + JSONTree.containerSize, k = y.node + JSONTree.containerSize
        let ends = (b.next(o.node), p.next(x.node), q.next(y.node))
        // As bits: the members that the older side changed, those that the newer side changed, and those that both changed.
        var count = 0, older: UInt64 = 0, newer: UInt64 = 0, changed: UInt64 = 0
        while i < ends.0, j < ends.1, k < ends.2, count < 64 {
            guard Bytes.equal(b.text(i), p.text(j)), Bytes.equal(q.text(k), p.text(j)) else { return nil }
            (i, j, k) = (i + JSONTree.nameSize, j + JSONTree.nameSize, k + JSONTree.nameSize)
            let members = (o: ValueRef(tree: o.tree, node: i), x: ValueRef(tree: x.tree, node: j), y: ValueRef(tree: y.tree, node: k))
            guard values.isScalar(members.x), values.isScalar(members.y) else { return nil }
            let bit: UInt64 = 1 << UInt64(count)
            if try values.same(members.x, members.o) {
                older |= bit
            } else {
                newer |= bit
                if try !values.same(members.y, members.o), try !values.same(members.x, members.y) { changed |= bit }
            }
            if values.areWrittenAlike(members.x, members.y) { (older, newer) = (older & ~bit, newer & ~bit) }
            (i, j, k) = (b.next(i), p.next(j), q.next(k))
            count += 1
        }
        guard i == ends.0, j == ends.1, k == ends.2 else { return nil }
        try values.work.done(2 * count)
        if changed == 0, older == 0 { return x }
        if newer == 0 { return y }
        let parent = changed == 0 || hasTooMany ? KeptPlaces.whole : try keep(place)
        var members: [(name: ValueRef, value: ValueRef)] = []
        if older != 0 { members.reserveCapacity(count) }
        (i, j, k) = (o.node + JSONTree.containerSize, x.node + JSONTree.containerSize, y.node + JSONTree.containerSize)
        for bit in 0..<UInt64(count) {
            let names = (x: ValueRef(tree: x.tree, node: j), y: ValueRef(tree: y.tree, node: k))
            (i, j, k) = (i + JSONTree.nameSize, j + JSONTree.nameSize, k + JSONTree.nameSize)
            let one = ValueRef(tree: x.tree, node: j), other = ValueRef(tree: y.tree, node: k)
            if changed >> bit & 1 != 0, !hasTooMany {
                let sides = RecordDraft.Inputs(o: ValueRef(tree: o.tree, node: i), x: one, y: other, state: RuleStates.none)
                let kind: ConflictRecord.Kind = values.kind(one) == values.kind(other) ? .pick : .type
                add(RecordDraft(kind: kind, inputs: sides, result: one, place: places.add(names.x, in: parent)), in: place.frame)
            }
            if older != 0 { members.append(older >> bit & 1 != 0 ? (names.y, other) : (names.x, one)) }
            (i, j, k) = (b.next(i), p.next(j), q.next(k))
        }
        return older == 0 ? x : values.add(.object(members))
    }

    private func state(_ frame: MergeFrame, _ i: Int) -> Int {
        guard frame.state != RuleStates.none else { return RuleStates.none }
        switch frame.shape {
        case .object: return rules.step(frame.state, values.text(frame.name(i)))
        case .tuple: return rules.step(frame.state, slot: i)
        case .chain: return RuleStates.none
        case .list, .elements, .set: return rules.stepToElement(frame.state)
        }
    }

    /// Picks a row, with a record. A row is an array of plain values in a list of plain values, without a rule, that both sides changed
    /// differently. Returns nil if the element is not such a row.
    private func pickedRow(_ place: Place) throws -> ValueRef? {
        guard let frame = place.frame, frame.isOfPlain, !saves, state(frame, place.child) == RuleStates.none else { return nil }
        let i = place.child, inputs = RecordDraft.Inputs(o: frame.o(i), x: frame.x(i), y: frame.y(i), state: RuleStates.none)
        let (o, x, y) = (inputs.o, inputs.x, inputs.y)
        guard values.isKind(o, .array), values.isKind(x, .array), values.isKind(y, .array) else { return nil }
        if try !frame.isKnownToDiffer(i) && (values.same(x, o) || values.same(y, o) || values.same(x, y)) { return nil }
        return try ShortLists.areRows(o, x, y, values) ? pick(inputs, Self.auto, place) : nil
    }

    private func rule(_ state: Int) -> SchemaRule {
        guard let index = rules.rule(state) else { return Self.auto }
        return rules.rules.rules[index]
    }

    // MARK: The core

    /// Returns the result, or nil if a frame was opened for it.
    private func begin(_ base: ValueRef, _ newer: ValueRef, _ older: ValueRef, _ state: Int, _ place: Place) throws -> ValueRef? {
        if swaps, let frame = place.frame, frame.givesBack { return try givenBack(base, newer, state, place) }
        if state == RuleStates.none {
            if newer.isAbsent, older.isAbsent { return .absent }
            if let frame = place.frame, frame.isKnownToDiffer(place.child) {
                return try merged(base, newer, older, state, Self.auto, place, isNew: base.isAbsent)
            }
            return try lines(base, newer, older, state, Self.auto, place, isNew: base.isAbsent)
        }
        let isMissing = newer.isAbsent && older.isAbsent
        let rule = rule(state)
        guard !isMissing || rule.absent != nil else { return .absent }
        try values.work.done(1)
        var o = base, x = newer, y = older
        if let stand = rule.absent.map({ ValueRef(tree: rulesTree, node: $0) }) {
            // If one side left the value unchanged, absent values need no stand-in.
            if try !isMissing && values.same(x, o) { return y }
            if try !isMissing && values.same(y, o), !savesObjects(x, y, rule) { return x }
            if o.isAbsent { o = stand }
            if x.isAbsent { x = stand }
            if y.isAbsent { y = stand }
            if isMissing {
                guard let result = try lines(o, x, y, state, rule, place, isNew: base.isAbsent) else {
                    frames.last?.stand = stand
                    return nil
                }
                return try missing(result, stand)
            }
        }
        return try lines(o, x, y, state, rule, place, isNew: base.isAbsent)
    }

    /// Decides by the lines of the core (docs/merging-values.md), in their order.
    private func lines(
        _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, _ state: Int, _ rule: SchemaRule, _ place: Place, isNew: Bool
    ) throws -> ValueRef? {
        if try values.same(x, o) { return y }
        if try values.same(y, o), !savesObjects(x, y, rule) { return x }
        if !rules.counts(state), try values.same(x, y) { return x }
        return try merged(o, x, y, state, rule, place, isNew: isNew)
    }

    /// Decides from the fourth line of the core on: all three values differ.
    private func merged(
        _ o: ValueRef, _ x: ValueRef, _ y: ValueRef, _ state: Int, _ rule: SchemaRule, _ place: Place, isNew: Bool
    ) throws -> ValueRef? {
        let inputs = RecordDraft.Inputs(o: o, x: x, y: y, state: state)
        // (If the undone edit created the counter, only later additions by other edits remain.)
        if swaps, rule.kind == .counter, y.isAbsent, values.isKind(o, .number), values.isKind(x, .number) {
            return try counter(inputs, rule, place)
        }
        if swaps, y.isAbsent, !rule.deletes, givesBack(o, x, state, rule) { return try openGivingBack(o, x, state, place) }
        if undoes, x.isAbsent {
            try record(.deleteEdit, inputs, .absent, place)
            return .absent
        }
        if x.isAbsent || y.isAbsent { return try begunAnew(inputs, rule, place) ?? removed(inputs, rule, place) }
        if swaps, isNew, !isCounterThatBegan(rule, place), try wouldAddUp(x, y, rule) {
            if try !values.same(x, y) { try record(values.kind(x) == values.kind(y) ? .pick : .type, inputs, x, place) }
            return x
        }
        if rule.kind == .counter { return try counter(inputs, rule, place) }
        let p = values.kind(x), q = values.kind(y)
        // (The whole value is merged here, too: it is written as computed, whatever its members are merged to.)
        if state == RuleStates.none, !saves, p >= .array, p == q {
            if p == .object, let merged = try mergedAtOnce(inputs, place) { return merged }
            if !swaps, !tellsPlaces, let chain = try MergeChain.found(o, x, y, values) { return try open(.chain(chain), inputs, place) }
        }
        if let identity = rule.identity, o.isAbsent, p == .object, q == .object, try !agree(x, y, identity) {
            return try pick(inputs, rule, place)
        }
        switch (rule.kind, p, q) {
        case (.auto, .object, .object):
            if state != RuleStates.none, let merged = try mergedAtOnce(inputs, place) { return merged }
            return try open(.object, inputs, place)
        case (.register, .object, .object) where saves: return try open(.object, inputs, place)
        case (.auto, .array, .array), (.list, .array, .array):
            let key = rule.kind == .list ? rule.key : nil
            // (Only frames of whole lists know the places of elements in the result, and which elements an app changed.)
            if rule.kind == .auto, !saves, !tellsPlaces, values.isKind(o, .array),
                let found = try ShortLists.aligned(o, x, y, values)
            {
                return try open(.elements(paired: found.paired, isOfPlain: found.isOfPlain), inputs, place)
            }
            let plan = try ListAlignment(values, o, x, y, key: key, saves: saves, steps: &textSteps)
            return try open(.list(plan), inputs, place)
        case (.set, .array, .array): return try open(.set(try SetPlan(values, o, x, y, key: rule.key, saves: saves)), inputs, place)
        case (.tuple, .array, .array) where isTuple(inputs): return try open(.tuple, inputs, place)
        case (.text, .string, .string): return try text(inputs, rule, place)
        default: return try pick(inputs, rule, place)
        }
    }

    /// Returns whether to descend into two objects although only one side changed its object. A save retains the spelling of unchanged
    /// numbers in them.
    private func savesObjects(_ x: ValueRef, _ y: ValueRef, _ rule: SchemaRule) -> Bool {
        saves && (rule.kind == .auto || rule.kind == .register) && values.isKind(x, .object) && values.isKind(y, .object)
    }

    /// Returns absent if neither side has the value and the result equals the rule's stand-in for absent values.
    private func missing(_ result: ValueRef, _ stand: ValueRef) throws -> ValueRef {
        if result == stand || result.isAbsent { return .absent }
        let both = try [result, stand].map { try CanonicalWriter.bytes(of: $0, in: values, normalises: true) }
        return both[0] == both[1] ? .absent : result
    }

    /// Returns whether an absent counter counts as its start: in an object that the base has, or as the whole value.
    private func isCounterThatBegan(_ rule: SchemaRule, _ place: Place) -> Bool {
        guard rule.kind == .counter else { return false }
        return place.frame.map { $0.isObject && values.isKind($0.inputs.o, .object) } ?? true
    }

    /// Returns whether a merge of two values over an empty base would add them up, although one was made from the other.
    private func wouldAddUp(_ x: ValueRef, _ y: ValueRef, _ rule: SchemaRule) throws -> Bool {
        switch (rule.kind, values.kind(x), values.kind(y)) {
        case (.counter, let p, let q): return p != .raw && q != .raw
        case (.text, .string, .string): return true
        case (.auto, .array, .array), (.list, .array, .array):
            let sides = [x, y].map { (ref: $0, nodes: values.tree($0).children(of: $0.node)) }
            let most = max(sides[0].nodes.count, sides[1].nodes.count)
            var keys = ElementKeys(values, declared: rule.kind == .list ? rule.key : nil, usesID: true, atMost: most)
            for side in sides {
                for node in side.nodes {
                    let number = try keys.number(of: ValueRef(tree: side.ref.tree, node: node))
                    if keys.source(Int(number)) == .value { return true }
                }
            }
            return false
        default: return false
        }
    }

    // MARK: Undone values that were changed since

    /// Returns whether both values are objects and the rules have counters below.
    private func givesBack(_ o: ValueRef, _ x: ValueRef, _ state: Int, _ rule: SchemaRule) -> Bool {
        rules.counts(state) && rule.kind == .auto && values.isKind(o, .object) && values.isKind(x, .object)
    }

    private func openGivingBack(_ o: ValueRef, _ x: ValueRef, _ state: Int, _ place: Place) throws -> ValueRef? {
        let opened = try open(.object, RecordDraft.Inputs(o: o, x: x, y: o, state: state), place)
        frames.last?.givesBack = true
        return opened
    }

    /// Merges a member of such an object.
    private func givenBack(_ o: ValueRef, _ x: ValueRef, _ state: Int, _ place: Place) throws -> ValueRef? {
        guard !o.isAbsent, !x.isAbsent, rules.counts(state) else { return x }
        try values.work.done(1)
        let rule = rule(state)
        if rule.kind == .counter {
            if try values.same(o, x) { return .absent }
            let stand = rule.absent.map { ValueRef(tree: rulesTree, node: $0) } ?? .absent
            return try lines(o, x, stand, state, rule, place, isNew: false)
        }
        return givesBack(o, x, state, rule) ? try openGivingBack(o, x, state, place) : x
    }

    /// Decides if one side removed what the other changed.
    func removed(_ inputs: RecordDraft.Inputs, _ rule: SchemaRule, _ place: Place) throws -> ValueRef {
        let result = saves ? inputs.x : rule.deletes ? .absent : inputs.x.isAbsent ? inputs.y : inputs.x
        try record(.deleteEdit, inputs, result, place)
        return result
    }

    /// Returns whether both sides agree at all pointers.
    private func agree(_ x: ValueRef, _ y: ValueRef, _ pointers: [[[UInt8]]]) throws -> Bool {
        for pointer in pointers {
            guard try values.same(values.find(pointer, from: x) ?? .absent, values.find(pointer, from: y) ?? .absent) else { return false }
        }
        return true
    }

    private func isTuple(_ inputs: RecordDraft.Inputs) -> Bool {
        func length(_ ref: ValueRef) -> Int { values.tree(ref).children(of: ref.node).count }
        let count = length(inputs.x)
        return length(inputs.y) == count && (!values.isKind(inputs.o, .array) || length(inputs.o) == count)
    }

    // MARK: Records

    func record(_ kind: ConflictRecord.Kind, _ inputs: RecordDraft.Inputs, _ result: ValueRef, _ place: Place) throws {
        guard !hasTooMany else { return }
        let number = try keep(place)
        add(RecordDraft(kind: kind, inputs: inputs, result: result, place: number), in: place.frame)
    }

    /// Drops all records if `count` more records of list elements would exceed the budget.
    private func expectRecords(_ count: Int) {
        // Each record has at least a path `[{"index":0}]` and four values.
        guard count > 0, !hasTooMany, budget.isExceeded(by: leastSize + count * (ConflictRecord.ownSize + 13 + 4)) else { return }
        hasTooMany = true
        records = Pieces()
    }

    /// Adds a record. If the records' least size exceeds the budget, drops all of them.
    private func add(_ draft: RecordDraft, in frame: MergeFrame?) {
        func least(_ ref: ValueRef) -> Int {
            if ref.isAbsent || ref.isComputed { return ref.isAbsent ? 0 : 1 }
            let tree = values.tree(ref), code = tree.code(ref.node)
            let isWritten = values.isScalar(ref) || JSONCode.isContainer(code) && JSONCode.isCanonical(code)
            return isWritten ? tree.length(ref.node) : 1
        }
        // The path is at least `[]`, `[""]` or `[{"key":0}]`.
        let path = frame.map { $0.pathSize + ($0.isOfElements ? 11 : 4) } ?? 2
        leastSize += ConflictRecord.ownSize + path + (0..<4).reduce(0) { $0 + least(draft.part($1)) }
        if budget.isExceeded(by: leastSize) {
            hasTooMany = true
            records = Pieces()
            return
        }
        records.append(draft)
    }

    // MARK: Containers

    private func open(_ shape: MergeFrame.Shape, _ inputs: RecordDraft.Inputs, _ place: Place) throws -> ValueRef? {
        let frame = spare.popLast() ?? MergeFrame()
        frame.begin(shape, inputs, place)
        switch shape {
        case .object: try frame.openMembers(values)
        case .tuple: frame.openSlots(values)
        case .chain(let chain): frame.open(chain)
        case .elements(let paired, _): frame.openElements(values, differing: paired)
        case .list(let plan):
            plan.children(of: frame)
            if rules.stepToElement(frame.state) == RuleStates.none { expectRecords(plan.conflictCount) }
        case .set(let plan): plan.children(of: frame)
        }
        frames.append(frame)
        return nil
    }

    private func finish(_ frame: MergeFrame) throws -> ValueRef {
        try values.work.done(frame.count)
        switch frame.shape {
        case .chain(let chain):
            defer { frame.close() }
            return chain.result(frame.result(0), frame.inputs, values)
        case .object:
            defer { frame.close() }
            // If all children are one side's, that side is the result. (The whole value is written as computed.)
            if frame.place.frame != nil, let side = frame.sideThatStands(values) { return side }
            var members: [(name: ValueRef, value: ValueRef)] = []
            members.reserveCapacity(frame.count)
            for i in 0..<frame.count where !frame.isAbsent(i) {
                let value = frame.result(i)
                members.append((frame.name(i, of: value), value))
            }
            return values.add(.object(members))
        case .elements:
            if frame.place.frame != nil, let side = frame.sideThatStands(values) { return side }
            return values.add(.array(frame.elements))
        case .tuple:
            defer { frame.close() }
            return values.add(.array(frame.results))
        case .list(let plan):
            let (elements, moved) = try plan.emit(frame, mostMoves: Self.mostMoves, tellsPlaces: tellsPlaces)
            guard let moved else {
                let list = values.add(.array(elements))
                try record(.moveMove, frame.inputs, list, frame.place)
                return list
            }
            for move in moved {
                func element(_ list: ValueRef, _ node: UInt32) -> ValueRef {
                    node == MergeFrame.none ? .absent : ValueRef(tree: list.tree, node: node)
                }
                let inputs = RecordDraft.Inputs(
                    o: element(frame.inputs.o, move.nodes.base), x: element(frame.inputs.x, move.nodes.newer),
                    y: element(frame.inputs.y, move.nodes.older), state: frame.state)
                try record(.moveMove, inputs, frame.result(move.key), Place(frame: frame, child: move.key))
            }
            frame.close()
            let list = values.add(.array(elements))
            if plan.isLimited { try record(.limit, frame.inputs, list, frame.place) }
            return list
        case .set(let plan):
            frame.closeChildren()
            defer { frame.close() }
            return values.add(.array(try plan.emit(frame, values)))
        }
    }
}
