import LLVSTestHelpers
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// Devices exchange over a place with outdated listings, lost answers and torn uploads. They die between any two requests, are cloned and
/// are lost. LLVS_PACKED_SCHEDULES gives the number of schedules, LLVS_PACKED_SEED the first seed.
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

    /// A check of the simulation itself for pitfall 3: if most uploads are torn or their answers lost, versions are lost without the salt
    /// only, not with it. Seed 4 is one of the seeds at which `rulesThatAreBrokenAreNoticed` notices the missing salt.
    @Test func nothingIsLostWhereItIsRough() throws {
        var wrong: [String] = []
        for seed in Sample.seeds(usual: 5, deep: 100) {
            if let found = try PackedWorld.play(seed, steps: 150, isRough: true) { wrong.append("\(Sample.hint(seed)): \(found)") }
        }
        #expect(wrong.isEmpty)
    }

    /// Pitfalls 1 to 4 of the design: each of them loses versions, and the test notices it.
    @Test(arguments: PackedWorld.Mutant.allCases) func rulesThatAreBrokenAreNoticed(_ mutant: PackedWorld.Mutant) throws {
        // Begins at the seed that last revealed it.
        let first: UInt64 = mutant == .content ? 1 : mutant == .noSalt ? 4 : 0
        for seed in first..<400 {
            if try PackedWorld.play(seed, steps: 150, mutant: mutant, isRough: mutant == .noSalt) != nil { return }
        }
        Issue.record("\(mutant) was not noticed")
    }
}
