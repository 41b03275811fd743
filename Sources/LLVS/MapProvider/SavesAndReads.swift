/// How many versions were saved one upon the other while looking back, in the few branches that were gone on with last. Safe
/// from all threads.
final class SavedLines: @unchecked Sendable {
    private let lock = Lock()
    /// The one gone on with last is the last.
    private var chains: [(tip: UInt32, count: Int)] = []

    /// A version was saved on another so.
    func add(_ ordinal: UInt32, on first: UInt32) {
        lock.withLock {
            let known = chains.firstIndex { $0.tip == first }
            let count = known.map { chains.remove(at: $0).count } ?? 0
            if chains.count == MapPolicy.mostChains { chains.removeFirst() }
            chains.append((ordinal, count + 1))
        }
    }

    /// How many end at a version.
    func count(endingAt ordinal: UInt32) -> Int { lock.withLock { chains.last { $0.tip == ordinal }?.count ?? 0 } }
}

/// How often values were read at past versions lately. Safe from all threads.
final class PastReads: @unchecked Sendable {
    private let lock = Lock()
    private var slots: [(ordinal: UInt32, count: Int)] = Array(repeating: (History.none, 0), count: 64)

    /// Counts one more; answers how many there were, or fewer where others took the place meanwhile.
    func count(_ ordinal: UInt32) -> Int {
        lock.withLock {
            let i = Int(ordinal) & (slots.count - 1)
            if slots[i].ordinal != ordinal { slots[i] = (ordinal, 0) }
            slots[i].count &+= 1
            return slots[i].count
        }
    }
}
