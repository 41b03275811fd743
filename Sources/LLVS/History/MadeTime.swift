/// When a version was made, as far as that can be told. The timestamp puts versions in order, so it is later than those of the ancestors,
/// however wrong the clocks of those who made them were; this is what clocks showed.
enum MadeTime {
    /// Under which a version carries what its maker's clock showed, where its timestamp is ahead of that: seconds since 2001-01-01 UTC, a
    /// JSON number. The id of the version covers it, and other implementations carry it along.
    static let clockKey = Array("__llvs_clock".utf8)
    /// Seconds by which clocks may differ without a word.
    static let tolerance = 60.0
    /// Seconds ahead of this device's clock from which on people are told of it.
    static let farAhead = 3_600.0
    /// A clock that shows less is known to be wrong: 2026-01-01, in seconds since 2001-01-01 UTC.
    static let earliest = 788_918_400.0

    static func json(_ time: Double) -> [UInt8] {
        var out: [UInt8] = []
        JSONNumber.append(time, to: &out)
        return out
    }

    /// What the metadata of a version say that its maker's clock showed; nil for anything but one JSON number.
    static func clock(_ metadata: Metadata) -> Double? {
        guard !metadata.isEmpty, let bytes = metadata[clockKey], bytes.count <= 64 else { return nil }
        return bytes.withUnsafeBytes { text in
            JSONNumber.end(of: text, from: 0) == text.count ? JSONNumber.double(text) : nil
        }
    }
}

extension History {
    /// What a version itself says: its maker's clock. One that stands right behind the timestamp of its newest predecessor, as merges do,
    /// and has no clock of its own, was made when that was.
    func claim(timestamp: Double, clock: Double?, first: UInt32, second: UInt32) -> Double {
        if let clock { return min(clock, timestamp) }
        var newest = first
        if second != History.none, first == History.none || rows[Int(second)].timestamp > rows[Int(first)].timestamp { newest = second }
        guard newest != History.none, rows[Int(newest)].made != rows[Int(newest)].timestamp,
            timestamp == Clock.after(rows[Int(newest)].timestamp)
        else { return timestamp }
        return rows[Int(newest)].made
    }

    /// The latest of what a version says and when its predecessors were made.
    func claimed(timestamp: Double, clock: Double?, first: UInt32, second: UInt32) -> Double {
        var time = claim(timestamp: timestamp, clock: clock, first: first, second: second)
        for predecessor in [first, second] where predecessor != History.none { time = max(time, rows[Int(predecessor)].made) }
        return time
    }
}

/// The timestamp of a version that was made here, and what its metadata say of the clock.
struct GivenTime {
    var timestamp: Double
    var clock: [UInt8]?
    init(_ version: Version) { (timestamp, clock) = (version.timestamp, version.metadata[MadeTime.clockKey]) }

    /// A version that is asked for again gets what it had, unless its maker says what the clock showed.
    func give(to version: inout Version) {
        version.timestamp = timestamp
        if version.metadata[MadeTime.clockKey] == nil { version.metadata[MadeTime.clockKey] = clock }
    }
}
