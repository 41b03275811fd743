import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// While a thread has a shared hold on the records of a store, no handle can have an exclusive one, and the other way round.
@Suite struct RecordsHoldTests {
    let directory = TemporaryDirectory()

    func files() throws -> FileStorage { try FileStorage(path: directory.path + "/store") }
    func database() throws -> SQLiteStorage { try SQLiteStorage(path: directory.path + "/store.db") }

    /// Runs `body` on another thread, and returns its result.
    func elsewhere(_ body: @escaping () throws -> Bool) throws -> Bool {
        var result = false
        let errors = Parallel.run(threads: 2, times: 1) { thread, _ in if thread == 1 { result = try body() } }
        #expect(errors.isEmpty, "\(errors)")
        return result
    }

    /// Whether another thread can have an exclusive hold.
    func isFree(_ storage: any Storage) throws -> Bool {
        try elsewhere {
            let hold = try RecordsHold.exclusive(storage, tries: 3)
            hold?.end()
            return hold != nil
        }
    }

    func check(_ a: any Storage, _ b: any Storage) throws {
        #expect(!RecordsHold.isHeld(a))
        try RecordsHold.sharing(a) {
            #expect(RecordsHold.isHeld(a))
            // Within a hold of the same thread, there is nothing to wait for.
            try RecordsHold.sharing(a) {}
            #expect(RecordsHold.isHeld(a))
            let own = try RecordsHold.exclusive(a, tries: 1)
            let isHeldElsewhere = try elsewhere { RecordsHold.isHeld(b) }
            let isFree = try isFree(b)
            let isShared = try elsewhere { try RecordsHold.sharing(b) { true } }
            #expect(own == nil && !isHeldElsewhere && !isFree && isShared)
        }
        #expect(!RecordsHold.isHeld(a))
        let hold = try #require(try RecordsHold.exclusive(a, tries: 1))
        #expect(RecordsHold.isHeld(a))
        var isFreeNow = try isFree(b)
        #expect(!isFreeNow)
        hold.end()
        hold.end()
        #expect(!RecordsHold.isHeld(a))
        isFreeNow = try isFree(b)
        #expect(isFreeNow)
    }

    @Test func handlesOfFiles() throws { try check(files(), files()) }
    @Test func handlesOfADatabase() throws { try check(database(), database()) }
    @Test func oneHandleInMemory() throws {
        let storage = MemoryStorage()
        try check(storage, storage)
    }

    @Test func aSharedHoldWaitsForAnExclusiveOne() throws {
        let a = try files(), b = try files(), hasHold = Guarded(false), isEnded = Guarded(false)
        let errors = Parallel.run(threads: 2, times: 1) { thread, _ in
            if thread == 0 {
                let hold = try #require(try RecordsHold.exclusive(a, tries: 1))
                hasHold.withLock { $0 = true }
                for _ in 0..<1_000 { sched_yield() }
                isEnded.withLock { $0 = true }
                hold.end()
            } else {
                while !hasHold.withLock({ $0 }) { sched_yield() }
                try RecordsHold.sharing(b) { #expect(isEnded.withLock { $0 }) }
            }
        }
        #expect(errors.isEmpty, "\(errors)")
    }

    @Test func nothingIsCompactedMeanwhile() throws {
        for number in 0..<4 {
            let storage = try files()
            try StorageConformance.append(storage, [StorageConformance.bytes(seed: UInt64(number), count: 40)])
            try storage.close(discarding: false)
        }
        let storage = try files(), other = try files()
        try storage.scan { _ in }
        try RecordsHold.sharing(other) {
            let isNothing = try elsewhere { try storage.compact(.request, OperationControl()).made == 0 }
            #expect(isNothing)
        }
        #expect(try storage.compact(.request, OperationControl()).made == 1)
    }

    @Test func recordsAreAppendedOnlyBesideKnownOrders() throws {
        for (a, b) in [(try files() as any Storage, try files() as any Storage), (try database(), try database())] {
            let record = StorageConformance.bytes(seed: 1, count: 40)
            func append(ifOrdersAre stamp: UInt64) throws {
                try record.withUnsafeBytes { _ = try a.append([RecordPieces($0)], ifOrdersAre: stamp) }
            }
            try append(ifOrdersAre: 0)
            try b.changeOrders { _ in Array("none\n".utf8) }
            #expect(throws: OrdersChanged.self) { try append(ifOrdersAre: 0) }
            let stamp = a.ordersStamp()
            try append(ifOrdersAre: stamp)
            b.touchOrders()
            #expect(throws: OrdersChanged.self) { try append(ifOrdersAre: stamp) }
            try append(ifOrdersAre: b.ordersStamp())
            var count = 0
            try b.scan { _ in count += 1 }
            #expect(count == 3)
        }
    }

    @Test func differencesAreNotAppendedDuringAnErasure() throws {
        let a = try files(), b = try files(), hold = try #require(try RecordsHold.exclusive(b, tries: 1))
        let record = StorageConformance.bytes(seed: 1, count: 40)
        #expect(throws: OrdersChanged.self) { try record.withUnsafeBytes { _ = try a.append([RecordPieces($0)], ifOrdersAre: 0) } }
        hold.end()
        try record.withUnsafeBytes { _ = try a.append([RecordPieces($0)], ifOrdersAre: 0) }
    }
}
