/// How often something was done lately at versions whose maps are not here, for `MapPolicy`: so many times, and a map pays. Safe from all
/// threads.
final class UseCounts: Sendable {
    enum Use: UInt32 {
        /// A value was read there.
        case read
        /// And was looked for in the record of this version, which has many changes.
        case largeRead
        /// Versions were saved one upon the other, the last of which is this one.
        case save
    }
    private typealias Slot = (ordinal: UInt32, use: Use, count: Int)
    /// The few that came last: each takes the place of another of the same number.
    private let slots = Guarded<[Slot]>(Array(repeating: (History.none, .read, 0), count: 256))

    private static func place(_ use: Use, _ ordinal: UInt32) -> Int { Int((ordinal &* 4 &+ use.rawValue) & 255) }

    /// How many there were, or fewer where others took the place meanwhile.
    func count(_ use: Use, at ordinal: UInt32) -> Int {
        slots.withLock { slots in
            let slot = slots[UseCounts.place(use, ordinal)]
            return slot.ordinal == ordinal && slot.use == use ? slot.count : 0
        }
    }

    /// Counts one more; answers how many there were with it. `after`: those of that version count for this one from now on.
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
