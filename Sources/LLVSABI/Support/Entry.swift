import CLLVS
import CLLVSShims
import LLVSCoordinator

/// Receives the error of an entry point.
public typealias ErrorOut = UnsafeMutablePointer<OpaquePointer?>
/// Receives a handle from an entry point.
public typealias HandleOut = UnsafeMutablePointer<OpaquePointer?>
/// Receives a list, report or result from an entry point.
public typealias StructOut<Struct> = UnsafeMutablePointer<UnsafeMutablePointer<Struct>?>

/// Frames every entry point that can fail: converts a thrown error to a status and an `llvs_error`.
/// - Parameter whileShort: whether to run even if memory is short, since the call frees some.
@inline(__always)
package func entry(_ out: ErrorOut?, whileShort: Bool = false, _ body: () throws -> Void) -> llvs_status {
    HostCalls.cleanUp(llvs_shim_frame())
    out?.pointee = nil
    do {
        if llvs_shim_reserve_is_whole() == 0 { try startShort(whileShort) }
        try body()
        return 0
    } catch {
        return report(error, into: out)
    }
}

/// The first call fills the reserve. Later calls get here only after the reserve was used.
@inline(never)
private func startShort(_ whileShort: Bool) throws {
    _ = ErrorHandle.outOfMemory
    do { try Memory.begin() } catch { if !whileShort { throw error } }
}

@inline(never)
package func report(_ thrown: any Error, into out: ErrorOut?) -> llvs_status {
    if thrown is OutOfMemory {
        out?.pointee = ErrorHandle.outOfMemory.borrowed
        return StoreError.Code.outOfMemory.rawValue
    }
    let handle = (thrown as? StoreError)?.code == .outOfMemory ? ErrorHandle.outOfMemory : ErrorHandle(thrown: thrown)
    if let out { out.pointee = handle === ErrorHandle.outOfMemory ? handle.borrowed : handle.owned }
    return handle.error.code.rawValue
}

/// Thrown if malloc fails; no message is built.
struct OutOfMemory: Error {}

/// Errors of the arguments themselves.
package enum InputError {
    package static func null(_ name: StaticString) -> StoreError {
        StoreError(.invalidArgument, "The argument \"\(name)\" is NULL, which is not allowed here.")
    }
    package static func nullWithSize(_ name: StaticString, _ size: Int) -> StoreError {
        StoreError(
            .invalidArgument, "The argument \"\(name)\" is NULL but its size is \(UInt(bitPattern: size)); give the bytes, or size 0.")
    }
    package static func tooLarge(_ name: StaticString, _ size: Int, _ limit: Int) -> StoreError {
        StoreError(.tooLarge, "The argument \"\(name)\" has size \(UInt(bitPattern: size)); at most \(limit) is allowed.")
    }
    package static func constant(_ name: StaticString, _ value: UInt32) -> StoreError {
        StoreError(.invalidArgument, "\(value) is not a value of \"\(name)\"; llvs.h lists them.")
    }
    static func reserved(_ name: StaticString) -> StoreError {
        StoreError(.invalidArgument, "The reserved field of \"\(name)\" is not zero; begin with its _INIT macro or llvs_struct_init.")
    }
    static func structTooSmall(_ name: StaticString, _ size: Int, _ needed: Int) -> StoreError {
        StoreError(
            .structSize,
            "The size given for \"\(name)\" is \(UInt(bitPattern: size)), but it has \(needed) bytes; "
                + "begin with its _INIT macro or llvs_struct_init."
        )
    }
    static func structUnknown(_ name: StaticString, _ size: Int) -> StoreError {
        StoreError(
            .structSize,
            "\"\(name)\" is given with \(UInt(bitPattern: size)) bytes, and those that this library does not know are not zero; "
                + "the program was made for a newer library."
        )
    }
    static func forked(_ name: StaticString) -> StoreError {
        StoreError(.forked, "The \(name) was opened before fork() and cannot be used in the child; open it again there.")
    }
}
