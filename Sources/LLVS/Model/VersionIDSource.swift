/// Makes ids of new versions: random upper-case UUIDs. Safe from all threads.
///
/// The system is asked for the randomness of many ids at once, since asking costs as much as storing a version. So that
/// two that go on from a copy of this memory (a child of a fork, a machine restored from a snapshot) do not make the same
/// ids, the time of each goes into it, too.
final class VersionIDSource: @unchecked Sendable {
    private static let batch = 64
    private let lock = Lock()
    private var words: [UInt64] = []

    func next() -> VersionID {
        let time = UInt64(truncatingIfNeeded: System.now)
        lock.lock()
        defer { lock.unlock() }
        if words.count < 2 {
            guard let bytes = try? System.random(VersionIDSource.batch * 16) else { return VersionID.random() }
            bytes.withUnsafeBytes { bytes in
                words = (0..<2 * VersionIDSource.batch).map { bytes.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self) }
            }
        }
        // An odd factor loses nothing of the time, and what is random stays so, whatever it is combined with.
        let mixed = time &* 0x9E37_79B9_7F4A_7C15
        guard let high = words.popLast(), let low = words.popLast() else { return VersionID.random() }
        return VersionID(randomHigh: high ^ mixed, low: low ^ mixed.byteSwapped)
    }
}
