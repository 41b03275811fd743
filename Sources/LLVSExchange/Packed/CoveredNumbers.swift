/// The numbers of writers whose packs were read, as disjoint ranges: docs/pack-format.md, section 7.
struct CoveredNumbers {
    private(set) var ranges: [UInt64: [PackServices.Range]] = [:]

    /// The most ranges of one writer, and the most writers: a pack may claim anything. Forgetting some costs a listing, but no version.
    static let rangesLimit = 4_096, writersLimit = 65_536

    init() {}
    init(_ all: [PackServices.Range]) { add(all) }
    /// All ranges, sorted.
    var all: [PackServices.Range] { PackServices.joined(ranges.values.flatMap { $0 }) }

    mutating func add(_ more: [PackServices.Range]) {
        for (writer, more) in Dictionary(grouping: more, by: \.writer) {
            guard ranges[writer] != nil || ranges.count < CoveredNumbers.writersLimit else { continue }
            ranges[writer] = Array(PackServices.joined((ranges[writer] ?? []) + more).prefix(CoveredNumbers.rangesLimit))
        }
    }
    mutating func add(_ name: PackName) { add([CoveredNumbers.range(name)]) }
    static func range(_ name: PackName) -> PackServices.Range {
        PackServices.Range(writer: name.writer, first: name.first, last: name.last)
    }

    func has(_ writer: UInt64, _ number: UInt32) -> Bool { ranges[writer]?.contains { $0.first <= number && number <= $0.last } ?? false }

    /// Returns whether a number below the largest one is neither covered nor listed.
    /// - Parameter listed: numbers of log packs of that writer.
    func hasGap(_ writer: UInt64, listed: [UInt32]) -> Bool {
        guard let largest = listed.max() else { return false }
        let all = PackServices.joined(
            (ranges[writer] ?? []) + listed.map { PackServices.Range(writer: writer, first: $0, last: $0) })
        guard let first = all.first else { return false }
        return first.first != 1 || first.last < largest
    }
}
