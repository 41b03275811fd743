/// Versions whose ancestry, preserved references or blobs are incomplete. They are in no history, head, merge or exchange, and appear
/// once they are complete.
package struct PendingVersions {
    package struct Record {
        var place: RecordPlace
        /// The header without its metadata, which may be large.
        var header: RecordHeader
        var branch: BranchName?
        package init(place: RecordPlace, header: RecordHeader) {
            self.place = place
            self.header = header
            branch = header.metadata.branchName
            self.header.metadata = Metadata()
        }
    }
    private(set) var records: [VersionID: Record] = [:]
    private var waiting: [VersionID: [VersionID]] = [:]
    /// Versions that wait for a blob. They are checked again when blobs may have arrived.
    private(set) var waitingForBlobs: Set<VersionID> = []
    /// The storage's mark at the last check, and when to check again in any case.
    private var blobMark: BlobMark?
    private var nextLook = -Double.infinity
    /// All rows of the history below this one were checked: they are stored or given up, and no version waits for them.
    private var settledRows = 0
    /// Further records of pending versions. They have the same content and other large values: the version was made again when the large
    /// values of the first record were lost. One complete record is enough.
    private var alternatives: [VersionID: [Record]] = [:]
    /// Versions that are being tried again: they are neither in the history nor pending at this moment. A thread that looks for versions
    /// tries them as well, so that it does not miss them.
    private var tried: [VersionID: Record] = [:]

    var count: Int { records.count }
    /// Whether no version waits or is being tried.
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

    /// Updates the places of records that moved.
    mutating func move(_ places: [RecordPlace: RecordPlace]) {
        func moved(_ record: Record) -> Record {
            var record = record
            record.place = places[record.place] ?? record.place
            return record
        }
        records = records.mapValues(moved)
        tried = tried.mapValues(moved)
        alternatives = alternatives.mapValues { $0.map(moved) }
    }

    /// Removes a version that is stored, or will be tried again. Returns its record if it waited.
    @discardableResult
    mutating func remove(_ id: VersionID) -> Record? {
        waitingForBlobs.remove(id)
        return records.removeValue(forKey: id)
    }
    /// Forgets a version that is stored.
    mutating func forget(_ id: VersionID) {
        remove(id)
        alternatives[id] = nil
        tried[id] = nil
    }

    /// Removes and returns the versions that waited for `id`, to try them again.
    mutating func take(waitingFor id: VersionID) -> [Record] {
        guard let ids = waiting.removeValue(forKey: id) else { return [] }
        let taken = ids.compactMap { records.removeValue(forKey: $0) }
        for record in taken { tried[record.header.id] = record }
        return taken
    }

    /// Returns the versions whose missing versions are now present, to try them again, even if another thread is about to. Also returns
    /// whether others wait for a version that is being stored. O(rows that were not settled the last time).
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

    /// The number of rows that the next `takeReady` checks, for tests.
    func unsettledRows(in history: History) -> Int { history.rows.count - settledRows }

    /// Makes the next check for blobs due at once, after one failed.
    mutating func lookAgain() { (blobMark, nextLook) = (nil, -Double.infinity) }

    /// Checking this many versions for their blobs costs little.
    private static let few = 64

    /// Returns the versions that wait for blobs, if some blobs may have arrived. If the storage cannot report that, many versions are
    /// checked only so often that most of the time is left for other work.
    /// - Parameter mark: the storage's current mark.
    mutating func takeWaitingForBlobs(_ mark: BlobMark?) -> [Record] {
        if let mark, mark == blobMark { return [] }
        if mark == nil, waitingForBlobs.count > PendingVersions.few, Clock.steady() < nextLook { return [] }
        blobMark = mark
        defer { waitingForBlobs = [] }
        return waitingForBlobs.compactMap { records.removeValue(forKey: $0) }
    }
    /// Records how many seconds a check took.
    mutating func lookedForBlobs(_ seconds: Double) { nextLook = Clock.steady() + 10 * seconds }
}
