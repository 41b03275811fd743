import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Events at the same time as others, or in the middle of them: callbacks, failing syncs, other threads and handles.
@Suite struct RaceTests {
    struct Calling: MergeArbiter {
        let first: @Sendable (Merge, Store) throws -> Void
        func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
            try first(merge, store)
            return try BuiltInArbiter.mostRecentBranch.resolve(merge, in: store)
        }
    }

    /// Makes `count` roots that conflict in one value.
    static func heads(_ store: Store, _ count: Int) throws -> [Version] {
        let base = try store.set(["k": "0"], nil)
        return try (0..<count).map { try store.set(["k": "v\($0)", "own \($0)": "x"], base) }
    }

    /// An observer may save the reported version again, or wait for a thread that does. The version is complete by then.
    @Test func anObserverMakesTheSameAgain() throws {
        let (store, _) = try hookedStore()
        let id = try VersionID("named"), changes = [Value.Change.insert(try ValueID("k"), data: [1])]
        let base = try store.set(["k": "0"], nil)
        nonisolated(unsafe) var again: [VersionID] = []
        let observation = store.observeVersions { _ in
            if let made = try? store.makeVersion(basedOn: base.id, changes: changes, id: id) { again.append(made.id) }
        }
        let ended = Parallel.finishes { _ = try store.makeVersion(basedOn: base.id, changes: changes, id: id) }
        #expect(ended)
        guard ended else { return }
        #expect(again == [id])
        observation.cancel()
    }

    @Test func aStepOfAFoldThatAnotherMadeMeanwhile() throws {
        let (store, _) = try hookedStore()
        let heads = try Self.heads(store, 3)
        let newest = heads.sorted { Version.canonicalOrder($1, $0) }
        let steps = Lock()
        nonisolated(unsafe) var calls = 0
        let merged = try #require(
            try store.mergeHeads(
                into: heads[0].id,
                arbiter: Calling { _, store in
                    guard
                        steps.withLock({
                            calls += 1; return calls == 2
                        })
                    else { return }
                    _ = try store.merge(newest[0].id, with: newest[1].id, arbiter: BuiltInArbiter.mostRecentBranch)
                }))
        #expect(try store.headIDs() == [merged.id])
        #expect(try store.count(at: merged.id) == 4)
        #expect(try store.changes(madeIn: merged.id).isEmpty == false)
        for predecessor in merged.predecessors { #expect(try store.successors(of: predecessor).map(\.id) == [merged.id]) }
        #expect(try store.isAncestor(heads[0].id, of: merged.id))
        // The step of another handle has a larger row than the next step had. Rows come after their predecessors nevertheless.
        for (i, row) in store.quietHistory.rows.enumerated() where row.state == .live {
            for predecessor in [row.first, row.second] where predecessor != History.none { #expect(Int(predecessor) < i) }
        }
    }

    @Test func whatIsPointedAtALaterRowComesBehindIt() throws {
        let history = History()
        func append(_ id: UInt64, on first: UInt32 = History.none) -> UInt32 {
            history.append(
                id: VersionID(high: 0, low: id), timestamp: Double(id), valueDataSize: 0, first: first, second: History.none, branch: nil,
                place: RecordPlace(segment: 0, offset: 0, length: 1), checksum: 0, changeCount: 1, traits: [])
        }
        func publish(_ ordinal: UInt32) { history.publish(ordinal, place: RecordPlace(segment: 0, offset: 0, length: 1), checksum: 0) }
        let root = append(1), next = append(2, on: root)
        history.noteKeys(next, count: 1) { _ in 7 }
        // Another handle stored the first of the two meanwhile.
        let theirs = append(1)
        publish(theirs)
        history.drop(root)
        history.redirect(next, [root: theirs])
        let moved = history.behindPredecessors(next)
        publish(moved)
        #expect(moved > theirs && history.predecessors(moved) == [theirs] && history.keyHashes(of: moved) == [7])
        #expect(history.behindPredecessors(moved) == moved)
        // Rows that were dropped do not disturb anything.
        let index = KeyHistoryIndex(KeyHistoryIndex.Rows(history, behind: nil), behind: nil)
        #expect(index.end == 4)
        guard case .version(moved) = index.nearest(7, at: moved, in: history) else { Issue.record("not found"); return }
        let bytes = HistoryIndex.encode(history, nil, mark: [])
        #expect(try HistoryIndex.decode(bytes) { _ in [0] }?.history.liveCount == 2)
    }

    @Test func aFailureInALaterStepLeavesNothing() throws {
        let (store, _) = try hookedStore()
        let heads = try Self.heads(store, 3)
        nonisolated(unsafe) var calls = 0
        nonisolated(unsafe) var step: VersionID?
        #expect(
            code {
                _ = try store.mergeHeads(
                    into: heads[0].id,
                    arbiter: Calling { merge, store in
                        calls += 1
                        guard calls == 2 else { return }
                        step = merge.first.id
                        _ = try store.value(id("k"), at: merge.first.id)
                        throw StoreError(.user, "no")
                    })
            } == .user)
        #expect(try store.headIDs().count == 3 && store.allVersionIDs().count == 4)
        #expect(code { _ = try store.value(id("k"), at: #require(step)) } == .unknownVersion)
        let merged = try #require(try store.mergeHeads(into: heads[0].id, arbiter: BuiltInArbiter.mostRecentBranch))
        #expect(try store.headIDs() == [merged.id] && store.count(at: merged.id) == 4)
    }

    @Test func nothingIsBuiltOnAStepThatIsNotStored() throws {
        let (store, _) = try hookedStore()
        let heads = try Self.heads(store, 3)
        nonisolated(unsafe) var calls = 0
        nonisolated(unsafe) var code: StoreError.Code?
        _ = try store.mergeHeads(
            into: heads[0].id,
            arbiter: Calling { merge, store in
                calls += 1
                if calls == 2 {
                    code = LLVSTestHelpers.code {
                        _ = try store.makeVersion(basedOn: merge.first.id == heads[0].id ? merge.second.id : merge.first.id, changes: [])
                    }
                }
            })
        #expect(code == .unknownPredecessor || code == nil)
        for id in try store.allVersionIDs() { _ = try store.values(at: id, limit: .max) }
    }

    @Test func whatIsNotAcknowledgedIsNotSeen() throws {
        let (store, storage) = try hookedStore(durability: .full)
        let base = try store.set(["k": "0"], nil)
        let name = try VersionID("slow")
        nonisolated(unsafe) var codes: [StoreError.Code?] = []
        nonisolated(unsafe) var turns = 0
        storage.beforeSync = {
            turns += 1
            guard turns == 1 else { return }
            codes.append(code { _ = try store.value(id("k"), at: name) })
            codes.append(code { _ = try store.makeVersion(basedOn: name, changes: []) })
            if case .problem(let error) = try store.add([.init(version: plainVersion("child", ["slow"]), changes: [])])[0] {
                codes.append(error.code)
            } else {
                codes.append(nil)
            }
            throw StoreError(.io, "The disk says no.")
        }
        #expect(code { _ = try store.set(["k": "1"], base, id: name) } == .unknownOutcome)
        #expect(codes == [.unknownVersion, .unknownPredecessor, .missingPredecessor])
        #expect(try store.headIDs() == [base.id])
        // The same version is accepted again; another one under its id is not.
        #expect(code { _ = try store.set(["k": "2"], base, id: name) } == .versionMismatch)
        let again = try store.set(["k": "1"], base, id: name)
        #expect(try store.headIDs() == [again.id] && store.text("k", again) == "1")
        #expect(try store.verify().isWhole)
    }

    /// A version is in the file as soon as it is appended. Another handle may build on it and acknowledge its own version before the commit
    /// of the first returns.
    @Test func whatAnotherHandleBuiltOnACommitThatStillSyncsIsThereAfterAReload() throws {
        let directory = TemporaryDirectory(), lock = Lock()
        nonisolated(unsafe) var isHeld = false, isSyncing = false
        var file = FileStorage.Options(), options = Store.Options()
        file.system.fdatasync = { (fd) throws(Errno) in
            if lock.withLock({
                if isHeld { isSyncing = true }; return isHeld
            }) {
                while lock.withLock({ isHeld }) { usleep(100) }
            }
            try System.fdatasync(fd)
        }
        options.storage = .custom(try FileStorage(path: directory.path + "/s", options: file))
        let store = try Store(path: directory.path + "/s", options: options), other = try Store(path: directory.path + "/s")
        let base = try store.set(["k": "0"], nil)
        lock.withLock { isHeld = true }
        nonisolated(unsafe) var found: String?
        expectEnd {
            let errors = Parallel.run(threads: 2, times: 1) { thread, _ in
                if thread == 0 { _ = try store.set(["k": "1"], base, id: VersionID("slow")); return }
                while !lock.withLock({ isSyncing }) { usleep(100) }
                defer { lock.withLock { isHeld = false } }
                let built = try other.set(["k": "2"], other.version(VersionID("slow")), id: VersionID("built"))
                lock.withLock { isHeld = false }
                found = try store.text("k", built)
            }
            #expect(errors.isEmpty && found == "2", "\(errors.first.map { "\($0)" } ?? "")")
        }
        try store.close()
        try other.close()
    }

    @Test func manyFirstSavesAtOnce() throws {
        for _ in 0..<20 {
            let (store, storage) = try hookedStore(durability: .full)
            storage.beforeSync = { usleep(300) }
            let errors = Parallel.run(threads: 6, times: 3) { thread, turn in
                _ = try store.makeVersion(basedOn: EmptyRoot.id, changes: [.insert(id("\(thread) \(turn)"), data: [1])])
            }
            #expect(errors.isEmpty, "\(errors.first.map { "\($0)" } ?? "")")
            #expect(try store.allVersionIDs().count == 19 && store.headIDs().count == 18)
            #expect(try store.successors(of: EmptyRoot.id).count == 18)
        }
    }

    @Test func theSameVersionsFromManyThreads() throws {
        for _ in 0..<10 {
            let (store, _) = try hookedStore(durability: .full)
            let chain = try (0..<10).map { i in
                Store.ReceivedVersion(
                    version: try plainVersion("c\(i)", i == 0 ? [] : ["c\(i - 1)"], timestamp: Double(i)),
                    changes: [.insert(try id("k\(i)"), data: [UInt8(i)])])
            }
            let errors = Parallel.run(threads: 6, times: 1) { thread, _ in
                for from in stride(from: 0, to: 10, by: 1 + thread % 3) {
                    for case .problem(let error) in try store.add(Array(chain[from..<min(10, from + 1 + thread % 3)])) { throw error }
                }
            }
            #expect(errors.isEmpty, "\(errors.first.map { "\($0)" } ?? "")")
            #expect(try store.allVersionIDs().count == 10 && store.headIDs() == [VersionID("c9")])
            #expect(try store.count(at: VersionID("c9")) == 10)
        }
    }

    @Test func aSyncThatFailedIsNotMadeGoodByALaterOne() throws {
        // Two commits wait for one failing sync. As soon as it has failed, a third commit syncs successfully.
        for _ in 0..<20 {
            let gate = GroupCommit()
            let one = gate.ticket(), two = gate.ticket()
            let entered = Lock()
            nonisolated(unsafe) var waiting = 0
            let errors = Parallel.run(threads: 2, times: 1) { thread, _ in
                if thread == 0 {
                    var failure: (any Error)?
                    do {
                        try gate.wait(for: one) {
                            while entered.withLock({ waiting }) == 0 { usleep(100) }
                            usleep(3_000)
                            throw StoreError(.io, "no")
                        }
                    } catch { failure = error }
                    let three = gate.ticket()
                    try gate.wait(for: three) {}
                    if let failure { throw failure }
                } else {
                    while gate.isSyncing == false { usleep(50) }
                    entered.withLock { waiting += 1 }
                    try gate.wait(for: two) {}
                }
            }
            #expect(errors.count == 2)
        }
    }

    /// Some saves join while others wait, and some join during a sync. None waits for ever, and none returns too early.
    @Test func allThreadsThatWaitForASyncAreReleased() throws {
        let gate = GroupCommit(), lock = Lock()
        nonisolated(unsafe) var appended: UInt64 = 0, synced: UInt64 = 0
        expectEnd {
            let errors = Parallel.run(threads: 8, times: 300) { thread, turn in
                let ticket = lock.withLock {
                    appended = gate.ticket(); return appended
                }
                if (thread + turn) % 7 == 0 { usleep(50) }
                try gate.wait(for: ticket) {
                    let covered = lock.withLock { appended }
                    usleep(turn % 3 == 0 ? 20 : 150)
                    lock.withLock { synced = max(synced, covered) }
                }
                guard lock.withLock({ synced >= ticket }) else { throw StoreError(.internal, "Ticket \(ticket) was not synced.") }
                if (thread + turn) % 11 == 0 { usleep(300) }
            }
            #expect(errors.isEmpty, "\(errors.first.map { "\($0)" } ?? "")")
        }
    }

    /// The first sync ends when all threads have their tickets. In any schedule, the next sync covers all of them.
    @Test func threadsThatWaitAtTheSameTimeShareASync() throws {
        let gate = GroupCommit(), lock = Lock()
        nonisolated(unsafe) var taken = 0, syncs = 0
        let errors = Parallel.run(threads: 8, times: 1) { _, _ in
            let ticket = gate.ticket()
            lock.withLock { taken += 1 }
            try gate.wait(for: ticket) {
                lock.withLock { syncs += 1 }
                _ = Parallel.becomes { lock.withLock { taken == 8 } }
            }
        }
        #expect(errors.isEmpty && syncs <= 2, "\(syncs) syncs for 8 waits")
    }

    @Test func readersDoNotKeepWritersWaiting() throws {
        let (store, _) = try hookedStore()
        let base = try store.set(["k": "0"], nil)
        let lock = Lock()
        nonisolated(unsafe) var stop = false
        expectEnd {
            let errors = Parallel.run(threads: 5, times: 1) { thread, _ in
                if thread == 0 {
                    var at = base
                    for i in 0..<50 { at = try store.set(["k": "\(i)"], at) }
                    lock.withLock { stop = true }
                } else {
                    while !lock.withLock({ stop }) { for _ in 0..<200 { _ = try store.headIDs() } }
                }
            }
            #expect(errors.isEmpty)
        }
        lock.withLock { stop = true }
    }

    @Test func releasingAfterAForkWaitsForNoThread() throws {
        // After a fork, the child's copy of the lock may be held by a thread that does not exist there.
        var store: Store? = try memoryStore()
        let lock = try #require(store).lock
        let gone = store
        store = nil
        let held = Lock()
        nonisolated(unsafe) var state = 0
        expectEnd {
            _ = Parallel.run(threads: 2, times: 1) { thread, _ in
                if thread == 0 {
                    lock.withWrite {
                        held.withLock { state = 1 }
                        // If the other thread waited for this lock, neither would end.
                        while held.withLock({ state }) == 1 { usleep(1_000) }
                    }
                } else {
                    while held.withLock({ state }) == 0 { usleep(100) }
                    gone?.discard()
                    try gone?.close()
                    #expect(
                        held.withLock {
                            let wasHeld = state == 1; state = 2; return wasHeld
                        })
                }
            }
            #expect(held.withLock { state } == 2)
        }
    }

    @Test func observersMayCallBack() throws {
        let store = try memoryStore()
        let coordinator = try StoreCoordinator(store: store)
        nonisolated(unsafe) var depth = 0
        let first = coordinator.observe { _ in
            depth += 1
            if depth == 1 { _ = try? coordinator.save([.insert(ValueID(unchecked: [0x62]), data: [2])]) }
        }
        let second = store.observeVersions { _ in _ = try? coordinator.merge() }
        defer { first.cancel(); second.cancel() }
        expectEnd { try coordinator.save([.insert(id("a"), data: [1])]) }
        #expect(try store.headIDs() == [coordinator.currentVersion])
        #expect(try coordinator.value(id("a"))?.data == [1] && coordinator.value(id("b"))?.data == [2])
    }

    @Test func anArbiterThatSavesGetsAnError() throws {
        let store = try memoryStore()
        let coordinator = try StoreCoordinator(store: store)
        let base = try #require(try coordinator.save([.insert(id("k"), data: [0])]))
        try coordinator.save([.insert(id("k"), data: [1])])
        _ = try store.makeVersion(basedOn: base.id, changes: [.insert(id("k"), data: [2])])
        expectEnd {
            #expect(
                code {
                    _ = try coordinator.merge(arbiter: Calling { _, _ in try coordinator.save([.insert(id("x"), data: [])]) })
                } == .busy)
            let merged = try coordinator.merge()
            #expect(merged)
        }
    }

    @Test func progressOfVerifyMayCallBack() throws {
        let store = try memoryStore()
        let base = try store.set(["k": "0"], nil)
        expectEnd {
            _ = try store.verify(
                control: OperationControl(progress: { _ in
                    _ = try store.set(["k": "1"], base)
                    return try store.reloadHistory() >= 0
                }))
            #expect(try store.allVersionIDs().count > 1)
        }
    }

    @Test func closingWhileOthersWork() throws {
        for _ in 0..<10 {
            let directory = TemporaryDirectory()
            let store = try Store(path: directory.path + "/s")
            let base = try store.set(["k": "0"], nil), lock = Lock()
            nonisolated(unsafe) var isClosed = false
            let errors = Parallel.run(threads: 6, times: 1) { thread, _ in
                if thread == 0 {
                    // The others continue until the store is closed, however long that takes.
                    defer { lock.withLock { isClosed = true } }
                    usleep(5_000)
                    try store.close()
                    return
                }
                for i in 0... {
                    // If the store was closed but a thread got no error, the thread ends here, and its error is missing below.
                    let isLast = lock.withLock { isClosed }
                    switch thread {
                    case 1: _ = try store.reloadHistory()
                    case 2: _ = try store.verify()
                    case 3: _ = try store.values(at: base.id, limit: 10)
                    default: _ = try store.set(["k\(thread)": "\(i)"], base)
                    }
                    if isLast { return }
                }
            }
            #expect(errors.count == 5)
            for error in errors { #expect([.closed, .unknownOutcome].contains((error as? StoreError)?.code), "\(error)") }
            let again = try Store(path: directory.path + "/s")
            #expect(try again.verify().isWhole)
            try again.close()
            withExtendedLifetime(directory) {}
        }
    }
}
