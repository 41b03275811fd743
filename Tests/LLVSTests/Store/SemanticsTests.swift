import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Rules of the store's semantics that no other suite tests.
@Suite struct SemanticsTests {
    /// Adds one received version. Returns the code of its problem; nil if it was added or already known.
    static func add(_ version: Version, _ changes: [Value.Change], to store: Store) throws -> StoreError.Code? {
        guard case .problem(let error)? = try store.add([.init(version: version, changes: changes)]).first else { return nil }
        return error.code
    }

    // MARK: Identities

    @Test func idsThatDifferByCaseAreTwoIDsWithinOneBatch() throws {
        let store = try memoryStore()
        let one = Version(id: try VersionID("abc"), predecessors: [], timestamp: 1, valueDataSize: 0, metadata: Metadata())
        let other = Version(id: try VersionID("ABC"), predecessors: [], timestamp: 2, valueDataSize: 0, metadata: Metadata())
        let answers = try store.add([.init(version: one, changes: []), .init(version: other, changes: [])])
        guard case .added = answers[0], case .added = answers[1] else { Issue.record("\(answers)"); return }
        #expect(try Set(store.allVersionIDs()) == [one.id, other.id])
    }

    @Test func anIdThatAnotherHandleTookIsKnown() throws {
        try withTemporaryDirectory { directory in
            let x = try DiskStore.open(0, directory), y = try DiskStore.open(0, directory)
            let made = try x.set(["k": "1"], nil, id: VersionID("mine"))
            #expect(code { _ = try y.set(["k": "2"], nil, id: VersionID("mine")) } == .versionMismatch)
            #expect(try y.set(["k": "1"], nil, id: VersionID("mine")) == made)
            try x.close()
            try y.close()
        }
    }

    @Test func aFirstSaveUnderANameStoresTheEmptyRoot() throws {
        for (name, time) in [("draft", nil), (nil, 1_000.0), ("dated", 1_000.0)] as [(String?, Double?)] {
            let store = try memoryStore()
            let made = try store.makeVersion(
                basedOn: EmptyRoot.id, changes: [.insert(id("k"), data: [1])], id: name.map { try VersionID($0) }, timestamp: time)
            #expect(try Set(store.allVersionIDs()) == [EmptyRoot.id, made.id])
            #expect(try store.isAncestor(EmptyRoot.id, of: made.id))
        }
    }

    @Test func theEmptyRootIsTheSameEverywhere() throws {
        let store = try memoryStore()
        var false1 = EmptyRoot.version
        false1.timestamp = 1
        #expect(try Self.add(false1, [], to: store) == .contentMismatch)
        #expect(try Self.add(EmptyRoot.version, [.insert(id("k"), data: [1])], to: store) == .contentMismatch)
        #expect(code { _ = try store.set(["k": "1"], nil, id: EmptyRoot.id) } == .versionMismatch)
        #expect(try store.allVersionIDs().isEmpty)
        #expect(try store.makeVersion(basedOn: nil, changes: [], id: EmptyRoot.id) == EmptyRoot.version)
        #expect(try store.heads().isEmpty)
    }

    @Test func theEmptyRootIsNotSentWhileItHasNoSuccessor() throws {
        let store = try memoryStore(), area = MemoryTransport(name: "semantics \(VersionID.random())")
        #expect(try Self.add(EmptyRoot.version, [], to: store) == nil)
        let exchange = Exchange(store: store, transport: area)
        #expect(try exchange.send().versions.isEmpty)
        let first = try store.set(["k": "1"], EmptyRoot.version)
        #expect(try exchange.send().versions == [first.id])
    }

    /// Two records of one version may express the same changes differently.
    @Test func versionsAreEqualByMeaning() throws {
        let store = try memoryStore()
        let base = try store.set(["k": "0", "gone": "0", "stays": "0"], nil)
        let version = Version(id: .random(), predecessors: [base.id], timestamp: 5, valueDataSize: 1, metadata: Metadata())
        #expect(try Self.add(version, [.update(id("k"), data: [1]), .remove(id("gone"))], to: store) == nil)
        let same: [[Value.Change]] = [
            [.insert(try id("k"), data: [1]), .preserveRemoval(try id("gone"))],
            [.update(try id("k"), data: [1]), .remove(try id("gone")), .remove(try id("never there"))],
            [.update(try id("k"), data: [1]), .remove(try id("gone")), .preserve(.init(id: try id("stays"), version: base.id))],
        ]
        for changes in same { #expect(try Self.add(version, changes, to: store) == nil) }
        let different: [[Value.Change]] = [
            [.update(try id("k"), data: [2]), .remove(try id("gone"))],
            [.update(try id("k"), data: [1])],
            [.update(try id("k"), data: [1]), .remove(try id("gone")), .update(try id("stays"), data: bytes("0"))],
        ]
        for changes in different { #expect(try Self.add(version, changes, to: store) == .versionMismatch) }
        #expect(try store.changes(madeIn: version.id).count == 2)
    }

    /// The merges in the folder record preserves. The index of the store directory cannot show these.
    @Test func anImportedStoreEqualsTheFolderOfTheSameVersions() throws {
        let store = try memoryStore()
        #expect(try StoreImporter.importStore(at: InterchangeVectors.path + "/store", into: store).versions.count == 25)
        let exchange = Exchange(store: store, transport: try FolderTransport(path: InterchangeVectors.path + "/folder"))
        #expect(try exchange.retrieve(verifyKnown: true).problems.map(\.name) == [])
    }

    // MARK: Pending versions

    @Test func aVersionMadeHereLetsInThoseThatWaitForIt() throws {
        for folds in [false, true] {
            try withTemporaryDirectory { directory in
                func segments() throws -> Set<String> {
                    Set(try System.names(in: directory + "/store/segments").filter { $0.hasSuffix(".seg") })
                }
                let x = try DiskStore.open(0, directory)
                let root = try x.set(["k": "0"], nil)
                let a = try x.set(["a": "1"], root), b = try x.set(["b": "1"], root)
                try x.close()
                let before = try segments()
                let y = try DiskStore.open(0, directory)
                let merged = try y.merge(a.id, with: b.id, arbiter: BuiltInArbiter.mostRecentChange)
                try y.close()
                let lost = try #require(try segments().subtracting(before).first)
                let z = try DiskStore.open(0, directory)
                let child = try z.set(["c": "1"], merged)
                try z.close()
                try System.rename("\(directory)/store/segments/\(lost)", directory + "/lost")

                let store = try DiskStore.open(0, directory)
                #expect(try store.statistics().pending == 1)
                // The same deterministic version, saved locally.
                if folds {
                    try store.mergeHeads(into: a.id, arbiter: BuiltInArbiter.mostRecentChange)
                } else {
                    try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.mostRecentChange)
                }
                #expect(try store.heads() == [child])
                #expect(try store.statistics().pending == 0)
                try store.close()
            }
        }
    }

    // MARK: Merging

    /// Another handle may store a step of a fold during the fold.
    @Test func aFoldTakesAStepThatWasStoredMeanwhile() throws {
        struct Meddling: MergeArbiter {
            let oldest: VersionID, others: [VersionID]
            func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
                if merge.second.id == oldest { try store.merge(others[0], with: others[1], arbiter: BuiltInArbiter.mostRecentBranch) }
                return try BuiltInArbiter.mostRecentBranch.resolve(merge, in: store)
            }
        }
        let store = try memoryStore()
        let root = try store.set(["k": "0"], nil)
        let heads = try (1...3).map { try store.set(["k": "\($0)"], root) }
        let merged = try #require(
            try store.mergeHeads(into: heads[0].id, arbiter: Meddling(oldest: heads[0].id, others: [heads[1].id, heads[2].id])))
        #expect(try store.headIDs() == [merged.id])
        #expect(try store.allVersionIDs().count == 6)
        for predecessor in merged.predecessors { #expect(try store.successors(of: predecessor).map(\.id) == [merged.id]) }
        #expect(try store.walk(HistoryQuery(from: [merged.id])).next(.max).map(\.version) == store.history())
        #expect(try store.text("k", merged) == "3")
    }

    // MARK: Callbacks

    @Test(.timeLimit(.minutes(15))) func progressOfVerifyMayCallTheStore() throws {
        let store = try memoryStore()
        let root = try store.set(["k": "0"], nil)
        nonisolated(unsafe) var calls = 0
        let report = try store.verify(
            control: OperationControl(progress: { _ in
                calls += 1
                if calls == 1 { _ = try store.set(["k": "1"], root) }
                return true
            }))
        #expect(calls > 0 && report.isWhole)
        #expect(try store.heads().count == 1 && store.allVersionIDs().count == 2)
    }

    @Test func aCancelledFoldStoresNothing() throws {
        let store = try memoryStore()
        let root = try store.set(["k": "0"], nil)
        for i in 1...4 { _ = try store.set(["k": "\(i)"], root) }
        for calls in 0..<3 {
            nonisolated(unsafe) var left = calls
            let control = OperationControl(progress: { _ in
                left -= 1; return left >= 0
            })
            #expect(
                code {
                    try store.mergeHeads(
                        into: root.id, arbiter: BuiltInArbiter.mostRecentChange, selection: .all, metadata: Metadata(), control: control)
                } == .cancelled)
            #expect(try store.heads().count == 4 && store.allVersionIDs().count == 5)
        }
        #expect(try store.mergeHeads(into: root.id, arbiter: BuiltInArbiter.mostRecentChange) != nil)
    }

    @Test func aLargeFileCanBeCancelledOnItsWay() throws {
        let temporary = TemporaryFolder()
        let store = try memoryStore()
        try store.makeVersion(basedOn: nil, changes: [.insert(try id("large"), data: [UInt8](repeating: 7, count: 6 << 20))])
        func cancelling(after calls: Int) -> OperationControl {
            nonisolated(unsafe) var left = calls
            return OperationControl(progress: { _ in
                left -= 1; return left >= 0
            })
        }
        let sending = Exchange(store: store, transport: try FolderTransport(path: temporary.path + "/shared"))
        #expect(code { _ = try sending.send(control: cancelling(after: 6)) } == .cancelled)
        #expect(((try? temporary.names("shared/tmp")) ?? []) == [] && ((try? temporary.names("shared/versions")) ?? []) == [])
        _ = try sending.send()
        let other = try memoryStore()
        let retrieving = Exchange(store: other, transport: try FolderTransport(path: temporary.path + "/shared"))
        #expect(code { _ = try retrieving.retrieve(control: cancelling(after: 6)) } == .cancelled)
        #expect(try other.allVersionIDs().isEmpty)
        #expect(try retrieving.retrieve().versions.count == 1)
    }

    @Test func longWorkCanBeCancelledAtEachMiB() throws {
        let store = try memoryStore()
        let large = [UInt8](repeating: 7, count: 1 << 20)
        try store.makeVersion(basedOn: nil, changes: (0..<8).map { .insert(try id("\($0)"), data: large) })
        nonisolated(unsafe) var calls = 0
        _ = try store.verify(
            control: OperationControl(progress: { _ in
                calls += 1; return true
            }))
        #expect(calls >= 8)
    }
}
