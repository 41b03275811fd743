import LLVSTestHelpers
import Testing

@testable import LLVSDocuments

/// Parsing a text along another one gives the same tree as parsing it alone.
@Suite("Reading along another text") struct AlongTests {
    /// A deterministic source of numbers.
    private struct Draw {
        var state: UInt64
        mutating func below(_ limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
        mutating func one(of all: [String]) -> String { all[below(all.count)] }
    }

    private static func edited(_ pieces: [String], _ draw: inout Draw, _ piece: (inout Draw) -> String) -> [String] {
        var out = pieces
        for _ in 0..<draw.below(8) where !out.isEmpty {
            let at = draw.below(out.count), size = min(out.count - at, [1, 1, 2, 12, 40][draw.below(5)])
            switch draw.below(4) {
            case 0: out.removeSubrange(at..<at + size)
            case 1: out.insert(contentsOf: (0..<size).map { _ in piece(&draw) }, at: at)
            case 2: out.replaceSubrange(at..<at + size, with: (0..<size).map { _ in piece(&draw) })
            default:
                let moved = Array(out[at..<at + size])
                out.removeSubrange(at..<at + size)
                out.insert(contentsOf: moved, at: draw.below(out.count + 1))
            }
        }
        return out
    }

    // MARK: JSON

    private static func element(_ draw: inout Draw) -> String {
        let number = draw.below(40)
        return [
            "{\"id\":\(number),\"n\":[\(number),{\"k\":\"\(number)\"}]}", "[\(number)]", "\(number)", "{\"a\":1,\"a\":\(number)}",
            "{ \"b\":\(number), \"a\":{} }", "{\"s\":\"x\\n\(number)\\u0041\"}", "\"text\"", "[]", "{}",
            "[[[\(number)]],{\"m\":{\"s\":\"\\t\"}}]",
        ][draw.below(40) == 0 ? 3 : [0, 0, 0, 0, 1, 2, 4, 5, 6, 7, 8, 9][draw.below(12)]]
    }

    private static func whole(_ elements: [String], _ draw: inout Draw) -> String {
        let list = "[" + elements.joined(separator: draw.below(6) == 0 ? " , " : ",") + "]"
        let members = elements.enumerated().map { "\"m\($0 % 50)\($0)\":\($1)" }.joined(separator: ",")
        return [list, "{\(members)}", "{\"x\":1,\"list\":\(list),\"more\":{\(members)}}"][draw.below(3)]
    }

    private func parsed(_ bytes: UnsafeRawBufferPointer, like other: JSONTree? = nil) throws -> JSONText? {
        try JSONTreeParser.parse(bytes, like: other, work: DocumentControl())
    }

    @Test("JSON") func json() throws {
        for seed in Sample.seeds(usual: 300, deep: 1_500) {
            var draw = Draw(state: seed)
            let elements = (0..<draw.below(60)).map { _ in Self.element(&draw) }
            var again = draw
            let texts = [Self.whole(elements, &draw), Self.whole(Self.edited(elements, &draw, Self.element), &again)].map { Array($0.utf8) }
            try texts[0].withUnsafeBytes { base in
                try texts[1].withUnsafeBytes { side in
                    guard let other = try parsed(base) else { return }
                    let alone = try parsed(side), along = try parsed(side, like: other.tree)
                    #expect((alone == nil) == (along == nil), "\(seed)")
                    guard let p = alone?.tree, let q = along?.tree else { return }
                    #expect(p.count == q.count, "\(seed)")
                    var node: UInt32 = 0
                    while node < min(p.count, q.count), p.code(node) == q.code(node) {
                        #expect(p.text(node).elementsEqual(q.text(node)), "\(seed)")
                        #expect(p.next(node) == q.next(node), "\(seed)")
                        #expect(p.isEscaped(node) || p.start(node) == q.start(node), "\(seed)")
                        node = p.following(node)
                    }
                    #expect(node == p.count, "\(seed)")
                }
            }
        }
    }

    @Test("JSON of many levels that are alike does not take long") func manyLevels() throws {
        // The levels differ only at their ends, and each level compares its end.
        let inner = String(repeating: "[1],", count: 20_000)
        let texts = ["1", "2"].map { Array((String(repeating: "[", count: 120) + inner + $0 + String(repeating: "]", count: 120)).utf8) }
        try texts[0].withUnsafeBytes { base in
            try texts[1].withUnsafeBytes { side in
                let other = try #require(try parsed(base)), along = try #require(try parsed(side, like: other.tree))
                #expect(along.tree.count == other.tree.count)
            }
        }
    }

    // MARK: Words

    private static let words = [
        "a", "word", "longer", "é", "e\u{301}", "\u{4e00}", "\u{30a2}\u{30a4}", "👍🏽", "👩\u{200d}👩\u{200d}👧", "🇩🇪", "🇩", "\u{301}",
        "\u{200d}", "x9", "same", "same", "same",
    ]
    private static let gaps = [" ", " ", " ", "\n", "\r\n", "\r", ",", "", ". ", "\t"]

    private static func word(_ draw: inout Draw) -> String {
        draw.one(of: words) + (draw.below(3) == 0 ? "\(draw.below(300))" : "") + draw.one(of: gaps)
    }

    @Test("words and lines", arguments: [TextTokens.Unit.word, .line]) func tokens(unit: TextTokens.Unit) throws {
        for seed in Sample.seeds(usual: 120, deep: 600) {
            var draw = Draw(state: seed)
            let words = (0..<draw.below(300)).map { _ in Self.word(&draw) }
            let texts = ([words] + (0..<2).map { _ in Self.edited(words, &draw, Self.word) }).map { Array($0.joined().utf8) }
            try texts[0].withUnsafeBytes { o in
                try texts[1].withUnsafeBytes { x in
                    try texts[2].withUnsafeBytes { y in
                        let alone = TextTokens(unit, work: DocumentControl()), along = TextTokens(unit, work: DocumentControl())
                        let base = try along.tokens(of: o)
                        #expect(try alone.tokens(of: o) == base)
                        for side in [x, y] {
                            let tokens = try along.tokens(of: side, like: (o, try TokenPlaces(base, along)))
                            #expect(try alone.tokens(of: side) == tokens, "\(seed)")
                            #expect(along.size(tokens[...]) == side.count)
                            var written: [UInt8] = []
                            along.write(tokens[...], to: &written)
                            #expect(written.elementsEqual(side), "\(seed)")
                        }
                    }
                }
            }
        }
    }
}
