import Foundation
import Testing
@testable import LLVS

/// Tests/Vectors/documents/vectors.json, which the model of merging inside values gave: the same bytes, records and digests.
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

/// Merges texts, for tests.
enum Documents {
    static func merged(
        _ o: String?, _ x: String?, _ y: String?, schema: String = "\"auto\"", id: String = "", saving: Bool = false,
            swapped: Bool = false, check: (() throws -> Void)? = nil
    ) throws -> MergedValue {
        let schema = try Array(schema.utf8).withUnsafeBytes { try MergeSchema($0, partly: true) }
        var merge = DocumentMerge(schema: schema, id: Array(id.utf8), check: check)
        if swapped { merge = try DocumentMerge(rules: #require(Array(id.utf8).withUnsafeBytes { schema.rules(for: $0) }), swaps: true) }
        return try bytes(o) { o in try bytes(x) { x in try bytes(y) { y in try (saving ? merge.saving : merge).merge(base: o, newer: x,
            older: y) } } }
    }

    static func text(_ o: String?, _ x: String?, _ y: String?, _ schema: String = "\"auto\"") throws -> String? {
        try merged(o, x, y, schema: schema).bytes.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func bytes<R>(_ text: String?, _ body: (UnsafeRawBufferPointer?) throws -> R) throws -> R {
        guard let text else { return try body(nil) }
        return try Array(text.utf8).withUnsafeBytes { try body($0) }
    }
}
