/// The forms of the values under one prefix: which member has the form's number, and which members were renamed in which form (`"schema":
/// {"at": "/v", "renames": [{"to": 2, "from": "/name", "path": "/fullName"}]}`).
package final class ValueForms: Sendable {
    /// A member that has another place from a form on.
    struct Rename: Sendable {
        var to: JSONDecimal
        var from: [[UInt8]]
        var path: [[UInt8]]
    }

    /// The most segments of a pointer, since writing recurses along them.
    static let mostSegments = 16
    static let mostRenames = 64

    /// The place of the form's number.
    let at: [[UInt8]]
    /// In the order of the forms. Nil if the rules have none, and no value is lifted.
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

    /// Returns whether one of two pointers leads to the same place as the other, or to a part of it.
    static func overlap(_ a: [[UInt8]], _ b: [[UInt8]]) -> Bool { a.starts(with: b) || b.starts(with: a) }

    /// Returns the number of a value's form; nil if it has none.
    private func form(of text: JSONText?) -> JSONDecimal? {
        guard let tree = text?.tree, let node = Self.member(at, in: tree) else { return nil }
        return tree.kind(node) == .number ? tree.decimal(node) : nil
    }

    /// Returns the node to which names lead through objects.
    private static func member(_ names: [[UInt8]], in tree: JSONTree) -> UInt32? {
        var node: UInt32 = 0
        for name in names {
            guard let value = name.withUnsafeBytes({ tree.member($0, of: node) }) else { return nil }
            node = value
        }
        return node
    }

    /// Returns whether the first form is earlier than the second. A value without a number has the earliest form.
    private static func isEarlier(_ a: JSONDecimal?, _ b: JSONDecimal?) -> Bool {
        guard let b else { return false }
        return a.map { JSONDecimal.compare($0, b) < 0 } ?? true
    }

    /// Lifts values to the latest of their forms: renames the members of those in earlier forms.
    /// - Returns: the same values if there is nothing to do; and whether to swap the second and the third, since the third has a later
    ///   form and there are no renames to lift the second.
    func lifted(_ texts: [JSONText?], work: DocumentControl) throws -> (texts: [JSONText?], olderIsLater: Bool) {
        let forms = texts.map(form)
        guard texts.count == 3, let latest = forms.reduce(nil, { Self.isEarlier($0, $1) ? $1 : $0 }) else { return (texts, false) }
        if renames == nil { return (texts, texts[1] != nil && texts[2] != nil && Self.isEarlier(forms[1], forms[2])) }
        let others = texts.compactMap { $0 }
        return (try zip(texts, forms).map { text, form in try text.map { try lifted($0, of: form, to: latest, others, work) } }, false)
    }

    /// - Parameter others: the values to merge it with.
    private func lifted(
        _ text: JSONText, of form: JSONDecimal?, to latest: JSONDecimal, _ others: [JSONText], _ work: DocumentControl
    ) throws -> JSONText {
        guard let renames, text.tree.kind(0) == .object, Self.isEarlier(form, latest) else { return text }
        let due = renames.filter { Self.isEarlier(form, $0.to) && JSONDecimal.compare($0.to, latest) <= 0 }
        // If a value of the later form still has the old name, an upgrade left it there. Then lifting leaves it, too, or both sides would
        // seem to have added it.
        let isLeft = due.map { rename in
            others.contains { !Self.isEarlier(self.form(of: $0), rename.to) && Self.member(rename.from, in: $0.tree) != nil }
        }
        return try lift(text, Array(zip(due, isLeft)), latest, work) ?? text
    }

    /// Returns the value with the names that its members had in a form, if its own form is later; nil if it stays as it is. The value
    /// under the new name wins over a value that an upgrade left under the old one.
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

    /// Returns the value to undo an edit to: the value before the edit, but in the edit's form and with the members that the edit
    /// created. So no upgrade runs again over later edits of other devices. Created counters and texts are left out.
    /// - Returns: nil unless the edit brought the value into a later form; and whether members besides the form's number were included.
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

    /// Returns the value with its members renamed; nil if the result is too deep or too large to be merged.
    /// - Parameter renames: each with whether the member also stays under its old name.
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
    /// Returns the value with an edited object; nil if the result is too deep or too large to be merged.
    fileprivate func with(_ edited: RenamedObject, _ work: DocumentControl) throws -> JSONText? {
        var writer = CanonicalWriter(DocumentValues([self], work: work))
        try edited.write(to: &writer, in: tree)
        return try writer.bytes.withUnsafeBytes { try JSONTreeParser.parse($0, copying: true, work: work) }
    }
}

/// An object of a tree, and its edits.
private final class RenamedObject {
    enum Item {
        case gone
        case node(UInt32)
        case object(RenamedObject)
        case text([UInt8])
    }

    /// Nil if it is in no tree.
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

    /// Returns the object to which names lead; nil if something on the way is not an object.
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

    /// Moves a member to a free place, or copies it there.
    func move(_ from: [[UInt8]], to path: [[UInt8]], leaving isLeft: Bool, in tree: JSONTree) {
        guard let name = from.last, let new = path.last, let source = object(at: from.dropLast(), making: false, in: tree),
            let item = source.item(name, in: tree), let target = object(at: path.dropLast(), making: true, in: tree),
            target.item(new, in: tree) == nil
        else { return }
        if !isLeft { source.changed[name] = .gone }
        target.changed[new] = item
    }

    /// Moves a member to its old place, and replaces what is there. If the member is missing, the old place becomes empty. Does nothing
    /// if something on the way is not an object.
    func move(back path: [[UInt8]], to old: [[UInt8]], in tree: JSONTree) {
        guard let name = path.last, let oldName = old.last, !isBlocked(path.dropLast(), in: tree), !isBlocked(old.dropLast(), in: tree)
        else { return }
        let source = object(at: path.dropLast(), making: false, in: tree), item = source?.item(name, in: tree)
        if item != nil { source?.changed[name] = .gone }
        object(at: old.dropLast(), making: item != nil, in: tree)?.changed[oldName] = item ?? .gone
    }

    /// Returns whether a value to which names lead exists and is not an object.
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

    /// Writes the object as merges do. Recurses no deeper than pointers have segments.
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
            // Below 0: the next member is unchanged. 0: a changed member replaces it. Above 0: a changed member comes first.
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
    /// Returns a value as a program reads it that knows an earlier form. If the value has a later form, members that the rules rename have
    /// the names of the earlier form. Any other value, and bytes that are not a JSON object, are returned unchanged.
    /// - Parameters:
    ///  - form: the number of the form that the program knows.
    ///  - bytes: the value.
    ///  - id: its id, which selects the rules.
    /// - Throws: `.outOfMemory`.
    /// - Complexity: O(n) in the size of the value, if its rules have renames.
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
