import CLLVS
import LLVS

// MARK: Merging

/// The options as the engine takes them.
struct MergeSettings {
    var relation = MergeRelation.any
    var selection = HeadSelection.unbranched
    var metadata = Metadata()
    var control = OperationControl()

    init(_ input: UnsafePointer<llvs_merge_options>?) throws {
        guard let input = try optionalStruct(input, "llvs_merge_options") else { return }
        guard input.reserved == 0 else { throw InputError.reserved("llvs_merge_options") }
        relation = switch input.relation {
        case LLVS_RELATION_ANY.rawValue: .any
        case LLVS_RELATION_RELATED.rawValue: .related
        case LLVS_RELATION_UNRELATED.rawValue: .unrelated
        default: throw InputError.constant("relation", input.relation)
        }
        let branches = try elements(input.branches, input.branch_count, "branches").map { try text($0, "branches") }
        selection = switch input.selection {
        case LLVS_HEADS_UNBRANCHED.rawValue: .unbranched
        case LLVS_HEADS_ALL.rawValue: .all
        case LLVS_HEADS_UNBRANCHED_AND_BRANCHES.rawValue: .unbranchedAnd(branches)
        case LLVS_HEADS_BRANCHES.rawValue: .branches(branches)
        default: throw InputError.constant("selection", input.selection)
        }
        metadata = try LLVSABI.metadata(input.metadata, input.metadata_count)
        control = try LLVSABI.control(input.control)
    }
}

@_cdecl("llvs_store_merge") @implementation
public func llvs_store_merge(_ store: OpaquePointer!, _ ours: llvs_bytes, _ theirs: llvs_bytes, _ arbiter: OpaquePointer!,
                             _ options: UnsafePointer<llvs_merge_options>!, _ version: StructOut<llvs_version_list>!, _ error: ErrorOut!) -> llvs_status {
    version?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store)
        let settings = try MergeSettings(options)
        let merged = try store.merge(versionID(ours, "ours"), with: versionID(theirs, "theirs"), arbiter: LLVSABI.arbiter(arbiter),
                                     metadata: settings.metadata, relation: settings.relation, settings.control)
        if let version { version.pointee = try VersionList([merged]).handedOut }
    }
}

@_cdecl("llvs_store_merge_heads") @implementation
public func llvs_store_merge_heads(_ store: OpaquePointer!, _ into: llvs_bytes, _ arbiter: OpaquePointer!,
                                   _ options: UnsafePointer<llvs_merge_options>!, _ version: StructOut<llvs_version_list>!, _ error: ErrorOut!) -> llvs_status {
    version?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store)
        let settings = try MergeSettings(options)
        let merged = try store.mergeHeads(into: versionID(into, "into"), arbiter: LLVSABI.arbiter(arbiter),
                                          selection: settings.selection, metadata: settings.metadata, settings.control)
        if let version, let merged { version.pointee = try VersionList([merged]).handedOut }
    }
}

@_cdecl("llvs_store_revert") @implementation
public func llvs_store_revert(_ store: OpaquePointer!, _ version: llvs_bytes, _ at: llvs_bytes, _ options: UnsafePointer<llvs_merge_options>!,
                              _ result: StructOut<llvs_revert_result>!, _ error: ErrorOut!) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store)
        let settings = try MergeSettings(options)
        let made = try store.revert(
            versionID(version, "version"), at: versionID(at, "at"), metadata: settings.metadata, settings.control)
        if let result { result.pointee = try RevertResultHandle(made).handedOut }
    }
}

/// Behind `llvs_revert_result`.
final class RevertResultHandle: StructHandle<llvs_revert_result>, @unchecked Sendable {
    private let version: VersionList?

    init(_ made: Store.Reverted) throws {
        let arena = Arena()
        func array(_ ids: [ValueID]) throws -> UnsafePointer<llvs_bytes> {
            let start = try arena.array(llvs_bytes.self, ids.count)
            for (i, id) in ids.enumerated() { (start + i).initialize(to: try arena.copy(id.bytes)) }
            return UnsafePointer(start)
        }
        let version = try made.version.map { try VersionList([$0]) }
        self.version = version
        try super.init(arena, llvs_revert_result(
            struct_size: UInt32(sizeOf: llvs_revert_result.self), reserved: 0, version: version?.contents.pointee.items[0],
            undone: array(made.undone), undone_count: made.undone.count, superseded: array(made.superseded), superseded_count: made.superseded.count))
    }
}

@_cdecl("llvs_revert_result_free") @implementation
public func llvs_revert_result_free(_ result: UnsafeMutablePointer<llvs_revert_result>!) { RevertResultHandle.free(result) }
