import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSDocuments

/// Sorting members by their names.
@Suite("The order of members") struct MemberOrderTests {
    /// The tree of an object with these names.
    private func parsed(_ names: [String]) throws -> JSONText {
        let text = "{" + names.map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        return try #require(Array(text.utf8).withUnsafeBytes { try JSONTreeParser.parse($0, copying: true, work: DocumentControl()) })
    }

    private func sorted(_ text: JSONText) throws -> [String] {
        var values = text.tree.children(of: 0)
        try MemberOrder.sort(&values, in: text.tree, DocumentControl())
        return values.map { String(decoding: text.tree.name(of: $0), as: UTF8.self) }
    }

    @Test("is that of their bytes", arguments: 0..<20 as Range<UInt64>) func bytes(seed: UInt64) throws {
        var random = SeededRandom(seed: seed), names: Set<String> = []
        // Common prefixes of all lengths. Some names end at their prefix.
        let beginnings = (0..<6).map { _ in String(repeating: "ab", count: Int.random(in: 0...80, using: &random)) }
        for _ in 0..<Int.random(in: 2...600, using: &random) {
            let end = (0..<Int.random(in: 0...3, using: &random)).map { _ in ["a", "b", "é", "\u{1}"].randomElement(using: &random) ?? "" }
            names.insert((beginnings.randomElement(using: &random) ?? "") + end.joined())
        }
        let written = names.map { $0.escaped }.shuffled(using: &random)
        let expected = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        #expect(try sorted(parsed(written)) == expected)
    }

    #if DEBUG
    /// Each name is a prefix of all longer ones. Comparing the common part again at the end of each name would take cubic time.
    @Test("names that are prefixes of each other are read a few times") func namesThatEnd() throws {
        let names = (1...2_000).reversed().map { String(repeating: "a", count: $0) }, text = try parsed(names)
        var found: [String] = []
        let looked = try Work.names.counting { found = try sorted(text) }
        #expect(found == names.reversed())
        let bytes = names.reduce(0) { $0 + $1.utf8.count }
        #expect(looked > bytes && looked <= 12 * bytes, "\(looked) bytes read, of \(bytes)")
    }
    #endif
}

extension String {
    /// The name as a JSON string spells it.
    fileprivate var escaped: String { split(separator: "\u{1}", omittingEmptySubsequences: false).joined(separator: "\\u0001") }
}
