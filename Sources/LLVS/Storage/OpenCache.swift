/// Bytes of a cache that stay where they are for as long as this object lives. Where the storage keeps files they come as they are asked
/// for. Safe from all threads.
public final class OpenCache: @unchecked Sendable {
    // Sendable: the bytes do not change once they are here; who brings them has a lock.
    /// At an address that is a multiple of 16. What was not asked for (`fill`) may be zeros.
    public let bytes: UnsafeRawBufferPointer
    /// Whether they are those of a mapped file: then they take no memory of the process's own.
    public let isMapped: Bool
    private let release: () -> Void
    private let filling: ((Range<Int>) -> Bool)?
    private let letting: ((Range<Int>) -> Void)?

    /// Bytes that somebody else owns, and how to let go of them. `fill`: brings some of them; nil: all of them are here. `letGo`: gives the
    /// memory of some of them back.
    public init(
        _ bytes: UnsafeRawBufferPointer, release: @escaping () -> Void, fill: ((Range<Int>) -> Bool)? = nil, isMapped: Bool = false,
        letGo: ((Range<Int>) -> Void)? = nil
    ) {
        self.bytes = bytes
        self.isMapped = isMapped
        self.release = release
        filling = fill
        letting = letGo
    }

    /// Whether they are read from a file into memory, as they are asked for.
    var areRead: Bool { filling != nil }
    /// Bytes of the process's memory that they take when all of them are here.
    var memory: Int { isMapped ? 0 : bytes.count }

    /// Gives back what some of them take: those of a mapped file come again by themselves, at any time; others have to be asked for again
    /// (`fill`), and nobody may be looking at them now.
    func letGo(_ range: Range<Int>) { letting?(range) }

    /// To be asked before bytes are looked at: whether they are here now. What once was stays.
    public func fill(_ range: Range<Int>) -> Bool { filling?(range) ?? true }

    /// A copy in memory.
    public convenience init(copying bytes: UnsafeRawBufferPointer) {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 16)
        memory.copyMemory(from: bytes)
        self.init(UnsafeRawBufferPointer(start: memory.baseAddress, count: bytes.count)) { memory.deallocate() }
    }

    deinit { release() }
}

/// Takes the bytes of a cache as they are made. One thread at a time. What is let go of before `finish` leaves nothing.
public protocol CacheWriter: AnyObject {
    /// Adds bytes at the end.
    func append(_ bytes: UnsafeRawBufferPointer) throws
    /// Puts the cache in place and answers its bytes. Nothing may be appended behind it.
    func finish() throws -> OpenCache
}

/// Gathers a cache in memory, for storages that keep no files and for caches that nobody will ask for by name.
final class MemoryCacheWriter: CacheWriter {
    private var bytes: [UInt8] = []
    private let put: ([UInt8]) throws -> Void

    /// `put` is called once, with all of it.
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
