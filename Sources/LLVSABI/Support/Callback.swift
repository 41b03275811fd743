import CLLVS
import LLVSCoordinator

/// Calls a callback of the host that returns a status and an error. All interpretation of such statuses is here.
///
/// LLVS_OK and `expected` are returned. Any other status is a failure, also a positive one, since its meaning is unknown. An error together
/// with an expected status is a failure too.
///
/// An error that was set is thrown unchanged. A status alone keeps its code if that is among `codes`, and otherwise becomes `.user`.
///
/// If the callback forks, the call fails in the child, since other threads of the parent may have held locks.
@discardableResult
package func callHost(
    _ what: @autoclosure () -> String, keeping codes: [StoreError.Code] = [], expecting expected: llvs_status? = nil,
    _ call: (UnsafeMutablePointer<OpaquePointer?>) -> llvs_status
) throws -> llvs_status {
    var error: OpaquePointer?
    let generation = ForkGuard.generation
    let status = call(&error)
    guard generation == ForkGuard.generation else {
        throw StoreError(.forked, "\(what()) forked the process, and the call cannot continue in the child. Open everything again there.")
    }
    if status == LLVS_OK.rawValue {
        llvs_error_free(error)
        return status
    }
    let code = StoreError.Code(rawValue: status)
    if let error {
        var given = ErrorHandle.take(error)
        if given.code == .user, codes.contains(code) { given.code = code }
        throw given
    }
    if status == expected { return status }
    throw StoreError(
        codes.contains(code) ? code : .user,
        status < 0
            ? "\(what()) failed with status \(status) and no message."
            : "\(what()) returned \(status), which is not a status of this callback; llvs.h lists them.")
}

/// Calls a callback that supplies the next bytes of a value or a file, and returns their number; 0 at the end.
func readHost(
    _ what: @autoclosure () -> String, keeping codes: [StoreError.Code], _ read: llvs_read_fn, _ payload: UnsafeMutableRawPointer?,
    into buffer: UnsafeMutableRawBufferPointer
) throws -> Int {
    var size = 0
    let status = try callHost(what(), keeping: codes, expecting: LLVS_END.rawValue) {
        read(payload, buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), buffer.count, &size, $0)
    }
    if status == LLVS_END.rawValue {
        guard size == 0 else {
            throw StoreError(
                .invalidArgument,
                "\(what()) returned LLVS_END and \(UInt(bitPattern: size)) bytes. "
                    + "Return them with LLVS_OK, and LLVS_END from the next call."
            )
        }
        return 0
    }
    // A callback that was aborted before it could reply sets no size. The value must not count as complete.
    guard size != 0 else {
        throw StoreError(.invalidArgument, "\(what()) returned LLVS_OK and no bytes. At the end, return LLVS_END.")
    }
    guard size > 0, size <= buffer.count else {
        throw StoreError(.invalidArgument, "\(what()) returned \(UInt(bitPattern: size)) bytes, but there is room for \(buffer.count).")
    }
    return size
}

/// Calls `body` with the bytes as a borrowed `llvs_bytes`, which callbacks get by pointer.
package func withBorrowed<R>(_ bytes: [UInt8], _ body: (UnsafePointer<llvs_bytes>) throws -> R) rethrows -> R {
    try bytes.withUnsafeBufferPointer { raw in
        var borrowed = llvs_bytes(data: raw.baseAddress, size: raw.count)
        return try withUnsafePointer(to: &borrowed, body)
    }
}
