extension Store {
    /// Counts the bytes on the medium: by kind, by prefix of ids, by month and by version, and what only the past holds. Reads headers and
    /// tables of changes, and no value. With a prefix, only the bytes of values count.
    ///
    /// - Parameters:
    ///   - query: what to count, and how.
    ///   - control: checked with stage `.reading`, with a step for each version.
    /// - Throws: `.cancelled`, errors of the progress callback, errors of the storage.
    /// - Complexity: O(versions + their changes), one or two reads for each version. It also builds the map of each head, unless it is
    ///   cached.
    public func size(_ query: SizeQuery = SizeQuery(), control: OperationControl = OperationControl()) throws -> SizeReport {
        let (heads, rows) = try lock.withRead {
            try checkOpenLocked()
            return (Array(dag.headOrdinals), dag.rows.count)
        }
        let paced = control.paced(.reading, doing: "Counting the sizes in \(description)")
        try paced.look()
        var counting = SizeCounting(query, try HeadValues(heads, in: self, paced))
        for i in 0..<rows {
            let ordinal = UInt32(truncatingIfNeeded: i)
            guard let (place, made) = lock.withRead({ dag.isLive(i) ? (dag.rows[i].place, dag.rows[i].made) : nil }) else { continue }
            try Memory.check()
            try counting.add(ordinal, place, made: made, in: self)
            try paced.step(1)
        }
        let (bytes, caches) = query.prefix.isEmpty ? (try storage.statistics(paced).bytes, try storage.cacheBytes(paced)) : (0, 0)
        return try counting.report(bytes: bytes, caches: caches, in: self, paced)
    }
}

/// Which values prevail at the heads.
private struct HeadValues {
    private var first: MapNode?
    /// The ids of values that prevail at another head but not at the first head, by the version that stored the values.
    private var others: [UInt32: Set<[UInt8]>] = [:]

    init(_ heads: [UInt32], in store: Store, _ control: PacedControl) throws {
        guard let first = heads.first else { return }
        self.first = try store.maps.map(first, control)
        for head in heads.dropFirst() {
            try store.forEachDifference(first, head, control) { difference in
                try control.step(0)
                try Memory.check()
                if let entry = difference.after { others[entry.version, default: []].insert(Array(difference.key)) }
            }
        }
    }

    /// Returns whether the value that a version stored under an id prevails at a head.
    func contains(_ ordinal: UInt32, _ id: UnsafeRawBufferPointer) -> Bool {
        if first?.lookup(id)?.version == ordinal { return true }
        return others.isEmpty ? false : others[ordinal]?.contains(Array(id)) ?? false
    }
}

/// The counts so far.
private struct SizeCounting {
    private typealias Counts = SizeReport.Counts

    private let query: SizeQuery
    private let heads: HeadValues
    private var report = SizeReport()
    private var kinds = [Counts](repeating: Counts(), count: SizeReport.Kind.allCases.count)
    private var prefixes: [(name: [UInt8], counts: Counts)] = [], prefixIndex: [[UInt8]: Int] = [:]
    private var months: [(month: Int, counts: Counts)] = [], monthIndex: [Int: Int] = [:]
    private var versions: [(ordinal: UInt32, counts: Counts)] = []
    /// The prefix of the last value.
    private var last = -1

    /// A file that a change names: where its bytes count.
    private struct Blob { var prefix: Int, month: Int, version: Int, size: UInt64, isCurrent: Bool }
    private var blobs: [BlobID: Blob] = [:]

    init(_ query: SizeQuery, _ heads: HeadValues) { (self.query, self.heads) = (query, heads) }

    /// Counts one version.
    mutating func add(_ ordinal: UInt32, _ place: RecordPlace, made: Double, in store: Store) throws {
        let month = month(made), version = versions.count
        try Memory.grow(&versions, "Counting sizes")
        versions.append((ordinal, Counts()))
        var bodies: UInt64 = 0
        do {
            try store.records.forEachChange(place) { entry, _ in
                guard entry.kind == .insert || entry.kind == .update else { return }
                let stored = UInt64(RecordTable.bodyHeaderSize &+ entry.storedSize)
                if entry.blob == nil, !entry.isHollow { bodies &+= stored }
                guard entry.id.starts(with: query.prefix) else { return }
                if entry.isHollow {
                    kinds[SizeReport.Kind.hollow.rawValue].values &+= 1
                    kinds[SizeReport.Kind.hollow.rawValue].valueBytes &+= UInt64(entry.size)
                    return
                }
                let prefix = try prefix(of: entry.id), isCurrent = heads.contains(ordinal, entry.id)
                var counts = Counts()
                (counts.values, counts.valueBytes) = (1, UInt64(entry.size))
                if let blob = entry.blob {
                    add(
                        blob,
                        Blob(
                            prefix: prefix, month: month, version: version, size: BlobDirectory.fileSize(of: entry.size),
                            isCurrent: isCurrent))
                } else {
                    counts.addBody(stored, isCurrent: isCurrent)
                }
                kinds[(entry.blob == nil ? SizeReport.Kind.value : .blob).rawValue] += counts
                prefixes[prefix].counts += counts
                months[month].counts += counts
                versions[version].counts += counts
            }
        } catch let error as StoreError where error.code.isOfOne { report.unread &+= 1 }
        report.versions &+= 1
        guard query.prefix.isEmpty else { return }
        let rest = place.length &- min(place.length, bodies)
        kinds[SizeReport.Kind.record.rawValue].bytes &+= rest
        months[month].counts.bytes &+= rest
        versions[version].counts.bytes &+= rest
        kinds[SizeReport.Kind.other.rawValue].bytes &+= store.storage.overhead(of: place)
    }

    /// Counts the bytes of a file once.
    private mutating func add(_ id: BlobID, _ blob: Blob) {
        if let known = blobs[id] {
            guard blob.isCurrent, !known.isCurrent else { return }
            forEach(known) { $0.removePast(known.size) }
        }
        blobs[id] = blob
        forEach(blob) { $0.addBody(blob.size, isCurrent: blob.isCurrent) }
    }
    private mutating func forEach(_ blob: Blob, _ body: (inout Counts) -> Void) {
        body(&kinds[SizeReport.Kind.blob.rawValue])
        body(&prefixes[blob.prefix].counts)
        body(&months[blob.month].counts)
        body(&versions[blob.version].counts)
    }

    /// Returns the group of an id, which has the prefix of the query.
    private mutating func prefix(of id: UnsafeRawBufferPointer) throws -> Int {
        var end = query.depth == SizeQuery.eachID ? id.count : query.prefix.count
        if query.depth != SizeQuery.eachID {
            var parts = 0
            for i in query.prefix.count..<id.count where id[i] == UInt8(ascii: "/") {
                end = i + 1
                parts += 1
                if parts == query.depth { break }
            }
        }
        // The ids of a record are sorted: mostly it is the group of the one before.
        if last >= 0, prefixes[last].name.count == end, id.starts(with: prefixes[last].name) { return last }
        let key = Array(id[..<end])
        if let known = prefixIndex[key] { last = known; return known }
        try Memory.grow(&prefixes, "Counting sizes")
        last = prefixes.count
        prefixes.append((key, Counts()))
        prefixIndex[key] = last
        return last
    }

    /// Returns the group of a time in seconds since 2001-01-01 UTC.
    private mutating func month(_ time: Double) -> Int {
        let month = CalendarMonth.number(ofSecondsSince2001: time)
        if let known = monthIndex[month] { return known }
        monthIndex[month] = months.count
        months.append((month, Counts()))
        return months.count - 1
    }

    // MARK: The report

    func report(bytes: UInt64, caches: UInt64, in store: Store, _ control: PacedControl) throws -> SizeReport {
        var report = report, kinds = kinds
        kinds[SizeReport.Kind.cache.rawValue].bytes = caches
        let known = kinds.reduce(0) { $0 &+ $1.bytes }
        if bytes > known { kinds[SizeReport.Kind.other.rawValue].bytes &+= bytes &- known }
        for (kind, counts) in zip(SizeReport.Kind.allCases, kinds) where kind != .hollow || counts.values > 0 {
            if kind != .hollow { report.total += counts }
            report.rows.append(SizeReport.Row(group: .kind, name: Array(kind.name.utf8), counts: counts))
        }
        try addLargest(.prefix, prefixes.map(\.counts), to: &report, control) { prefixes[$0].name }
        for (month, counts) in months.sorted(by: { $0.month < $1.month }) where counts != Counts() {
            report.rows.append(SizeReport.Row(group: .month, name: CalendarMonth.text(month), counts: counts))
        }
        try addLargest(.version, versions.map(\.counts), to: &report, control) {
            Array(store.versionID(versions[$0].ordinal).description.utf8)
        }
        return report
    }

    /// Adds rows for the largest groups, and one that combines the others.
    private func addLargest(
        _ group: SizeReport.Group, _ counts: [Counts], to report: inout SizeReport, _ control: PacedControl, name: (Int) -> [UInt8]
    ) throws {
        let isLarger = { (a: Int, b: Int) in counts[a].bytes != counts[b].bytes ? counts[a].bytes > counts[b].bytes : a < b }
        var rest = SizeReport.Row(group: group, name: [], counts: Counts()), left = query.limit
        for i in try counts.indices.filter({ counts[$0] != Counts() }).sorted(by: isLarger, looking: control.look) {
            if left > 0 {
                left -= 1
                try Memory.grow(&report.rows, "Counting sizes")
                report.rows.append(SizeReport.Row(group: group, name: name(i), counts: counts[i]))
            } else {
                rest.combined &+= 1
                rest.counts += counts[i]
            }
        }
        if rest.combined > 0 { report.rows.append(rest) }
    }
}
