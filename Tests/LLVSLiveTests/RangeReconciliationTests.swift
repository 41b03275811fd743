import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSLive

/// Two sides compare their versions by ranges: docs/live-protocol.md, section 4.
@Suite("Live: ranges") struct RangeReconciliationTests {
    private func keys(_ numbers: some Sequence<Int>) -> [OrderKey] {
        numbers.map { number in
            let id = VersionID(high: UInt64(number) &* 0x9E37_79B9_7F4A_7C15, low: UInt64(number))
            return OrderKey(generation: UInt32(number / 40), timestamp: 0, id: id, ordinal: 0)
        }
    }
    private func hash(_ id: VersionID) -> UInt64 { id.low &* 0xD134_2543_DE82_EF95 }
    private func side(_ numbers: some Sequence<Int>) -> RangeReconciliation { RangeReconciliation(keys(numbers), hash: hash) }
    private func numbers(_ ids: [VersionID]) -> Set<Int> { Set(ids.map { Int($0.low) }) }

    /// Lets the two sides take turns, over bytes. Returns the number of frames.
    private func compare(_ a: inout RangeReconciliation, _ b: inout RangeReconciliation) throws -> Int {
        var said: [VersionRange]? = try a.begin(), turns = 0
        while let ranges = said {
            turns += 1
            #expect(ranges.count <= VersionRange.most)
            let bytes = LiveFrame.ranges(ranges).encoded()
            #expect(bytes.count <= LiveFrame.limit)
            guard case .ranges(let came) = try LiveFrame(bytes) else { Issue.record("another frame"); return turns }
            #expect(came == ranges)
            said = turns % 2 == 1 ? try b.take(came) : try a.take(came)
        }
        #expect(a.isDone && b.isDone)
        return turns
    }

    @Test func bothLearnWhatTheOtherLacks() throws {
        for seed in 0..<40 as Range<UInt64> {
            var random = SeededRandom(seed: seed)
            let all = Int.random(in: 0..<3_000, using: &random), share = [2, 10, 300, 5_000].randomElement(using: &random) ?? 2
            var mine: Set<Int> = [], theirs: Set<Int> = []
            for number in 0..<all {
                let lot = Int.random(in: 0..<share, using: &random)
                if lot != 0 { mine.insert(number) }
                if lot != 1 { theirs.insert(number) }
            }
            var a = side(mine), b = side(theirs)
            let turns = try compare(&a, &b)
            #expect(numbers(a.lacking) == mine.subtracting(theirs), "seed \(seed)")
            #expect(numbers(b.lacking) == theirs.subtracting(mine), "seed \(seed)")
            #expect(turns <= 6, "seed \(seed)")
            #expect(zip(a.lacking, a.lacking.dropFirst()).allSatisfy { $0.low / 40 <= $1.low / 40 }, "predecessors first")
        }
    }

    @Test func whatIsTheSameIsSettledAtOnce() throws {
        for count in [0, 1, VersionRange.listed, VersionRange.listed + 1, 5_000] {
            var a = side(0..<count), b = side(0..<count)
            #expect(try compare(&a, &b) <= 2)
            #expect(a.lacking.isEmpty && b.lacking.isEmpty)
        }
        for (mine, theirs) in [(0..<0, 0..<2_000), (0..<2_000, 0..<0), (0..<1_000, 1_000..<3_000)] {
            var a = side(mine), b = side(theirs)
            _ = try compare(&a, &b)
            #expect(numbers(a.lacking) == Set(mine) && numbers(b.lacking) == Set(theirs))
        }
    }

    /// More ranges differ than fit into a frame; the next frame asks for the rest.
    @Test func differencesEverywhere() throws {
        let all = 0..<40_000, mine = all.filter { $0 % 23 != 0 }, theirs = all.filter { $0 % 29 != 0 }
        var a = side(mine), b = side(theirs)
        #expect(try compare(&a, &b) >= 6)
        #expect(numbers(a.lacking) == Set(mine).subtracting(theirs) && numbers(b.lacking) == Set(theirs).subtracting(mine))
    }

    @Test func whoAsksAgainAndAgain() throws {
        var a = side(0..<500)
        let question = [VersionRange(contents: .sum(count: 7, fingerprint: [1, 2, 3, 4]))]
        for _ in 1..<RangeReconciliation.frames {
            let answer = try a.take(question)
            #expect(answer?.contains(where: \.isQuestion) == true)
        }
        #expect(try a.take(question) == [VersionRange(contents: .unknown)])
        #expect(a.isDone && a.lacking.count == 500, "versions whose state is unknown are sent")
        #expect(throws: LiveFault.self) { try a.take(question) }
        // A side that never asks makes no progress either.
        var b = side(0..<500)
        #expect(try b.take([VersionRange(contents: .settled)]) == nil)
        #expect(throws: LiveFault.self) { try b.take(question) }
    }

    @Test func rangesThatAreNotInOrder() throws {
        func ranges(_ ends: Int...) -> [VersionRange] {
            ends.map { number in
                let key = keys([number])[0]
                return VersionRange(contents: .settled, end: VersionRange.Place(generation: key.generation, id: key.id))
            } + [VersionRange(contents: .sum(count: 1, fingerprint: [0, 0, 0, 0]))]
        }
        var a = side(0..<500)
        _ = try a.take(ranges(40, 80))
        a = side(0..<500)
        #expect(throws: LiveFault.self) { try a.take(ranges(80, 40)) }
    }
}
