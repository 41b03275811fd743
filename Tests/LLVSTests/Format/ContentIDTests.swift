import Foundation
import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Ids that are computed from the contents of versions: docs/format.md, "Ids of versions".
@Suite struct ContentIDTests {
    private func text(_ store: Store, _ base: VersionID?, _ key: String, _ value: String, timestamp: Double? = nil) throws -> Version {
        try store.makeVersion(basedOn: base, changes: [.update(ValueID(key), data: Array(value.utf8))], timestamp: timestamp)
    }
    private func isOwn(_ version: Version, _ store: Store) throws -> Bool {
        var digests: [UInt8] = []
        let changes = try store.changes(madeIn: version.id)
        return changes.withBorrowed { version.contentID(RecordChanges($0), digests: &digests) == version.id } && version.id.hasContentForm
            && version.id.text == nil
    }

    @Test func formIsThatOfVersion8InAnyCase() throws {
        for (id, has) in [
            ("0D857AF1-E80E-8964-ADA3-9A11E10F965E", true), ("0d857af1-e80e-8964-ada3-9a11e10f965e", true),
            ("0D857AF1-E80E-8964-aDA3-9A11E10F965E", true),
            ("0D857AF1-E80E-4964-ADA3-9A11E10F965E", false), ("0D857AF1-E80E-8964-CDA3-9A11E10F965E", false),
            ("0D857AF1-E80E-8964-7DA3-9A11E10F965E", false),
            ("0D857AF1-E80E-8964-bDA3-9A11E10F965E", true), ("0D857AF1-E80E-8964-9DA3-9A11E10F965", false),
            ("0D857AF1E80E8964ADA39A11E10F965E", false),
            ("0G857AF1-E80E-8964-ADA3-9A11E10F965E", false), ("note", false), ("00000000-0000-8000-8000-000000000000", true),
        ] { #expect(try VersionID(id).hasContentForm == has, "\(id)") }
    }

    @Test(arguments: ["memory", "file", "sqlite"])
    func allThatIsMadeHasOne(_ medium: String) throws {
        let temporary = TemporaryDirectory(), store = try open(medium, temporary.path + "/store")
        let root = try text(store, nil, "a", "1"), other = try text(store, root.id, "b", "2"), third = try text(store, root.id, "c", "3")
        let large = try store.makeVersion(
            basedOn: root.id, changes: [.update(ValueID("large"), data: [UInt8](repeating: 7, count: 1 << 21)), .remove(ValueID("a"))])
        let merged = try store.merge(other.id, with: third.id, arbiter: BuiltInArbiter.mostRecentChange)
        let folded = try #require(try store.mergeHeads(into: merged.id, arbiter: BuiltInArbiter.mostRecentChange))
        let reverted = try #require(try store.revert(other.id, at: folded.id).version)
        let empty = try store.makeVersion(basedOn: reverted.id, changes: [])
        var pieces = [UInt8](repeating: 9, count: 3 << 20)[...]
        let source = ValueSource(id: try ValueID("pieces"), size: nil) { buffer in
            let count = min(buffer.count, pieces.count)
            buffer.copyBytes(from: pieces.prefix(count))
            pieces = pieces.dropFirst(count)
            return count
        }
        let streamed = try store.makeVersion(basedOn: empty.id, borrowing: BorrowedChanges([]), reading: [source])
        for version in [root, other, third, large, merged, folded, reverted, empty, streamed] {
            #expect(try isOwn(version, store), "\(version)")
        }
        let report = try store.verify()
        let count = UInt64(try store.history().count)
        #expect(report.isWhole && report.vouched == count && report.unvouched == 0, "\(report)")
        // An id that the caller chose does not vouch for the ancestors.
        let named = try store.makeVersion(basedOn: streamed.id, changes: [], id: VersionID("named"))
        let after = try store.verify()
        #expect(after.vouched == 0 && after.unvouched == report.vouched + 1)
        try store.makeVersion(basedOn: named.id, changes: [])
        #expect(try store.verify().vouched == 1)
    }

    private func open(_ medium: String, _ path: String) throws -> Store {
        var options = Store.Options()
        options.storage = medium == "memory" ? .memory : medium == "file" ? .file : .sqlite
        options.durability = .normal
        return try Store(path: path, options: options)
    }

    @Test func timestampsNeverRepeat() throws {
        let times = GivenTimes()
        #expect(
            times.next(5, behind: nil) == 5 && times.next(5, behind: nil) == Clock.after(5)
                && times.next(1, behind: nil) == Clock.after(Clock.after(5)))
        // A version ahead of the clock only affects its descendants.
        let far = times.next(10, behind: 1e9)
        #expect(
            far == Clock.after(1e9) && times.next(11, behind: nil) == 11 && times.next(11, behind: 1e9) == Clock.after(far)
                && times.next(1e9, behind: nil) == 1e9)
        var seen: Set<Double> = []
        var random = SeededRandom(seed: 7)
        let given = GivenTimes()
        for _ in 0..<sample(usual: 4_000, deep: 20_000) {
            let clock = Double(Int.random(in: 0..<40, using: &random)) * 1e-6,
                behind = Bool.random(using: &random) ? nil : Optional(Double(Int.random(in: 0..<60, using: &random)) * 1e-6)
            let time = given.next(clock, behind: behind)
            #expect(seen.insert(time).inserted && time >= clock && behind.map { time > $0 } != false)
        }
        let store = try Store(
            path: "",
            options: {
                var o = Store.Options(); o.storage = .memory; return o
            }())
        store.environment.clock = { 100 }
        let root = try text(store, nil, "a", "1")
        let same = try (0..<5).map { _ in try text(store, root.id, "a", "2") }
        #expect(Set(same.map(\.id)).count == 5)
    }

    @Test func theSameMadeElsewhereIsOneVersion() throws {
        let temporary = TemporaryDirectory(), one = try open("file", temporary.path + "/store"),
            root = try text(one, nil, "a", "1", timestamp: 50)
        let two = try open("file", temporary.path + "/store")
        let made = try text(one, root.id, "a", "2", timestamp: 60), again = try text(one, root.id, "a", "2", timestamp: 60)
        // Another process that has not reloaded since.
        let theirs = try text(two, root.id, "a", "2", timestamp: 60)
        #expect(made == again && made == theirs)
        try one.reloadHistory()
        try two.reloadHistory()
        for store in [one, two, try open("file", temporary.path + "/store")] {
            let count = try store.history().count, report = try store.verify()
            #expect(count == 2 && report.isWhole, "\(report)")
        }
        let named = try one.makeVersion(basedOn: root.id, changes: [.update(ValueID("a"), data: [50])], id: made.id)
        #expect(named == made)
    }

    @Test func twoProcessesMakeTheSameAtOnce() throws {
        let temporary = TemporaryDirectory()
        let handles = try (0..<4).map { _ in
            let store = try open("file", temporary.path + "/store")
            store.environment.times = GivenTimes()
            store.environment.clock = { 100 }
            return store
        }
        let root = try text(handles[0], nil, "a", "1", timestamp: 1)
        for store in handles { try store.reloadHistory() }
        let made = Guarded<Set<VersionID>>([])
        let errors = Parallel.run(threads: 4, times: 1) { number, _ in
            let version = try handles[number].makeVersion(
                basedOn: root.id,
                changes: [
                    .update(ValueID("a"), data: Array("2".utf8)), .update(ValueID("large"), data: [UInt8](repeating: 1, count: 2 << 20)),
                ])
            made.withLock { _ = $0.insert(version.id) }
        }
        #expect(errors.isEmpty && made.withLock { $0.count } == 1)
        for store in handles {
            try store.reloadHistory()
            #expect(try store.history().count == 2)
        }
        let fresh = try open("file", temporary.path + "/store")
        let count = try fresh.history().count, report = try fresh.verify(),
            value = try fresh.value(ValueID("a"), at: fresh.headIDs()[0])?.data
        #expect(count == 2 && report.damages.allSatisfy { $0.lost == .nothing } && value == [50], "\(report)")
    }

    @Test func callersCannotTakeThem() throws {
        let store = try open("memory", "")
        let root = try text(store, nil, "a", "1", timestamp: 10)
        for id in ["0D857AF1-E80E-8964-ADA3-9A11E10F965E", root.id.description.lowercased(), "0d857af1-e80e-8964-ada3-9a11e10f965e"] {
            let error = #expect(throws: StoreError.self) { try store.makeVersion(basedOn: root.id, changes: [], id: VersionID(id)) }
            #expect(error?.code == .invalidVersionID, "\(id)")
        }
        // The id that is computed from the contents is accepted.
        let own = try text(try open("memory", ""), nil, "b", "1", timestamp: 20)
        let made = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("b"), data: [49])], id: own.id, timestamp: 20)
        #expect(made == own)
        for id in ["0D857AF1-E80E-4964-ADA3-9A11E10F965E", "0D857AF1E80E8964ADA39A11E10F965E", "mine"] {
            try store.makeVersion(basedOn: root.id, changes: [], id: VersionID(id))
        }
    }

    // MARK: From elsewhere

    private func received(_ version: Version, _ store: Store) throws -> Store.ReceivedVersion {
        Store.ReceivedVersion(version: version, changes: try store.changes(madeIn: version.id))
    }
    private func codes(_ additions: [Store.Addition]) -> [StoreError.Code?] {
        additions.map { if case .problem(let error) = $0 { error.code } else { nil } }
    }

    @Test func onlyContentsThatMatchTheIDAreAccepted() throws {
        let source = try open("memory", ""), root = try text(source, nil, "a", "1"), a = try text(source, root.id, "a", "2"),
            b = try text(source, root.id, "b", "2")
        let merged = try source.merge(a.id, with: b.id, arbiter: BuiltInArbiter.mostRecentChange)
        let honest = try [root, a, b, merged].map { try received($0, source) }
        func forgeries(_ one: Store.ReceivedVersion) throws -> [Store.ReceivedVersion] {
            var all = [one, one, one, one, one]
            all[0].changes.append(.update(try ValueID("zzz"), data: [1]))
            all[1].version.timestamp += 1
            all[2].version.metadata["x"] = [1]
            all[3].version.predecessors = all[3].version.predecessors.isEmpty ? [try VersionID("other")] : []
            all[4].version.id = try VersionID(one.version.id.description.lowercased())
            return all
        }
        for (i, one) in honest.enumerated() {
            for forged in try forgeries(one) {
                let target = try open("memory", "")
                #expect(codes(try target.add(Array(honest.prefix(i)))).allSatisfy { $0 == nil })
                #expect(codes(try target.add([forged])) == [.contentMismatch], "\(forged)")
                // The forged versions do not prevent the genuine one from being added, not even in the same batch.
                #expect(codes(try target.add([forged, one, forged])) == [.contentMismatch, nil, .contentMismatch])
                let count = try target.history().count, report = try target.verify()
                #expect(count == i + 1 && report.isWhole)
            }
        }
        // Descendants of a forged version wait until the genuine one arrives.
        let target = try open("memory", "")
        #expect(codes(try target.add([try forgeries(honest[0])[0], honest[1]])) == [.contentMismatch, .missingPredecessor])
        #expect(codes(try target.add(honest)).allSatisfy { $0 == nil })
        #expect(try target.headIDs() == source.headIDs())
    }

    @Test func forgeriesInACircleHoldNothingUp() throws {
        let source = try open("memory", ""), u = try text(source, nil, "a", "1"), w = try text(source, u.id, "a", "2"),
            v = try text(source, w.id, "a", "3")
        var forged = try received(u, source)
        forged.version.predecessors = [v.id]
        let target = try open("memory", "")
        #expect(
            codes(try target.add([try received(w, source), forged, try received(v, source), try received(u, source)])) == [
                nil, .contentMismatch, nil, nil,
            ])
    }

    @Test func emptyRootIsWhatItIs() throws {
        let source = try open("memory", ""), made = try text(source, EmptyRoot.id, "a", "1"), made0 = try source.changes(madeIn: made.id)
        for change in [{ $0.version.timestamp = 1 }, { $0.version.metadata["x"] = [1] }, { $0.changes = made0 }]
            as [(inout Store.ReceivedVersion) -> Void]
        {
            var forged = Store.ReceivedVersion(version: EmptyRoot.version, changes: [])
            change(&forged)
            let target = try open("memory", "")
            #expect(codes(try target.add([forged])) == [.contentMismatch])
            // The contents of the empty root are public.
            #expect(codes(try target.add([forged, try received(made, source)])) == [.contentMismatch, nil])
            let heads = try target.headIDs(), report = try target.verify()
            #expect(heads == [made.id] && report.isWhole)
        }
    }

    @Test func mergesAsTheyWereMadeBeforeAreTaken() throws {
        let source = try open("memory", ""), root = try text(source, nil, "a", "1"), a = try text(source, root.id, "a", "2"),
            b = try text(source, root.id, "b", "2")
        let merged = try source.merge(a.id, with: b.id, arbiter: BuiltInArbiter.mostRecentChange)
        var old = try received(merged, source)
        var hasher = IdentityHasher(.oldMerge), digests: [UInt8] = []
        hasher.add(predecessors: merged.predecessors)
        hasher.add(merged.metadata)
        let changes = old.changes
        changes.withBorrowed { hasher.add(RecordChanges($0), digests: &digests) }
        old.version.id = hasher.finishID()
        #expect(old.version.id != merged.id)
        let before = try [root, a, b].map { try received($0, source) }
        let target = try open("memory", "")
        #expect(codes(try target.add(before + [old])) == [nil, nil, nil, nil])
        let report = try target.verify()
        #expect(report.isWhole && report.vouched == 4)
        // The id does not cover the timestamp, which follows from the predecessors.
        var other = old
        other.version.timestamp += 1
        for batches in [[before + [other]], [before, [other]]] {
            let target = try open("memory", "")
            let answers = try batches.map { codes(try target.add($0)) }
            #expect(answers.last?.last == .contentMismatch)
        }
    }

    @Test func verifyReportsForgeries() throws {
        let source = try open("memory", ""), root = try text(source, nil, "a", "1"), a = try text(source, root.id, "a", "2")
        let temporary = TemporaryDirectory(), path = temporary.path + "/store"
        func append(_ version: Version, _ changes: [Value.Change]) throws {
            let encoder = RecordEncoder(), store = try open("file", path)
            defer { try? store.close() }
            try changes.withBorrowed { borrowed in
                try encoder.encode(version, RecordChanges(borrowed), blobThreshold: nil) { _, _ in BlobID(high: 0, low: 0) }
                _ = try store.storage.append([encoder.pieces(RecordChanges(borrowed))])
            }
        }
        var forged = root
        forged.valueDataSize = 1
        try append(forged, [.insert(ValueID("a"), data: [99])])
        try append(a, source.changes(madeIn: a.id))
        let store = try open("file", path)
        let report = try store.verify()
        #expect(report.damages.map(\.version) == [root.id] && report.damages.map(\.lost) == [.version])
        #expect(report.vouched == 1 && report.unvouched == 1)
        // Beside the genuine record the forged one is skipped, whichever digest is smaller.
        try append(root, source.changes(madeIn: root.id))
        let again = try open("file", path)
        #expect(try again.value(ValueID("a"), at: root.id)?.data == [49])
        let settled = try again.verify()
        #expect(settled.damages.allSatisfy { $0.lost == .nothing } && settled.vouched == 2, "\(settled)")
    }

    // MARK: Vectors

    private struct VectorFile: Decodable {
        struct Change: Decodable { var kind: String, id: String, data: String?, `repeat`: [Int]?, stored: String? }
        struct Case: Decodable {
            var name: String, predecessors: [String], timestamp: String, metadata: [String: String], changes: [Change], id: String,
                oldMergeID: String?
        }
        var versions: [Case]
    }

    /// The vectors that Tests/Vectors/content_ids.py computes with hashlib alone.
    @Test func vectors() throws {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/content-ids.json")
        let cases = try JSONDecoder().decode(VectorFile.self, from: Data(contentsOf: path)).versions
        #expect(cases.count >= 20)
        for one in cases {
            let metadata = try Metadata(one.metadata.map { (key: Array($0.utf8), value: Array(try #require(Data(base64Encoded: $1)))) })
            let changes = try one.changes.map { change -> Value.Change in
                let id = try ValueID(change.id)
                let data =
                    try change.repeat.map { [UInt8](repeating: UInt8($0[0]), count: $0[1]) } ?? change.data.map {
                        Array(try #require(Data(base64Encoded: $0)))
                    } ?? []
                switch change.kind {
                case "insert": return .insert(id, data: data)
                case "update": return .update(id, data: data)
                case "remove": return .remove(id)
                case "preserve": return .preserve(.init(id: id, version: try VersionID(try #require(change.stored))))
                default: return .preserveRemoval(id)
                }
            }.sorted { $0.id < $1.id }
            var version = Version(
                id: try VersionID(one.id), predecessors: try one.predecessors.map { try VersionID($0) },
                timestamp: try #require(Double(one.timestamp)), valueDataSize: 0,
                metadata: metadata)
            try changes.withBorrowed { borrowed in
                var digests: [UInt8] = []
                #expect(version.contentID(RecordChanges(borrowed), digests: &digests).description == one.id, "\(one.name)")
                #expect(version.vouching(RecordChanges(borrowed), digests: &digests) == .content, "\(one.name)")
                guard let old = one.oldMergeID else { return }
                version.id = try VersionID(old)
                #expect(version.vouching(RecordChanges(borrowed), digests: &digests) == .oldMerge, "\(one.name)")
            }
        }
    }
}
