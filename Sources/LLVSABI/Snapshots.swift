import CLLVS
import LLVSCoordinator

// MARK: Snapshots and import

/// Behind `llvs_snapshot`: a manifest.
final class SnapshotHandle: StructHandle<llvs_snapshot>, @unchecked Sendable {
    init(_ manifest: SnapshotManifest, problems: [ExchangeProblem] = []) throws {
        let arena = Arena()
        let items = try Items(problems, in: arena, llvs_problem.init)
        try super.init(
            arena,
            llvs_snapshot(
                struct_size: UInt32(sizeOf: llvs_snapshot.self), chunk_count: UInt32(clamping: manifest.chunkCount),
                id: arena.copy(manifest.snapshotID), format: arena.copy(manifest.format),
                latest_version: arena.copy(manifest.latestVersionID),
                created_at: manifest.createdAt + Version.secondsFrom1970To2001, version_count: manifest.versionCount,
                total_size: manifest.totalSize,
                problems: items.start, problem_count: items.count))
    }
}

@_cdecl("llvs_snapshot_free") @implementation
public func llvs_snapshot_free(_ snapshot: UnsafeMutablePointer<llvs_snapshot>!) { SnapshotHandle.free(snapshot) }

/// Runs a call that returns a manifest, or NULL.
private func manifest(_ out: StructOut<llvs_snapshot>?, _ error: ErrorOut?, _ make: () throws -> SnapshotManifest?) -> llvs_status {
    snapshot(out, error) { try make().map { try SnapshotHandle($0) } }
}
func snapshot(_ out: StructOut<llvs_snapshot>?, _ error: ErrorOut?, _ make: () throws -> SnapshotHandle?) -> llvs_status {
    out?.pointee = nil
    return entry(error) {
        if let made = try make(), let out { out.pointee = made.handedOut }
    }
}

private func snapshots(_ pointer: OpaquePointer?) throws -> Snapshots {
    let exchange = try exchange(pointer)
    return Snapshots(store: exchange.store, transport: exchange.transport, decode: exchange.options.decode)
}

@_cdecl("llvs_exchange_put_snapshot") @implementation
public func llvs_exchange_put_snapshot(
    _ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ snapshot: StructOut<llvs_snapshot>!, _ error: ErrorOut!
) -> llvs_status {
    manifest(snapshot, error) { try snapshots(exchange).put(control: LLVSABI.control(control)) }
}

@_cdecl("llvs_exchange_restore_snapshot") @implementation
public func llvs_exchange_restore_snapshot(
    _ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ snapshot: StructOut<llvs_snapshot>!, _ error: ErrorOut!
) -> llvs_status {
    LLVSABI.snapshot(snapshot, error) {
        let restored = try snapshots(exchange).restore(control: LLVSABI.control(control))
        return try SnapshotHandle(restored.manifest, problems: restored.problems)
    }
}

@_cdecl("llvs_exchange_snapshot") @implementation
public func llvs_exchange_snapshot(_ exchange: OpaquePointer!, _ snapshot: StructOut<llvs_snapshot>!, _ error: ErrorOut!) -> llvs_status {
    manifest(snapshot, error) {
        _ = try required(snapshot, "snapshot")
        return try snapshots(exchange).manifest()
    }
}

@_cdecl("llvs_store_import") @implementation
public func llvs_store_import(
    _ store: OpaquePointer!, _ directory: llvs_bytes, _ options: UnsafePointer<llvs_import_options>!,
    _ control: UnsafePointer<llvs_control>!, _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let options = try optionalStruct(options, "llvs_import_options")
        let decoder = options.flatMap { HostDecoder($0.decode, Payload($0.decode_payload, $0.decode_free)) }
        if let options, options.reserved != 0 { throw InputError.reserved("llvs_import_options") }
        let found = try StoreImporter.importStore(
            at: path(directory, "directory"), into: LLVSABI.store(store), decode: decoder?.decode, control: LLVSABI.control(control))
        if let result {
            result.pointee = try ExchangeResultHandle(retrieved: found.versions, repaired: found.repaired, problems: found.problems)
                .handedOut
        }
    }
}
