/// Fills the rows of a batch: from the cached blocks, and the rest from the storage in storage order. Adjacent values share a read.
package struct BatchFilling {
    /// A value whose bytes are to be read.
    private struct Wanted {
        var row: Int
        var entry: MapEntry
        var place: RecordPlace
        /// Where its body begins in the segment.
        var position: UInt64 { place.offset &+ entry.bodyOffset }
        var bodySize: Int { RecordTable.bodyHeaderSize + Int(entry.size) }
    }

    /// The most bytes of one read, and the most unneeded bytes between two values that it covers.
    private static let runSize = 256 << 10, gapSize = 4 << 10
    /// Values that are read while the store's lock is held once.
    private static let sectionRows = 32

    private let store: Store
    private let batch: ValueBatch
    private let byteLimit: Int
    /// The bytes of values so far, including the known sizes in `entries`.
    private var bytes = 0
    /// The entries of the rows from `first` on, which are still to be filled.
    private var entries = ContiguousArray<MapEntry?>()
    private var first = 0
    private var wanted = ContiguousArray<Wanted>()
    /// The rows whose bytes turned out to be gone after room for them was reserved: a map was made before.
    private var late: [Int: Bool] = [:]

    package init(_ store: Store, _ batch: ValueBatch, byteLimit: Int = .max) {
        self.store = store
        self.batch = batch
        self.byteLimit = byteLimit
    }

    /// Whether the known bytes are below the limit.
    package var isBelowLimit: Bool { bytes < byteLimit }

    /// Adds a row to fill, with the entry that prevails for the id.
    @inline(__always)
    package mutating func append(_ id: UnsafeRawBufferPointer, _ entry: MapEntry?) throws {
        try batch.append(id: id)
        try Memory.grow(&entries, "A list of values")
        entries.append(entry)
        if let entry, batch.hasData, entry.size != MapEntry.unknownSize { bytes += Int(entry.size) }
    }

    /// Adds a row to fill whose entry `lookUp` will find.
    @inline(__always)
    mutating func append(_ id: UnsafeRawBufferPointer) throws {
        try batch.append(id: id)
        try Memory.grow(&entries, "A list of values")
        entries.append(nil)
    }

    /// Looks up the entries of the rows to fill in a map.
    mutating func lookUp(in root: MapNode?) {
        guard let root else { return }
        let batch = batch, first = first
        root.lookup(entries.count, key: { batch.id(first + $0) }) { i, entry in
            entries[i] = entry
            if let entry, entry.size != MapEntry.unknownSize { bytes += Int(entry.size) }
        }
    }

    /// Fills the rows. Returns whether the limit was not reached. Removes the rows after the one that reaches it.
    package mutating func fill() throws -> Bool {
        defer {
            entries.removeAll(keepingCapacity: true)
            wanted.removeAll(keepingCapacity: true)
            first = batch.count
        }
        if batch.hasData { try resolve() }
        try describe()
        if batch.hasData {
            try batch.growData(wanted.reduce(0) { $0 + Int($1.entry.size) }, rows: entries.count)
            for one in wanted { batch.reserveData(one.row, size: Int(one.entry.size)) }
            try read()
            if !late.isEmpty { batch.setForgotten(late, from: first) }
            late = [:]
        }
        return isBelowLimit
    }

    // MARK: Which bytes

    /// Reads the sizes that the map does not have, where those bytes are, and whether there are any.
    private mutating func resolve() throws {
        guard entries.contains(where: { $0.map { $0.bodyOffset == 0 || $0.size == MapEntry.unknownSize } ?? false }) else { return }
        bytes -= entries.reduce(0) { $0 + ($1.map { $0.size == MapEntry.unknownSize ? 0 : Int($0.size) } ?? 0) }
        for i in entries.indices {
            guard bytes < byteLimit else {
                batch.removeRows(from: first + i)
                entries.removeLast(entries.count - i)
                return
            }
            guard let entry = entries[i] else { continue }
            if entry.bodyOffset == 0 || entry.size == MapEntry.unknownSize {
                let (place, stored) = store.lock.withRead { (store.dag.rows[Int(entry.version)].place, store.dag.id(entry.version)) }
                let (located, isHollow) = try store.records.locatedOrHollow(entry, place, id: batch.id(first + i), stored: stored)
                entries[i] = located
                if isHollow {
                    let isErased = store.records.isErased(ValueID(unchecked: batch.id(first + i)), stored)
                    batch.setForgotten(first + i, isErased: isErased)
                    continue
                }
            }
            bytes += Int(entries[i]?.size ?? 0)
        }
    }

    /// Sets the versions that stored the values, and the places of their records.
    private mutating func describe() throws {
        var i = 0
        if batch.hasData { try Memory.grow(&wanted, by: entries.count, "Reading \(entries.count) values") }
        while i < entries.count {
            let end = min(i + BatchFilling.sectionRows, entries.count)
            try store.lock.withRead {
                try store.checkOpenLocked()
                try store.sharedHistory.dagReference._withUnsafeGuaranteedRef { dag in
                    for j in i..<end {
                        guard let entry = entries[j] else { continue }
                        try batch.setVersion(first + j, ordinal: entry.version, id: dag.id(entry.version))
                        if batch.hasData, !batch.rows[first + j].isForgotten {
                            wanted.append(Wanted(row: first + j, entry: entry, place: dag.rows[Int(entry.version)].place))
                        }
                    }
                }
            }
            i = end
        }
    }

    // MARK: Reading

    private mutating func read() throws {
        var missing = ContiguousArray<Int>()
        var i = 0
        while i < wanted.count {
            let end = min(i + BatchFilling.sectionRows, wanted.count)
            store.lock.withRead {
                // Prefetch all before reading the first, so that the cache misses overlap.
                for j in i..<end where wanted[j].entry.bodyOffset != 0 {
                    store.records.blocks.prefetch(wanted[j].place, from: wanted[j].entry.bodyOffset)
                }
                for j in i..<end where !takeFromMemory(wanted[j]) { missing.append(j) }
            }
            i = end
        }
        guard !missing.isEmpty else { return }
        missing.sort {
            let (a, b) = (wanted[$0], wanted[$1])
            return a.place.segment != b.place.segment ? a.place.segment < b.place.segment : a.position < b.position
        }
        var start = 0
        while start < missing.count {
            let end = runEnd(missing, from: start)
            try readRun(missing[start..<end])
            start = end
        }
    }

    /// Precondition: the caller holds the store's lock for reading.
    @inline(__always)
    private func takeFromMemory(_ one: Wanted) -> Bool {
        guard one.entry.bodyOffset != 0, let body = store.records.blocks.bytes(one.place, from: one.entry.bodyOffset) else { return false }
        return accept(body, one) || (body.count < one.bodySize && takeFromBlocks(one))
    }

    /// Reads a body that spans blocks.
    @inline(never)
    private func takeFromBlocks(_ one: Wanted) -> Bool {
        let size = min(UInt64(one.bodySize), one.place.length &- one.entry.bodyOffset)
        guard one.entry.bodyOffset < one.place.length, size <= UInt64(StoreBlocks.largest) else { return false }
        return
            (try? withScratch(Int(size)) { buffer in
                store.records.blocks.copy(one.place, from: one.entry.bodyOffset, into: buffer)
                    && accept(UnsafeRawBufferPointer(buffer), one)
            }) ?? false
    }

    /// Stores a value's bytes in the batch, if the beginning of the buffer matches its checksum.
    @inline(__always)
    private func accept(_ body: UnsafeRawBufferPointer, _ one: Wanted) -> Bool {
        let size = Int(one.entry.size)
        guard let bytes = RecordTable.body(body, size: size, id: batch.id(one.row), versionText: batch.storedVersion(one.row)) else {
            return false
        }
        let target = batch.target(one.row)
        if bytes.count == size { target.copyMemory(from: bytes); return true }
        return Inflated.fill(target.baseAddress, size: size, from: bytes)
    }

    /// Returns the end of the run of adjacent values that begins at `start`.
    private func runEnd(_ missing: ContiguousArray<Int>, from start: Int) -> Int {
        let head = wanted[missing[start]]
        var end = start + 1, behind = head.position &+ UInt64(head.bodySize)
        guard store.records.blocks.readsSegments, head.entry.bodyOffset != 0 else { return end }
        while end < missing.count {
            let next = wanted[missing[end]]
            guard next.place.segment == head.place.segment, next.entry.bodyOffset != 0, next.position >= head.position,
                next.position <= behind &+ UInt64(BatchFilling.gapSize),
                next.position &+ UInt64(next.bodySize) &- head.position <= UInt64(BatchFilling.runSize)
            else { break }
            behind = max(behind, next.position &+ UInt64(next.bodySize))
            end += 1
        }
        return end
    }

    private mutating func readRun(_ run: ArraySlice<Int>) throws {
        guard let first = run.first else { return }
        let head = wanted[first]
        var isRead = false
        if store.records.blocks.readsSegments, head.entry.bodyOffset != 0, head.bodySize <= BatchFilling.runSize {
            let end = run.reduce(0 as UInt64) { max($0, wanted[$1].position &+ UInt64(wanted[$1].bodySize)) }
            var alone: [Int] = []
            isRead = try store.records.blocks.readRun(head.place.segment, from: head.position, to: end) { bytes, position in
                for i in run {
                    let one = wanted[i]
                    guard let start = Int(exactly: one.position &- position), start <= bytes.count,
                        accept(UnsafeRawBufferPointer(rebasing: bytes[start...]), one)
                    else { alone.append(i); continue }
                }
            }
            for i in alone { try readAlone(wanted[i]) }
            if !isRead { store.follow(head.place.segment) }
        }
        if !isRead { for i in run { try readAlone(wanted[i]) } }
    }

    /// Reads a single value from its current place. If that fails, the error says what is wrong.
    private mutating func readAlone(_ one: Wanted) throws {
        let place = store.lock.withRead { store.dag.rows[Int(one.entry.version)].place }
        let id = batch.id(one.row), target = batch.target(one.row)
        let stored = try VersionID(ascii: batch.storedVersion(one.row))
        do {
            try store.records.withBody(place, one.entry, id: id, stored: stored, into: target) { bytes in
                guard bytes.count == target.count else {
                    throw store.records.damaged(place, "has a value of another size than was recorded", version: stored, value: id)
                }
                if bytes.baseAddress != UnsafeRawPointer(target.baseAddress) { target.copyMemory(from: bytes) }
            }
        } catch let error as StoreError where error.code.isGone { late[one.row] = error.code == .erased }
    }
}
