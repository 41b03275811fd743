import CLLVS
import CLLVSShims
import LLVSCoordinator

/// The object behind an opaque pointer of the header. The caller that holds the pointer owns one reference.
package class Handle: @unchecked Sendable {
    // Sendable, with what derives from it: immutable, or with a lock, or used by one call or callback at a time (docs/abi.md).
    let generation = ForkGuard.generation
    package final var isForked: Bool { generation != ForkGuard.generation }
    init() {}
    /// Throws if the calling thread would deadlock with itself. Handles that lead to a store override it.
    func checkReentry() throws {}

    /// A new owned pointer to the handle, for the caller.
    package final var owned: OpaquePointer { OpaquePointer(Unmanaged.passRetained(self).toOpaque()) }
    /// A pointer that is valid while the handle is retained elsewhere.
    final var borrowed: OpaquePointer { OpaquePointer(Unmanaged.passUnretained(self).toOpaque()) }
}

/// The handle of an object that another module has the functions for.
package final class ObjectHandle<Object>: Handle, @unchecked Sendable {
    // Sendable: immutable, and the object is Sendable.
    package let object: Object
    private let store: Store?
    /// - Parameter store: the store that calls lead to, if there is one.
    package init(_ object: Object, store: Store? = nil) { self.object = object; self.store = store }
    override func checkReentry() throws { try store?.checkReentry() }
}

/// Returns the handle behind a pointer, which must not be NULL and must be of this process.
@inline(__always)
package func handle<T: Handle>(_ pointer: OpaquePointer?, _ type: T.Type, _ name: StaticString) throws -> T {
    guard let pointer else { throw InputError.null(name) }
    let handle = Unmanaged<T>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue()
    guard !handle.isForked else { throw InputError.forked(name) }
    try handle.checkReentry()
    return handle
}

/// Returns the object of a handle, as `handle` does; nil for NULL.
func optionalHandle<T: Handle>(_ pointer: OpaquePointer?, _ type: T.Type, _ name: StaticString) throws -> T? {
    pointer == nil ? nil : try handle(pointer, type, name)
}

/// For accessors: plain memory, readable in a forked child as well.
@inline(__always)
package func peek<T: Handle>(_ pointer: OpaquePointer?, _ type: T.Type) -> T? {
    guard let pointer else { return nil }
    return Unmanaged<T>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue()
}

/// As `peek`, without counting a reference; for calls made for each of many values.
@inline(__always)
func look<T: Handle, R>(at pointer: OpaquePointer?, _ type: T.Type, _ body: (T) -> R) -> R? {
    guard let pointer else { return nil }
    return Unmanaged<T>.fromOpaque(UnsafeRawPointer(pointer))._withUnsafeGuaranteedRef(body)
}

/// Releases the caller's reference.
///
/// In a forked child a handle that leads to files, locks or threads is not released: that could wait for a lock that a thread of the parent
/// held, or write. It ends with the process.
package func free<T: Handle>(_ pointer: OpaquePointer?, _ type: T.Type, leadsToStore: Bool) {
    guard let pointer else { return }
    HostCalls.cleanUp(llvs_shim_frame())
    let unmanaged = Unmanaged<T>.fromOpaque(UnsafeRawPointer(pointer))
    if leadsToStore, unmanaged.takeUnretainedValue().isForked { return }
    unmanaged.release()
}

/// A payload of the host, freed exactly once: after the last object that might pass it to a callback.
///
/// Created first in each registering call, so that it is freed if the rest fails.
package final class Payload: @unchecked Sendable {
    // Sendable: immutable. The host is responsible for the memory to which it points.
    package let pointer: UnsafeMutableRawPointer?
    private let free: llvs_free_fn?
    package init(_ pointer: UnsafeMutableRawPointer?, _ free: llvs_free_fn?) { self.pointer = pointer; self.free = free }
    deinit { if let free { free(pointer) } }
}
