/// How one value id differs between the two sides of a merge and their common ancestor.
///
///     ancestor  first  second   fork                                   conflicting
///     -         x      -        inserted(first)                        no
///     -         -      y        inserted(second)                       no
///     -         x      y        twiceInserted                          yes
///     o         x      o        updated(first)                         no
///     o         o      y        updated(second)                        no
///     o         x      y        twiceUpdated                           yes
///     o         -      o        removed(first)                         no
///     o         o      -        removed(second)                        no
///     o         -      -        twiceRemoved                           no
///     o         -      y        removedAndUpdated(removedOn: first)    yes
///     o         x      -        removedAndUpdated(removedOn: second)   yes
///
/// x and y have other bytes than o; - is absent. A value that was stored again with the bytes of o, or changed and reverted, counts as o.
/// If both sides have the same bytes, there is no fork.
public struct Fork: Hashable, Sendable {
    /// The rows of the table above.
    public enum Kind: UInt8, Sendable {
        /// Absent at the ancestor, present on one side.
        case inserted = 1
        /// Absent at the ancestor, different on both sides; conflicting.
        case twiceInserted
        /// Changed on one side.
        case updated
        /// Changed on both sides, differently; conflicting.
        case twiceUpdated
        /// Removed on one side.
        case removed
        /// Removed on both sides.
        case twiceRemoved
        /// Removed on one side (`Fork.side`), changed on the other; conflicting.
        case removedAndUpdated

        /// Whether an arbiter must decide.
        public var isConflicting: Bool {
            switch self {
            case .twiceInserted, .twiceUpdated, .removedAndUpdated: true
            case .inserted, .updated, .removed, .twiceRemoved: false
            }
        }
    }
    /// One of the two versions merged.
    public enum Side: UInt8, Sendable {
        /// The newer version's: the first predecessor of the merge.
        case first = 1
        /// The older version's.
        case second
        /// The other one.
        public var other: Side { self == .first ? .second : .first }
    }
    /// The row of the table.
    public var kind: Kind
    /// The side that inserted, updated or removed; nil if both did.
    public var side: Side?
    /// The value that prevails on the first side; nil if none does.
    public var first: Value.Reference?
    /// The value that prevails on the second side; nil if none does.
    public var second: Value.Reference?
    /// The value that prevails at the common ancestor; nil if none does, or several best common ancestors disagree about the id.
    public var ancestor: Value.Reference?
    /// The values of the best common ancestors, without duplicates: the ancestor's alone, or all if the ancestors disagree. Such
    /// ancestors come from versions that were merged across each other. A part of a value was changed on a side only if none of these
    /// holds it.
    public var ancestors: [Value.Reference] = []

    /// Whether an arbiter must decide.
    public var isConflicting: Bool { kind.isConflicting }
    /// Returns the value that prevails on a side.
    public func reference(on side: Side) -> Value.Reference? { side == .first ? first : second }
}

/// One merge as an arbiter sees it.
public final class Merge: Sendable {
    /// The newer of the two versions, whatever the order of the arguments. It is the merge's first predecessor.
    public let first: Version
    /// The older of the two versions.
    public let second: Version
    /// The side of the first argument, `ours`.
    public let oursSide: Fork.Side
    /// The best common ancestors, newest first; empty for a two-way merge.
    public let bases: [Version]
    /// In byte order of the ids.
    public let forks: [(id: ValueID, fork: Fork)]

    init(first: Version, second: Version, oursSide: Fork.Side, bases: [Version], forks: [(id: ValueID, fork: Fork)]) {
        self.first = first; self.second = second; self.oursSide = oursSide; self.bases = bases; self.forks = forks
    }
    /// The first argument of the merge.
    public var ours: Version { oursSide == .first ? first : second }
    /// The second argument of the merge.
    public var theirs: Version { oursSide == .first ? second : first }

    /// Returns the fork of an id. O(log forks).
    public func fork(_ id: ValueID) -> Fork? {
        var low = 0, high = forks.count
        while low < high {
            let middle = (low + high) / 2
            if forks[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return low < forks.count && forks[low].id == id ? forks[low].fork : nil
    }
}
