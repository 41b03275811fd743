import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Compaction through a store: versions and values are the same before and after, and caches remain right.
@Suite struct StoreCompactionTests {
    let directory = TemporaryDirectory()
    var path: String { directory.path + "/store" }

    func open(_ compaction: Compaction = .onRequest, grace: Double = 0, budget: Int = 64 << 20) throws -> Store {
        var options = Store.Options()
        options.durability = .normal
        options.compaction = compaction
        options.compactionGrace = grace
        options.memoryBudget = budget
        return try Store(path: path, options: options)
    }

    func files(_ store: Store) throws -> Int { try #require(store.storage as? FileStorage).filesOpened }
    var segments: [String] { get throws { try System.names(in: path + "/segments").filter { $0.hasSuffix(".seg") } } }

    /// Everything that can be read: each version with its changes, and the values at the heads.
    func contents(_ store: Store) throws -> [String] {
        var lines: [String] = []
        for id in try store.allVersionIDs() {
            let version = try #require(try store.version(id))
            lines.append("\(id) \(version.predecessors) \(try store.changes(madeIn: id).map { "\($0)" })")
        }
        for head in try store.heads() {
            lines.append("\(head.id) " + (try store.values(at: head.id, limit: .max).map { "\($0.id) \($0.data)" }).joined(separator: " "))
        }
        return lines.sorted()
    }

    /// Opens the store again for each version.
    func openAndSave(_ count: Int, from first: Int = 0, _ compaction: Compaction = .onRequest, grace: Double = 0) throws {
        for i in first..<first + count {
            let store = try open(compaction, grace: grace)
            let head = try store.mostRecentHead()
            let changes: [Value.Change] =
                [.insert(try id("value \(i)"), data: bytes("data \(i)"))] + (i % 10 == 9 ? [.remove(try id("value \(i - 5)"))] : [])
            _ = try store.makeVersion(basedOn: head?.id, changes: changes)
            try store.close()
        }
    }

    @Test func nothingThatCanBeReadChanges() throws {
        try openAndSave(40)
        let reader = try open(), before = try contents(reader)
        #expect(before.count == 41)
        for (made, deleted) in [(1, 0), (0, 40), (0, 0)] as [(UInt64, UInt64)] {
            let store = try open()
            let report = try store.compact()
            #expect(report.made == made && report.deleted == deleted)
            #expect(try contents(store) == before)
            #expect(try contents(open()) == before)
            #expect(try store.verifyRecords(OperationControl()).isWhole)
            #expect(try store.verifyRecords(OperationControl()).values == 40)
            try store.close()
        }
        #expect(try segments.count == 1)
        // One handle was open all the time, and one has discarded all its maps.
        #expect(try contents(reader) == before)
        #expect(try reader.reloadHistory() == 0)
        #expect(try contents(open(budget: 1)) == before)
        _ = try reader.makeVersion(basedOn: try reader.mostRecentHead()?.id, changes: [.insert(id("more"), data: [1])])
        #expect(try open().allVersionIDs().count == 41)
    }

    @Test func aStoreThatWasOpenedOftenOpensLikeOneFilledAtOnce() throws {
        // The 64 existing segments are merged into one.
        try openAndSave(100, .automatic)
        #expect(try segments.count < 70)
        let often = try open()
        #expect(try often.allVersionIDs().count == 100)
        #expect(try files(often) < 70)
        #expect(try contents(often).count == 101)
        try often.close()

        // Until they are deleted, compacted segments are listed but not opened.
        TemporaryDirectory.remove(path)
        try openAndSave(80, .automatic, grace: 900)
        #expect(try segments.count > 80)
        #expect(try files(open()) < 70)

        // Without compaction every file is opened, until a caller requests it or opens the store for writing.
        TemporaryDirectory.remove(path)
        try openAndSave(100)
        #expect(try files(open()) >= 100)
        #expect(try files(open(.automatic)) >= 100)
        #expect(try files(open()) < 10)
        let store = try open()
        #expect(try store.allVersionIDs().count == 100)
    }

    @Test func cachesStayRight() throws {
        do {
            let store = try open()
            var head: VersionID?
            for i in 0..<1_100 { head = try store.makeVersion(basedOn: head, changes: [.insert(id("first \(i)"), data: bytes("\(i)"))]).id }
            try store.close()
        }
        try openAndSave(20)
        // The index knows the first segment, and some of the compacted ones.
        do {
            let store = try open()
            var head = try store.mostRecentHead()?.id
            for i in 0..<1_000 {
                head = try store.makeVersion(basedOn: head, changes: [.insert(id("second \(i)"), data: bytes("\(i)"))]).id
            }
            try store.close()
        }
        try openAndSave(10, from: 20)
        let before = try contents(open())
        let index = try #require(try open().cacheGet("history"))

        let store = try open()
        #expect(try store.compact().made == 1)
        #expect(try store.compact().deleted > 20)
        // Ends without `close`, so that the older index remains.
        store.discard()
        #expect(try segments.count == 1)
        let old = try open()
        #expect(old.caches.versions > 2_000)
        #expect(try contents(old) == before)
        #expect(try files(old) < 10)
        #expect(try old.cacheGet("history") == index)
        try old.close()

        // Open with an index that was written after the compaction, before and after the segments are deleted.
        try openAndSave(70, from: 30)
        let again = try open(.automatic)
        #expect(try again.allVersionIDs().count == 2_200)
        try again.close()
        #expect(try open().cacheGet("history") != index)
        let full = try contents(open())
        for _ in 0..<3 {
            let store = try open(.automatic)
            #expect(store.caches.versions == 2_200)
            #expect(try files(store) < 10)
            #expect(try contents(store) == full)
            try store.close()
        }
        #expect(try segments.count < 10)
        #expect(try open().verifyRecords(OperationControl()).isWhole)
    }

    @Test func whatIsPendingIsKept() throws {
        // The segment that holds the first version arrives last.
        try openAndSave(5)
        let store = try open()
        let first = try #require(try store.allVersionIDs().first)
        let place = store.place(of: try #require(try store.findOrdinal(first)))
        let name = try #require(store.storage as? FileStorage).segments[Int(place.segment)].name
        try store.close()
        let file = path + "/segments/" + name, aside = directory.path + "/" + name
        try System.rename(file, aside)
        let reader = try open()
        #expect(try reader.statistics().pending == 4)
        #expect(try reader.compact().folded == 4)
        #expect(try reader.compact().deleted == 4)
        #expect(try open().statistics().pending == 4)
        try System.rename(aside, file)
        for store in [reader, try open()] {
            try store.reloadHistory()
            #expect(try store.allVersionIDs().count == 5)
            #expect(try contents(store).count == 6)
            #expect(try store.statistics().pending == 0)
        }
    }

    @Test func savingGoesOnWhileItCompacts() throws {
        try openAndSave(30)
        let store = try open(), base = try store.mostRecentHead()?.id
        let wrong = Parallel.run(threads: 3, times: 15) { thread, turn in
            if thread == 0 {
                try store.compact()
            } else {
                let version = try store.makeVersion(basedOn: base, changes: [.insert(ValueID("\(thread) \(turn)"), data: [UInt8(turn)])])
                if try store.value(ValueID("value 3"), at: version.id)?.data != bytes("data 3") {
                    throw StoreError(.damaged, "other bytes")
                }
            }
        }
        #expect(wrong.isEmpty)
        try store.close()
        let again = try open()
        #expect(try again.allVersionIDs().count == 60)
        #expect(try again.verifyRecords(OperationControl()).isWhole)
    }

    @Test func aProgressCallbackDoesNotWaitForItsOwnCompaction() throws {
        try openAndSave(6)
        let store = try open()
        #expect {
            try store.compact(
                control: OperationControl(progress: { _ in
                    try store.compact(); return true
                }))
        } throws: { ($0 as? StoreError)?.code == .busy }
        _ = try? store.compact(
            control: OperationControl(progress: { _ in
                try store.close(); return true
            }))
        #expect(try contents(open()).count == 7)
    }

    @Test func whoMayNotDoesNot() throws {
        try openAndSave(3)
        var options = Store.Options()
        options.readOnly = true
        let reader = try Store(path: path, options: options)
        #expect(throws: StoreError.self) { try reader.compact() }
        try reader.close()
        #expect(throws: StoreError.self) { try reader.compact() }
        options.readOnly = false
        options.storage = .memory
        #expect(try Store(path: "", options: options).compact() == CompactionReport())
    }
}
