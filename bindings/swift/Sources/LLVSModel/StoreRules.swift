import LLVS
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A rule of a model that contradicts the store's; the store's rule wins.
public struct ModelContradiction: Sendable, Equatable, CustomStringConvertible {
    /// The prefix of the model's ids.
    public let prefix: String
    /// The place of the rule; "" is the value as a whole.
    public let pattern: String
    /// The model's rule, as JSON text.
    public let model: String
    /// The store's rule, which wins.
    public let store: String
    /// A sentence without its full stop.
    public var description: String {
        "the rule for \"\(prefix)\" at \"\(pattern)\" is \(store) in the store and \(model) in the model; the store's stands"
    }

    /// Members for which the store has a kind and the model has none, because an earlier model had that kind.
    static func takenBack(_ plain: Set<String>, _ prefix: String, in rules: [UInt8]) -> [ModelContradiction] {
        guard !plain.isEmpty, case .object(let all)? = try? ModelCoding.decoder().decode(JSONValue.self, from: Data(rules)),
            case .object(let ids)? = all["ids"], case .object(let patterns)? = ids[prefix]
        else { return [] }
        return plain.sorted().compactMap { place in
            guard let rule = patterns[place] else { return nil }
            var kind = rule
            if case .object(let members) = rule { kind = members["as"] ?? "auto" }
            return kind == "auto" ? nil : ModelContradiction(prefix: prefix, pattern: place, model: "\"auto\"", store: short(rule))
        }
    }

    private init(prefix: String, pattern: String, model: String, store: String) {
        (self.prefix, self.pattern, self.model, self.store) = (prefix, pattern, model, store)
    }

    private static func short(_ rule: JSONValue) -> String {
        guard case .object(let members) = rule, members.keys.allSatisfy({ $0 == "as" }) else { return JSONText.value(rule) }
        return JSONText.value(members["as"] ?? "auto")
    }

    /// Returns nil if both are the same rule in two notations.
    init?(_ record: ConflictRecord) {
        let decoder = ModelCoding.decoder()
        let path = (try? decoder.decode([JSONValue].self, from: Data(record.path))) ?? []
        // "ids", the prefix, and a pattern.
        let names = path.compactMap { if case .string(let name) = $0 { name } else { nil } }
        func short(_ rule: [UInt8]?) -> String {
            guard let rule, let value = try? decoder.decode(JSONValue.self, from: Data(rule)) else { return "absent" }
            return Self.short(value)
        }
        (prefix, pattern) = (names.count > 1 ? names[1] : "", names.count > 2 ? names[2] : "")
        (model, store) = (short(record.older), short(record.newer))
        if model == store { return nil }
    }
}

/// The rules of a model together with those of the store; compared again when the store's change.
final class StoreRules: Sendable {
    /// The result of comparing.
    struct Compared: Sendable {
        /// The version that stored the rules of the store; nil if there are none.
        var stored: VersionID?
        /// The rules with which values of the model are merged.
        var merging: MergeSchema
        /// Whether the model has rules that are not in the store.
        var isChanged: Bool
        var contradictions: [ModelContradiction]
        /// The reason why the rules of the store are invalid; nil if they are valid.
        var problem: String?
    }

    let own: [UInt8]
    private let prefix: String
    private let plain: Set<String>
    private let last = Mutex<Compared?>(nil)
    private let reading = Mutex<Compared?>(nil)

    init<Model: StorableModel>(of model: Model.Type) throws {
        own = try Model.checkedRules
        (prefix, plain) = (Model.idPrefix, Model.plainPlaces)
    }

    /// The result of the last comparison.
    var known: Compared? { last.withLock { $0 } }

    /// The comparison at a version.
    func at(_ version: VersionID, in store: Store) throws -> Compared { try at(version, in: store, last) }

    /// The rules for reading values at a version, which may be an old one.
    func forReading(at version: VersionID, in store: Store) throws -> MergeSchema { try at(version, in: store, reading).merging }

    private func at(_ version: VersionID, in store: Store, _ last: borrowing Mutex<Compared?>) throws -> Compared {
        let stored = try store.reference(ValueID(MergeSchema.valueID), at: version)?.version
        if let known = last.withLock({ $0 }), known.stored == stored { return known }
        let compared: Compared
        do {
            let found = try store.schema(at: version, adding: own)
            compared = Compared(
                stored: stored, merging: try merging(found.rules ?? own), isChanged: found.isChanged,
                contradictions: found.contradictions.compactMap { ModelContradiction($0) }
                    + ModelContradiction.takenBack(plain, prefix, in: found.rules ?? own),
                problem: found.problem.map {
                    "the rules of the store are not valid at \"\($0.pointer)\", so the newest valid ones count: \($0.reason)"
                })
        } catch let error as StoreError where error.code == .unsupported {
            // The store's rules are from a newer library, and stay unchanged.
            compared = Compared(
                stored: stored, merging: try merging(own), isChanged: false, contradictions: [],
                problem: "the rules of the store cannot be followed, and stay as they are: \(error.message)")
        }
        last.withLock { $0 = compared }
        return compared
    }

    private func merging(_ rules: [UInt8]) throws -> MergeSchema {
        do { return try rules.withUnsafeBytes { try MergeSchema($0) } } catch let problem as InvalidRules { throw problem.storeError }
    }
}
