/// How fast bytes went to a place, and came from there, in the last minutes: by it a call that is to end at some time begins nothing that
/// would not be there by then.
final class TransferRate: Sendable {
    enum Direction { case up, down }
    private struct Measured { var rate = 0.0, at = -Double.infinity }
    private let measured = Guarded<(up: Measured, down: Measured)>((Measured(), Measured()))
    private let clock: @Sendable () -> Double

    /// Fewer bytes tell more of how long a request takes than of how fast bytes go.
    static let least = 256 << 10
    /// Seconds for which a rate counts: later a device may be elsewhere, and what was not begun for its rate is tried.
    static let life = 600.0

    init(_ clock: @escaping @Sendable () -> Double) { self.clock = clock }

    var now: Double { clock() }

    /// So many bytes were moved since a moment.
    func moved(_ bytes: Int, since start: Double, _ direction: Direction) {
        let now = clock(), seconds = now - start
        guard bytes >= TransferRate.least, seconds > 0 else { return }
        let one = Measured(rate: Double(bytes) / seconds, at: now)
        measured.withLock { if direction == .up { $0.up = one } else { $0.down = one } }
    }

    /// How many bytes there is time for until a moment; nil: nobody knows.
    func bytes(until end: Double, _ direction: Direction) -> Int? {
        let now = clock(), one = measured.withLock { direction == .up ? $0.up : $0.down }
        guard now - one.at < TransferRate.life else { return nil }
        return Int(min(max(0, (end - now) * one.rate), 1e15))
    }
}

extension PackedRun {
    /// Whether there is time for so many bytes, as far as is known.
    func hasTime(for bytes: Int, _ direction: TransferRate.Direction) -> Bool { (timeFor(direction) ?? .max) >= bytes }

    /// Bytes for which there is time; nil: any, or nobody knows.
    func timeFor(_ direction: TransferRate.Direction) -> Int? {
        control.token.flatMap { $0.end < .infinity ? rate.bytes(until: $0.end, direction) : nil }
    }

    var hasNoTime: StoreError { OperationControl.cancelled(what) }
}
