/// The bytes of a cache, which stay at one address as long as this object lives. If the storage has files, they are loaded on demand.
/// Safe from all threads.
package final class OpenCache: @unchecked Sendable {
    // Sendable: loaded bytes do not change, and loading has a lock.
    /// The address is a multiple of 16. Bytes that were not requested by `fill` may be zeros.
    package let bytes: UnsafeRawBufferPointer
    /// Whether the bytes belong to a mapped file, which uses no private memory of the process.
    package let isMapped: Bool
    private let release: () -> Void
    private let filling: ((Range<Int>) -> Bool)?
    private let letting: ((Range<Int>) -> Void)?

    /// Wraps bytes that another object owns.
    /// - Parameters:
    ///   - bytes: the bytes, valid until `release` is called.
    ///   - release: releases them.
    ///   - fill: loads a range; nil if all bytes are loaded.
    ///   - isMapped: whether they are a file that is mapped into memory.
    ///   - letGo: releases the memory of a range.
    package init(
        _ bytes: UnsafeRawBufferPointer, release: @escaping () -> Void, fill: ((Range<Int>) -> Bool)? = nil, isMapped: Bool = false,
        letGo: ((Range<Int>) -> Void)? = nil
    ) {
        self.bytes = bytes
        self.isMapped = isMapped
        self.release = release
        filling = fill
        letting = letGo
    }

    /// Whether they are loaded from a file on demand.
    var areRead: Bool { filling != nil }
    /// The bytes of the process's memory that they use once all are loaded.
    var memory: Int { isMapped ? 0 : bytes.count }

    /// Releases the memory of a range. The bytes of a mapped file are loaded again on access, at any time. Others must be requested again
    /// by `fill`. Precondition: no thread reads them now.
    func letGo(_ range: Range<Int>) { letting?(range) }

    /// Loads a range before it is read. Returns whether it is loaded. Loaded bytes stay loaded, except after `letGo`.
    package func fill(_ range: Range<Int>) -> Bool { filling?(range) ?? true }

    /// Creates a copy in memory.
    package convenience init(copying bytes: UnsafeRawBufferPointer) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 16)
        memory.copyMemory(from: bytes)
        self.init(UnsafeRawBufferPointer(start: memory.baseAddress, count: bytes.count)) { memory.deallocate() }
    }

    deinit { release() }
}

/// Writes a cache in pieces. Used by one thread at a time. If it is released before `finish`, nothing is stored.
package protocol CacheWriter: AnyObject {
    /// Appends bytes.
    func append(_ bytes: UnsafeRawBufferPointer) throws
    /// Publishes the cache and returns its bytes. Nothing may be appended after it.
    func finish() throws -> OpenCache
}

/// Collects a cache in memory, for storages without files and for caches without a name.
final class MemoryCacheWriter: CacheWriter {
    private var bytes: [UInt8] = []
    private let put: ([UInt8]) throws -> Void

    /// - Parameter put: called once, with all bytes.
    init(put: @escaping ([UInt8]) throws -> Void = { _ in }) { self.put = put }

    func append(_ more: UnsafeRawBufferPointer) throws {
        try Memory.grow(&bytes, by: more.count, "A cache in memory")
        bytes.append(contentsOf: more)
    }

    func finish() throws -> OpenCache {
        try put(bytes)
        defer { bytes = [] }
        return bytes.withUnsafeBytes { OpenCache(copying: $0) }
    }
}
