/// The table of changes of one record, for looking up ids one after another.
///
/// The last page is cached. So lookups in order read each page once, and a single lookup reads one page. The page is found by a binary
/// search over the first ids of the pages, unchecked, which reads a few bytes of each. A result only comes from pages that match their
/// checksums. If these contradict the search, it is repeated with checked pages only.
///
/// Used by one thread at a time.
final class ChangeTable {
    let place: RecordPlace
    let header: RecordHeader
    /// Whether to read from the storage, bypassing the cache.
    private let isAnew: Bool

    /// If it bypasses the cache: a part of the directory, from an entry on.
    private var directory: (first: Int, entries: [UInt8])?
    private static let directoryRun = 256

    /// The last page: its number, its bytes, and how far it was searched.
    private var number: Int?
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var beginning: RecordTable.Page?
    private var page: RecordTable.Page?
    /// The first entry of the page, and the entry at which the search stopped.
    private var first: RecordTable.Entry?
    private var met: RecordTable.Entry?

    /// - Parameter isAnew: whether to read from the storage, bypassing the cache.
    init(_ place: RecordPlace, anew isAnew: Bool, in records: Records) throws {
        self.place = place
        self.isAnew = isAnew
        var reader = records.reader(place, anew: isAnew)
        header = try records.header(&reader, place)
        guard header.pageCount == 1 else { return }
        // The table of a small record was read with its header.
        let size = try pageSize(header.tableSize, in: records)
        reserve(size)
        guard try reader.with(header.tableOffset, size, { memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<size])) }) != nil
        else { throw isDamaged(records) }
        try open(0, size, in: records)
    }
    deinit { memory.deallocate() }

    /// The approximate bytes of memory.
    var size: Int { 512 + memory.count + 40 * header.dependencies.count + 16 * header.blobs.count }

    private enum Searched {
        case found(RecordTable.Entry)
        /// The id is between two ids of the page.
        case between
        /// The id is below or above all ids of the page.
        case below, above
    }

    /// Returns the record's entry for an id; nil if it has none. Valid until the next call.
    func find(_ id: UnsafeRawBufferPointer, in records: Records) throws -> RecordTable.Entry? {
        var low = 0, high = header.pageCount
        // Whether the page before `low` is known to end below the id.
        var isLowest = true
        if let number {
            switch search(id) {
            case .found(let entry): return entry
            case .between: return nil
            case .below: high = number
            case .above:
                low = number + 1
                // For lookups in order, the next page or a near one is likely: try growing steps.
                var step = 1
                while high - low > 1 {
                    let next = min(low + step, high - 1)
                    if try begins(next, behind: id, in: records) { high = next; break }
                    (low, isLowest, step) = (next, false, step * 2)
                }
            }
        }
        guard low < high else { return nil }
        let lowest = low
        while high - low > 1 {
            let middle = (low + high) / 2
            if try begins(middle, behind: id, in: records) { high = middle } else { low = middle }
        }
        try load(low, in: records)
        switch search(id) {
        case .found(let entry): return entry
        case .between: return nil
        case .below where low == lowest && isLowest: return nil
        case .above where low == header.pageCount - 1: return nil
        case .above:
            try load(low + 1, in: records)
            if case .below = search(id) { return nil }
        case .below: break
        }
        return try findChecked(id, in: records)
    }

    /// Finds an id with checked pages only.
    private func findChecked(_ id: UnsafeRawBufferPointer, in records: Records) throws -> RecordTable.Entry? {
        var low = 0, high = header.pageCount
        while low < high {
            let middle = (low + high) / 2
            try load(middle, in: records)
            switch search(id) {
            case .found(let entry): return entry
            case .between: return nil
            case .below: high = middle
            case .above: low = middle + 1
            }
        }
        return nil
    }

    /// Returns the first entry whose id is not below `id`; nil if all are. Valid until the next call.
    func findFirst(notBelow id: UnsafeRawBufferPointer, in records: Records) throws -> RecordTable.Entry? {
        var low = 0, high = header.pageCount
        while high - low > 1 {
            let middle = (low + high) / 2
            if try begins(middle, behind: id, in: records) { high = middle } else { low = middle }
        }
        guard low < high else { return nil }
        try load(low, in: records)
        // The first ids of the pages were not checked.
        while low > 0, let first, Bytes.compare(id, first.id) < 0 {
            low -= 1
            try load(low, in: records)
        }
        while true {
            var rest = beginning
            while let entry = rest?.next(header) { if Bytes.compare(id, entry.id) <= 0 { return entry } }
            low += 1
            guard low < header.pageCount else { return nil }
            try load(low, in: records)
        }
    }

    /// Returns the change after the last one that this function returned, from the first one on; nil after the last. Valid until the next
    /// call. Do not mix it with lookups.
    func next(in records: Records) throws -> RecordTable.Entry? {
        while true {
            if let entry = page?.next(header) { return entry }
            let following = number.map { $0 + 1 } ?? 0
            guard following < header.pageCount else { return nil }
            try load(following, in: records)
        }
    }

    /// Searches the cached page: from where the last search stopped, or from its beginning.
    private func search(_ id: UnsafeRawBufferPointer) -> Searched {
        if let first, Bytes.compare(id, first.id) < 0 { return .below }
        if let met {
            let order = Bytes.compare(id, met.id)
            if order == 0 { return .found(met) }
            if order < 0 { page = beginning }
        }
        while let entry = page?.next(header) {
            met = entry
            let order = Bytes.compare(id, entry.id)
            if order == 0 { return .found(entry) }
            if order < 0 { return .between }
        }
        return .above
    }

    // MARK: Pages

    private func isDamaged(_ records: Records) -> StoreError {
        records.damaged(place, "has a damaged table of changes", version: header.id)
    }

    private func read(_ offset: Int, into buffer: UnsafeMutableRawBufferPointer, in records: Records) throws {
        if isAnew {
            try records.read(place, at: UInt64(offset), into: buffer)
        } else {
            try records.readBlocks(place, at: UInt64(offset), into: buffer)
        }
    }

    /// Reads the directory's bytes for two entries.
    private func readDirectory(_ start: Int, _ number: Int, into slots: UnsafeMutableRawBufferPointer, in records: Records) throws {
        guard isAnew else { return try read(start + 8 * number, into: slots, in: records) }
        func isThere(_ known: (first: Int, entries: [UInt8])) -> Bool {
            number >= known.first && 8 * (number - known.first) + slots.count <= known.entries.count
        }
        if directory.map(isThere) != true {
            // Begin a little earlier, since a search also goes back.
            let first = max(0, number - ChangeTable.directoryRun / 8)
            var entries = [UInt8](repeating: 0, count: 8 * (min(header.pageCount, first + ChangeTable.directoryRun) - first))
            directory = nil
            try entries.withUnsafeMutableBytes { try read(start + 8 * first, into: $0, in: records) }
            directory = (first, entries)
        }
        guard let known = directory, isThere(known) else { throw isDamaged(records) }
        let at = 8 * (number - known.first)
        known.entries.withUnsafeBytes { slots.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[at..<at + slots.count])) }
    }

    /// Returns where a page begins, and its size, according to the directory.
    private func locate(_ number: Int, in records: Records) throws -> (start: Int, size: Int) {
        let directory = header.bodiesOffset - 8 * header.pageCount
        guard header.pageCount > 1 else { return (header.tableOffset, header.tableSize) }
        guard directory >= header.tableOffset else { throw isDamaged(records) }
        let isLast = number == header.pageCount - 1
        return try withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { both in
            let slots = UnsafeMutableRawBufferPointer(rebasing: both[..<(isLast ? 8 : 16)])
            try readDirectory(directory, number, into: slots, in: records)
            let end = isLast ? UInt64(directory - header.tableOffset) : UInt64(littleEndian: slots.load(fromByteOffset: 8, as: UInt64.self))
            let start = UInt64(littleEndian: slots.load(as: UInt64.self))
            guard start < end, end <= UInt64(directory - header.tableOffset) else { throw isDamaged(records) }
            return (header.tableOffset + Int(start), Int(end - start))
        }
    }

    /// Returns whether the first id of a page, unchecked, is after an id.
    private func begins(_ number: Int, behind id: UnsafeRawBufferPointer, in records: Records) throws -> Bool {
        let (start, size) = try locate(number, in: records)
        var wanted = min(size, RecordTable.firstIDSize)
        while true {
            var needs: Int?
            let isBehind = try withUnsafeTemporaryAllocation(byteCount: wanted, alignment: 8) { bytes in
                try read(start, into: bytes, in: records)
                return RecordTable.firstID(UnsafeRawBufferPointer(bytes), number: number, of: header, needs: &needs).map {
                    Bytes.compare(id, $0) < 0
                }
            }
            if let isBehind { return isBehind }
            guard let needs, needs > wanted, needs <= size else { throw isDamaged(records) }
            wanted = needs
        }
    }

    private func load(_ number: Int, in records: Records) throws {
        if number == self.number { return }
        let (start, claimed) = try locate(number, in: records)
        let size = try pageSize(claimed, in: records)
        self.number = nil
        reserve(size)
        try read(start, into: UnsafeMutableRawBufferPointer(rebasing: memory[..<size]), in: records)
        try open(number, size, in: records)
    }

    private func pageSize(_ claimed: Int, in records: Records) throws -> Int {
        guard claimed <= RecordTable.pageSizeMax else { throw isDamaged(records) }
        return claimed
    }

    private func reserve(_ size: Int) {
        guard memory.count < size else { return }
        memory.deallocate()
        memory = .allocate(byteCount: size, alignment: 8)
    }

    /// Opens the page whose bytes are in memory, if it matches its checksum and can be parsed.
    private func open(_ number: Int, _ size: Int, in records: Records) throws {
        var needs: Int?
        guard let whole = RecordTable.Page(UnsafeRawBufferPointer(rebasing: memory[..<size]), number: number, of: header, needs: &needs)
        else { throw isDamaged(records) }
        var rest = whole
        first = rest.next(header)
        while rest.next(header) != nil {}
        guard rest.isAtEnd else { throw isDamaged(records) }
        beginning = whole
        page = whole
        met = nil
        self.number = number
    }
}

/// Caches the last tables, within a limit of memory. Used by one thread at a time.
final class ChangeTables {
    private let most: Int
    private var tables: [RecordPlace: ChangeTable] = [:]
    private var last: ChangeTable?
    private var size = 0

    /// - Parameter most: the most bytes of memory.
    init(most: Int) { self.most = most }

    /// Calls with the record's entry for an id, nil if it has none, and the record's header.
    func find<R>(
        _ place: RecordPlace, _ id: UnsafeRawBufferPointer, in records: Records, _ body: (RecordTable.Entry?, RecordHeader) throws -> R
    ) throws -> R {
        try use(place, in: records) { try body($0.find(id, in: records), $0.header) }
    }

    /// Calls with the table of a record.
    func use<R>(_ place: RecordPlace, in records: Records, _ body: (ChangeTable) throws -> R) throws -> R {
        let table: ChangeTable
        if let last, last.place == place {
            table = last
        } else if let known = tables[place] {
            table = known
        } else {
            table = try ChangeTable(place, anew: false, in: records)
            tables[place] = table
            size += table.size
        }
        let before = table.size
        do {
            let found = try body(table)
            last = table
            size += table.size - before
            if size > most {
                tables = [place: table]
                size = table.size
            }
            return found
        } catch {
            // The next lookup reads it again.
            tables[place] = nil
            last = nil
            size -= before
            throw error
        }
    }
}
