import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSDocuments

/// Tests/Vectors/documents/vectors.json, which the model of merging inside values computed: the same bytes, records and digests.
@Suite("Vectors of merging inside values") struct DocumentVectorTests {
    private struct Vectors: Decodable {
        struct Vector: Decodable {
            let name: String
            let schema: String
            let base: String?
            let newer: String?
            let older: String?
            let result: String?
            let digest: String
            let saving: Bool?
            let swapped: Bool?
        }
        let format: Int
        let vectors: [Vector]
    }

    @Test("vectors") func vectors() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/documents/vectors.json")
        let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
        #expect(vectors.format == 1)
        #expect(vectors.vectors.count > 1600)
        for vector in vectors.vectors {
            let merged = try Documents.merged(
                vector.base, vector.newer, vector.older, schema: vector.schema, id: "a", saving: vector.saving ?? false,
                swapped: vector.swapped ?? false)
            #expect(merged.bytes.map { String(decoding: $0, as: UTF8.self) } == vector.result, "\(vector.name)")
            #expect(merged.digest(id: Array("a".utf8)) == vector.digest, "\(vector.name)")
        }
    }
}

/// Tests/Vectors/documents/caps.json: the same at the limits. The texts are long, so the file describes them.
@Suite("Vectors of the caps of merging inside values") struct DocumentCapTests {
    /// A string, or a string that is repeated.
    private struct Part: Decodable {
        let text: String?
        let times: Int
        let of: [Part]
        private enum CodingKeys: CodingKey { case times, of }

        init(from decoder: any Decoder) throws {
            text = try? decoder.singleValueContainer().decode(String.self)
            let repetition = text == nil ? try decoder.container(keyedBy: CodingKeys.self) : nil
            times = try repetition?.decode(Int.self, forKey: .times) ?? 0
            of = try repetition?.decode([Part].self, forKey: .of) ?? []
        }
    }
    private struct Vectors: Decodable {
        struct Vector: Decodable {
            let name: String
            let schema: String
            let base: [Part]
            let newer: [Part]
            let older: [Part]
            let isSlow: Bool
            let sizes: [Int]
            let result: String
            let records: [String]
            let digest: String
        }
        let format: Int
        let vectors: [Vector]
    }

    private func write(_ parts: [Part], _ number: Int?, to out: inout String) {
        for part in parts {
            if let text = part.text {
                for character in text {
                    if character == "#", let number { out += String(number) } else { out.append(character) }
                }
            }
            for i in 0..<part.times { write(part.of, i, to: &out) }
        }
    }

    /// Texts like those of the slow vectors, but shorter. A comparison with exactly as many steps as it needs finds everything. With one
    /// step less, its last gap becomes one replacement.
    @Test func stepsOfATextAreCounted() throws {
        #expect(TextAlignment.stepLimit == 1 << 26)
        // Each gap consists of two anchors with 600 tokens between them, in another order on each side.
        var base: [UInt32] = [], side: [UInt32] = []
        for gap in 0..<UInt32(3) {
            base += [10 + gap] + (0..<600).map { $0 % 2 }
            side += [10 + gap] + (0..<600).map { $0 % 2 * 2 }
        }
        func compared(_ limit: Int) throws -> (left: Int, isLimited: Bool, kept: Int) {
            var steps = limit
            let alignment = try TextAlignment(base, side, count: 20, steps: &steps, work: DocumentControl())
            return (steps, alignment.isLimited, base.indices.count { alignment.keptBase[$0] })
        }
        let whole = try compared(TextAlignment.stepLimit), taken = TextAlignment.stepLimit - whole.left
        #expect(!whole.isLimited && whole.kept == 3 * 301 && taken > 100_000, "\(whole)")
        let exact = try compared(taken)
        #expect(exact == (0, false, whole.kept), "\(exact)")
        let less = try compared(taken - 1)
        // In the last gap, the anchor and the next token are kept, since both sides begin with them.
        #expect(less.isLimited && less.kept == 2 * 301 + 2, "\(less)")
    }

    @Test("vectors") func vectors() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/documents/caps.json")
        let found = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
        #expect(found.format == 1 && found.vectors.count >= 8)
        for vector in found.vectors {
            // Two vectors take 2^26 steps, in a debug build half a minute each. `stepsOfATextAreCounted` tests the same limit with fewer
            // steps, and Python runs both vectors.
            if vector.isSlow, !Sample.isDeep { continue }
            let texts = [vector.base, vector.newer, vector.older].map { parts in
                var text = ""
                write(parts, nil, to: &text)
                return text
            }
            #expect(texts.map(\.utf8.count) == vector.sizes, "\(vector.name)")
            let merged = try Documents.merged(texts[0], texts[1], texts[2], schema: vector.schema, id: "a")
            let hash = try #require(merged.bytes).withUnsafeBytes { SHA256.digest($0) }
            #expect(hash.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == vector.result, "\(vector.name)")
            #expect(Set(merged.records.map(\.kind.name)).sorted() == vector.records, "\(vector.name)")
            #expect(merged.digest(id: Array("a".utf8)) == vector.digest, "\(vector.name)")
        }
    }
}

/// Merges texts for the tests.
enum Documents {
    static func merged(
        _ o: String?, _ x: String?, _ y: String?, schema: String = "\"auto\"", id: String = "", saving: Bool = false,
        swapped: Bool = false, check: (() throws -> Void)? = nil
    ) throws -> MergedValue {
        let schema = try Array(schema.utf8).withUnsafeBytes { try MergeSchema($0, partly: true) }
        var merge = DocumentMerge(schema: schema, id: Array(id.utf8), check: check)
        if swapped { merge = try DocumentMerge(rules: #require(Array(id.utf8).withUnsafeBytes { schema.rules(for: $0) }), swaps: true) }
        return try bytes(o) { o in
            try bytes(x) { x in
                try bytes(y) { y in
                    try (saving ? merge.saving : merge).merge(
                        base: o, newer: x,
                        older: y)
                }
            }
        }
    }

    static func text(_ o: String?, _ x: String?, _ y: String?, _ schema: String = "\"auto\"") throws -> String? {
        try merged(o, x, y, schema: schema).bytes.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func bytes<R>(_ text: String?, _ body: (UnsafeRawBufferPointer?) throws -> R) throws -> R {
        guard let text else { return try body(nil) }
        return try Array(text.utf8).withUnsafeBytes { try body($0) }
    }
}
