import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Everything that is cached between calls stays within one budget.
@Suite struct MemoryAccountTests {
    @Test func theSharesAddUpToTheBudget() {
        for total in [4 << 20, 16 << 20, 64 << 20, 1 << 30] {
            let account = MemoryAccount(total: total)
            #expect(account.blocks + account.changeLists * 9 / 8 + 2 * account.changeTables + account.reserve + account.mostMaps <= total)
            account.note(deltas: account.deltas)
            #expect(account.maps == max(1 << 20, account.mostMaps - account.deltas))
            // If the index of the past exceeds its share, the excess does not reduce the share of maps.
            account.note(keyHistory: total)
            #expect(account.maps == max(1 << 20, account.mostMaps - account.deltas - account.keyHistory))
        }
    }

    /// All leaves of the map are copied on the way, which makes some 4 MiB of nodes, although only 1 MiB may be kept.
    @Test func mapsFarFromTheNearestOneStayWithinTheirShare() throws {
        let directory = TemporaryDirectory()
        var options = Store.Options()
        options.memoryBudget = 4 << 20
        options.durability = .normal
        func id(_ i: Int) -> ValueID { ValueID(unchecked: Array("\(UInt32(truncatingIfNeeded: i &* 0x9E37_79B1)) of many".utf8)) }
        let count = 30_000
        let store = try Store(path: directory.path + "/store", options: options)
        var last = try store.makeVersion(basedOn: nil, changes: (0..<count).map { .insert(id($0), data: [1]) })
        for step in 0..<40 {
            last = try store.makeVersion(
                basedOn: last.id, changes: (0..<600).map { .update(id((step * 600 + $0) % count), data: [UInt8(step)]) })
        }
        try store.close()
        let again = try Store(path: directory.path + "/store", options: options)
        for caches in [true, false] {
            if !caches { again.maps.giveWay() }
            #expect(try again.values(at: last.id, limit: .max).count == count)
            let ordinal = again.quietHistory.ordinal(of: last.id)
            let slot = try #require(ordinal.flatMap { again.maps.slot($0) })
            #expect((slot.root?.memory ?? 0) <= again.maps.account.mostMaps)
        }
        try again.close()
    }

    /// A map larger than its share is mapped from a deleted file, and nothing of that file remains.
    @Test func aLargePersistedMapTakesNoMemoryOfTheProcess() throws {
        let directory = TemporaryDirectory(), count = 40_000
        var options = Store.Options()
        options.memoryBudget = 1 << 20
        options.durability = .normal
        func id(_ i: Int) -> ValueID { ValueID(unchecked: Array("value \(i)".utf8)) }
        let path = directory.path + "/store", store = try Store(path: path, options: options)
        let first = try store.makeVersion(basedOn: nil, changes: (0..<count).map { .insert(id($0), data: [7]) })
        _ = try store.makeVersion(basedOn: first.id, changes: (0..<1_000).map { .update(id($0 * 40), data: [8]) })
        try store.close()
        let again = try Store(path: path, options: options)
        #expect(again.maps.persisted != nil)
        let head = try #require(again.heads().first)
        let all = try again.values(at: head.id, limit: .max)
        #expect(all.count == count && all.filter { $0.data == [8] }.count == 1_000)
        let flat = try #require(again.lock.withRead { again.maps.persisted?.flat })
        #expect(flat.size == 0)
        #expect(try System.names(in: path + "/cache").filter { $0.hasSuffix(".tmp") }.isEmpty)
        try again.close()
    }

    /// A map that fits is read into memory, and the share of other maps becomes smaller by its size: while single ids are looked up, and
    /// afterwards.
    @Test func aPersistedMapCountsAsMemory() throws {
        let directory = TemporaryDirectory(), count = 40_000
        var options = Store.Options()
        options.durability = .normal
        options.memoryBudget = 256 << 20
        // Long ids, which take more memory than the least that a flat map counts for.
        func id(_ i: Int) -> ValueID {
            ValueID(unchecked: Array((1...8).map { "\(UInt64(truncatingIfNeeded: i * 8 + $0) &* 0x9E37_79B9_7F4A_7C15)" }.joined().utf8))
        }
        let path = directory.path + "/store", store = try Store(path: path, options: options)
        let head = try store.makeVersion(basedOn: nil, changes: (0..<count).map { .insert(id($0), data: [7]) })
        try store.close()
        let again = try Store(path: path, options: options), account = again.maps.account, before = account.maps
        #expect(try again.value(id(5), at: head.id)?.data == [7])
        let file = try #require(again.lock.withRead { again.maps.persisted?.lazyReader }).mostMemory
        #expect(file > 1 << 20 && before - account.maps >= file)
        #expect(try again.values(at: head.id, limit: .max).count == count)
        let flat = try #require(again.lock.withRead { again.maps.persisted?.flat })
        #expect(flat.size == file && before - account.maps >= file)
        // The map is not counted twice.
        #expect(again.maps.cache.memoryInUse < file)
        try again.close()
    }
}
