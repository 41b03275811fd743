/// The versions between two places of the order by generation and id, as one side describes them to the other: docs/live-protocol.md,
/// section 4.
struct VersionRange: Equatable {
    enum Contents: Equatable {
        /// Nothing is left to ask or answer.
        case settled
        /// The number of versions, and their fingerprint.
        case sum(count: Int, fingerprint: [UInt64])
        /// The hashes of all versions. Asks which of them the other side has.
        case list([UInt64])
        /// The hashes of the listed versions that are present.
        case here([UInt64])
        /// The range is not compared any further.
        case unknown
    }
    struct Place: Equatable {
        var generation: UInt32
        var id: VersionID
    }
    var contents: Contents
    /// The end of the range, where the next one begins; nil after the last version.
    var end: Place?

    /// The most ranges in one frame.
    static let most = 4_096
    /// The most hashes in a list.
    static let listed = 64

    /// Whether the other side must answer.
    var isQuestion: Bool {
        switch contents {
        case .sum, .list: true
        case .settled, .here, .unknown: false
        }
    }
}

/// Determines which versions each of two sides lacks, if a list of all would be too long. The sides compare sums over ranges, and divide
/// ranges that differ. Reads the other side's ranges, and returns the answers.
struct RangeReconciliation {
    /// The number of parts into which a range is divided.
    private static let ways = 16
    /// The most frames of a side. In the last it gives up ranges that still differ.
    static let frames = 8
    /// The approximate most bytes of hashes in the lists of a frame. Answers to the other side's lists, and the ends of ranges, are in
    /// the same frame, whose limit is 1 MiB.
    private static let listsSize = 128 << 10

    private enum Lot: UInt8 { case open, there, lacking }
    /// The versions, in order.
    private let versions: [OrderKey]
    private var lots: [Lot]
    private let hash: (VersionID) throws -> UInt64
    private var said = 0, taken = 0
    /// Whether it is known of all versions whether the other side has them.
    private(set) var isDone = false

    /// - Parameters:
    ///   - versions: the versions of which it is not known whether the other side has them.
    ///   - hash: returns the hash of LIST.
    init(_ versions: [OrderKey], hash: @escaping (VersionID) throws -> UInt64) {
        self.versions = versions.sorted { $0.generation != $1.generation ? $0.generation < $1.generation : $0.id < $1.id }
        self.hash = hash
        lots = [Lot](repeating: .open, count: versions.count)
    }

    /// The versions that the other side lacks, predecessors first.
    var lacking: [VersionID] { zip(versions, lots).compactMap { $1 == .there ? nil : $0.id } }

    /// Returns the initiator's first ranges.
    mutating func begin() throws -> [VersionRange] {
        var out: [VersionRange] = [], room = RangeReconciliation.listsSize
        if versions.isEmpty { out.append(VersionRange(contents: .here([]))) } else { try divide(versions.indices, nil, &out, &room) }
        return say(out)
    }

    /// - Returns: the answer, or nil if none is needed.
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
                    // This frame has no room for more: the other side divides the range, or this side does in the next frame.
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

    /// Appends the hashes of a few versions, or the sums of the parts of many.
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

    /// Records a result for the open versions of a range.
    private mutating func settle(_ part: Range<Int>, _ lot: Lot) { for i in part where lots[i] == .open { lots[i] = lot } }

    /// Records which versions of a range are on the other side, given their hashes. Returns the hashes of those that are on this side,
    /// too.
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

    /// Returns the index of the first version that is not before a place.
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
