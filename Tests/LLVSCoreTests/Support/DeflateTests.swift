import CLLVSShims
import LLVSTestHelpers
import Testing

/// Deflate by libdeflate and by zlib: each reads the output of the other, and both refuse the same input.
struct DeflateTests {
    /// Runs the closure with zlib only, on this thread.
    static func byZlib<R>(_ body: () throws -> R) rethrows -> R {
        let before = llvs_shim_deflate_by_zlib(1)
        defer { _ = llvs_shim_deflate_by_zlib(before) }
        return try body()
    }

    static func deflate(_ data: [UInt8], room: Int, fast: Bool = false) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
            count = data.withUnsafeBytes {
                fast
                    ? llvs_shim_deflate_fast($0.baseAddress, $0.count, buffer.baseAddress, room)
                    : llvs_shim_deflate($0.baseAddress, $0.count, buffer.baseAddress, room)
            }
        }
    }

    /// Returns nil if the input is refused.
    static func inflate(_ deflated: [UInt8], _ size: Int) -> [UInt8]? {
        var isWhole = false
        let out = [UInt8](unsafeUninitializedCapacity: size + 1) { buffer, count in
            // One more byte after the room shows whether anything is written there.
            buffer[size] = 0xA5
            isWhole = deflated.withUnsafeBytes { llvs_shim_inflate($0.baseAddress, $0.count, buffer.baseAddress, size) } == 1
            #expect(buffer[size] == 0xA5)
            count = isWhole ? size : 0
        }
        return isWhole ? out : nil
    }

    static let sizes = [0, 1, 2, 257, 512, 513, 700, 2047, 2048, 2049, 4096, 65_536, 1_000_000]

    @Test func eachReadsWhatTheOtherWrote() throws {
        for size in DeflateTests.sizes {
            let data = Filling.words(size, UInt64(size))
            for fast in [false, true] {
                for deflated in [
                    DeflateTests.deflate(data, room: size + 64, fast: fast),
                    DeflateTests.byZlib { DeflateTests.deflate(data, room: size + 64, fast: fast) },
                ] {
                    #expect(!deflated.isEmpty && (size < 257 || deflated.count < size))
                    #expect(DeflateTests.inflate(deflated, size) == data)
                    #expect(DeflateTests.byZlib { DeflateTests.inflate(deflated, size) } == data)
                }
            }
        }
    }

    @Test(.enabled(if: llvs_shim_has_libdeflate() == 1, "libdeflate is not installed"))
    func libdeflateIsUsed() {
        let data = Filling.words(100_000, 1)
        let ours = DeflateTests.deflate(data, room: data.count)
        #expect(ours != DeflateTests.byZlib { DeflateTests.deflate(data, room: data.count) })
        #expect(DeflateTests.byZlib { llvs_shim_has_libdeflate() } == 0)
    }

    @Test func bothRefuseWhatIsNotExactlyThat() throws {
        for size in DeflateTests.sizes where size > 0 {
            let data = Filling.words(size, 7)
            let deflated = DeflateTests.deflate(data, room: size + 64)
            let wrong: [([UInt8], Int)] = [
                (deflated, size - 1), (deflated, size + 1), (Array(deflated.dropLast()), size), (deflated + [0], size), ([], size),
                ([7], size),
            ]
            for (bytes, claimed) in wrong {
                #expect(DeflateTests.inflate(bytes, claimed) == nil, "\(size)")
                #expect(DeflateTests.byZlib { DeflateTests.inflate(bytes, claimed) } == nil, "\(size)")
            }
            #expect(DeflateTests.deflate(data, room: 2).isEmpty)
        }
    }

    /// Whatever zlib reads, libdeflate reads as well. So devices with different libraries agree on what is damaged.
    @Test func damageIsReadAsByZlib() throws {
        var random = SystemRandomNumberGenerator(), read = 0
        for round in 0..<4_000 {
            let size = [300, 600, 2_500][round % 3], data = Filling.words(size, UInt64(round))
            var deflated = DeflateTests.byZlib { DeflateTests.deflate(data, room: size) }
            deflated[Int.random(in: 0..<deflated.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            guard let byZlib = DeflateTests.byZlib({ DeflateTests.inflate(deflated, size) }) else { continue }
            read += 1
            #expect(DeflateTests.inflate(deflated, size) == byZlib)
        }
        #expect(read > 0)
    }

    @Test func piecesAreAlwaysTheSameBytes() throws {
        let data = Filling.words(300_000, 3)
        func pieces() -> [UInt8] {
            var out: [UInt8] = [], done: Int32 = 0
            data.withUnsafeBytes { bytes in
                guard llvs_shim_deflate_begin(bytes.baseAddress, bytes.count) == 1 else { return }
                while done == 0 {
                    let piece = [UInt8](unsafeUninitializedCapacity: 1_000) { $1 = llvs_shim_deflate_more($0.baseAddress, 1_000, &done) }
                    if piece.isEmpty, done == 0 { return }
                    out += piece
                }
            }
            return out
        }
        #expect(pieces() == DeflateTests.byZlib { pieces() })
        #expect(DeflateTests.inflate(pieces(), data.count) == data)
    }
}
