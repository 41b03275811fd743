import LLVSDocuments
import LLVSMerge
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Open conflicts of long histories. One pass over the history finds which versions descend from a merge.
@Suite("Open conflicts of long histories") struct OpenConflictCostTests {
    private static func received(_ id: String, _ predecessors: [String], at time: Double) throws -> Store.ReceivedVersion {
        let behind = try predecessors.map { try VersionID($0) }
        let version = Version(id: try VersionID(id), predecessors: behind, timestamp: time, valueDataSize: 0, metadata: Metadata())
        return Store.ReceivedVersion(version: version, changes: [])
    }

    @Test("one pass finds what a walk for each version finds", arguments: 0..<40 as Range<UInt64>) func laterVersions(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let store = try memoryStore(), count = Int.random(in: 2...120, using: &random)
        var all: [Store.ReceivedVersion] = []
        for i in 0..<count {
            let below = Set(
                (0..<Int.random(in: 0...2, using: &random)).compactMap { _ in
                    i == 0 ? nil : Int.random(in: max(0, i - 12)..<i, using: &random)
                })
            all.append(try Self.received("v\(i)", below.sorted().map { "v\($0)" }, at: Double(i)))
        }
        for addition in try store.add(all) { if case .problem(let error) = addition { throw error } }
        let ordinals = try all.map { try store.requireOrdinal($0.version.id) }
        var later = 0
        store.lock.withRead {
            let dag = store.quietHistory
            for at in ordinals {
                let last = ordinals.randomElement(using: &random) ?? at
                var whole = LaterVersions(of: [at], upTo: last), pieces = LaterVersions(of: [at], upTo: last)
                let found = whole.finish(in: dag)
                var again: LaterVersions.Found?
                while again == nil { again = pieces.go(7, in: dag) }
                for other in ordinals where other <= last {
                    #expect(found.contains(other) == dag.isAncestor(at, of: other), "\(at) and \(other)")
                    #expect(again?.contains(other) == found.contains(other))
                    later += found.contains(other) ? 1 : 0
                }
            }
        }
        #expect(later > 0 || count < 10)
        store.lock.withRead {
            let dag = store.quietHistory,
                asked = (0..<Int.random(in: 1...64, using: &random)).compactMap { _ in
                    ordinals.randomElement(using: &random)
                }
            let last = ordinals.max() ?? 0
            var pass = LaterVersions(of: asked, upTo: last)
            let found = pass.finish(in: dag)
            for other in ordinals {
                let bits = found.ancestors(of: other)
                for (i, at) in asked.enumerated() { #expect((bits >> UInt64(i) & 1 == 1) == dag.isAncestor(at, of: other)) }
                #expect(asked.count == 64 || bits >> UInt64(asked.count) == 0)
            }
        }
    }

    #if DEBUG
    @Test("later versions are visited once, however many values conflict") func oncePerMerge() throws {
        func looked(_ later: Int) throws -> Int {
            let store = try memoryStore(), ids = ["a", "b", "c", "d", "e", "f"]
            func all(_ text: String) -> [String: String] { Dictionary(uniqueKeysWithValues: ids.map { ($0, text) }) }
            let rules = [MergeSchema.valueID: "{\"merge\":1,\"ids\":{\"\":\"auto\"}}"]
            let root = try store.set(all("{\"n\":0}").merging(rules) { $1 }, nil)
            let older = try store.set(all("{\"n\":1}"), root), newer = try store.set(all("{\"n\":2}"), root)
            var last = try store.merge(older.id, with: newer.id, arbiter: RulesArbiter())
            for i in 0..<later { last = try store.set(all("{\"n\":2,\"m\":\(i)}"), last) }
            var open = 0
            let looked = try Work.versions.counting { open = try store.openConflicts(at: last.id).count }
            #expect(open == ids.count)
            return looked
        }
        let few = try looked(200), many = try looked(800)
        // Six passes over the history to find where each value changed, and one for the descendants of the merge, not six.
        #expect(many <= 5 * few && many <= 8 * 800, "\(few) versions for 200, \(many) for 800")
    }

    @Test("later versions of a value are read once, however many merges left conflicts in it") func oncePerValue() throws {
        func counted(_ merges: Int) throws -> (documents: Int, versions: Int) {
            let store = try memoryStore()
            var last = try store.set(["a": "{}", MergeSchema.valueID: "{\"merge\":1,\"ids\":{\"\":\"auto\"}}"], nil), members = ""
            for i in 0..<merges {
                let older = try store.set(["a": "{\(members)\"m\(i)\":1}"], last)
                let newer = try store.set(["a": "{\(members)\"m\(i)\":2}"], last)
                last = try store.merge(older.id, with: newer.id, arbiter: RulesArbiter())
                members += "\"m\(i)\":2,"
            }
            var open = 0, versions = 0
            let documents = try Work.documents.counting {
                versions = try Work.versions.counting { open = try store.openConflicts(at: last.id).count }
            }
            #expect(open == merges)
            return (documents, versions)
        }
        let few = try counted(15), many = try counted(60)
        #expect(many.documents <= 8 * 60 && many.documents <= 5 * few.documents, "\(few) for 15, \(many) for 60")
        #expect(many.versions <= 5 * few.versions, "\(few) for 15, \(many) for 60")
    }

    @Test("an edit after some of many merges closes their conflicts", arguments: [1, 63, 64, 65, 130]) func manyMerges(
        merges: Int
    ) throws {
        let store = try memoryStore()
        var last = try store.set(["a": "{}", MergeSchema.valueID: "{\"merge\":1,\"ids\":{\"\":\"auto\"}}"], nil)
        var members: [String] = [], closed: Set<Int> = []
        func text(_ more: String? = nil) -> String { "{\((members + (more.map { [$0] } ?? [])).joined(separator: ","))}" }
        for i in 0..<merges {
            let older = try store.set(["a": text("\"m\(i)\":1")], last), newer = try store.set(["a": text("\"m\(i)\":2")], last)
            last = try store.merge(older.id, with: newer.id, arbiter: RulesArbiter())
            members.append("\"m\(i)\":2")
            // A device edits an older place and restores the earlier contents.
            guard i % 7 == 3 else { continue }
            let place = i / 2, kept = members[place]
            members[place] = "\"m\(place)\":9"
            last = try store.set(["a": text()], last)
            members[place] = kept
            last = try store.set(["a": text()], last)
            closed.insert(place)
        }
        let open = try store.openConflicts(at: last.id).map { String(decoding: $0.record.path, as: UTF8.self) }
        #expect(open == (0..<merges).filter { !closed.contains($0) }.map { "[\"m\($0)\"]" })
    }
    #endif
}
