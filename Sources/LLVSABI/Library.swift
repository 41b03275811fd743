import CLLVS
import Glibc
import LLVSCoordinator

// MARK: The library

@_cdecl("llvs_version_number") @implementation
public func llvs_version_number() -> UInt32 {
    UInt32(LLVS_VERSION_MAJOR) << 16 | UInt32(LLVS_VERSION_MINOR) << 8 | UInt32(LLVS_VERSION_PATCH)
}

/// Returns text that is never freed.
private func forever(_ text: String) -> UnsafePointer<CChar>? { UnsafePointer(strdup(text)) }

private nonisolated(unsafe) let versionText = forever("\(LLVS_VERSION_MAJOR).\(LLVS_VERSION_MINOR).\(LLVS_VERSION_PATCH)")

@_cdecl("llvs_version_string") @implementation
public func llvs_version_string() -> UnsafePointer<CChar>! { versionText }

private nonisolated(unsafe) let statusNames: [llvs_status: UnsafePointer<CChar>?] = {
    let names: [(llvs_status_value, String)] = [
        (LLVS_OK, "LLVS_OK"), (LLVS_PASS, "LLVS_PASS"),
        (LLVS_ERROR_INVALID_ARGUMENT, "LLVS_ERROR_INVALID_ARGUMENT"), (LLVS_ERROR_INVALID_VALUE_ID, "LLVS_ERROR_INVALID_VALUE_ID"),
        (LLVS_ERROR_INVALID_VERSION_ID, "LLVS_ERROR_INVALID_VERSION_ID"), (LLVS_ERROR_INVALID_UTF8, "LLVS_ERROR_INVALID_UTF8"),
        (LLVS_ERROR_TOO_LARGE, "LLVS_ERROR_TOO_LARGE"), (LLVS_ERROR_STRUCT_SIZE, "LLVS_ERROR_STRUCT_SIZE"),
        (LLVS_ERROR_DUPLICATE_ID, "LLVS_ERROR_DUPLICATE_ID"), (LLVS_ERROR_UNKNOWN_VERSION, "LLVS_ERROR_UNKNOWN_VERSION"),
        (LLVS_ERROR_UNKNOWN_PREDECESSOR, "LLVS_ERROR_UNKNOWN_PREDECESSOR"), (LLVS_ERROR_VERSION_MISMATCH, "LLVS_ERROR_VERSION_MISMATCH"),
        (LLVS_ERROR_INVALID_REFERENCE, "LLVS_ERROR_INVALID_REFERENCE"), (LLVS_ERROR_INVALID_METADATA, "LLVS_ERROR_INVALID_METADATA"),
        (LLVS_ERROR_UNSUPPORTED, "LLVS_ERROR_UNSUPPORTED"), (LLVS_ERROR_NOT_FOUND, "LLVS_ERROR_NOT_FOUND"),
        (LLVS_ERROR_NOT_A_STORE, "LLVS_ERROR_NOT_A_STORE"), (LLVS_ERROR_NEWER_FORMAT, "LLVS_ERROR_NEWER_FORMAT"),
        (LLVS_ERROR_READ_ONLY, "LLVS_ERROR_READ_ONLY"), (LLVS_ERROR_PERMISSION, "LLVS_ERROR_PERMISSION"),
        (LLVS_ERROR_NO_SPACE, "LLVS_ERROR_NO_SPACE"), (LLVS_ERROR_NOT_A_DIRECTORY, "LLVS_ERROR_NOT_A_DIRECTORY"),
        (LLVS_ERROR_IO, "LLVS_ERROR_IO"), (LLVS_ERROR_DAMAGED, "LLVS_ERROR_DAMAGED"),
        (LLVS_ERROR_UNKNOWN_OUTCOME, "LLVS_ERROR_UNKNOWN_OUTCOME"), (LLVS_ERROR_BUSY, "LLVS_ERROR_BUSY"),
        (LLVS_ERROR_TOO_MANY_FILES, "LLVS_ERROR_TOO_MANY_FILES"),
        (LLVS_ERROR_CLOSED, "LLVS_ERROR_CLOSED"), (LLVS_ERROR_FORKED, "LLVS_ERROR_FORKED"), (LLVS_ERROR_CANCELLED, "LLVS_ERROR_CANCELLED"),
        (LLVS_ERROR_USER, "LLVS_ERROR_USER"), (LLVS_ERROR_OUT_OF_MEMORY, "LLVS_ERROR_OUT_OF_MEMORY"),
        (LLVS_ERROR_INTERNAL, "LLVS_ERROR_INTERNAL"),
        (LLVS_ERROR_UNRESOLVED_CONFLICT, "LLVS_ERROR_UNRESOLVED_CONFLICT"),
        (LLVS_ERROR_NO_COMMON_ANCESTOR, "LLVS_ERROR_NO_COMMON_ANCESTOR"),
        (LLVS_ERROR_MOVED, "LLVS_ERROR_MOVED"),
        (LLVS_ERROR_TRANSPORT, "LLVS_ERROR_TRANSPORT"), (LLVS_ERROR_MISSING_CHANGES, "LLVS_ERROR_MISSING_CHANGES"),
        (LLVS_ERROR_MISSING_PREDECESSOR, "LLVS_ERROR_MISSING_PREDECESSOR"), (LLVS_ERROR_INVALID_JSON, "LLVS_ERROR_INVALID_JSON"),
        (LLVS_ERROR_INVALID_BASE64, "LLVS_ERROR_INVALID_BASE64"), (LLVS_ERROR_IDENTIFIER_MISMATCH, "LLVS_ERROR_IDENTIFIER_MISMATCH"),
        (LLVS_ERROR_MISSING_VERSION, "LLVS_ERROR_MISSING_VERSION"), (LLVS_ERROR_SNAPSHOT_DAMAGED, "LLVS_ERROR_SNAPSHOT_DAMAGED"),
        (LLVS_ERROR_SNAPSHOT_MISSING, "LLVS_ERROR_SNAPSHOT_MISSING"), (LLVS_ERROR_STORE_NOT_EMPTY, "LLVS_ERROR_STORE_NOT_EMPTY"),
        (LLVS_ERROR_FOREIGN_SNAPSHOT, "LLVS_ERROR_FOREIGN_SNAPSHOT"), (LLVS_ERROR_FOREIGN_FILE, "LLVS_ERROR_FOREIGN_FILE"),
        (LLVS_ERROR_CUT_SHORT, "LLVS_ERROR_CUT_SHORT"), (LLVS_ERROR_UNPORTABLE_ID, "LLVS_ERROR_UNPORTABLE_ID"),
        (LLVS_ERROR_CONTENT_MISMATCH, "LLVS_ERROR_CONTENT_MISMATCH"), (LLVS_ERROR_WRONG_KEY, "LLVS_ERROR_WRONG_KEY"),
        (LLVS_ERROR_KEY_MISSING, "LLVS_ERROR_KEY_MISSING"), (LLVS_ERROR_KEYS_FORKED, "LLVS_ERROR_KEYS_FORKED"),
        (LLVS_ERROR_ROLLED_BACK, "LLVS_ERROR_ROLLED_BACK"), (LLVS_ERROR_WRITER_FORKED, "LLVS_ERROR_WRITER_FORKED"),
        (LLVS_ERROR_WITHHELD, "LLVS_ERROR_WITHHELD"), (LLVS_ERROR_PLACE_MOVED, "LLVS_ERROR_PLACE_MOVED"),
        (LLVS_ERROR_CLOCK_AHEAD, "LLVS_ERROR_CLOCK_AHEAD"), (LLVS_ERROR_ERASED, "LLVS_ERROR_ERASED"),
        (LLVS_ERROR_FORGOTTEN, "LLVS_ERROR_FORGOTTEN"),
    ]
    var table: [llvs_status: UnsafePointer<CChar>?] = [:]
    for (code, name) in names { table[code.rawValue] = forever(name) }
    return table
}()
private nonisolated(unsafe) let unknownStatus = forever("LLVS_ERROR_UNKNOWN")

@_cdecl("llvs_status_name") @implementation
public func llvs_status_name(_ status: llvs_status) -> UnsafePointer<CChar>! { statusNames[status] ?? unknownStatus }

@_cdecl("llvs_struct_init") @implementation
public func llvs_struct_init(_ structure: UnsafeMutableRawPointer!, _ struct_size: Int) -> llvs_status {
    guard let structure else { return StoreError.Code.invalidArgument.rawValue }
    guard struct_size >= MemoryLayout<UInt32>.size, struct_size <= structSizeLimit else { return StoreError.Code.structSize.rawValue }
    // All defaults are zero.
    memset(structure, 0, struct_size)
    structure.storeBytes(of: UInt32(truncatingIfNeeded: struct_size), as: UInt32.self)
    return 0
}

@_cdecl("llvs_buffer_dispose") @implementation
public func llvs_buffer_dispose(_ buffer: UnsafeMutablePointer<llvs_buffer>!) {
    guard let buffer else { return }
    Glibc.free(buffer.pointee.data)
    buffer.pointee = noBuffer
}
