import LLVSTestHelpers

#if DEBUG
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import CSQLite
import LLVS
import LLVSTestHelpers
import Testing
@testable import LLVSCore
@testable import LLVSExchange
@testable import LLVSUpkeep

/// Every loop over versions, ids or names polls its control in each turn. The tests count the polls, so one that is removed is noticed.
@Suite struct ControlTests {
    final class Looks: @unchecked Sendable {
        private let lock = Lock()
        private(set) var number = 0
        func count() -> Int {
            lock.withLock {
                number += 1; return number
            }
        }
        var control: OperationControl {
            OperationControl(progress: { [self] _ in
                _ = count(); return true
            })
        }
    }

    /// Returns the number of steps that poll the control.
    private static func steps(_ body: (OperationControl) throws -> Void) throws -> Int {
        let looks = Looks()
        return try Work.looks.counting { try body(looks.control) }
    }
    private static func line(_ store: Store, _ count: Int, on first: Version? = nil) throws -> Version? {
        var last = first
        for i in 0..<count { last = try store.set(["x": "\(i)"], last) }
        return last
    }

    @Test func compactionLooksAtEachName() throws {
        let temporary = TemporaryFolder(), path = temporary.path + "/store", count = 30
        let storage = try FileStorage(path: path)
        // Counts steps instead of calls of the callback, which is called only now and then while names are listed.
        func looks() throws -> Int { try Self.steps { _ = try storage.compact(.request, $0) } }
        let none = try looks()
        func hex(_ i: Int) -> String { String(repeating: "a", count: 26) + String(1_000 + i) }
        for i in 0..<count { try temporary.write("store/segments/ff\(hex(i)).seg", "no segment") }
        let some = try looks()
        #expect(some == none + 2 * count, "at each name, and at the head of each segment")
        for i in 0..<count { try temporary.write("store/segments/00\(hex(i)).seg", "no segment") }
        for i in 0..<count { try temporary.write("store/segments/0000\(hex(i).dropFirst(2)).seg", "no segment") }
        let more = try looks()
        #expect(more == some + 2 * count + 3 * count, "heads of folded segments")
        for i in 0..<count { try temporary.write("store/segments/.fold-\(i).tmp", "left") }
        #expect(try looks() == more + 2 * count, "leftovers")
    }

    /// Whole versions are visited seven times: when they are read, settled (twice), looked up in the new store, looked up among lost ones
    /// (twice), and when their values are counted.
    @Test func salvagingLooksAtEachVersionAndChange() throws {
        let temporary = TemporaryFolder(), count = 200
        func salvaged(_ path: String, _ target: String) throws -> Int {
            try Self.steps { _ = try Salvage.run(temporary.path + path, into: temporary.path + target, Store.Options(), control: $0) }
        }
        let whole = try Store(path: temporary.path + "/whole")
        _ = try Self.line(whole, count)
        try whole.close()
        // Two more steps for the name of the new store's segment.
        let ofWhole = try salvaged("/whole", "/whole-salvaged")
        #expect(ofWhole == 7 * count + 2, "\(ofWhole)")
        // Descendants of lost versions are also traced back, and their changes are read again.
        let lost = try Store(path: temporary.path + "/lost"), first = try Self.line(lost, 1)
        try lost.close()
        let segments = try System.names(in: temporary.path + "/lost/segments")
        let again = try Store(path: temporary.path + "/lost")
        _ = try Self.line(again, count, on: first)
        try again.close()
        for name in segments { try System.unlink(temporary.path + "/lost/segments/" + name) }
        let steps = try salvaged("/lost", "/lost-salvaged")
        // The salvage also determines which versions are kept, are ends or are on several lines, and where their lines branch off.
        #expect(steps == 13 * count + 6, "\(steps)")
        // Many changes in one version.
        let wide = try Store(path: temporary.path + "/wide")
        try wide.makeVersion(basedOn: nil, changes: (0..<count).map { .insert(try ValueID("id \($0)"), data: [1]) })
        try wide.close()
        let ofWide = try salvaged("/wide", "/wide-salvaged")
        #expect(ofWide == count + 8, "\(ofWide)")
    }

    @Test func salvagingADatabaseLooksAtEachRow() throws {
        let temporary = TemporaryFolder(), count = 100
        var options = Store.Options()
        options.storage = .sqlite
        let store = try Store(path: temporary.path + "/store", options: options)
        _ = try Self.line(store, count)
        // One record in many pieces.
        try store.makeVersion(
            basedOn: nil,
            changes: [.insert(ValueID("large"), data: StorageConformance.bytes(seed: 1, count: 50 * SQLiteStorage.chunkSize))])
        try store.close()
        let steps = try Self.steps {
            _ = try Salvage.run(temporary.path + "/store", options, into: temporary.path + "/new", Store.Options(), control: $0)
        }
        // The pieces are visited twice: for the checksum, and to be written.
        #expect(steps == 8 * (count + 1) + 2 * 51 + 2, "\(steps)")
    }

    @Test func snapshotsLookAtEachChange() throws {
        let store = try memoryStore(), count = 3_000
        try store.makeVersion(basedOn: nil, changes: (0..<count).map { .insert(try ValueID("id \($0)"), data: [1]) })
        let place = MemoryTransport(name: "looks \(UInt64.random(in: 0 ... .max))")
        let put = try Self.steps { _ = try Snapshots(store: store, transport: place).put(control: $0) }
        #expect(put == count)
        for i in 0..<count { try place.writeSnapshotFile("llvs-v1/chunk-\(5_000 + i)", [1]) }
        // Files of an older snapshot are removed after the new one is complete, without polling: so a single call does not remove all.
        #expect(try Self.steps { _ = try Snapshots(store: store, transport: place).put(control: $0) } == count)
        let left = try place.snapshotFileNames().filter { (Int($0.dropFirst("llvs-v1/chunk-".count)) ?? 0) >= 5_000 }
        #expect(left.count == count - 1_000, "\(left.count)")
        // Each change is read and added, once to the rehearsal and once to the store.
        let target = try memoryStore()
        let restored = try Self.steps { _ = try Snapshots(store: target, transport: place).restore(control: $0) }
        #expect(restored >= 2 * count, "\(restored)")
        #expect(try target.statistics().versions == 1)
        let looks = Looks()
        let stopped = #expect(throws: StoreError.self) {
            try Snapshots(store: memoryStore(), transport: place).restore(control: OperationControl(progress: { _ in looks.count() < 6 }))
        }
        #expect(stopped?.code == .cancelled && looks.number == 6)
    }

    @Test func importsLookAtEachNameNodeAndValue() throws {
        let temporary = TemporaryFolder(), count = 300
        for folder in [
            "versions", "maps", "maps/__llvs_values", "maps/__llvs_values/__", "maps/__llvs_values/__/llvs_root",
            "maps/__llvs_values/__/llvs_root/r",
        ] {
            try FolderFiles.makeDirectory(temporary.path + "/" + folder)
        }
        try FolderFiles.makeDirectory(temporary.path + "/versions/ro")
        try temporary.write("versions/ro/ot.json", #"{"identifier":"root","timestamp":1,"metadata":[]}"#)
        let references = (0..<count).map { #"{"valueReference":{"valueId":"id \#($0)","storedVersionId":"other"}}"# }.joined(separator: ",")
        try temporary.write("maps/__llvs_values/__/llvs_root/r/oot.json", #"{"children":{"values":[\#(references)]}}"#)
        func steps() throws -> Int {
            try Self.steps { control in _ = try StoreImporter.importStore(at: temporary.path, into: memoryStore(), control: control) }
        }
        let few = try steps()
        #expect(few >= 2 * count, "values of the index, and changes")
        for i in 0..<count { try temporary.write("beside \(i)", "x") }
        let more = try steps()
        #expect(more == few + 2 * count, "names beside the folders")
        for i in 0..<count { try FolderFiles.makeDirectory(temporary.path + "/versions/v\(i)") }
        let most = try steps()
        #expect(most == more + 2 * count, "folders of versions")
        for i in 0..<count { try temporary.write("versions/v0/\(i).json", "{}") }
        #expect(try steps() >= most + 2 * count, "version files")
    }

    /// Sorting after reading a file polls as well.
    @Test func manyKeysAndChangesOfOneFileAreLookedAt() throws {
        final class Pieces: PieceReader, @unchecked Sendable {
            let bytes: [UInt8]
            var position = 0, looks = 0, most = Int.max
            init(_ text: String) { bytes = Array(text.utf8) }
            var size: Int { bytes.count }
            func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
                let count = min(buffer.count, bytes.count - position)
                buffer.copyBytes(from: bytes[position..<position + count])
                position += count
                return count
            }
            func look() throws {
                looks += 1
                if looks > most { throw OperationControl.ended("Trying") }
            }
        }
        let count = 70_000, keyCount = Limits.metadataKeys, id = try #require(VersionID(validating: "v"))
        let keys = (0..<keyCount).map { #""\#($0)",{"data":""}"# }.reversed().joined(separator: ",")
        let version = #"{"version":{"identifier":"v","timestamp":1,"metadata":[\#(keys)]}}"#
        let changes = "[" + (0..<count).map { #"{"remove":"\#($0)"}"# }.reversed().joined(separator: ",") + "]"
        let one = Pieces(version), other = Pieces(changes)
        #expect(try InterchangeDecoder.version(.pieces(one), name: id).metadata.entries.count == keyCount)
        #expect(try InterchangeDecoder.changes(.pieces(other), of: id).count == count)
        #expect(one.looks > 2 && other.looks > 4)
        let stopped = Pieces(changes)
        stopped.most = 2
        #expect(throws: PieceFailure.self) { _ = try InterchangeDecoder.changes(.pieces(stopped), of: id) }
        #expect(stopped.looks == 3)
    }

    @Test func retrievingLooksAtEachVersionThatWaits() throws {
        let temporary = TemporaryFolder(), count = 2_000
        for folder in ["versions", "changes"] { try FolderFiles.makeDirectory(temporary.path + "/" + folder) }
        for i in 0..<count {
            try temporary.write(
                "versions/v\(i)",
                #"{"version":{"identifier":"v\#(i)","timestamp":1,"metadata":[],"predecessors":{"idOfFirst":"none"}}}"#)
        }
        let exchange = try Exchange(store: memoryStore(), transport: FolderTransport(path: temporary.path))
        // Each file is listed, found to lack its changes, found to be absent from the store, requested, sorted (twice), and found to wait.
        #expect(try Self.steps { _ = try exchange.retrieve(control: $0) } >= 7 * count)
    }

    /// In a folder full of foreign names, a send visits each name when it is listed (twice), when it checks which versions since the last
    /// send are already there, and when it looks for names that differ only in case.
    @Test func sendingLooksAtEachNameOfOthers() throws {
        func steps(_ count: Int) throws -> Int {
            let temporary = TemporaryFolder(), store = try memoryStore()
            for folder in ["versions", "changes"] { try FolderFiles.makeDirectory(temporary.path + "/" + folder) }
            for i in 0..<count { try temporary.write("versions/none-\(i)", "") }
            let exchange = try Exchange(store: store, transport: FolderTransport(path: temporary.path))
            try store.makeVersion(basedOn: nil, changes: [], id: VersionID("mine"))
            try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("x"), data: [1])])
            return try Self.steps { _ = try exchange.send(control: $0) }
        }
        let few = try steps(1_000), more = try steps(3_000)
        #expect(more - few == 4 * 2_000, "\(few), \(more)")
    }

    @Test func namesOfSnapshotFilesAreLookedAt() throws {
        let temporary = TemporaryFolder(), count = 300
        let store = try memoryStore()
        _ = try Self.line(store, 1)
        let transport = try FolderTransport(path: temporary.path), snapshots = Snapshots(store: store, transport: transport)
        _ = try snapshots.put()
        for i in 0..<count { try temporary.write("snapshots/llvs-v1/other-\(i)", "x") }
        let found = try #require(try snapshots.find())
        #expect(try Self.steps { _ = try snapshots.lacksChunks(found, $0) } >= 3 * count)
    }

    /// Passes over all versions of the history, or all of its heads, release the lock and poll now and then.
    @Test func passesOverTheHistoryLook() throws {
        let store = try memoryStore(), count = 20_000, root = try VersionID("root")
        func received(_ id: String, _ behind: [VersionID]) throws -> Store.ReceivedVersion {
            let version = Version(id: try VersionID(id), predecessors: behind, timestamp: 1, valueDataSize: 0, metadata: Metadata())
            return Store.ReceivedVersion(version: version, changes: [])
        }
        _ = try store.add([received("root", [])] + (0..<count).map { try received("head\($0)", [root]) })
        store.records.knownDamage.note(try VersionID("head1"))
        let nothing = try store.coverage(by: [], complete: nil), heads = store.lock.withRead { Array(store.dag.headOrdinals) }
        let calls: [(String, (() throws -> Void) throws -> Int)] = [
            ("versions missing elsewhere", { try store.missing(from: nothing, $0).count }),
            ("damaged versions", { try store.damagedVersions($0).count + count }),
            ("ids that are computed", { try store.contentIDs(behind: 0, $0).count + count + 1 }),
            ("heads in order", { try store.newestFirst(heads, $0).count + 1 }),
            (
                "versions vouched for",
                { look in
                    var report = VerifyReport()
                    try store.countVouched([], &report, look)
                    return Int(report.unvouched)
                }
            ),
        ]
        for (name, call) in calls {
            var looks = 0
            #expect(try call { looks += 1 } == count + 1, "\(name)")
            #expect(looks >= count / 8_192, "\(name): \(looks) polls")
            looks = 0
            #expect(throws: CancellationError.self, "\(name)") {
                _ = try call {
                    looks += 1
                    if looks == 2 { throw CancellationError() }
                }
            }
            #expect(looks == 2, "\(name)")
        }
    }

    @Test func lookingForNewVersionsIsCancelled() throws {
        let temporary = TemporaryFolder(), token = CancelToken()
        let one = try Store(path: temporary.path + "/store"), other = try Store(path: temporary.path + "/store")
        _ = try Self.line(one, 3)
        token.cancel()
        let stopped = #expect(throws: StoreError.self) { try other.reloadHistory(control: OperationControl(token: token)) }
        #expect(stopped?.code == .cancelled)
        #expect(try other.reloadHistory() == 3)
    }

    // MARK: Waits within SQLite

    /// A wait for a locked database can be cancelled.
    @Test func waitsForALockAreCancelled() throws {
        let temporary = TemporaryFolder(), path = temporary.path + "/store"
        var options = Store.Options()
        options.storage = .sqlite
        // Far longer than any test takes.
        options.busyTimeout = 60
        let store = try Store(path: path, options: options), source = try memoryStore()
        let root = try store.set(["x": "0"], nil), a = try store.set(["x": "1"], root), b = try store.set(["y": "1"], root)
        let made = try source.set(["z": "1"], nil)
        let received = Store.ReceivedVersion(version: made, changes: try source.changes(madeIn: made.id))
        let blocker = try SQLiteConnection(path, .write)
        let calls: [(String, (OperationControl) throws -> Void)] = [
            ("adding", { _ = try store.add([received], control: $0) }),
            ("merging", { _ = try store.merge(a.id, with: b.id, arbiter: BuiltInArbiter.mostRecentChange, control: $0) }),
            ("merging heads", { _ = try store.mergeHeads(into: a.id, arbiter: BuiltInArbiter.mostRecentChange, control: $0) }),
        ]
        for (name, call) in calls {
            let token = CancelToken()
            try blocker.run("BEGIN IMMEDIATE", doing: "Blocking")
            var thread = pthread_t()
            // The cancellation takes effect wherever the call is by then. Most of the time the call waits for the lock.
            pthread_create(
                &thread, nil,
                { token in
                    usleep(100_000)
                    Unmanaged<CancelToken>.fromOpaque(token!).takeUnretainedValue().cancel()
                    return nil
                }, Unmanaged.passUnretained(token).toOpaque())
            let stopped = #expect(throws: StoreError.self, "\(name)") { try call(OperationControl(token: token)) }
            pthread_join(thread, nil)
            #expect(stopped?.code == .cancelled, "\(name)")
            try blocker.run("ROLLBACK", doing: "Blocking")
        }
        #expect(try store.statistics().versions == 3)
        guard case .added? = try store.add([received]).first else { Issue.record("it was not added"); return }
        // Opening the store waits as well, and the progress callback can cancel it.
        try store.close()
        try blocker.run("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE", doing: "Blocking")
        let looks = Looks()
        options.control = OperationControl(progress: { _ in looks.count() < 4 })
        let stopped = #expect(throws: StoreError.self) { try Store(path: path, options: options) }
        #expect(stopped?.code == .cancelled && looks.number == 4)
        blocker.close()
    }

    /// A statement over many rows polls meanwhile. Statements of the callback do not poll again.
    @Test func longStatementsAreCancelled() throws {
        let temporary = TemporaryFolder(), path = temporary.path + "/zone.sqlite"
        try temporary.write("zone.sqlite", "")
        let connection = try SQLiteConnection(path, .write)
        try connection.run("CREATE TABLE Zone(key TEXT, version TEXT, data BLOB)", doing: "Making")
        try connection.run("BEGIN", doing: "Making")
        for i in 0..<20_000 {
            try connection.query("INSERT INTO Zone VALUES (?1, 'v', x'00')", doing: "Making", bind: { $0.bind(1, "key \(i)") })
        }
        try connection.run("COMMIT", doing: "Making")
        func count(_ control: PacedControl) throws -> Int64 {
            try connection.watched(by: control) { try connection.integer("SELECT count(*) FROM Zone WHERE key = 'none'", doing: "Reading") }
        }
        let looks = Looks()
        #expect(
            try count(
                OperationControl(progress: { _ in
                    _ = looks.count(); try Waiting.look(); return true
                }).paced(.reading, doing: "Trying")) == 0)
        #expect(looks.number >= 10, "\(looks.number)")
        let few = Looks()
        let stopped = #expect(throws: StoreError.self) {
            try count(OperationControl(progress: { _ in few.count() < 3 }).paced(.reading, doing: "Trying"))
        }
        #expect(stopped?.code == .cancelled && few.number == 3)
    }
}
#endif
