/// Merges inside values by rules: the given ones, or those that a store holds under `__llvs_schema`.
///
/// Values without rules, and all values in a store without rules, are decided like `mostRecentChange`.
public struct RulesArbiter: MergeArbiter {
    /// Rules to use instead of the store's.
    package let given: MergeSchema?
    /// Merges values without rules, and places that rules leave to it.
    let merger: (any ValueMerger)?

    /// - Parameters:
    ///   - rules: the rules to merge by, whatever the store holds; nil for the store's.
    ///   - merger: merges values without rules, and places that rules leave to it (`"pick":"arbiter"`); nil for none.
    public init(_ rules: MergeSchema? = nil, merger: (any ValueMerger)? = nil) {
        given = rules
        self.merger = merger
    }

    /// Decides what a host's arbiter leaves to this one. Conflicts are not recorded then.
    public func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
        let first = try store.requireOrdinal(merge.first.id), second = try store.requireOrdinal(merge.second.id)
        let bases = try merge.bases.map { try store.requireOrdinal($0.id) }
        let whole = try BuiltInArbiter.mostRecentChange.resolve(merge, in: store)
        guard var rules = try RulesMerge(first, second, bases, self, in: store, .none) else { return whole }
        let inside = try merge.forks.compactMap { id, fork -> Value.Change? in
            guard fork.kind != .twiceRemoved else { return nil }
            return try id.bytes.withUnsafeBytes { key -> Value.Change? in
                guard rules.covers(key) else { return nil }
                let (p, q) = (try store.maps.entry(key, at: first), try store.maps.entry(key, at: second))
                switch try rules.decide(Difference(key: key, before: p, after: q)) {
                case .a: return fork.first.map { .preserve($0) } ?? .remove(id)
                case .b: return fork.second.map { .preserve($0) } ?? .remove(id)
                case .absent: return .remove(id)
                case .computed(let bytes, _): return .update(id, data: bytes)
                }
            }
        }
        let decided = Set(inside.map(\.id))
        return whole.filter { !decided.contains($0.id) } + inside
    }
}
