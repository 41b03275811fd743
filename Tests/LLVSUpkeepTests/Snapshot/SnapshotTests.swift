import Foundation
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange
@testable import LLVSUpkeep

@Suite struct SnapshotTests {
    private func exampleStore() throws -> Store {
        let store = try Store.inMemory()
        _ = try Exchange(store: store, transport: FolderTransport(path: InterchangeVectors.path + "/folder")).retrieve()
        return store
    }
    private func folder(_ temporary: TemporaryFolder) throws -> FolderTransport {
        var options = FolderTransport.Options()
        options.durability = .normal
        return try FolderTransport(path: temporary.path, options: options)
    }
    /// Several chunks, with values that cross their boundaries.
    private func largeStore() throws -> Store { try SnapshotTests.large.get() }
    private static let large = Result {
        let store = try Store.inMemory()
        var random = SeededRandom(seed: 11), base: VersionID?
        for i in 0..<3 {
            let data = (0..<(3 << 20) / 8).map { _ in random.next() }.withUnsafeBytes { Array($0) }
            base = try store.makeVersion(basedOn: base, changes: [.insert(ValueID("v\(i)"), data: data), insert("w\(i)", "text")]).id
        }
        return store
    }

    @Test func aSnapshotIsTheStore() throws {
        let temporary = TemporaryFolder(), memory = MemoryTransport(name: "\(VersionID.random())")
        for transport in [memory, try folder(temporary)] as [any ExchangeTransport] {
            for source in [try exampleStore(), try largeStore()] {
                let put = try Snapshots(store: source, transport: transport).put()
                #expect(try Snapshots(store: source, transport: transport).manifest() == put)
                #expect(
                    try put.versionCount == UInt64(source.allVersionIDs().count)
                        && put.latestVersionID == source.mostRecentHead()?.id.description)
                #expect(try transport.snapshotFileNames().count == Int(put.chunkCount) + 1)
                for name in try transport.snapshotFileNames() { #expect(try (transport.readSnapshotFile(name)?.count ?? 0) <= 5_000_000) }
                let target = try Store.inMemory()
                let restored = try Snapshots(store: target, transport: transport).restore()
                #expect(restored.manifest == put && restored.problems.isEmpty)
                #expect(try target.hasSameVersions(as: source))
            }
        }
        #expect(try InterchangeVectors().differences(from: exampleStore()) == [])
    }

    @Test func directoriesOfOnesOwn() throws {
        let temporary = TemporaryFolder(), source = try exampleStore(), target = try Store.inMemory()
        let written = try Snapshots.write(source, to: temporary.path + "/snapshot")
        #expect(try Snapshots.restore(target, from: temporary.path + "/snapshot").manifest == written)
        #expect(try target.hasSameVersions(as: source))
        #expect(code { _ = try Snapshots.restore(try Store.inMemory(), from: temporary.path + "/none") } == .notFound)
        #expect(code { _ = try Snapshots.restore(try Store.inMemory(), from: temporary.path) } == .snapshotMissing)
    }

    @Test func onlyIntoAStoreThatIsEmptyOrHoldsOneVersion() throws {
        let memory = MemoryTransport(name: "\(VersionID.random())"), source = try exampleStore(), one = try Store.inMemory()
        _ = try Snapshots(store: source, transport: memory).put()
        _ = try one.makeVersion(basedOn: nil, changes: [insert("own", "1")])
        _ = try Snapshots(store: one, transport: memory).restore()
        #expect(try one.allVersionIDs().count == 26)
        #expect(code { _ = try Snapshots(store: one, transport: memory).restore() } == .storeNotEmpty)
        #expect(code { _ = try Snapshots(store: Store.inMemory(), transport: memory).put() } == .invalidArgument)
    }

    @Test func damagedOrIncompleteOnesAreRefusedWhole() throws {
        let source = try largeStore(), memory = MemoryTransport(name: "\(VersionID.random())"),
            other = MemoryTransport(name: "\(VersionID.random())")
        let put = try Snapshots(store: source, transport: memory).put()
        _ = try Snapshots(store: source, transport: other).put()
        #expect(put.chunkCount >= 3)
        var files: [String: [UInt8]] = [:]
        for name in try memory.snapshotFileNames() { files[name] = try memory.readSnapshotFile(name) }
        let last = "llvs-v1/" + SnapshotLimits.chunkName(Int(put.chunkCount) - 1)

        func refuses(_ name: String, _ bytes: [UInt8]?, _ expected: StoreError.Code = .snapshotDamaged) throws {
            if let bytes { try memory.writeSnapshotFile(name, bytes) } else { try memory.deleteSnapshotFile(name) }
            let target = try Store.inMemory()
            #expect(code { _ = try Snapshots(store: target, transport: memory).restore() } == expected, "\(name)")
            #expect(try target.allVersionIDs().isEmpty)
            try memory.writeSnapshotFile(name, files[name] ?? [])
        }
        for name in ["llvs-v1/chunk-000", "llvs-v1/chunk-001", last] {
            let whole = try #require(files[name])
            var flipped = whole
            flipped[flipped.count / 2] ^= 1
            try refuses(name, flipped)
            try refuses(name, Array(whole.dropLast()))
            try refuses(name, [])
            try refuses(name, nil)
            try refuses(name, try other.readSnapshotFile(name)) // of another snapshot of the same store
        }
        try refuses("llvs-v1/manifest.json", nil, .snapshotMissing)
        try refuses("llvs-v1/manifest.json", [])
        try refuses("llvs-v1/manifest.json", Array("{}".utf8))
        for spoil in [
            { $0.versionCount += 1 }, { $0.totalSize -= 1 }, { $0.chunkCount += 1 },
            {
                $0.chunkCount -= 1; $0.chunkDigests.removeLast()
            }, { $0.snapshotID = "X" }, { $0.snapshotID = "\(VersionID.random())" },
        ] as [(inout SnapshotManifest) -> Void] {
            var manifest = put
            spoil(&manifest)
            try refuses("llvs-v1/manifest.json", manifest.encoded())
        }
        _ = try Snapshots(store: Store.inMemory(), transport: memory).restore()
        // A broken manifest is replaced by the next snapshot.
        try memory.writeSnapshotFile("llvs-v1/manifest.json", [1, 2, 3])
        _ = try Snapshots(store: source, transport: memory).put()
        _ = try Snapshots(store: Store.inMemory(), transport: memory).restore()
    }

    /// Streams with valid digests and hostile contents.
    @Test func hostileStreamsAreRefused() throws {
        let id = "\(VersionID.random())"
        func snapshot(_ payload: [UInt8], versions: UInt64 = 1) throws -> MemoryTransport {
            let memory = MemoryTransport(name: "\(VersionID.random())")
            var chunk = Array(id.utf8) + [0]
            withUnsafeBytes(of: UInt32(payload.count).littleEndian) { chunk += $0 }
            chunk += payload
            var manifest = SnapshotManifest(snapshotID: id, createdAt: 0, latestVersionID: "A")
            manifest.chunkCount = 1
            manifest.chunkDigests = [SnapshotChunk.digest(chunk)]
            manifest.totalSize = UInt64(chunk.count)
            manifest.versionCount = versions
            try memory.writeSnapshotFile("chunk-000", chunk)
            try memory.writeSnapshotFile("manifest.json", manifest.encoded())
            return memory
        }
        func integer<T: FixedWidthInteger>(_ value: T) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }
        func entry(_ json: String, _ count: UInt32 = 0, _ changes: [UInt8] = []) -> [UInt8] {
            integer(UInt64(json.utf8.count)) + Array(json.utf8) + integer(count) + changes
        }
        let a = #"{"version":{"identifier":"A","timestamp":1}}"#,
            b = #"{"version":{"identifier":"B","timestamp":1,"predecessors":{"idOfFirst":"A"}}}"#
        let remove: [UInt8] = [3] + integer(UInt32(1)) + [0x61]
        let bad: [(String, [UInt8], UInt64)] = [
            ("empty", [], 1), ("a huge version file", integer(UInt64.max), 1), ("cut", Array(entry(a).dropLast()), 1),
            ("a trailing byte", entry(a) + [0], 1), ("fewer versions", entry(a), 2), ("no JSON", entry("{"), 1),
            ("a predecessor after its successor", entry(b) + entry(a), 2), ("one version twice", entry(a) + entry(a), 2),
            ("many changes", entry(a, .max), 1), ("an unknown kind", entry(a, 1, [9] + integer(UInt32(1)) + [0x61]), 1),
            ("a huge id", entry(a, 1, [3] + integer(UInt32.max)), 1), ("an empty id", entry(a, 1, [3] + integer(UInt32(0))), 1),
            ("an id twice", entry(a, 2, remove + remove), 1),
            ("a huge value", entry(a, 1, [1] + integer(UInt32(1)) + [0x61] + integer(UInt64(1 << 40))), 1),
            ("a value that is cut", entry(a, 1, [1] + integer(UInt32(1)) + [0x61] + integer(UInt64(1 << 30))), 1),
            ("a preserve of nothing", entry(a, 1, [4] + integer(UInt32(1)) + [0x61, 1, 0x42]), 1),
            ("a preserve of no id", entry(a, 1, [4] + integer(UInt32(1)) + [0x61, 1, 0x2F]), 1),
        ]
        for (what, payload, versions) in bad {
            let target = try Store.inMemory(), transport = try snapshot(payload, versions: versions)
            #expect(code { _ = try Snapshots(store: target, transport: transport).restore() } == .snapshotDamaged, "\(what)")
            #expect(try target.allVersionIDs().isEmpty, "\(what)")
        }
        let good = try Store.inMemory()
        _ = try Snapshots(store: good, transport: snapshot(entry(a) + entry(b, 1, remove), versions: 2)).restore()
        #expect(try good.allVersionIDs().count == 2)
    }

    @Test func foreignSnapshotsStay() throws {
        let memory = MemoryTransport(name: "\(VersionID.random())"), source = try exampleStore()
        let foreign = Array(
            (#"{"snapshotId":"X","format":"fileStorage-v1","createdAt":1,"latestVersionId":"Y","versionCount":1,"chunkCount":1,"#
                + #""totalSize":9}"#).utf8)
        try memory.writeSnapshotFile("manifest.json", foreign)
        try memory.writeSnapshotFile("chunk-000", [1])
        let snapshots = Snapshots(store: source, transport: memory)
        #expect(try snapshots.manifest()?.isForeign == true)
        #expect(code { _ = try Snapshots(store: Store.inMemory(), transport: memory).restore() } == .foreignSnapshot)
        let put = try snapshots.put()
        #expect(try memory.readSnapshotFile("manifest.json") == foreign && memory.readSnapshotFile("chunk-000") == [1])
        #expect(try memory.readSnapshotFile("llvs-v1/manifest.json") != nil)
        #expect(try snapshots.manifest() == put)
        let target = try Store.inMemory()
        _ = try Snapshots(store: target, transport: memory).restore()
        #expect(try target.hasSameVersions(as: source))
        // Ours are never at the other implementation's place, even if it is empty, since that would keep others from putting theirs.
        for name in ["manifest.json", "chunk-000"] { try memory.deleteSnapshotFile(name) }
        _ = try snapshots.put()
        #expect(try Set(memory.snapshotFileNames()) == ["llvs-v1/manifest.json", "llvs-v1/chunk-000"])
        // A snapshot of an earlier release is read, and removed once there is a new one.
        for name in ["manifest.json", "chunk-000"] {
            try memory.writeSnapshotFile(name, try #require(try memory.readSnapshotFile("llvs-v1/" + name)))
            try memory.deleteSnapshotFile("llvs-v1/" + name)
        }
        let old = try Store.inMemory()
        _ = try Snapshots(store: old, transport: memory).restore()
        #expect(try old.hasSameVersions(as: source))
        _ = try snapshots.put()
        #expect(try Set(memory.snapshotFileNames()) == ["llvs-v1/manifest.json", "llvs-v1/chunk-000"])
    }

    @Test func aSmallerSnapshotLeavesNoChunksBehind() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary)
        _ = try Snapshots(store: largeStore(), transport: transport).put()
        _ = try Snapshots(store: exampleStore(), transport: transport).put()
        #expect(try Set(transport.snapshotFileNames()) == ["llvs-v1/manifest.json", "llvs-v1/chunk-000"])
    }

    @Test func cancelledAnywhere() throws {
        let source = try largeStore(), memory = MemoryTransport(name: "\(VersionID.random())")
        for stop in 0..<100 {
            let calls = Counter(),
                stopped = code {
                    _ = try Snapshots(store: source, transport: memory).put(
                        control: OperationControl(progress: { _ in calls.next() != stop }))
                }
            if stopped == nil { break }
            #expect(stopped == .cancelled)
            #expect(try Snapshots(store: source, transport: memory).manifest() == nil)
        }
        for stop in 0..<100 {
            let target = try Store.inMemory(), calls = Counter()
            let stopped = code {
                _ = try Snapshots(store: target, transport: memory).restore(
                    control: OperationControl(progress: { _ in calls.next() != stop }))
            }
            for id in try target.allVersionIDs() { #expect(try target.changes(madeIn: id) == source.changes(madeIn: id)) }
            if stopped == nil { #expect(try target.hasSameVersions(as: source)); return }
            #expect(stopped == .cancelled)
        }
        Issue.record("it never ran to its end")
    }

    @Test func anyStorageShowsTheSame() throws {
        let expected = try InterchangeVectors()
        var options = FolderTransport.Options()
        options.durability = .normal
        for name in ["a.llvs", "a.sqlite", ""] {
            let temporary = TemporaryFolder()
            func open(_ path: String) throws -> Store {
                var options = Store.Options()
                if name.isEmpty { options.storage = .memory }
                if name == "a.sqlite" { options.storage = .custom(try SQLiteStorage(path: path)) }
                return try Store(path: path, options: options)
            }
            let path = "\(temporary.path)/\(name)", first = try open(path)
            _ = try Exchange(store: first, transport: FolderTransport(path: InterchangeVectors.path + "/folder")).retrieve()
            #expect(try expected.differences(from: first) == [])
            _ = try Snapshots.write(first, to: temporary.path + "/snapshot")
            try first.close()
            if !name.isEmpty {
                let again = try open(path)
                #expect(try expected.differences(from: again) == [])
                #expect(
                    try Exchange(store: again, transport: FolderTransport(path: temporary.path + "/shared", options: options)).send()
                        .versions.count == 25)
                try again.close()
            }
            let second = try open(path + "2")
            #expect(try Snapshots.restore(second, from: temporary.path + "/snapshot").manifest.versionCount == 25)
            #expect(try expected.differences(from: second) == [])
            try second.close()
        }
    }

    /// A link in the place of a folder for snapshots is not followed.
    @Test func linksInAFolderOfSnapshotsLeadNowhere() throws {
        let temporary = TemporaryFolder(), elsewhere = temporary.path + "/elsewhere"
        try FolderFiles.makeDirectory(elsewhere)
        try temporary.write("elsewhere/chunk-000", "irreplaceable")
        for link in ["snapshots", "snapshots/llvs-v1"] {
            let shared = "\(temporary.path)/shared-\(link.utf8.count)"
            try FolderFiles.makeDirectory(shared)
            if link != "snapshots" { try FolderFiles.makeDirectory(shared + "/snapshots") }
            try FileManager.default.createSymbolicLink(atPath: "\(shared)/\(link)", withDestinationPath: elsewhere)
            let store = try memoryStore()
            _ = try store.makeVersion(basedOn: nil, changes: [.insert(id("k"), data: [1])])
            #expect(code { _ = try Snapshots.write(store, to: shared) } == .notADirectory, "\(link)")
            #expect(try temporary.names("elsewhere") == ["chunk-000"])
        }
    }
}
