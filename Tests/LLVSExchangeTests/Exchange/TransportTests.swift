import Glibc
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

@Suite struct TransportTests {
    private func folder(_ path: String) throws -> FolderTransport {
        var options = FolderTransport.Options()
        options.durability = .normal
        return try FolderTransport(path: path, options: options)
    }
    private func files(_ name: String) -> ExchangeFiles { ExchangeFiles(name: name, version: Array("{}".utf8), changes: Array("[]".utf8)) }

    @Test func foldersThatCannotBe() throws {
        let temporary = TemporaryFolder()
        #expect(code { _ = try folder(temporary.path + "/no/such/parent") } == .notFound)
        #expect(code { _ = try folder("") } == .invalidArgument)
        #expect(code { _ = try folder("/tmp/a\0b") } == .invalidArgument)
        try temporary.write("file", "x")
        #expect(code { _ = try folder(temporary.path + "/file") } == .notADirectory)
        #expect(code { _ = try folder(temporary.path + "/file/below") } == .notADirectory)
        var options = FolderTransport.Options()
        options.create = false
        #expect(code { _ = try FolderTransport(path: temporary.path + "/new", options: options) } == .notFound)
        let transport = try folder(temporary.path + "/new")
        #expect(try transport.list(OperationControl()).versions.isEmpty)
        rmdir(temporary.path + "/new")
        #expect(code { _ = try transport.list(OperationControl()) } == .notFound)
        try temporary.write("new", "x")
        #expect(code { _ = try transport.list(OperationControl()) } == .notADirectory)
    }

    /// The host's progress callback may use the folder that the call is about: no lock is held while it runs.
    @Test func aCallbackMayUseTheFolder() throws {
        let temporary = TemporaryFolder(), calls = Counter()
        let transport = try folder(temporary.path)
        try transport.send([files("A")], OperationControl())
        let control = OperationControl(progress: { _ in
            _ = calls.next()
            return try !transport.holdsOldForm && !transport.list(OperationControl()).versions.isEmpty
        })
        _ = try transport.unusable(among: ["A"], control)
        #expect(calls.value == 1)
    }

    @Test func systemErrorsKeepTheirMeaning() {
        #expect(FolderFiles.error(Errno(ENOSPC), "Writing the file", "x").code == .noSpace)
        #expect(FolderFiles.error(Errno(EACCES), "Writing the file", "x").code == .permission)
        #expect(FolderFiles.error(Errno(EROFS), "Writing the file", "x").code == .readOnly)
    }

    @Test func namesNeverBecomePaths() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path + "/shared")
        try temporary.write("secret", "{}")
        for name in ["../secret", "../../secret", "a/b", "", ".", "..", "a\0b"] {
            if case .missing = try transport.fetchVersions([name], OperationControl())[0] {} else { Issue.record("\(name) was read") }
            #expect(code { try transport.send([files(name)], OperationControl()) } == .invalidVersionID)
            #expect(code { try transport.writeSnapshotFile("../" + name, []) } == .invalidArgument)
        }
        #expect(try temporary.names("shared/versions") == [] && temporary.names("shared/tmp") == [])
    }

    @Test func whatIsNoFileIsNotRead() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path)
        // Opening a pipe instead of a file would wait for a writer.
        expectEnd {
            try transport.send([files("A")], OperationControl())
            mkfifo(temporary.path + "/versions/PIPE", 0o600)
            mkdir(temporary.path + "/versions/DIRECTORY", 0o700)
            symlink("/nonexistent", temporary.path + "/versions/LINK")
            // The contents of a file elsewhere are not disclosed to readers of the folder.
            try temporary.write("elsewhere", "{}")
            symlink(temporary.path + "/elsewhere", temporary.path + "/versions/SECRET")
            let fetched = try transport.fetchVersions(["A", "PIPE", "DIRECTORY", "LINK", "SECRET"], OperationControl())
            guard case .data = fetched[0], case .unreadable = fetched[1], case .unreadable = fetched[2], case .unreadable = fetched[3],
                case .unreadable = fetched[4]
            else { Issue.record("\(fetched)"); return }
            #expect(
                try transport.unusable(among: ["A", "PIPE", "DIRECTORY", "LINK", "SECRET", "B"], OperationControl()) == [
                    "PIPE", "DIRECTORY", "LINK", "SECRET", "B",
                ])
            // Something else under that name does not prevent the other files from being sent, and is replaced.
            try transport.send([files("PIPE")], OperationControl())
            #expect(try transport.unusable(among: ["A", "PIPE"], OperationControl()) == [])
        }
    }

    @Test func filesThatChangedAreLookedAtAgain() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path)
        try transport.send([files("A"), files("B")], OperationControl())
        #expect(try transport.unusable(among: ["A", "B"], OperationControl()) == [])
        try temporary.write("changes/A", "[{\"remove\":")
        try temporary.write("versions/B", "")
        #expect(try transport.unusable(among: ["A", "B"], OperationControl()) == ["A", "B"])
        try temporary.write("changes/A", "[] \n\n")
        #expect(try transport.unusable(among: ["A"], OperationControl()) == [])
    }

    /// A truncated file often ends in a bracket nevertheless.
    @Test func filesThatAreCutShortAnywhereAreWrittenAnew() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path), store = try Store.inMemory()
        var metadata = Metadata()
        metadata["k}}"] = bytes("1")
        let root = try store.makeVersion(basedOn: nil, changes: [insert("[]", "1"), insert("a\"}]", "2")], metadata: metadata)
        let version = try store.makeVersion(basedOn: root.id, changes: [insert("}}]", "3"), .remove(ValueID("[]"))], metadata: metadata)
        let exchange = Exchange(store: store, transport: transport)
        _ = try exchange.send()
        for id in [root.id, version.id] {
            for folder in ["versions", "changes"] {
                guard let whole = temporary.read("\(folder)/\(id)") else { throw StoreError(.notFound, folder) }
                for size in whole.indices {
                    try temporary.write("\(folder)/\(id)", Array(whole[..<size]))
                    #expect(try exchange.send().versions == [id], "\(folder) cut to \(size) of \(whole.count) bytes")
                    #expect(temporary.read("\(folder)/\(id)") == whole)
                }
            }
        }
        #expect(try exchange.send().versions.isEmpty)
    }

    /// Only the end of large files is checked.
    @Test func largeFilesAreWholeWhenTheyEndAsTheyMust() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path), store = try Store.inMemory()
        let version = try store.makeVersion(
            basedOn: nil, changes: [.insert(ValueID("k"), data: [UInt8](repeating: 1, count: 2 * WholeFile.readSize))])
        let exchange = Exchange(store: store, transport: transport), file = "changes/\(version.id)"
        _ = try exchange.send()
        guard let whole = temporary.read(file) else { throw StoreError(.notFound, file) }
        #expect(try exchange.send().versions.isEmpty)
        // The file is whole, but its size does not fit the content id, so it may be anything.
        try temporary.write(file, whole + bytes("\n \n"))
        #expect(try exchange.send().versions == [version.id])
        for size in [WholeFile.readSize + 1, whole.count - 3, whole.count - 2, whole.count - 1] {
            try temporary.write(file, Array(whole[..<size]))
            #expect(try exchange.send().versions == [version.id], "cut to \(size) of \(whole.count) bytes")
        }
    }

    /// The file of a version with much metadata, from writers with digests and without.
    @Test func largeFilesOfVersionsAreWhole() throws {
        let metadata = try Metadata([(bytes("k"), bytes(String(repeating: "x", count: WholeFile.readSize)))])
        let large = Version(id: try VersionID("v"), predecessors: [], timestamp: 1, valueDataSize: 0, metadata: metadata)
        for digest in [nil, [UInt8](repeating: 7, count: 32)] {
            let file = InterchangeEncoder.version(large, digest: digest)
            for (end, isWhole) in [(file.count, true), (file.count - 1, false), (file.count - 2, false)] {
                let tail = Array(file[..<end].suffix(64))
                #expect(tail.withUnsafeBytes { WholeFile.version.isWhole($0, of: end) } == isWhole)
            }
        }
    }

    @Test func leftoversGoAfterADay() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path)
        mkdir(temporary.path + "/tmp", 0o700)
        try temporary.write("tmp/old", "x")
        try temporary.write("tmp/new", "x")
        var times = [timeval(tv_sec: time(nil) - 90_000, tv_usec: 0), timeval(tv_sec: time(nil) - 90_000, tv_usec: 0)]
        utimes(temporary.path + "/tmp/old", &times)
        try transport.send([files("A")], OperationControl())
        #expect(try temporary.names("tmp") == ["new"])
    }

    /// File times are those of the server that holds the folder. Its clock may be days behind ours.
    @Test func whatAnotherWritesThereNowStays() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path)
        mkdir(temporary.path + "/tmp", 0o700)
        try temporary.write("tmp/part", "x")
        let daysAgo = timeval(tv_sec: time(nil) - 3 * 86_400, tv_usec: 0)
        for name in ["/tmp/part", "/tmp"] { utimes(temporary.path + name, [daysAgo, daysAgo]) }
        try transport.send([files("A")], OperationControl())
        #expect(try temporary.names("tmp") == ["part"])
    }

    /// Links in an exchange folder must not cause files elsewhere to be removed or written.
    @Test func linksInAnExchangeFolderLeadNowhere() throws {
        let temporary = TemporaryFolder(), place = temporary.path
        mkdir(place + "/precious", 0o700)
        let names = ["letter", "manifest.json", "chunk-000", "chunk-900"]
        let longAgo = timeval(tv_sec: time(nil) - 10 * 86_400, tv_usec: 0)
        for name in names {
            try temporary.write("precious/\(name)", "irreplaceable")
            utimes("\(place)/precious/\(name)", [longAgo, longAgo])
        }
        func isUntouched() throws -> Bool { try temporary.names("precious") == names.sorted() }

        for link in ["tmp", "versions", "changes"] {
            let shared = "\(place)/shared-\(link)"
            mkdir(shared, 0o700)
            symlink(place + "/precious", "\(shared)/\(link)")
            let transport = try folder(shared)
            #expect(code { try transport.send([files("A")], OperationControl()) } == .notADirectory)
            #expect(code { try transport.writeSnapshotFile("manifest.json", [1]) } == .notADirectory)
            #expect(try isUntouched(), "\(link)")
        }
        try FolderFiles.removeFiles(in: Folder(place + "/shared-tmp").folder("tmp"), olderThan: 0)
        #expect(try isUntouched())
        for link in ["snapshots", "snapshots/llvs-v1"] {
            let shared = "\(place)/shared-\(link.utf8.count)"
            mkdir(shared, 0o700)
            if link != "snapshots" { mkdir(shared + "/snapshots", 0o700) }
            symlink(place + "/precious", "\(shared)/\(link)")
            let transport = try folder(shared)
            #expect(code { try transport.writeSnapshotFile("llvs-v1/chunk-0", [1]) } == .notADirectory, "\(link)")
            #expect(try isUntouched(), "\(link)")
        }
        // The path of the exchange folder itself may contain a link, since the caller chose it.
        symlink(place + "/there", place + "/here")
        mkdir(place + "/there", 0o700)
        try folder(place + "/here").send([files("A")], OperationControl())
        #expect(try temporary.names("there/versions") == ["A"])
    }

    @Test func memoryIsSharedByNameAndGoesWithItsLastUser() throws {
        let name = "\(VersionID.random())"
        var first: MemoryTransport? = MemoryTransport(name: name)
        let second = MemoryTransport(name: name)
        try first?.send([files("A")], OperationControl())
        #expect(try second.list(OperationControl()).versions.map(\.description) == ["A"])
        #expect(try MemoryTransport(name: name + "x").list(OperationControl()).versions.isEmpty)
        first = nil
        #expect(try MemoryTransport(name: name).list(OperationControl()).versions.map(\.description) == ["A"])
    }

    @Test func callbacksErrorsComeOutUnchanged() throws {
        var user = StoreError(.user, "the network is down")
        user.userCode = 77
        let thrown = user
        var callbacks = CallbackTransport.Callbacks(
            description: "the host", list: { _ in ExchangeListing(versions: ["A"]) }, fetchVersions: { _, _ in throw thrown },
            fetchChanges: { _, _ in [] }, send: { _, _ in throw thrown })
        let closed = Counter()
        callbacks.close = { _ = closed.next() }
        let store = try Store.inMemory()
        _ = try store.makeVersion(basedOn: nil, changes: [insert("a", "1")])
        do {
            let exchange = Exchange(store: store, transport: CallbackTransport(callbacks))
            #expect(throws: thrown) { try exchange.retrieve() }
            #expect(throws: thrown) { try exchange.send() }
            #expect(code { try exchange.transport.writeSnapshotFile("x", []) } == .unsupported)
            exchange.close()
        }
        #expect(closed.value == 1)
        // An answer of the wrong length is an error of the transport and does not trap.
        for count in [0, 2] {
            callbacks.fetchVersions = { _, _ in [FetchedFile](repeating: .missing, count: count) }
            let transport = CallbackTransport(callbacks)
            #expect(code { _ = try Exchange(store: store, transport: transport).retrieve() } == .transport)
        }
    }

    // MARK: Observing

    private func waits(_ counter: Counter, for count: Int) -> Bool { Parallel.becomes { counter.value >= count } }

    /// Counts the calls of an observation, and whether a version was present in one of them.
    private final class Noticing: @unchecked Sendable {
        let calls = Counter(), seen = Guarded<Set<String>>([])
        private var observation: (any ExchangeObservation)?
        init(_ transport: any ExchangeTransport) throws {
            observation = try transport.observe { [self] in
                _ = calls.next()
                guard let listing = try? transport.list(OperationControl()) else { return }
                let names = listing.versions.map(\.description)
                seen.withLock { $0.formUnion(names) }
            }
        }
        func notices(_ name: String) -> Bool { Parallel.becomes { seen.withLock { $0.contains(name) } } }
        func cancel() { observation?.cancel() }
    }

    @Test func newVersionsAreNoticed() throws {
        let temporary = TemporaryFolder(), name = "\(VersionID.random())"
        let places: [[any ExchangeTransport]] = [
            (0..<3).map { _ in MemoryTransport(name: name) }, try (0..<3).map { _ in try folder(temporary.path) },
        ]
        for place in places {
            let (ours, theirs, other) = (place[0], place[1], place[2])
            let noticing = try Noticing(ours)
            try theirs.send((0..<50).map { files("V\($0)") }, OperationControl())
            #expect(noticing.notices("V49"), "\(ours.description)")
            try theirs.send([files("W")], OperationControl())
            #expect(noticing.notices("W"))
            #expect(noticing.calls.value < 51, "\(noticing.calls.value) calls for 51 versions")
            noticing.cancel()
            noticing.cancel()
            let after = noticing.calls.value
            // A second observer continues and notices the change, which this one must not.
            let witness = try Noticing(other)
            for name in ["X", "Y"] {
                try theirs.send([files(name)], OperationControl())
                #expect(witness.notices(name))
            }
            witness.cancel()
            #expect(noticing.calls.value == after)
        }
    }

    @Test func cancellingWaitsForTheCallbackButNotFromWithin() throws {
        let name = "\(VersionID.random())", ours = MemoryTransport(name: name), theirs = MemoryTransport(name: name)
        let started = Counter(), cancelling = Counter(), ended = Counter()
        let slow = try ours.observe {
            _ = started.next()
            _ = Parallel.becomes { cancelling.value > 0 }
            for _ in 0..<1_000 { sched_yield() }
            _ = ended.next()
        }
        try theirs.send([files("A")], OperationControl())
        #expect(waits(started, for: 1))
        _ = cancelling.next()
        slow?.cancel()
        #expect(ended.value == 1)

        let box = Box(), called = Counter()
        box.observation = try ours.observe {
            box.observation?.cancel(); _ = called.next()
        }
        try theirs.send([files("B")], OperationControl())
        #expect(waits(called, for: 1))
    }
    private final class Box: @unchecked Sendable { var observation: (any ExchangeObservation)? }
}
