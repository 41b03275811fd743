/// Versions whose ancestry, preserved references or blobs are not completely here. They are in no history,
/// head, merge or exchange, and appear by themselves once complete.
struct PendingVersions {
    struct Record {
        var place: RecordPlace
        /// Without metadata, of which there may be much.
        var header: RecordHeader
        var branch: BranchName?
        init(place: RecordPlace, header: RecordHeader) {
            self.place = place
            self.header = header
            branch = header.metadata.branchName
            self.header.metadata = Metadata()
        }
    }
    private(set) var records: [VersionID: Record] = [:]
    private var waiting: [VersionID: [VersionID]] = [:]
    /// Those that wait for a blob: looked at again when some may have come.
    private(set) var waitingForBlobs: Set<VersionID> = []
    /// What the storage told before they were looked at last, and from when on they are looked at all the same.
    private var blobMark: BlobMark?
    private var nextLook = -Double.infinity
    /// The rows of the history below this were looked at: they are stored or given up, and nothing waits for them.
    private var settledRows = 0
    /// Further records of versions that wait, the same by meaning, whose large values lie elsewhere: somebody made the
    /// version again when those of the first record were lost. One that is whole is enough.
    private var alternatives: [VersionID: [Record]] = [:]
    /// Those that were taken to be tried again, and are neither in the history nor waiting anew yet. Whoever looks for versions
    /// meanwhile tries them as well, instead of missing them.
    private var tried: [VersionID: Record] = [:]

    var count: Int { records.count }
    /// Nothing waits, and nothing is being tried.
    var isEmpty: Bool { records.isEmpty && tried.isEmpty }

    mutating func add(_ record: Record, missing: VersionID?) {
        let id = record.header.id
        records[id] = record
        tried[id] = nil
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
        tried[id] = nil
    }

    /// Those that waited for `id` and shall be tried again.
    mutating func take(waitingFor id: VersionID) -> [Record] {
        guard let ids = waiting.removeValue(forKey: id) else { return [] }
        let taken = ids.compactMap { records.removeValue(forKey: $0) }
        for record in taken { tried[record.header.id] = record }
        return taken
    }

    /// Those that waited for versions which are here by now, and shall be tried again, also if another thread is about to; and whether
    /// others wait for one that is being stored.
    /// O(rows that were not settled the last time).
    mutating func takeReady(in history: History) -> (ready: [Record], isStoring: Bool) {
        var ready = Array(tried.values), isStoring = false, areSettled = true
        for i in settledRows..<max(settledRows, history.rows.count) {
            let ordinal = UInt32(truncatingIfNeeded: i)
            switch history.rows[i].state {
            case .live: ready += take(waitingFor: history.id(ordinal))
            case .hidden: isStoring = isStoring || waiting[history.id(ordinal)] != nil
            case .staged, .dead, .virtual: break
            }
            areSettled = areSettled && history.rows[i].isSettled
            if areSettled { settledRows = i + 1 }
        }
        return (ready, isStoring)
    }

    /// How many rows the next `takeReady` goes over, for tests.
    func unsettledRows(in history: History) -> Int { history.rows.count - settledRows }

    /// A look for blobs failed: the next is due at once.
    mutating func lookAgain() { (blobMark, nextLook) = (nil, -Double.infinity) }

    /// A look at so many for their blobs costs nothing to speak of.
    private static let few = 64

    /// Those that wait for blobs, when some may have come. Where the storage cannot tell, many are looked at so often only that
    /// most of the time is left for other things.
    /// - Parameter mark: what the storage told just now.
    mutating func takeWaitingForBlobs(_ mark: BlobMark?) -> [Record] {
        if let mark, mark == blobMark { return [] }
        if mark == nil, waitingForBlobs.count > PendingVersions.few, Clock.steady() < nextLook { return [] }
        blobMark = mark
        defer { waitingForBlobs = [] }
        return waitingForBlobs.compactMap { records.removeValue(forKey: $0) }
    }
    /// They were looked at, which took so many seconds.
    mutating func lookedForBlobs(_ seconds: Double) { nextLook = Clock.steady() + 10 * seconds }
}
