/// Finds the ordinal of a version by its id: open addressing over 32-bit ordinals, so 100,000 versions take a megabyte. The history holds
/// the ids.
///
/// Keyed by a secret per process: ids from outside cannot be made to collide.
struct OrdinalTable: ~Copyable {
    /// Allocated memory instead of an array, whose reference count readers on all threads would change.
    private var slots = OrdinalTable.memory(64)
    private var mask = 63
    private var used = 0
    private static func memory(_ count: Int) -> UnsafeMutablePointer<UInt32> {
        let slots = UnsafeMutablePointer<UInt32>.allocate(capacity: count)
        slots.initialize(repeating: .max, count: count)
        return slots
    }
    deinit { slots.deallocate() }
    /// Bytes.
    var size: Int { (mask + 1) * MemoryLayout<UInt32>.stride }

    /// One secret for each half: if a factor were known, ids could be made that collide. An odd factor spreads the upper bits down, since a
    /// random factor may end in many zeros.
    private static let secret = SystemRandomNumberGenerator.word(), other = SystemRandomNumberGenerator.word()
    private static let spreading = SystemRandomNumberGenerator.word() | 1

    static func hash(_ id: VersionID) -> UInt64 {
        if let text = id.text {
            var hasher = Hasher()
            hasher.combine(text)
            return UInt64(bitPattern: Int64(hasher.finalize()))
        }
        let product = (id.high ^ secret).multipliedFullWidth(by: (id.low ^ other) | 1)
        let spread = (product.high ^ product.low) &* spreading
        return spread ^ spread >> 32
    }

    @inline(__always)
    func find(_ hash: UInt64, where matches: (UInt32) -> Bool) -> UInt32? {
        var i = Int(truncatingIfNeeded: hash) & mask
        while slots[i] != .max {
            if matches(slots[i]) { return slots[i] }
            i = (i + 1) & mask
        }
        return nil
    }

    /// Reserves capacity in an empty table.
    mutating func reserve(_ count: Int) {
        guard used == 0 else { return }
        var size = 64
        while size * 3 < (count + count / 8 + 1) * 4 { size *= 2 }
        slots.deallocate()
        slots = OrdinalTable.memory(size)
        mask = size - 1
    }

    /// Throws `.outOfMemory` if the table must grow for one more and cannot.
    func preallocate() throws {
        if (used + 1) * 4 > (mask + 1) * 3 { try Memory.expect((mask + 1) * 8, "The history") }
    }

    /// Inserts an ordinal. `hashOf` returns the hash of an ordinal that is in the table already.
    mutating func insert(_ ordinal: UInt32, hash: UInt64, hashOf: (UInt32) -> UInt64) {
        if (used + 1) * 4 > (mask + 1) * 3 {
            let old = UnsafeMutableBufferPointer(start: slots, count: mask + 1)
            slots = OrdinalTable.memory(old.count * 2)
            mask = old.count * 2 - 1
            for ordinal in old where ordinal != .max { place(ordinal, hashOf(ordinal)) }
            old.deallocate()
        }
        place(ordinal, hash)
        used += 1
    }

    private mutating func place(_ ordinal: UInt32, _ hash: UInt64) {
        var i = Int(truncatingIfNeeded: hash) & mask
        while slots[i] != .max { i = (i + 1) & mask }
        slots[i] = ordinal
    }
}

extension SystemRandomNumberGenerator {
    static func word() -> UInt64 {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }
}
