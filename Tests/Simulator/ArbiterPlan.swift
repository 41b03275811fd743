import LLVS

/// How a store resolves conflicts: the arbiter for the engine, and the same decisions for the model.
struct ArbiterPlan: Equatable {
    enum Kind: Int, CaseIterable {
        case mostRecentBranch, mostRecentChange, ours, theirs
        /// A callback of the host that stores bytes made from both sides.
        case joining
    }
    enum Decision { case first, second, bytes([UInt8]) }

    var kind = Kind.mostRecentChange
    /// Whether a built-in arbiter is called as one of the host is.
    var isWrapped = false
    /// Also changes an id that is in no conflict.
    var stamp: Stamp?
    struct Stamp: Equatable { var id: ValueID; var data: [UInt8] }

    var additions: [(ValueID, [UInt8])] { stamp.map { [($0.id, $0.data)] } ?? [] }
    /// Whether all stores that use it make the same merge versions.
    var isSymmetric: Bool { ![.ours, .theirs].contains(kind) }

    /// The decision of one conflict. Nil is a removal.
    func decide(_ first: [UInt8]?, _ second: [UInt8]?, oursIsFirst: Bool, firstIsStoredLater: Bool) -> Decision {
        switch kind {
        case .mostRecentBranch: return .first
        case .ours: return oursIsFirst ? .first : .second
        case .theirs: return oursIsFirst ? .second : .first
        case .mostRecentChange:
            if first == nil { return .second }
            if second == nil { return .first }
            return firstIsStoredLater ? .first : .second
        case .joining: return .bytes(ArbiterPlan.joined(first, second))
        }
    }

    /// A few bytes at most, whatever the sides hold.
    static func joined(_ a: [UInt8]?, _ b: [UInt8]?) -> [UInt8] {
        let parts = [a, b].compactMap { $0?.prefix(6) }.map(Array.init).sorted { $0.lexicographicallyPrecedes($1) }
        return Array(parts.joined(separator: [UInt8(ascii: "+")]))
    }

    /// The arbiter for the engine.
    func arbiter(_ defect: Defect?) -> any MergeArbiter {
        let builtIn: BuiltInArbiter? =
            switch kind {
            case .mostRecentBranch: .mostRecentBranch
            case .mostRecentChange: .mostRecentChange
            case .ours: .ours
            case .theirs: .theirs
            case .joining: nil
            }
        if let builtIn, !isWrapped, stamp == nil, defect != .arbiter { return builtIn }
        return Asked(builtIn: builtIn, additions: additions, isBroken: defect == .arbiter)
    }

    private struct Asked: MergeArbiter {
        var builtIn: BuiltInArbiter?
        var additions: [(ValueID, [UInt8])]
        var isBroken: Bool

        func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
            var changes =
                try builtIn?.resolve(merge, in: store)
                ?? merge.forks.filter(\.fork.isConflicting).map { id, fork in
                    func bytes(_ reference: Value.Reference?) throws -> [UInt8]? { try reference.flatMap { try store.value($0)?.data } }
                    return .update(id, data: ArbiterPlan.joined(try bytes(fork.first), try bytes(fork.second)))
                }
            if isBroken {
                // Loses an update that was made against a removal.
                for (id, fork) in merge.forks where fork.kind == .removedAndUpdated {
                    if let i = changes.firstIndex(where: { $0.id == id }) { changes[i] = .remove(id) }
                }
            }
            for (id, data) in additions {
                changes.removeAll { $0.id == id }
                changes.append(.update(id, data: data))
            }
            return changes
        }
    }
}

/// What `--defect` breaks on purpose, to see that the simulator notices it.
enum Defect: String, CaseIterable {
    /// An update against a removal is lost.
    case arbiter
    /// Some files never arrive, and no error reports it.
    case transport
    /// The last record is lost by a restart.
    case storage
    /// Nothing checks that versions have the contents that their ids imply.
    case ids
}
