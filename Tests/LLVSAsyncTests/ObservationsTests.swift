import LLVS
import LLVSAsync
import LLVSTestSupport
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Observations arrive as sequences, from any thread, handle or process, and the sequences end when they should.
@Suite struct ObservationsTests {
    private static func open(_ path: String) throws -> Store {
        var options = Store.Options()
        options.durability = .normal
        return try Store(path: path, options: options)
    }
    /// Takes elements until all of the wanted versions have arrived.
    private static func take(_ wanted: [VersionID], _ versions: EventSequence<[VersionID]>) async -> [VersionID] {
        var taken: [VersionID] = []
        for await added in versions {
            taken += added
            if Set(wanted).isSubset(of: taken) { break }
        }
        return taken
    }

    @Test func versionsOfOtherThreadsAndHandlesCome() async throws {
        let directory = TemporaryDirectory(), path = directory.path + "/store"
        let store = try Self.open(path), other = try Self.open(path)
        let versions = try store.newVersions()
        let made = Box<[VersionID]>()
        // While no task waits, all news become one element, and none is missed.
        let root = try store.set(["x": "0"], nil)
        try OwnThread.start("A thread of the test") {
            var last = root, ids = [root.id]
            for i in 1...50 {
                guard let next = try? (i % 2 == 0 ? store : other).set(["x": "\(i)"], last) else { break }
                last = next
                ids.append(last.id)
            }
            made.value = ids
        }
        try await become("the versions") { made.value != nil }
        let ids = try #require(made.value)
        #expect(ids.count == 51)
        let taken = await Self.take(ids, versions)
        #expect(taken.count == 51 && Set(taken) == Set(ids), "each version is reported once")
        for store in [store, other] { try await store.close() }
    }

    @Test func versionsOfOtherProcessesCome() async throws {
        let directory = TemporaryDirectory(), store = try Self.open(directory.path + "/notes.llvs")
        let versions = try store.newVersions()
        let listening = Task {
            var count = 0
            for await added in versions {
                count += added.count
                if count >= 5 { break }
            }
            return count
        }
        #expect(try await Self.run("Notes", directory.path) == 0)
        #expect(await listening.value == 5)
        try await store.close()
    }
    /// Runs a program that lies beside the program of the tests, with one argument. Returns its exit status.
    private static func run(_ name: String, _ argument: String) async throws -> Int32 {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        #if canImport(Darwin)
        let program = CommandLine.arguments[0]
        #else
        let length = buffer.withUnsafeMutableBytes { room in room.baseAddress.map { readlink("/proc/self/exe", $0, room.count) } ?? 0 }
        let program = String(decoding: buffer.prefix(max(0, length)), as: UTF8.self)
        #endif
        let path = program.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/" + name
        return try await onOwnThread { _ in
            var arguments = [strdup(path), strdup(argument), nil]
            defer { arguments.forEach { free($0) } }
            var actions = posix_spawn_file_actions_t(), process = pid_t(), status: Int32 = 0
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
            let error = posix_spawn(&process, path, &actions, nil, &arguments, nil)
            guard error == 0 else { throw StoreError(.io, "\(path) cannot be run.", systemCode: error) }
            while waitpid(process, &status, 0) < 0 && errno == EINTR {}
            return status
        }
    }

    @Test func sequencesEndWithWhatTheyObserve() async throws {
        func none<Element>(_ sequence: EventSequence<Element>) async -> Bool { for await _ in sequence { return false }; return true }
        let store = try await Store.open(path: "", options: memory)
        let versions = try store.newVersions()
        try await store.close()
        #expect(await none(versions))
        #expect(throws: StoreError.self) { try store.newVersions() }

        var left: Store? = try await Store.open(path: "", options: memory)
        let lost = try #require(try left?.newVersions())
        left = nil
        #expect(await none(lost), "a store that was released")

        let shared = try await Store.open(path: "", options: memory)
        let coordinator = try await StoreCoordinator.open(store: shared)
        let moves = coordinator.moves()
        var exchange: Exchange? = Exchange(store: shared, transport: MemoryTransport(name: "sequencesEnd"))
        let news = try #require(try exchange?.news())
        try await coordinator.close()
        #expect(await none(moves))
        await exchange?.close()
        #expect(await none(news))
        exchange = Exchange(store: shared, transport: MemoryTransport(name: "sequencesEnd"))
        let other = try #require(try exchange?.news())
        exchange = nil
        #expect(await none(other), "an exchange that was released")
        try await shared.close()
    }

    @Test func aCancelledTaskWaitsForNothing() async throws {
        let store = try await Store.open(path: "", options: memory), versions = try store.newVersions()
        let waiting = Task {
            for await _ in versions { return false }; return true
        }
        waiting.cancel()
        #expect(await waiting.value)
        try await store.close()
    }

    /// The observation of a transport, which reports that it was cancelled.
    private final class Watched: ExchangeObservation, @unchecked Sendable {
        let changed: @Sendable () -> Void, cancelled: Counter
        init(_ changed: @escaping @Sendable () -> Void, _ cancelled: Counter) { self.changed = changed; self.cancelled = cancelled }
        func cancel() { cancelled.add() }
    }
    private typealias Observe = @Sendable (@escaping @Sendable () -> Void) -> (any ExchangeObservation)?
    private static func transport(_ observe: Observe?) -> CallbackTransport {
        var callbacks = CallbackTransport.Callbacks(
            description: "the test", list: { _ in ExchangeListing(versions: []) }, fetchVersions: { _, _ in [] },
            fetchChanges: { _, _ in [] }, send: { _, _ in })
        callbacks.observe = observe
        return CallbackTransport(callbacks)
    }

    @Test func observingEndsWithTheLoop() async throws {
        let store = try await Store.open(path: "", options: memory), cancelled = Counter(), begun = Box<@Sendable () -> Void>()
        let exchange = Exchange(
            store: store,
            transport: Self.transport { changed in
                begun.value = changed
                return Watched(changed, cancelled)
            })
        for await _ in try {
            let news = try exchange.news(); begun.value?(); return news
        }() { break }
        try await become("the end of the observation") { cancelled.count == 1 }
        // A sequence that was never iterated over ends as well.
        _ = try exchange.news()
        try await become("the end of the second") { cancelled.count == 2 }
        let deaf = Exchange(store: store, transport: Self.transport(nil))
        do {
            _ = try deaf.news()
            Issue.record("a transport without notifications was observed")
        } catch let error as StoreError { #expect(error.code == .unsupported) }
        try await store.close()
    }

    @Test func whoIsSlowHearsOfTheLast() async throws {
        let store = try await Store.open(path: "", options: memory), coordinator = try await StoreCoordinator.open(store: store)
        let moves = coordinator.moves()
        for i in 0..<20 { try await coordinator.save([.update(ValueID("x"), data: [UInt8(i)])]) }
        var iterator = moves.makeAsyncIterator()
        #expect(await iterator.next() == coordinator.currentVersion)
        try await coordinator.save([.update(ValueID("x"), data: [99])])
        #expect(await iterator.next() == coordinator.currentVersion)
        try await coordinator.close()
        #expect(await iterator.next() == nil)
        try await store.close()
    }

    @Test func newsOfAFolderComes() async throws {
        let directory = TemporaryDirectory(), folder = directory.path + "/shared"
        let here = try await Store.open(path: "", options: memory), there = try await Store.open(path: "", options: memory)
        let receiving = try await Exchange(store: here, transport: FolderTransport.open(path: folder))
        let sending = try await Exchange(store: there, transport: FolderTransport.open(path: folder))
        let news = try receiving.news()
        let version = try there.set(["x": "1"], nil)
        try await sending.send()
        for await _ in news {
            try await receiving.retrieve()
            if try here.contains(version.id) { break }
        }
        #expect(try here.contains(version.id))
        for store in [here, there] { try await store.close() }
    }
}
