/// Heads that were compared with the current version of a coordinator, and for each an id in which it differs. A save that does not
/// change this id leaves them different.
package struct KnownDifferences {
    private(set) var version: VersionID?
    private(set) var heads: [VersionID: ValueID] = [:]
    /// Heads that would take too long to compare. The next merge decides about them.
    private(set) var passedOver: Set<VersionID> = []
    package init() {}

    /// Forgets the differences from any other version.
    mutating func begin(at version: VersionID) {
        if self.version != version { heads = [:] }
        self.version = version
    }
    mutating func passOver(_ head: VersionID) { passedOver.insert(head) }
    /// Replaces the known differences with the latest.
    mutating func keep(_ known: [VersionID: ValueID]) { heads = known }

    /// Updates the differences for a version that was saved on top of the known one.
    package mutating func go(to version: VersionID, changed: borrowing BorrowedChanges, _ others: [ValueSource]) {
        self.version = version
        if !heads.isEmpty { forget(Set(changed.map { ValueID(unchecked: $0.id) }).union(others.map(\.id))) }
    }

    private mutating func forget(_ changed: Set<ValueID>) { heads = heads.filter { !changed.contains($0.value) } }
}
