/// When a version was made, as far as known. The timestamp orders versions, so it is later than those of the ancestors, however wrong their
/// makers' clocks were. This time is what the clocks showed.
enum MadeTime {
    /// The metadata key of the maker's clock, set if the timestamp is ahead of it: seconds since 2001-01-01 UTC, a JSON number. The
    /// version's id covers it, and other implementations preserve it.
    static let clockKey = Array("__llvs_clock".utf8)
    /// Seconds by which clocks may differ without a report.
    static let tolerance = 60.0
    /// Seconds ahead of this device's clock from which a version is reported.
    static let farAhead = 3_600.0
    /// A clock that shows an earlier time is known to be wrong: 2026-01-01, in seconds since 2001-01-01 UTC.
    static let earliest = 788_918_400.0

    static func json(_ time: Double) -> [UInt8] {
        var out: [UInt8] = []
        JSONNumber.append(time, to: &out)
        return out
    }

    /// Returns the clock in the metadata of a version; nil for anything but one JSON number.
    static func clock(_ metadata: Metadata) -> Double? {
        guard !metadata.isEmpty, let bytes = metadata[clockKey], bytes.count <= 64 else { return nil }
        return bytes.withUnsafeBytes { text in
            JSONNumber.end(of: text, from: 0) == text.count ? JSONNumber.double(text) : nil
        }
    }
}

extension History {
    /// Returns the time that a version claims: its maker's clock. If it has none, and its timestamp directly follows that of its newest
    /// predecessor, as in merges, it claims the time of that predecessor.
    func claim(timestamp: Double, clock: Double?, first: UInt32, second: UInt32) -> Double {
        if let clock { return min(clock, timestamp) }
        var newest = first
        if second != History.none, first == History.none || rows[Int(second)].timestamp > rows[Int(first)].timestamp { newest = second }
        guard newest != History.none, rows[Int(newest)].made != rows[Int(newest)].timestamp,
            timestamp == Clock.after(rows[Int(newest)].timestamp)
        else { return timestamp }
        return rows[Int(newest)].made
    }

    /// Returns the latest of the time that a version claims and the times at which its predecessors were made.
    func claimed(timestamp: Double, clock: Double?, first: UInt32, second: UInt32) -> Double {
        var time = claim(timestamp: timestamp, clock: clock, first: first, second: second)
        for predecessor in [first, second] where predecessor != History.none { time = max(time, rows[Int(predecessor)].made) }
        return time
    }
}

/// The timestamp of a version made here, and the clock in its metadata.
struct GivenTime {
    var timestamp: Double
    var clock: [UInt8]?
    init(_ version: Version) { (timestamp, clock) = (version.timestamp, version.metadata[MadeTime.clockKey]) }

    /// Gives a version that is made again the same time, unless its metadata name a clock.
    func give(to version: inout Version) {
        version.timestamp = timestamp
        if version.metadata[MadeTime.clockKey] == nil { version.metadata[MadeTime.clockKey] = clock }
    }
}
