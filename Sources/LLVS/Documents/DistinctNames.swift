/// The names of members while the tree is made.
struct NameTexts {
    let words: UnsafeMutablePointer<UInt32>?
    let bytes: UnsafeRawPointer?
    let decoded: UnsafeMutableRawPointer?

    @inline(__always)
    subscript(_ name: UInt32) -> UnsafeRawBufferPointer {
        guard let words else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let word = words[Int(name)]
        guard let base = JSONCode.isEscaped(word >> 26) ? UnsafeRawPointer(decoded) : bytes else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: base + Int(word & JSONTree.startMask), count: Int(words[Int(name) + 1]))
    }
}

/// Finds out whether names are distinct.
struct DistinctNames {
    private struct Slot {
        var hash: UInt64 = 0
        var name: UInt32 = 0
    }
    private var slots: [Slot] = []
    private var mask = 0

    mutating func begin(_ count: Int) {
        var size = 16
        while size < 2 * count { size *= 2 }
        if slots.count < size { slots = [Slot](repeating: Slot(), count: size) } else {
            for i in 0..<size { slots[i] = Slot() }
        }
        mask = size - 1
    }

    /// False when it is there already. A name is never node 0.
    mutating func insert(_ name: UInt32, _ texts: NameTexts) -> Bool {
        let bytes = texts[name], hash = ValueDigest.of(bytes)
        var i = Int(truncatingIfNeeded: hash) & mask
        while slots[i].name != 0 {
            if slots[i].hash == hash, Bytes.equal(texts[slots[i].name], bytes) { return false }
            i = (i + 1) & mask
        }
        slots[i] = Slot(hash: hash, name: name)
        return true
    }
}
