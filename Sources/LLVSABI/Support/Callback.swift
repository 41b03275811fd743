import CLLVS
import LLVS

/// Calls a callback of the host that answers with a status and an error: the one place where such statuses are told apart.
///
/// LLVS_OK and what is `expected` are answers, and are returned; every other status is a failure, also a positive one, since nobody
/// can know what it was to mean. So is an error beside an expected status.
///
/// An error that was set surfaces as it is; a bare status keeps its code where it is among `codes`, and else becomes `.user`.
///
/// In a child that the callback forked the call that it was called from fails: other threads of the parent may have held locks.
@discardableResult
func callHost(
    _ what: @autoclosure () -> String, keeping codes: [StoreError.Code] = [], expecting expected: llvs_status? = nil,
    _ call: (UnsafeMutablePointer<OpaquePointer?>) -> llvs_status
) throws -> llvs_status {
    var error: OpaquePointer?
    let generation = ForkGuard.generation
    let status = call(&error)
    guard generation == ForkGuard.generation else {
        throw StoreError(.forked, "\(what()) forked the process, and the call cannot go on in the child. Open everything again there.")
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
            ? "\(what()) failed with status \(status) and gave no message."
            : "\(what()) answered \(status), which means nothing from this callback; llvs.h names what does.")
}

/// Calls a callback that gives what comes next of a value or a file, and answers how many bytes; 0 at its end.
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
                "\(what()) answered LLVS_END and gave \(UInt(bitPattern: size)) bytes. "
                    + "Give them with LLVS_OK, and the end with the next call."
            )
        }
        return 0
    }
    // A callback that was ended before it could answer looks like this: its value must not be taken for complete.
    guard size != 0 else {
        throw StoreError(.invalidArgument, "\(what()) answered LLVS_OK and gave nothing. Where there is nothing more, answer LLVS_END.")
    }
    guard size > 0, size <= buffer.count else {
        throw StoreError(.invalidArgument, "\(what()) gave \(UInt(bitPattern: size)) bytes where there is room for \(buffer.count).")
    }
    return size
}

/// Calls with each piece of bytes as a borrowed `llvs_bytes`, which callbacks get by pointer.
func withBorrowed<R>(_ bytes: [UInt8], _ body: (UnsafePointer<llvs_bytes>) throws -> R) rethrows -> R {
    try bytes.withUnsafeBufferPointer { raw in
        var borrowed = llvs_bytes(data: raw.baseAddress, size: raw.count)
        return try withUnsafePointer(to: &borrowed, body)
    }
}
