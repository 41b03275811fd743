/// A leaky bucket of seconds that decides how long the library waits for a slow transfer or a slow server.
///
/// Waiting drains it. Bytes and answers refill it, up to its initial level. It is a value without a clock: callers pass the time
/// (docs/remote-files.md, "Time-outs").
struct TransferPatience: Sendable {
    /// The rates, in bytes a second, at which the bucket stays level. The rate for listings is higher, since one request at a time fetches
    /// them.
    static let leastRate = 256.0, leastListingRate = 1_024.0
    /// The capacity of the bucket of one transfer, and of the bucket of a server for all its transfers, as multiples of the time-out.
    static let ofTransfer = 2.0, ofServer = 10.0
    /// The seconds that an answer adds besides its bytes, unless it is a listing.
    static let answer = 5.0
    /// The most seconds that one step drains. A thread that was busy elsewhere, or a machine that was asleep, was not waiting for the
    /// server.
    static let longestStep = 1.0

    private let most: Double
    private var left: Double, last: Double

    /// - Parameters:
    ///   - most: the capacity, in seconds.
    ///   - now: the time by a monotonic clock, as all times here.
    init(_ most: Double, at now: Double) { (self.most, left, last) = (most, most, now) }

    /// Returns whether the bucket is empty: the wait ends.
    var isAtEnd: Bool { left <= 0 }

    /// Drains the time since the last call, and adds the bytes that moved in it, at a rate in bytes a second.
    mutating func wait(until now: Double, bytes: Int, rate: Double) {
        left = min(most, left - min(max(0, now - last), TransferPatience.longestStep) + Double(max(0, bytes)) / max(1, rate))
        last = now
    }
    /// Refills the time since the last call. Call it if no transfer waited in that time.
    mutating func rest(until now: Double) { gain(max(0, now - last)); last = now }
    mutating func gain(_ seconds: Double) { left = min(most, left + seconds) }
    /// Resets the bucket to its initial level.
    mutating func begin(at now: Double) { (left, last) = (most, now) }
}
