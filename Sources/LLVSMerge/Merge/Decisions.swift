/// An arbiter's decisions so far: the last change for each id.
package struct Decisions {
    /// In the order in which the ids were first decided.
    package private(set) var changes: [Value.Change] = []
    /// The index in `changes` for each id.
    private var places: [ValueID: Int] = [:]
    /// Creates an empty collection.
    package init() {}

    /// Adds changes, which replace earlier ones of the same ids.
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

    /// Returns these decisions, and the other arbiter's for all other ids.
    package func completed(by other: any MergeArbiter, _ merge: Merge, in store: Store) throws -> [Value.Change] {
        changes + (try other.resolve(merge, in: store)).filter { places[$0.id] == nil }
    }

    /// Returns the answer for the one value that a value merger was asked about.
    /// - Parameter passes: whether no change is an answer, too: `.pass`.
    /// - Throws: `.unresolvedConflict` unless there is exactly one change, of this id; `.invalidReference` for a change without bytes of
    ///   its own.
    package func answer(for id: ValueID, passes: Bool) throws -> ValueAnswer {
        if passes, changes.isEmpty { return .pass }
        guard changes.count == 1, let change = changes.first, change.id == id else {
            throw StoreError(
                .unresolvedConflict,
                "The value merger returned \(changes.count) changes for \"\(id)\". Return one change of this id, or LLVS_PASS "
                    + "and none.", valueID: id)
        }
        switch change {
        case .insert(_, let data), .update(_, let data): return .value(data)
        case .remove: return .value(nil)
        case .preserve, .preserveRemoval:
            throw StoreError(
                .invalidReference, "The value merger returned a preserve for \"\(id)\". Return bytes, or a removal.", valueID: id)
        }
    }
}
