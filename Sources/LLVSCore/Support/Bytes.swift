import CLLVSShims

/// Functions on raw bytes that several folders need.
@usableFromInline
package enum Bytes {
    /// Returns the CRC-32C of some bytes followed by that many zeros, given the CRC of the bytes. O(log count).
    static func crc32c(zeros count: UInt64, from crc: UInt32) -> UInt32 {
        var zero: UInt8 = 0
        var crc = crc, piece = llvs_shim_crc32c(0, &zero, 1), size: UInt64 = 1, left = count
        while left > 0 {
            if left & 1 == 1 { crc = llvs_shim_crc32c_combine(crc, piece, size) }
            left >>= 1
            guard left > 0 else { break }
            piece = llvs_shim_crc32c_combine(piece, piece, size)
            size <<= 1
        }
        return crc
    }

    /// Compares bytes like `memcmp`; a prefix comes first. Returns <0, 0 or >0.
    @inlinable @inline(__always)
    package static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        let n = min(a.count, b.count)
        if n > 0, let p = a.baseAddress, let q = b.baseAddress {
            let order = memcmp(p, q, n)
            if order != 0 { return Int(order) }
        }
        return a.count - b.count
    }

    /// Returns whether bytes contain a run of bytes. True for an empty run.
    static func contains(_ bytes: UnsafeRawBufferPointer, _ run: [UInt8]) -> Bool {
        guard let first = run.first else { return true }
        return run.withUnsafeBytes { run in
            var at = 0
            while bytes.count - at >= run.count, let base = bytes.baseAddress {
                guard let hit = memchr(base + at, Int32(first), bytes.count - at - run.count + 1) else { return false }
                at = UnsafeRawPointer(hit) - base
                if equal(UnsafeRawBufferPointer(rebasing: bytes[at..<at + run.count]), run) { return true }
                at += 1
            }
            return false
        }
    }

    /// Returns whether both have the same bytes.
    @inlinable @inline(__always)
    package static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        guard a.count == b.count else { return false }
        guard a.count > 0, let p = a.baseAddress, let q = b.baseAddress else { return true }
        return memcmp(p, q, a.count) == 0
    }

    /// Returns whether the bytes begin with others.
    @inlinable @inline(__always)
    package static func begins(_ bytes: UnsafeRawBufferPointer, with start: [UInt8]) -> Bool {
        start.withUnsafeBytes { bytes.count >= $0.count && equal(UnsafeRawBufferPointer(rebasing: bytes[..<$0.count]), $0) }
    }

    /// Compares like the form for raw bytes.
    @inlinable
    package static func compare(_ a: [UInt8], _ b: [UInt8]) -> Int {
        a.withUnsafeBytes { x in b.withUnsafeBytes { y in compare(x, y) } }
    }

    /// Returns whether both have the same bytes.
    @inlinable
    package static func equal(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.withUnsafeBytes { x in b.withUnsafeBytes { y in equal(x, y) } }
    }

    /// Returns eight bytes as a number with the same order, padded with zeros.
    @inlinable @inline(__always)
    package static func word(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
        if bytes.count - offset >= 8 { return UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
        var word: UInt64 = 0
        for i in 0..<8 { word = word << 8 | (offset + i < bytes.count ? UInt64(bytes[offset + i]) : 0) }
        return word
    }

    /// Returns whether the bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms).
    package static func isValidUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var i = 0
        let n = bytes.count
        // ASCII, eight bytes at a time.
        while i + 8 <= n {
            if bytes.loadUnaligned(fromByteOffset: i, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 { break }
            i += 8
        }
        while i < n {
            let b = bytes[i]
            if b < 0x80 {
                let isText = i + 8 <= n && bytes.loadUnaligned(fromByteOffset: i, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
                i += isText ? 8 : 1
                continue
            }
            var low: UInt8 = 0x80, high: UInt8 = 0xBF
            let more: Int
            switch b {
            case 0xC2...0xDF: more = 1
            case 0xE0: more = 2; low = 0xA0
            case 0xE1...0xEC, 0xEE...0xEF: more = 2
            case 0xED: more = 2; high = 0x9F
            case 0xF0: more = 3; low = 0x90
            case 0xF1...0xF3: more = 3
            case 0xF4: more = 3; high = 0x8F
            default: return false
            }
            guard n - i > more, bytes[i + 1] >= low, bytes[i + 1] <= high else { return false }
            if more >= 2 { guard bytes[i + 2] & 0xC0 == 0x80 else { return false } }
            if more == 3 { guard bytes[i + 3] & 0xC0 == 0x80 else { return false } }
            i += more + 1
        }
        return true
    }

    package static func crc32c(_ bytes: UnsafeRawBufferPointer, from crc: UInt32 = 0) -> UInt32 {
        guard let p = bytes.baseAddress else { return crc }
        return llvs_shim_crc32c(crc, p, bytes.count)
    }
}

/// SHA-256 (FIPS 180-4).
package struct SHA256 {
    private var context = llvs_shim_sha256()
    package init() { llvs_shim_sha256_init(&context) }
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if let p = bytes.baseAddress { llvs_shim_sha256_update(&context, p, bytes.count) }
    }
    package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }
    /// Returns the 32 bytes of the digest.
    package mutating func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        digest.withUnsafeMutableBufferPointer { if let p = $0.baseAddress { llvs_shim_sha256_final(&context, p) } }
        return digest
    }
    /// Returns the digest as four words in memory order.
    mutating func finishWords() -> (UInt64, UInt64, UInt64, UInt64) {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) {
            if let p = $0.assumingMemoryBound(to: UInt8.self).baseAddress { llvs_shim_sha256_final(&context, p) }
        }
        return words
    }
    /// Returns the SHA-256 of bytes as four words in memory order.
    package static func words(_ bytes: UnsafeRawBufferPointer) -> (UInt64, UInt64, UInt64, UInt64) {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finishWords()
    }
    package static func digest(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finish()
    }
}
