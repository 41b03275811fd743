/// SHA-1 (FIPS 180-4). Services identify stored bytes by it. The library does not use it for security.
package struct SHA1 {
    private var state: (UInt32, UInt32, UInt32, UInt32, UInt32) = (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0)
    private var waiting: [UInt8] = []
    private var count: UInt64 = 0
    private var words = [UInt32](repeating: 0, count: 80)
    package init() {}
    private static let block = 64

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        count &+= UInt64(bytes.count)
        var at = 0
        if !waiting.isEmpty {
            at = min(SHA1.block - waiting.count, bytes.count)
            waiting += bytes.prefix(at)
            guard waiting.count == SHA1.block else { return }
            let whole = waiting
            waiting = []
            whole.withUnsafeBytes { take($0) }
        }
        while bytes.count - at >= SHA1.block {
            take(UnsafeRawBufferPointer(rebasing: bytes[at..<(at + SHA1.block)]))
            at += SHA1.block
        }
        waiting += bytes[at...]
    }

    /// Returns the 20 bytes of the digest.
    package mutating func finish() -> [UInt8] {
        let bits = count &* 8
        let zeros = (SHA1.block * 2 - 9 - waiting.count) % SHA1.block
        let end = [0x80] + [UInt8](repeating: 0, count: zeros) + (0..<8).map { UInt8(truncatingIfNeeded: bits >> (56 - 8 * UInt64($0))) }
        end.withUnsafeBytes { update($0) }
        return [state.0, state.1, state.2, state.3, state.4].flatMap { word in
            (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) }
        }
    }

    private mutating func take(_ block: UnsafeRawBufferPointer) {
        for i in 0..<16 { words[i] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: 4 * i, as: UInt32.self)) }
        for i in 16..<80 { words[i] = SHA1.turned(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1) }
        var (a, b, c, d, e) = state
        for i in 0..<80 {
            let mixed: UInt32, constant: UInt32
            switch i {
            case 0..<20: (mixed, constant) = ((b & c) | (~b & d), 0x5A82_7999)
            case 20..<40: (mixed, constant) = (b ^ c ^ d, 0x6ED9_EBA1)
            case 40..<60: (mixed, constant) = ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC)
            default: (mixed, constant) = (b ^ c ^ d, 0xCA62_C1D6)
            }
            let next = SHA1.turned(a, 5) &+ mixed &+ e &+ constant &+ words[i]
            (a, b, c, d, e) = (next, a, SHA1.turned(b, 30), c, d)
        }
        state = (state.0 &+ a, state.1 &+ b, state.2 &+ c, state.3 &+ d, state.4 &+ e)
    }

    private static func turned(_ word: UInt32, _ by: UInt32) -> UInt32 { word << by | word >> (32 - by) }
}
