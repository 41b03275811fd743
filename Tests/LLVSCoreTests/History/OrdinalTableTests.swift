import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// The table of versions spreads ids evenly, even if an attacker chose them.
@Suite struct OrdinalTableTests {
    private static let count = 1 << 12

    /// Returns how many slots a lookup of each id visits on average, once all ids are in the table.
    private static func looks(_ make: (UInt64) -> (high: UInt64, low: UInt64)) -> Double {
        let ids = (0..<UInt64(count)).map { i in
            let (high, low) = make(i)
            return VersionID(high: high, low: low)
        }
        var table = OrdinalTable()
        for (i, id) in ids.enumerated() {
            table.insert(UInt32(i), hash: OrdinalTable.hash(id)) { OrdinalTable.hash(ids[Int($0)]) }
        }
        var looks = 0, wrong = 0
        for id in ids {
            let found = table.find(OrdinalTable.hash(id)) {
                looks += 1; return ids[Int($0)] == id
            }
            if found.map({ ids[Int($0)] }) != id { wrong += 1 }
        }
        #expect(wrong == 0)
        return Double(looks) / Double(count)
    }

    /// Ids that differ only in a few bits of one half, or of both.
    @Test(
        "ids that were chosen to collide",
        arguments: [
            // These seeds made ids collide under a former hash: they turned its factor into 1, or left only its high bit.
            0x9E37_79B9_7F4A_7C15, 0x9E37_79B9_7F4A_7C14, 0x9E37_79B9_7F4A_7C15 ^ 1 << 63, 0, 1, .max, 1 << 63,
        ] as [UInt64])
    func chosen(fixed: UInt64) {
        for shift in stride(from: UInt64(0), through: 48, by: 8) {
            #expect(Self.looks { ($0 << shift, fixed) } < 8, "high, from bit \(shift)")
            #expect(Self.looks { (fixed, $0 << shift) } < 8, "low, from bit \(shift)")
            #expect(Self.looks { (fixed ^ $0 << shift, fixed ^ $0 << shift) } < 8, "both, from bit \(shift)")
        }
        #expect(Self.looks { ($0.byteSwapped, fixed) } < 8)
        #expect(Self.looks { (fixed, $0.byteSwapped) } < 8)
        #expect(Self.looks { ($0 &* 0x9E37_79B9_7F4A_7C15, fixed) } < 8)
    }
}
