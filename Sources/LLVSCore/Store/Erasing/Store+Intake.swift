/// What comes in from others, where bytes are gone: docs/format.md, "Exchanging hollow changes".
extension Store {
    // MARK: Orders

    /// Returns the indexes of the changes whose bytes are erased here, by version.
    func erasedChanges() throws -> [VersionID: [Int]] { try namedChanges().erased }
    /// Returns the indexes of the changes whose bytes are erased here and at places, since the policy lets the orders count for others.
    package func changesErasedAtPlaces() throws -> [VersionID: [Int]] { try namedChanges().erasedAtPlaces }
    /// Returns the ids of the values of a version whose bytes are erased here and at places.
    package func idsErasedAtPlaces(of id: VersionID) throws -> Set<ValueID> {
        guard let indexes = try changesErasedAtPlaces()[id], let place = recordPlaces(of: id).first else { return [] }
        let wanted = Set(indexes)
        var ids: Set<ValueID> = [], i = -1
        try records.forEachChange(place) { entry, _ in
            i += 1
            if wanted.contains(i), !entry.id.starts(with: EraseOrder.reserved) { ids.insert(ValueID(unchecked: entry.id)) }
        }
        return ids
    }
    /// Returns the SHA-256 of the names of these orders, which differs once there are others; nil if there are none.
    package func erasureMark() throws -> [UInt8]? { try namedChanges().mark }

    /// Returns those values of an added version that its record names: they belong to the version. The files of the others, which an order
    /// of this device names, are removed.
    package func valuesKept(of received: ReceivedVersion) -> [WrittenValue] {
        let values = received.written.values.filter { !$0.isHollow }
        guard !values.isEmpty, (try? erasedChanges())?[received.version.id] != nil,
            let place = recordPlaces(of: received.version.id).first, let blobs = try? Set(records.header(place).blobs)
        else { return values }
        return values.filter { blobs.contains($0.blob) }
    }

    // MARK: Sending

    /// Returns the indexes of the changes of a version whose bytes may be here, and are sent to nobody: orders that count here, and are not
    /// followed, name them.
    package func withheldChanges(of id: VersionID) throws -> Set<Int> { Set(try namedChanges().withheld[id] ?? []) }
    /// Whether there are such changes.
    package var isWithholding: Bool { get throws { try !namedChanges().withheld.isEmpty } }
    /// Returns whether a version has changes that are sent without bytes, and whose bytes stay at places.
    package func hasForgotten(_ id: VersionID) throws -> Bool {
        let count = try hollowCount(of: id)
        guard count > 0 else { return false }
        let erased = Set(try changesErasedAtPlaces()[id] ?? [])
        var i = -1, hollow = 0
        try records.forEachChange(place(of: try requireOrdinal(id))) { entry, _ in
            i += 1
            if entry.isHollow, erased.contains(i) { hollow += 1 }
        }
        return hollow < count
    }
    /// Calls with the size and the SHA-256 of each value that has no bytes here, and is to have none at places.
    package func forEachErased(_ body: (_ size: Int, _ sha256: [UInt8]) throws -> Void) throws {
        for (id, indexes) in try changesErasedAtPlaces() {
            guard let place = recordPlaces(of: id).first else { continue }
            let wanted = Set(indexes)
            var i = -1
            try records.forEachChange(place) { entry, _ in
                i += 1
                if wanted.contains(i), entry.isHollow, let digest = entry.digest { try body(entry.size, Array(digest)) }
            }
        }
    }

    // MARK: Versions that came without bytes

    /// The cache with the ids of versions that came without bytes, one a line. If it is lost, only their bytes do not come later.
    private static let lackingName = "hollow"
    private static let mostLacking = 65_536

    /// Returns the versions that came from others without bytes of values, except those that orders of this device name.
    package func lackingBytes() throws -> Set<VersionID> {
        if let known = lock.withRead({ lacking }) { return known }
        var found: Set<VersionID> = []
        for line in (try !storage.hasCache(Store.lackingName) ? [] : storage.cacheGet(Store.lackingName) ?? []).split(
            separator: UInt8(ascii: "\n")
        ).prefix(Store.mostLacking) {
            if let id = Array(line).withUnsafeBytes({ try? VersionID(ascii: $0) }) { found.insert(id) }
        }
        return lock.withWrite {
            lacking = lacking ?? found
            return lacking ?? found
        }
    }

    /// Returns whether values without bytes are known: orders of this device, or versions that came so.
    package func mayHaveHollow() throws -> Bool { try !erasedChanges().isEmpty || !lackingBytes().isEmpty }

    /// Notes versions that were added without bytes of values.
    func noteLacking(_ added: some Sequence<ReceivedVersion>) {
        let new = added.filter { $0.written.values.contains(where: \.isHollow) }.map(\.version.id)
        guard !new.isEmpty else { return }
        changeLacking { $0.formUnion(new.prefix(max(0, Store.mostLacking - $0.count))) }
    }
    func noteFilled(_ id: VersionID) { changeLacking { $0.remove(id) } }

    private func changeLacking(_ change: (inout Set<VersionID>) -> Void) {
        do {
            lock.withWrite { lacking = nil }
            var now = try lackingBytes()
            change(&now)
            try storage.cachePut(Store.lackingName, Array(now.sorted().map { "\($0)\n" }.joined().utf8))
            lock.withWrite { lacking = now }
        } catch { Log.write(.info, "The versions of \(description) without bytes were not noted: \(error)") }
    }
}
