import LLVSCoordinator
import LLVSCore
import LLVSDocuments
import LLVSExchange
import LLVSMerge
import LLVSTestHelpers
import Testing

@Suite struct CoordinatorTests {
    static func change(_ key: String, _ text: String) throws -> [Value.Change] { [.insert(try id(key), data: bytes(text))] }
    static func text(_ coordinator: StoreCoordinator, _ key: String, at place: StoreCoordinator.Place = .current) throws -> String? {
        try coordinator.value(id(key), at: place).map { String(decoding: $0.data, as: UTF8.self) }
    }
    static func coordinator(_ store: Store, area: String, name: String = "main") throws -> StoreCoordinator {
        var options = StoreCoordinator.Options()
        options.name = name
        let coordinator = try StoreCoordinator(store: store, options: options)
        try coordinator.attach(Exchange(store: store, transport: MemoryTransport(name: area)), name: "shared")
        return coordinator
    }

    @Test func devicesThatStartApartShareTheEmptyRoot() throws {
        let area = "coordinator \(VersionID.random())"
        let a = try Self.coordinator(memoryStore(), area: area), b = try Self.coordinator(memoryStore(), area: area)
        #expect(a.currentVersion == EmptyRoot.id)
        #expect(try Self.text(a, "k") == nil && a.store.heads().isEmpty && a.merge() == false)
        #expect(try a.save([]) == nil)
        try a.save(Self.change("a", "1"))
        try b.save(Self.change("b", "2"))
        #expect(try a.store.history().last == EmptyRoot.id)
        for _ in 0..<2 { for one in [a, b] { try one.exchange(); try one.merge() } }
        #expect(a.currentVersion == b.currentVersion)
        #expect(try Self.text(a, "b") == "2" && Self.text(b, "a") == "1")
        #expect(try a.store.mergeBases(a.store.heads()[0].id, EmptyRoot.id) == [EmptyRoot.id])
    }

    @Test func removingWhatIsNotThereIsNothingToSave() throws {
        let coordinator = try Self.coordinator(memoryStore(), area: "coordinator \(VersionID.random())")
        #expect(try coordinator.save([.remove(id("k"))]) == nil && coordinator.store.heads().isEmpty)
        let first = try #require(try coordinator.save(Self.change("k", "1")))
        #expect(try coordinator.save([.remove(id("other")), .remove(id("another"))]) == nil && coordinator.currentVersion == first.id)
        #expect(try coordinator.save([.remove(id("other"))], branch: "draft") == nil)
        // Other metadata is saved, and invalid metadata is an error.
        var metadata = Metadata()
        metadata["why"] = bytes("1")
        #expect(try coordinator.save([.remove(id("other"))], metadata: metadata) != nil)
        #expect(try coordinator.save([.remove(id("k")), .remove(id("other"))]) != nil)
        #expect(throws: StoreError.self) { try coordinator.save([.remove(id("x")), .remove(id("x"))]) }
    }

    /// Whatever the clock shows, each version is later than its predecessors.
    @Test func theFirstSaveIsNewerThanTheEmptyRoot() throws {
        let coordinator = try StoreCoordinator(store: memoryStore())
        coordinator.store.environment = Environment(clock: { -1e9 }, times: GivenTimes())
        let first = try coordinator.save(Self.change("a", "1")), second = try coordinator.save(Self.change("a", "2"))
        #expect(first?.timestamp == 1e-6 && second?.timestamp == 2e-6)
    }

    @Test func anExchangeNeverTouchesTheCurrentVersionButForTheFirstContent() throws {
        let area = "coordinator \(VersionID.random())"
        let a = try Self.coordinator(memoryStore(), area: area), b = try Self.coordinator(memoryStore(), area: area)
        let first = try #require(try a.save(Self.change("k", "1")))
        try a.exchange()
        try b.exchange()
        #expect(b.currentVersion == first.id)
        try a.save(Self.change("k", "2"))
        try a.exchange()
        try b.exchange()
        #expect(b.currentVersion == first.id)
        nonisolated(unsafe) var moves: [VersionID] = []
        let observation = b.observe { moves.append($0) }
        #expect(try b.merge())
        #expect(moves == [a.currentVersion] && b.currentVersion == a.currentVersion)
        observation.cancel()
        try b.save(Self.change("k", "3"))
        #expect(moves.count == 1)
    }

    @Test func theCurrentVersionSurvivesUnderTheCoordinatorsName() throws {
        let directory = TemporaryDirectory()
        try withExtendedLifetime(directory) {
            var options = StoreCoordinator.Options()
            let path = directory.path + "/store"
            let one = try StoreCoordinator(path: path, options: options)
            options.name = "other"
            let two = try StoreCoordinator(path: path, options: options)
            let a = try #require(try one.save(Self.change("k", "1"))), b = try #require(try two.save(Self.change("k", "2")))
            try one.close()
            try two.close()
            let again = try StoreCoordinator(path: path, options: options)
            #expect(again.currentVersion == b.id)
            try again.close()
            options.name = "main"
            let main = try StoreCoordinator(path: path, options: options)
            #expect(main.currentVersion == a.id)
            try main.close()
            // Without caches it begins at the most recent head.
            TemporaryDirectory.remove(path + "/cache")
            let fresh = try StoreCoordinator(path: path, options: options)
            #expect(fresh.currentVersion == b.id)
            try fresh.close()
        }
    }

    @Test func branchesAreSavedBesideTheCurrentVersion() throws {
        let coordinator = try StoreCoordinator(store: memoryStore())
        let main = try #require(try coordinator.save(Self.change("k", "main")))
        let draft = try #require(try coordinator.save(Self.change("k", "draft"), branch: "draft"))
        let more = try #require(try coordinator.save(Self.change("l", "draft"), branch: "draft"))
        #expect(more.predecessors == [draft.id] && draft.predecessors == [main.id])
        #expect(coordinator.currentVersion == main.id)
        #expect(try Self.text(coordinator, "k", at: .branch("draft")) == "draft" && Self.text(coordinator, "k") == "main")
        #expect(try Self.text(coordinator, "k", at: .branch("none")) == nil)
        #expect(try coordinator.merge() == false)
        #expect(try coordinator.merge(selection: .branches(["draft"])))
        #expect(try Self.text(coordinator, "l") == "draft")
    }

    @Test func savesOfManyThreadsFollowEachOther() throws {
        let coordinator = try StoreCoordinator(store: memoryStore())
        let failures = Parallel.run(threads: 8, times: 25) { thread, turn in try coordinator.save(Self.change("t\(thread)", "\(turn)")) }
        #expect(failures.isEmpty)
        #expect(try coordinator.store.heads().count == 1 && coordinator.store.statistics().versions == 201)
    }

    @Test("a coordinator saves on one of two heads that counted, and nothing is lost") func coordinatorsKeepBoth() throws {
        let rules = #"{"merge":1,"ids":{"c":"counter"}}"#
        let store = try memoryStore(), base = try store.set(["c": "0", MergeSchema.valueID: rules], nil)
        let a = try store.set(["c": "1"], base), b = try store.set(["c": "1"], base)
        let coordinator = try StoreCoordinator(store: store)
        try coordinator.setCurrentVersion(a.id)
        let saved = try #require(try coordinator.save([.update(id("q"), data: bytes("x"))]))
        #expect(saved.predecessors == [a.id])
        _ = try coordinator.merge()
        #expect(try coordinator.value(id("c")).map { $0.data } == bytes("2") && store.heads().count == 1 && b.id != a.id)
    }
}
