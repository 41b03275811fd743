/// Versions that lie between two places of the order by generation and id, as one side tells the other of them:
/// docs/live-protocol.md, section 4.
struct VersionRange: Equatable {
    enum Contents: Equatable {
        /// There is nothing to ask, and nothing to tell.
        case settled
        /// There are so many, with this fingerprint.
        case sum(count: Int, fingerprint: [UInt64])
        /// The hashes of all that there are: which of them are on the other side?
        case list([UInt64])
        /// Of those that were listed these are here.
        case here([UInt64])
        /// It is not looked at any closer.
        case unknown
    }
    struct Place: Equatable {
        var generation: UInt32
        var id: VersionID
    }
    var contents: Contents
    /// Where it ends, and the next begins; nil: behind all.
    var end: Place?

    /// In one frame.
    static let most = 4_096
    /// Hashes in a list.
    static let listed = 64

    /// Whether the other side has to say something.
    var isQuestion: Bool {
        switch contents {
        case .sum, .list: true
        case .settled, .here, .unknown: false
        }
    }
}

/// Learns what two sides lack of each other's where a list of it would be too long: they compare sums over ranges, and divide those that
/// differ. A value, which takes what the other side says, and gives the answers.
struct RangeReconciliation {
    /// Into so many a range is divided.
    private static let ways = 16
    /// Frames that a side says; in the last it gives up what differs still.
    static let frames = 8
    /// Bytes of hashes that a frame lists, about. Answers to the other side's lists, and the ends of ranges, are in the same frame, whose
    /// bound is 1 MiB.
    private static let listsSize = 128 << 10

    private enum Lot: UInt8 { case open, there, lacking }
    /// In order.
    private let versions: [OrderKey]
    private var lots: [Lot]
    private let hash: (VersionID) throws -> UInt64
    private var said = 0, taken = 0
    /// It is known of all versions whether the other side has them.
    private(set) var isDone = false

    /// - Parameters:
    ///   - versions: those of which it is not known.
    ///   - hash: that of LIST.
    init(_ versions: [OrderKey], hash: @escaping (VersionID) throws -> UInt64) {
        self.versions = versions.sorted { $0.generation != $1.generation ? $0.generation < $1.generation : $0.id < $1.id }
        self.hash = hash
        lots = [Lot](repeating: .open, count: versions.count)
    }

    /// What the other side lacks, predecessors first.
    var lacking: [VersionID] { zip(versions, lots).compactMap { $1 == .there ? nil : $0.id } }

    /// What the initiator begins with.
    mutating func begin() throws -> [VersionRange] {
        var out: [VersionRange] = [], room = RangeReconciliation.listsSize
        if versions.isEmpty { out.append(VersionRange(contents: .here([]))) } else { try divide(versions.indices, nil, &out, &room) }
        return say(out)
    }

    /// - Returns: what to answer; nil: nothing.
    /// - Throws: `LiveFault`.
    mutating func take(_ ranges: [VersionRange]) throws -> [VersionRange]? {
        taken += 1
        guard !isDone, taken <= RangeReconciliation.frames else { throw LiveFault(.bound, "it compares ranges again and again") }
        var out: [VersionRange] = [], room = RangeReconciliation.listsSize, lower = 0
        for (i, range) in ranges.enumerated() {
            let upper = range.end.map(index) ?? versions.count
            guard upper >= lower else { throw LiveFault(.frame, "ranges are not in order") }
            let part = lower..<upper
            lower = upper
            var answer = VersionRange.Contents.settled
            switch range.contents {
            case .settled: settle(part, .there)
            case .unknown: settle(part, .lacking)
            case .here(let theirs): _ = try settle(part, theirs)
            case .list(let theirs): answer = .here(try settle(part, theirs))
            case .sum(let count, _):
                let mine = sum(part)
                if mine == range.contents { settle(part, .there); break }
                if count == 0 { settle(part, .lacking); break }
                if part.isEmpty { answer = .here([]); break }
                if said + 1 == RangeReconciliation.frames {
                    settle(part, .lacking)
                    answer = .unknown
                } else if out.count + RangeReconciliation.ways + ranges.count - i <= VersionRange.most, room > 0 {
                    try divide(part, range.end, &out, &room)
                    continue
                } else {
                    // There is no room for more in this frame: they divide it, or we do in the next.
                    answer = mine
                }
            }
            if answer == .settled, let last = out.indices.last, out[last].contents == .settled {
                out[last].end = range.end
            } else {
                out.append(VersionRange(contents: answer, end: range.end))
            }
        }
        guard ranges.contains(where: \.isQuestion) else {
            isDone = true
            return nil
        }
        return say(out)
    }

    private mutating func say(_ ranges: [VersionRange]) -> [VersionRange] {
        said += 1
        isDone = !ranges.contains(where: \.isQuestion)
        return ranges
    }

    /// Of a few versions the hashes, of more the sums of their parts.
    private func divide(_ part: Range<Int>, _ end: VersionRange.Place?, _ out: inout [VersionRange], _ room: inout Int) throws {
        guard part.count > VersionRange.listed else {
            room -= 8 * part.count
            return out.append(VersionRange(contents: .list(try part.map { try hash(versions[$0].id) }.sorted()), end: end))
        }
        for way in 0..<RangeReconciliation.ways {
            let from = part.lowerBound + part.count * way / RangeReconciliation.ways
            let to = part.lowerBound + part.count * (way + 1) / RangeReconciliation.ways
            let next = to == part.upperBound ? end : VersionRange.Place(generation: versions[to].generation, id: versions[to].id)
            out.append(VersionRange(contents: sum(from..<to), end: next))
        }
    }

    private func sum(_ part: Range<Int>) -> VersionRange.Contents {
        var fingerprint: [UInt64] = [0, 0, 0, 0], coded = ByteWriter()
        for i in part { Negotiation.add(versions[i].id, &coded, to: &fingerprint) }
        return .sum(count: part.count, fingerprint: fingerprint)
    }

    /// Of those in a range whose lot is not known yet.
    private mutating func settle(_ part: Range<Int>, _ lot: Lot) { for i in part where lots[i] == .open { lots[i] = lot } }

    /// By the hashes of those that are on the other side; gives those that are here.
    private mutating func settle(_ part: Range<Int>, _ theirs: [UInt64]) throws -> [UInt64] {
        let theirs = Set(theirs)
        var here: [UInt64] = []
        for i in part {
            let hash: UInt64? = theirs.isEmpty ? nil : try self.hash(versions[i].id)
            let isThere = hash.map(theirs.contains) ?? false
            if isThere, let hash { here.append(hash) }
            if lots[i] == .open { lots[i] = isThere ? .there : .lacking }
        }
        return here.sorted()
    }

    /// Of the first version that does not lie before a place.
    private func index(_ place: VersionRange.Place) -> Int {
        var low = 0, high = versions.count
        while low < high {
            let middle = (low + high) / 2, key = versions[middle]
            let isBefore = key.generation != place.generation ? key.generation < place.generation : key.id < place.id
            if isBefore { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
