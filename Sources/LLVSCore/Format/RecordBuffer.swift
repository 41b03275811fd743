import CLLVSShims

/// A growing buffer for the forms that `ByteReader` reads: for records, which may have a million entries.
///
/// Reserve room for the most that will be written first. Writing then checks nothing, except in debug builds.
struct RecordBuffer: ~Copyable {
    private(set) var count = 0
    private(set) var capacity = 0
    private var start: UnsafeMutableRawPointer?

    deinit { free(start) }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// - Throws: `.outOfMemory`.
    @inline(__always)
    mutating func reserve(_ more: Int) throws {
        if capacity - count < more { try grow(more) }
    }

    @inline(never)
    private mutating func grow(_ more: Int) throws {
        let wanted = max(count + more, 2 * capacity, 256)
        guard let grown = llvs_shim_reallocate(start, wanted) else {
            throw StoreError(.outOfMemory, "There is no memory for \(wanted) bytes of a record. Save the values in several versions.")
        }
        start = grown
        capacity = wanted
    }

    /// Removes the bytes, and releases the memory if it is more than `limit`.
    mutating func removeAll(keepingAtMost limit: Int = .max) {
        count = 0
        guard capacity > limit else { return }
        free(start)
        start = nil
        capacity = 0
    }

    mutating func removeLast(_ bytes: Int) { count -= min(bytes, count) }

    @inline(__always)
    mutating func integer<T: FixedWidthInteger>(_ value: T) {
        assert(capacity - count >= MemoryLayout<T>.size)
        start?.storeBytes(of: value.littleEndian, toByteOffset: count, as: T.self)
        count += MemoryLayout<T>.size
    }

    @inline(__always)
    mutating func varint(_ value: UInt64) {
        var v = value
        while v >= 0x80 { integer(UInt8(truncatingIfNeeded: v) | 0x80); v >>= 7 }
        integer(UInt8(truncatingIfNeeded: v))
    }

    @inline(__always)
    mutating func raw(_ more: UnsafeRawBufferPointer) {
        assert(capacity - count >= more.count)
        if let start, let from = more.baseAddress { memcpy(start + count, from, more.count) }
        count += more.count
    }

    /// At most 129 bytes.
    mutating func versionID(_ id: VersionID) {
        if id.text == nil {
            integer(UInt8(0))
            integer(id.high.byteSwapped)
            integer(id.low.byteSwapped)
        } else {
            id.withASCII {
                integer(UInt8(truncatingIfNeeded: $0.count)); raw($0)
            }
        }
    }

    mutating func blobID(_ id: BlobID) {
        integer(id.high.byteSwapped)
        integer(id.low.byteSwapped)
    }

    /// Overwrites bytes put before.
    mutating func patch<T: FixedWidthInteger>(_ value: T, at offset: Int) {
        guard offset >= 0, offset + MemoryLayout<T>.size <= count else { return }
        start?.storeBytes(of: value.littleEndian, toByteOffset: offset, as: T.self)
    }

    /// Calls `fill` with the reserved memory of `size` bytes, of which `fill` returns how many it wrote.
    mutating func withRoom(_ fill: (UnsafeMutableRawBufferPointer) -> Int) {
        let room = UnsafeMutableRawBufferPointer(start: start.map { $0 + count }, count: capacity - count)
        count += min(room.count, max(0, fill(room)))
    }
}
