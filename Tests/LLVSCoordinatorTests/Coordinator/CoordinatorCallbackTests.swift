import LLVSCoordinator
import LLVSCore
import LLVSExchange
import LLVSMerge
import LLVSTestHelpers
import Testing

@testable import LLVSUpkeep

/// Tests what callbacks of a coordinator may do, and its snapshot policy in unusual states.
@Suite struct CoordinatorCallbackTests {
    @Test(.timeLimit(.minutes(15))) func observersMaySaveAndMerge() throws {
        let coordinator = try StoreCoordinator(store: memoryStore())
        nonisolated(unsafe) var heard: [VersionID] = []
        let observation = coordinator.observe { version in
            heard.append(version)
            guard heard.count == 1 else { return }
            #expect(throws: Never.self) {
                try coordinator.save(CoordinatorTests.change("k", "2"))
                try coordinator.merge()
            }
        }
        let first = try #require(try coordinator.save(CoordinatorTests.change("k", "1")))
        #expect(heard == [first.id, coordinator.currentVersion])
        #expect(try CoordinatorTests.text(coordinator, "k") == "2")
        observation.cancel()
    }

    /// The callback for news of several exchanges runs one at a time and without a lock. News that arrives during a call causes another
    /// call afterwards.
    @Test(.timeLimit(.minutes(15))) func eventsAreReportedOneAtATimeWithNoLockHeld() throws {
        final class Observed: ExchangeObservation { func cancel() {} }
        let store = try memoryStore(), coordinator = try StoreCoordinator(store: store)
        nonisolated(unsafe) var tell: [@Sendable () -> Void] = []
        for name in ["one", "two"] {
            var place = SyncerTests.place()
            place.observe = {
                tell.append($0); return Observed()
            }
            try coordinator.attach(Exchange(store: store, transport: CallbackTransport(place)), name: name)
        }
        nonisolated(unsafe) var running = 0, calls = 0
        let observation = try coordinator.observeExchanges {
            running += 1
            calls += 1
            #expect(running == 1)
            if calls == 1 { for one in tell { one() } }
            running -= 1
        }
        tell[0]()
        #expect(calls == 2, "two at once are reported as one")
        tell[1]()
        #expect(calls == 3)
        withExtendedLifetime(observation) {}
    }

    /// A call that would wait for itself gets an error instead.
    @Test(.timeLimit(.minutes(15))) func savesAndExchangesFromWithinTheirOwnCallbacksAreRefused() throws {
        let store = try memoryStore()
        let coordinator = try CoordinatorTests.coordinator(store, area: "callbacks \(VersionID.random())")
        let root = try #require(try coordinator.save(CoordinatorTests.change("k", "0")))
        _ = try store.set(["k": "1"], root)
        try coordinator.save(CoordinatorTests.change("k", "2"))
        struct Saving: MergeArbiter {
            let coordinator: StoreCoordinator
            func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] {
                #expect(code { try coordinator.save(CoordinatorTests.change("l", "3")) } == .busy)
                #expect(code { try coordinator.merge() } == .busy)
                return try BuiltInArbiter.mostRecentChange.resolve(merge, in: store)
            }
        }
        #expect(try coordinator.merge(arbiter: Saving(coordinator: coordinator)))
        nonisolated(unsafe) var codes: Set<StoreError.Code?> = []
        try coordinator.exchange(
            control: OperationControl(progress: { _ in
                codes.insert(code { try coordinator.exchange() })
                return true
            }))
        #expect(codes == [.busy])
        try coordinator.save(CoordinatorTests.change("k", "4"))
    }

    @Test func aMergeReportsThatItReceivedTheFirstContent() throws {
        let store = try memoryStore()
        let coordinator = try StoreCoordinator(store: store)
        let first = try store.set(["k": "1"], nil)
        #expect(try coordinator.merge())
        #expect(coordinator.currentVersion == first.id)
        #expect(try coordinator.merge() == false)
    }

    // MARK: Snapshots

    static func automatic(_ transport: any ExchangeTransport) throws -> StoreCoordinator {
        var options = StoreCoordinator.Options()
        options.snapshotPolicy = .auto
        let store = try memoryStore()
        let coordinator = try StoreCoordinator(store: store, options: options)
        try coordinator.attach(Exchange(store: store, transport: transport), name: "shared")
        try coordinator.save(CoordinatorTests.change("k", "1"))
        return coordinator
    }

    @Test func aTransportWithoutSnapshotsExchangesAllTheSame() throws {
        let area = MemoryTransport(name: "callbacks \(VersionID.random())")
        let coordinator = try Self.automatic(
            CallbackTransport(
                .init(
                    description: "the host", list: area.list, fetchVersions: area.fetchVersions, fetchChanges: area.fetchChanges,
                    send: area.send)))
        #expect(try coordinator.exchange().exchanges.first?.sent.versions.count == 1)
    }

    /// A transport is given its restoration state while no lock is held, so it may call the coordinator.
    @Test(.timeLimit(.minutes(15))) func aTransportMayAskTheCoordinatorWhileItIsAttached() throws {
        let area = MemoryTransport(name: "callbacks \(VersionID.random())"), store = try memoryStore()
        let coordinator = try StoreCoordinator(store: store), asked = Guarded<[Int]>([])
        func attach() throws {
            var callbacks = CallbackTransport.Callbacks(
                description: "the host", list: area.list, fetchVersions: area.fetchVersions, fetchChanges: area.fetchChanges,
                send: area.send)
            callbacks.restorationState = { [1] }
            callbacks.setRestorationState = { _ in
                let count = coordinator.exchanges.count
                asked.withLock { $0.append(count) }
            }
            try coordinator.attach(Exchange(store: store, transport: CallbackTransport(callbacks)), name: "host")
        }
        try attach()
        try coordinator.save(CoordinatorTests.change("k", "1"))
        try coordinator.exchange()
        coordinator.detach("host")?.close()
        try attach()
        #expect(asked.withLock { $0 } == [0])
        #expect(throws: StoreError.self) { try attach() }
        #expect(asked.withLock { $0 } == [0], "a name in use is refused before the call")
    }

    @Test func aSnapshotThatLacksAChunkIsReplacedAtOnce() throws {
        let area = MemoryTransport(name: "callbacks \(VersionID.random())")
        let coordinator = try Self.automatic(area)
        try coordinator.exchange()
        let put = try #require(try area.readSnapshotFile("llvs-v1/manifest.json"))
        try coordinator.exchange()
        #expect(try area.readSnapshotFile("llvs-v1/manifest.json") == put)
        try area.deleteSnapshotFile("llvs-v1/chunk-000")
        try coordinator.exchange()
        #expect(try area.readSnapshotFile("llvs-v1/manifest.json") != put && area.readSnapshotFile("llvs-v1/chunk-000") != nil)
    }

    /// A place that does not answer is tried once in a round. From the next round on it comes after the others.
    @Test func aSilentPlaceDelaysNoOther() throws {
        let asked = Guarded<[String]>([]), isSilent = Guarded(true)
        let coordinator = try StoreCoordinator(store: memoryStore()), other = try StoreCoordinator(store: memoryStore())
        let fine = MemoryTransport(name: "callbacks \(VersionID.random())")
        try other.attach(Exchange(store: other.store, transport: fine), name: "other")
        for (name, area) in [("silent", MemoryTransport(name: "callbacks \(VersionID.random())")), ("fine", fine)] {
            let callbacks = CallbackTransport.Callbacks(
                description: name,
                list: { control in
                    asked.withLock { if $0.last != name { $0.append(name) } }
                    if name == "silent", isSilent.withLock({ $0 }) { throw StoreError(.transport, "Nobody answers.") }
                    return try area.list(control)
                }, fetchVersions: area.fetchVersions, fetchChanges: area.fetchChanges, send: area.send)
            try coordinator.attach(Exchange(store: coordinator.store, transport: CallbackTransport(callbacks)), name: name)
        }
        func round() throws -> (asked: [String], outcome: StoreCoordinator.SyncResult) {
            // Both sides have new versions, so the merge is sent in a second exchange.
            try other.save(CoordinatorTests.change("a", "\(VersionID.random())"))
            try other.exchange()
            try coordinator.save(CoordinatorTests.change("b", "\(VersionID.random())"))
            asked.withLock { $0 = [] }
            let outcome = try coordinator.syncReportingFailures()
            return (asked.withLock { $0 }, outcome)
        }
        for expected in [["silent", "fine"], ["fine", "silent", "fine"]] {
            let (asked, outcome) = try round()
            #expect(asked == expected && outcome.after?.exchanges.map(\.name) == ["fine"])
            #expect(outcome.before.exchanges.map(\.name) == ["silent", "fine"] && (outcome.failure as? StoreError)?.code == .transport)
        }
        isSilent.withLock { $0 = false }
        #expect(try round().asked == ["fine", "silent", "fine"])
        #expect(try round().asked.prefix(2) == ["silent", "fine"])
    }

    /// One of two devices has a clock that is wrong by years. Its snapshot stays until there are enough new versions for another one.
    @Test func aSnapshotFromTheFutureIsNotReplacedAgainAndAgain() throws {
        let area = MemoryTransport(name: "callbacks \(VersionID.random())")
        let coordinator = try Self.automatic(area)
        try coordinator.exchange()
        var ahead = try #require(try Snapshots(store: coordinator.store, transport: area).manifest())
        ahead.createdAt += 10 * 365 * 86_400
        try area.writeSnapshotFile("llvs-v1/manifest.json", ahead.encoded())
        for i in 0..<5 {
            try coordinator.save(CoordinatorTests.change("k", "\(i)"))
            try coordinator.exchange()
        }
        #expect(try Snapshots(store: coordinator.store, transport: area).manifest() == ahead)
        for i in 5..<20 { try coordinator.save(CoordinatorTests.change("k", "\(i)")) }
        try coordinator.exchange()
        let replaced = try #require(try Snapshots(store: coordinator.store, transport: area).manifest())
        #expect(replaced.createdAt < ahead.createdAt && replaced.versionCount == ahead.versionCount + 20)
    }

    /// If there are two of our snapshots (earlier releases used another folder), the one with more versions is used, whatever their dates.
    @Test func ofTwoSnapshotsTheOneWithMoreVersionsCounts() throws {
        let area = MemoryTransport(name: "callbacks \(VersionID.random())")
        let coordinator = try Self.automatic(area), snapshots = Snapshots(store: coordinator.store, transport: area)
        try coordinator.exchange()
        var former = try #require(try snapshots.manifest())
        for i in 0..<3 { try coordinator.save(CoordinatorTests.change("k", "\(i)")) }
        let now = try snapshots.put()
        former.createdAt += 10 * 365 * 86_400
        try area.writeSnapshotFile("manifest.json", former.encoded())
        #expect(try snapshots.manifest() == now && now.versionCount == former.versionCount + 3)
        try area.deleteSnapshotFile("llvs-v1/manifest.json")
        #expect(try snapshots.manifest() == former)
    }

    /// Claims in a manifest are not trusted.
    @Test(arguments: ["18446744073709551615", "18446744073709551600", "1", "0"]) func aSnapshotOfAnyCountThatIsOldEnoughIsNoTrap(
        _ count: String
    ) throws {
        let area = MemoryTransport(name: "callbacks \(VersionID.random())")
        let coordinator = try Self.automatic(area)
        let manifest =
            "{\"snapshotId\":\"\(VersionID.random())\",\"format\":\"\(Snapshots.format)\",\"createdAt\":1,"
            + "\"latestVersionId\":\"\",\"versionCount\":\(count),\"chunkCount\":0,\"totalSize\":0,\"chunkDigests\":[]}"
        try area.writeSnapshotFile("llvs-v1/manifest.json", bytes(manifest))
        try coordinator.exchange()
        #expect(try area.readSnapshotFile("llvs-v1/manifest.json") != nil)
        for i in 0..<20 { try coordinator.save(CoordinatorTests.change("k", "\(i)")) }
        try coordinator.exchange()
        let replaced = try #require(try Snapshots(store: coordinator.store, transport: area).manifest())
        #expect(replaced.createdAt > 1)
    }
}
