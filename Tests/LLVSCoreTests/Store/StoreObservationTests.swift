import LLVSCore
import LLVSTestHelpers
import Testing

/// Observing versions that other handles add, and other questions about a store as a whole. (Tests/Python/test_observing.py observes
/// versions of another process.)
@Suite struct StoreObservationTests {
    /// Waits until a condition holds.
    private func become(_ what: String, _ isSo: () throws -> Bool) throws {
        if try !Parallel.becomes(isSo) { Issue.record("\(what) did not occur") }
    }

    private final class Heard: @unchecked Sendable {
        private let lock = Lock()
        private var number = 0
        private var running = false
        var overlapped = false
        func add() {
            lock.withLock {
                if running { overlapped = true }
                running = true
                number += 1
            }
            usleep(1_000)
            lock.withLock { running = false }
        }
        var count: Int { lock.withLock { number } }
    }

    private static func open(_ kind: String, _ directory: TemporaryDirectory, asks: Bool = true) throws -> Store {
        var options = Store.Options()
        options.storage = kind == "sqlite" ? .sqlite : .file
        options.durability = .normal
        let store = try Store(path: directory.path + "/store", options: options)
        store.environment.asksForChanges = asks
        store.environment.lookInterval = 30
        return store
    }

    @Test(arguments: ["file", "sqlite", "file, not told", "sqlite, not told"]) func versionsOfOthersAreHeardOf(how: String) throws {
        let directory = TemporaryDirectory(), kind = how.hasPrefix("file") ? "file" : "sqlite"
        let reader = try Self.open(kind, directory, asks: !how.hasSuffix("not told")), writer = try Self.open(kind, directory)
        // Earlier versions are reported first.
        var last = try writer.set(["x": "0"], nil)
        let heard = Heard()
        let observation = try reader.observeAdditions { heard.add() }
        try become("the earlier versions") { try reader.contains(last.id) && heard.count > 0 }
        for i in 1...5 {
            let before = heard.count
            last = try writer.set(["x": "\(i)"], last)
            try become("version \(i), \(how)") { try reader.contains(last.id) && heard.count > before }
        }
        // Another handle begins a segment of its own.
        let third = try Self.open(kind, directory)
        let before = heard.count
        last = try third.set(["x": "third"], last)
        try become("that of a new handle") { try reader.contains(last.id) && heard.count > before }
        // Many versions at once cause few calls. The last call comes after the last version.
        let known = heard.count
        for i in 0..<300 { last = try writer.set(["y": "\(i)"], last) }
        try become("the last of many") { try reader.contains(last.id) && heard.count > known }
        #expect(heard.count - known < 300 && !heard.overlapped)
        observation.cancel()
        // A second observer continues, and reports what the cancelled one must not report. It polls in the same way, several times.
        let witness = try Self.open(kind, directory, asks: !how.hasSuffix("not told")), silent = heard.count, others = Heard()
        let witnessing = try witness.observeAdditions { others.add() }
        for i in 1...3 {
            let before = others.count
            last = try writer.set(["x": "unheard \(i)"], last)
            try become("version \(i) for another") { try witness.contains(last.id) && others.count > before }
        }
        #expect(try heard.count == silent && !reader.contains(last.id))
        witnessing.cancel()
        for store in [reader, writer, third, witness] { try store.close() }
    }

    @Test(arguments: ["file", "memory", "host"]) func ownVersionsAreHeardOf(kind: String) throws {
        let directory = TemporaryDirectory()
        let store =
            switch kind {
            case "file": try Self.open("file", directory)
            case "memory": try memoryStore()
            default: try Store(storage: CountingStorage(MemoryStorage()), options: Store.Options())
            }
        let heard = Heard()
        let observation = try store.observeAdditions { heard.add() }
        var last = try store.set(["x": "0"], nil)
        try become("an own version") { heard.count == 1 }
        last = try store.set(["x": "1"], last)
        try become("the next") { heard.count == 2 }
        // One registration ends; another continues.
        let other = Heard()
        let second = try store.observeAdditions { other.add() }
        observation.cancel()
        observation.cancel()
        _ = try store.set(["x": "2"], last)
        try become("that for the other") { other.count == 1 }
        #expect(heard.count == 2)
        try store.close()
        second.cancel()
        #expect(throws: StoreError.self) { try store.observeAdditions {} }
    }

    @Test func anObservationMayEndItselfAndTheStore() throws {
        let directory = TemporaryDirectory()
        final class Box: @unchecked Sendable { var observation: (any ExchangeObservation)?; var ended = false }
        let box = Box(), heard = Heard()
        var store: Store? = try Self.open("file", directory)
        box.observation = try store?.observeAdditions {
            heard.add()
            box.observation?.cancel()
            box.ended = true
        }
        let first = try #require(try store?.set(["x": "0"], nil))
        try become("the end") { box.ended }
        // An observer that began later is called for a version that this one is not called for.
        let others = Heard(), other = try store?.observeAdditions { others.add() }
        _ = try store?.set(["x": "1"], first)
        try become("that for another") { others.count == 1 }
        other?.cancel()
        #expect(heard.count == 1)
        box.observation = nil
        // An observation does not keep the store open.
        let left = try #require(try store?.observeAdditions {})
        weak let gone = store
        store = nil
        try become("the store's end") { gone == nil }
        left.cancel()
    }

    @Test func storesSayWhereTheyAre() throws {
        let directory = TemporaryDirectory()
        #expect(try Self.open("file", directory).path == directory.path + "/store" && memoryStore().path == "")
        var options = Store.Options()
        options.storage = .sqlite
        #expect(try Store(path: directory.path + "/./x.sqlite", options: options).path.hasSuffix("x.sqlite"))
    }

    @Test func aTimestampMayBeGiven() throws {
        let store = try memoryStore()
        func code(_ body: () throws -> Void) -> StoreError.Code? {
            do { try body(); return nil } catch { return (error as? StoreError)?.code }
        }
        let root = try store.makeVersion(basedOn: nil, changes: [.insert(id("x"), data: [1])], timestamp: 1_000)
        #expect(root.timestamp == 1_000)
        let next = try store.makeVersion(basedOn: root.id, changes: [.insert(id("x"), data: [2])], timestamp: 1_000.5)
        #expect(try next.timestamp == 1_000.5 && store.version(next.id)?.timestamp == 1_000.5)
        for wrong in [1_000.5, 1_000, -5, .nan, .infinity, -.infinity] {
            #expect(code { try store.makeVersion(basedOn: next.id, changes: [], timestamp: wrong) } == .invalidArgument, "\(wrong)")
        }
        for wrong in [Double.nan, .infinity] {
            #expect(code { try store.makeVersion(basedOn: nil, changes: [], timestamp: wrong) } == .invalidArgument)
        }
        #expect(try store.makeVersion(basedOn: nil, changes: [], timestamp: -1e9).timestamp == -1e9)
        #expect(try store.makeVersion(basedOn: next.id, changes: []).timestamp > 700_000_000)
        // Under an id that the caller chose, the same version is accepted again.
        let mine = try VersionID("mine")
        let made = try store.makeVersion(basedOn: root.id, changes: [], id: mine, timestamp: 2_000)
        #expect(
            try store.makeVersion(basedOn: root.id, changes: [], id: mine, timestamp: 2_000) == made
                && store.makeVersion(basedOn: root.id, changes: [], id: mine) == made)
        #expect(code { try store.makeVersion(basedOn: root.id, changes: [], id: mine, timestamp: 2_001) } == .versionMismatch)
        let source = ValueSource(id: try id("y"), size: nil) { _ in 0 }
        #expect(
            try store.makeVersion(basedOn: root.id, borrowing: BorrowedChanges([]), reading: [source], timestamp: 3_000).timestamp == 3_000)
    }
}
