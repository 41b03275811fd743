import CLLVSShims
import LLVSTestSupport
import Testing
@testable import LLVS

/// Small values are inflated as zlib inflates them, or left to it.
@Suite("Inflating small values") struct InflationTests {
    private static func deflated(_ data: [UInt8]) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: data.count + 1_000)
        let count = data.withUnsafeBytes { from in
            out.withUnsafeMutableBytes { llvs_shim_deflate(from.baseAddress, from.count, $0.baseAddress, $0.count) }
        }
        return Array(out[..<count])
    }

    /// What zlib makes of it, where that is of the size.
    private static func byZlib(_ deflated: [UInt8], _ size: Int) throws -> [UInt8]? {
        let inflation = try Inflation()
        var out = [UInt8](repeating: 0, count: size + 1), made = 0
        let isTaken = deflated.withUnsafeBytes { from in out.withUnsafeMutableBytes { inflation.append(from, to: $0, &made) } }
        return isTaken && made == size && inflation.isAtEnd() ? Array(out[..<size]) : nil
    }

    /// Nil where it is not sure. What is around the value stays as it was.
    private static func small(_ deflated: [UInt8], _ size: Int) -> [UInt8]? {
        let around = 64
        var out = [UInt8](repeating: 0xA5, count: size + 2 * around)
        let isSure = deflated.withUnsafeBytes { from in
            out.withUnsafeMutableBytes { llvs_shim_inflate_small(from.baseAddress, from.count, $0.baseAddress.map { $0 + around }, size) }
        }
        #expect(out[..<around].allSatisfy { $0 == 0xA5 } && out[(around + size)...].allSatisfy { $0 == 0xA5 })
        return isSure == 1 ? Array(out[around..<around + size]) : nil
    }

    /// Texts of some letters, of words, of bytes that repeat soon or late.
    private static func data(_ random: inout SeededRandom) -> [UInt8] {
        let most = [40, 400, 3_000, 16_000].randomElement(using: &random) ?? 1, size = Int.random(in: 1...most, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return (0..<size).map { _ in UInt8.random(in: 97...122, using: &random) }
        case 1: return (0..<size).map { _ in UInt8.random(in: 0...UInt8.random(in: 0...255, using: &random), using: &random) }
        case 2: return [UInt8](repeating: 7, count: size)
        case 3:
            let words = (0..<30).map { _ in Array("\"word\(Int.random(in: 0..<1_000_000, using: &random))\":".utf8) }
            var out: [UInt8] = []
            while out.count < size { out += words.randomElement(using: &random) ?? [] }
            return out
        default:
            let part = (0..<Int.random(in: 1...40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            var out: [UInt8] = []
            while out.count < size { out += part + [UInt8.random(in: 0...3, using: &random)] }
            return out
        }
    }

    @Test("what was deflated, and the same cut, longer, and with bytes that are others", arguments: 0..<4 as Range<UInt64>)
    func values(seed: UInt64) throws {
        var random = SeededRandom(seed: seed), sure = 0, wrongSure = 0
        for _ in 0..<150 {
            let data = Self.data(&random), whole = Self.deflated(data)
            if let found = Self.small(whole, data.count) {
                sure += 1
                #expect(found == data)
            }
            var others = [(whole + [0], data.count), (Array(whole.dropLast()), data.count)]
            others += [(whole, data.count + 1), (whole, data.count - 1)]
            for _ in 0..<8 {
                var bytes = whole
                // The beginning has the tables.
                let at = Int.random(in: 0..<(Bool.random(using: &random) ? min(60, bytes.count) : bytes.count), using: &random)
                bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                others.append((bytes, data.count))
            }
            for (bytes, size) in others where size > 0 && !bytes.isEmpty {
                guard let found = Self.small(bytes, size) else { continue }
                wrongSure += 1
                #expect(try Self.byZlib(bytes, size) == found, "\(size) bytes of \(bytes)")
            }
        }
        #expect(sure > 80 && wrongSure > 100, "\(sure) were inflated, and \(wrongSure) with other bytes")
    }

    @Test("any bytes") func anyBytes() throws {
        var random = SeededRandom(seed: 5)
        for _ in 0..<20_000 {
            // The last block, with fixed codes or its own.
            var bytes = (0..<Int.random(in: 1...60, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            bytes[0] = bytes[0] & 0xF8 | (Bool.random(using: &random) ? 3 : 5)
            let size = Int.random(in: 1...80, using: &random)
            if let found = Self.small(bytes, size) { #expect(try Self.byZlib(bytes, size) == found, "\(bytes)") }
        }
    }

    /// Bits of a deflated block, the first one lowest.
    private struct Bits {
        private var bits: [UInt8] = []
        mutating func put(_ value: Int, _ count: Int) { for i in 0..<count { bits.append(UInt8(value >> i & 1)) } }
        /// The first bit of a code is its highest.
        mutating func put(code: String) { for bit in code { bits.append(bit == "1" ? 1 : 0) } }
        var bytes: [UInt8] {
            stride(from: 0, to: bits.count, by: 8).map { at in
                bits[at..<min(at + 8, bits.count)].enumerated().reduce(0) { $0 | $1.element << UInt8($1.offset) }
            }
        }
    }

    /// A block whose codes are those of the byte 255 and of the end, each of one bit, with a table that begins so.
    private static func block(_ begin: (inout Bits) -> Void) -> [UInt8] {
        var bits = Bits()
        bits.put(5, 3)
        for (value, count) in [(0, 5), (1, 5), (14, 4)] { bits.put(value, count) }
        // How long the codes of 16, 18 and 1 are, in the order that the format has.
        for symbol in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1] {
            bits.put([16: 1, 18: 2, 1: 2][symbol] ?? 0, 3)
        }
        begin(&bits)
        for _ in 0..<4 { bits.put(code: "10") }
        bits.put(code: "01")
        return bits.bytes
    }

    @Test("before the first there is nothing to be repeated") func repetition() throws {
        func zeros(_ bits: inout Bits, _ count: Int) {
            bits.put(code: "11")
            bits.put(count - 11, 7)
        }
        let right = Self.block { bits in
            zeros(&bits, 138)
            zeros(&bits, 117)
        }
        #expect(Self.small(right, 1) == [255])
        #expect(try Self.byZlib(right, 1) == [255])
        let wrong = Self.block { bits in
            bits.put(code: "0")
            bits.put(0, 2)
            zeros(&bits, 138)
            zeros(&bits, 114)
        }
        #expect(try Self.byZlib(wrong, 1) == nil)
        #expect(Self.small(wrong, 1) == nil)
    }
}
