/// The changes that orders name, and what that means for what is sent: docs/format.md, "Exchanging hollow changes".
extension Orders {
    /// Returns the indexes of the changes whose bytes are erased here, by version.
    func erased() throws -> [VersionID: [Int]] { try named().erased }
    /// Returns the indexes of the changes whose bytes are erased here and at places, since the policy lets the orders count for others.
    package func erasedAtPlaces() throws -> [VersionID: [Int]] { try named().erasedAtPlaces }
    /// Returns the ids of the values of a version whose bytes are erased here and at places.
    package func idsErasedAtPlaces(of id: VersionID) throws -> Set<ValueID> {
        guard let indexes = try erasedAtPlaces()[id], let place = store.recordPlaces(of: id).first else { return [] }
        let wanted = Set(indexes)
        var ids: Set<ValueID> = [], i = -1
        try store.records.forEachChange(place) { entry, _ in
            i += 1
            if wanted.contains(i), !entry.id.starts(with: EraseOrder.reserved) { ids.insert(ValueID(unchecked: entry.id)) }
        }
        return ids
    }
    /// Returns the SHA-256 of the names of these orders, which differs once there are others; nil if there are none.
    package func mark() throws -> [UInt8]? { try named().mark }

    /// Returns the SHA-256 of the names of all orders that count for others: a snapshot of this store has no bytes that these name. Nil if
    /// there are none.
    package func markOfSnapshots() throws -> [UInt8]? { try named().markOfAll }

    // MARK: Sending

    /// Returns the indexes of the changes of a version whose bytes may be here, and are sent to nobody: orders that count here, and are not
    /// followed, name them.
    package func withheld(of id: VersionID) throws -> Set<Int> { Set(try named().withheld[id] ?? []) }
    /// Whether there are such changes.
    package var isWithholding: Bool { get throws { try !named().withheld.isEmpty } }
    /// Returns whether a version has changes that are sent without bytes, and whose bytes stay at places.
    package func hasForgotten(_ id: VersionID) throws -> Bool {
        let count = try store.hollowCount(of: id)
        guard count > 0 else { return false }
        let erased = Set(try erasedAtPlaces()[id] ?? [])
        var i = -1, hollow = 0
        try store.records.forEachChange(store.place(of: try store.requireOrdinal(id))) { entry, _ in
            i += 1
            if entry.isHollow, erased.contains(i) { hollow += 1 }
        }
        return hollow < count
    }
    /// Calls with the size and the SHA-256 of each value that has no bytes here, and is to have none at places.
    package func forEachErased(_ body: (_ size: Int, _ sha256: [UInt8]) throws -> Void) throws {
        for (id, indexes) in try erasedAtPlaces() {
            guard let place = store.recordPlaces(of: id).first else { continue }
            let wanted = Set(indexes)
            var i = -1
            try store.records.forEachChange(place) { entry, _ in
                i += 1
                if wanted.contains(i), entry.isHollow, let digest = entry.digest { try body(entry.size, Array(digest)) }
            }
        }
    }
}
