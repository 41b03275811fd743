import CLLVS
import LLVS

/// What a callback of the host answered when it did not answer LLVS_OK, as an error for the engine.
///
/// An error that it set surfaces as it is; a bare status keeps its code where the caller of this says that
/// such codes mean something, and else becomes `.user`.
func callbackFailure(_ status: llvs_status, _ error: OpaquePointer?, _ what: @autoclosure () -> String, keeping codes: [StoreError.Code] = []) -> StoreError {
    if let error { return ErrorHandle.take(error) }
    let code = StoreError.Code(rawValue: status)
    return StoreError(codes.contains(code) ? code : .user, "\(what()) failed with status \(status) and gave no message.")
}

/// Calls a callback that answers with a status and an error.
func callHost(_ what: @autoclosure () -> String, keeping codes: [StoreError.Code] = [],
              _ call: (UnsafeMutablePointer<OpaquePointer?>) -> llvs_status) throws {
    var error: OpaquePointer?
    let status = call(&error)
    guard status < 0 else {
        llvs_error_free(error)
        return
    }
    throw callbackFailure(status, error, what(), keeping: codes)
}

/// Calls with each piece of bytes as a borrowed `llvs_bytes`, which callbacks get by pointer.
func withBorrowed<R>(_ bytes: [UInt8], _ body: (UnsafePointer<llvs_bytes>) throws -> R) rethrows -> R {
    try bytes.withUnsafeBufferPointer { raw in
        var borrowed = llvs_bytes(data: raw.baseAddress, size: raw.count)
        return try withUnsafePointer(to: &borrowed, body)
    }
}
