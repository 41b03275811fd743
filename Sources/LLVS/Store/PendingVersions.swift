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

    var count: Int { records.count }

    mutating func add(_ record: Record, missing: VersionID?) {
        let id = record.header.id
        records[id] = record
        if let missing { waiting[missing, default: []].append(id) } else { waitingForBlobs.insert(id) }
    }

    /// Those that waited for `id` and shall be tried again.
    mutating func take(waitingFor id: VersionID) -> [Record] {
        guard let ids = waiting.removeValue(forKey: id) else { return [] }
        return ids.compactMap { records.removeValue(forKey: $0) }
    }

    mutating func takeWaitingForBlobs() -> [Record] {
        defer { waitingForBlobs = [] }
        return waitingForBlobs.compactMap { records.removeValue(forKey: $0) }
    }
}
