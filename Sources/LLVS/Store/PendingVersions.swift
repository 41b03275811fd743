/// Versions whose ancestry, preserved references or blobs are not completely here. They are in no history,
/// head, merge or exchange, and appear by themselves once complete.
struct PendingVersions {
    struct Record {
        var place: RecordPlace
        var header: RecordHeader
    }
    private(set) var records: [VersionID: Record] = [:]
    private var waiting: [VersionID: [VersionID]] = [:]
    /// Those that wait for a blob: looked at again at each scan.
    private(set) var waitingForBlobs: Set<VersionID> = []
    /// Further records of versions that wait, the same by meaning, whose large values lie elsewhere: somebody made the
    /// version again when those of the first record were lost. One that is whole is enough.
    private var alternatives: [VersionID: [Record]] = [:]

    var count: Int { records.count }

    mutating func add(_ record: Record, missing: VersionID?) {
        let id = record.header.id
        records[id] = record
        if let missing { waiting[missing, default: []].append(id) } else { waitingForBlobs.insert(id) }
    }

    mutating func addAlternative(_ record: Record) {
        let known = alternatives[record.header.id] ?? []
        if !known.contains(where: { $0.place == record.place }) { alternatives[record.header.id] = known + [record] }
    }
    func alternatives(to id: VersionID) -> [Record] { alternatives.isEmpty ? [] : alternatives[id] ?? [] }

    /// The version is here, or shall be tried again. Its record, when it waited.
    @discardableResult
    mutating func remove(_ id: VersionID) -> Record? {
        waitingForBlobs.remove(id)
        return records.removeValue(forKey: id)
    }
    /// The version is here: nothing of it waits any more.
    mutating func forget(_ id: VersionID) {
        remove(id)
        alternatives[id] = nil
    }

    /// Those that waited for `id` and shall be tried again.
    mutating func take(waitingFor id: VersionID) -> [Record] {
        guard let ids = waiting.removeValue(forKey: id) else { return [] }
        return ids.compactMap { records.removeValue(forKey: $0) }
    }

    /// Those that waited for any of which `isHere` says that it is, and shall be tried again.
    mutating func takeWaiting(_ isHere: (VersionID) -> Bool) -> [Record] {
        waiting.keys.filter(isHere).flatMap { take(waitingFor: $0) }
    }

    /// Whether something waits for any of those.
    func isWaiting(for isMeant: (VersionID) -> Bool) -> Bool { waiting.keys.contains(where: isMeant) }

    mutating func takeWaitingForBlobs() -> [Record] {
        defer { waitingForBlobs = [] }
        return waitingForBlobs.compactMap { records.removeValue(forKey: $0) }
    }
}
