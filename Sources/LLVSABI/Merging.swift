import CLLVS
import LLVSCoordinator

// MARK: Merging

/// The options of a merge, converted for the engine.
struct MergeSettings {
    var relation = MergeRelation.any
    var selection = HeadSelection.unbranched
    var metadata = Metadata()
    var control = OperationControl()
    var parent = Fork.Side.first
    var version: VersionID?

    init(_ input: UnsafePointer<llvs_merge_options>?) throws {
        guard let input = try optionalStruct(input, "llvs_merge_options", earlierSizes: [56]) else { return }
        parent =
            switch input.parent {
            case LLVS_SIDE_NONE.rawValue, LLVS_SIDE_FIRST.rawValue: .first
            case LLVS_SIDE_SECOND.rawValue: .second
            default: throw InputError.constant("parent", input.parent)
            }
        relation =
            switch input.relation {
            case LLVS_RELATION_ANY.rawValue: .any
            case LLVS_RELATION_RELATED.rawValue: .related
            case LLVS_RELATION_UNRELATED.rawValue: .unrelated
            default: throw InputError.constant("relation", input.relation)
            }
        let branches = try elements(input.branches, input.branch_count, "branches").map { try text($0, "branches") }
        selection =
            switch input.selection {
            case LLVS_HEADS_UNBRANCHED.rawValue: .unbranched
            case LLVS_HEADS_ALL.rawValue: .all
            case LLVS_HEADS_UNBRANCHED_AND_BRANCHES.rawValue: .unbranchedAnd(branches)
            case LLVS_HEADS_BRANCHES.rawValue: .branches(branches)
            default: throw InputError.constant("selection", input.selection)
            }
        metadata = try LLVSABI.metadata(input.metadata, input.metadata_count)
        control = try LLVSABI.control(input.control)
        version = try optionalVersionID(input.version, "llvs_merge_options.version")
    }
}

@_cdecl("llvs_store_merge") @implementation
public func llvs_store_merge(
    _ store: OpaquePointer!, _ ours: llvs_bytes, _ theirs: llvs_bytes, _ arbiter: OpaquePointer!,
    _ options: UnsafePointer<llvs_merge_options>!, _ version: StructOut<llvs_version_list>!, _ error: ErrorOut!
) -> llvs_status {
    version?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store)
        let settings = try MergeSettings(options)
        let merged = try store.merge(
            versionID(ours, "ours"), with: versionID(theirs, "theirs"), arbiter: LLVSABI.arbiter(arbiter),
            metadata: settings.metadata, relation: settings.relation, control: settings.control)
        if let version { version.pointee = try VersionList([merged]).handedOut }
    }
}

@_cdecl("llvs_store_merge_heads") @implementation
public func llvs_store_merge_heads(
    _ store: OpaquePointer!, _ into: llvs_bytes, _ arbiter: OpaquePointer!,
    _ options: UnsafePointer<llvs_merge_options>!, _ version: StructOut<llvs_version_list>!, _ error: ErrorOut!
) -> llvs_status {
    version?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store)
        let settings = try MergeSettings(options)
        let merged = try store.mergeHeads(
            into: versionID(into, "into"), arbiter: LLVSABI.arbiter(arbiter),
            selection: settings.selection, metadata: settings.metadata, control: settings.control)
        if let version, let merged { version.pointee = try VersionList([merged]).handedOut }
    }
}

@_cdecl("llvs_store_revert") @implementation
public func llvs_store_revert(
    _ store: OpaquePointer!, _ version: llvs_bytes, _ at: llvs_bytes, _ options: UnsafePointer<llvs_merge_options>!,
    _ result: StructOut<llvs_revert_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store)
        let settings = try MergeSettings(options)
        let made = try store.revert(
            versionID(version, "version"), at: versionID(at, "at"), parent: settings.parent, metadata: settings.metadata,
            control: settings.control)
        if let result { result.pointee = try RevertResultHandle(made).handedOut }
    }
}

@_cdecl("llvs_store_cherry_pick") @implementation
public func llvs_store_cherry_pick(
    _ store: OpaquePointer!, _ version: llvs_bytes, _ onto: llvs_bytes, _ options: UnsafePointer<llvs_merge_options>!,
    _ result: StructOut<llvs_revert_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store), settings = try MergeSettings(options)
        let made = try store.cherryPick(
            versionID(version, "version"), onto: versionID(onto, "onto"), parent: settings.parent, metadata: settings.metadata,
            control: settings.control)
        if let result { result.pointee = try RevertResultHandle(made).handedOut }
    }
}

/// Behind `llvs_revert_result`.
final class RevertResultHandle: StructHandle<llvs_revert_result>, @unchecked Sendable {
    private let version: VersionList?

    /// - Parameter description: describes what was undone.
    init(_ made: Store.Reverted, description: String? = nil) throws {
        let arena = Arena()
        func array(_ ids: [ValueID]) throws -> UnsafePointer<llvs_bytes> {
            let start = try arena.array(llvs_bytes.self, ids.count)
            for (i, id) in ids.enumerated() { (start + i).initialize(to: try arena.copy(id.bytes)) }
            return UnsafePointer(start)
        }
        let version = try made.version.map { try VersionList([$0]) }
        self.version = version
        let versions = try arena.array(llvs_bytes.self, made.versions.count)
        for (i, id) in made.versions.enumerated() { (versions + i).initialize(to: try arena.copy(id)) }
        let conflicts = try Items(made.conflicts, in: arena) { try llvs_conflict($0.record, id: $0.id.bytes, in: $1) }
        try super.init(
            arena,
            llvs_revert_result(
                struct_size: UInt32(sizeOf: llvs_revert_result.self), counts: made.counts ? 1 : 0,
                version: version?.contents.pointee.items[0],
                undone: array(made.undone), undone_count: made.undone.count, superseded: array(made.superseded),
                superseded_count: made.superseded.count,
                conflicts: conflicts.start, conflict_count: conflicts.count, versions: UnsafePointer(versions),
                version_count: made.versions.count,
                description: try description.map { try arena.copy($0) } ?? noBytes))
    }
}

@_cdecl("llvs_revert_result_free") @implementation
public func llvs_revert_result_free(_ result: UnsafeMutablePointer<llvs_revert_result>!) { RevertResultHandle.free(result) }
