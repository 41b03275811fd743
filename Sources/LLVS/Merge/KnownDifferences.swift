/// Heads that were compared with the version that a coordinator is at, and one id of each in which the two differ: a save that does not
/// change it leaves them different.
struct KnownDifferences {
    private(set) var version: VersionID?
    private(set) var heads: [VersionID: ValueID] = [:]
    /// Heads that would take too long to compare. They are left to the next merge.
    private(set) var passedOver: Set<VersionID> = []

    /// Forgets what is known of another version than this.
    mutating func begin(at version: VersionID) {
        if self.version != version { heads = [:] }
        self.version = version
    }
    mutating func passOver(_ head: VersionID) { passedOver.insert(head) }
    /// Keeps in mind those that were asked about last.
    mutating func keep(_ known: [VersionID: ValueID]) { heads = known }

    /// The version was saved on the one that is known of.
    mutating func go(to version: VersionID, changed: borrowing BorrowedChanges, _ others: [ValueSource]) {
        self.version = version
        if !heads.isEmpty { forget(Set(changed.map { ValueID(unchecked: $0.id) }).union(others.map(\.id))) }
    }

    private mutating func forget(_ changed: Set<ValueID>) { heads = heads.filter { !changed.contains($0.value) } }
}
