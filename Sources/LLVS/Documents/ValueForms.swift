/// How the forms of the values under one prefix follow each other: which member tells the form, and which members have another name from
/// a form on (`"schema": {"at": "/v", "renames": [{"to": 2, "from": "/name", "path": "/fullName"}]}`).
final class ValueForms: Sendable {
    /// A member that has another place from a form on.
    struct Rename: Sendable {
        var to: JSONDecimal
        var from: [[UInt8]]
        var path: [[UInt8]]
    }

    /// Pointers have at most so many segments; writing goes down by them.
    static let mostSegments = 16
    static let mostRenames = 64

    /// Where the number of the form stands.
    let at: [[UInt8]]
    /// In the order of the forms; nil: none are given, and nothing is lifted.
    let renames: [Rename]?

    init(at: [[UInt8]], renames: [Rename]?) {
        self.at = at
        self.renames = renames.map { all in
            all.enumerated().sorted { a, b in
                let order = JSONDecimal.compare(a.element.to, b.element.to)
                return order != 0 ? order < 0 : a.offset < b.offset
            }.map(\.element)
        }
    }

    /// Whether one of two pointers leads to what the other leads to, or to a part of it.
    static func overlap(_ a: [[UInt8]], _ b: [[UInt8]]) -> Bool { a.starts(with: b) || b.starts(with: a) }

    /// The number of a value's form; nil where it tells none.
    private func form(of text: JSONText?) -> JSONDecimal? {
        guard let tree = text?.tree, let node = Self.member(at, in: tree) else { return nil }
        return tree.kind(node) == .number ? tree.decimal(node) : nil
    }

    /// What names lead to, down through objects.
    private static func member(_ names: [[UInt8]], in tree: JSONTree) -> UInt32? {
        var node: UInt32 = 0
        for name in names {
            guard let value = name.withUnsafeBytes({ tree.member($0, of: node) }) else { return nil }
            node = value
        }
        return node
    }

    /// Whether the first is of an earlier form than the second; who tells none is of the earliest.
    private static func isEarlier(_ a: JSONDecimal?, _ b: JSONDecimal?) -> Bool {
        guard let b else { return false }
        return a.map { JSONDecimal.compare($0, b) < 0 } ?? true
    }

    /// The values in the latest of their forms: those of earlier ones with their members renamed.
    /// - Returns: the same values where nothing is to be done; and whether the second and the third are to change places, since the third
    ///   is of a later form and there is nothing to lift the second by.
    func lifted(_ texts: [JSONText?], work: DocumentControl) throws -> (texts: [JSONText?], olderIsLater: Bool) {
        let forms = texts.map(form)
        guard texts.count == 3, let latest = forms.reduce(nil, { Self.isEarlier($0, $1) ? $1 : $0 }) else { return (texts, false) }
        if renames == nil { return (texts, texts[1] != nil && texts[2] != nil && Self.isEarlier(forms[1], forms[2])) }
        let others = texts.compactMap { $0 }
        return (try zip(texts, forms).map { text, form in try text.map { try lifted($0, of: form, to: latest, others, work) } }, false)
    }

    /// - Parameter others: the values that it is merged with.
    private func lifted(
        _ text: JSONText, of form: JSONDecimal?, to latest: JSONDecimal, _ others: [JSONText], _ work: DocumentControl
    ) throws -> JSONText {
        guard let renames, text.tree.kind(0) == .object, Self.isEarlier(form, latest) else { return text }
        let due = renames.filter { Self.isEarlier(form, $0.to) && JSONDecimal.compare($0.to, latest) <= 0 }
        // If a value of the later form has kept the old name, an upgrade left it there. Then lifting leaves it as well: else both sides
        // would seem to have added it.
        let isLeft = due.map { rename in
            others.contains { !Self.isEarlier(self.form(of: $0), rename.to) && Self.member(rename.from, in: $0.tree) != nil }
        }
        return try lift(text, Array(zip(due, isLeft)), latest, work) ?? text
    }

    /// The value with the names that its members had in a form, if it is of a later one; nil if it stays as it is. What stands under the
    /// new name counts: what an upgrade left under the old one gives way to it.
    func withNames(of form: JSONDecimal, _ text: JSONText, work: DocumentControl) throws -> JSONText? {
        guard let renames, text.tree.kind(0) == .object, let own = self.form(of: text) else { return nil }
        let due = renames.filter { Self.isEarlier(form, $0.to) && JSONDecimal.compare($0.to, own) <= 0 }
        if due.isEmpty { return nil }
        try Memory.expect(text.tree.bytes.count, "Reading a value")
        let edited = RenamedObject(0)
        for rename in due.reversed() {
            try work.done(text.tree.count)
            edited.move(back: rename.path, to: rename.from, in: text.tree)
        }
        return try text.with(edited, work)
    }

    /// What undoing an edit comes to: what was before it, but in the form that the edit brought the value into, and with the members that
    /// were made then. So no upgrade runs once more over what others did since. Members that are counters and texts are not kept.
    /// - Returns: nil where the edit brought the value into no later form; and whether members were kept beside the number of the form.
    func kept(
        _ before: JSONText, in edited: JSONText, _ rules: ValueRules, work: DocumentControl
    ) throws -> (text: JSONText, hasMembers: Bool)? {
        let old = form(of: before)
        guard let new = form(of: edited), Self.isEarlier(old, new), before.tree.kind(0) == .object else { return nil }
        let own = try lifted(before, of: old, to: new, [edited], work)
        try Memory.expect(own.tree.bytes.count + edited.tree.bytes.count, "Undoing an edit of a value")
        var reader = CanonicalWriter(DocumentValues([edited], work: work))
        func written(_ node: UInt32) throws -> RenamedObject.Item {
            reader.clear()
            try reader.write(ValueRef(tree: 0, node: node))
            return .text(reader.bytes)
        }
        let made = RenamedObject(0), states = RuleStates(rules)
        var hasMembers = false
        for node in try reader.sortedMembers(of: 0) {
            let name = edited.tree.name(of: node), state = states.step(RuleStates.start, name)
            let kind = state == RuleStates.none ? nil : states.rule(state).map { rules.rules[$0].kind }
            if own.tree.member(name, of: 0) != nil || kind == .counter || kind == .text { continue }
            made.changed[Array(name)] = try written(node)
            hasMembers = hasMembers || at.count > 1 || at.first != Array(name)
        }
        try work.done(edited.tree.count)
        if let number = edited.tree.find(at, from: 0), let name = at.last,
            let parent = made.object(at: at.dropLast(), making: true, in: own.tree)
        {
            parent.changed[name] = try written(number)
        }
        return try own.with(made, work).map { ($0, hasMembers) }
    }

    /// The value with its members renamed; nil when that is no JSON that can be merged: too deep, or too large.
    /// - Parameter renames: each with whether the member stays under its old name as well.
    private func lift(
        _ text: JSONText, _ renames: [(rename: Rename, isLeft: Bool)], _ latest: JSONDecimal, _ work: DocumentControl
    ) throws -> JSONText? {
        try Memory.expect(text.tree.bytes.count, "Merging a value")
        let edited = RenamedObject(0), tree = text.tree
        for (rename, isLeft) in renames {
            try work.done(tree.count)
            edited.move(rename.from, to: rename.path, leaving: isLeft, in: tree)
        }
        if let parent = edited.object(at: at.dropLast(), making: true, in: tree), let name = at.last {
            parent.changed[name] = .text(latest.spelling)
        }
        return try text.with(edited, work)
    }
}

extension JSONText {
    /// The same with something else in it; nil when that is no JSON that can be merged: too deep, or too large.
    fileprivate func with(_ edited: RenamedObject, _ work: DocumentControl) throws -> JSONText? {
        var writer = CanonicalWriter(DocumentValues([self], work: work))
        try edited.write(to: &writer, in: tree)
        return try writer.bytes.withUnsafeBytes { try JSONTreeParser.parse($0, copying: true, work: work) }
    }
}

/// An object of a tree, and what is other in it than there.
private final class RenamedObject {
    enum Item {
        case gone
        case node(UInt32)
        case object(RenamedObject)
        case text([UInt8])
    }

    /// Nil: it is in no tree.
    private let node: UInt32?
    var changed: [[UInt8]: Item] = [:]

    init(_ node: UInt32?) { self.node = node }

    private func item(_ name: [UInt8], in tree: JSONTree) -> Item? {
        if let item = changed[name] {
            if case .gone = item { return nil }
            return item
        }
        return node.flatMap { node in name.withUnsafeBytes { tree.member($0, of: node) } }.map { .node($0) }
    }

    /// The object that names lead to; nil where something on the way is none.
    func object(at names: ArraySlice<[UInt8]>, making: Bool, in tree: JSONTree) -> RenamedObject? {
        var object = self
        for name in names {
            switch object.item(name, in: tree) {
            case .object(let next): object = next
            case .node(let node) where tree.kind(node) == .object:
                let next = RenamedObject(node)
                object.changed[name] = .object(next)
                object = next
            case nil where making:
                let next = RenamedObject(nil)
                object.changed[name] = .object(next)
                object = next
            default: return nil
            }
        }
        return object
    }

    /// Moves a member to where nothing is yet, or copies it.
    func move(_ from: [[UInt8]], to path: [[UInt8]], leaving isLeft: Bool, in tree: JSONTree) {
        guard let name = from.last, let new = path.last, let source = object(at: from.dropLast(), making: false, in: tree),
            let item = source.item(name, in: tree), let target = object(at: path.dropLast(), making: true, in: tree),
            target.item(new, in: tree) == nil
        else { return }
        if !isLeft { source.changed[name] = .gone }
        target.changed[new] = item
    }

    /// Moves a member to its old place, in the stead of what is there; where it is missing nothing is there. Leaves all as it is where
    /// something on the way is no object.
    func move(back path: [[UInt8]], to old: [[UInt8]], in tree: JSONTree) {
        guard let name = path.last, let oldName = old.last, !isBlocked(path.dropLast(), in: tree), !isBlocked(old.dropLast(), in: tree)
        else { return }
        let source = object(at: path.dropLast(), making: false, in: tree), item = source?.item(name, in: tree)
        if item != nil { source?.changed[name] = .gone }
        object(at: old.dropLast(), making: item != nil, in: tree)?.changed[oldName] = item ?? .gone
    }

    /// Whether something that names lead to is there and no object.
    private func isBlocked(_ names: ArraySlice<[UInt8]>, in tree: JSONTree) -> Bool {
        var object = self
        for name in names {
            switch object.item(name, in: tree) {
            case nil: return false
            case .object(let next): object = next
            case .node(let node) where tree.kind(node) == .object: object = RenamedObject(node)
            default: return true
            }
        }
        return false
    }

    /// As merges write objects. Goes down no further than pointers do.
    func write(to writer: inout CanonicalWriter, in tree: JSONTree) throws {
        let others = changed.sorted { a, b in a.key.withUnsafeBytes { a in b.key.withUnsafeBytes { Bytes.compare(a, $0) < 0 } } }
        let known = try node.map { try writer.sortedMembers(of: $0) } ?? []
        var i = 0, j = 0, isFirst = true
        func begin(_ name: UnsafeRawBufferPointer) {
            writer.append([UInt8(ascii: isFirst ? "{" : ",")])
            writer.appendName(name)
            isFirst = false
        }
        while i < others.count || j < known.count {
            // Below 0: a member as it was; 0: instead of one.
            let order =
                i == others.count
                ? -1
                : j == known.count
                    ? 1
                    : others[i].key.withUnsafeBytes { Bytes.compare(tree.name(of: known[j]), $0) }
            if order < 0 {
                begin(tree.name(of: known[j]))
                try writer.write(ValueRef(tree: 0, node: known[j]))
            } else {
                let (name, item) = others[i]
                i += 1
                if case .gone = item {} else { name.withUnsafeBytes { begin($0) } }
                switch item {
                case .gone: break
                case .node(let node): try writer.write(ValueRef(tree: 0, node: node))
                case .object(let object): try object.write(to: &writer, in: tree)
                case .text(let text): writer.append(text)
                }
            }
            if order <= 0 { j += 1 }
        }
        writer.append(Array((isFirst ? "{}" : "}").utf8))
    }
}

extension MergeSchema {
    /// Returns a value as a program reads it that knows an earlier form: members that the rules rename have the names that they had in that
    /// form, if the value is of a later one. Any other value is returned as it is, and so is what is no JSON object.
    /// - Parameters:
    ///   - form: the number of the form that the program knows.
    ///   - bytes: the value.
    ///   - id: its id, which tells the rules that are for it.
    /// - Throws: `.outOfMemory`.
    /// - Complexity: O(n) in the size of the value, if the rules for it name renames.
    public func withNames(ofForm form: Int, _ bytes: [UInt8], id: [UInt8]) throws -> [UInt8] {
        guard let forms = id.withUnsafeBytes({ rules(for: $0) })?.forms, forms.renames != nil,
            let number = Array("\(form)".utf8).withUnsafeBytes({ JSONDecimal($0) })
        else { return bytes }
        return try bytes.withUnsafeBytes { all in
            let work = DocumentControl()
            guard let text = try JSONTreeParser.parse(all, work: work), let named = try forms.withNames(of: number, text, work: work) else {
                return bytes
            }
            return Array(named.tree.bytes)
        }
    }
}
