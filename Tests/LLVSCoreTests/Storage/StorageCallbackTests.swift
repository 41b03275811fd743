import LLVSCore
import LLVSTestHelpers
import Testing

/// A storage of the host, over an array.
@Suite struct StorageCallbackTests {
    @Test(arguments: [Int.max, 1, 7]) func conformance(page: Int) throws {
        try StorageConformance.run {
            let host = ArrayHost()
            host.page = page
            host.keepsCaches = page != 7
            return StorageConformance.Subject { CallbackStorage(readOnly: $0, functions: host.functions) }
        }
    }

    @Test func theHostsErrorsPassThrough() throws {
        struct Refusal: Error, Equatable { let number: Int }
        let host = ArrayHost()
        let storage = CallbackStorage(functions: host.functions)
        host.failure = Refusal(number: 42)
        #expect(throws: Refusal(number: 42)) { try StorageConformance.append(storage, [[1]]) }
        host.failure = nil
        try StorageConformance.append(storage, [[2]])
        #expect(host.records.count == 1)
    }

    /// A record that the host cannot read is reported, and the rest is still verified.
    @Test(arguments: [StoreError.Code.damaged, .io, .notFound, .permission], [0 as UInt64, 150_000])
    func aVerificationGoesOnBehindWhatTheHostCannotRead(_ code: StoreError.Code, _ from: UInt64) throws {
        let host = ArrayHost()
        var store = try Store(storage: CallbackStorage(functions: host.functions), options: Store.Options())
        let first = try store.makeVersion(
            basedOn: nil,
            changes: [
                .insert(id("a"), data: StorageConformance.bytes(seed: 1, count: 60_000)),
                .insert(id("b"), data: StorageConformance.bytes(seed: 2, count: 300_000)),
            ])
        _ = try store.makeVersion(basedOn: first.id, changes: [.insert(id("c"), data: [1])])
        host.unreadable = (0, from, StoreError(code, "The host's disk says no."))
        let open = try store.verifyRecords(OperationControl())
        #expect(
            open.versions == (from == 0 ? 1 : 2) && !open.damages.isEmpty && open.damages.allSatisfy { $0.version == first.id }, "\(open)")
        // A read succeeds as a whole or not at all: not even the header of the first block can be read.
        #expect(try open.damages.map(\.value) == [from == 0 ? nil : id("b")])
        host.unreadable = nil
        #expect(try store.verifyRecords(OperationControl()).isWhole)
        try store.close()
        store = try Store(storage: CallbackStorage(functions: host.functions), options: Store.Options())
        host.unreadable = (0, from, StoreError(code, "The host's disk says no."))
        #expect(try !store.verifyRecords(OperationControl()).damages.isEmpty)
        try store.close()
    }

    @Test func whatTheHostHandsBackIsNotTrusted() throws {
        let host = ArrayHost()
        let records: [[UInt8]] = [Array("A small".utf8), [], Array("B ".utf8) + StorageConformance.bytes(seed: 2, count: 150_000)]
        let writer = CallbackStorage(functions: host.functions)
        let places = try StorageConformance.append(writer, records)
        try writer.cachePut("x", [1, 2, 3])
        let sound = host.records
        var random = SeededRandom(seed: 4)
        for turn in 0..<400 {
            let which = turn % 3
            var bytes = sound[which]
            switch turn % 4 {
            case 0: bytes.removeLast(min(bytes.count, Int.random(in: 1...5, using: &random)))
            case 1: bytes.append(0)
            default:
                bytes[turn < 200 ? (turn / 4) % bytes.count : Int.random(in: 0..<bytes.count, using: &random)] ^=
                    1 << UInt8.random(in: 0..<8, using: &random)
            }
            host.records[which] = bytes
            let reader = CallbackStorage(inspector: StorageFileTests.inspector, functions: host.functions)
            var found = 0
            try reader.scan { _ in found += 1 }
            #expect(found + reader.damages.count == 3 && found >= 2)
            var damages = 0
            try reader.verify(OperationControl(), found: { _ in }, damage: { _ in damages += 1 })
            #expect(damages == 1, "turn \(turn)")
            host.records = sound
        }
        #expect(try StorageConformance.read(writer, places[2]) == records[2])
        host.caches["x"]?[5] ^= 1
        #expect(try writer.cacheGet("x") == nil)
        host.caches["x"] = [1]
        #expect(try writer.cacheGet("x") == nil)
    }

    @Test func isClosedAndReleasedOnce() throws {
        let host = ArrayHost()
        do {
            let storage = CallbackStorage(functions: host.functions)
            try storage.close(discarding: false)
            try storage.close(discarding: false)
            #expect(host.closes == 1 && host.releases == 0)
        }
        #expect(host.closes == 1 && host.releases == 1)
    }
}
