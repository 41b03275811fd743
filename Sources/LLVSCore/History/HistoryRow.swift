extension History {
    /// The data of one version, at the index of its ordinal.
    package struct Row {
        var high: UInt64
        var low: UInt64
        package var timestamp: Double
        /// When the version was made, as far as known: not before any of its ancestors. Seconds since 2001-01-01 UTC, as the timestamp.
        package var made: Double
        package var place: RecordPlace
        package var valueDataSize: UInt64
        package var first: UInt32
        package var second: UInt32
        /// 0 for a root, otherwise one more than the highest of its predecessors.
        package var generation: UInt32
        /// Index into `branchNames`, or `none`.
        var branch: UInt32
        /// The heads of linked lists of successors. An edge is ordinal × 2 + the position (0 or 1) of the predecessor in that successor.
        package var firstEdge: UInt32
        var nextEdgeOfFirst: UInt32
        var nextEdgeOfSecond: UInt32
        package var checksum: UInt32
        package var changeCount: UInt32
        package var state: State
        package var traits: Traits
        var isText: Bool { traits.contains(.isText) }
        /// Stored or discarded: the state does not change any more.
        package var isSettled: Bool { state == .live || state == .dead || state == .virtual }
    }

    /// Facts about a version that its record does not hold.
    package struct Traits: OptionSet {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        static let isText = Traits(rawValue: 1)
        /// The version's changes were checked against the state of its first predecessor: each has an effect, inserts add ids that were
        /// absent, updates and removals change ids that were present. Unset for records from elsewhere, which are not checked.
        package static let changeKindsVerified = Traits(rawValue: 2)
        /// The version refers to bytes that other versions stored.
        package static let preserves = Traits(rawValue: 4)
        /// In canonical order the version is later than each of its ancestors, and each ancestor is later than its own.
        package static let isLaterThanAncestors = Traits(rawValue: 8)
        /// The hashes of the ids that it changed are recorded.
        static let keysAreKnown = Traits(rawValue: 16)
        /// The version has a branch, and a version without a branch descends from it.
        static let isBehindUnbranched = Traits(rawValue: 32)
        /// The version's metadata say that it undoes other versions, or reverts an undo: `UndoMarks`.
        package static let undoes = Traits(rawValue: 64)
    }

    package enum State: UInt8 {
        /// Being stored, and not found by its id.
        case hidden
        /// A step of a fold that is not stored yet: readable by its id, which the arbiter of the next step knows.
        case staged
        /// Stored, and found by its id.
        case live
        /// Discarded: storing it failed, or its records cannot be read. Not found by its id; its ordinal is not used again.
        case dead
        /// The empty root while no version builds on it: readable by its id, but part of no listing.
        case virtual
    }
}
