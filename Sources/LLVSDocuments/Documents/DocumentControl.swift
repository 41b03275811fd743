extension Bytes {
    /// Calls with each place where a non-empty part begins, including overlapping ones, until `body` returns false. O(bytes).
    static func forEachPlace(of part: [UInt8], in bytes: UnsafeRawBufferPointer, _ body: (Int) -> Bool) {
        guard !part.isEmpty, part.count <= bytes.count else { return }
        // For each i, the length of the longest border of the part's first i + 1 bytes (Knuth, Morris, Pratt).
        var borders = [0], matched = 0
        for i in part.indices.dropFirst() {
            while matched > 0, part[i] != part[matched] { matched = borders[matched - 1] }
            if part[i] == part[matched] { matched += 1 }
            borders.append(matched)
        }
        matched = 0
        for i in bytes.indices {
            while matched > 0, bytes[i] != part[matched] { matched = borders[matched - 1] }
            if bytes[i] == part[matched] { matched += 1 }
            guard matched == part.count else { continue }
            guard body(i + 1 - matched) else { return }
            matched = borders[matched - 1]
        }
    }

    /// The same as `equal`, for few bytes; both sides have the same number.
    @inline(__always)
    static func equalShort(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        guard let p = a.baseAddress, let q = b.baseAddress else { return a.count == b.count }
        let count = a.count
        func eight(_ p: UnsafeRawPointer, _ at: Int) -> UInt64 { p.loadUnaligned(fromByteOffset: at, as: UInt64.self) }
        func four(_ p: UnsafeRawPointer, _ at: Int) -> UInt32 { p.loadUnaligned(fromByteOffset: at, as: UInt32.self) }
        func one(_ p: UnsafeRawPointer, _ at: Int) -> UInt8 { p.load(fromByteOffset: at, as: UInt8.self) }
        if count > 16 { return memcmp(p, q, count) == 0 }
        if count >= 8 { return eight(p, 0) == eight(q, 0) && eight(p, count - 8) == eight(q, count - 8) }
        if count >= 4 { return four(p, 0) == four(q, 0) && four(p, count - 4) == four(q, count - 4) }
        return count == 0 || one(p, 0) == one(q, 0) && one(p, count / 2) == one(q, count / 2) && one(p, count - 1) == one(q, count - 1)
    }

    /// The same as `memcpy`, fast for few bytes.
    @inline(__always)
    static func copy(_ from: UnsafeRawPointer, _ to: UnsafeMutableRawPointer, _ count: Int) {
        func eight(_ at: Int) {
            to.storeBytes(of: from.loadUnaligned(fromByteOffset: at, as: UInt64.self), toByteOffset: at, as: UInt64.self)
        }
        func four(_ at: Int) {
            to.storeBytes(of: from.loadUnaligned(fromByteOffset: at, as: UInt32.self), toByteOffset: at, as: UInt32.self)
        }
        func one(_ at: Int) { to.storeBytes(of: from.load(fromByteOffset: at, as: UInt8.self), toByteOffset: at, as: UInt8.self) }
        if count > 32 {
            memcpy(to, from, count)
        } else if count >= 8 {
            // The overlap is written twice.
            if count > 16 {
                eight(8)
                eight(count - 16)
            }
            eight(0)
            eight(count - 8)
        } else if count >= 4 {
            four(0)
            four(count - 4)
        } else if count > 0 {
            one(0)
            one(count / 2)
            one(count - 1)
        }
    }

    /// Returns how many bytes both have in common from the given places on.
    static func common(_ a: UnsafeRawBufferPointer, _ i: Int, _ b: UnsafeRawBufferPointer, _ j: Int) -> Int {
        let most = min(a.count - i, b.count - j)
        guard most > 0, let p = a.baseAddress, let q = b.baseAddress else { return 0 }
        let first = p + i, second = q + j
        var n = 0
        while n + 8 <= most {
            let x = first.loadUnaligned(fromByteOffset: n, as: UInt64.self), y = second.loadUnaligned(fromByteOffset: n, as: UInt64.self)
            if x != y { return n + UInt64(littleEndian: x ^ y).trailingZeroBitCount >> 3 }
            n += 8
        }
        while n < most, first.load(fromByteOffset: n, as: UInt8.self) == second.load(fromByteOffset: n, as: UInt8.self) { n += 1 }
        return n
    }

    /// Returns how many bytes both have in common before the given places.
    static func common(_ a: UnsafeRawBufferPointer, before i: Int, _ b: UnsafeRawBufferPointer, before j: Int) -> Int {
        let most = min(i, j)
        guard most > 0, let p = a.baseAddress, let q = b.baseAddress else { return 0 }
        let first = p + i, second = q + j
        var n = 0
        while n + 8 <= most {
            let x = first.loadUnaligned(fromByteOffset: -n - 8, as: UInt64.self)
            let y = second.loadUnaligned(fromByteOffset: -n - 8, as: UInt64.self)
            if x != y { return n + UInt64(littleEndian: x ^ y).leadingZeroBitCount >> 3 }
            n += 8
        }
        while n < most, first.load(fromByteOffset: -n - 1, as: UInt8.self) == second.load(fromByteOffset: -n - 1, as: UInt8.self) { n += 1 }
        return n
    }

    /// Returns whether the byte is among the bytes.
    static func contains(_ byte: UInt8, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return false }
        return memchr(base, Int32(byte), bytes.count) != nil
    }
}

/// Counts the steps of a merge, and checks now and then whether it must stop.
package final class DocumentControl {
    private static let perCheck = 1 << 20
    private let check: (() throws -> Void)?
    @exclusivity(unchecked) private var left = perCheck

    /// - Parameter check: called about once in a million steps. It throws to stop the work.
    package init(_ check: (() throws -> Void)? = nil) { self.check = check }

    @inline(__always)
    package func done(_ steps: Int) throws {
        left -= steps
        if left <= 0 { try look() }
    }

    private func look() throws {
        left = Self.perCheck
        try check?()
    }
}
