/// Sixteen random bytes that name a segment or a blob. In file names they are 32 lower-case hex digits.
package struct RandomName: Hashable, Comparable, Sendable {
    /// The bytes in big-endian order: the first byte is the highest of `high`.
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) { self.high = high; self.low = low }
    init(_ blob: BlobID) { self.init(high: blob.high, low: blob.low) }

    package static func random() throws(Errno) -> RandomName {
        let bytes = try System.random(16)
        return bytes.withUnsafeBytes { RandomName(loading: $0, at: 0) }
    }

    /// Reads a name at `offset`. Precondition: the bytes are there.
    init(loading bytes: UnsafeRawBufferPointer, at offset: Int) {
        high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
    }

    package static func < (a: RandomName, b: RandomName) -> Bool { a.high != b.high ? a.high < b.high : a.low < b.low }

    func store(in bytes: UnsafeMutableRawBufferPointer, at offset: Int) {
        bytes.storeBytes(of: high.bigEndian, toByteOffset: offset, as: UInt64.self)
        bytes.storeBytes(of: low.bigEndian, toByteOffset: offset + 8, as: UInt64.self)
    }

    package var hex: String {
        String(unsafeUninitializedCapacity: 32) { text in
            for i in 0..<32 {
                let nibble = UInt8(truncatingIfNeeded: (i < 16 ? high : low) >> UInt64(60 - i % 16 * 4)) & 15
                text.initializeElement(at: i, to: nibble < 10 ? 0x30 + nibble : 0x57 + nibble)
            }
            return 32
        }
    }

    /// Parses 32 lower-case hex digits; nil for anything else.
    init?(hex: some StringProtocol) {
        var words: [UInt64] = [0, 0]
        var count = 0
        for b in hex.utf8 {
            let nibble: UInt8
            switch b {
            case 0x30...0x39: nibble = b - 0x30
            case 0x61...0x66: nibble = b - 0x57
            default: return nil
            }
            guard count < 32 else { return nil }
            words[count / 16] = words[count / 16] << 4 | UInt64(nibble)
            count += 1
        }
        guard count == 32 else { return nil }
        self.init(high: words[0], low: words[1])
    }
}
