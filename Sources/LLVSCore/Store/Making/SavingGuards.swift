/// Refuses versions before they are made, for an exchange with a place where other implementations would fail on them. Implemented by a
/// higher layer.
package protocol SavingGuard: AnyObject, Sendable {
    /// Returns why no value may be stored under an id that is new to the version; nil if it may.
    func refusal(of id: UnsafeRawBufferPointer) -> StoreError?
    /// Returns why a version may not have the metadata; nil if it may.
    func refusal(of metadata: Metadata) -> StoreError?
}

/// The guards of a store. They are not retained.
package final class SavingGuards: Sendable {
    private struct Entry { weak var one: (any SavingGuard)? }
    private let entries = Guarded<[Entry]>([])

    package func add(_ one: any SavingGuard) {
        entries.withLock { entries in
            entries.removeAll { $0.one == nil }
            entries.append(Entry(one: one))
        }
    }
    package func remove(_ one: any SavingGuard) { entries.withLock { $0.removeAll { $0.one == nil || $0.one === one } } }
    private var all: [any SavingGuard] { entries.withLock { $0.compactMap(\.one) } }

    /// - Throws: the first refusal.
    package func check(_ metadata: Metadata) throws {
        if metadata.entries.isEmpty { return }
        for one in all { if let refusal = one.refusal(of: metadata) { throw refusal } }
    }

    /// - Parameter isKnown: returns whether there is a value under the id already. Then it may be changed.
    /// - Throws: the first refusal.
    func check(_ changes: BorrowedChanges, isKnown: (UnsafeRawBufferPointer) throws -> Bool) throws {
        let guards = all
        if guards.isEmpty { return }
        try changes.forEach(changes.indices) { _, change in
            guard change.kind == .insert || change.kind == .update else { return }
            for one in guards {
                if let refusal = one.refusal(of: change.id), try !isKnown(change.id) { throw refusal }
            }
        }
    }
}
