import LLVS

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ModelCollection {
    /// Selects the objects with these members, by their names in JSON, with an index of the store's rules.
    ///
    ///     try people.filter(where: ["last": "Smith"]).ordered(by: "first").all()
    ///     try people.filter(where: ["tags": "friend"]).count()            // of a list or set: one element
    ///
    /// Reads at the version that is current now.
    public func filter(where members: [String: JSONValue]) -> ModelSelection<Model> {
        var selection = ModelSelection<Model>(coordinator: coordinator, rules: rules, version: coordinator.currentVersion)
        for (name, value) in members { selection.equal["/" + JSONText.segment(name)] = value }
        return selection
    }

    /// Selects the objects that meet conditions, with an index of the store's rules or of the model (`StorableModel.indexes`).
    ///
    ///     try people.filter(where: \.last == "Smith").ordered(by: \.first).all()
    ///     try people.filter(where: \.town == "Ulm", \.visits >= 10).count()
    ///     try people.filter(where: .contains(\.tags, "friend")).ids()
    ///
    /// Members that equal a value come first in the index, and one with bounds or a beginning after them. A member that is missing meets no
    /// condition. Reads at the version that is current now.
    public func filter(where first: ModelCondition<Model>, _ more: ModelCondition<Model>...) -> ModelSelection<Model> {
        var selection = ModelSelection<Model>(coordinator: coordinator, rules: rules, version: coordinator.currentVersion)
        for condition in [first] + more { selection.add(condition) }
        return selection
    }

    /// Selects all objects in an index on these members, by their names in JSON, in its order or the reverse. As `filter(where:)`.
    public func ordered(by first: String, _ more: String..., reversed: Bool = false) -> ModelSelection<Model> {
        ModelSelection<Model>(coordinator: coordinator, rules: rules, version: coordinator.currentVersion)
            .ordered(byPointers: ([first] + more).map { "/" + JSONText.segment($0) }, reversed)
    }

    /// Selects all objects in an index on these members, in its order or the reverse: `people.ordered(by: \.last, \.first)`.
    public func ordered(by first: PartialKeyPath<Model>, _ more: PartialKeyPath<Model>..., reversed: Bool = false) -> ModelSelection<Model>
    {
        ModelSelection<Model>(coordinator: coordinator, rules: rules, version: coordinator.currentVersion)
            .ordered(by: [first] + more, reversed)
    }
}

/// Some objects of a collection, at one version: `ModelCollection.filter(where:)` and `ordered` make it. Safe from all threads.
///
/// A selection needs an index whose first parts are the given members, and whose next parts are those to order by. If the store's rules
/// define none, its calls throw `.notFound`; they never search by reading all values. Strings are compared as in the index: with `"text":
/// "fold"` without case and diacritics. An object that lacks the first part of an index is not found.
public struct ModelSelection<Model: StorableModel>: Sendable {
    let coordinator: StoreCoordinator
    let rules: StoreRules
    /// The version: the current one when this was made, or that of `at`.
    public let version: VersionID
    /// By JSON pointer.
    var equal: [String: JSONValue] = [:]
    var order: [String] = []
    var isReversed = false
    /// The member with bounds, or a beginning.
    var bound: Bound?
    /// Why the conditions cannot be asked; nil if they can.
    var problem: String?

    struct Bound: Sendable {
        var pointer: String
        var low: JSONValue?, high: JSONValue?, lowIsOpen = false, highIsOpen = false
        var beginning: String?
    }

    init(coordinator: StoreCoordinator, rules: StoreRules, version: VersionID) {
        (self.coordinator, self.rules, self.version) = (coordinator, rules, version)
    }
    private init(_ other: ModelSelection, at version: VersionID) {
        self.init(coordinator: other.coordinator, rules: other.rules, version: version)
        (equal, order, isReversed, bound, problem) = (other.equal, other.order, other.isReversed, other.bound, other.problem)
    }

    /// Returns the same selection at another version.
    public func at(_ version: VersionID) -> ModelSelection { ModelSelection(self, at: version) }

    /// Returns the same selection in the order of these members, by their names in JSON, or the reverse.
    public func ordered(by first: String, _ more: String..., reversed: Bool = false) -> ModelSelection {
        ordered(byPointers: ([first] + more).map { "/" + JSONText.segment($0) }, reversed)
    }
    /// Returns the same selection in the order of these members, or the reverse.
    public func ordered(by first: PartialKeyPath<Model>, _ more: PartialKeyPath<Model>..., reversed: Bool = false) -> ModelSelection {
        ordered(by: [first] + more, reversed)
    }

    func ordered(by paths: [PartialKeyPath<Model>], _ isReversed: Bool) -> ModelSelection {
        var selection = ordered(byPointers: paths.map { Model.pointer($0) ?? "" }, isReversed)
        if let path = paths.first(where: { Model.pointer($0) == nil }) { selection.problem = Model.problem(path) }
        return selection
    }
    func ordered(byPointers pointers: [String], _ isReversed: Bool) -> ModelSelection {
        var selection = self
        selection.order = pointers
        selection.isReversed = isReversed
        return selection
    }

    mutating func add(_ condition: ModelCondition<Model>) {
        guard let pointer = condition.pointer else { return problem = "a condition is not on a stored member of \(Model.self)" }
        let value: JSONValue
        switch condition.value {
        case .success(let encoded): value = encoded
        case .failure(let error): return problem = "the value of a condition cannot be written: \(error)"
        }
        if condition.relation == .equal {
            if let other = equal.updateValue(value, forKey: pointer), other != value {
                problem = "two conditions give \(pointer) two values"
            }
            return
        }
        var bound = self.bound ?? Bound(pointer: pointer)
        if bound.pointer != pointer { problem = "both \(bound.pointer) and \(pointer) have bounds; an index has them for one member" }
        switch condition.relation {
        case .equal: break
        case .greater, .greaterOrEqual:
            if bound.low != nil { problem = "\(pointer) has two lower bounds" }
            (bound.low, bound.lowIsOpen) = (value, condition.relation == .greater)
        case .less, .lessOrEqual:
            if bound.high != nil { problem = "\(pointer) has two upper bounds" }
            (bound.high, bound.highIsOpen) = (value, condition.relation == .less)
        case .beginning:
            if bound.beginning != nil { problem = "\(pointer) has two beginnings" }
            if case .string(let text) = value { bound.beginning = text }
        }
        if bound.beginning != nil, bound.low != nil || bound.high != nil { problem = "\(pointer) has a beginning and bounds" }
        self.bound = bound
    }

    /// Returns the ids, without the prefix.
    /// - Throws: `.notFound` if there is no such index, and what `ValueIndex.find` throws; the other functions do the same.
    public func ids() throws -> [String] {
        var found: [String] = []
        try pages { page in found += page.ids.texts.map(plain) }
        return found
    }

    /// Returns ids and objects. Throws `ModelDecodingError` at the first that cannot be read.
    public func all() throws -> [(id: String, object: Model)] {
        var found: [(id: String, object: Model)] = []
        try pages(withValues: true) { page in found += try objects(page) }
        return found
    }

    /// Returns the first object; nil if there is none. Throws `ModelDecodingError` if it cannot be read.
    public func first() throws -> (id: String, object: Model)? {
        var found: (id: String, object: Model)?
        try pages(withValues: true, limit: 1) { found = try objects($0).first }
        return found
    }

    /// Returns the number of objects.
    public func count() throws -> Int {
        let (index, declared) = try self.index()
        var question = try self.question(declared)
        question.limit = 1
        question.wantsCount = true
        return Int(clamping: try index.find(question, at: version).total ?? 0)
    }

    // MARK: The index

    private struct Declared {
        var name: String, on: [String], folds: Bool
    }

    /// Returns a suitable index: with the fewest parts, and preferably without case folding.
    private func index() throws -> (ValueIndex, Declared) {
        if let problem { throw StoreError(.invalidArgument, "A question about \(Model.self) cannot be asked: \(problem).") }
        for place in [version, coordinator.currentVersion] {
            let best = try declared(at: place).filter(serves).min {
                ($0.folds ? 1 : 0, $0.on.count, $0.name) < ($1.folds ? 1 : 0, $1.on.count, $1.name)
            }
            if let best { return (try coordinator.index(named: best.name), best) }
        }
        let wanted = (equal.keys.sorted() + wantedOrder).joined(separator: ", ")
        throw StoreError(
            .notFound,
            "No index of the values under \"\(Model.idPrefix)\" begins with \(wanted). Declare one in the static member "
                + "indexes of \(Model.self), or under \"indexes\" in the rules of the store.")
    }

    /// The indexes for the model's prefix that contain all of its objects.
    private func declared(at version: VersionID) throws -> [Declared] {
        guard let rules = try coordinator.store.schema(at: version).rules,
            case .object(let all) = try ModelCoding.decoder().decode(JSONValue.self, from: Data(rules)),
            case .object(let indexes)? = all["indexes"]
        else { return [] }
        return indexes.compactMap { name, index in
            guard case .object(let index) = index, index["prefix"] == .string(Model.idPrefix), index["where"] == nil,
                case .array(let on)? = index["on"]
            else { return nil }
            let pointers = on.compactMap { if case .string(let text) = $0 { text } else { nil } }
            return pointers.count == on.count ? Declared(name: name, on: pointers, folds: index["text"] == .string("fold")) : nil
        }
    }

    /// The members after those that must equal a value: first the one with bounds, then those of the order.
    private var wantedOrder: [String] {
        guard let bound else { return order }
        return [bound.pointer] + (order.first == bound.pointer ? Array(order.dropFirst()) : order)
    }

    private func serves(_ index: Declared) -> Bool {
        let first = index.on.prefix(equal.count).map(given), next = index.on.dropFirst(equal.count).prefix(wantedOrder.count)
        return Set(first.compactMap { $0 }) == Set(equal.keys) && first.count == equal.count && Array(next) == wantedOrder.map(escaped)
    }

    /// Returns the given member to which a pointer of an index leads, or to whose elements it leads.
    private func given(_ pointer: String) -> String? {
        equal.keys.first { pointer == escaped($0) || pointer == escaped($0) + "/*" }
    }

    /// A pointer as an index has it: there "*" alone means any.
    private func escaped(_ pointer: String) -> String {
        pointer.split(separator: "/", omittingEmptySubsequences: false).map { segment in
            segment == "*" || segment == "**" ? segment.reduce(into: "") { $0 += $1 == "*" ? "~2" : String($1) } : String(segment)
        }.joined(separator: "/")
    }

    // MARK: Asking

    private func question(_ declared: Declared) throws -> IndexQuestion {
        let parts = declared.on.prefix(equal.count).compactMap { given($0).flatMap { equal[$0] } }
        var question = IndexQuestion()
        if !parts.isEmpty { question.equal = try ModelEncoder.node(of: parts).bytes }
        if let bound {
            question.beginning = bound.beginning.map { Array($0.utf8) }
            if let one = bound.low ?? bound.high {
                // With one bound, the other is that of the type of the value.
                let (low, high) = (
                    bound.low.map { ($0, bound.lowIsOpen) } ?? one.lowest, bound.high.map { ($0, bound.highIsOpen) } ?? one.highest
                )
                question.low = try ModelEncoder.node(of: [low.0]).bytes
                question.lowIsOpen = low.1
                if let high {
                    question.high = try ModelEncoder.node(of: [high.0]).bytes
                    question.highIsOpen = high.1
                }
            }
        }
        question.isBackwards = isReversed
        question.isUnique = declared.on.contains { $0.hasSuffix("/*") || $0.contains("/*/") }
        return question
    }

    private func pages(withValues: Bool = false, limit: Int = 0, _ body: (IndexPage) throws -> Void) throws {
        let (index, declared) = try self.index()
        var question = try self.question(declared)
        question.wantsValues = withValues
        question.limit = limit
        while true {
            let page = try index.find(question, at: version)
            try body(page)
            guard !page.cursor.isEmpty, limit == 0 else { return }
            question.after = page.cursor
        }
    }

    private func objects(_ page: IndexPage) throws -> [(id: String, object: Model)] {
        guard let values = page.values else { return [] }
        let rules = try rules.forReading(at: self.version, in: coordinator.store)
        return try zip(page.ids.texts, values.rows).map { id, row in
            let stored = row.version.map { String(decoding: values.versions[values.version($0)], as: UTF8.self) }
            let valueID = try ValueID(String(decoding: id, as: UTF8.self)), version = try stored.map { try VersionID($0) }
            let object = try ModelCoding.read(Model.self, Array(values.data[row.data]), valueID, version, rules)
            return (plain(id), object)
        }
    }

    private func plain(_ id: [UInt8]) -> String { String(decoding: id.dropFirst(Model.idPrefix.utf8.count), as: UTF8.self) }
}

extension JSONValue {
    /// The lower bound of values of this type in an index, and whether it is excluded.
    fileprivate var lowest: (JSONValue, Bool) {
        switch self {
        case .int, .double: (.bool(true), true)
        case .string: (.string(""), false)
        default: (.bool(false), false)
        }
    }
    /// The upper bound; nil: there is none.
    fileprivate var highest: (JSONValue, Bool)? {
        switch self {
        case .int, .double: (.string(""), true)
        case .string, .array, .object: nil
        default: (.bool(true), false)
        }
    }
}
