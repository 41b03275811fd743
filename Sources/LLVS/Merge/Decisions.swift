/// What an arbiter has decided so far: one change for each id, the last one that it named.
package struct Decisions {
    /// In the order in which their ids were named first.
    package private(set) var changes: [Value.Change] = []
    /// Where in `changes` each id is decided.
    private var places: [ValueID: Int] = [:]
    /// Nothing is decided yet.
    package init() {}

    /// Decides, also again, what the changes are about.
    package mutating func add(_ added: [Value.Change]) {
        for change in added {
            if let i = places[change.id] {
                changes[i] = change
            } else {
                places[change.id] = changes.count
                changes.append(change)
            }
        }
    }

    /// These, and what the other arbiter decides of everything else.
    package func completed(by other: any MergeArbiter, _ merge: Merge, in store: Store) throws -> [Value.Change] {
        changes + (try other.resolve(merge, in: store)).filter { places[$0.id] == nil }
    }

    /// What they say of one value that a value merger was asked about.
    /// - Parameter passes: whether nothing is an answer, too: as if nobody had been asked.
    /// - Throws: `.unresolvedConflict` unless they are one change of this id, `.invalidReference` for one without bytes of its own.
    package func answer(for id: ValueID, passes: Bool) throws -> ValueAnswer {
        if passes, changes.isEmpty { return .pass }
        guard changes.count == 1, let change = changes.first, change.id == id else {
            throw StoreError(
                .unresolvedConflict,
                "The value merger answered for \"\(id)\" with \(changes.count) changes. Answer with one change of this id, or LLVS_PASS "
                    + "and none.", valueID: id)
        }
        switch change {
        case .insert(_, let data), .update(_, let data): return .value(data)
        case .remove: return .value(nil)
        case .preserve, .preserveRemoval:
            throw StoreError(
                .invalidReference, "The value merger answered for \"\(id)\" with a preserve. Answer with bytes, or a removal.", valueID: id)
        }
    }
}
