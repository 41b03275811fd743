/// The DAG of all versions, in compact arrays: each version has an ordinal in this process.
///
/// Not safe by itself: the store guards it with a reader-writer lock. Nothing here touches the disk.
/// A version is hidden or staged until it is stored, then live; dead when its commit failed, or when
/// a cache told of it whose record is damaged.
final class History {
    static let none = UInt32.max

    private(set) var rows: ContiguousArray<Row> = []
    private var keyHashes = KeyHashes()
    /// How many hashes there are of versions that changed several ids.
    var manyKeyCount: Int { keyHashes.manyCount }
    private var texts: [UInt32: VersionID] = [:]
    /// Those of them by their ids in one case: which of the ordinals have it.
    private var foldedTexts: [VersionID: [UInt32]] = [:]
    private var table = OrdinalTable()
    /// Bytes of what finds versions, beside the rows: by their ids, and by the ids that they changed.
    var sizeOfTables: Int { table.size + keyHashes.size }
    private(set) var branchNames: [BranchName] = []
    private var branchOrdinals: [BranchName: UInt32] = [:]
    /// Live versions without live successors.
    private(set) var headOrdinals: Set<UInt32> = []
    /// Live versions without a branch that no other one has among its ancestors; nil while there is no branch, and these are the heads.
    private var unbranchedTips: Set<UInt32>?
    private(set) var liveCount = 0
    /// The row under which the empty root is read while the history does not hold it.
    private(set) var virtualRoot: UInt32?

    // MARK: Finding

    func id(_ ordinal: UInt32) -> VersionID {
        let row = rows[Int(ordinal)]
        if row.isText, let id = texts[ordinal] { return id }
        return VersionID(high: row.high, low: row.low)
    }

    /// The ordinal of a live version.
    @inline(__always)
    func ordinal(of id: VersionID) -> UInt32? {
        if id.text == nil {
            return table.find(OrdinalTable.hash(id)) { ordinal in
                let row = rows[Int(ordinal)]
                return row.high == id.high && row.low == id.low && !row.isText && row.state == .live
            }
        }
        return table.find(OrdinalTable.hash(id)) { rows[Int($0)].state == .live && self.id($0) == id }
    }

    /// As `ordinal(of:)`, but a staged version is found, too, when there is no live one.
    func ordinalIncludingStaged(of id: VersionID) -> UInt32? {
        ordinal(of: id) ?? table.find(OrdinalTable.hash(id)) { rows[Int($0)].state == .staged && self.id($0) == id }
    }

    /// Whether the version is being stored.
    func isHidden(_ id: VersionID) -> Bool {
        table.find(OrdinalTable.hash(id)) { rows[Int($0)].state == .hidden && self.id($0) == id } != nil
    }

    /// A version, live or being made, whose id differs from this one by case only. Asked only when one is made under an id of the caller's.
    /// - Complexity: O(versions whose ids do).
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

    /// Replaces the segment numbers of all places by those of this process; false when one has none.
    func renumberSegments(_ numbers: [UInt32]) -> Bool {
        for i in rows.indices where rows[i].state == .live {
            let old = Int(rows[i].place.segment)
            guard old < numbers.count, numbers[old] != History.none else { return false }
            rows[i].place.segment = numbers[old]
        }
        return true
    }

    /// Writes down where the records of a segment are by now.
    func moveRecords(of segment: UInt32, _ place: (RecordPlace) -> RecordPlace) {
        for i in rows.indices where rows[i].place.segment == segment { rows[i].place = place(rows[i].place) }
    }

    /// Makes room for one more version, as far as that takes much memory.
    /// - Throws: `.outOfMemory`; then nothing has changed.
    func preallocate() throws {
        try Memory.check()
        try Memory.grow(&rows, "The history")
        try keyHashes.preallocate()
        try table.preallocate()
    }

    /// Adds a version, hidden. Its predecessors are in already; who adds many makes room before.
    /// - Parameters:
    ///   - clock: what its maker's clock showed, where it says so.
    ///   - storedAt: what this device's clock showed when the version was stored, where that bounds when it, or an ancestor, was made.
    func append(
        id: VersionID, timestamp: Double, valueDataSize: UInt64, first: UInt32, second: UInt32, branch: BranchName?,
        place: RecordPlace, checksum: UInt32, changeCount: Int, traits: Traits, clock: Double? = nil, storedAt: Double? = nil
    ) -> UInt32 {
        // Those before it were here already then.
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

    /// Adds a version of a history that is being taken up, live at once; false when its id is there already, or a
    /// predecessor is none that is live. `findHeads` must follow the last one.
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

    /// Keeps the ordinal of a version that was given up from being another's.
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

    /// Lets nothing among these versions and their ancestors have been made later than at `limit`.
    /// - Complexity: the versions that were.
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

    /// A version is live; its predecessors were before it.
    private func noteTip(_ ordinal: UInt32) {
        guard rows[Int(ordinal)].branch == History.none else {
            // Without a branch until now: the heads before this one.
            if unbranchedTips == nil { unbranchedTips = headOrdinals }
            return
        }
        guard unbranchedTips != nil, id(ordinal) != EmptyRoot.id else { return }
        unbranchedTips?.insert(ordinal)
        // Behind it the ways lead back to the first versions without a branch, over those with one that are not known to be behind such a
        // one.
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

    /// Makes a version one of the successors of its predecessors.
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

    /// Lets those who know its id read an unpublished version, whose record is at `place` for now.
    func stage(_ ordinal: UInt32, _ place: RecordPlace, _ checksum: UInt32) {
        rows[Int(ordinal)].state = .staged
        rows[Int(ordinal)].place = place
        rows[Int(ordinal)].checksum = checksum
    }

    /// The row of the empty root, which is not stored: its record is at `place` for good.
    func makeVirtual(_ ordinal: UInt32, _ place: RecordPlace, _ checksum: UInt32) {
        stage(ordinal, place, checksum)
        rows[Int(ordinal)].state = .virtual
        virtualRoot = ordinal
    }

    /// Points an unpublished version at other predecessors.
    func redirect(_ ordinal: UInt32, _ replaced: [UInt32: UInt32]) {
        let i = Int(ordinal)
        rows[i].first = replaced[rows[i].first] ?? rows[i].first
        rows[i].second = replaced[rows[i].second] ?? rows[i].second
    }

    /// The ordinal that an unpublished version is to be published under: another one when a predecessor that it was pointed at came
    /// later, since rows come after their predecessors.
    func behindPredecessors(_ ordinal: UInt32) -> UInt32 {
        let row = rows[Int(ordinal)]
        func isBehind(_ predecessor: UInt32) -> Bool { predecessor == History.none || predecessor <= ordinal }
        if isBehind(row.first), isBehind(row.second) { return ordinal }
        let hashes = keyHashes(of: ordinal).map { Array($0) }
        let moved = append(
            id: id(ordinal), timestamp: row.timestamp, valueDataSize: row.valueDataSize, first: row.first, second: row.second,
            branch: branch(ordinal),
            place: row.place, checksum: row.checksum, changeCount: Int(row.changeCount),
            traits: row.traits.intersection([.changeKindsVerified, .preserves]))
        rows[Int(moved)].made = row.made
        if let hashes { noteKeys(moved, count: hashes.count) { hashes[$0] } }
        drop(ordinal)
        return moved
    }

    /// The record of a live version is another from now on.
    func move(_ ordinal: UInt32, to place: RecordPlace, checksum: UInt32) {
        rows[Int(ordinal)].place = place
        rows[Int(ordinal)].checksum = checksum
        // What could not be read of the old one may name other ids.
        rows[Int(ordinal)].traits.remove(.keysAreKnown)
    }

    /// Takes live versions out again, with all live ones that build on them: what told of them was wrong. Their ordinals stay theirs.
    /// - Returns: which they are, each after its predecessors.
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

    /// Gives up an unpublished version.
    func drop(_ ordinal: UInt32) { rows[Int(ordinal)].state = .dead }

    private func intern(_ branch: BranchName) -> UInt32 {
        if let known = branchOrdinals[branch] { return known }
        let ordinal = UInt32(truncatingIfNeeded: branchNames.count)
        branchNames.append(branch)
        branchOrdinals[branch] = ordinal
        return ordinal
    }

    // MARK: Which ids were changed

    static func keyHash(_ key: UnsafeRawBufferPointer) -> UInt32 { Bytes.crc32c(key) }

    /// Keeps in mind which ids a version changed. `hash` gives the hashes of as many as it has changes, in order of the ids, by
    /// their numbers.
    func noteKeys(_ ordinal: UInt32, count: Int, _ hash: (Int) -> UInt32) {
        let i = Int(ordinal)
        guard count == Int(rows[i].changeCount), !rows[i].traits.contains(.keysAreKnown) else { return }
        guard keyHashes.set(i, count: count, hash) else { return }
        rows[i].traits.insert(.keysAreKnown)
    }

    /// The hashes of the ids that a version changed; nil when they are not known.
    func keyHashes(of ordinal: UInt32) -> ContiguousArray<UInt32>.SubSequence? {
        let i = Int(ordinal), row = rows[i]
        if row.changeCount == 0 { return [] }
        return row.traits.contains(.keysAreKnown) ? keyHashes.of(i, count: Int(row.changeCount)) : nil
    }

    /// Whether a version changed an id of that hash, as far as that is known.
    func mayHaveChanged(_ ordinal: UInt32, _ hash: UInt32) -> Bool {
        let row = rows[Int(ordinal)]
        if row.changeCount == 1, row.traits.contains(.keysAreKnown) { return keyHashes.single(Int(ordinal)) == hash }
        return keyHashes(of: ordinal)?.contains(hash) ?? true
    }

    /// Live versions, from one on, whose keys could be kept in mind and are not.
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

    // MARK: Asking

    func branch(_ ordinal: UInt32) -> BranchName? {
        let branch = rows[Int(ordinal)].branch
        return branch == History.none ? nil : branchNames[Int(branch)]
    }

    func predecessors(_ ordinal: UInt32) -> [UInt32] {
        let row = rows[Int(ordinal)]
        return [row.first, row.second].filter { $0 != History.none }
    }

    func successors(_ ordinal: UInt32) -> [UInt32] {
        var out: [UInt32] = []
        var edge = rows[Int(ordinal)].firstEdge
        while edge != History.none {
            let successor = edge / 2
            // Both edges of a version that had one predecessor twice are beside each other.
            if out.last != successor { out.append(successor) }
            edge = edge & 1 == 0 ? rows[Int(successor)].nextEdgeOfFirst : rows[Int(successor)].nextEdgeOfSecond
        }
        return out
    }

    /// Canonical order: is `a` later than `b`?
    func isNewer(_ a: UInt32, _ b: UInt32) -> Bool {
        let x = rows[Int(a)], y = rows[Int(b)]
        return x.timestamp != y.timestamp ? x.timestamp > y.timestamp : id(a) > id(b)
    }

    /// The heads of what carries no branch, in no order: versions without one that no other such version has among its ancestors. A
    /// version on a branch is often built on one of them, which stays one.
    var unbranchedHeadOrdinals: Set<UInt32> { unbranchedTips ?? headOrdinals }

    /// Whether a version carries it, or did.
    func hasBranch(_ branch: String) -> Bool { branchOrdinals[BranchName(branch)] != nil }

    /// Those that carry the branch. O(heads), but no more than a number is looked at of those of other branches.
    func headsInNoOrder(onBranch branch: String) -> [UInt32] {
        guard let number = branchOrdinals[BranchName(branch)] else { return [] }
        return headOrdinals.filter { rows[Int($0)].branch == number }
    }

    /// Bytes that the arrays take, about.
    var memorySize: Int {
        rows.capacity * MemoryLayout<Row>.stride + rows.capacity * 6 + keyHashes.memory + texts.count * 300
    }
}
