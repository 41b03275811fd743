import LLVS
import LLVSAsync
import LLVSTestSupport
import Testing

/// The async forms of calls do what the others do, each on a thread of its own, and end when their task is cancelled.
@Suite struct AsyncCallTests {
    private struct Refusal: Error, Equatable {}
    private struct Refusing: MergeArbiter {
        func resolve(_ merge: Merge, in store: Store) throws -> [Value.Change] { throw Refusal() }
    }

    /// Two conflicting heads on one root.
    private static func fork(_ store: Store) throws -> (VersionID, VersionID) {
        let root = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("x"), data: [0])])
        let a = try store.makeVersion(basedOn: root.id, changes: [.update(ValueID("x"), data: [1])])
        let b = try store.makeVersion(basedOn: root.id, changes: [.update(ValueID("x"), data: [2])])
        return (a.id, b.id)
    }
    private static func code(_ body: () async throws -> Void) async -> StoreError.Code? {
        do { try await body(); return nil } catch { return (error as? StoreError)?.code }
    }
    /// The error code of a call in a task that is already cancelled; a `CancellationError` is `.cancelled`.
    private static func codeWhenCancelled(_ body: @escaping @Sendable () async throws -> Void) async -> StoreError.Code? {
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            do { try await body(); return nil } catch is CancellationError { return .cancelled } catch {
                return error is StoreError ? .internal : nil
            }
        }.value
    }

    @Test func callsDoWhatTheOthersDo() async throws {
        let directory = TemporaryDirectory(), seen = Counter()
        let store = try await Store.open(path: directory.path + "/store")
        let root = try await store.makeVersion(basedOn: nil, changes: [.insert(ValueID("x"), data: [0])])
        let a = try await store.makeVersion(basedOn: root.id, changes: [.update(ValueID("x"), data: [1])], timestamp: root.timestamp + 1)
        let b = try await store.makeVersion(basedOn: root.id, changes: [.update(ValueID("x"), data: [2])], timestamp: root.timestamp + 2)
        let merged = try await store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.mostRecentChange) { _ in seen.add() }
        #expect(try await store.value(ValueID("x"), at: merged.id)?.data == [2] && seen.count > 0)
        let side = try await store.makeVersion(basedOn: root.id, changes: [.insert(ValueID("y"), data: [3])])
        let folded = try await store.mergeHeads(into: merged.id, arbiter: BuiltInArbiter.mostRecentChange)
        #expect(try folded.map { try store.isAncestor(side.id, of: $0.id) && store.isAncestor(merged.id, of: $0.id) } == true)
        let report = try await store.verify()
        #expect(try report.isWhole && report.versions == 6 && store.verify(control: OperationControl()).versions == 6)
        #expect(try await store.compact() == store.compact(control: OperationControl()))
        let query = SizeQuery(depth: SizeQuery.eachID)
        let size = try await store.size(query), same = try store.size(query, control: OperationControl())
        #expect(size.versions == 6 && size.total == same.total && size.rows == same.rows)

        let manifest = try await Snapshots.write(store, to: directory.path + "/snapshot")
        let other = try await Store.open(path: directory.path + "/other")
        let restored = try await Snapshots.restore(other, from: directory.path + "/snapshot")
        #expect(try restored.manifest == manifest && other.allVersionIDs() == store.allVersionIDs())

        let folder = directory.path + "/shared"
        let sending = try await Exchange(store: store, transport: FolderTransport.open(path: folder))
        #expect(try await sending.send().versions.count == 6)
        let third = try await StoreCoordinator.open(path: directory.path + "/third")
        try await third.attach(Exchange(store: third.store, transport: FolderTransport.open(path: folder)), name: "shared")
        let outcome = try await third.sync { _ in seen.add() }
        #expect(try outcome.move.to == third.currentVersion && third.store.heads().map(\.id) == store.heads().map(\.id))
        try await third.save([.insert(ValueID("z"), data: [4])])
        try await third.exchange()
        #expect(try await sending.retrieve().versions == [third.currentVersion])
        #expect(try await third.merge() == false)
        for store in [store, other] { try await store.close() }
        try await third.close()
    }

    @Test func errorsComeOutUnchanged() async throws {
        let store = try await Store.open(path: "", options: memory)
        let (a, b) = try Self.fork(store)
        await #expect(throws: Refusal()) { try await store.merge(a, with: b, arbiter: Refusing()) }
        let unknown = VersionID.random()
        await #expect(Self.code { try await store.merge(a, with: unknown, arbiter: BuiltInArbiter.ours) } == .unknownVersion)
        let directory = TemporaryDirectory()
        var existing = Store.Options()
        existing.create = false
        let options = existing
        await #expect(Self.code { _ = try await Store.open(path: directory.path + "/nowhere", options: options) } == .notFound)
        await #expect(throws: Refusal()) { try await onOwnThread { _ in throw Refusal() } }
        let exchange = Exchange(store: store, transport: MemoryTransport(name: "errorsComeOutUnchanged"))
        await exchange.close()
        await #expect(Self.code { try await exchange.retrieve() } == .closed)
        await #expect(Self.code { try await exchange.send() } == .closed)
    }

    @Test func aCancelledTaskCancelsItsCall() async throws {
        let directory = TemporaryDirectory(), path = directory.path + "/store"
        let made = try await Store.open(path: path, options: Store.Options())
        let (a, b) = try Self.fork(made)
        try await made.close()
        let count = 3
        #expect(await Self.codeWhenCancelled { _ = try await Store.open(path: path) } == .cancelled)
        #expect(await Self.codeWhenCancelled { _ = try await StoreCoordinator.open(path: path) } == .cancelled)

        let coordinator = try await StoreCoordinator.open(path: path), store = coordinator.store
        let exchange = try await Exchange(store: store, transport: FolderTransport.open(path: directory.path + "/shared"))
        try await coordinator.attach(exchange, name: "shared")
        let snapshots = Snapshots(store: store, transport: exchange.transport)
        let calls: [(String, @Sendable () async throws -> Void)] = [
            ("verify", { _ = try await store.verify() }), ("size", { _ = try await store.size() }),
            ("merge", { try await store.merge(a, with: b, arbiter: BuiltInArbiter.ours) }),
            ("mergeHeads", { try await store.mergeHeads(into: a, arbiter: BuiltInArbiter.ours) }),
            ("retrieve", { try await exchange.retrieve() }), ("send", { try await exchange.send() }),
            ("put", { try await snapshots.put() }), ("write", { try await Snapshots.write(store, to: directory.path + "/snapshot") }),
            ("exchange", { try await coordinator.exchange() }), ("sync", { try await coordinator.sync() }),
            ("coordinator's merge", { try await coordinator.merge() }),
            ("any", { try await onOwnThread { try $0.check(.reading, 0, of: 0, doing: "Waiting") } }),
        ]
        for (name, call) in calls { #expect(await Self.codeWhenCancelled(call) == .cancelled, "\(name)") }
        // These calls report the cancellation together with a partial result.
        let outcome = Box<StoreCoordinator.SyncResult>()
        #expect(await Self.codeWhenCancelled { outcome.value = try await coordinator.syncReportingFailures() } == nil)
        #expect((outcome.value?.failure as? StoreError)?.code == .cancelled)
        #expect(try store.allVersionIDs().count == count && store.heads().count == 2)
        // The cancellations had no effect on later calls.
        try await coordinator.sync()
        #expect(try store.heads().count == 1)
        try await coordinator.close()
    }

    @Test func aCallIsCancelledInTheMiddle() async throws {
        let store = try await Store.open(path: "", options: memory), steps = Counter(), box = Box<Task<VerifyReport, any Error>>()
        var last: Version?
        for i in 0..<200 { last = try store.set(["x": "\(i)"], last) }
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let task = Task {
            for await _ in begun { break }
            return try await store.verify { _ in
                steps.add()
                if steps.count == 10 { box.value?.cancel() }
            }
        }
        box.value = task
        begin.yield()
        let result = await task.result
        #expect(throws: CancellationError.self) { try result.get() }
        #expect(steps.count >= 10 && steps.count < 100, "\(steps.count)")
    }

    /// More calls than Swift has threads wait for each other. In Swift's pool they would do so for ever.
    @Test func noCallHoldsUpThePool() async throws {
        let count = 100, arrived = Counter()
        let lock = Lock(), changed = Condition()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<count {
                group.addTask {
                    try await onOwnThread { _ in
                        arrived.add()
                        lock.withLock {
                            changed.broadcast()
                            while arrived.count < count { changed.wait(lock) }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(arrived.count == count)
    }
}
