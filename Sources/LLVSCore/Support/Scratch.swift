import CLLVSShims

/// Calls with scratch memory, which is on the stack if it is small. Not initialised.
/// - Throws: `.outOfMemory`.
@inline(__always)
package func withScratch<R>(_ size: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> R) throws -> R {
    if size <= 4_096 {
        return try withUnsafeTemporaryAllocation(byteCount: max(1, size), alignment: 8) {
            try body(UnsafeMutableRawBufferPointer(rebasing: $0[0..<size]))
        }
    }
    guard let memory = llvs_shim_allocate(size) else {
        throw StoreError(.outOfMemory, "There is no memory for a value of \(size) bytes. Read it in parts.")
    }
    defer { free(memory) }
    return try body(UnsafeMutableRawBufferPointer(start: memory, count: size))
}
