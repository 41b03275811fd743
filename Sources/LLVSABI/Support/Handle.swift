import CLLVS
import CLLVSShims
import LLVS

/// What stands behind an opaque pointer of the header: retained once by the caller who holds the pointer.
class Handle: @unchecked Sendable {
    // Sendable, with what derives from it: it does not change, or has a lock, or is used by one call or callback at a time (docs/abi.md).
    let generation = ForkGuard.generation
    final var isForked: Bool { generation != ForkGuard.generation }
    init() {}
    /// Throws where the calling thread would wait for itself: what leads to a store asks that.
    func checkReentry() throws {}

    /// A new pointer to the handle, to be given to the caller.
    final var owned: OpaquePointer { OpaquePointer(Unmanaged.passRetained(self).toOpaque()) }
    /// A pointer that is valid while somebody else keeps the handle.
    final var borrowed: OpaquePointer { OpaquePointer(Unmanaged.passUnretained(self).toOpaque()) }
}

/// The handle behind a pointer that must not be NULL and must be of this process.
@inline(__always)
func handle<T: Handle>(_ pointer: OpaquePointer?, _ type: T.Type, _ name: StaticString) throws -> T {
    guard let pointer else { throw InputError.null(name) }
    let handle = Unmanaged<T>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue()
    guard !handle.isForked else { throw InputError.forked(name) }
    try handle.checkReentry()
    return handle
}

/// The same for a pointer that may be NULL.
func optionalHandle<T: Handle>(_ pointer: OpaquePointer?, _ type: T.Type, _ name: StaticString) throws -> T? {
    pointer == nil ? nil : try handle(pointer, type, name)
}

/// For accessors: plain memory, readable in a forked child as well.
@inline(__always)
func peek<T: Handle>(_ pointer: OpaquePointer?, _ type: T.Type) -> T? {
    guard let pointer else { return nil }
    return Unmanaged<T>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue()
}

/// As `peek`, for what is asked for each value of many: counts no reference.
@inline(__always)
func look<T: Handle, R>(at pointer: OpaquePointer?, _ type: T.Type, _ body: (T) -> R) -> R? {
    guard let pointer else { return nil }
    return Unmanaged<T>.fromOpaque(UnsafeRawPointer(pointer))._withUnsafeGuaranteedRef(body)
}

/// Gives up the caller's reference.
///
/// In a forked child a handle that leads to files, locks or threads is left alone: letting go of it could
/// wait for a lock that a thread of the parent held, or write. It goes with the process.
func free<T: Handle>(_ pointer: OpaquePointer?, _ type: T.Type, leadsToStore: Bool) {
    guard let pointer else { return }
    HostCalls.cleanUp(llvs_shim_frame())
    let unmanaged = Unmanaged<T>.fromOpaque(UnsafeRawPointer(pointer))
    if leadsToStore, unmanaged.takeUnretainedValue().isForked { return }
    unmanaged.release()
}

/// A payload of the host, freed exactly once: when the last that might hand it to a callback is gone.
///
/// Made first thing in each registering call, so that it is freed when the rest of the call fails.
final class Payload: @unchecked Sendable {
    // Sendable: it does not change; what it points to is the host's.
    let pointer: UnsafeMutableRawPointer?
    private let free: llvs_free_fn?
    init(_ pointer: UnsafeMutableRawPointer?, _ free: llvs_free_fn?) { self.pointer = pointer; self.free = free }
    deinit { if let free { free(pointer) } }
}
