import LLVSTestSupport
import Testing
@testable import LLVS

/// What callbacks of a coordinator may do, and what its snapshot policy does when things are not as they should be.
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

    /// News of several exchanges are told one at a time, and no lock is held meanwhile: what comes from within is told afterwards.
    @Test(.timeLimit(.minutes(2))) func newsAreToldOneAtATimeWithNoLockHeld() throws {
        final class Observed: ExchangeObservation { func cancel() {} }
        let store = try memoryStore(), coordinator = try StoreCoordinator(store: store)
        nonisolated(unsafe) var tell: [@Sendable () -> Void] = []
        for name in ["one", "two"] {
            var place = SyncerTests.place()
            place.observe = { tell.append($0); return Observed() }
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
        #expect(calls == 2, "two at once are told as one")
        tell[1]()
        #expect(calls == 3)
        withExtendedLifetime(observation) {}
    }

    /// What would wait for itself is told so instead.
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
        try coordinator.exchange(OperationControl(progress: { _ in
            codes.insert(code { try coordinator.exchange() })
            return true
        }))
        #expect(codes == [.busy])
        try coordinator.save(CoordinatorTests.change("k", "4"))
    }

    @Test func mergeTellsThatItTookUpTheFirstContent() throws {
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
        let coordinator = try Self.automatic(CallbackTransport(.init(
            description: "the host", list: area.list, fetchVersions: area.fetchVersions, fetchChanges: area.fetchChanges, send: area.send)))
        #expect(try coordinator.exchange().exchanges.first?.sent.versions.count == 1)
    }

    /// What a transport remembers is handed to it with no lock held: it may ask the coordinator meanwhile.
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
        #expect(asked.withLock { $0 } == [0], "a name that is taken is told before")
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

    /// What a manifest claims is somebody else's word.
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
