import LLVSTestHelpers
import Testing

@testable import LLVSDocuments

/// Lists of plain values with equal elements: the steps that a comparison takes, the effect of limits, and the cost of long lists.
@Suite("Merging lists by place") struct ListPlaceTests {
    /// The result of a merge with a limited number of steps.
    struct Given: Equatable {
        var result: String
        var kinds: [String]
        var left: Int
    }

    static func merged(
        _ o: String, _ x: String, _ y: String, steps: Int, rules: ValueRules = ValueRules(), saves: Bool = false, swaps: Bool = false
    ) throws -> Given {
        let work = DocumentControl(), bytes = [o, x, y].map { Array($0.utf8) }
        return try bytes[0].withUnsafeBytes { o in
            try bytes[1].withUnsafeBytes { x in
                try bytes[2].withUnsafeBytes { y in
                    let texts = try [o, x, y].map { try #require(try JSONTreeParser.parse($0, work: work)) }
                    let values = DocumentValues(texts + (rules.text.map { [$0] } ?? []), work: work)
                    let run = DocumentMergeRun(
                        values, RuleStates(rules), rulesTree: 3, saves: saves, swaps: swaps, budget: ConflictRecordBudget(inputs: 1 << 20))
                    run.textSteps = steps
                    let sides = (0..<3).map { ValueRef(tree: $0, node: 0) }
                    let result = try run.run(sides[0], sides[1], sides[2])
                    let written = result.isAbsent ? [] : try CanonicalWriter.bytes(of: result, in: values)
                    return Given(
                        result: String(decoding: written, as: UTF8.self), kinds: run.records.map(\.kind.name), left: run.textSteps)
                }
            }
        }
    }

    @Test("limits") func limits() throws {
        // The model computed these. Each of the two alignments takes 6 steps.
        for (steps, kinds, left) in [
            (0, ["limit"], 0), (3, ["limit"], 0), (5, ["limit"], 1), (6, ["limit"], 0), (9, ["limit"], 0), (12, [], 0), (1000, [], 988),
        ] {
            let given = try Self.merged("[0,0,1]", "[0,2,1,3]", "[0,0,4]", steps: steps)
            #expect(given == Given(result: "[0,2,4,3]", kinds: kinds, left: left), "\(steps)")
        }
        // Elements that occur once on both sides take no steps.
        #expect(try Self.merged("[0,0,1]", "[0,1,0]", "[1,0,0]", steps: 0) == Given(result: "[1,1,0]", kinds: [], left: 0))
    }

    @Test("long lists") func longLists() throws {
        struct Endless: Error {}
        func merged(_ o: [Int], _ x: [Int], _ y: [Int]) throws -> String? {
            var looks = 0
            func text(_ list: [Int]) -> String { "[" + list.map(String.init).joined(separator: ",") + "]" }
            let merged = try Documents.merged(text(o), text(x), text(y)) {
                looks += 1
                if looks > 40 { throw Endless() }
            }
            return merged.bytes.map { String(decoding: $0, as: UTF8.self) }
        }
        // A list of flags; each side inserted some and set one.
        let o = (0..<100_000).map { $0 % 7 % 2 }
        var x = o, y = o, m = o
        x.insert(contentsOf: [2, 2, 2], at: 70_000)
        m.insert(contentsOf: [2, 2, 2], at: 70_000)
        for (place, value) in [(10, 3), (99_000, 4)] {
            y[place] = value
            m[place < 70_000 ? place : place + 3] = value
        }
        #expect(try merged(o, x, y) == "[" + m.map(String.init).joined(separator: ",") + "]")
        // Two equal elements far apart, in lists whose other elements are unique.
        var unique = Array(0..<100_000)
        unique[90_000] = 5
        #expect(try merged(unique, [-1] + unique, unique + [-2]) == "[-1," + unique.map(String.init).joined(separator: ",") + ",-2]")
        // No common elements.
        let other = (0..<50_000).map { $0 % 3 }, another = (0..<60_000).map { 3 + $0 % 5 }
        #expect(try merged(Array(o.prefix(40_000)), other, another) != nil)
    }
}
