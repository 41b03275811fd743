/// The recent transfer rates to and from a place. A call with a time limit begins no transfer that would not end in time.
final class TransferRate: Sendable {
    enum Direction { case up, down }
    private struct Measured { var rate = 0.0, at = -Double.infinity }
    private let measured = Guarded<(up: Measured, down: Measured)>((Measured(), Measured()))
    private let clock: @Sendable () -> Double

    /// A smaller transfer measures the latency of a request instead of the rate.
    static let least = 256 << 10
    /// Seconds for which a rate is valid: later a device may be elsewhere, so a transfer that was too slow is tried again.
    static let life = 600.0

    init(_ clock: @escaping @Sendable () -> Double) { self.clock = clock }

    var now: Double { clock() }

    /// Records that this many bytes were moved since `start`.
    func moved(_ bytes: Int, since start: Double, _ direction: Direction) {
        let now = clock(), seconds = now - start
        guard bytes >= TransferRate.least, seconds > 0 else { return }
        let one = Measured(rate: Double(bytes) / seconds, at: now)
        measured.withLock { if direction == .up { $0.up = one } else { $0.down = one } }
    }

    /// Returns the bytes that can be moved until `end`; nil: unknown.
    func bytes(until end: Double, _ direction: Direction) -> Int? {
        let now = clock(), one = measured.withLock { direction == .up ? $0.up : $0.down }
        guard now - one.at < TransferRate.life else { return nil }
        return Int(min(max(0, (end - now) * one.rate), 1e15))
    }
}

extension PackedRun {
    /// Returns whether there is time for this many bytes; true if unknown.
    func hasTime(for bytes: Int, _ direction: TransferRate.Direction) -> Bool { (timeFor(direction) ?? .max) >= bytes }

    /// Returns the bytes for which there is time; nil: unlimited or unknown.
    func timeFor(_ direction: TransferRate.Direction) -> Int? {
        control.token.flatMap { $0.end < .infinity ? rate.bytes(until: $0.end, direction) : nil }
    }

    var hasNoTime: StoreError { OperationControl.cancelled(what) }
}
