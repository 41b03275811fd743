import Foundation
import LLVSCore
import LLVSDocuments
import LLVSMerge
import LLVSTestHelpers
import Testing

/// Tests/Vectors/documents/histories.json, which the model of merging inside values computed. The histories decide where merges of several
/// versions matter: which side is newer, several bases, and merges that preserve a reference.
@Suite("Histories of merging inside values") struct DocumentHistoryTests {
    private struct Histories: Decodable {
        struct History: Decodable {
            let name: String
            let schema: String
            let versions: [Made]
        }
        /// A save, or a merge of two versions.
        struct Made: Decodable {
            let name: String
            /// Seconds since 1970; nil for a merge.
            let time: Double?
            let predecessors: [String]
            let arbiter: String?
            let metadata: [String: String]?
            let value: String?
            /// The version that stores the value.
            let stored: String?
            /// Kinds of conflicts; nil if the model cannot compute them.
            let records: [String]?
            /// The digest of the conflicts; nil if there are none, or the model cannot compute it.
            let digest: String?
        }
        let format: Int
        let histories: [History]
    }

    private static let all: Histories? = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/documents/histories.json")
        return (try? Data(contentsOf: file)).flatMap { try? JSONDecoder().decode(Histories.self, from: $0) }
    }()

    @Test("histories") func histories() throws {
        let found = try #require(Self.all)
        #expect(found.format == 1 && found.histories.count >= 30)
        for history in found.histories { try check(history) }
    }

    private func check(_ history: Histories.History) throws {
        let store = try memoryStore(), value = try ValueID("a")
        func time(_ since1970: Double) -> Double { since1970 - Version.secondsFrom1970To2001 }
        let rules = Value.Change.update(try ValueID(MergeSchema.valueID), data: Array(history.schema.utf8))
        var made = ["": try store.makeVersion(basedOn: nil, changes: [rules], timestamp: time(1))]
        for step in history.versions {
            let above = try (step.predecessors.isEmpty ? [""] : step.predecessors).map { try #require(made[$0]).id }
            var metadata = Metadata()
            let version: Version
            if above.count == 2 {
                for (key, text) in step.metadata ?? [:] { metadata[key] = Array("\"\(text)\"".utf8) }
                let arbiter: any MergeArbiter = step.arbiter == "rules" ? RulesArbiter() : BuiltInArbiter.mostRecentChange
                version = try store.merge(above[0], with: above[1], arbiter: arbiter, metadata: metadata)
            } else {
                let change = step.value.map { Value.Change.update(value, data: Array($0.utf8)) } ?? .remove(value)
                metadata["name"] = Array("\"\(step.name)\"".utf8)
                version = try store.makeVersion(
                    basedOn: above[0], changes: [change], metadata: metadata, timestamp: time(try #require(step.time)))
            }
            made[step.name] = version
            let there = try store.value(value, at: version.id), about = "\(history.name): \(step.name)"
            #expect(there.map { String(decoding: $0.data, as: UTF8.self) } == step.value, "\(about)")
            #expect(there?.storedVersion == step.stored.flatMap { made[$0]?.id }, "\(about)")
            guard above.count == 2, let records = step.records else { continue }
            let found = try store.explain(version.id)
            #expect(found.items.map(\.record.kind.name) == records && found.digest == step.digest, "\(about)")
        }
    }
}
