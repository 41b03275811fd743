/// The received part of a large value whose link was cut, in pieces in the store's cache. The next link continues with it, also after the
/// store was reopened. Nothing relies on it: a damaged piece is requested again.
struct LiveParts {
    /// The bytes of a piece, and of one request.
    static let size = 4 << 20
    /// The age in seconds at which pieces expire.
    static let age: UInt64 = 7 * 86_400
    static let list = "live-parts"
    static func name(_ number: Int) -> String { "live-part-\(number)" }

    private let storage: (any Storage)?
    /// The value that the pieces are of, how many pieces are stored, and the received part of the next one.
    private var sha256: [UInt8] = []
    private var count = 0
    private var piece: [UInt8] = []

    init(_ store: Store) {
        // A cache that ends with the handle is of no use here; a host's storage may keep its cache in memory.
        storage = store.storage is MemoryStorage || store.storage is CallbackStorage ? nil : store.storage
    }

    /// Returns the most bytes that the pieces of a value of a given size take.
    func room(for size: Int) -> Int { storage == nil ? 0 : size / LiveParts.size * (LiveParts.size + 32) }

    /// Begins a value.
    /// - Parameters:
    ///   - size: the size of the value in bytes.
    ///   - take: called with the stored pieces, in order.
    /// - Returns: the number of bytes of these pieces.
    mutating func begin(_ sha256: [UInt8], size: UInt64, _ take: (UnsafeRawBufferPointer) throws -> Void) throws -> UInt64 {
        (self.sha256, count, piece) = (sha256, 0, [])
        guard let storage, size > UInt64(LiveParts.size), let known = LiveParts.read(storage) else { return 0 }
        guard known.made <= LiveParts.now, LiveParts.now - known.made <= LiveParts.age else {
            LiveParts.remove(known.count, storage)
            return 0
        }
        guard known.sha256 == sha256 else { return 0 }
        while count < known.count, UInt64(count + 1) * UInt64(LiveParts.size) < size {
            guard let bytes = try? storage.cacheGet(LiveParts.name(count)), bytes.count == 32 + LiveParts.size else { break }
            let isWhole = bytes.withUnsafeBytes { SHA256.digest(UnsafeRawBufferPointer(rebasing: $0[32...])) } == Array(bytes[..<32])
            guard isWhole else { break }
            try bytes.withUnsafeBytes { try take(UnsafeRawBufferPointer(rebasing: $0[32...])) }
            count += 1
        }
        return UInt64(count) * UInt64(LiveParts.size)
    }

    /// Appends received bytes, in order.
    mutating func append(_ bytes: [UInt8], at offset: UInt64) {
        guard let storage, offset == UInt64(count) * UInt64(LiveParts.size) + UInt64(piece.count),
            (try? Memory.grow(&piece, by: bytes.count, "Keeping a large value")) != nil
        else { return }
        piece += bytes
        guard piece.count >= LiveParts.size else { return }
        let whole = Array(piece[..<LiveParts.size])
        piece.removeFirst(LiveParts.size)
        let known = LiveParts.read(storage)
        if known?.sha256 != sha256 { LiveParts.remove(known?.count ?? 0, storage) }
        let digest = whole.withUnsafeBytes { SHA256.digest($0) }
        guard (try? storage.cachePut(LiveParts.name(count), digest + whole)) != nil else { return sha256 = [] }
        count += 1
        var out = ByteWriter()
        out.integer(LiveParts.now)
        out.integer(UInt32(truncatingIfNeeded: count))
        out.raw(sha256)
        try? storage.cachePut(LiveParts.list, out.bytes)
    }

    /// Removes the pieces: the value is complete, or it is wrong.
    mutating func end() {
        if let storage, count > 0 { LiveParts.remove(count, storage) }
        (sha256, count, piece) = ([], 0, [])
    }

    private static var now: UInt64 { UInt64(max(0, Clock.now())) }

    private static func remove(_ count: Int, _ storage: any Storage) {
        try? storage.cacheDelete(list)
        for number in 0..<count { try? storage.cacheDelete(name(number)) }
    }

    private static func read(_ storage: any Storage) -> (made: UInt64, count: Int, sha256: [UInt8])? {
        guard let bytes = try? storage.cacheGet(list), bytes.count == 44 else { return nil }
        return bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard let made = reader.integer(UInt64.self), let count = reader.integer(UInt32.self), let sha256 = reader.take(32),
                count <= UInt32(truncatingIfNeeded: Limits.valueSize / size)
            else { return nil }
            return (made, Int(count), Array(sha256))
        }
    }
}
