import LLVS

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ModelCollection {
    /// Selects the objects with these members, by their names in JSON, with an index of the store's rules.
    ///
    ///     try people.matching(["last": "Smith"]).ordered(by: "first").all()
    ///     try people.matching(["tags": "friend"]).count()            // of a list or set: one element
    ///
    /// Reads at the version that is current now.
    public func matching(_ members: [String: JSONValue]) -> ModelSelection<Model> {
        ModelSelection(
            coordinator: coordinator, rules: rules, version: coordinator.currentVersion, equal: members, order: [], isReversed: false)
    }

    /// Selects all objects in an index on these members, in its order or the reverse. As `matching`.
    public func ordered(by names: String..., reversed: Bool = false) -> ModelSelection<Model> {
        ModelSelection(
            coordinator: coordinator, rules: rules, version: coordinator.currentVersion, equal: [:], order: names, isReversed: reversed)
    }
}

/// Some objects of a collection, at one version: `ModelCollection.matching` and `ordered` make it. Safe from all threads.
///
/// A selection needs an index whose first parts are the given members, and whose next parts are those to order by. If the store's rules
/// define none, its calls throw `.notFound`; they never search by reading all values. Strings are compared as in the index: with `"text":
/// "fold"` without case and diacritics. An object that lacks the first part of an index is not found.
public struct ModelSelection<Model: StorableModel>: Sendable {
    let coordinator: StoreCoordinator
    let rules: StoreRules
    /// The version: the current one when this was made, or that of `at`.
    public let version: VersionID
    let equal: [String: JSONValue]
    let order: [String]
    let isReversed: Bool

    /// Returns the same selection at another version.
    public func at(_ version: VersionID) -> ModelSelection {
        ModelSelection(coordinator: coordinator, rules: rules, version: version, equal: equal, order: order, isReversed: isReversed)
    }

    /// Returns the same selection in the order of these members, or the reverse.
    public func ordered(by names: String..., reversed: Bool = false) -> ModelSelection {
        ModelSelection(coordinator: coordinator, rules: rules, version: version, equal: equal, order: names, isReversed: reversed)
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
        for place in [version, coordinator.currentVersion] {
            let best = try declared(at: place).filter(serves).min {
                ($0.folds ? 1 : 0, $0.on.count, $0.name) < ($1.folds ? 1 : 0, $1.on.count, $1.name)
            }
            if let best { return (try coordinator.index(named: best.name), best) }
        }
        let wanted = (equal.keys.sorted() + order).map(pointer).joined(separator: ", ")
        throw StoreError(
            .notFound,
            "No index of the values under \"\(Model.idPrefix)\" begins with \(wanted). Declare one under \"indexes\" in the rules of the "
                + "store.")
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

    private func serves(_ index: Declared) -> Bool {
        let names = index.on.prefix(equal.count).map(name), next = index.on.dropFirst(equal.count).prefix(order.count)
        return Set(names.compactMap { $0 }) == Set(equal.keys) && names.count == equal.count && Array(next) == order.map(pointer)
    }

    /// Returns the given member to which a pointer leads, or to whose elements it leads.
    private func name(_ pointer: String) -> String? {
        equal.keys.first { pointer == self.pointer($0) || pointer == self.pointer($0) + "/*" }
    }

    private func pointer(_ name: String) -> String {
        let segment = JSONText.segment(name)
        return "/" + (segment == "*" || segment == "**" ? segment.reduce(into: "") { $0 += $1 == "*" ? "~2" : String($1) } : segment)
    }

    // MARK: Asking

    private func question(_ declared: Declared) throws -> IndexQuestion {
        let parts = declared.on.prefix(equal.count).compactMap { name($0).flatMap { equal[$0] } }
        var question = IndexQuestion()
        if !parts.isEmpty { question.equal = try ModelEncoder.node(of: parts).bytes }
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
