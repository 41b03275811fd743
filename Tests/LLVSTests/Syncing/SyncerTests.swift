import LLVSTestSupport
import Testing

@testable import LLVS

/// The thread of a syncer, and who waits for it.
@Suite struct SyncerTests {
    /// A place that has nothing, or whose `list` throws.
    static func place(_ list: @escaping @Sendable () throws -> Void = {}) -> CallbackTransport.Callbacks {
        CallbackTransport.Callbacks(
            description: "the test's place",
            list: { _ in
                try list(); return ExchangeListing(versions: [String]())
            },
            fetchVersions: { names, _ in names.map { _ in .missing } }, fetchChanges: { names, _ in names.map { _ in .missing } },
            send: { _, _ in })
    }

    /// Another exchange of the store with the place is told as that, and is no failure.
    @Test(.timeLimit(.minutes(15))) func anotherThatExchangesIsTold() throws {
        let store = try memoryStore(), coordinator = try StoreCoordinator(store: store), files = MemoryFiles(MemoryPlace())
        var held: PackedNotes? = try PackedNotes(store, remote: files.description)
        // A refused attempt does not release the lock of the first one.
        #expect(throws: StoreError.self) { try PackedNotes(store, remote: files.description) }
        try coordinator.attach(Exchange(store: store, transport: PackedTransport(files)), name: "one")
        let syncer = try Syncer(coordinator)
        defer { syncer.stop() }
        #expect(try !syncer.run())
        let place = try #require(syncer.status.places.first)
        #expect(place.reason == .alreadyRunning && place.failures == 0 && place.retryAt == nil && !place.needsSomebody)
        #expect(place.error?.code == .busy && files.asked.isEmpty)
        #expect(held != nil)
        held = nil
        #expect(try syncer.run())
        #expect(syncer.status.places.first?.reason == Syncer.Reason.none)
    }

    /// If the store of this device is deleted, the error says so, and the place is not taken for one that cannot be reached.
    @Test(.timeLimit(.minutes(15))) func aStoreThatIsGoneIsNoFaultOfThePlace() throws {
        let directory = TemporaryDirectory(), path = directory.path + "/store"
        let store = try Store(path: path), coordinator = try StoreCoordinator(store: store)
        try coordinator.save([.insert(try ValueID("k"), data: [1])])
        try coordinator.attach(Exchange(store: store, transport: CallbackTransport(SyncerTests.place())), name: "one")
        let syncer = try Syncer(coordinator)
        defer { syncer.stop() }
        #expect(try syncer.run())
        try System.rename(path, directory.path + "/elsewhere")
        #expect(try !syncer.run())
        let place = try #require(syncer.status.places.first)
        #expect(place.reason == .failed && place.error?.code == .notFound && syncer.status.reason == .failed)
        #expect(place.error?.message.contains("the store at \(path) failed: \(path) was deleted, moved or replaced") ?? false)
        try System.rename(directory.path + "/elsewhere", path)
        #expect(try syncer.run())
        #expect(syncer.status.reason == .none && syncer.status.places.first?.error == nil)
    }

    /// The status tells how many bytes go while they do, and nothing of that afterwards.
    @Test(.timeLimit(.minutes(15))) func bytesAreToldWhileARoundRuns() throws {
        let store = try memoryStore(), coordinator = try StoreCoordinator(store: store), files = MemoryFiles(MemoryPlace())
        try coordinator.save([.insert(try ValueID("k"), data: [UInt8](repeating: 1, count: 1_000))])
        try coordinator.attach(Exchange(store: store, transport: PackedTransport(files)), name: "one")
        let syncer = try Syncer(coordinator, conditions: .offline)
        defer { syncer.stop() }
        nonisolated(unsafe) var told: Syncer.Status?
        files.before = { if files.asked.last?.hasPrefix("publish pack1/log") ?? false { told = syncer.status } }
        #expect(try syncer.run())
        let during = try #require(told), after = syncer.status
        #expect(during.state == .running && during.bytesDone == 0 && during.bytesTotal == 1_000 && during.progress?.stage == .sending)
        #expect(after.bytesDone == 0 && after.bytesTotal == 0 && after.progress == nil)
    }

    /// Whoever waits for a round that none can begin is told so: the server wants to be left alone for an hour, and is detached meanwhile.
    @Test(.timeLimit(.minutes(15))) func whoWaitsForARoundIsToldThatTheLastPlaceWentAway() throws {
        let store = try memoryStore(), coordinator = try StoreCoordinator(store: store)
        let place = SyncerTests.place {
            var error = StoreError(.busy, "Not now.")
            error.retryAfter = 3_600
            throw error
        }
        try coordinator.attach(Exchange(store: store, transport: CallbackTransport(place)), name: "one")
        let syncer = try Syncer(coordinator)
        defer { syncer.stop() }
        #expect(Parallel.becomes { syncer.status.places.first?.retryAt != nil })
        try OwnThread.start("The test") {
            _ = Parallel.becomes { syncer.isAwaited }
            _ = coordinator.detach("one")
        }
        let error = #expect(throws: StoreError.self) { try syncer.run() }
        #expect(error?.code == .invalidArgument)
        // What was asked for is asked for no more.
        try coordinator.attach(Exchange(store: store, transport: CallbackTransport(SyncerTests.place())), name: "two")
        #expect(try syncer.run())
    }

    /// What another handle saves while the second exchange of a round is under way goes out soon, as any save does.
    @Test(.timeLimit(.minutes(15))) func aSaveInTheSecondExchangeOfARoundGoesOut() throws {
        let place = MemoryPlace(), other = try PackedDevice(place), store = try memoryStore(), files = MemoryFiles(place)
        let coordinator = try StoreCoordinator(store: store)
        try other.save("base")
        try other.exchangeOnce()
        try coordinator.attach(Exchange(store: store, transport: PackedTransport(files)), name: "one")
        try coordinator.sync()
        try coordinator.save([.insert(try ValueID("mine"), data: [1])])
        try other.save("other")
        try other.exchangeOnce()
        nonisolated(unsafe) var packs = 0, late: VersionID?
        files.published = { name in
            guard name.hasPrefix("pack1/log/") else { return }
            packs += 1
            guard packs == 2, let head = try? store.heads().last?.id, let id = try? ValueID("late") else { return }
            late = try? store.makeVersion(basedOn: head, changes: [.insert(id, data: [2])]).id
        }
        var options = Syncer.Options()
        options.afterSave = 0.1
        options.afterSaves = 0.2
        let syncer = try Syncer(coordinator, options: options, conditions: .background)
        defer { syncer.stop() }
        #expect(try syncer.run())
        let saved = try #require(late)
        _ = Parallel.becomes { packs >= 3 }
        #expect(packs == 3 && place.versions().contains(saved))
        syncer.stop()
        #expect(packs == 3, "and that is all")
    }
}
