import CLLVS
import CLLVSShims
import LLVSCoordinator

// MARK: Merging inside values

final class MergedValueHandle: StructHandle<llvs_merged_value>, @unchecked Sendable {
    /// Owns the memory that the conflicts point into.
    private let records: ConflictRecords
    /// The result, followed by a NUL. It may be large, so there is only one copy.
    private let data: [UInt8]?
    /// With this many conflicts or more, which take about 10 MB, unused memory is returned to the system.
    private static let many = 1 << 16

    /// - Parameter merged: its bytes are moved out.
    init(_ merged: inout MergedValue, id givenID: [UInt8]) throws {
        let arena = Arena()
        var data: [UInt8]?
        swap(&data, &merged.bytes)
        if var bytes = data.take() {
            try Memory.grow(&bytes, by: 1, "Returning a merged value")
            bytes.append(0)
            data = bytes
        }
        (self.data, records) = (data, merged.records)
        let id = try arena.copy(givenID), records = merged.records
        let rules = try records.rules.map { (prefix: try arena.copy($0.prefix), pattern: try arena.copy($0.pattern)) }
        // Many conflicts take as much memory as the merge needed, most of which is free by now.
        if records.count >= Self.many { llvs_shim_trim() }
        let conflicts = try Items(records.indices, in: arena) { i, _ in llvs_conflict(records.parts(i), rules, id: id) }
        let digest = records.isEmpty ? noBytes : try arena.copy(merged.digest(id: givenID))
        // The array does not move while the handle retains it.
        let bytes = data.map { data in data.withUnsafeBufferPointer { llvs_bytes(data: $0.baseAddress, size: data.count - 1) } }
        try super.init(
            arena,
            llvs_merged_value(
                struct_size: UInt32(sizeOf: llvs_merged_value.self), source: merged.source.rawValue, data: bytes ?? noBytes,
                conflicts: conflicts.start, conflict_count: conflicts.count, digest: digest))
    }
}

extension llvs_conflict {
    /// Points to the parts of a record, and to rules and an id stored elsewhere.
    init(_ parts: ConflictRecords.Parts, _ rules: [(prefix: llvs_bytes, pattern: llvs_bytes)], id: llvs_bytes) {
        func bytes(_ part: UnsafeRawBufferPointer?) -> llvs_bytes {
            part.map { llvs_bytes(data: $0.baseAddress?.assumingMemoryBound(to: UInt8.self), size: $0.count) } ?? noBytes
        }
        let rule = parts.rule.map { rules[$0] }
        self.init(
            struct_size: UInt32(sizeOf: llvs_conflict.self), kind: parts.kind.rawValue, path: bytes(parts.path), base: bytes(parts.base),
            newer: bytes(parts.newer), older: bytes(parts.older), result: bytes(parts.result), rule_prefix: rule?.prefix ?? noBytes,
            rule_pattern: rule?.pattern ?? noBytes, id: id, version: noBytes)
    }

    init(_ record: ConflictRecord, id: [UInt8], version: VersionID? = nil, in arena: Arena) throws {
        func bytes(_ bytes: [UInt8]?) throws -> llvs_bytes { try bytes.map { try arena.copy($0) } ?? noBytes }
        self.init(
            struct_size: UInt32(sizeOf: llvs_conflict.self), kind: record.kind.rawValue, path: try bytes(record.path),
            base: try bytes(record.base), newer: try bytes(record.newer), older: try bytes(record.older), result: try bytes(record.result),
            rule_prefix: try bytes(record.rule?.prefix), rule_pattern: try bytes(record.rule?.pattern), id: try arena.copy(id),
            version: try version.map { try arena.copy($0) } ?? noBytes)
    }
}

/// Returns the rules, or throws the error with the place of the problem.
func schema(_ rules: llvs_bytes, partly: Bool) throws -> MergeSchema {
    do {
        return try MergeSchema(rawBytes(rules, "rules"), partly: partly)
    } catch let error as InvalidRules {
        throw error.storeError
    }
}

/// Returns the bytes of a value that may be absent.
private func optionalBytes(_ bytes: UnsafePointer<llvs_bytes>?, _ name: StaticString) throws -> UnsafeRawBufferPointer? {
    try bytes.map { try rawBytes($0.pointee, name) }
}

@_cdecl("llvs_merge_values") @implementation
public func llvs_merge_values(
    _ rules: llvs_bytes, _ base: UnsafePointer<llvs_bytes>!, _ newer: UnsafePointer<llvs_bytes>!, _ older: UnsafePointer<llvs_bytes>!,
    _ options: UnsafePointer<llvs_merge_values_options>!, _ merged: StructOut<llvs_merged_value>!, _ error: ErrorOut!
) -> llvs_status {
    merged?.pointee = nil
    return entry(error) {
        let out = try required(merged, "merged")
        let options = try optionalStruct(options, "llvs_merge_values_options")
        let id = try array(options?.id ?? noBytes, "llvs_merge_values_options.id", limit: Limits.valueIDSize)
        guard String(validating: id, as: UTF8.self) != nil else {
            throw StoreError(.invalidUTF8, "The argument \"llvs_merge_values_options.id\" is not valid UTF-8. Give it in that encoding.")
        }
        let saving = try flag(options?.saving ?? 0, "llvs_merge_values_options.saving")
        let control = try LLVSABI.control(options?.control)
        let schema = rules.size == 0 ? nil : try schema(rules, partly: true)
        let inputs = (try optionalBytes(base, "base"), try optionalBytes(newer, "newer"), try optionalBytes(older, "older"))
        var result = try DocumentMerge.run(
            schema, id: id, isSaving: saving, base: inputs.0, newer: inputs.1, older: inputs.2, control)
        out.pointee = try MergedValueHandle(&result, id: id).handedOut
    }
}

@_cdecl("llvs_merged_value_free") @implementation
public func llvs_merged_value_free(_ merged: UnsafeMutablePointer<llvs_merged_value>!) { MergedValueHandle.free(merged) }

@_cdecl("llvs_schema_check") @implementation
public func llvs_schema_check(_ rules: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    entry(error) {
        _ = try schema(rules, partly: false)
        do { try IndexDeclarations.check(rawBytes(rules, "rules")) } catch let problem as InvalidRules { throw problem.storeError }
    }
}

/// Behind `llvs_schema`.
final class SchemaHandle: StructHandle<llvs_schema>, @unchecked Sendable {
    private let version: VersionList?

    init(_ schema: Store.Schema, version: Version? = nil) throws {
        let arena = Arena(), id = Array(MergeSchema.valueID.utf8)
        let contradictions = try Items(schema.contradictions, in: arena) { try llvs_conflict($0, id: id, in: $1) }
        let list = try version.map { try VersionList([$0]) }
        self.version = list
        try super.init(
            arena,
            llvs_schema(
                struct_size: UInt32(sizeOf: llvs_schema.self), changed: schema.isChanged ? 1 : 0,
                data: try schema.rules.map { try arena.copy($0) } ?? noBytes,
                stored_version: try schema.storedVersion.map { try arena.copy($0) } ?? noBytes,
                problem: try schema.problem.map { try arena.copy($0.reason) } ?? noBytes,
                problem_path: try schema.problem.map { try arena.copy($0.pointer) } ?? noBytes,
                contradictions: contradictions.start, contradiction_count: contradictions.count,
                version: list?.contents.pointee.items[0]))
    }
}

@_cdecl("llvs_schema_free") @implementation
public func llvs_schema_free(_ schema: UnsafeMutablePointer<llvs_schema>!) { SchemaHandle.free(schema) }

@_cdecl("llvs_store_schema") @implementation
public func llvs_store_schema(
    _ store: OpaquePointer!, _ at: llvs_bytes, _ rules: llvs_bytes, _ schema: StructOut<llvs_schema>!, _ error: ErrorOut!
) -> llvs_status {
    schema?.pointee = nil
    return entry(error) {
        let out = try required(schema, "schema")
        let rules = rules.size == 0 ? nil : try array(rules, "rules")
        out.pointee = try SchemaHandle(LLVSABI.store(store).schema(at: versionID(at, "at"), adding: rules)).handedOut
    }
}
