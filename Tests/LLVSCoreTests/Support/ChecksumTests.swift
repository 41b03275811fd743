import LLVSCore
import LLVSTestHelpers
import Testing

/// The checksum of frames, records and values: CRC-32C. Its code processes the last bytes in other steps than the rest.
@Suite struct ChecksumTests {
    @Test func everySizeHasTheChecksumOfTheStandard() {
        let data = (0..<64).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) }
        for size in 0...40 {
            for start in 0..<8 {
                var expected: UInt32 = .max
                for byte in data[start..<start + size] {
                    expected ^= UInt32(byte)
                    for _ in 0..<8 { expected = expected & 1 == 0 ? expected >> 1 : expected >> 1 ^ 0x82F6_3B78 }
                }
                let found = data.withUnsafeBytes { Bytes.crc32c(UnsafeRawBufferPointer(rebasing: $0[start..<start + size])) }
                #expect(found == ~expected, "\(size) bytes from \(start) on")
            }
        }
    }
}
