import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Sorting by the first eight bytes of each item.
@Suite struct WordOrderTests {
    @Test("few and many, with words that are equal", arguments: [0, 1, 2, 255, 256, 257, 5_000]) func order(count: Int) {
        var random = SeededRandom(seed: UInt64(count))
        for kinds in [1, 3, 1_000] as [UInt64] {
            let words = (0..<count).map { _ in
                let kind = random.next() % kinds
                return kind << 56 | (kind &* 0x9E37_79B9) << 8 | (kinds == 1_000 ? random.next() & 0xFF : 0)
            }
            // The bytes after the words; no two are equal.
            let rest = (0..<count).shuffled(using: &random)
            var order = WordOrder(count) { words[$0] }
            order.sort { rest[$0] < rest[$1] }
            let expected = (0..<count).sorted { words[$0] != words[$1] ? words[$0] < words[$1] : rest[$0] < rest[$1] }
            #expect(order.items.map { Int($0.index) } == expected, "\(count) things of \(kinds) kinds")
            #expect(order.items.allSatisfy { words[Int($0.index)] == $0.word })
        }
    }
}
