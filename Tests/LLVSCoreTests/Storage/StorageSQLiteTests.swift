import CSQLite
import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// The SQLite storage beyond the conformance suite.
@Suite struct StorageSQLiteTests {
    let directory = TemporaryDirectory()
    var path: String { directory.path + "/store.sqlite" }

    func open(_ change: (inout SQLiteStorage.Options) -> Void = { _ in }) throws -> SQLiteStorage {
        var options = SQLiteStorage.Options()
        options.inspector = StorageFileTests.inspector
        change(&options)
        return try SQLiteStorage(path: path, options: options)
    }

    func record(_ name: String, _ count: Int = 30) -> [UInt8] {
        Array(name.utf8) + [0x20] + StorageConformance.bytes(seed: UInt64(count), count: count)
    }

    func code(_ body: () throws -> Void) -> StoreError.Code? {
        do { try body() } catch { return (error as? StoreError)?.code }
        return nil
    }

    /// Changes the database without the storage.
    func sql(_ text: String) throws {
        _ = try OpenFile(path, O_RDWR | O_CREAT)
        let connection = try SQLiteConnection(path, .write)
        try connection.run(text, doing: "Testing")
        connection.close()
    }

    func write(_ bytes: [UInt8]) throws {
        try? System.unlink(path)
        let file = try OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC)
        try bytes.borrowed { (b) throws(Errno) in try FileSystem().write(file.descriptor, b, at: 0) }
    }

    func contents() throws -> [UInt8] {
        let file = try OpenFile(path, O_RDONLY)
        var bytes = [UInt8](repeating: 0, count: Int(try System.status(file.descriptor).size))
        _ = try bytes.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: 0) }
        return bytes
    }

    /// Each of many threads reads a version while it scans. None waits for a connection that another thread holds for its scan.
    @Test func manyScansAtOnceReadVersionsMeanwhile() throws {
        let storage = try open(), threads = SQLiteReaders.limit + 4, lock = Lock()
        try StorageConformance.append(storage, [record("A")])
        var inside = 0, read = 0
        let finished = Parallel.finishes {
            let errors = Parallel.run(threads: threads, times: 1) { _, _ in
                try storage.verify(
                    OperationControl(),
                    found: { found in
                        lock.withLock { inside += 1 }
                        while lock.withLock({ inside < threads }) { usleep(1_000) }
                        var bytes = [UInt8](repeating: 0, count: Int(found.place.length))
                        try bytes.withUnsafeMutableBytes { try storage.read(found.place, at: 0, into: $0) }
                        lock.withLock { read += bytes == record("A") ? 1 : 0 }
                    }, damage: { _ in })
            }
            lock.withLock { read -= errors.count }
        }
        #expect(finished && lock.withLock { read } == threads)
        if finished { try storage.close(discarding: false) }
    }

    @Test func refusesWhatIsNoStore() throws {
        #expect(code { _ = try open { $0.create = false } } == .notFound)
        #expect(code { _ = try open { $0.readOnly = true } } == .notFound)
        #expect(code { _ = try SQLiteStorage(path: directory.path) } == .notAStore)
        #expect(code { _ = try SQLiteStorage(path: directory.path + "/none/x.sqlite") } == .notFound)
        #expect(code { _ = try SQLiteStorage(path: "") } == .invalidArgument)
        try write(Array(String(repeating: "a letter to a friend\n", count: 100).utf8))
        #expect(code { _ = try open() } == .notAStore)
        #expect(code { _ = try SQLiteStorage(path: path + "/x") } == .notADirectory)
        try System.unlink(path)
        try write([0x61])
        #expect(code { _ = try open() } == .notAStore)
        try System.unlink(path)
        try sql("CREATE TABLE mine(x)")
        #expect(code { _ = try open() } == .notAStore)
        #expect(code { _ = try open { $0.readOnly = true } } == .notAStore)
    }

    @Test func refusesANewerFormat() throws {
        try open().close(discarding: false)
        try sql("PRAGMA user_version=2")
        #expect(code { _ = try open() } == .newerFormat)
        #expect(code { _ = try open { $0.readOnly = true } } == .newerFormat)
    }

    /// SQLite would continue to write into deleted files.
    @Test(arguments: ["all", "log", "replaced", "moved"]) func aDeletedDatabaseTakesNoVersions(_ what: String) throws {
        for durability in [Durability.full, .normal] {
            let storage = try open { $0.durability = durability }
            let reader = try open { $0.readOnly = true }
            try StorageConformance.append(storage, [record("A")])
            #expect(try StorageConformance.scan(reader) == [record("A")])
            switch what {
            case "all": for suffix in ["", "-wal", "-shm"] { try System.unlink(path + suffix) }
            case "log": try System.unlink(path + "-wal")
            case "replaced":
                let other = try SQLiteStorage(path: path + "-other")
                try other.close(discarding: false)
                try System.rename(path + "-other", path)
            default: try System.rename(path, path + "-moved")
            }
            #expect(code { try StorageConformance.append(storage, [record("B")]) } == .notFound)
            #expect(code { try storage.cachePut("x", [1]) } == .notFound)
            #expect(code { _ = try StorageConformance.scan(storage) } == .notFound)
            #expect(code { _ = try StorageConformance.scan(reader) } == .notFound)
            if durability == .normal { #expect(code { try storage.sync() } == .unknownOutcome) }
            if what == "moved" {
                // After the file was moved back, the storage uses it again.
                try System.rename(path + "-moved", path)
                try StorageConformance.append(storage, [record("B")])
            }
            try storage.close(discarding: false)
            try reader.close(discarding: false)
            if what == "moved" { #expect(try StorageConformance.scan(open()) == [record("A"), record("B")]) }
            for suffix in ["", "-wal", "-shm"] { try? System.unlink(path + suffix) }
        }
    }

    @Test func changedRowsAreReportedAndSkipped() throws {
        let storage = try open()
        try StorageConformance.append(storage, [record("A"), record("B"), record("C", 200_000), record("D", 200_000), record("E")])
        try storage.close(discarding: false)
        try sql(
            """
            UPDATE records SET data = CAST('B' || substr(data, 2, 28) || 'xx' AS BLOB) WHERE seq = 2;
            UPDATE chunks SET data = zeroblob(65536) WHERE seq = 1;
            """)
        let reader = try open()
        var places: [RecordPlace] = []
        try reader.scan { places.append($0.place) }
        #expect(places.count == 3)
        #expect(reader.damages.count == 2)
        #expect(reader.damages.first?.version?.description == "B")
        // A later piece of D. A piece that exists is read, and verified by the parts of the value; one that is missing cannot be.
        try sql("UPDATE chunks SET checksum = 7 WHERE seq = 6")
        #expect(try StorageConformance.read(reader, places[1]) == record("D", 200_000))
        try sql("DELETE FROM chunks WHERE seq = 6")
        #expect(try StorageConformance.read(reader, places[1], 0, 65_536) == Array(record("D", 200_000).prefix(65_536)))
        #expect(code { _ = try StorageConformance.read(reader, places[1]) } == .damaged)
        var met: [StorageDamage] = [], found = 0
        try reader.verify(OperationControl(), found: { _ in found += 1 }, damage: { met.append($0) })
        #expect(met.count == 3 && found == 2)
    }

    /// A row before this handle's own is deleted, without having been read, and the own row gets the highest number.
    @Test func aRowOfTheHighestNumber() throws {
        let storage = try open(), other = try open()
        try StorageConformance.append(other, [record("A"), record("B")])
        try StorageConformance.append(storage, [record("C")])
        try sql("DELETE FROM records WHERE seq = 2; UPDATE records SET seq = 9223372036854775807 WHERE seq = 3")
        var found = 0
        try storage.scan { _ in found += 1 }
        #expect(found == 2)
        #expect(code { try StorageConformance.append(storage, [record("D")]) } == .damaged)
    }

    @Test func flippedBytesAreDetectedOrHarmless() throws {
        let records = (0..<40).map { record("V\($0)", $0 * 20) } + [record("LARGE", 150_000)]
        let storage = try open()
        for record in records { try StorageConformance.append(storage, [record]) }
        try storage.close(discarding: false)
        let bytes = try contents()
        var random = SeededRandom(seed: 3)
        for turn in 0..<300 {
            var flipped = bytes
            let at = turn < 100 ? turn : Int.random(in: 0..<bytes.count, using: &random)
            flipped[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            try write(flipped)
            do {
                let reader = try open { $0.readOnly = true }
                let found = try StorageConformance.scan(reader)
                // The pieces of a large record are checked by a verification, and when its parts are read.
                #expect(found.allSatisfy { records.contains($0) || $0.count == records[40].count }, "offset \(at)")
                try reader.verify(OperationControl(), found: { _ in }, damage: { _ in })
                try reader.close(discarding: false)
            } catch let error as StoreError {
                #expect([.damaged, .notAStore, .newerFormat, .io].contains(error.code), "offset \(at): \(error)")
            }
        }
    }

    @Test func aFullDatabaseStoresNothing() throws {
        let storage = try open()
        try StorageConformance.append(storage, [record("A")])
        try storage.writer?.run("PRAGMA max_page_count=20", doing: "Testing")
        #expect(code { try StorageConformance.append(storage, [record("B"), record("C", 400_000)]) } == .noSpace)
        #expect(try StorageConformance.scan(storage).isEmpty)
        try StorageConformance.append(storage, [record("D")])
        try storage.close(discarding: false)
        #expect(try StorageConformance.scan(open()) == [record("A"), record("D")])
    }

    @Test func manyHandlesAppendAtOnce() throws {
        let handles = try (0..<4).map { _ in try open { $0.durability = .normal } }
        let failures = Parallel.run(threads: 4, times: 50) { thread, turn in
            try StorageConformance.append(handles[thread], [record("T\(thread)-\(turn)"), record("U\(thread)-\(turn)", 70_000)])
        }
        #expect(failures.isEmpty)
        for handle in handles {
            #expect(try StorageConformance.scan(handle).count == 300)
            #expect(try StorageConformance.scan(handle).isEmpty)
        }
    }
}
