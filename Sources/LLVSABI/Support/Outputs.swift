import CLLVS
import CLLVSShims
import Glibc
import LLVSCoordinator

package var noBytes: llvs_bytes { llvs_bytes(data: nil, size: 0) }

func write(_ id: VersionID?, to out: UnsafeMutablePointer<llvs_version_id>?) {
    guard let out else { return }
    memset(out, 0, MemoryLayout<llvs_version_id>.size)
    guard let id else { return }
    id.withASCII { ascii in
        guard let from = ascii.baseAddress, ascii.count <= Limits.versionIDSize else { return }
        let raw = UnsafeMutableRawPointer(out)
        raw.storeBytes(of: UInt32(truncatingIfNeeded: ascii.count), as: UInt32.self)
        memcpy(raw + MemoryLayout<UInt32>.size, from, ascii.count)
    }
}

/// Returns a copy of the bytes, followed by a NUL, for the caller to own.
package func ownedBuffer(_ bytes: UnsafeRawBufferPointer) throws -> llvs_buffer {
    guard let copy = llvs_shim_allocate(bytes.count + 1) else { throw OutOfMemory() }
    if let from = bytes.baseAddress, bytes.count > 0 { memcpy(copy, from, bytes.count) }
    copy.storeBytes(of: 0, toByteOffset: bytes.count, as: UInt8.self)
    return llvs_buffer(data: copy.assumingMemoryBound(to: UInt8.self), size: bytes.count)
}

package var noBuffer: llvs_buffer { llvs_buffer(data: nil, size: 0) }

package func required<T>(_ out: UnsafeMutablePointer<T>?, _ name: StaticString) throws -> UnsafeMutablePointer<T> {
    guard let out else { throw InputError.null(name) }
    return out
}

/// Fills a struct that the caller holds, whose size was checked. Writes at most `struct_size` bytes and leaves that field unchanged: a
/// caller compiled with an older header has no room for more.
func fill<Struct: BitwiseCopyable>(_ out: UnsafeMutablePointer<Struct>?, with value: Struct) {
    guard let out else { return }
    let size = UnsafeRawPointer(out).loadUnaligned(as: UInt32.self)
    withUnsafeBytes(of: value) { value in
        let count = min(Int(clamping: size), value.count), behindSize = MemoryLayout<UInt32>.size
        guard count > behindSize else { return }
        UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(out) + behindSize, count: count - behindSize)
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: value[behindSize..<count]))
    }
}

/// Memory for structs of the library and the bytes they point to; freed with the list that retains it.
package final class Arena: @unchecked Sendable {
    // Sendable: filled by the thread that creates it, and immutable after that.
    private var blocks: [UnsafeMutableRawPointer] = []
    private var next: UnsafeMutableRawPointer?
    private var left = 0

    package init() {}
    deinit { for block in blocks { Glibc.free(block) } }

    /// Returns `size` bytes, aligned for any struct of the header.
    private func take(_ size: Int, alignment: Int) throws -> UnsafeMutableRawPointer {
        if let start = next {
            let padding = (alignment - Int(bitPattern: start) % alignment) % alignment
            if left >= padding, left - padding >= size {
                next = start + padding + size
                left -= padding + size
                return start + padding
            }
        }
        // A large piece gets a block of its own; the current block stays in use.
        let blockSize = max(1024, min(blocks.count, 6) * 16 << 10)
        guard let block = llvs_shim_allocate(max(size, blockSize)) else { throw OutOfMemory() }
        blocks.append(block)
        if size < blockSize { next = block + size; left = blockSize - size }
        return block
    }

    /// Returns room for an array, which the caller must initialize; never NULL, even for count 0.
    func array<T: BitwiseCopyable>(_ type: T.Type, _ count: Int) throws -> UnsafeMutablePointer<T> {
        let (size, overflow) = count.multipliedReportingOverflow(by: MemoryLayout<T>.stride)
        guard !overflow, size >= 0 else { throw OutOfMemory() }
        return try take(max(1, size), alignment: 8).bindMemory(to: T.self, capacity: count)
    }

    /// Returns a copy followed by a NUL.
    package func copy(_ bytes: UnsafeRawBufferPointer) throws -> llvs_bytes {
        let start = try take(bytes.count + 1, alignment: 1)
        if let from = bytes.baseAddress, bytes.count > 0 { memcpy(start, from, bytes.count) }
        start.storeBytes(of: 0, toByteOffset: bytes.count, as: UInt8.self)
        return llvs_bytes(data: UnsafePointer(start.assumingMemoryBound(to: UInt8.self)), size: bytes.count)
    }
    /// Returns the bytes of a file, followed by a NUL.
    package func copy(_ file: OutgoingFile) throws -> llvs_bytes {
        let start = try take(file.size + 1, alignment: 1)
        var at = 0
        try file.forEachPiece { piece in
            guard piece.count <= file.size - at else { throw StoreError(.internal, "A file of \(file.size) bytes has more than that.") }
            if let from = piece.baseAddress { memcpy(start + at, from, piece.count) }
            at += piece.count
        }
        start.storeBytes(of: 0, toByteOffset: file.size, as: UInt8.self)
        return llvs_bytes(data: UnsafePointer(start.assumingMemoryBound(to: UInt8.self)), size: file.size)
    }
    package func copy(_ bytes: [UInt8]) throws -> llvs_bytes { try bytes.withUnsafeBytes(copy) }
    package func copy(_ id: VersionID) throws -> llvs_bytes { try id.withASCII(copy) }
    package func copy(_ text: String) throws -> llvs_bytes {
        var text = text
        return try text.withUTF8 { try copy(UnsafeRawBufferPointer($0)) }
    }
}

/// Structs that may grow, as the header returns them: consecutive structs, and a NULL-terminated array of pointers to them.
package struct Items<Element: BitwiseCopyable> {
    package let start: UnsafePointer<UnsafePointer<Element>?>
    package let count: Int

    package init<Source>(_ sources: some Collection<Source>, in arena: Arena, _ make: (Source, Arena) throws -> Element) throws {
        let elements = try arena.array(Element.self, sources.count)
        let pointers = try arena.array(UnsafePointer<Element>?.self, sources.count + 1)
        var i = 0
        for source in sources {
            (elements + i).initialize(to: try make(source, arena))
            (pointers + i).initialize(to: UnsafePointer(elements + i))
            i += 1
        }
        (pointers + i).initialize(to: nil)
        start = UnsafePointer(pointers)
        count = i
    }
}

/// A list, report or result: a struct of the header that the library creates, and the caller reads and releases.
///
///     -16  8  the object itself, of which the caller holds a reference
///      -8  8  unused
///       0     the struct of the header
package class StructHandle<Struct: BitwiseCopyable>: Handle, @unchecked Sendable {
    private static var prefix: Int { 16 }
    let arena: Arena
    /// Valid while the object is retained.
    package let contents: UnsafeMutablePointer<Struct>

    /// - Parameter arena: holds the memory that the struct points to.
    init(_ arena: Arena, _ value: Struct) throws {
        let prefix = StructHandle.prefix
        let start = try UnsafeMutableRawPointer(arena.array(UInt64.self, (prefix + MemoryLayout<Struct>.stride) / 8))
        self.arena = arena
        contents = (start + prefix).bindMemory(to: Struct.self, capacity: 1)
        contents.initialize(to: value)
        super.init()
        start.storeBytes(of: Unmanaged.passUnretained(self as Handle).toOpaque(), as: UnsafeMutableRawPointer.self)
    }

    /// Makes one for a function of another module.
    package static func make(_ arena: Arena, _ value: Struct) throws -> StructHandle { try StructHandle(arena, value) }

    /// The struct, owned by the caller.
    package final var handedOut: UnsafeMutablePointer<Struct> {
        _ = Unmanaged.passRetained(self)
        return contents
    }

    /// Releases the caller's reference to the object behind a struct. No effect for NULL.
    package static func free(_ contents: UnsafeMutablePointer<Struct>?) {
        guard let contents else { return }
        let object = (UnsafeRawPointer(contents) - prefix).loadUnaligned(as: UnsafeRawPointer.self)
        Unmanaged<Handle>.fromOpaque(object).release()
    }
}

extension UInt32 {
    /// The `struct_size` of a struct that the library creates.
    package init<Struct>(sizeOf type: Struct.Type) { self.init(truncatingIfNeeded: MemoryLayout<Struct>.size) }
}
