import Foundation
import LLVSTestHelpers
import Testing

@testable import LLVSDocuments

/// Tests/Vectors/documents/texts.json: the examples of merging texts and lists of plain values, and the readings chosen where the rules
/// allow several.
@Suite("Vectors of merging texts and lists of plain values") struct TextVectorTests {
    private static func vectors() throws -> [String: Any] {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/documents/texts.json")
        return try #require(JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
    }

    private static func json(_ value: Any) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: value, options: [.fragmentsAllowed, .sortedKeys]), as: UTF8.self)
    }

    /// The same JSON with sorted members.
    private static func json(_ text: [UInt8]) throws -> String {
        try json(JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed))
    }

    @Test func cases() throws {
        let all = try Self.vectors(), examples = try #require(all["examples"] as? [[String: Any]])
        let readings = try #require(all["readings"] as? [[String: Any]])
        #expect(examples.count == 53 && readings.count > 40)
        for vector in examples + readings {
            let name = vector["name"] as? String ?? "", rule = try Self.json(#require(vector["rule"])), isText = rule.contains("text")
            // (A string holds the text of a value, since some numbers are spelled unusually.)
            func value(_ member: String) throws -> String {
                let value = try #require(vector[member])
                return try value as? String ?? Self.json(value)
            }
            let schema = "{\"merge\":1,\"ids\":{\"a\":{\"\":\(rule)}}}"
            let merged = try Documents.merged(value("o"), value("x"), value("y"), schema: schema, id: "a")
            let bytes = try #require(merged.bytes)
            #expect(try (isText ? String(decoding: bytes, as: UTF8.self) : Self.json(bytes)) == value("result"), "\(name)")
            let told = try merged.records.map { record in
                var members = ["\"kind\":\"\(record.kind.name)\""]
                for (member, part) in [("o", record.base), ("result", record.result), ("x", record.newer), ("y", record.older)] {
                    if let part { members.append("\"\(member)\":\(try Self.json(part))") }
                }
                return "{\(members.joined(separator: ","))}"
            }
            let expected = try #require(vector["records"] as? [[String: Any]]).map(Self.json)
            #expect(told == expected, "\(name)")
        }
    }

    @Test func choosing() throws {
        let all = try #require(Self.vectors()["choose"] as? [[String: Any]])
        #expect(all.count >= 10)
        for vector in all {
            func text(_ name: String) -> [UInt8] { Array((vector[name] as? String ?? "").utf8) }
            let start = vector["start"] as? Int ?? 0, count = vector["count"] as? Int ?? 0, work = DocumentControl()
            var steps = TextAlignment.stepLimit
            let found = try text("made").withUnsafeBytes { made in
                try text("now").withUnsafeBytes { now -> [UInt8]? in
                    let parts = try #require(TextParts(made, now, steps: &steps, work: work))
                    let place = try parts.onlyPlace(of: start..<start + count, work)
                    return try place.map { try parts.replacing($0, with: text("chosen")) }
                }
            }
            #expect(found.map { String(decoding: $0, as: UTF8.self) } == vector["result"] as? String, "\(vector["name"] ?? "")")
        }
    }
}
