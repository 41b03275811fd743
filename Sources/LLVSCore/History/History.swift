/// The DAG of all versions, in compact arrays. Each version has an ordinal, valid in this process.
///
/// Not thread-safe: the store guards it with a reader-writer lock. It does no I/O. A version is hidden or staged until it is stored, then
/// live. It is dead if its commit failed, or if a cache listed it but its record is damaged.
package final class History {
    package static let none = UInt32.max

    package private(set) var rows: ContiguousArray<Row> = []
    private var keyHashes = KeyHashes()
    /// The number of hashes of versions that changed several ids.
    var manyKeyCount: Int { keyHashes.manyCount }
    private var texts: [UInt32: VersionID] = [:]
    /// The text ids folded to one case, with the ordinals that have them.
    private var foldedTexts: [VersionID: [UInt32]] = [:]
    private var table = OrdinalTable()
    /// Bytes of the tables that find versions by id and by changed ids, without the rows.
    var sizeOfTables: Int { table.size + keyHashes.size }
    private(set) var branchNames: [BranchName] = []
    private var branchOrdinals: [BranchName: UInt32] = [:]
    /// Live versions without live successors.
    package private(set) var headOrdinals: Set<UInt32> = []
    /// Live versions without a branch that are no ancestor of another version without one; nil while there is no branch, when these are the
    /// heads.
    private var unbranchedTips: Set<UInt32>?
    package private(set) var liveCount = 0
    /// Versions whose metadata say that they undo or redo other versions, in the order of their ordinals. Some may not be live.
    package private(set) var undos: [UInt32] = []
    /// The row of the empty root while the history does not contain it.
    private(set) var virtualRoot: UInt32?

    // MARK: Finding

    package func id(_ ordinal: UInt32) -> VersionID {
        let row = rows[Int(ordinal)]
        if row.isText, let id = texts[ordinal] { return id }
        return VersionID(high: row.high, low: row.low)
    }

    /// Returns the ordinal of a live version.
    @inline(__always)
    package func ordinal(of id: VersionID) -> UInt32? {
        if id.text == nil {
            return table.find(OrdinalTable.hash(id)) { ordinal in
                let row = rows[Int(ordinal)]
                return row.high == id.high && row.low == id.low && !row.isText && row.state == .live
            }
        }
        return table.find(OrdinalTable.hash(id)) { rows[Int($0)].state == .live && self.id($0) == id }
    }

    /// Returns the ordinal of a version, as `ordinal(of:)` does, or of a staged version if there is no live one.
    package func ordinalIncludingStaged(of id: VersionID) -> UInt32? {
        ordinal(of: id) ?? table.find(OrdinalTable.hash(id)) { rows[Int($0)].state == .staged && self.id($0) == id }
    }

    /// Whether the version is being stored.
    func isHidden(_ id: VersionID) -> Bool {
        table.find(OrdinalTable.hash(id)) { rows[Int($0)].state == .hidden && self.id($0) == id } != nil
    }

    /// Returns a version, live or being made, whose id differs from this one by case only. Called only when a version is made under an id
    /// of the caller.
    /// - Complexity: O(versions whose ids differ by case only).
    func caseInsensitiveCollision(of id: VersionID) -> VersionID? {
        let folded = id.folded
        func counts(_ ordinal: UInt32) -> Bool { rows[Int(ordinal)].state != .dead && self.id(ordinal) != id }
        if folded != id, let twin = table.find(OrdinalTable.hash(folded), where: { counts($0) && self.id($0) == folded }) {
            return self.id(twin)
        }
        return foldedTexts[folded]?.first(where: counts).map(self.id)
    }

    // MARK: Changing

    /// - Throws: `.outOfMemory`.
    func reserve(_ count: Int) throws {
        try Memory.expect((count + count / 8) * (MemoryLayout<Row>.stride + 4) + 12 * count, "The history of \(count) versions")
        rows.reserveCapacity(count + count / 8)
        keyHashes.reserve(count + count / 8)
        table.reserve(count)
    }

    /// Replaces the segment numbers of all places by those of this process; false if one has none.
    func renumberSegments(_ numbers: [UInt32]) -> Bool {
        for i in rows.indices where rows[i].state == .live {
            let old = Int(rows[i].place.segment)
            guard old < numbers.count, numbers[old] != History.none else { return false }
            rows[i].place.segment = numbers[old]
        }
        return true
    }

    /// Updates the places of the records of a segment after they moved.
    func moveRecords(of segment: UInt32, _ place: (RecordPlace) -> RecordPlace) {
        for i in rows.indices where rows[i].place.segment == segment { rows[i].place = place(rows[i].place) }
    }

    /// Updates the places of records that moved, and the checksums of the headers that are not the same as before.
    func moveRecords(_ places: [RecordPlace: RecordPlace], _ checksums: [VersionID: UInt32]) {
        for i in rows.indices { if let place = places[rows[i].place] { rows[i].place = place } }
        for (version, checksum) in checksums { if let ordinal = ordinal(of: version) { rows[Int(ordinal)].checksum = checksum } }
    }

    /// Reserves memory for one more version.
    /// - Throws: `.outOfMemory`; then nothing has changed.
    package func preallocate() throws {
        try Memory.check()
        try Memory.grow(&rows, "The history")
        try keyHashes.preallocate()
        try table.preallocate()
    }

    /// Adds a version, hidden. Its predecessors must be present. Call `reserve` before adding many.
    /// - Parameters:
    ///   - clock: the time of its maker's clock, if the version records it.
    ///   - storedAt: the time of this device's clock when the version was stored, if that bounds when it or an ancestor was made.
    func append(
        id: VersionID, timestamp: Double, valueDataSize: UInt64, first: UInt32, second: UInt32, branch: BranchName?,
        place: RecordPlace, checksum: UInt32, changeCount: Int, traits: Traits, clock: Double? = nil, storedAt: Double? = nil
    ) -> UInt32 {
        // The predecessors of the version existed when the record was stored.
        if let storedAt { lower([first, second], to: storedAt) }
        var made = claimed(timestamp: timestamp, clock: clock, first: first, second: second)
        if let storedAt { made = min(made, storedAt) }
        var generation: UInt32 = 0
        if first != History.none { generation = rows[Int(first)].generation &+ 1 }
        if second != History.none { generation = max(generation, rows[Int(second)].generation &+ 1) }
        let ordinal = UInt32(truncatingIfNeeded: rows.count)
        rows.append(
            Row(
                high: id.high, low: id.low, timestamp: timestamp, made: made, place: place, valueDataSize: valueDataSize, first: first,
                second: second,
                generation: generation, branch: branch.map(intern) ?? History.none, firstEdge: History.none,
                nextEdgeOfFirst: History.none, nextEdgeOfSecond: History.none, checksum: checksum,
                changeCount: UInt32(truncatingIfNeeded: changeCount), state: .hidden,
                traits: traits.subtracting(.keysAreKnown).union(id.text == nil ? [] : .isText)))
        keyHashes.appendRow()
        if traits.contains(.undoes) { undos.append(ordinal) }
        if id.text != nil {
            texts[ordinal] = id
            foldedTexts[id.folded, default: []].append(ordinal)
        }
        let isLatest = [first, second].allSatisfy {
            $0 == History.none || (rows[Int($0)].traits.contains(.isLaterThanAncestors) && isNewer(ordinal, $0))
        }
        if isLatest { rows[Int(ordinal)].traits.insert(.isLaterThanAncestors) }
        table.insert(ordinal, hash: OrdinalTable.hash(id)) { OrdinalTable.hash(self.id($0)) }
        return ordinal
    }

    /// Adds a version of a history that is being loaded, live at once; false if its id is present, or if a predecessor is not live. Call
    /// `findHeads` after the last one.
    func appendLive(
        id: VersionID, timestamp: Double, valueDataSize: UInt64, first: UInt32, second: UInt32, branch: BranchName?,
        place: RecordPlace, checksum: UInt32, changeCount: Int, traits: Traits, made: Double
    ) -> Bool {
        guard first == History.none || isLive(Int(first)), second == History.none || isLive(Int(second)), ordinal(of: id) == nil else {
            return false
        }
        let ordinal = append(
            id: id, timestamp: timestamp, valueDataSize: valueDataSize, first: first, second: second, branch: branch, place: place,
            checksum: checksum, changeCount: changeCount, traits: traits)
        rows[Int(ordinal)].made = made
        rows[Int(ordinal)].state = .live
        liveCount += 1
        link(ordinal)
        return true
    }

    /// Adds a dead row, so that the ordinal of a discarded version is not reused.
    func appendHole() {
        rows.append(
            Row(
                high: 0, low: 0, timestamp: 0, made: 0, place: RecordPlace(segment: 0, offset: 0, length: 0), valueDataSize: 0,
                first: History.none,
                second: History.none,
                generation: 0, branch: History.none, firstEdge: History.none, nextEdgeOfFirst: History.none, nextEdgeOfSecond: History.none,
                checksum: 0,
                changeCount: 0, state: .dead, traits: []))
        keyHashes.appendRow()
    }

    /// Limits the times at which these versions and their ancestors were made to `limit`.
    /// - Complexity: the versions with later times.
    func lower(_ ordinals: [UInt32], to limit: Double) {
        var open = ordinals.filter { $0 != History.none }
        while let at = open.popLast() {
            guard rows[Int(at)].made > limit else { continue }
            rows[Int(at)].made = limit
            for before in predecessors(at) { open.append(before) }
        }
    }

    func isLive(_ ordinal: Int) -> Bool { ordinal >= 0 && ordinal < rows.count && rows[ordinal].state == .live }

    func findHeads() {
        headOrdinals = []
        for i in rows.indices where rows[i].state == .live && rows[i].firstEdge == History.none {
            let ordinal = UInt32(truncatingIfNeeded: i)
            if id(ordinal) != EmptyRoot.id { headOrdinals.insert(ordinal) }
        }
        unbranchedTips = branchNames.isEmpty ? nil : []
        guard unbranchedTips != nil else { return }
        for i in rows.indices where rows[i].state == .live { noteTip(UInt32(truncatingIfNeeded: i)) }
    }

    /// Updates the tips after a version became live; its predecessors were live before.
    private func noteTip(_ ordinal: UInt32) {
        guard rows[Int(ordinal)].branch == History.none else {
            // There was no branch until now, so the tips are the heads before this version.
            if unbranchedTips == nil { unbranchedTips = headOrdinals }
            return
        }
        guard unbranchedTips != nil, id(ordinal) != EmptyRoot.id else { return }
        unbranchedTips?.insert(ordinal)
        // Walks back to the nearest ancestors without a branch, which stop being tips, through versions with a branch that are not yet
        // known to have a descendant without one.
        var behind = [rows[Int(ordinal)].first, rows[Int(ordinal)].second]
        while let at = behind.popLast() {
            guard at != History.none, !rows[Int(at)].traits.contains(.isBehindUnbranched) else { continue }
            guard rows[Int(at)].branch != History.none else { unbranchedTips?.remove(at); continue }
            rows[Int(at)].traits.insert(.isBehindUnbranched)
            behind.append(rows[Int(at)].first)
            behind.append(rows[Int(at)].second)
        }
    }

    /// Makes a version live: it becomes a head, and its predecessors no longer are.
    func publish(_ ordinal: UInt32, place: RecordPlace, checksum: UInt32) {
        let i = Int(ordinal)
        rows[i].place = place
        rows[i].checksum = checksum
        rows[i].state = .live
        liveCount += 1
        noteTip(ordinal)
        // The empty root is virtual while nothing builds on it.
        if id(ordinal) != EmptyRoot.id { headOrdinals.insert(ordinal) }
        if rows[i].first != History.none { headOrdinals.remove(rows[i].first) }
        if rows[i].second != History.none { headOrdinals.remove(rows[i].second) }
        link(ordinal)
    }

    /// Links a version as a successor of its predecessors.
    private func link(_ ordinal: UInt32) {
        let i = Int(ordinal)
        let (first, second) = (rows[i].first, rows[i].second)
        if first != History.none {
            rows[i].nextEdgeOfFirst = rows[Int(first)].firstEdge
            rows[Int(first)].firstEdge = ordinal &* 2
        }
        if second != History.none {
            rows[i].nextEdgeOfSecond = rows[Int(second)].firstEdge
            rows[Int(second)].firstEdge = ordinal &* 2 &+ 1
        }
    }

    /// Makes an unpublished version readable by its id, with its record at `place` for now.
    package func stage(_ ordinal: UInt32, _ place: RecordPlace, _ checksum: UInt32) {
        rows[Int(ordinal)].state = .staged
        rows[Int(ordinal)].place = place
        rows[Int(ordinal)].checksum = checksum
    }

    /// Makes this the row of the empty root, which is not stored: its record stays at `place`.
    func makeVirtual(_ ordinal: UInt32, _ place: RecordPlace, _ checksum: UInt32) {
        stage(ordinal, place, checksum)
        rows[Int(ordinal)].state = .virtual
        virtualRoot = ordinal
    }

    /// Gives an unpublished version other predecessors.
    package func redirect(_ ordinal: UInt32, _ replaced: [UInt32: UInt32]) {
        let i = Int(ordinal)
        rows[i].first = replaced[rows[i].first] ?? rows[i].first
        rows[i].second = replaced[rows[i].second] ?? rows[i].second
    }

    /// Returns the ordinal for publishing an unpublished version. If a new predecessor has a higher ordinal, the version is moved behind
    /// it, since rows come after those of their predecessors.
    func behindPredecessors(_ ordinal: UInt32) -> UInt32 {
        let row = rows[Int(ordinal)]
        func isBehind(_ predecessor: UInt32) -> Bool { predecessor == History.none || predecessor <= ordinal }
        if isBehind(row.first), isBehind(row.second) { return ordinal }
        let hashes = keyHashes(of: ordinal).map { Array($0) }
        let moved = append(
            id: id(ordinal), timestamp: row.timestamp, valueDataSize: row.valueDataSize, first: row.first, second: row.second,
            branch: branch(ordinal),
            place: row.place, checksum: row.checksum, changeCount: Int(row.changeCount),
            traits: row.traits.intersection([.changeKindsVerified, .preserves, .undoes]))
        rows[Int(moved)].made = row.made
        if let hashes { noteKeys(moved, count: hashes.count) { hashes[$0] } }
        drop(ordinal)
        return moved
    }

    /// Sets a new record for a live version.
    func move(_ ordinal: UInt32, to place: RecordPlace, checksum: UInt32) {
        rows[Int(ordinal)].place = place
        rows[Int(ordinal)].checksum = checksum
        // The parts of the old record that could not be read may name other ids.
        rows[Int(ordinal)].traits.remove(.keysAreKnown)
    }

    /// Withdraws live versions, with all live ones that build on them, since their source was wrong. Their ordinals are not reused.
    /// - Returns: the withdrawn versions, each after its predecessors.
    /// - Complexity: O(rows).
    func withdraw(_ ordinals: [UInt32]) -> [UInt32] {
        var gone: [UInt32] = [], isGone = [Bool](repeating: false, count: rows.count), wrong = OrdinalSet()
        for ordinal in ordinals { wrong.insert(ordinal) }
        for i in rows.indices.dropFirst(Int(ordinals.min() ?? .max)) where rows[i].state == .live {
            Work.versions.count()
            let ordinal = UInt32(truncatingIfNeeded: i)
            guard wrong.contains(ordinal) || predecessors(ordinal).contains(where: { isGone[Int($0)] }) else { continue }
            isGone[i] = true
            rows[i].state = .dead
            gone.append(ordinal)
        }
        liveCount -= gone.count
        for i in rows.indices {
            (rows[i].firstEdge, rows[i].nextEdgeOfFirst, rows[i].nextEdgeOfSecond) = (History.none, History.none, History.none)
            rows[i].traits.remove(.isBehindUnbranched)
        }
        for i in rows.indices where rows[i].state == .live { link(UInt32(truncatingIfNeeded: i)) }
        findHeads()
        return gone
    }

    /// Discards an unpublished version.
    package func drop(_ ordinal: UInt32) { rows[Int(ordinal)].state = .dead }

    private func intern(_ branch: BranchName) -> UInt32 {
        if let known = branchOrdinals[branch] { return known }
        let ordinal = UInt32(truncatingIfNeeded: branchNames.count)
        branchNames.append(branch)
        branchOrdinals[branch] = ordinal
        return ordinal
    }

    // MARK: Changed ids

    package static func keyHash(_ key: UnsafeRawBufferPointer) -> UInt32 { Bytes.crc32c(key) }

    /// Records the hashes of the ids that a version changed. `hash` returns the hash of the n-th id, in the order of the ids. `count` must
    /// be the number of changes.
    func noteKeys(_ ordinal: UInt32, count: Int, _ hash: (Int) -> UInt32) {
        let i = Int(ordinal)
        guard count == Int(rows[i].changeCount), !rows[i].traits.contains(.keysAreKnown) else { return }
        guard keyHashes.set(i, count: count, hash) else { return }
        rows[i].traits.insert(.keysAreKnown)
    }

    /// Returns how many of `undos` are earlier rows than a version. O(log of their number).
    package func countOfUndos(before ordinal: UInt32) -> Int {
        var low = 0, high = undos.count
        while low < high {
            let middle = (low + high) / 2
            if undos[middle] < ordinal { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the hashes of the ids that a version changed; nil if unknown.
    package func keyHashes(of ordinal: UInt32) -> ContiguousArray<UInt32>.SubSequence? {
        let i = Int(ordinal), row = rows[i]
        if row.changeCount == 0 { return [] }
        return row.traits.contains(.keysAreKnown) ? keyHashes.of(i, count: Int(row.changeCount)) : nil
    }

    /// Returns whether a version may have changed an id of that hash; true if unknown.
    func mayHaveChanged(_ ordinal: UInt32, _ hash: UInt32) -> Bool {
        let row = rows[Int(ordinal)]
        if row.changeCount == 1, row.traits.contains(.keysAreKnown) { return keyHashes.single(Int(ordinal)) == hash }
        return keyHashes(of: ordinal)?.contains(hash) ?? true
    }

    /// Returns live versions, from `start` on, whose key hashes are not recorded and could be.
    func ordinalsOfUnknownKeys(from start: UInt32) -> [UInt32] {
        var found: [UInt32] = [], room = MapPolicy.mostIndexed - keyHashes.manyCount
        for i in min(Int(start), rows.count)..<rows.count {
            let row = rows[i], count = Int(row.changeCount)
            guard row.state == .live, count > 0, count <= MapPolicy.longestIndexed, !row.traits.contains(.keysAreKnown) else { continue }
            if count > 1 {
                guard count <= room else { continue }
                room -= count
            }
            found.append(UInt32(truncatingIfNeeded: i))
        }
        return found
    }

    // MARK: Queries

    func branch(_ ordinal: UInt32) -> BranchName? {
        let branch = rows[Int(ordinal)].branch
        return branch == History.none ? nil : branchNames[Int(branch)]
    }

    package func predecessors(_ ordinal: UInt32) -> [UInt32] {
        let row = rows[Int(ordinal)]
        return [row.first, row.second].filter { $0 != History.none }
    }

    func successors(_ ordinal: UInt32) -> [UInt32] {
        var out: [UInt32] = []
        var edge = rows[Int(ordinal)].firstEdge
        while edge != History.none {
            let successor = edge / 2
            // The two edges of a version with the same predecessor twice are adjacent.
            if out.last != successor { out.append(successor) }
            edge = edge & 1 == 0 ? rows[Int(successor)].nextEdgeOfFirst : rows[Int(successor)].nextEdgeOfSecond
        }
        return out
    }

    /// Canonical order: is `a` later than `b`?
    package func isNewer(_ a: UInt32, _ b: UInt32) -> Bool {
        let x = rows[Int(a)], y = rows[Int(b)]
        return x.timestamp != y.timestamp ? x.timestamp > y.timestamp : id(a) > id(b)
    }

    /// The heads without a branch, in no order: versions without a branch that are no ancestor of another such version. If a version on a
    /// branch is built on one of them, that one remains a head here.
    package var unbranchedHeadOrdinals: Set<UInt32> { unbranchedTips ?? headOrdinals }

    /// Returns whether a version has or had this branch.
    package func hasBranch(_ branch: String) -> Bool { branchOrdinals[BranchName(branch)] != nil }

    /// Returns the heads on the branch. O(heads), but for heads of other branches only a number is compared.
    package func headsInNoOrder(onBranch branch: String) -> [UInt32] {
        guard let number = branchOrdinals[BranchName(branch)] else { return [] }
        return headOrdinals.filter { rows[Int($0)].branch == number }
    }

    /// The approximate size of the arrays in bytes.
    var memorySize: Int {
        rows.capacity * MemoryLayout<Row>.stride + rows.capacity * 6 + keyHashes.memory + texts.count * 300
    }
}
