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

    /// Runs of more than 12 KiB are read at three places at a time.
    @Test func largeRunsHaveTheChecksumOfTheirParts() {
        let data = Filling.noise(1, 100_000)
        data.withUnsafeBytes { bytes in
            for size in [12_287, 12_288, 12_289, 20_000, 24_575, 24_576, 24_583, 99_000] {
                for start in [0, 1, 7] {
                    let run = UnsafeRawBufferPointer(rebasing: bytes[start..<start + size])
                    var parts: UInt32 = 5
                    for at in stride(from: 0, to: size, by: 1_000) {
                        parts = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: run[at..<min(size, at + 1_000)]), from: parts)
                    }
                    #expect(Bytes.crc32c(run, from: 5) == parts, "\(size) bytes from \(start) on")
                }
            }
        }
    }
}
