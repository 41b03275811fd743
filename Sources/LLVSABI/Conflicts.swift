import CLLVS
import LLVSCoordinator

// MARK: Conflicts

/// Behind `llvs_conflict_list`.
final class ConflictList: StructHandle<llvs_conflict_list>, @unchecked Sendable {
    init(_ conflicts: [Conflict], digest: String? = nil, areRecorded: Bool = true) throws {
        let arena = Arena()
        let items = try Items(conflicts, in: arena) { try llvs_conflict($0.record, id: $0.id.bytes, version: $0.version, in: $1) }
        try super.init(
            arena,
            llvs_conflict_list(
                struct_size: UInt32(sizeOf: llvs_conflict_list.self), recorded: areRecorded ? 1 : 0, count: items.count, items: items.start,
                digest: try digest.map { try arena.copy($0) } ?? noBytes))
    }

    convenience init(_ found: Store.Conflicts) throws {
        try self.init(found.items, digest: found.digest, areRecorded: found.areRecorded)
    }
}

/// Converts the options for the engine.
private func query(_ input: UnsafePointer<llvs_conflict_options>?) throws -> (Store.ConflictQuery, OperationControl) {
    var query = Store.ConflictQuery()
    guard let input = try optionalStruct(input, "llvs_conflict_options") else { return (query, OperationControl()) }
    guard input.reserved == 0 else { throw InputError.reserved("llvs_conflict_options") }
    if input.value_id.size != 0 { query.only = try valueID(input.value_id, "llvs_conflict_options.value_id") }
    guard let arbiter = try arbiter(input.arbiter) as? RulesArbiter else {
        throw StoreError(.invalidArgument, "Conflicts are found by rules. Give no arbiter, or one that llvs_arbiter_rules made.")
    }
    query.arbiter = arbiter
    return (query, try LLVSABI.control(input.control))
}

@_cdecl("llvs_store_conflicts") @implementation
public func llvs_store_conflicts(
    _ store: OpaquePointer!, _ ours: llvs_bytes, _ theirs: llvs_bytes, _ options: UnsafePointer<llvs_conflict_options>!,
    _ conflicts: StructOut<llvs_conflict_list>!, _ error: ErrorOut!
) -> llvs_status {
    conflicts?.pointee = nil
    return entry(error) {
        let out = try required(conflicts, "conflicts")
        let (query, control) = try query(options)
        let found = try LLVSABI.store(store).conflicts(
            between: versionID(ours, "ours"), and: versionID(theirs, "theirs"), query, control: control)
        out.pointee = try ConflictList(found).handedOut
    }
}

@_cdecl("llvs_store_explain") @implementation
public func llvs_store_explain(
    _ store: OpaquePointer!, _ version: llvs_bytes, _ options: UnsafePointer<llvs_conflict_options>!,
    _ conflicts: StructOut<llvs_conflict_list>!, _ error: ErrorOut!
) -> llvs_status {
    conflicts?.pointee = nil
    return entry(error) {
        let out = try required(conflicts, "conflicts")
        let (query, control) = try query(options)
        out.pointee = try ConflictList(LLVSABI.store(store).explain(versionID(version, "version"), query, control: control)).handedOut
    }
}

@_cdecl("llvs_store_open_conflicts") @implementation
public func llvs_store_open_conflicts(
    _ store: OpaquePointer!, _ at: llvs_bytes, _ options: UnsafePointer<llvs_conflict_options>!,
    _ conflicts: StructOut<llvs_conflict_list>!, _ error: ErrorOut!
) -> llvs_status {
    conflicts?.pointee = nil
    return entry(error) {
        let out = try required(conflicts, "conflicts")
        let (query, control) = try query(options)
        out.pointee = try ConflictList(LLVSABI.store(store).openConflicts(at: versionID(at, "at"), query, control: control)).handedOut
    }
}

@_cdecl("llvs_conflict_list_free") @implementation
public func llvs_conflict_list_free(_ list: UnsafeMutablePointer<llvs_conflict_list>!) { ConflictList.free(list) }

// MARK: Choosing

/// Converts a conflict that the caller passes back.
private func conflict(_ input: UnsafePointer<llvs_conflict>?) throws -> Conflict {
    let input = try requiredStruct(input, "llvs_conflict")
    guard let kind = ConflictRecord.Kind(rawValue: input.kind) else { throw InputError.constant("llvs_conflict.kind", input.kind) }
    func part(_ bytes: llvs_bytes, _ name: StaticString) throws -> [UInt8]? { bytes.data == nil ? nil : try array(bytes, name) }
    let rule = try part(input.rule_pattern, "llvs_conflict.rule_pattern").map { pattern in
        (prefix: try array(input.rule_prefix, "llvs_conflict.rule_prefix"), pattern: pattern)
    }
    let record = ConflictRecord(
        kind: kind, path: try array(input.path, "llvs_conflict.path"), base: try part(input.base, "llvs_conflict.base"),
        newer: try part(input.newer, "llvs_conflict.newer"), older: try part(input.older, "llvs_conflict.older"),
        result: try part(input.result, "llvs_conflict.result"), rule: rule)
    return Conflict(
        id: try valueID(input.id, "llvs_conflict.id"), version: try optionalVersionID(input.version, "llvs_conflict.version"),
        record: try record.canonical())
}

/// Behind a `llvs_change_list` of changes that are not stored yet.
final class OwnedChangeList: StructHandle<llvs_change_list>, @unchecked Sendable {
    init(_ changes: [Value.Change]) throws {
        let arena = Arena()
        let items = try Items(changes, in: arena) { change, arena in
            let data: [UInt8]? =
                switch change {
                case .insert(_, let data), .update(_, let data): data
                default: nil
                }
            return llvs_change_info(
                struct_size: UInt32(sizeOf: llvs_change_info.self), kind: UInt32(change.kind.rawValue), id: try arena.copy(change.id.bytes),
                data: try data.map { try arena.copy($0) } ?? noBytes, stored_version: noBytes, data_size: UInt64(data?.count ?? 0),
                state: LLVS_VALUE_HERE.rawValue, reserved: 0)
        }
        try super.init(
            arena,
            llvs_change_list(
                struct_size: UInt32(sizeOf: llvs_change_list.self), reserved: 0, count: items.count, items: items.start))
    }
}

@_cdecl("llvs_store_choose") @implementation
public func llvs_store_choose(
    _ store: OpaquePointer!, _ at: llvs_bytes, _ conflict: UnsafePointer<llvs_conflict>!, _ choice: llvs_choice,
    _ changes: StructOut<llvs_change_list>!, _ error: ErrorOut!
) -> llvs_status {
    changes?.pointee = nil
    return entry(error) {
        let out = try required(changes, "changes")
        guard let choice = Store.Choice(rawValue: choice) else { throw InputError.constant("choice", choice) }
        let chosen = try LLVSABI.store(store).resolve(LLVSABI.conflict(conflict), with: choice, at: versionID(at, "at"))
        out.pointee = try OwnedChangeList(chosen).handedOut
    }
}
