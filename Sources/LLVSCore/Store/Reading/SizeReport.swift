/// The options of `Store.size`: what it counts, and how it groups it.
public struct SizeQuery: Sendable {
    /// Only values whose ids have this prefix; empty for everything that is on the medium.
    public var prefix: [UInt8]
    /// How many parts of an id that end in "/" a group by prefix has, counted after `prefix`. `eachID` makes a group of each id.
    public var depth: Int
    /// The most groups by prefix, and the most by version, the largest ones. The others are combined in one group.
    public var limit: Int
    /// A depth at which each id is a group.
    public static let eachID = Int.max
    /// Creates a query, by default for everything, by the first part of the ids.
    public init(prefix: [UInt8] = [], depth: Int = 1, limit: Int = 1_000) {
        self.prefix = prefix; self.depth = depth; self.limit = limit
    }
}

/// A report of what takes space in a store: `Store.size`.
///
/// A value counts where it is stored, once, however many versions show it. A value that is stored as a difference counts with the bytes of
/// the difference. If several values are in one file, its bytes count once: for the first that prevails at a head, else for the first.
public struct SizeReport: Sendable {
    /// How a row groups bytes.
    public enum Group: UInt32, Sendable {
        /// By the kind of the bytes: see `Kind`.
        case kind = 1
        /// By the beginning of the ids of values.
        case prefix
        /// By the month, in UTC, in which the version was made that stored them: "2026-11".
        case month
        /// By the version that stored them.
        case version
    }

    /// The kinds of bytes.
    public enum Kind: Int, CaseIterable, Sendable {
        /// Headers and tables of changes: what a version is, without the bytes of its values.
        case record
        /// Values within records.
        case value
        /// Values in files of their own.
        case blob
        /// Values whose bytes are gone by intent: only their size and digest are stored, with `record`. This kind has their number and the
        /// bytes that they had, and none on the medium. They count in no other row, and not in `total`. The row exists only if there are
        /// such values.
        case hollow
        /// Caches, which can be built again.
        case cache
        /// Everything else: frames, reserved room, records that are stored twice, pending versions, pages of a database.
        case other
        /// The name of its row.
        public var name: String {
            switch self {
            case .record: "record"
            case .value: "value"
            case .blob: "blob"
            case .hollow: "hollow"
            case .cache: "cache"
            case .other: "other"
            }
        }
    }

    /// Counts of one group, or of everything.
    public struct Counts: Hashable, Sendable {
        /// Values that are stored.
        public var values: UInt64 = 0
        /// Bytes that these values have.
        public var valueBytes: UInt64 = 0
        /// Bytes on the medium.
        public var bytes: UInt64 = 0
        /// The part of `bytes` that belongs to values that prevail at a head.
        public var currentBytes: UInt64 = 0
        /// The part of `bytes` that belongs to values that prevail at no head: only the past holds them.
        public var pastBytes: UInt64 = 0
        /// Creates counts of zero.
        public init() {}

        static func += (a: inout Counts, b: Counts) {
            a.values &+= b.values; a.valueBytes &+= b.valueBytes; a.bytes &+= b.bytes
            a.currentBytes &+= b.currentBytes; a.pastBytes &+= b.pastBytes
        }

        mutating func addBody(_ size: UInt64, isCurrent: Bool) {
            bytes &+= size
            if isCurrent { currentBytes &+= size } else { pastBytes &+= size }
        }
        mutating func removePast(_ size: UInt64) { bytes &-= size; pastBytes &-= size }
    }

    /// One group.
    public struct Row: Hashable, Sendable {
        /// How it groups.
        public var group: Group
        /// The kind, the prefix, the month, or the id of the version; empty for combined groups, and for ids without a "/".
        public var name: [UInt8]
        /// In the row for the groups beyond the limit: the number of these groups; otherwise 0.
        public var combined: UInt64 = 0
        /// The counts of the row.
        public var counts: Counts
    }

    /// Versions whose changes were counted.
    public var versions: UInt64 = 0
    /// Those of the counted versions whose tables of changes are damaged: their unreadable parts count as `record`.
    public var unread: UInt64 = 0
    /// Everything.
    public var total = Counts()
    /// By kind, then by prefix, by month and by version. Prefixes and versions are sorted by bytes, the largest first; months by time. The
    /// kinds add up to the total, the prefixes to the kinds `value` and `blob`, and months and versions to these and `record`.
    public var rows: [Row] = []
}

/// Months of the Gregorian calendar, in UTC, as numbers: 12 for each year.
enum CalendarMonth {
    /// Returns the month of a time. Times before the year 1 count in its first month, times after 9999 in its last.
    static func number(ofSecondsSince2001 time: Double) -> Int {
        let days = (time / 86_400).rounded(.down)
        guard days > -730_485 else { return 12 }
        guard days < 2_921_574 else { return 9_999 * 12 + 11 }
        // Days since 0000-03-01: a year begins in March, so that its last day is a leap day or none.
        let day = Int(days) + 730_791, era = day / 146_097, ofEra = day % 146_097
        let year = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * year + year / 4 - year / 100), month = (5 * ofYear + 2) / 153
        return (era * 400 + year) * 12 + month + 2
    }

    /// Returns the day of the month, from 1, of a day from 2001-01-01 on.
    static func day(ofDaysSince2001 days: Int) -> Int {
        let ofEra = (days + 730_791) % 146_097
        let year = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * year + year / 4 - year / 100)
        return ofYear - (153 * ((5 * ofYear + 2) / 153) + 2) / 5 + 1
    }

    /// Returns the name of a month: "2026-11".
    static func text(_ month: Int) -> [UInt8] {
        let year = month / 12, of = month % 12 + 1
        func digits(_ numbers: Int...) -> [UInt8] { numbers.map { UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: $0) } }
        return digits(year / 1_000, year / 100 % 10, year / 10 % 10, year % 10) + [UInt8(ascii: "-")] + digits(of / 10, of % 10)
    }
}
