/// The records found in a damaged store, by version: the place of each, and which parts of it are intact.
struct SalvageIndex {
    /// One record.
    struct Record {
        let place: RecordPlace
        let header: RecordHeader
        /// Whether its table of changes was read to the end.
        var isTableWhole = true
        /// Values whose bytes are damaged: the first hundred, and the number of further ones.
        var lostValues: [ValueID] = []
        var moreLostValues = 0
        /// The bytes of its values by where they are: in the record, in files of their own, and as differences.
        var inRecord: UInt64 = 0, inBlobs: UInt64 = 0, differences: UInt64 = 0
        /// Values whose bytes are gone by intent. They are no loss.
        var hollow = 0
        var isWhole: Bool { isTableWhole && lostValues.isEmpty }
    }

    private var records: [VersionID: [Record]] = [:]
    /// The versions in the order in which they were found.
    private(set) var order: [VersionID] = []
    /// Intact records, by their places.
    private var inOrder: [(place: RecordPlace, id: VersionID)] = []
    /// For each record in `inOrder`, the copied version whose record is the last one up to there in the same file.
    private var keptBefore: [VersionID?] = []
    /// Records of a newer version of the library, and why they cannot be read.
    private(set) var newer: [(place: RecordPlace, error: StoreError)] = []
    /// The places examined.
    private var places: Set<RecordPlace> = []
    /// The places of the records of each version, whether they are whole or not.
    private let found: FoundRecords
    /// Records with values that are differences, which are read once all records were found.
    private var postponed: [(place: RecordPlace, header: RecordHeader)] = []
    private var arePostponed: Set<VersionID> = []
    /// The large values that were read and are undamaged: records may name each any number of times.
    private var readable: Set<SalvageAccount.CopiedBlob> = []

    /// - Parameter store: the store in which records are searched.
    init(_ store: Store) {
        let found = FoundRecords()
        self.found = found
        store.records.findVersion = { found.places(of: $0) }
    }
    /// Signatures that identify likely copies of intact records before they are read.
    private var wholes: Set<Signature> = []
    private struct Signature: Hashable { let id: VersionID, checksum: UInt32, length: UInt64 }
    /// For each version the first intact record, and its digest once computed.
    private var firstWhole: [VersionID: (index: Int, digest: [UInt8]?)] = [:]

    /// Examines a possible record; false if it is unreadable.
    mutating func add(_ place: RecordPlace, _ store: Store, _ control: PacedControl) throws -> Bool {
        let header: RecordHeader
        do { header = try store.records.header(place) } catch {
            let error = StoreError.of(error)
            if error.code == .outOfMemory { throw error }
            guard error.code == .newerFormat else { return false }
            if places.insert(place).inserted { newer.append((place, error)) }
            return true
        }
        guard places.insert(place).inserted else { return true }
        found.add(header.id, place)
        if header.hasDifferences {
            if arePostponed.insert(header.id).inserted, records[header.id] == nil { order.append(header.id) }
            postponed.append((place, header))
            return true
        }
        return try add(place, header, store, control)
    }

    /// Examines the records with values that are differences. Call it once all records were found.
    mutating func addPostponed(_ store: Store, _ control: PacedControl) throws {
        for (place, header) in postponed {
            try control.step(0)
            _ = try add(place, header, store, control)
        }
        postponed = []
    }

    private mutating func add(_ place: RecordPlace, _ header: RecordHeader, _ store: Store, _ control: PacedControl) throws -> Bool {
        let id = header.id, signature = Signature(id: id, checksum: header.checksum, length: place.length)
        // Another copy of an intact record: after a compaction, or in the union of two stores.
        if wholes.contains(signature), let digest = try digest(ofFirst: id, store, control),
            digest == (try Memory.unlessShort(control) { try store.records.identityDigest(place, control) })
        {
            return true
        }
        let record = try Record(place, header, store, control, &readable)
        if records[id] == nil, !arePostponed.contains(id) { order.append(id) }
        records[id, default: []].append(record)
        if record.isWhole {
            wholes.insert(signature)
            if firstWhole[id] == nil { firstWhole[id] = ((records[id]?.count ?? 1) - 1, nil) }
        }
        return true
    }

    private mutating func digest(ofFirst id: VersionID, _ store: Store, _ control: PacedControl) throws -> [UInt8]? {
        if let known = firstWhole[id]?.digest { return known }
        guard let first = whole(id) else { return nil }
        let digest = try Memory.unlessShort(control) { try store.records.identityDigest(first.place, control) }
        firstWhole[id]?.digest = digest
        return digest
    }

    /// Returns the record of a version that is intact to the last byte; if several differ, the one that prevails.
    func whole(_ id: VersionID) -> Record? { firstWhole[id].flatMap { records[id]?[$0.index] } }
    /// Returns the record of a version with the least damage.
    func best(_ id: VersionID) -> Record? {
        whole(id)
            ?? records[id]?.min { a, b in
                a.isTableWhole != b.isTableWhole
                    ? a.isTableWhole : a.lostValues.count + a.moreLostValues < b.lostValues.count + b.moreLostValues
            }
    }
    /// Returns whether a change names a large value that was read before and is undamaged.
    func isKnownReadable(_ entry: RecordTable.Entry) -> Bool {
        SalvageAccount.CopiedBlob(entry).map(readable.contains) ?? false
    }
    /// Returns all records of a version.
    func all(_ id: VersionID) -> [Record] { records[id] ?? [] }

    /// Returns versions without a record that others name, each with one that names it; sorted.
    func missing(_ control: PacedControl) throws -> [(id: VersionID, namedBy: VersionID)] {
        var found: [VersionID: VersionID] = [:]
        for id in order {
            try control.step(0)
            for record in records[id] ?? [] {
                for needed in record.header.predecessors + record.header.dependencies where records[needed] == nil && found[needed] == nil {
                    try control.step(0)
                    found[needed] = id
                }
            }
        }
        return try found.map { ($0.key, $0.value) }.sorted(by: { $0.0 < $1.0 }, looking: control.look)
    }

    /// Records which versions with intact records were copied. Call it after `settle`.
    /// - Parameter file: returns the file of a record.
    mutating func markKept(_ isKept: (VersionID) throws -> Bool, file: (RecordPlace) -> String, _ control: PacedControl) throws {
        var last: (file: String, id: VersionID)?
        keptBefore = try inOrder.map { record in
            try control.step(0)
            let file = file(record.place)
            if try isKept(record.id) { last = (file, record.id) } else if last?.file != file { last = nil }
            return last?.id
        }
    }

    /// Returns the last copied version whose intact record precedes a place in the same file: the record at the place may have been built
    /// on it. Call it after `markKept`.
    func lastKept(before place: RecordPlace, file: (RecordPlace) -> String) -> VersionID? {
        var low = 0, high = inOrder.count
        while low < high {
            let middle = (low + high) / 2
            if SalvageIndex.isBefore(inOrder[middle].place, place) { low = middle + 1 } else { high = middle }
        }
        guard low > 0, low <= keptBefore.count, file(inOrder[low - 1].place) == file(place) else { return nil }
        return keptBefore[low - 1]
    }

    private static func isBefore(_ a: RecordPlace, _ b: RecordPlace) -> Bool {
        a.segment != b.segment ? a.segment < b.segment : a.offset < b.offset
    }

    /// Chooses among several intact records of one version that differ: the one with the smaller digest prevails.
    mutating func settle(_ store: Store, _ control: PacedControl) throws {
        for (id, all) in records {
            try control.step()
            let whole = all.filter(\.isWhole)
            guard whole.count > 1 else { continue }
            let digests = try whole.map { record in
                (record: record, digest: try Memory.unlessShort(control) { try store.records.identityDigest(record.place, control) } ?? [])
            }
            // If records are the same, the one with fewer hollow changes comes first.
            let sorted = digests.filter { !$0.digest.isEmpty }.sorted { a, b in
                let order = Bytes.compare(a.digest, b.digest)
                return order != 0 ? order < 0 : a.record.hollow < b.record.hollow
            }
            records[id] = sorted.map(\.record) + all.filter { !$0.isWhole }
            firstWhole[id] = sorted.isEmpty ? nil : (0, nil)
        }
        for (id, all) in records where id != EmptyRoot.id {
            try control.step(0)
            for record in all where record.isWhole { inOrder.append((record.place, id)) }
        }
        inOrder = try inOrder.sorted(by: { SalvageIndex.isBefore($0.place, $1.place) }, looking: control.look)
    }
}

/// The places of the records of each version. Used by one thread, which reads values meanwhile.
private final class FoundRecords: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock(.leaf)
    private var byVersion: [VersionID: [RecordPlace]] = [:]
    func add(_ id: VersionID, _ place: RecordPlace) { lock.withLock { byVersion[id, default: []].append(place) } }
    func places(of id: VersionID) -> [RecordPlace] { lock.withLock { byVersion[id] ?? [] } }
}

extension SalvageIndex.Record {
    private static let namedValues = 100

    /// Reads the whole record.
    fileprivate init(
        _ place: RecordPlace, _ header: RecordHeader, _ store: Store, _ control: PacedControl,
        _ readable: inout Set<SalvageAccount.CopiedBlob>
    ) throws {
        self.init(place: place, header: header)
        isTableWhole =
            try Memory.unlessShort(control) {
                try store.records.forEachChange(place) { entry, header in
                    try control.step(0, bytes: entry.size)
                    guard entry.kind == .insert || entry.kind == .update else { return }
                    if entry.isHollow { hollow += 1; return }
                    count(entry)
                    let blob = SalvageAccount.CopiedBlob(entry)
                    if let blob, readable.contains(blob) { return }
                    guard try !store.isReadable(entry, in: place, of: header.id) else {
                        if let blob { readable.insert(blob) }
                        return
                    }
                    if lostValues.count < SalvageIndex.Record.namedValues {
                        lostValues.append(ValueID(unchecked: entry.id))
                    } else {
                        moreLostValues += 1
                    }
                }
            } != nil
    }

    private mutating func count(_ entry: RecordTable.Entry) {
        let size = UInt64(max(0, entry.size))
        if entry.blob != nil {
            inBlobs = SourceAccount.sum(inBlobs, size)
        } else if entry.isDifference {
            differences = SourceAccount.sum(differences, size)
        } else {
            inRecord = SourceAccount.sum(inRecord, size)
        }
    }

    /// Returns the losses of the record, for the report.
    func losses(_ file: String, _ offset: UInt64) -> [StorageDamage] {
        let id = header.id
        var all: [StorageDamage] = []
        if !isTableWhole {
            all.append(
                StorageDamage(
                    file: file, offset: offset,
                    message:
                        "Version \(id) is damaged: not all of its changes can be read. "
                        + "An exchange with a store that has the version restores it.",
                    version: id))
        }
        for value in lostValues {
            all.append(
                StorageDamage(
                    file: file, offset: offset,
                    message:
                        "The bytes that version \(id) stored under \"\(value)\" are damaged. "
                        + "An exchange with a store that has the version restores it.",
                    version: id, value: value, lost: .value))
        }
        if moreLostValues > 0 {
            all.append(
                StorageDamage(
                    file: file, offset: offset,
                    message: "The bytes of \(moreLostValues) more values that version \(id) stored are damaged.", version: id, lost: .value)
            )
        }
        return all
    }
}

extension Store {
    /// Returns whether the bytes of a change are undamaged.
    func isReadable(_ entry: RecordTable.Entry, in place: RecordPlace, of version: VersionID) throws -> Bool {
        try Memory.unlessShort {
            try records.withValue(entry, in: place, of: version) { bytes in
                entry.digest.map { $0.elementsEqual(SHA256.digest(bytes)) } ?? true
            }
        } ?? false
    }
}
