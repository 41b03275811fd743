import CLLVS
import Glibc
import LLVSCoordinator

// MARK: Errors

/// Behind `llvs_error`: a `StoreError` with its texts in memory that C can read.
final class ErrorHandle: Handle, @unchecked Sendable {
    let error: StoreError
    private let arena = Arena()
    let message: llvs_bytes
    let valueID: llvs_bytes
    let versionID: llvs_bytes
    let path: llvs_bytes

    init(_ error: StoreError) {
        self.error = error
        let arena = self.arena
        // If memory is short the error still has its code.
        message = (try? arena.copy(error.message)) ?? noBytes
        valueID = error.valueID.flatMap { try? arena.copy($0.bytes) } ?? noBytes
        versionID = error.versionID.flatMap { try? arena.copy($0) } ?? noBytes
        path = error.path.flatMap { try? arena.copy($0) } ?? noBytes
        super.init()
    }

    /// For an error thrown by a call.
    convenience init(thrown: any Error) {
        var error = (thrown as? StoreError) ?? StoreError(.internal, "Unexpected error: \(thrown)")
        // A non-negative code would look like success.
        if error.code.rawValue >= 0 { error.code = .internal }
        self.init(error)
    }

    /// Returned without being retained, and never released.
    static let outOfMemory = ErrorHandle(StoreError(.outOfMemory, "There is not enough memory; nothing was changed."))

    /// Takes ownership of an error set by a callback, and returns its contents.
    static func take(_ pointer: OpaquePointer) -> StoreError {
        let error = peek(pointer, ErrorHandle.self)?.error ?? StoreError(.internal, "An error is NULL.")
        llvs_error_free(pointer)
        return error
    }
}

private nonisolated(unsafe) let emptyText: UnsafePointer<CChar>? = UnsafePointer(strdup(""))

@_cdecl("llvs_error_code") @implementation
public func llvs_error_code(_ error: OpaquePointer!) -> llvs_status { peek(error, ErrorHandle.self)?.error.code.rawValue ?? 0 }

@_cdecl("llvs_error_message") @implementation
public func llvs_error_message(_ error: OpaquePointer!) -> UnsafePointer<CChar>! {
    guard let message = peek(error, ErrorHandle.self)?.message.data else { return emptyText }
    return UnsafeRawPointer(message).assumingMemoryBound(to: CChar.self)
}

@_cdecl("llvs_error_value_id") @implementation
public func llvs_error_value_id(_ error: OpaquePointer!) -> llvs_bytes { peek(error, ErrorHandle.self)?.valueID ?? noBytes }

@_cdecl("llvs_error_version_id") @implementation
public func llvs_error_version_id(_ error: OpaquePointer!) -> llvs_bytes { peek(error, ErrorHandle.self)?.versionID ?? noBytes }

@_cdecl("llvs_error_path") @implementation
public func llvs_error_path(_ error: OpaquePointer!) -> llvs_bytes { peek(error, ErrorHandle.self)?.path ?? noBytes }

@_cdecl("llvs_error_system_code") @implementation
public func llvs_error_system_code(_ error: OpaquePointer!) -> Int32 { peek(error, ErrorHandle.self)?.error.systemCode ?? 0 }

@_cdecl("llvs_error_user_code") @implementation
public func llvs_error_user_code(_ error: OpaquePointer!) -> Int64 { peek(error, ErrorHandle.self)?.error.userCode ?? 0 }

@_cdecl("llvs_error_create") @implementation
public func llvs_error_create(_ user_code: Int64, _ message: llvs_bytes) -> OpaquePointer! {
    // A failing callback need not handle failures of this call: too long a message is cut, and NULL counts as empty.
    let size = message.data == nil ? 0 : message.size < 0 ? 0 : min(message.size, 1 << 20)
    var error = StoreError(.user, String(decoding: UnsafeRawBufferPointer(start: message.data, count: size), as: UTF8.self))
    error.userCode = user_code
    return ErrorHandle(error).owned
}

@_cdecl("llvs_error_free") @implementation
public func llvs_error_free(_ error: OpaquePointer!) {
    guard let error, error != ErrorHandle.outOfMemory.borrowed else { return }
    free(error, ErrorHandle.self, leadsToStore: false)
}
