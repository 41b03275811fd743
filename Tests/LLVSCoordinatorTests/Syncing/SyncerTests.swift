import LLVSExchangeTestHelpers
import LLVSMerge
import LLVSTestHelpers
import Testing

@testable import LLVSCoordinator
@testable import LLVSCore
@testable import LLVSExchange

/// The thread of a syncer, and the calls that wait for it.
@Suite struct SyncerTests {
    /// An empty place, or one whose `list` throws.
    static func place(_ list: @escaping @Sendable () throws -> Void = {}) -> CallbackTransport.Callbacks {
        CallbackTransport.Callbacks(
            description: "the test's place",
            list: { _ in
                try list(); return ExchangeListing(versions: [String]())
            },
            fetchVersions: { names, _ in names.map { _ in .missing } }, fetchChanges: { names, _ in names.map { _ in .missing } },
            send: { _, _ in })
    }

    /// Requests wait here until the door is opened.
    private final class Door: @unchecked Sendable {
        // Sendable: `lock` guards the variables.
        private let lock = Lock(.leaf), changed = Condition()
        private var isOpen = false, waiting = 0
        var isAwaited: Bool { lock.withLock { waiting > 0 } }
        func pass() {
            lock.withLock {
                waiting += 1
                while !isOpen { changed.wait(lock) }
                waiting -= 1
            }
        }
        func open() {
            lock.withLock {
                isOpen = true
                changed.broadcast()
            }
        }
    }
    private static func options(turn: Double) -> Syncer.Options {
        var options = Syncer.Options()
        (options.turn, options.afterSave, options.afterSaves) = (turn, 0.01, 0.1)
        return options
    }

    /// A place that does not answer delays neither another place nor the merge. Its versions are received when it answers.
    @Test(.timeLimit(.minutes(15)), arguments: [true, false]) func aSlowPlaceHoldsUpNoOther(isFirst: Bool) throws {
        let places = (slow: MemoryPlace(), good: MemoryPlace()), door = Door()
        let others = (slow: try PackedDevice(places.slow), good: try PackedDevice(places.good))
        try others.good.save("good")
        try others.good.exchangeOnce()
        let store = try memoryStore(), coordinator = try StoreCoordinator(store: store), id = try ValueID("mine")
        try coordinator.save([.insert(id, data: [1])])
        let slow = MemoryFiles(places.slow, named: "the slow place")
        slow.before = { door.pass() }
        let attach = { (files: MemoryFiles, name: String) in
            try coordinator.attach(Exchange(store: store, transport: PackedTransport(files)), name: name)
        }
        if isFirst { try attach(slow, "slow") }
        try attach(MemoryFiles(places.good), "good")
        if !isFirst { try attach(slow, "slow") }
        let syncer = try Syncer(coordinator, options: SyncerTests.options(turn: 0.05))
        defer { syncer.stop() }
        defer { door.open() }
        func place(_ name: String) -> Syncer.Place? {
            let names = coordinator.exchanges.map(\.name), places = syncer.status.places
            return names.firstIndex(of: name).flatMap { places.count == names.count ? places[$0] : nil }
        }
        // The other place is exchanged with, merged and sent to while this one still does not answer.
        let goodValue = try ValueID("good")
        #expect(try Parallel.becomes { try coordinator.value(goodValue) != nil })
        #expect(door.isAwaited && place("slow")?.lastRetrieve == nil && syncer.status.state == .running)
        try coordinator.save([.update(id, data: [2])])
        #expect(
            try Parallel.becomes {
                try others.good.exchangeOnce()
                return (try? others.good.store.value(id, at: coordinator.currentVersion))?.data == [2]
            })
        #expect(door.isAwaited && place("slow")?.lastRetrieve == nil)
        door.open()
        #expect(Parallel.becomes { place("slow")?.lastSend != nil && syncer.status.state == .idle })
        #expect(
            try Parallel.becomes {
                try others.slow.exchangeOnce()
                return (try? others.slow.store.value(id, at: coordinator.currentVersion))?.data == [2]
            })
    }

    /// A caller of `run` also waits for a place without which the round continued: its versions are merged, and sent to the other places.
    @Test(.timeLimit(.minutes(15))) func aCallWaitsForPlacesThatTheRoundWentOnWithout() throws {
        let places = (slow: MemoryPlace(), good: MemoryPlace()), door = Door()
        let others = (slow: try PackedDevice(places.slow), good: try PackedDevice(places.good))
        try others.slow.save("late")
        try others.slow.exchangeOnce()
        let store = try memoryStore(), coordinator = try StoreCoordinator(store: store)
        let files = (slow: MemoryFiles(places.slow, named: "the slow place"), good: MemoryFiles(places.good))
        files.slow.before = { door.pass() }
        // By then the round has continued with the other place.
        files.good.before = { door.open() }
        try coordinator.attach(Exchange(store: store, transport: PackedTransport(files.slow)), name: "slow")
        try coordinator.attach(Exchange(store: store, transport: PackedTransport(files.good)), name: "good")
        let syncer = try Syncer(coordinator, options: SyncerTests.options(turn: 0.01), conditions: .paused)
        defer { syncer.stop() }
        #expect(try syncer.run())
        #expect(try coordinator.value(try ValueID("late")) != nil)
        try others.good.exchangeOnce()
        #expect(try others.good.store.value(try ValueID("late"), at: coordinator.currentVersion) != nil)
        #expect(syncer.status.places.allSatisfy { $0.lastSend != nil && $0.reason == .none })
    }

    /// A new exchange has the name of an exchange that still runs. It waits for that exchange, without repeated rounds, and is visited
    /// afterwards.
    @Test(.timeLimit(.minutes(15))) func anotherExchangeTakesTheName() throws {
        let store = try memoryStore(), coordinator = try StoreCoordinator(store: store), door = Door(), visits = Guarded(0)
        let former = SyncerTests.place { door.pass() }, next = SyncerTests.place { visits.withLock { $0 += 1 } }
        try coordinator.attach(Exchange(store: store, transport: CallbackTransport(former)), name: "one")
        let syncer = try Syncer(coordinator, options: SyncerTests.options(turn: 0.01))
        defer { syncer.stop() }
        defer { door.open() }
        #expect(Parallel.becomes { door.isAwaited && syncer.status.rounds == 1 })
        let old = coordinator.detach("one")
        try coordinator.attach(Exchange(store: store, transport: CallbackTransport(next)), name: "one")
        // A place that answers shows that rounds take place meanwhile.
        let others = Guarded(0)
        try coordinator.attach(
            Exchange(store: store, transport: CallbackTransport(SyncerTests.place { others.withLock { $0 += 1 } })), name: "two")
        try coordinator.save([.insert(try ValueID("x"), data: [1])])
        try syncer.trigger(.user)
        #expect(Parallel.becomes { others.withLock { $0 } > 0 && syncer.status.rounds > 1 })
        let rounds = syncer.status.rounds
        #expect(visits.withLock { $0 } == 0 && rounds < 20, "\(rounds) rounds")
        door.open()
        #expect(
            Parallel.becomes {
                try? syncer.trigger(.user)
                return visits.withLock { $0 } > 0
            })
        old?.close()
    }

    /// Stopping the syncer ends an exchange without which a round continued, and so does the deadline of a call.
    @Test(.timeLimit(.minutes(15)), arguments: [true, false]) func whatARoundWentOnWithoutIsCancelled(isStopped: Bool) throws {
        let store = try memoryStore(), coordinator = try StoreCoordinator(store: store), hasBegun = Guarded(false)
        var callbacks = SyncerTests.place()
        callbacks.list = { control in
            hasBegun.withLock { $0 = true }
            while true {
                try control.check(.listing, 0, of: 0, doing: "The test")
                usleep(1_000)
            }
        }
        try coordinator.attach(Exchange(store: store, transport: CallbackTransport(callbacks)), name: "one")
        let syncer = try Syncer(coordinator, options: SyncerTests.options(turn: 0.01))
        #expect(Parallel.becomes { hasBegun.withLock { $0 } && syncer.status.rounds > 0 })
        #expect(syncer.status.state == .running)
        if isStopped { syncer.stop() } else { #expect(try !syncer.run(within: 0.01)) }
        syncer.stop()
        #expect(syncer.status.state == .off)
    }

    /// Another exchange of the store with the place is reported as such, and is no failure.
    @Test(.timeLimit(.minutes(15))) func anotherSyncerOfTheStoreIsReported() throws {
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

    /// If the device's own store is deleted, the error says so, and the place does not count as unreachable.
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

    /// The status reports the bytes of a transfer while it runs, and none afterwards.
    @Test(.timeLimit(.minutes(15))) func bytesAreReportedWhileARoundRuns() throws {
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

    /// A caller waits for a round that never begins: the server asks for an hour's pause, and is then detached. The call reports an error.
    @Test(.timeLimit(.minutes(15))) func aCallerThatWaitsForARoundLearnsThatTheLastPlaceIsGone() throws {
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
        // The request was withdrawn.
        try coordinator.attach(Exchange(store: store, transport: CallbackTransport(SyncerTests.place())), name: "two")
        #expect(try syncer.run())
    }

    /// A save of another handle during the second exchange of a round is sent soon, like any save.
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
