/// Counts recent operations at versions whose maps are not in memory, for `MapPolicy`: after enough of them a map saves time. Safe
/// from all threads.
final class UseCounts: Sendable {
    enum Use: UInt32 {
        /// A value was read at this version.
        case read
        /// A value was searched in the record of this version, which has many changes.
        case largeRead
        /// Versions were saved in sequence, and this is the last one.
        case save
    }
    private typealias Slot = (ordinal: UInt32, use: Use, count: Int)
    /// The most recent counts; a count replaces another with the same slot.
    private let slots = Guarded<[Slot]>(Array(repeating: (History.none, .read, 0), count: 256))

    private static func place(_ use: Use, _ ordinal: UInt32) -> Int { Int((ordinal &* 4 &+ use.rawValue) & 255) }

    /// Returns the count, or less if another version's count replaced it meanwhile.
    func count(_ use: Use, at ordinal: UInt32) -> Int {
        slots.withLock { slots in
            let slot = slots[UseCounts.place(use, ordinal)]
            return slot.ordinal == ordinal && slot.use == use ? slot.count : 0
        }
    }

    /// Increments the count and returns it. `after`: carries over the count of that version.
    @discardableResult
    func add(_ use: Use, at ordinal: UInt32, after: UInt32? = nil) -> Int {
        slots.withLock { slots in
            let before = slots[UseCounts.place(use, after ?? ordinal)]
            let isKnown = before.ordinal == after ?? ordinal && before.use == use
            let count = (isKnown ? before.count : 0) &+ 1
            slots[UseCounts.place(use, ordinal)] = (ordinal, use, count)
            return count
        }
    }
}
