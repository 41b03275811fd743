import CLLVSShims
import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSUpkeep

/// Which values are compressed, and which look incompressible.
@Suite struct DeflationTests {
    private static let sizes = [257, 300, 1_000, 3_072, 3_073, 4_096, 24_600, 65_535, 65_536, 70_000, 1 << 20]

    private func random(_ size: Int, mask: UInt64 = .max, seed: UInt64 = 1) -> [UInt8] {
        var random = SeededRandom(seed: seed &+ UInt64(size))
        return [UInt8](unsafeUninitializedCapacity: size + 8) { buffer, count in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            for at in stride(from: 0, to: size, by: 8) { raw.storeBytes(of: random.next() & mask, toByteOffset: at, as: UInt64.self) }
            count = size
        }
    }
    private func repeated(_ block: [UInt8], _ size: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            block.withUnsafeBytes { block in
                for at in stride(from: 0, to: size, by: block.count) {
                    let part = min(block.count, size - at)
                    UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[at..<at + part]).copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: block[..<part]))
                }
            }
            count = size
        }
    }
    private func looksSo(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { llvs_shim_may_deflate($0.baseAddress, $0.count) == 1 } }

    @Test func whatIsCompressedAlreadyLooksSo() {
        for size in Self.sizes { for seed in 1...8 { #expect(!looksSo(random(size, seed: UInt64(seed))), "\(size), seed \(seed)") } }
    }

    @Test func whatDeflatesLooksSo() {
        let words = "the quick brown fox jumps over the lazy dog, and so on; ".utf8.map { $0 }
        for size in Self.sizes {
            #expect(looksSo(repeated(words, size)), "text of \(size)")
            #expect(looksSo(random(size, mask: 0x7F7F_7F7F_7F7F_7F7F)), "seven bits of eight, \(size)")
            #expect(looksSo(random(size, mask: 0xFFFF_FFFF_0000_00FF)), "many zeros, \(size)")
            #expect(looksSo(Array(Base64.encode(random(size)).prefix(size))), "base64 of \(size)")
            // All bytes are equally frequent, but everything is repeated.
            #expect(looksSo(repeated(random(180), size)), "a block again and again, \(size)")
            #expect(looksSo([UInt8](repeating: 0, count: size)))
        }
        // Half of the value is compressible.
        for size in Self.sizes where size > 1_000 {
            #expect(looksSo(random(size / 2) + repeated(words, size / 2)))
            #expect(looksSo(repeated(words, size / 2) + random(size / 2)))
        }
    }

    /// Encodes a record of one value. Returns the bytes that the value takes in it.
    private func stored(_ data: [UInt8], _ sizes: RecordEncoder.Sizes = .init()) throws -> Int {
        try [.insert(ValueID("v"), data: data)].withBorrowed { borrowed in
            let encoder = RecordEncoder(sizes)
            try encoder.encode(plainVersion("version"), RecordChanges(borrowed), blobThreshold: nil) { _, _ in BlobID(high: 0, low: 0) }
            return encoder.bodies[0].size
        }
    }

    @Test func recordsTakeItAtItsWord() throws {
        var kept = RecordEncoder.Sizes(), again = RecordEncoder.Sizes()
        kept.deflated = 1 << 30
        again.deflated = 0
        // Deflate would find the repeats. They are further apart than the sample reaches.
        let apart = repeated(random(20_000), 80_000)
        for sizes in [kept, again] {
            #expect(try stored(random(80_000), sizes) == 80_000)
            #expect(try stored(apart, sizes) == 80_000, "repeats beyond the sample are not found")
            #expect(try stored(random(80_000, mask: 0x0F0F_0F0F_0F0F_0F0F), sizes) < 50_000)
            #expect(try stored(random(257), sizes) == 257)
            #expect(try stored(repeated(random(64), 257), sizes) < 200)
        }
    }

    /// Small values are stored uncompressed if deflate saves less than an eighth. Of larger values each saved byte counts.
    @Test func smallValuesAreDeflatedWhereItPays() throws {
        var again = RecordEncoder.Sizes()
        again.deflated = 0
        for sizes in [RecordEncoder.Sizes(), again] {
            // The code for small values takes eight bits for a byte below 0x90, and about two bytes for a repeat.
            for size in [257, 400, 512] {
                let letters = random(size, mask: 0x7F7F_7F7F_7F7F_7F7F)
                func text(repeating count: Int) -> [UInt8] { Array(letters[..<(size - count)] + letters[..<count]) }
                #expect(try stored(text(repeating: size / 16), sizes) == size)
                #expect(try stored(text(repeating: size / 4), sizes) < size - size / 8)
            }
            #expect((876..<1_000).contains(try stored(random(1_000, mask: 0x7F7F_7F7F_7F7F_7F7F), sizes)))
        }
    }

    @Test func snapshotsTakeItAtItsWord() throws {
        /// The bytes of the only chunk.
        func chunk(_ data: [UInt8]) throws -> Int {
            var sizes: [Int] = []
            var writer = SnapshotWriter(id: String(repeating: "A", count: SnapshotLimits.idSize)) { sizes.append($1.count) }
            try writer.begin(plainVersion("version"), changeCount: 1)
            try [.insert(ValueID("v"), data: data)].withBorrowed { for change in $0 { try writer.append(change) } }
            try writer.finish()
            #expect(sizes.count == 1)
            return sizes.reduce(0, +)
        }
        let apart = (0..<50).reduce(into: [UInt8]()) { $0 += repeated(random(20_000, seed: $1), 40_000) }
        #expect(try chunk(apart) > apart.count)
        #expect(try chunk(random(2_000_000)) > 2_000_000)
        #expect(try chunk(random(2_000_000, mask: 0x0F0F_0F0F_0F0F_0F0F)) < 1_300_000)
    }
}
