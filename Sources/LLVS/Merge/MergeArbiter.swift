/// Resolves the conflicts of a merge.
///
/// Returns changes to apply to the first side. Every conflicting fork must be covered by one; other ids may
/// be changed, too; what is left alone, the store brings over from the second side. Called without any lock
/// of the store held: it may read the store, also at `merge.first` and `merge.second`. An error that it throws
/// surfaces unchanged from the merge, and nothing is stored.
public protocol MergeArbiter: Sendable {
    /// Decides a merge.
    /// - Parameters:
    ///   - merge: the two versions, what they have in common, and how each value differs.
    ///   - store: to read values of any version by.
    /// - Returns: changes to the first side, at most one for each id, with one for each conflicting fork.
    func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change]
}

/// The arbiters that come with the store.
public enum BuiltInArbiter: UInt32, MergeArbiter {
    /// Every conflict goes to the newer of the two versions; a removal there wins, too.
    case mostRecentBranch = 1
    /// Per conflict the change stored in the later version wins; an update beats a removal whatever their times.
    case mostRecentChange
    /// The first argument's side wins. Such merges depend on who makes them.
    case ours
    /// The second argument's side wins.
    case theirs

    public func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
        try merge.forks.filter(\.fork.isConflicting).map { id, fork in
            let winner = try winner(fork.first, fork.second, oursSide: merge.oursSide) { try store.isLater($0.version, $1.version) }
            return fork.reference(on: winner).map { .preserve($0) } ?? .remove(id)
        }
    }

    /// The side that wins a conflict between what prevails on the first side and on the second.
    func winner<Reference>(
        _ first: Reference?, _ second: Reference?, oursSide: Fork.Side, isStoredLater: (Reference, Reference) throws -> Bool
    ) rethrows -> Fork.Side {
        switch self {
        case .mostRecentBranch: return .first
        case .ours: return oursSide
        case .theirs: return oursSide.other
        case .mostRecentChange:
            switch (first, second) {
            case (let first?, let second?): return try isStoredLater(first, second) ? .first : .second
            case (nil, _): return .second
            case (_, nil): return .first
            }
        }
    }
}

/// What a merge asks of the two versions' relation.
public enum MergeRelation: UInt32, Sendable {
    /// Three-way when they have a common ancestor, else two-way.
    case any = 0
    /// Refuses versions without a common ancestor with `.noCommonAncestor`.
    case related
    /// Always two-way, as if the ancestor were empty.
    case unrelated
}

/// Which heads `mergeHeads` folds.
public enum HeadSelection: Sendable {
    /// Every head, on whatever branch.
    case all
    /// The default: versions without a branch that no other such version has among its ancestors.
    case unbranched
    /// Those of `unbranched`, and the newest head of each of these branches.
    case unbranchedAnd([String])
    /// The heads of these branches alone.
    case branches([String])
}

extension Store {
    /// Later by (timestamp, id).
    func isLater(_ a: VersionID, _ b: VersionID) throws -> Bool {
        let x = try requireOrdinal(a), y = try requireOrdinal(b)
        return lock.withRead { dag.isNewer(x, y) }
    }
}
