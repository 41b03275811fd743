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
        let size = Int.random(in: 1...[40, 400, 3_000, 40_000].randomElement(using: &random)!, using: &random)
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
        #expect(sure > 120 && wrongSure > 0, "\(sure) were inflated, and \(wrongSure) with other bytes")
    }

    @Test("any bytes") func anyBytes() throws {
        var random = SeededRandom(seed: 5)
        for _ in 0..<20_000 {
            // The last block, with fixed codes or its own.
            var bytes = (0..<Int.random(in: 1...60, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
            bytes[0] = bytes[0] & 0xF8 | [3, 5].randomElement(using: &random)!
            let size = Int.random(in: 1...80, using: &random)
            if let found = Self.small(bytes, size) { #expect(try Self.byZlib(bytes, size) == found, "\(bytes)") }
        }
    }
}
