/// Resolves the conflicts of a merge.
///
/// It returns changes to apply to the first side. They must cover every conflicting fork, and may change other ids. Of the ids that they
/// do not change, the store adopts what the second side alone changed. It is called without any lock of the store: it may read the store,
/// also at `merge.first` and `merge.second`. If it throws, the merge throws the same error, and nothing is stored.
public protocol MergeArbiter: Sendable {
    /// Decides a merge.
    /// - Parameters:
    ///   - merge: the two versions, their common ancestors, and how each value differs.
    ///   - store: for reading values of any version.
    /// - Returns: changes to the first side, at most one for each id, with one for each conflicting fork.
    func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change]
}

/// The arbiters that come with the store.
public enum BuiltInArbiter: UInt32, MergeArbiter {
    /// The newer of the two versions wins every conflict, also with a removal.
    case mostRecentBranch = 1
    /// For each conflict, the change stored in the later version wins. An update beats a removal whatever their times.
    case mostRecentChange
    /// The first argument's side wins. The result of such merges depends on which device makes them.
    case ours
    /// The second argument's side wins.
    case theirs

    public func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
        try merge.forks.filter(\.fork.isConflicting).map { id, fork in
            let winner = try winner(fork.first, fork.second, oursSide: merge.oursSide) { try store.isLater($0.version, $1.version) }
            return fork.reference(on: winner).map { .preserve($0) } ?? .remove(id)
        }
    }

    /// Returns the side that wins a conflict between the first and the second side's values.
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

/// The relation of the two versions that a merge requires.
public enum MergeRelation: UInt32, Sendable {
    /// Three-way when they have a common ancestor, else two-way.
    case any = 0
    /// Refuses versions without a common ancestor with `.noCommonAncestor`.
    case related
    /// Always two-way, as if the ancestor were empty.
    case unrelated
}

/// The heads that `mergeHeads` folds.
public enum HeadSelection: Sendable {
    /// All heads, on any branch.
    case all
    /// The default: versions without a branch that no other such version has among its ancestors.
    case unbranched
    /// The heads of `unbranched`, and the newest head of each of these branches.
    case unbranchedAnd([String])
    /// Only the heads of these branches.
    case branches([String])
}

extension Store {
    /// Returns whether a version is later than another by (timestamp, id).
    func isLater(_ a: VersionID, _ b: VersionID) throws -> Bool {
        let x = try requireOrdinal(a), y = try requireOrdinal(b)
        return lock.withRead { dag.isNewer(x, y) }
    }
}
