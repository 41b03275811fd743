#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import CLLVSShims

/// Memory whose size comes from data or from arguments: where there is none, that is an error.
///
/// An array of Swift's that gets no memory ends the process. So who makes a large one asks first whether it can be had. (Another thread may
/// take it in between; the smaller an allocation, the likelier it comes from what the allocator holds already.)
public enum Memory {
    /// Smaller ones are not asked for: each would cost more than it is.
    static let large = 64 << 10
    private static let slack = 64 << 10

    /// Throws `.outOfMemory` when there are no `size` bytes for what is to be done.
    public static func expect(_ size: Int, _ doing: @autoclosure () -> String) throws {
        guard size >= large else { return }
        // An array begins with a header, and small things are allocated meanwhile.
        let (wanted, overflow) = size.addingReportingOverflow(slack)
        guard !overflow, llvs_shim_has_memory(wanted) != 0 else { throw none(size, doing()) }
    }

    /// Not initialised; to be released by `free`.
    static func allocate(_ size: Int, _ doing: @autoclosure () -> String) throws -> UnsafeMutableRawBufferPointer {
        guard let memory = malloc(max(1, size)) else { throw none(size, doing()) }
        return UnsafeMutableRawBufferPointer(start: memory, count: size)
    }
    static func release(_ memory: UnsafeMutableRawBufferPointer) { free(memory.baseAddress) }

    /// Makes room in an array for more, or throws.
    public static func grow(_ bytes: inout [UInt8], by more: Int, _ doing: @autoclosure () -> String) throws {
        let (needed, overflow) = bytes.count.addingReportingOverflow(more)
        guard !overflow, needed > bytes.capacity else { return }
        let wanted = max(needed, bytes.capacity < 1 << 30 ? 2 * bytes.capacity : 0)
        try expect(wanted, doing())
        bytes.reserveCapacity(wanted)
    }

    private static func none(_ size: Int, _ doing: String) -> StoreError {
        StoreError(.outOfMemory, "\(doing) needs \(size) bytes of memory at once, which there are not. Free some, or use smaller pieces.")
    }
}
