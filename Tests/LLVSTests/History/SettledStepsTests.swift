import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Folding heads that are merges themselves. One pass finds which steps differ only in merges, with the same result as two walks for each.
@Suite struct SettledStepsTests {
    private static func received(
        _ id: String, _ predecessors: [String], _ changes: [Value.Change], at time: Double
    ) throws -> Store.ReceivedVersion {
        let behind = try predecessors.map { try VersionID($0) }
        let version = Version(id: try VersionID(id), predecessors: behind, timestamp: time, valueDataSize: 0, metadata: Metadata())
        return Store.ReceivedVersion(version: version, changes: changes)
    }

    /// A history of some versions that are no merges, and on top of them mostly merges.
    private static func mergesOnTop(of others: Int, _ random: inout SeededRandom) throws -> (store: Store, ordinals: [UInt32]) {
        let store = try memoryStore()
        var all = try (0..<others).map { try received("v\($0)", [], [], at: Double($0)) }
        for i in others..<others + 60 {
            // Built on the newest versions, so that many remain heads.
            let below = (0..<3).map { _ in "v\(max(0, i - 1 - Int.random(in: 0..<max(10, others), using: &random)))" }
            let isMerge = below[0] != below[1] && Int.random(in: 0..<30, using: &random) > 0
            all.append(try received("v\(i)", isMerge ? [below[0], below[1]] : [below[2]], [], at: Double(i)))
        }
        for addition in try store.add(all) { if case .problem(let error) = addition { throw error } }
        return (store, try all.map { try store.requireOrdinal($0.version.id) })
    }

    @Test func matchTheWalks() throws {
        var settled = 0
        for seed in Sample.seeds(usual: 40, deep: 200) {
            var random = SeededRandom(seed: seed)
            let (store, ordinals) = try Self.mergesOnTop(of: seed % 4 == 0 ? 150 : Int.random(in: 1...4, using: &random), &random)
            store.lock.withRead {
                let dag = store.quietHistory
                // For each version, its ancestors that are no merges.
                var others: [UInt32: Set<UInt32>] = [:]
                for at in ordinals {
                    let own: Set<UInt32> = dag.rows[Int(at)].second == History.none ? [at] : []
                    others[at] = dag.predecessors(at).reduce(into: own) { $0.formUnion(others[$1] ?? []) }
                }
                for _ in 0..<10 {
                    var heads: [UInt32] = []
                    for _ in 0..<8 {
                        guard let next = ordinals.suffix(30).randomElement(using: &random) else { continue }
                        let isApart = heads.allSatisfy { $0 != next && !dag.isAncestor($0, of: next) && !dag.isAncestor(next, of: $0) }
                        if isApart { heads.append(next) }
                    }
                    var behind = others[heads[0]] ?? [], expected = [false]
                    for head in heads.dropFirst() {
                        expected.append(behind == others[head])
                        behind.formUnion(others[head] ?? [])
                    }
                    settled += expected.filter { $0 }.count
                    var whole = SettledSteps(heads), pieces = SettledSteps(heads), told: [Bool]?
                    #expect(whole.finish(in: dag) == expected, "\(Sample.hint(seed)), \(heads)")
                    while told == nil { told = pieces.go(7, in: dag) }
                    #expect(told == expected, "\(Sample.hint(seed)), \(heads)")
                    if heads.count > 1 {
                        var pair = MergesOnly(heads[0], heads[1])
                        #expect(pair.finish(in: dag) == expected[1], "\(Sample.hint(seed)), \(heads)")
                    }
                }
            }
        }
        if Sample.seed == nil { #expect(settled > sample(usual: 20, deep: 100), "\(settled) steps that are settled say little") }
    }

    #if DEBUG
    /// Many answers to one conflict are folded. The merges made on the way are not walked again for each of them.
    @Test(arguments: [2, 100]) func foldingMergesOnly(others: Int) throws {
        func steps(_ heads: Int) throws -> Int {
            let store = try memoryStore(), x = try ValueID("x")
            var all = [try Self.received("root", [], [.insert(x, data: [0])], at: 0)]
            for i in 0..<others { all.append(try Self.received("other\(i)", ["root"], [.update(x, data: bytes("\(i)"))], at: 1)) }
            // Two lines of merges fold the others from opposite ends. Each version of a line covers some of them, and a head covers all.
            for (side, order) in [("a", Array(0..<others)), ("b", Array((0..<others).reversed()))] {
                for i in 1..<others {
                    let below = i == 1 ? "other\(order[0])" : "\(side)\(i - 1)"
                    all.append(try Self.received("\(side)\(i)", [below, "other\(order[i])"], [], at: 2))
                }
            }
            for i in 0..<heads {
                let half = others == 2 ? ["other0", "other1"] : ["a\(1 + i % (others - 2))", "b\(others - 2 - i % (others - 2))"]
                all.append(try Self.received("head\(i)", half, [.update(x, data: bytes("answer \(i)"))], at: Double(3 + i)))
            }
            for addition in try store.add(all) { if case .problem(let error) = addition { throw error } }
            let into = try VersionID("head0")
            return try Work.versions.counting {
                let made = try store.mergeHeads(into: into, arbiter: BuiltInArbiter.mostRecentChange)
                // The arbiter is not called, so the merges have no metadata.
                #expect(try made?.metadata.isEmpty == true && store.headIDs().count == 1)
            }
        }
        let few = try steps(300), many = try steps(600)
        #expect(many <= 3 * few, "\(few) steps for 300 heads, \(many) for 600")
    }
    #endif
}
