/// Finds out what each of two sides lacks, over the history of a store: docs/live-protocol.md, section 4.
struct Negotiation {
    private let store: Store
    /// The key of the hashes, which is different for every link.
    private let key: Secret
    private let crypto: Crypto
    /// The most hashes in a list. More versions are compared by ranges.
    private let hashesLimit: Int
    private(set) var mine = LiveFrame.Have()
    private var myList: LiveFrame.Listed?

    init(_ store: Store, hash: [UInt8], hashesLimit: Int = LiveFrame.hashesLimit) throws {
        self.store = store
        self.hashesLimit = hashesLimit
        key = try Secret(hash)
        crypto = try Crypto(for: LiveLink.purpose)
    }

    private static let perPrefix = 16

    /// There are more heads than the other side reads.
    struct TooManyHeads: Error { let count: Int }

    /// Returns a summary of this side's history: its heads, the number of versions, and a fingerprint of them.
    mutating func have(_ look: () throws -> Void = {}) throws -> LiveFrame.Have {
        var have = LiveFrame.Have(), coded = ByteWriter()
        let none = UInt32.max
        var earliest = [UInt32](repeating: none, count: store.rowCount)
        // Versions that become live meanwhile are not included.
        var isCounted = [Bool](repeating: false, count: earliest.count)
        try store.forEachLive(look) { ordinal, dag in
            guard Int(ordinal) < earliest.count else { return }
            have.versionCount += 1
            isCounted[Int(ordinal)] = true
            Negotiation.add(dag.id(ordinal), &coded, to: &have.fingerprint)
            for predecessor in dag.predecessors(ordinal) where Int(predecessor) < earliest.count {
                earliest[Int(predecessor)] = min(earliest[Int(predecessor)], ordinal)
            }
        }
        store.lock.withRead {
            var listed: Set<UInt32> = []
            for i in earliest.indices.reversed() where earliest[i] == none && isCounted[i] {
                have.headCount += 1
                guard have.heads.count < LiveFrame.listedHeads else { continue }
                let ordinal = UInt32(truncatingIfNeeded: i)
                listed.insert(ordinal)
                have.heads.append(store.dag.id(ordinal))
            }
            // For each prefix of the order of arrival, its heads: the versions whose successors arrived after it.
            var step = 1
            while step < earliest.count {
                let end = earliest.count - step
                var found = 0
                for i in (0..<end).reversed() where earliest[i] >= UInt32(truncatingIfNeeded: end) && isCounted[i] {
                    let ordinal = UInt32(truncatingIfNeeded: i)
                    if have.samples.count < LiveFrame.samplesLimit, listed.insert(ordinal).inserted {
                        have.samples.append(store.dag.id(ordinal))
                    }
                    found += 1
                    if found == Negotiation.perPrefix { break }
                }
                step *= 2
            }
        }
        mine = have
        return have
    }

    /// - Parameter coded: a scratch buffer.
    static func add(_ id: VersionID, _ coded: inout ByteWriter, to sum: inout [UInt64]) {
        coded.bytes.removeAll(keepingCapacity: true)
        coded.versionID(id)
        add(coded.bytes.withUnsafeBytes { SHA256.words($0) }, to: &sum)
    }
    private static func add(_ words: (UInt64, UInt64, UInt64, UInt64), to sum: inout [UInt64]) {
        var carry: UInt64 = 0
        for (i, word) in [words.0, words.1, words.2, words.3].enumerated() {
            let (first, over) = sum[i].addingReportingOverflow(UInt64(littleEndian: word))
            let (second, overAgain) = first.addingReportingOverflow(carry)
            sum[i] = second
            carry = over || overAgain ? 1 : 0
        }
    }

    private func hash(_ id: VersionID) throws -> UInt64 {
        var coded = ByteWriter()
        coded.versionID(id)
        return try crypto.hmac(key, coded.bytes).first8
    }

    /// Returns which of the other side's ids are present, and what its ids do not cover.
    mutating func list(_ theirs: LiveFrame.Have, _ look: () throws -> Void = {}) throws -> LiveFrame.Listed {
        let ids = theirs.ids, unknown = Set(try store.unknown(among: ids, look))
        var list = LiveFrame.Listed(bits: ids.map { !unknown.contains($0) })
        list.hasAll = theirs.heads.count == theirs.headCount && !theirs.heads.contains(where: unknown.contains)
        defer { myList = list }
        if list.hasAll { return list }
        let others = try store.missing(from: store.coverage(behind: ids, look), look)
        if others.count > hashesLimit {
            list.hasMore = true
            return list
        }
        for (i, id) in others.enumerated() {
            if i % 1_024 == 1_023 { try look() }
            list.hashes.append(try hash(id))
        }
        list.hashes.sort()
        // Versions with the same hash are listed once.
        var once: [UInt64] = []
        for hash in list.hashes where hash != once.last { once.append(hash) }
        list.hashes = once
        return list
    }

    /// Returns the comparison by ranges if it is needed: neither side has everything of the other, and one has too many versions for a
    /// list.
    func ranges(_ theirs: LiveFrame.Have, _ list: LiveFrame.Listed, _ look: () throws -> Void = {}) throws -> RangeReconciliation? {
        guard let myList, !myList.hasAll, !list.hasAll, myList.hasMore || list.hasMore else { return nil }
        let coverage = try store.coverage(behind: known(list) + theirs.ids, look)
        return RangeReconciliation(try store.missingKeys(from: coverage, look), hash: hash)
    }

    /// Returns which of this side's ids the other side has.
    private func known(_ list: LiveFrame.Listed) throws -> [VersionID] {
        guard list.bits.count == mine.ids.count else { throw LiveFault(.frame, "a bitmap is not of the ids that were sent") }
        return zip(mine.ids, list.bits).filter(\.1).map(\.0)
    }

    /// Whether the versions that the other side lacks follow without its list.
    var knowsAll: Bool { myList?.hasAll ?? false }

    /// Returns the versions that the other side lacks, predecessors first.
    /// - Parameter list: the other side's list; nil if `knowsAll`.
    func missing(_ theirs: LiveFrame.Have, _ list: LiveFrame.Listed?, _ look: () throws -> Void = {}) throws -> [VersionID] {
        if knowsAll { return try store.missing(from: store.coverage(behind: theirs.heads, look), look) }
        guard let list, !list.hasAll else { return [] }
        let hashes = Set(list.hashes)
        return try store.missing(from: store.coverage(behind: known(list), look), look).filter { try !hashes.contains(hash($0)) }
    }
}

extension Store {
    /// Returns the row up to which it is certain which versions are stored, from `rows` on.
    func settledRows(from rows: Int) -> Int {
        lock.withRead { dag.rows.indices.dropFirst(rows).first { !dag.rows[$0].isSettled } ?? max(rows, dag.rows.count) }
    }

    /// Returns the versions that arrived after the first `rows` rows, predecessors first.
    func arrivals(behind rows: Int, but others: Set<VersionID>) -> [VersionID] {
        var found: [UInt32] = []
        forEachLive(behind: rows, {}) { ordinal, dag in
            let id = dag.id(ordinal)
            guard !others.contains(id), id != EmptyRoot.id || dag.rows[Int(ordinal)].firstEdge != History.none else { return }
            found.append(ordinal)
        }
        return orderKeys(found, {}).sorted(looking: {}).map(\.id)
    }
}
