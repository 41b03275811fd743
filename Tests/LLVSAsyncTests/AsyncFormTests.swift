import LLVS
import LLVSAsync
import LLVSTestSupport
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// For calls whose result nothing depends on.
private func done<R>(_ result: R) -> Bool { true }

/// Every async form, called once as it is, and once in a cancelled task.
@Suite struct AsyncFormTests {
    /// A call, and whether its result is right.
    private typealias Form = (name: String, call: @Sendable () async throws -> Bool)

    private static func throwsCancellation(_ call: @escaping @Sendable () async throws -> Void) async -> Bool {
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            do { try await call(); return false } catch { return error is CancellationError }
        }.value
    }
    private static func code<R>(_ body: () throws -> R) -> StoreError.Code? {
        do { _ = try body(); return nil } catch { return (error as? StoreError)?.code }
    }
    /// Calls each form in a cancelled task, and then in one that is not.
    private static func check(_ forms: [Form], sourceLocation: SourceLocation = #_sourceLocation) async {
        for form in forms {
            #expect(await throwsCancellation { _ = try await form.call() }, "\(form.name), cancelled", sourceLocation: sourceLocation)
            do {
                let isRight = try await form.call()
                #expect(isRight, "\(form.name)", sourceLocation: sourceLocation)
            } catch { Issue.record(error, "\(form.name)", sourceLocation: sourceLocation) }
        }
    }

    @Test func ofStores() async throws {
        let directory = TemporaryDirectory(), store = try await Store.open(path: directory.path + "/store")
        let root = try store.set(["x": #"{"a":0}"#, "y": "0"], nil)
        let a = try store.set(["x": #"{"a":1}"#], root), b = try store.set(["x": #"{"a":2}"#], root)
        let merged = try await store.merge(a.id, with: b.id, arbiter: RulesArbiter()), last = try store.set(["y": "1"], merged)
        let reference = try #require(try await store.reference("y", at: last.id))
        let received = Store.ReceivedVersion(version: last, changes: try await store.changes(madeIn: last.id))
        var erasing = ErasureQuery()
        erasing.ids = ["z"]
        erasing.isDryRun = true
        let query = erasing, other = try await Store.open(path: directory.path + "/other")
        let imported =
            #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
            + "/Vectors/interchange/store"
        await Self.check([
            ("value", { try await store.value("y", at: root.id)?.text == "0" }),
            ("value of a reference", { try await store.value(reference)?.text == "1" }),
            ("values", { try await store.values(["y", "z"], at: root.id).map { $0?.text } == ["0", nil] }),
            ("a page of values", { try await store.values(at: root.id, after: "x", limit: 9).map(\.id) == ["y"] }),
            ("changes", { try await store.changes(madeIn: last.id).map(\.id) == ["y"] }),
            ("recordedChanges", { try await store.recordedChanges(madeIn: root.id, in: .prefix([120])).map(\.id) == ["x"] }),
            ("differences", { try await store.differences(from: root.id, to: last.id).map(\.id) == ["x", "y"] }),
            ("versions", { try await store.versions(of: "y").map(\.id) == [last.id, root.id] }),
            ("version", { try await store.version(a.id)?.id == a.id }),
            ("reference", { try await store.reference("z", at: root.id) == nil }),
            ("references", { try await store.references(at: root.id, limit: 9).map(\.id) == ["x", "y"] }),
            ("count", { try await store.count(at: root.id) == 2 }),
            ("schema", { try await store.schema(at: root.id).rules == nil }),
            ("openValue", { try await store.openValue("y", at: root.id)?.size == 1 }),
            ("openValue of a reference", { try await store.openValue(reference)?.storedVersion == last.id }),
            ("add", { try await store.add([received]).count == 1 }),
            ("version at a time", { try await store.version(at: last.timestamp)?.id == last.id }),
            ("statistics", { try await store.statistics().versions == 5 }),
            ("reloadHistory", { try await store.reloadHistory() == 0 }),
            ("conflicts", { try await store.conflicts(between: a.id, and: b.id).items.map(\.id) == ["x"] }),
            ("explain", { try await store.explain(merged.id).items.map(\.id) == ["x"] }),
            ("openConflicts", { try await store.openConflicts(at: last.id).isEmpty }),
            (
                "resolve",
                {
                    for one in try await store.explain(merged.id).items {
                        if try await store.resolve(one, with: .older, at: last.id).map(\.id).first != "x" { return false }
                    }
                    return true
                }
            ),
            ("size", { try await store.size().versions == 5 }), ("verify", { try await store.verify().isWhole }),
            ("compact", { done(try await store.compact()) }), ("erase", { try await store.erase(query).values == 0 }),
            (
                "forget",
                {
                    var query = ForgetQuery()
                    (query.isDryRun, query.policy) = (true, Array(#"{"keep":{"days":9}}"#.utf8))
                    return try await store.forget(query).values == 0
                }
            ),
            ("erasures", { try await store.erasures().isEmpty }),
            ("forgetting", { try await store.forgetting() == Array(#"{"erase":{"mode":"nobody"}}"#.utf8) }),
            ("mergeHeads", { try await store.mergeHeads(into: last.id, arbiter: BuiltInArbiter.ours) == nil }),
            ("revert", { try await store.revert(last.id, at: last.id).version != nil }),
            ("cherryPick", { done(try await store.cherryPick(last.id, onto: root.id)) }),
            ("import", { try await StoreImporter.importStore(at: imported, into: other).versions.count == 25 }),
            ("a salvage", { done(try await Salvage.run(directory.path + "/store", into: directory.path + "/saved")) }),
        ])
        // What cannot be cancelled is done.
        #expect(await Self.throwsCancellation { try await store.makeVersion(basedOn: nil, changes: [.insert("late", text: "1")]) } == false)
        #expect(try store.statistics(control: OperationControl()).versions == 8)
        let policy = Array(#"{"erase":{"mode":"anyone"}}"#.utf8)
        #expect(await Self.throwsCancellation { try await store.setForgetting(policy) } == false)
        #expect(try await store.forgetting() == policy)
        do {
            try await store.decideErasure("no order", to: .keep)
            Issue.record("there is no such order")
        } catch { #expect((error as? StoreError)?.code == .notFound) }
        do {
            try await store.signErasure("no order", signer: [UInt8](repeating: 1, count: 32))
            Issue.record("the policy has no stewards")
        } catch { #expect((error as? StoreError)?.code == .invalidArgument) }
        for store in [store, other] { #expect(await Self.throwsCancellation { try await store.close() } == false) }
        #expect(Self.code { try store.heads() } == .closed)
    }

    /// A value that is written and read in pieces.
    @Test func ofLargeValues() async throws {
        let directory = TemporaryDirectory(), notes = try await StoreCoordinator.open(path: directory.path + "/notes")
        let size = 3 << 20
        /// The first half of the bytes are 1, and the others 2.
        let sources: @Sendable () -> [ValueSource] = {
            var made = 0
            return [
                ValueSource(id: "large", size: size) { buffer in
                    let count = min(buffer.count, 100_000, size - made)
                    for i in 0..<count { buffer[i] = made + i < size / 2 ? 1 : 2 }
                    made += count
                    return count
                }
            ]
        }
        let saved = try #require(try await notes.save([.insert("small", text: "1")], reading: sources))
        let reader = try #require(try await notes.store.openValue("large", at: saved.id))
        var sizes: [Int] = [], found: Set<UInt8> = []
        for try await piece in reader.pieces {
            sizes.append(piece.count)
            found.formUnion(piece)
        }
        #expect(sizes == [1 << 20, 1 << 20, 1 << 20] && found == [1, 2])
        await Self.check([
            ("read", { try await reader.read(at: size / 2 - 1, count: 2) == [1, 2] }),
            ("the end", { try await reader.read(at: size - 1, count: 9) == [2] }),
            ("beyond it", { try await reader.read(at: size + 9, count: 9).isEmpty }),
        ])
        for (offset, count) in [(0, -1), (-1, 9)] {
            do {
                _ = try await reader.read(at: offset, count: count)
                Issue.record("\(count) bytes from \(offset)")
            } catch { #expect((error as? StoreError)?.code == .invalidArgument) }
        }
        let empty = try #require(try await notes.save([.insert("empty", data: [])]))
        let none = try #require(try await notes.store.openValue("empty", at: empty.id))
        for try await piece in none.pieces { Issue.record("\(piece.count) bytes of an empty value") }
        let made = try await notes.store.makeVersion(basedOn: nil, reading: sources)
        #expect(made.valueDataSize == size)
        // A save on an older version that is merged.
        let merged = try #require(try await notes.save([.update("small", text: "2")], expected: saved.id, merges: true))
        #expect(try await notes.value("small")?.text == "2" && merged.id != saved.id)
        try await notes.close()
    }

    @Test func ofCoordinators() async throws {
        let directory = TemporaryDirectory()
        var options = StoreCoordinator.Options()
        options.device = "phone"
        let notes = try await StoreCoordinator.open(path: directory.path + "/notes", options: options), store = notes.store
        let exchange = try await notes.connect(to: "file://" + directory.path + "/shared")
        try await notes.save([.insert("note/1", text: "milk")])
        let second = try #require(try await notes.save([.update("note/1", text: "bread")]))
        let snapshots = Snapshots(store: store, transport: exchange.transport)
        let empty = try await Store.open(path: directory.path + "/empty"), another = try await Store.open(path: directory.path + "/another")
        let late = try await StoreCoordinator.open(path: directory.path + "/late")
        try await late.connect(to: "file://" + directory.path + "/shared")
        await Self.check([
            ("value", { try await notes.value("note/1")?.text == "bread" }),
            ("undoable", { try await notes.undoable().undo?.versions == [second.id] }),
            ("undo", { done(try await notes.undo()) }),
            ("redo", { done(try await notes.redo()) }),
            ("revert", { done(try await notes.revert(second.id)) }),
            ("exchange", { done(try await notes.exchange()) }),
            ("merge", { try await notes.merge() == false }),
            ("sync", { done(try await notes.sync()) }),
            ("retrieve", { done(try await exchange.retrieve()) }),
            ("send", { done(try await exchange.send()) }),
            ("put", { done(try await snapshots.put()) }), ("manifest", { try await snapshots.manifest() != nil }),
            ("write", { done(try await Snapshots.write(store, to: directory.path + "/snapshot")) }),
            ("restore", { try await Snapshots.restore(empty, from: directory.path + "/snapshot").addedCount > 2 }),
            ("restore from the place", { done(try await Snapshots(store: another, transport: exchange.transport).restore()) }),
            ("bootstrapFromSnapshot", { done(try await late.bootstrapFromSnapshot()) }),
            ("remoteStatus", { done(try await exchange.remoteStatus()) }),
        ])
        // These report the cancellation with a result.
        for form: @Sendable () async throws -> (any Error)? in [
            { try await notes.exchangeReportingFailures().failure }, { try await notes.syncReportingFailures().failure },
            { try await notes.mergeReportingFailures().failure },
        ] {
            let failure = Box<any Error>()
            let isThrown = await Self.throwsCancellation { failure.value = try await form() }
            #expect(isThrown || (failure.value as? StoreError)?.code == .cancelled)
            #expect(try await form() == nil)
        }
        // These cannot be cancelled.
        for form: @Sendable () async throws -> Void in [
            { try await notes.save([.update("note/1", text: "late")]) }, { try await notes.register(#"{"merge":1}"#) },
            { try await notes.setCurrentVersion(second.id) }, { await exchange.close() }, { try await notes.close() },
        ] { #expect(await Self.throwsCancellation(form) == false) }
        #expect(Self.code { try store.heads() } == .closed)
        for store in [empty, another] { try await store.close() }
        try await late.close()
    }

    @Test func ofEncryptedPlaces() async throws {
        let directory = TemporaryDirectory(), store = try await Store.open(path: directory.path + "/store")
        _ = try store.set(["x": "1"], nil)
        var options = Exchange.URLOptions()
        options.layout = .packed
        options.keys = try RemoteIdentity().withSecret { try RemoteKeys(identities: [$0], recipients: []) }
        let exchange = try await Exchange.open(store: store, url: "file://" + directory.path + "/place", options: options)
        let guest = try RemoteIdentity().recipient
        try await exchange.send()
        await Self.check([
            ("addMember", { done(try await exchange.addMember(guest, name: "Ben")) }),
            ("members", { try await exchange.members().contains { $0.recipient == guest } }),
            ("joinKeys", { done(try await exchange.joinKeys()) }),
            ("pairing", { try await exchange.pairing().isEmpty == false }),
            ("rekey", { done(try await exchange.rekey()) }),
            ("changePassphrase", { done(try await exchange.changePassphrase(to: "six words", hasLeaked: true)) }),
            ("removeMember", { done(try await exchange.removeMember(guest)) }),
            ("enableDifferences", { done(try await exchange.enableDifferences()) }),
            ("announceMove", { done(try await exchange.announceMove(to: "file:///elsewhere")) }),
            ("retire", { done(try await exchange.retire()) }),
        ])
        await exchange.close()
        try await store.close()
    }

    @Test func ofIndexesProjectionsAndSyncers() async throws {
        let directory = TemporaryDirectory(), notes = try await StoreCoordinator.open(path: directory.path + "/notes"), store = notes.store
        try await notes.connect(to: "file://" + directory.path + "/shared")
        try await notes.save([.insert("note/1", text: #"{"title":"milk"}"#)])
        let index = try ValueIndex(store, IndexDefinition(#"{"prefix":"note/","on":["/title"]}"#)) { notes.currentVersion }
        let projection = try await Projection.open(
            store, path: directory.path + "/notes.sqlite",
            ProjectionDefinition(
                #"{"tables":{"notes":{"prefix":"note/","columns":[{"name":"title","pointer":"/title","type":"text"}]}}}"#))
        let syncer = try Syncer(notes), current = notes.currentVersion
        await Self.check([
            ("find", { try await index.find(IndexQuestion()).valueIDs == ["note/1"] }),
            ("definition", { try await index.definition(at: current).declaredAt == nil }),
            ("explain", { try await index.explain("note/1").declaredAt == nil }),
            ("update", { done(try await projection.update(to: current)) }),
            ("readVersion", { try await projection.readVersion() == current }), ("problems", { try await projection.problems().isEmpty }),
            ("run", { try await syncer.run() }), ("run in a time", { try await syncer.run(within: .seconds(600)) }),
        ])
        #expect(await Self.throwsCancellation { await syncer.stop() } == false)
        #expect(await Self.throwsCancellation { await projection.close() } == false)
        await #expect(throws: StoreError.self) { try await projection.readVersion() }
        try await notes.close()
    }

    // MARK: Packs

    private struct Refusal: Error, Equatable {}

    /// One stream through tasks, in pieces of a few bytes, encrypted and not.
    @Test(arguments: [false, true]) func packsInStreams(isEncrypted: Bool) async throws {
        let from = try await Store.open(path: "", options: memory), to = try await Store.open(path: "", options: memory)
        let large = String(repeating: "large ", count: 50_000)
        let version = try from.set(["y": large], try from.set(["x": "1"], nil))
        let pieces = Pieces()
        let recipients = isEncrypted ? try PackRecipients(passphrase: "six words") : nil
        let unlocking = isEncrypted ? try PackUnlocking(passphrase: "six words") : nil
        let written = try await from.writePack(for: recipients) { await pieces.add($0) }
        let read = try await to.readPack(by: unlocking) { await pieces.next() }
        #expect(written.versions.count == 2 && read.versions.count == 2 && read.problems.isEmpty)
        #expect(try await to.value("y", at: version.id)?.text == large)
        // Their types are those of the async forms.
        let failing: @Sendable ([UInt8]) async throws -> Void = { _ in throw Refusal() },
            ending: @Sendable () async throws -> [UInt8] = { [] }
        let refusing: @Sendable () async throws -> [UInt8] = { throw Refusal() }
        await #expect(throws: Refusal()) { try await from.writePack(failing) }
        await #expect(throws: Refusal()) { try await to.readPack(refusing) }
        #expect(await Self.throwsCancellation { try await from.writePack(failing) })
        #expect(await Self.throwsCancellation { try await to.readPack(ending) })
        for store in [from, to] { try await store.close() }
    }
    private actor Pieces {
        private var all: [[UInt8]] = []
        func add(_ bytes: [UInt8]) {
            all += stride(from: 0, to: bytes.count, by: 700).map { Array(bytes[$0..<min($0 + 700, bytes.count)]) }
        }
        func next() -> [UInt8] { all.isEmpty ? [] : all.removeFirst() }
    }

    /// A closure that would wait for ever ends with its task.
    @Test func ofLinks() async throws {
        let here = try await Store.open(path: "", options: memory), there = try await Store.open(path: "", options: memory)
        let version = try here.set(["x": "1"], nil), bytes = try Pairing.random()
        let listener = try await PeerListener.listen(at: "127.0.0.1:0")
        try listener.offer(there, Pairing(bytes))
        let options = PeerSession.Options(pairing: try Pairing(bytes))
        let link = try await PeerLink.connect(here, to: listener.address, options: options)
        await Self.check([
            ("wait", { try await link.wait() }), ("wait in a time", { try await link.wait(within: .seconds(600)) }),
        ])
        #expect(try await there.value("x", at: version.id)?.text == "1")
        let answer = try #require(try await listener.accept())
        #expect(try await link.waitForEnd(within: .zero) == false)
        #expect(await Self.throwsCancellation { await link.close() } == false)
        #expect(try await answer.waitForEnd())
        #expect(link.hasEnded)
        let cut = try await PeerLink.connect(here, to: listener.address, options: options, within: .seconds(600))
        #expect(await Self.throwsCancellation { await cut.stop() } == false)
        #expect(cut.hasEnded)

        // The other end says nothing, so the stores are never in step.
        var ends: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let silent = try PeerLink(PeerSession(here, options: options), over: ends[0])
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let task = Task {
            begin.yield()
            return try await silent.wait()
        }
        for await _ in begun { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await Self.isCancelledWhileItWaits { try await silent.waitForEnd() })
        #expect(!silent.hasEnded)
        await silent.stop()
        close(ends[1])

        // Nobody connects any more. A listener that was cancelled accepts as before.
        while try await listener.accept(within: .zero) != nil {}
        #expect(await Self.isCancelledWhileItWaits { _ = try await listener.accept() })
        #expect(await Self.throwsCancellation { _ = try await listener.accept(within: .seconds(600)) })
        let again = try await PeerLink.connect(here, to: listener.address, options: options)
        #expect(try await again.wait())
        #expect(try await listener.accept() != nil)
        #expect(await Self.throwsCancellation { await listener.close(within: .seconds(600)) } == false)
        for store in [here, there] { try await store.close() }
    }
    /// Returns whether a call that was begun throws `CancellationError` once its task is cancelled.
    private static func isCancelledWhileItWaits(_ call: @escaping @Sendable () async throws -> Void) async -> Bool {
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let task = Task {
            begin.yield()
            do { try await call() } catch { return error is CancellationError }
            return false
        }
        for await _ in begun { break }
        task.cancel()
        return await task.value
    }

    /// A server that accepts no connection: its queue is full, so connecting waits.
    @Test func connectingIsCancelled() async throws {
        let store = try await Store.open(path: "", options: memory), bytes = try Pairing.random()
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &place) {
            try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try #require(bind(server, $0, length) == 0 && listen(server, 0) == 0 && getsockname(server, $0, &length) == 0)
            }
        }
        let address = "127.0.0.1:\(UInt16(bigEndian: place.sin_port))"
        // The first of these fills the queue.
        let waiting = (0..<4).map { _ in socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0) }
        withUnsafePointer(to: &place) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { for one in waiting { _ = connect(one, $0, length) } }
        }
        let options = PeerSession.Options(pairing: try Pairing(bytes))
        #expect(await Self.isCancelledWhileItWaits { _ = try await PeerLink.connect(store, to: address, options: options, within: 3_600) })
        for one in waiting { close(one) }
        close(server)
        try await store.close()
    }

    @Test func cancelledWhileTheClosureWaits() async throws {
        let store = try await Store.open(path: "", options: memory)
        _ = try store.set(["x": "1"], nil)
        for call: @Sendable (@escaping @Sendable () async throws -> Void) async throws -> Void in [
            { wait in try await store.writePack { _ in try await wait() } },
            { wait in
                try await store.readPack {
                    try await wait(); return []
                }
            },
        ] {
            let (begun, begin) = AsyncStream<Void>.makeStream(), never = AsyncStream<Void> { _ in }
            let task = Task {
                try await call {
                    begin.yield()
                    for await _ in never {}
                    try Task.checkCancellation()
                }
            }
            for await _ in begun { break }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        try await store.close()
    }
}
