import LLVS
import LLVSTestSupport
import Testing


#if canImport(Glibc)
import Glibc
#endif

/// Devices that exchange over a place which is behind, loses answers and tears uploads, that die between any two requests, are cloned and
/// lost. LLVS_PACKED_SCHEDULES says how many schedules there are, LLVS_PACKED_SEED with which the first begins.
@Suite("Packed: simulation") struct PackedSimulationTests {
    private static func number(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

    @Test(arguments: [false, true]) func nothingIsLostAndAllEndEqual(restores: Bool) throws {
        let first = Self.number("LLVS_PACKED_SEED") ?? 0,
            count = Self.number("LLVS_PACKED_SCHEDULES") ?? (restores ? sample(usual: 3, deep: 150) : sample(usual: 8, deep: 400))
        var wrong: [String] = []
        for seed in first..<first + count {
            if let found = try PackedWorld.play(UInt64(seed), steps: 40 + seed % 80, restores: restores) {
                wrong.append("seed \(seed): \(found)")
            }
        }
        #expect(wrong.isEmpty)
    }

    /// The control of pitfall 3: where most uploads are torn, or their answers lost, it is the missing salt alone that loses something.
    /// Seed 4 is one of those at which `rulesThatAreBrokenAreNoticed` notices the missing salt.
    @Test func nothingIsLostWhereItIsRough() throws {
        var wrong: [String] = []
        for seed in Sample.seeds(usual: 5, deep: 100) {
            if let found = try PackedWorld.play(seed, steps: 150, isRough: true) { wrong.append("\(Sample.hint(seed)): \(found)") }
        }
        #expect(wrong.isEmpty)
    }

    /// Pitfalls 1 to 4 of the design: each loses versions, and that is noticed.
    @Test(arguments: PackedWorld.Mutant.allCases) func rulesThatAreBrokenAreNoticed(_ mutant: PackedWorld.Mutant) throws {
        // From the seed at which it was noticed last.
        let first: UInt64 = mutant == .content ? 1 : mutant == .noSalt ? 4 : 0
        for seed in first..<400 {
            if try PackedWorld.play(seed, steps: 150, mutant: mutant, isRough: mutant == .noSalt) != nil { return }
        }
        Issue.record("\(mutant) was not noticed")
    }
}
