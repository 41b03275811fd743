import CLLVS
import LLVS

// MARK: Arbiters

final class ArbiterHandle: Handle, @unchecked Sendable {
    let arbiter: any MergeArbiter
    init(_ arbiter: any MergeArbiter) { self.arbiter = arbiter }
}

/// The arbiter of an optional argument; NULL is most recent change.
func arbiter(_ pointer: OpaquePointer?) throws -> any MergeArbiter {
    try optionalHandle(pointer, ArbiterHandle.self, "arbiter")?.arbiter ?? BuiltInArbiter.mostRecentChange
}

/// An arbiter of the host.
struct HostArbiter: MergeArbiter {
    let resolve: llvs_resolve_fn
    let payload: Payload
    let fallback: (any MergeArbiter)?

    func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
        let view = try MergeView(merge, store)
        let resolution = Resolution()
        let status = try withExtendedLifetime((view, resolution)) {
            try callHost("The arbiter's callback", expecting: LLVS_PASS.rawValue) { resolve(payload.pointer, view.borrowed, resolution.borrowed, $0) }
        }
        guard status == LLVS_PASS.rawValue, let fallback else { return resolution.changes }
        let decided = resolution.decided
        return resolution.changes + (try fallback.resolve(merge, in: store)).filter { decided[$0.id] == nil }
    }
}

@_cdecl("llvs_arbiter_builtin") @implementation
public func llvs_arbiter_builtin(_ kind: llvs_arbiter_kind, _ arbiter: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    arbiter?.pointee = nil
    return entry(error) {
        let out = try required(arbiter, "arbiter")
        let builtin: BuiltInArbiter = switch kind {
        case LLVS_ARBITER_MOST_RECENT_CHANGE.rawValue: .mostRecentChange
        case LLVS_ARBITER_MOST_RECENT_BRANCH.rawValue: .mostRecentBranch
        case LLVS_ARBITER_OURS.rawValue: .ours
        case LLVS_ARBITER_THEIRS.rawValue: .theirs
        default: throw InputError.constant("kind", kind)
        }
        out.pointee = ArbiterHandle(builtin).owned
    }
}

@_cdecl("llvs_arbiter_create") @implementation
public func llvs_arbiter_create(_ resolve: llvs_resolve_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
                                _ fallback: OpaquePointer!, _ arbiter: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    let payload = Payload(payload, payload_free)
    arbiter?.pointee = nil
    return entry(error) {
        let out = try required(arbiter, "arbiter")
        guard let resolve else { throw InputError.null("resolve") }
        let fallback = try optionalHandle(fallback, ArbiterHandle.self, "fallback")?.arbiter
        out.pointee = ArbiterHandle(HostArbiter(resolve: resolve, payload: payload, fallback: fallback)).owned
    }
}

@_cdecl("llvs_arbiter_free") @implementation
public func llvs_arbiter_free(_ arbiter: OpaquePointer!) { free(arbiter, ArbiterHandle.self, leadsToStore: false) }

// MARK: What an arbiter decided

/// Behind `llvs_resolution`.
final class Resolution: Handle, @unchecked Sendable {
    private(set) var changes: [Value.Change] = []
    /// Where in `changes` each id is decided.
    private(set) var decided: [ValueID: Int] = [:]
    func add(_ added: [Value.Change]) {
        for change in added {
            if let i = decided[change.id] {
                changes[i] = change
            } else {
                decided[change.id] = changes.count
                changes.append(change)
            }
        }
    }
}

@_cdecl("llvs_resolution_add") @implementation
public func llvs_resolution_add(_ resolution: OpaquePointer!, _ changes: UnsafePointer<llvs_change>!, _ change_count: Int, _ change_size: Int, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try handle(resolution, Resolution.self, "resolution").add(ownedChanges(changes, change_count, change_size)) }
}

// MARK: What an arbiter sees

/// Behind `llvs_merge`.
final class MergeView: ListHandle<llvs_fork>, @unchecked Sendable {
    let merge: Merge
    let sides: VersionList
    let bases: VersionList
    let store: StoreHandle
    init(_ merge: Merge, _ store: Store) throws {
        self.merge = merge
        sides = try VersionList([merge.first, merge.second])
        bases = try VersionList(merge.bases)
        self.store = StoreHandle(store)
        try super.init(merge.forks) { item, arena in
            let fork = item.fork
            func stored(_ reference: Value.Reference?) throws -> llvs_bytes { try reference.map { try arena.copy($0.version) } ?? noBytes }
            return llvs_fork(
                struct_size: UInt32(MemoryLayout<llvs_fork>.size), kind: UInt32(fork.kind.rawValue), side: UInt32(fork.side?.rawValue ?? 0),
                conflicting: fork.isConflicting ? 1 : 0, id: try arena.copy(item.id.bytes),
                first: try stored(fork.first), second: try stored(fork.second), ancestor: try stored(fork.ancestor))
        }
    }
    func find(_ id: ValueID) -> UnsafePointer<llvs_fork>? {
        var low = 0, high = count
        while low < high {
            let middle = (low + high) / 2
            if merge.forks[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return low < count && merge.forks[low].id == id ? at(low) : nil
    }
}

@_cdecl("llvs_merge_first") @implementation
public func llvs_merge_first(_ merge: OpaquePointer!) -> UnsafePointer<llvs_version_info>! { peek(merge, MergeView.self)?.sides.at(0) }

@_cdecl("llvs_merge_second") @implementation
public func llvs_merge_second(_ merge: OpaquePointer!) -> UnsafePointer<llvs_version_info>! { peek(merge, MergeView.self)?.sides.at(1) }

@_cdecl("llvs_merge_ours") @implementation
public func llvs_merge_ours(_ merge: OpaquePointer!) -> UnsafePointer<llvs_version_info>! {
    peek(merge, MergeView.self).flatMap { $0.sides.at($0.merge.oursSide == .first ? 0 : 1) }
}

@_cdecl("llvs_merge_theirs") @implementation
public func llvs_merge_theirs(_ merge: OpaquePointer!) -> UnsafePointer<llvs_version_info>! {
    peek(merge, MergeView.self).flatMap { $0.sides.at($0.merge.oursSide == .first ? 1 : 0) }
}

@_cdecl("llvs_merge_bases") @implementation
public func llvs_merge_bases(_ merge: OpaquePointer!) -> OpaquePointer! { peek(merge, MergeView.self)?.bases.borrowed }

@_cdecl("llvs_merge_store") @implementation
public func llvs_merge_store(_ merge: OpaquePointer!) -> OpaquePointer! { peek(merge, MergeView.self)?.store.borrowed }

@_cdecl("llvs_merge_fork_count") @implementation
public func llvs_merge_fork_count(_ merge: OpaquePointer!) -> Int { peek(merge, MergeView.self)?.count ?? 0 }

@_cdecl("llvs_merge_fork_at") @implementation
public func llvs_merge_fork_at(_ merge: OpaquePointer!, _ index: Int) -> UnsafePointer<llvs_fork>! { peek(merge, MergeView.self)?.at(index) }

@_cdecl("llvs_merge_fork") @implementation
public func llvs_merge_fork(_ merge: OpaquePointer!, _ id: llvs_bytes) -> UnsafePointer<llvs_fork>! {
    guard let view = peek(merge, MergeView.self), let id = try? valueID(id, "id") else { return nil }
    return view.find(id)
}
