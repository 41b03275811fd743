/// The tuples that a value has in an index: docs/index-keys.md, *The keys of a value*.
package struct IndexTuples {
    /// Why a value is not in an index, in the words of the page.
    package enum Absence: String, Sendable {
        case prefix, reserved
        case notJSON = "not-json"
        case condition = "where"
        case tooManyKeys = "too-many-keys"
        case noFirstPart = "no-first-part"
        /// A callback returned none.
        case noKeys = "no-keys"
    }

    private let definition: IndexDefinition
    private let tree: JSONTree
    /// The chosen nodes of each star, grouped by container; `none` for a container without any.
    private var choices: [[UInt32]] = []
    /// For each star the ranges of its choices, one for each choice of the star above.
    private var ranges: [[Range<Int>]] = []
    /// The number of tuples that they make.
    private var count = 1
    private static let none = UInt32.max

    /// Returns why values of that id cannot be in an index of that definition; nil if they may be.
    package static func absence(of id: UnsafeRawBufferPointer, in definition: IndexDefinition) -> Absence? {
        guard Bytes.begins(id, with: definition.prefix) else { return .prefix }
        guard Bytes.begins(id, with: IndexDefinition.reserved) else { return nil }
        return definition.prefix.starts(with: IndexDefinition.reserved) ? nil : .reserved
    }

    /// Calls `body` with each tuple of a value, possibly with duplicates, in no particular order. Borrowed bytes are valid during the call.
    /// - Parameters:
    ///   - data: the bytes of a value whose id fits the index.
    ///   - idSize: the bytes of that id.
    ///   - work: counts the bytes read.
    /// - Returns: why there is none; nil if there are some.
    /// - Throws: errors of `work` and `body`, and `.outOfMemory`.
    static func forEach(
        _ data: UnsafeRawBufferPointer, idSize: Int, _ definition: IndexDefinition, _ work: DocumentControl,
        _ body: ([IndexPart]) throws -> Void
    ) throws -> Absence? {
        guard let text = try JSONTreeParser.parse(data, work: work) else { return .notJSON }
        return try withExtendedLifetime(text) {
            let tree = text.tree
            var node: UInt32 = 0
            while node < tree.count {
                if tree.kind(node) == .number, !IndexNumber.isWithinLimits(tree.text(node)) { return .notJSON }
                node = tree.following(node)
            }
            for condition in definition.conditions where !holds(condition, text.tree) { return .condition }
            if definition.stars.stars.isEmpty { return try forOne(text.tree, definition, body) ? nil : .noFirstPart }
            var tuples = IndexTuples(definition, text.tree)
            guard tuples.choose(), tuples.isWithinRoom(data.count, idSize) else { return .tooManyKeys }
            return try tuples.forEach(body) ? nil : .noFirstPart
        }
    }

    /// Calls `body` with all tuples of a value at once. Borrowed bytes are valid during the call.
    static func withAll(
        _ data: UnsafeRawBufferPointer, idSize: Int, _ definition: IndexDefinition, _ body: ([[IndexPart]]) throws -> Void
    ) throws {
        guard let text = try JSONTreeParser.parse(data, work: DocumentControl()) else { return try body([]) }
        try withExtendedLifetime(text) {
            var tuples = IndexTuples(definition, text.tree), found: [[IndexPart]] = []
            if tuples.choose(), tuples.isWithinRoom(data.count, idSize) { _ = try tuples.forEach { found.append($0) } }
            try body(found)
        }
    }

    private init(_ definition: IndexDefinition, _ tree: JSONTree) {
        self.definition = definition
        self.tree = tree
    }

    /// Without stars: calls `body` with the one tuple, if there is one.
    private static func forOne(_ tree: JSONTree, _ definition: IndexDefinition, _ body: ([IndexPart]) throws -> Void) throws -> Bool {
        let tuple = definition.stars.parts.map { part(tree.find($0.path, from: 0), tree) }
        guard !tuple[0].isMissing else { return false }
        try body(tuple)
        return true
    }

    private static func holds(_ condition: IndexDefinition.Condition, _ tree: JSONTree) -> Bool {
        let node = tree.find(condition.path, from: 0)
        if case .present(let wanted) = condition.wanted { return (node != nil) == wanted }
        guard let node else { return false }
        return switch (condition.wanted, tree.kind(node)) {
        case (.null, .null): true
        case (.bool(let wanted), .bool): tree.bool(node) == wanted
        case (.number(let wanted), .number): tree.decimal(node) == wanted
        case (.string(let wanted), .string): wanted.withUnsafeBytes { Bytes.equal(tree.text(node), $0) }
        default: false
        }
    }

    // MARK: Choices

    /// Finds the choices for each star; false if that makes too many tuples. Each container is visited once.
    private mutating func choose() -> Bool {
        let stars = definition.stars.stars
        for star in stars {
            var found: [UInt32] = [], parts: [Range<Int>] = []
            for from in star.parent.map({ choices[$0] }) ?? [0] {
                let start = found.count
                if from != Self.none, let container = tree.find(star.path, from: from), tree.kind(container) >= .array {
                    tree.appendChildren(of: container, to: &found, most: IndexDefinition.mostKeys + 1)
                }
                if found.count == start { found.append(Self.none) }
                parts.append(start..<found.count)
                // Each choice makes at least one tuple.
                guard found.count <= IndexDefinition.mostKeys else { return false }
            }
            choices.append(found)
            ranges.append(parts)
        }
        // The number of tuples of each choice, computed from the innermost stars outwards.
        var weights = choices.map { [Int](repeating: 1, count: $0.count) }, whole = 1
        for (i, star) in stars.enumerated().reversed() {
            for (k, range) in ranges[i].enumerated() {
                let sum = weights[i][range].reduce(0) { min($0 + $1, IndexDefinition.mostKeys + 1) }
                if let parent = star.parent {
                    weights[parent][k] = min(weights[parent][k] * sum, IndexDefinition.mostKeys + 1)
                } else {
                    whole = min(whole * sum, IndexDefinition.mostKeys + 1)
                }
            }
        }
        count = whole
        return whole <= IndexDefinition.mostKeys
    }

    /// Returns whether the keys fit the limit for a value of that size. O(bytes of the keys), up to the limit.
    /// - Parameters:
    ///   - size: the bytes of the value.
    ///   - idSize: the bytes of its id.
    private func isWithinRoom(_ size: Int, _ idSize: Int) -> Bool {
        var left = IndexDefinition.room(size, idSize), key: [UInt8] = []
        // Keys are counted one by one only if the upper bound exceeds the limit.
        if count * (longestKey + idSize + IndexDefinition.keyOverhead) <= left { return true }
        struct Full: Error {}
        do {
            _ = try forEach { parts in
                key.removeAll(keepingCapacity: true)
                IndexKey.append(key: parts, folds: definition.folds, to: &key)
                left -= key.count + idSize + IndexDefinition.keyOverhead
                if left < 0 { throw Full() }
            }
        } catch { return false }
        return true
    }

    /// An upper bound for the length of a key.
    private var longestKey: Int {
        guard !definition.folds else { return IndexKey.limit }
        var longest = 1
        for part in definition.stars.parts {
            var most = 1
            for node in part.star.map({ choices[$0] }) ?? [0] where node != Self.none {
                switch Self.part(tree.find(part.path, from: node), tree) {
                // Each byte may be escaped as two.
                case .string(let text): most = max(most, 2 * min(text.count, IndexKey.limit) + 2)
                case .number(let lexeme): most = max(most, lexeme.count + 8)
                default: break
                }
            }
            longest += most
        }
        return min(longest, IndexKey.limit)
    }

    /// Returns whether there was a tuple.
    private func forEach(_ body: ([IndexPart]) throws -> Void) throws -> Bool {
        let stars = definition.stars.stars
        // For each part its value for each choice of its star.
        let found = definition.stars.parts.map { part in
            (part.star.map { choices[$0] } ?? [0]).map { $0 == Self.none ? .missing : Self.part(tree.find(part.path, from: $0), tree) }
        }
        var chosen = [Int](repeating: 0, count: stars.count), tuple = [IndexPart](repeating: .missing, count: found.count)
        func range(_ i: Int) -> Range<Int> { ranges[i][stars[i].parent.map { chosen[$0] } ?? 0] }
        func reset(from i: Int) { for k in i..<stars.count { chosen[k] = range(k).lowerBound } }
        reset(from: 0)
        var hasAny = false
        while true {
            for (i, part) in definition.stars.parts.enumerated() { tuple[i] = found[i][part.star.map { chosen[$0] } ?? 0] }
            if !tuple[0].isMissing {
                hasAny = true
                try body(tuple)
            }
            var last = stars.count - 1
            while last >= 0, chosen[last] + 1 >= range(last).upperBound { last -= 1 }
            guard last >= 0 else { return hasAny }
            chosen[last] += 1
            reset(from: last + 1)
        }
    }

    private static func part(_ node: UInt32?, _ tree: JSONTree) -> IndexPart {
        guard let node else { return .missing }
        return switch tree.kind(node) {
        case .null: .null
        case .bool: .bool(tree.bool(node))
        case .number: .number(tree.text(node))
        case .string: .string(tree.text(node))
        default: .missing
        }
    }
}
