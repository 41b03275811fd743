/// What came of a large value before its link was cut, in pieces among the caches of the store: so it goes on where it was also when the
/// store is opened anew. Nothing relies on it: what is not as it was kept is asked for again.
struct LiveParts {
    /// Bytes of a piece, and what is asked for at once.
    static let size = 4 << 20
    /// For how many seconds they are good.
    static let age: UInt64 = 7 * 86_400
    static let list = "live-parts"
    static func name(_ number: Int) -> String { "live-part-\(number)" }

    private let storage: (any Storage)?
    /// The value that they are of, how many are kept, and what came of the next.
    private var sha256: [UInt8] = []
    private var count = 0
    private var piece: [UInt8] = []

    init(_ store: Store) {
        // What is forgotten with the handle need not be kept twice; a host's storage may keep caches in memory.
        storage = store.storage is MemoryStorage || store.storage is CallbackStorage ? nil : store.storage
    }

    /// Bytes that are kept of a value of so many, at most.
    func room(for size: Int) -> Int { storage == nil ? 0 : size / LiveParts.size * (LiveParts.size + 32) }

    /// Begins with a value.
    /// - Parameters:
    ///   - size: its bytes.
    ///   - take: called with the pieces that are there, in order.
    /// - Returns: how many bytes these have.
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

    /// Takes what comes of it, in order.
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

    /// All of it came, or it is none.
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
