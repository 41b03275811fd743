/// How long a slow transfer, or a slow server, is still waited for: a leaky bucket of seconds. Waiting takes from it, what comes adds to
/// it, up to what it began with. A value that is told what time it is, and does nothing by itself (docs/remote-files.md, "Time-outs").
struct TransferPatience: Sendable {
    /// Bytes a second that a transfer must move at least; a listing, which one request at a time asks for, must come faster.
    static let leastRate = 256.0, leastListingRate = 1_024.0
    /// How many times the time-out a transfer may be slower than that, and all transfers of a server together.
    static let ofTransfer = 2.0, ofServer = 10.0
    /// Seconds that an answer is worth beside its bytes, unless it is a listing.
    static let answer = 5.0
    /// A thread that was busy elsewhere, or a machine that was asleep, did not wait for the server: so many seconds count at once.
    static let longestStep = 1.0

    private let most: Double
    private var left: Double, last: Double

    /// - Parameters:
    ///   - most: seconds.
    ///   - now: by a clock that only grows, as all times here.
    init(_ most: Double, at now: Double) { (self.most, left, last) = (most, most, now) }

    /// Nothing more is waited for.
    var isAtEnd: Bool { left <= 0 }

    /// The server was waited for until now, while so many bytes moved.
    mutating func wait(until now: Double, bytes: Int, rate: Double) {
        left = min(most, left - min(max(0, now - last), TransferPatience.longestStep) + Double(max(0, bytes)) / max(1, rate))
        last = now
    }
    /// Nobody waited since it was told of last.
    mutating func rest(until now: Double) { gain(max(0, now - last)); last = now }
    mutating func gain(_ seconds: Double) { left = min(most, left + seconds) }
    /// All is as in the beginning.
    mutating func begin(at now: Double) { (left, last) = (most, now) }
}
