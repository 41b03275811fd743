import LLVSExchange
import LLVSTestHelpers
import LLVSUpkeep
import Testing

@testable import LLVSCore

/// Copying the whole parts of a damaged store into a new one. (Tests/Damage damages every byte.)
@Suite struct SalvageTests {
    /// The positions of `bytes` in a file.
    private static func offsets(of bytes: [UInt8], in file: [UInt8]) -> [Int] {
        guard file.count >= bytes.count else { return [] }
        return (0...(file.count - bytes.count)).filter { file[$0] == bytes[0] && file[$0..<($0 + bytes.count)].elementsEqual(bytes) }
    }
    private static func flip(_ bytes: String, in path: String) throws {
        var file = try readFile(path)
        let found = offsets(of: Array(bytes.utf8), in: file)
        #expect(!found.isEmpty)
        for offset in found { file[offset] ^= 1 }
        try writeFile(path, file)
    }
    private static func file(_ kind: Int, _ directory: String) throws -> String {
        guard kind == 0 else { return directory + "/store.sqlite" }
        let name = try #require(try System.names(in: directory + "/store/segments").first { $0.hasSuffix(".seg") })
        return "\(directory)/store/segments/\(name)"
    }
    private static func salvage(_ kind: Int, _ directory: String, target: Int = 0) throws -> (SalvageReport, Store) {
        var options = Store.Options(), targetOptions = Store.Options()
        options.storage = DiskStore.kinds[kind].storage
        targetOptions.storage = DiskStore.kinds[target].storage
        let path = directory + "/salvaged",
            report = try Salvage.run(directory + (kind == 0 ? "/store" : "/store.sqlite"), options, into: path, targetOptions)
        #expect(try System.names(in: directory).filter { $0.contains(".salvage-") } == [])
        let store = try Store(path: path, options: targetOptions)
        #expect(try store.verifyRecords(OperationControl()).isWhole)
        return (report, store)
    }

    @Test(arguments: [0, 1]) func whereThereIsNoStoreNothingIsMade(kind: Int) throws {
        try withTemporaryDirectory { directory in
            var options = Store.Options()
            options.storage = DiskStore.kinds[kind].storage
            try System.mkdir(directory + "/other")
            try writeFile(directory + "/other/letter", bytes("Dear all"))
            for (path, expected) in [
                ("/none", StoreError.Code.notFound), ("/other", .notAStore), ("/other/letter", kind == 0 ? .notADirectory : nil),
            ] {
                guard let expected else { continue }
                #expect(code { _ = try Salvage.run(directory + path, options, into: directory + "/salvaged") } == expected)
                #expect(try System.names(in: directory) == ["other"])
            }
        }
    }

    /// A salvage refuses the damaged store as its target, even under another path.
    @Test(arguments: [0, 1]) func aSalvageDoesNotWriteIntoTheDamagedStore(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(kind, directory)
            _ = try store.set(["a": "1"], nil)
            try store.close()
            symlink(directory, directory + "/link")
            var options = Store.Options()
            options.storage = DiskStore.kinds[kind].storage
            let path = directory + (kind == 0 ? "/store" : "/store.sqlite")
            let inside =
                kind == 0
                ? ["/store", "/store/", "/store/new", "/store/segments/a/b", "/link/store/../store/new"]
                : ["/store.sqlite", "/link/store.sqlite"]
            for target in inside {
                #expect(code { _ = try Salvage.run(path, options, into: directory + target) } == .invalidArgument, "\(target)")
            }
            if kind == 0 { #expect(try Set(System.names(in: path)).isSubset(of: ["llvs-store", "segments", "cache"])) }
            #expect(try Salvage.run(path, options, into: directory + "/store-new").versions == 1)
        }
    }

    /// Versions a, b, c, d on one line. A value that `b` stored is damaged; `c` stored the same id again, `d` another one.
    @Test(arguments: [(0, 0), (0, 1), (1, 0), (1, 1)]) func aDamagedValueCostsTheVersionsThatShowIt(kind: Int, target: Int) throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(kind, directory)
            let a = try store.set(["kept": "1", "overwritten": "1", "lost": "1"], nil)
            let b = try store.set(["overwritten": "DAMAGE", "lost": "1"], a)
            let c = try store.set(["overwritten": "3"], b)
            let d = try store.makeVersion(
                basedOn: c.id, changes: [.update(id("new"), data: bytes("4"))],
                metadata: Metadata([(Metadata.branchKey, bytes("\"draft\""))]))
            try store.close()
            try Self.flip("DAMAGE", in: Self.file(kind, directory))
            let (report, salvaged) = try Self.salvage(kind, directory, target: target)
            #expect(try report.versions == 1 && report.waiting == 2 && salvaged.statistics().pending == 2)
            #expect(try salvaged.contents(a.id) == ["kept": "1", "overwritten": "1", "lost": "1"])
            let made = try #require(report.made.first)
            #expect(report.made.count == 1 && made.original == d.id && made.isComplete)
            #expect(try salvaged.contents(made.version) == ["kept": "1", "overwritten": "3", "lost": "1", "new": "4"])
            let version = try #require(try salvaged.version(made.version))
            #expect(version.predecessors == [a.id] && version.branch == "draft")
            #expect(version.metadata[Salvage.metadataKey] == bytes("{\"version\":\"\(d.id)\",\"complete\":true}"))
            #expect(report.damages.contains { $0.version == b.id && $0.lost == .value && $0.value == (try? id("overwritten")) })
            // Waiting versions appear when another replica sends the lost ones.
            let other = try Store.inMemory(), memory = MemoryTransport(name: "\(VersionID.random())")
            let x = try other.add([
                .init(
                    version: a,
                    changes: [
                        .insert(id("kept"), data: bytes("1")), .insert(id("lost"), data: bytes("1")),
                        .insert(id("overwritten"), data: bytes("1")),
                    ]),
                .init(version: b, changes: [.update(id("lost"), data: bytes("1")), .update(id("overwritten"), data: bytes("DAMAGE"))]),
            ])
            #expect(x.count == 2)
            _ = try Exchange(store: other, transport: memory).send()
            _ = try Exchange(store: salvaged, transport: memory).retrieve()
            #expect(try salvaged.contents(d.id) == ["kept": "1", "overwritten": "3", "lost": "1", "new": "4"])
            try salvaged.close()
        }
    }

    @Test(arguments: [0, 1]) func aLostVersionIsNamedAndItsSuccessorsAreKept(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(kind, directory)
            let a = try store.set(["x": "1", "y": "1"], nil)
            let b = try store.makeVersion(
                basedOn: a.id, changes: [.update(id("x"), data: bytes("2"))], metadata: Metadata([(bytes("key"), bytes("DAMAGE"))]))
            let c = try store.set(["z": "3"], b)
            try store.close()
            try Self.flip("DAMAGE", in: Self.file(kind, directory))
            let (report, salvaged) = try Self.salvage(kind, directory)
            #expect(report.versions == 1 && report.waiting == 1 && !report.isWhole)
            #expect(report.damages.contains { $0.version == b.id && $0.lost == .version })
            let made = try #require(report.made.first)
            // What b changed is unknown, and so is its predecessor. The new version builds on the version stored before b, which is most
            // likely the predecessor.
            #expect(made.original == c.id && !made.isComplete)
            #expect(
                try salvaged.contents(made.version) == ["x": "1", "y": "1", "z": "3"] && salvaged.contents(a.id) == ["x": "1", "y": "1"])
            #expect(try salvaged.version(made.version)?.predecessors == [a.id])
            #expect(
                report.damages.contains { $0.version == c.id && $0.lost == .nothing && $0.message.contains("is based on version \(a.id)") })
            try salvaged.close()
        }
    }

    /// If nothing whole precedes the damage in its file, the new version has no predecessor, and the report says so.
    @Test(arguments: [0, 1]) func versionsWithoutPredecessorsAreReported(kind: Int) throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(kind, directory)
            let a = try store.makeVersion(
                basedOn: nil, changes: [.insert(id("x"), data: bytes("1"))], metadata: Metadata([(bytes("key"), bytes("DAMAGE"))]))
            let b = try store.set(["z": "3"], a)
            try store.close()
            try Self.flip("DAMAGE", in: Self.file(kind, directory))
            let (report, salvaged) = try Self.salvage(kind, directory)
            let made = try #require(report.made.first)
            #expect(try made.original == b.id && !made.isComplete && salvaged.contents(made.version) == ["z": "3"])
            #expect(report.damages.contains { $0.version == b.id && $0.lost == .nothing && $0.message.contains("is based on none") })
            try salvaged.close()
        }
    }

    @Test func aDatabaseThatSQLiteRefusesIsSalvaged() throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(1, directory)
            let large = Filling.pattern(200_000)
            var version = try store.makeVersion(basedOn: nil, changes: [.insert(id("large"), data: large)])
            for i in 0..<50 { version = try store.set(["k": String(repeating: "\(i)", count: i * 20)], version) }
            let state = try store.value(id("k"), at: version.id)?.data
            try store.close()
            var file = try readFile(directory + "/store.sqlite")
            for i in 0..<100 { file[i] = 0xFF }
            try writeFile(directory + "/store.sqlite", file)
            #expect(code { _ = try DiskStore.open(1, directory) } == .notAStore)
            let (report, salvaged) = try Self.salvage(1, directory)
            #expect(
                report.versions == 51 && report.waiting == 0 && report.made.isEmpty && !report.damages.isEmpty
                    && report.damages.allSatisfy { $0.lost == .unfinished })
            #expect(
                try salvaged.value(id("large"), at: version.id)?.data == large && salvaged.value(id("k"), at: version.id)?.data == state)
            try salvaged.close()
        }
    }

    @Test func aLargeValueIsSalvagedWithItsFile() throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(0, directory)
            let large = Filling.pattern(3_000_000)
            let a = try store.makeVersion(basedOn: nil, changes: [.insert(id("large"), data: large), .insert(id("b"), data: [1])])
            try store.close()
            for target in [0, 1] {
                let (report, salvaged) = try Self.salvage(0, directory, target: target)
                #expect(try report.isWhole && salvaged.value(id("large"), at: a.id)?.data == large)
                try salvaged.close()
                TemporaryDirectory.remove(directory + "/salvaged")
                for suffix in ["-wal", "-shm"] { TemporaryDirectory.remove(directory + "/salvaged" + suffix) }
            }
        }
    }

    @Test func itNeedsAnEmptyTarget() throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(0, directory)
            _ = try store.set(["x": "1"], nil)
            try store.close()
            #expect(code { _ = try Salvage.run(directory + "/store", into: directory + "/store") } == .invalidArgument)
            #expect(code { _ = try Salvage.run(directory + "/nothing", into: directory + "/new") } == .notFound)
        }
    }
}

/// Damage must not prevent other operations.
@Suite struct DamageTests {
    /// A record of a newer format is lost alone, and versions that build on it wait.
    @Test func aRecordOfANewerFormatStopsNothingElse() throws {
        let newer = try hostileRecord(plainVersion("newer"), [.insert(id("k"), data: [1])])
        let version = try plainVersion("newer")
        var record = newer
        record[0] = 2
        // The checksum of the header covers the format.
        let size = 28 + Int(record[4]) + Int(record[5]) << 8
        let crc = record.withUnsafeBytes { b in
            Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[28..<size]), from: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<24])))
        }
        for i in 0..<4 { record[24 + i] = UInt8(truncatingIfNeeded: crc >> (8 * UInt32(i))) }
        let (store, _) = try hookedStore([record, try hostileRecord(plainVersion("good"), [.insert(try id("k"), data: [1])])])
        #expect(try store.value(id("k"), at: VersionID("good"))?.data == [1])
        #expect(try !store.contains(version.id) && store.statistics().damaged == 1)
        let report = try store.verifyRecords(OperationControl())
        #expect(report.damages.count >= 1 && report.damages.contains { $0.message.contains("format 2") })
        _ = try store.makeVersion(basedOn: VersionID("good"), changes: [.update(id("k"), data: [2])])
    }

    /// The log reports damage with no lock held: its receiver may use the store.
    @Test func theLogMayCallTheStoreThatIsDamaged() throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(0, directory)
            var last = try store.set(["a": "DAMAGE"], nil)
            for i in 0..<3 { last = try store.set(["b": "\(i)"], last) }
            let reader = try DiskStore.open(0, directory, readOnly: false)
            let writer = try DiskStore.open(0, directory)
            let x = try writer.set(["x": "DAMAGE"], last), y = try writer.set(["x": "2"], x)
            _ = y
            let names = try System.names(in: directory + "/store/segments").filter { $0.hasSuffix(".seg") }
            for name in names {
                let path = "\(directory)/store/segments/\(name)"
                var file = try readFile(path)
                guard let at = (0..<file.count - 6).first(where: { file[$0..<$0 + 6].elementsEqual("DAMAGE".utf8) }) else { continue }
                file[at] ^= 1
                // In place, since the writer has the file open.
                let descriptor = try System.open(path, O_WRONLY)
                _ = try file.withUnsafeBytes { try System.pwrite(descriptor, $0, at: 0) }
                System.close(descriptor)
            }
            let calls = CallCount()
            Log.setSink(level: .warning) { _, message in
                guard message.contains(directory) else { return }
                calls.add()
                _ = try? reader.makeVersion(basedOn: nil, changes: [.insert(ValueID(unchecked: [65]), data: [1])])
                _ = try? reader.reloadHistory()
            }
            defer { Log.setSink(level: .off, nil) }
            expectEnd { _ = try reader.reloadHistory() }
            #expect(calls.count > 0)
            try reader.close()
            try? writer.close()
            try? store.close()
        }
    }

    @Test func aRestoreThatWasStoppedCanBeCalledAgain() throws {
        let source = try Store.inMemory(), memory = MemoryTransport(name: "\(VersionID.random())")
        var last: Version?
        for i in 0..<1_200 { last = try source.set(["k": "\(i)"], last) }
        _ = try Snapshots(store: source, transport: memory).put()
        let target = try Store.inMemory()
        #expect(
            code {
                _ = try Snapshots(store: target, transport: memory).restore(
                    control: OperationControl(progress: { $0.stage != .adding || $0.completed <= 1_000 }))
            } == .cancelled)
        let kept = try target.statistics().versions
        #expect(kept > 1 && kept < 1_200)
        _ = try Snapshots(store: target, transport: memory).restore()
        #expect(try target.statistics().versions == 1_200)
        // A store with versions of another origin is still refused.
        _ = try target.set(["mine": "1"], nil)
        #expect(code { _ = try Snapshots(store: target, transport: memory).restore() } == .storeNotEmpty)
    }

    /// Works with 64 KiB of stack, however deeply folders are nested.
    @Test func foldersAreRemovedWithoutFollowingLinks() throws {
        try withTemporaryDirectory { directory in
            try System.mkdir(directory + "/outside")
            try writeFile(directory + "/outside/letter", bytes("Dear all"))
            try System.mkdir(directory + "/made")
            var deep = directory + "/made"
            for _ in 0..<300 {
                symlink(directory + "/outside", deep + "/link")
                symlink("letter", deep + "/letter")
                try writeFile(deep + "/file", [1])
                deep += "/d"
                try System.mkdir(deep)
            }
            final class Work: Sendable { let folder: Folder; init(_ folder: Folder) { self.folder = folder } }
            let work = Work(Folder(directory).folder("made"))
            var attributes = pthread_attr_t(), thread = pthread_t()
            pthread_attr_init(&attributes)
            pthread_attr_setstacksize(&attributes, 64 << 10)
            pthread_create(
                &thread, &attributes,
                { work in
                    Unmanaged<Work>.fromOpaque(work!).takeUnretainedValue().folder.remove()
                    return nil
                }, Unmanaged.passUnretained(work).toOpaque())
            pthread_join(thread, nil)
            #expect(try System.names(in: directory) == ["outside"] && System.names(in: directory + "/outside") == ["letter"])
        }
    }

    @Test func unfinishedBlobsOfTheKilledAreTidiedAfterADay() throws {
        try withTemporaryDirectory { directory in
            let store = try DiskStore.open(0, directory)
            _ = try store.makeVersion(basedOn: nil, changes: [.insert(id("large"), data: [UInt8](repeating: 1, count: 2 << 20))])
            try store.close()
            let blobs = directory + "/store/blobs/", old = blobs + "000102030405060708090a0b0c0d0e0f.new",
                new = blobs + "100102030405060708090a0b0c0d0e0f.new"
            let held = blobs + "200102030405060708090a0b0c0d0e0f.new", foreign = blobs + "notes.new"
            for path in [old, new, held, foreign] { try writeFile(path, [1, 2, 3]) }
            for path in [old, held, foreign] {
                var times = [timespec(tv_sec: 1_000_000, tv_nsec: 0), timespec(tv_sec: 1_000_000, tv_nsec: 0)]
                #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
            }
            let holder = try System.open(held, O_RDONLY)
            defer { System.close(holder) }
            try System.lockExclusively(holder)
            let again = try DiskStore.open(0, directory)
            _ = try again.makeVersion(basedOn: nil, changes: [.insert(id("large"), data: [UInt8](repeating: 2, count: 2 << 20))])
            let names = try System.names(in: directory + "/store/blobs").filter { $0.hasSuffix(".new") }.sorted()
            #expect(names == ["100102030405060708090a0b0c0d0e0f.new", "200102030405060708090a0b0c0d0e0f.new", "notes.new"])
            try again.close()
        }
    }

    /// JSON has no checksums, but our version files contain a digest.
    @Test func aChangedByteInAnExchangeFileIsNoticed() throws {
        try withTemporaryDirectory { directory in
            let source = try Store.inMemory(), a = try source.set(["k": "hello"], nil)
            let folder = try FolderTransport(path: directory + "/shared")
            _ = try Exchange(store: source, transport: folder).send()
            let path = "\(directory)/shared/changes/\(a.id)"
            var file = try readFile(path)
            let at = try #require(
                file.firstIndex(of: UInt8(ascii: "G")) ?? file.indices.last { file[$0] == UInt8(ascii: "=") }.map { $0 - 2 })
            file[at] = file[at] == UInt8(ascii: "H") ? UInt8(ascii: "I") : UInt8(ascii: "H")
            try writeFile(path, file)
            let target = try Store.inMemory(), result = try Exchange(store: target, transport: folder).retrieve()
            #expect(
                result.versions.isEmpty && result.problems.map(\.name) == [a.id.description]
                    && result.problems.map(\.error.code) == [.damaged])
            // A device that finds it and has the version rewrites it.
            let again = Exchange(store: source, transport: folder)
            #expect(try again.retrieve(verifyKnown: true).problems.count == 1)
            #expect(try again.send().versions == [a.id])
            #expect(try Exchange(store: target, transport: folder).retrieve().versions == [a.id])
        }
    }
}

extension Store {
    fileprivate func contents(_ version: VersionID) throws -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: try values(at: version, limit: .max).map { ($0.id.description, String(decoding: $0.data, as: UTF8.self)) }
        )
    }
}

private final class CallCount: @unchecked Sendable {
    private let lock = Lock()
    private var value = 0
    func add() { lock.withLock { value += 1 } }
    var count: Int { lock.withLock { value } }
}
