import CLLVS
import LLVSCoordinator

// MARK: Projections into SQLite

/// Behind `llvs_projection`.
final class ProjectionHandle: Handle, @unchecked Sendable {
    let projection: Projection
    init(_ projection: Projection) { self.projection = projection }
    override func checkReentry() throws { try projection.store.checkReentry() }
}

private func projection(_ pointer: OpaquePointer?) throws -> Projection {
    try handle(pointer, ProjectionHandle.self, "projection").projection
}

private func options(_ input: UnsafePointer<llvs_projection_options>?) throws -> Projection.Options {
    var options = Projection.Options()
    guard let input = try optionalStruct(input, "llvs_projection_options") else { return options }
    options.coordinator = try input.coordinator.map { try openCoordinator($0) }
    if input.file_mode != 0 { options.fileMode = input.file_mode }
    guard input.busy_timeout.isFinite, input.busy_timeout >= 0 else {
        throw StoreError(
            .invalidArgument, "llvs_projection_options.busy_timeout is \(input.busy_timeout). Give seconds, or 0 for 5 seconds.")
    }
    if input.busy_timeout > 0 { options.busyTimeout = input.busy_timeout }
    return options
}

@_cdecl("llvs_projection_open") @implementation
public func llvs_projection_open(
    _ store: OpaquePointer!, _ path: llvs_bytes, _ definition: llvs_bytes, _ options: UnsafePointer<llvs_projection_options>!,
    _ projection: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    projection?.pointee = nil
    return entry(error) {
        let out = try required(projection, "projection")
        let store = try LLVSABI.store(store), path = try LLVSABI.path(path, "path")
        let definition = try ProjectionDefinition(rawBytes(definition, "definition"))
        out.pointee = ProjectionHandle(try Projection(store, path: path, definition, options: LLVSABI.options(options))).owned
    }
}

@_cdecl("llvs_projection_update") @implementation
public func llvs_projection_update(
    _ projection: OpaquePointer!, _ to: llvs_bytes, _ control: UnsafePointer<llvs_control>!, _ rows_changed: UnsafeMutablePointer<UInt64>!,
    _ error: ErrorOut!
) -> llvs_status {
    rows_changed?.pointee = 0
    return entry(error) {
        let changed = try LLVSABI.projection(projection).update(to: optionalVersionID(to, "to"), control: LLVSABI.control(control))
        rows_changed?.pointee = changed
    }
}

@_cdecl("llvs_projection_status") @implementation
public func llvs_projection_status(
    _ projection: OpaquePointer!, _ json: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!
) -> llvs_status {
    json?.pointee = noBuffer
    return entry(error) {
        let out = try required(json, "json")
        out.pointee = try LLVSABI.projection(projection).statusJSON.withUnsafeBytes { try ownedBuffer($0) }
    }
}

@_cdecl("llvs_projection_problems") @implementation
public func llvs_projection_problems(
    _ projection: OpaquePointer!, _ after: UInt64, _ json: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!
) -> llvs_status {
    json?.pointee = noBuffer
    return entry(error) {
        let out = try required(json, "json")
        let problems = try LLVSABI.projection(projection).problems(after: Int64(clamping: after))
        out.pointee = try Projection.json(problems).withUnsafeBytes { try ownedBuffer($0) }
    }
}

@_cdecl("llvs_projection_free") @implementation
public func llvs_projection_free(_ projection: OpaquePointer!) {
    if let handle = peek(projection, ProjectionHandle.self), !handle.isForked { handle.projection.close() }
    free(projection, ProjectionHandle.self, leadsToStore: true)
}
