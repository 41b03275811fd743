import LLVSTestHelpers

#if DEBUG
import LLVS
import LLVSTestHelpers
import Testing
@testable import LLVSCore

/// Counts how many nodes of maps operations read and make. If anything grows with the number of values, these counts do. They depend only
/// on the ids, so a change of the map that makes them larger shows on any machine. (test_costs.c counts allocations, system calls and
/// bytes.)
@Suite struct MapCostTests {
    /// The cost of one operation on a store with this many values.
    struct Row {
        let operation: String, count: Int, costs: MapWork.Counts
        init(_ operation: String, _ count: Int, read: UInt64, made: UInt64) {
            self.operation = operation
            self.count = count
            costs = MapWork.Counts(read: read, made: made)
        }
        func isMore(than other: Row) -> Bool {
            costs.read > other.costs.read + other.costs.read / 20 || costs.made > other.costs.made + other.costs.made / 20
        }
    }
    static let counts = [1_000, 20_000]

    /// After an intended change of costs, print the new table with `LLVS_PRINT_COSTS=1 swift test --filter MapCostTests`.
    static let expected = [
        Row("fetch", 1000, read: 0, made: 0),
        Row("save a value", 1000, read: 0, made: 0),
        Row("enumerate", 1000, read: 143, made: 143),
        Row("a page of 20", 1000, read: 6, made: 0),
        Row("count a prefix", 1000, read: 3, made: 0),
        Row("differences of 10", 1000, read: 28, made: 0),
        Row("merge 20 + 20", 1000, read: 54, made: 0),
        Row("merge the same 20", 1000, read: 54, made: 0),
        Row("reopened: first fetch", 1000, read: 0, made: 0),
        Row("reopened: fetch", 1000, read: 0, made: 0),
        Row("reopened: save a value", 1000, read: 0, made: 0),
        Row("reopened: save another", 1000, read: 0, made: 0),
        Row("reopened: enumerate", 1000, read: 143, made: 186),
        Row("reopened: merge 20 + 20", 1000, read: 53, made: 0),
        Row("fetch", 20000, read: 0, made: 0),
        Row("save a value", 20000, read: 0, made: 0),
        Row("enumerate", 20000, read: 4892, made: 95),
        Row("a page of 20", 20000, read: 10, made: 0),
        Row("count a prefix", 20000, read: 21, made: 0),
        Row("differences of 10", 20000, read: 49, made: 0),
        Row("merge 20 + 20", 20000, read: 100, made: 0),
        Row("merge the same 20", 20000, read: 100, made: 0),
        Row("reopened: first fetch", 20000, read: 4, made: 0),
        Row("reopened: fetch", 20000, read: 0, made: 0),
        Row("reopened: save a value", 20000, read: 4, made: 0),
        Row("reopened: save another", 20000, read: 4, made: 0),
        Row("reopened: enumerate", 20000, read: 6786, made: 1581),
        Row("reopened: merge 20 + 20", 20000, read: 99, made: 0),
    ]

    static func ids(_ count: Int) throws -> [ValueID] {
        var random = SeededRandom(seed: 1)
        return try (0..<count).map { _ in
            let hex = (0..<32).map { _ in "0123456789ABCDEF".randomElement(using: &random) ?? "0" }
            return try ValueID(String(hex))
        }
    }

    /// Measures one operation after another on one store, in the order of the table.
    static func measure(_ count: Int, _ found: (String, MapWork.Counts) -> Void) throws {
        let directory = TemporaryDirectory()
        let ids = try ids(count)
        func open() throws -> Store {
            var options = Store.Options()
            options.durability = .normal
            return try Store(path: directory.path + "/store", options: options)
        }
        var updates = 0
        func save(_ store: Store, _ at: VersionID, _ number: Int) throws -> VersionID {
            updates += 1
            return try store.makeVersion(basedOn: at, changes: [.update(ids[number % count], data: bytes("update \(updates)"))]).id
        }
        func branch(_ store: Store, _ at: VersionID, from first: Int) throws -> VersionID {
            try (first..<first + 20).reduce(at) { try save(store, $0, $1) }
        }
        func counting(_ name: String, _ body: () throws -> Void) rethrows { found(name, try MapWork.counting(body)) }

        var store = try open()
        let first = try store.makeVersion(basedOn: nil, changes: ids.map { .insert($0, data: bytes($0.description)) }).id
        var head = try save(store, first, 0)
        try counting("fetch") { _ = try store.value(ids[1], at: head) }
        try counting("save a value") { head = try save(store, head, 2) }
        try counting("enumerate") { _ = try store.references(at: head, limit: .max) }
        try counting("a page of 20") { _ = try store.references(at: head, in: .prefix([UInt8(ascii: "7")]), limit: 20) }
        try counting("count a prefix") { _ = try store.count(at: head, in: .prefix([UInt8(ascii: "7")])) }
        let tenth = try (3..<13).reduce(head) { try save(store, $0, $1) }
        var different = 0
        try counting("differences of 10") { different = try store.differences(from: head, to: tenth).count }
        #expect(different == 10)
        var (a, b) = (try branch(store, tenth, from: 100), try branch(store, tenth, from: 200))
        try counting("merge 20 + 20") { head = try store.merge(a, with: b, arbiter: BuiltInArbiter.mostRecentChange).id }
        (a, b) = (try branch(store, head, from: 300), try branch(store, head, from: 300))
        try counting("merge the same 20") { head = try store.merge(a, with: b, arbiter: BuiltInArbiter.mostRecentChange).id }
        try store.close()

        // The costs with a persisted map that another handle wrote.
        store = try open()
        try counting("reopened: first fetch") { _ = try store.value(ids[1], at: head) }
        try counting("reopened: fetch") { _ = try store.value(ids[2], at: head) }
        try counting("reopened: save a value") { head = try save(store, head, 400) }
        try counting("reopened: save another") { head = try save(store, head, 401) }
        try counting("reopened: enumerate") { _ = try store.references(at: head, limit: .max) }
        (a, b) = (try branch(store, head, from: 500), try branch(store, head, from: 600))
        try counting("reopened: merge 20 + 20") { head = try store.merge(a, with: b, arbiter: BuiltInArbiter.mostRecentChange).id }
        try store.close()
    }

    @Test func operationsReadAndMakeAsManyNodesAsBefore() throws {
        var found: [Row] = []
        for count in Self.counts {
            try Self.measure(count) { operation, costs in found.append(Row(operation, count, read: costs.read, made: costs.made)) }
        }
        if getenv("LLVS_PRINT_COSTS") != nil {
            for row in found { print("        Row(\"\(row.operation)\", \(row.count), read: \(row.costs.read), made: \(row.costs.made)),") }
        }
        try #require(found.map(\.operation) == Self.expected.map(\.operation))
        for (row, expected) in zip(found, Self.expected) {
            #expect(!row.isMore(than: expected), "\(row.operation) with \(row.count) values: \(row.costs), not \(expected.costs)")
        }
    }

    @Test func aCostThatGrewIsNoticed() {
        for row in Self.expected {
            #expect(!row.isMore(than: row))
            #expect(Row(row.operation, row.count, read: row.costs.read + row.costs.read / 10 + 1, made: row.costs.made).isMore(than: row))
            #expect(Row(row.operation, row.count, read: row.costs.read, made: row.costs.made + row.costs.made / 10 + 1).isMore(than: row))
        }
    }
}
#endif
