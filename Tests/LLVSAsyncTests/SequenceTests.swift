import LLVS
import LLVSAsync
import LLVSTestSupport
import Testing

/// Sequences that read, and those that report heads and the work of syncers.
@Suite struct SequenceTests {
    @Test func historyAndValuesInPages() async throws {
        let store = try await Store.open(path: "", options: memory)
        var last: Version?
        for i in 0..<150 { last = try store.set(["x": "\(i)", "y\(i % 5)": "\(i)"], last) }
        let many = try await store.makeVersion(
            basedOn: last?.id, changes: (0..<600).map { .insert(try ValueID("many/\(1_000 + $0)"), data: [1]) })
        var ids: [VersionID] = []
        for try await version in store.versions(matching: HistoryQuery(value: "x")) { ids.append(version.id) }
        #expect(try ids == Array(store.history().dropFirst()) && ids.count == 150)
        var values: [ValueID] = []
        for try await value in store.allValues(at: many.id) { values.append(value.id) }
        #expect(values.count == 606 && values == values.sorted())
        values = []
        for try await value in store.allValues(at: many.id, in: .prefix(Array("y".utf8))) { values.append(value.id) }
        #expect(values == ["y0", "y1", "y2", "y3", "y4"])
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            for try await _ in store.allValues(at: many.id) { return }
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        try await store.close()
        await #expect(throws: StoreError.self) { for try await _ in store.allValues(at: many.id) {} }
    }

    @Test func headsAsTheyChange() async throws {
        let store = try await Store.open(path: "", options: memory), root = try store.set(["x": "0"], nil)
        var heads = try store.heads.makeAsyncIterator()
        #expect(try await heads.next() == [root.id])
        let a = try store.set(["x": "1"], root), b = try store.set(["x": "2"], root)
        var seen: Set<VersionID> = []
        while seen != [a.id, b.id], let next = try await heads.next() { seen = Set(next) }
        #expect(seen == [a.id, b.id])
        let merged = try await store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.ours)
        #expect(try await heads.next() == [merged.id])
        try await store.close()
        #expect(try await heads.next() == nil)
    }

    @Test func eventsOfASyncer() async throws {
        let directory = TemporaryDirectory(), folder = "file://" + directory.path + "/shared"
        let phone = try await StoreCoordinator.open(path: directory.path + "/phone")
        try await phone.connect(to: folder)
        let syncer = try Syncer(phone), events = syncer.events
        var iterator = events.makeAsyncIterator()
        try await phone.save([.insert("note/1", text: "milk")])
        #expect(try await syncer.run())
        var rounds: UInt64 = 0
        while rounds == 0, let event = await iterator.next() { rounds = event.status.rounds }
        #expect(rounds > 0)
        let laptop = try await StoreCoordinator.open(path: directory.path + "/laptop")
        try await laptop.connect(to: folder)
        try await laptop.sync()
        #expect(try await laptop.value("note/1")?.text == "milk")
        await syncer.stop()
        while await iterator.next() != nil {}
        await #expect(throws: StoreError.self) { try await syncer.run() }
        try await phone.close()
        try await laptop.close()
    }

    @Test func editsOfThePast() async throws {
        var options = StoreCoordinator.Options()
        options.store.storage = .memory
        options.device = "phone"
        let notes = try await StoreCoordinator.open(path: "", options: options)
        try await notes.register(#"{"merge":1,"ids":{"note/":{"/visits":"counter"}}}"#)
        try await notes.save([.insert("note/1", text: #"{"visits":1}"#)])
        let second = try #require(try await notes.save([.update("note/1", text: #"{"visits":2}"#)]))
        #expect(try await notes.undoable().undo?.versions == [second.id])
        #expect(try await notes.undo().undoable?.versions == [second.id])
        #expect(try await notes.value("note/1")?.text == #"{"visits":1}"#)
        try await notes.redo()
        #expect(try await notes.value("note/1")?.text == #"{"visits":2}"#)
        try await notes.revert(second.id)
        #expect(try await notes.value("note/1")?.text == #"{"visits":1}"#)
        try await notes.close()
        await #expect(throws: StoreError.self) { try await notes.value("note/1") }
    }
}
