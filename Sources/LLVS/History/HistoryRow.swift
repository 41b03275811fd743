extension History {
    /// What is known of one version, at the place of its ordinal.
    struct Row {
        var high: UInt64
        var low: UInt64
        var timestamp: Double
        /// When it was made, as far as that can be told: not before any of its ancestors. Seconds since 2001-01-01 UTC, as the timestamp.
        var made: Double
        var place: RecordPlace
        var valueDataSize: UInt64
        var first: UInt32
        var second: UInt32
        /// 0 for a root, else one more than the highest of its predecessors.
        var generation: UInt32
        /// Index into `branchNames`, or `none`.
        var branch: UInt32
        /// Heads of the linked lists of successors: an edge is ordinal × 2 + which predecessor it is of its successor.
        var firstEdge: UInt32
        var nextEdgeOfFirst: UInt32
        var nextEdgeOfSecond: UInt32
        var checksum: UInt32
        var changeCount: UInt32
        var state: State
        var traits: Traits
        var isText: Bool { traits.contains(.isText) }
        /// Stored or given up: what it is stays.
        var isSettled: Bool { state == .live || state == .dead || state == .virtual }
    }

    /// What is known of a version beyond its record.
    struct Traits: OptionSet {
        let rawValue: UInt8
        static let isText = Traits(rawValue: 1)
        /// Its changes were checked against its first predecessor's state: each changes something, an insert what was
        /// not there, an update or removal what was. Of records that come from elsewhere nobody knows.
        static let changeKindsVerified = Traits(rawValue: 2)
        /// It names bytes that other versions stored.
        static let preserves = Traits(rawValue: 4)
        /// Later, in canonical order, than each of its ancestors, and so is each of them.
        static let isLaterThanAncestors = Traits(rawValue: 8)
        /// The hashes of the ids that it changed are here.
        static let keysAreKnown = Traits(rawValue: 16)
        /// It carries a branch, and a version without one is built on it.
        static let isBehindUnbranched = Traits(rawValue: 32)
    }

    enum State: UInt8 {
        /// Being stored: nobody finds it by its id.
        case hidden
        /// A step of a fold that is not stored yet: those who know its id, the arbiter of the next step, can read it.
        case staged
        case live
        case dead
        /// The empty root where no version is built on it: read by those who name it, and part of nothing.
        case virtual
    }
}
