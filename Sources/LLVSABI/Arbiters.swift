import CLLVS
import LLVSCoordinator

// MARK: Arbiters

final class ArbiterHandle: Handle, @unchecked Sendable {
    let arbiter: any MergeArbiter
    init(_ arbiter: any MergeArbiter) { self.arbiter = arbiter }
}

/// Returns the arbiter of an optional argument. NULL means the rules of the store.
func arbiter(_ pointer: OpaquePointer?) throws -> any MergeArbiter {
    try optionalHandle(pointer, ArbiterHandle.self, "arbiter")?.arbiter ?? RulesArbiter()
}

/// An arbiter implemented by the host.
struct HostArbiter: MergeArbiter {
    let resolve: llvs_resolve_fn
    let payload: Payload
    let fallback: (any MergeArbiter)?

    func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
        let view = try MergeView(merge, store)
        let resolution = Resolution()
        let status = try withExtendedLifetime((view, resolution)) {
            try callHost("The arbiter's callback", expecting: LLVS_PASS.rawValue) {
                resolve(payload.pointer, view.contents, resolution.borrowed, $0)
            }
        }
        guard status == LLVS_PASS.rawValue, let fallback else { return resolution.decisions.changes }
        return try resolution.decisions.completed(by: fallback, merge, in: store)
    }
}

@_cdecl("llvs_arbiter_builtin") @implementation
public func llvs_arbiter_builtin(_ kind: llvs_arbiter_kind, _ arbiter: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    arbiter?.pointee = nil
    return entry(error) {
        let out = try required(arbiter, "arbiter")
        let builtin: BuiltInArbiter =
            switch kind {
            case LLVS_ARBITER_MOST_RECENT_CHANGE.rawValue: .mostRecentChange
            case LLVS_ARBITER_MOST_RECENT_BRANCH.rawValue: .mostRecentBranch
            case LLVS_ARBITER_OURS.rawValue: .ours
            case LLVS_ARBITER_THEIRS.rawValue: .theirs
            default: throw InputError.constant("kind", kind)
            }
        out.pointee = ArbiterHandle(builtin).owned
    }
}

@_cdecl("llvs_arbiter_rules") @implementation
public func llvs_arbiter_rules(_ rules: llvs_bytes, _ arbiter: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    arbiter?.pointee = nil
    return entry(error) {
        let out = try required(arbiter, "arbiter")
        let given = try rules.size == 0 ? nil : schema(rules, partly: true)
        out.pointee = ArbiterHandle(RulesArbiter(given)).owned
    }
}

/// A value merger implemented by the host.
struct HostValueMerger: ValueMerger {
    let merge: llvs_merge_value_fn
    let payload: Payload

    func merge(_ question: ValueQuestion) throws -> ValueAnswer {
        let id = try ValueID(utf8: question.id), resolution = Resolution(), view = try QuestionView(question)
        let status = try withExtendedLifetime((view, resolution)) {
            try callHost("The value merger's callback for \"\(id)\"", expecting: LLVS_PASS.rawValue) {
                merge(payload.pointer, view.contents, resolution.borrowed, $0)
            }
        }
        return try resolution.decisions.answer(for: id, passes: status == LLVS_PASS.rawValue)
    }
}

/// Behind `llvs_value_question`, while the callback runs.
final class QuestionView: StructHandle<llvs_value_question>, @unchecked Sendable {
    init(_ question: ValueQuestion) throws {
        let arena = Arena()
        func bytes(_ bytes: [UInt8]?) throws -> llvs_bytes { try bytes.map { try arena.copy($0) } ?? noBytes }
        try super.init(
            arena,
            llvs_value_question(
                struct_size: UInt32(sizeOf: llvs_value_question.self), reserved: 0, id: try bytes(question.id),
                path: try bytes(question.path),
                base: try bytes(question.base), newer: try bytes(question.newer), older: try bytes(question.older)))
    }
}

@_cdecl("llvs_value_merger_create") @implementation
public func llvs_value_merger_create(
    _ merge: llvs_merge_value_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!, _ rules: llvs_bytes,
    _ arbiter: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    let payload = Payload(payload, payload_free)
    arbiter?.pointee = nil
    return entry(error) {
        let out = try required(arbiter, "arbiter")
        guard let merge else { throw InputError.null("merge") }
        let given = try rules.size == 0 ? nil : schema(rules, partly: true)
        out.pointee = ArbiterHandle(RulesArbiter(given, merger: HostValueMerger(merge: merge, payload: payload))).owned
    }
}

@_cdecl("llvs_arbiter_create") @implementation
public func llvs_arbiter_create(
    _ resolve: llvs_resolve_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
    _ fallback: OpaquePointer!, _ arbiter: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
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

// MARK: Decisions of an arbiter

/// Behind `llvs_resolution`.
final class Resolution: Handle, @unchecked Sendable {
    var decisions = Decisions()
}

@_cdecl("llvs_resolution_add") @implementation
public func llvs_resolution_add(
    _ resolution: OpaquePointer!, _ changes: UnsafePointer<llvs_change>!, _ change_count: Int, _ change_size: Int, _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        try handle(resolution, Resolution.self, "resolution").decisions.add(ownedChanges(changes, change_count, change_size))
    }
}

// MARK: Inputs of an arbiter

/// Behind `llvs_merge`, while the callback runs.
final class MergeView: StructHandle<llvs_merge>, @unchecked Sendable {
    private let bases: VersionList
    private let store: StoreHandle

    init(_ merge: Merge, _ store: Store) throws {
        let arena = Arena()
        bases = try VersionList(merge.bases)
        self.store = StoreHandle(store)
        let sides = try Items([merge.first, merge.second], in: arena, { try llvs_version_info($0, in: $1) })
        let forks = try Items(merge.forks, in: arena) { item, arena in
            let fork = item.fork
            func stored(_ reference: Value.Reference?) throws -> llvs_bytes { try reference.map { try arena.copy($0.version) } ?? noBytes }
            let ancestors = try arena.array(llvs_bytes.self, fork.ancestors.count)
            for (i, reference) in fork.ancestors.enumerated() { (ancestors + i).initialize(to: try arena.copy(reference.version)) }
            return llvs_fork(
                struct_size: UInt32(sizeOf: llvs_fork.self), kind: UInt32(fork.kind.rawValue), side: UInt32(fork.side?.rawValue ?? 0),
                conflicting: fork.isConflicting ? 1 : 0, id: try arena.copy(item.id.bytes),
                first: try stored(fork.first), second: try stored(fork.second), ancestor: try stored(fork.ancestor),
                ancestors: fork.ancestors.isEmpty ? nil : UnsafePointer(ancestors), ancestor_count: fork.ancestors.count)
        }
        let isFirstOurs = merge.oursSide == .first
        try super.init(
            arena,
            llvs_merge(
                struct_size: UInt32(sizeOf: llvs_merge.self), reserved: 0, first: sides.start[0], second: sides.start[1],
                ours: sides.start[isFirstOurs ? 0 : 1], theirs: sides.start[isFirstOurs ? 1 : 0],
                bases: UnsafePointer(bases.contents), store: self.store.borrowed, forks: forks.start, fork_count: forks.count))
    }
}
