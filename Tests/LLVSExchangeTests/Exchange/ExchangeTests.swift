import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

@Suite struct ExchangeTests {
    private func folder(_ temporary: TemporaryFolder) throws -> FolderTransport {
        var options = FolderTransport.Options()
        options.durability = .normal
        return try FolderTransport(path: temporary.path + "/shared", options: options)
    }

    @Test func retrievesWhatAnotherImplementationWrote() throws {
        let expected = try InterchangeVectors(), store = try Store.inMemory()
        let transport = try FolderTransport(path: InterchangeVectors.path + "/folder")
        let result = try Exchange(store: store, transport: transport).retrieve()
        #expect(result.problems.isEmpty && result.versions.count == 25)
        #expect(try expected.differences(from: store) == [])
        #expect(try Exchange(store: store, transport: transport).retrieve().versions.isEmpty)
    }

    @Test func whatWeWriteIsReadBackAndWrittenAlike() throws {
        let expected = try InterchangeVectors(), store = try Store.inMemory(), second = try Store.inMemory()
        let temporary = TemporaryFolder(), other = TemporaryFolder()
        _ = try Exchange(store: store, transport: FolderTransport(path: InterchangeVectors.path + "/folder")).retrieve()
        let sent = try Exchange(store: store, transport: folder(temporary)).send()
        #expect(sent.versions.count == 25 && sent.problems.isEmpty)
        #expect(try temporary.names("shared/tmp") == [])
        #expect(try Exchange(store: second, transport: folder(temporary)).retrieve().versions.count == 25)
        #expect(try expected.differences(from: second) == [])
        #expect(try store.hasSameVersions(as: second))
        _ = try Exchange(store: second, transport: folder(other)).send()
        for directory in ["versions", "changes"] {
            #expect(try temporary.names("shared/\(directory)") == other.names("shared/\(directory)"))
            for name in try temporary.names("shared/\(directory)") {
                #expect(temporary.read("shared/\(directory)/\(name)") == other.read("shared/\(directory)/\(name)"))
            }
        }
        #expect(try Exchange(store: second, transport: folder(temporary)).send().versions.isEmpty)
    }

    @Test func twoStoresMeetThroughAnyTransport() throws {
        let temporary = TemporaryFolder()
        let ours = MemoryTransport(name: "\(VersionID.random())"), theirs = MemoryTransport(name: ours.name)
        let pairs: [(any ExchangeTransport, any ExchangeTransport)] = [
            (ours, theirs), (try folder(temporary), try FolderTransport(path: temporary.path + "/shared/")),
        ]
        for (first, second) in pairs {
            let a = try Store.inMemory(), b = try Store.inMemory()
            var version = try a.makeVersion(basedOn: nil, changes: [insert("a", "1")])
            for i in 0..<5 { version = try a.makeVersion(basedOn: version.id, changes: [update("a", "\(i)")]) }
            _ = try b.makeVersion(basedOn: nil, changes: [insert("b", "2")], metadata: Metadata([(Array("x".utf8), [0, 255])]))
            let exchangeA = Exchange(store: a, transport: first), exchangeB = Exchange(store: b, transport: second)
            #expect(try exchangeA.send().versions == a.allVersionIDs())
            #expect(try exchangeB.retrieve().versions.count == 6)
            #expect(try exchangeB.send().versions.count == 1) // with syncs, through the folder
            #expect(try exchangeA.retrieve().versions.count == 1)
            #expect(try a.hasSameVersions(as: b))
            #expect(try exchangeA.retrieve(verifyKnown: true).problems.isEmpty)
            #expect(try exchangeA.send().versions.isEmpty && exchangeB.retrieve().versions.isEmpty)
        }
    }

    @Test func manyVersionsTravelInBatches() throws {
        let a = try Store.inMemory(), b = try Store.inMemory()
        var base: VersionID?
        for i in 0..<1_100 { base = try a.makeVersion(basedOn: base, changes: [insert("v\(i)", "x")]).id }
        for i in 0..<3 {
            base = try a.makeVersion(basedOn: base, changes: [.insert(ValueID("big\(i)"), data: [UInt8](repeating: 7, count: 3_000_000))])
                .id
        }
        let name = "\(VersionID.random())", temporary = TemporaryFolder()
        let memory = MemoryTransport(name: name)
        #expect(try Exchange(store: a, transport: memory).send().versions.count == 1_103)
        #expect(try Exchange(store: b, transport: memory).retrieve().versions == a.allVersionIDs())
        let c = try Store.inMemory()
        #expect(try Exchange(store: b, transport: folder(temporary)).send().versions.count == 1_103)
        #expect(try Exchange(store: c, transport: folder(temporary)).retrieve().versions.count == 1_103)
        #expect(try a.hasSameVersions(as: c))
    }

    @Test func manyThreadsThroughOneFolder() async throws {
        let temporary = TemporaryFolder(), stores = [try Store.inMemory(), try Store.inMemory(), try Store.inMemory()]
        let exchanges = try stores.map { Exchange(store: $0, transport: try folder(temporary)) }
        let root = try stores[0].makeVersion(basedOn: nil, changes: [insert("a", "0")])
        _ = try exchanges[0].send()
        for exchange in exchanges { _ = try exchange.retrieve() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (i, exchange) in exchanges.enumerated() {
                for thread in 0..<2 {
                    group.addTask {
                        for round in 0..<10 {
                            _ = try exchange.store.makeVersion(basedOn: root.id, changes: [insert("\(i)/\(thread)/\(round)", "x")])
                            _ = try exchange.send()
                            // The only possible problem is that a file has not arrived yet.
                            for problem in try exchange.retrieve().problems {
                                #expect([.missingVersion, .missingChanges].contains(problem.error.code), "\(problem.error)")
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        for exchange in exchanges { #expect(try exchange.retrieve().problems.isEmpty) }
        #expect(try stores[0].allVersionIDs().count == 61)
        for store in stores { #expect(try store.hasSameVersions(as: stores[0])) }
    }

    // MARK: Bad input

    /// Four versions in a row, and one beside them. Each case damages the second.
    private struct Spoiled {
        let temporary = TemporaryFolder(), source: Store, ids: [VersionID], beside: VersionID
        init() throws {
            source = try Store.inMemory()
            var base: VersionID?, ids: [VersionID] = []
            for i in 0..<4 {
                let id = try source.makeVersion(basedOn: base, changes: [insert("k\(i)", "text")]).id
                ids.append(id)
                base = id
            }
            self.ids = ids
            beside = try source.makeVersion(basedOn: ids[0], changes: [insert("beside", "text")]).id
            _ = try Exchange(store: source, transport: transport()).send()
        }
        func transport() throws -> FolderTransport {
            var options = FolderTransport.Options()
            options.durability = .normal
            return try FolderTransport(path: temporary.path + "/shared", options: options)
        }
    }

    @Test(arguments: [
        ("versions", "", StoreError.Code.cutShort), ("versions", "{\"version\":{\"identifier\":\"", .cutShort),
        ("versions", "{\"version\":{\"identifier\":\"X\",\"timestamp\":1}}", .identifierMismatch),
        ("versions", "\0\0\0\0", .invalidJSON), ("changes", "", .cutShort),
        ("changes", "[{\"insert\":{\"id\":\"a\",\"data\":\"", .cutShort),
        ("changes", "[{\"insert\":{\"id\":\"a\",\"data\":\"*\"}}]", .invalidBase64),
        ("changes", "[{\"insert\":{\"id\":\"\",\"data\":\"\"}}]", .invalidValueID), ("changes", "-", .missingChanges),
    ])
    func oneBadFileCostsItsVersionAndWhatDependsOnIt(_ directory: String, _ contents: String, _ expected: StoreError.Code) throws {
        let spoiled = try Spoiled(), bad = spoiled.ids[1]
        if contents == "-" {
            try FolderFiles.remove("\(spoiled.temporary.path)/shared/\(directory)/\(bad)")
        } else {
            try spoiled.temporary.write("shared/\(directory)/\(bad)", contents)
        }
        let store = try Store.inMemory(), exchange = Exchange(store: store, transport: try spoiled.transport())
        let result = try exchange.retrieve()
        #expect(Set(result.versions) == [spoiled.ids[0], spoiled.beside])
        let codes = Dictionary(uniqueKeysWithValues: result.problems.map { ($0.name, $0.error.code) })
        #expect(
            codes == [
                bad.description: expected, spoiled.ids[2].description: .missingPredecessor, spoiled.ids[3].description: .missingPredecessor,
            ])
        for problem in result.problems where problem.name == bad.description {
            #expect(contains(problem.error.message, bad.description), "\(problem.error)")
        }
        // The store stays usable, and sending still works.
        let own = try store.makeVersion(basedOn: spoiled.beside, changes: [insert("own", "1")])
        #expect(try exchange.send().versions == [own.id])
        // A device that has the version repairs visible damage; then everything is received.
        let source = Exchange(store: spoiled.source, transport: try spoiled.transport())
        #expect(try source.send().versions == [bad])
        #expect(try source.send().versions.isEmpty)
        #expect(try exchange.retrieve().versions.count == 3)
        #expect(try source.retrieve(verifyKnown: true).problems.isEmpty)
    }

    /// Version files in our former format, which other implementations cannot read, are rewritten. First there are more files than the
    /// sample that a send checks at first (the newest and as many others), then a few, some of them large.
    @Test(arguments: [(2 * ExchangeLimits.verifiedCount + 50, 0), (30, 100_000)]) func filesOfTheOldFormAreWrittenAnew(
        count: Int, metadataSize: Int
    ) throws {
        let temporary = TemporaryFolder(), store = try Store.inMemory()
        var metadata = Metadata()
        metadata["note"] = [UInt8](repeating: 1, count: metadataSize)
        for i in 0..<count {
            _ = try store.makeVersion(basedOn: nil, changes: [insert("k", "\(i)")], metadata: i % 10 == 0 ? metadata : Metadata())
        }
        let ids = try store.allVersionIDs()
        let exchange = Exchange(store: store, transport: try folder(temporary))
        _ = try exchange.send()
        let files = try ids.map { try #require(temporary.read("shared/versions/\($0)")) }
        func makeOld() throws {
            for (id, file) in zip(ids, files) {
                // The digest is the last member, and contains no comma.
                let at = try #require(file.lastIndex(of: UInt8(ascii: ",")))
                try #require(file[at...].starts(with: Array(",\"digest\":".utf8)))
                try temporary.write("shared/versions/\(id)", file[..<at] + [UInt8(ascii: "}")] + file[at...].dropLast())
            }
        }
        // A device that has all versions checks a sample, finds an old file, and then checks all files once.
        try makeOld()
        #expect(try exchange.send().versions.count == count)
        for (id, file) in zip(ids, files) { #expect(temporary.read("shared/versions/\(id)") == file) }
        #expect(try exchange.send().versions.isEmpty)
        // A device that receives the files remembers which of them are old, and relies on their contents.
        try makeOld()
        let other = try Store.inMemory(), theirs = Exchange(store: other, transport: try folder(temporary))
        let retrieved = try theirs.retrieve()
        #expect(retrieved.versions.count == count && retrieved.problems.isEmpty)
        #expect(try theirs.send().versions.count == count && theirs.send().versions.isEmpty)
        for (id, file) in zip(ids, files) { #expect(temporary.read("shared/versions/\(id)") == file) }
    }

    @Test func missingPieces() throws {
        let spoiled = try Spoiled(), shared = spoiled.temporary.path + "/shared"
        // A version whose predecessor's files are missing.
        for directory in ["versions", "changes"] { try FolderFiles.remove("\(shared)/\(directory)/\(spoiled.ids[2])") }
        // Changes without a version.
        try FolderFiles.remove("\(shared)/versions/\(spoiled.beside)")
        let result = try Exchange(store: Store.inMemory(), transport: spoiled.transport()).retrieve()
        #expect(result.versions == Array(spoiled.ids[..<2]))
        let codes = Dictionary(uniqueKeysWithValues: result.problems.map { ($0.name, $0.error.code) })
        #expect(codes == [spoiled.ids[3].description: .missingPredecessor, spoiled.beside.description: .missingVersion])
        #expect(result.problems.first { $0.error.code == .missingPredecessor }?.error.versionID == spoiled.ids[2].description)
        // A device that knows the version gets no report about changes without it.
        #expect(try Exchange(store: spoiled.source, transport: spoiled.transport()).retrieve().problems.isEmpty)
    }

    @Test func foreignFilesAreLeftAlone() throws {
        let spoiled = try Spoiled(), id = spoiled.ids[1]
        let names = [
            ".DS_Store", ".syncthing.\(id).tmp", ".\(id).icloud", "\(id).sync-conflict-20240101-120000-ABCDEFG", "\(id) (conflicted copy)",
            "\(id) (Ann's conflicted copy 2024-01-01)", "\(id) (2)", "desktop.ini", "\(id).tmp", "notes é.txt", "a b", "\(id)~", "()",
            "\(id) (Case Conflict)", "Copy of \(id)", "\(id).part", "Icon\r",
        ]
        for name in names { try spoiled.temporary.write("shared/versions/\(name)", "junk") }
        try spoiled.temporary.write("shared/changes/junk.txt", "junk")
        try FolderFiles.makeDirectory(spoiled.temporary.path + "/shared/versions/ADIRECTORY")
        let result = try Exchange(store: Store.inMemory(), transport: spoiled.transport()).retrieve()
        #expect(result.versions.count == 5)
        #expect(result.problems.map(\.name) == ["ADIRECTORY"] && result.problems.first?.error.code == .foreignFile)
        for name in names { #expect(spoiled.temporary.read("shared/versions/\(name)") != nil) }
    }

    /// Syncing programs make copies under names that could be versions. The files do not fit these names.
    @Test func copiesUnderVersionsNamesAreLeftAlone() throws {
        let spoiled = try Spoiled(), id = spoiled.ids[1]
        let version = try #require(spoiled.temporary.read("shared/versions/\(id)"))
        let changes = try #require(spoiled.temporary.read("shared/changes/\(id)"))
        for name in ["\(id)-DESKTOP-AB12CD", "\(id)_conflict-20240102-101112", "\(id)X", "other"] {
            try spoiled.temporary.write("shared/versions/\(name)", version)
            try spoiled.temporary.write("shared/changes/\(name)", changes)
        }
        let result = try Exchange(store: Store.inMemory(), transport: spoiled.transport()).retrieve()
        #expect(result.versions.count == 5)
        #expect(result.problems.map(\.name) == ["\(id)X", "other"])
        #expect(result.problems.allSatisfy { $0.error.code == .identifierMismatch })
    }

    @Test func circlesAndSelfReferencesEnd() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary)
        for directory in ["versions", "changes"] { try FolderFiles.makeDirectory("\(transport.path)/\(directory)") }
        for (id, predecessor) in [("A", "B"), ("B", "C"), ("C", "A"), ("S", "S")] {
            try temporary.write(
                "shared/versions/\(id)",
                "{\"version\":{\"identifier\":\"\(id)\",\"timestamp\":1,\"predecessors\":{\"idOfFirst\":\"\(predecessor)\"}}}")
            try temporary.write("shared/changes/\(id)", "[]")
        }
        let result = try Exchange(store: Store.inMemory(), transport: transport).retrieve()
        #expect(result.versions.isEmpty)
        #expect(result.problems.map(\.name) == ["A", "B", "C", "S"])
        #expect(result.problems.map(\.error.code) == [.missingPredecessor, .missingPredecessor, .missingPredecessor, .invalidJSON])
    }

    @Test func aDifferingVersionIsReportedWhenFilesAreVerified() throws {
        let spoiled = try Spoiled(), id = spoiled.ids[3]
        try spoiled.temporary.write("shared/changes/\(id)", "[]")
        // From a device that writes no digests.
        let version = try #require(try spoiled.source.version(id))
        try spoiled.temporary.write("shared/versions/\(id)", String(decoding: InterchangeEncoder.version(version), as: UTF8.self))
        let exchange = Exchange(store: spoiled.source, transport: try spoiled.transport())
        #expect(try exchange.retrieve().problems.isEmpty)
        let result = try exchange.retrieve(verifyKnown: true)
        #expect(result.problems.map(\.error.code) == [.contentMismatch] && result.problems.first?.name == id.description)
        #expect(try !spoiled.source.changes(madeIn: id).isEmpty)
        // The id of the version shows which of the two is genuine.
        #expect(try exchange.send().versions == [id] && exchange.retrieve(verifyKnown: true).problems.isEmpty)
    }

    /// An empty directory is replaced. One with contents belongs to another program.
    @Test(arguments: ["versions", "changes"], [true, false]) func aDirectoryInThePlaceOfAFileIsReplacedOrReported(
        _ folder: String, isEmpty: Bool
    ) throws {
        let spoiled = try Spoiled(), id = spoiled.ids[3], path = "\(spoiled.temporary.path)/shared/\(folder)/\(id)"
        try FolderFiles.remove(path)
        try FolderFiles.makeDirectory(path)
        if !isEmpty { try spoiled.temporary.write("shared/\(folder)/\(id)/letter", "Dear all") }
        let exchange = Exchange(store: spoiled.source, transport: try spoiled.transport())
        #expect(try exchange.retrieve(verifyKnown: true).problems.map(\.error.code) == [.foreignFile])
        // The foreign file does not prevent another version from being sent again.
        try spoiled.temporary.write("shared/versions/\(spoiled.ids[1])", "")
        let sent = try exchange.send()
        if isEmpty {
            #expect(Set(sent.versions) == [id, spoiled.ids[1]] && sent.problems.isEmpty)
            #expect(try exchange.retrieve(verifyKnown: true).problems.isEmpty)
            #expect(try exchange.send().versions.isEmpty)
        } else {
            #expect(
                sent.versions == [spoiled.ids[1]] && sent.problems.map(\.name) == [id.description]
                    && sent.problems.map(\.error.code) == [.foreignFile])
            #expect(spoiled.temporary.read("shared/\(folder)/\(id)/letter") != nil)
        }
    }

    @Test func idsThatDifferByCaseOnlyNeverReplaceEachOther() throws {
        let temporary = TemporaryFolder(), a = try Store.inMemory(), b = try Store.inMemory()
        _ = try a.makeVersion(basedOn: nil, changes: [insert("x", "upper")], id: VersionID("CASE-a"))
        _ = try b.makeVersion(basedOn: nil, changes: [insert("x", "lower")], id: VersionID("case-A"))
        _ = try Exchange(store: a, transport: folder(temporary)).send()
        let exchange = Exchange(store: b, transport: try folder(temporary))
        #expect(try exchange.retrieve().versions.map(\.description) == ["CASE-a"])
        let sent = try exchange.send()
        #expect(sent.versions.map(\.description) == ["case-A"] && sent.problems.isEmpty)
        #expect(try temporary.names("shared/versions").sorted() == ["CASE-a", "case-A"])
    }

    @Test func metadataOfAnySizeComesOver() throws {
        let name = "\(VersionID.random())", a = try Store.inMemory(), b = try Store.inMemory()
        let metadata = try Metadata([(Array("big".utf8), [UInt8](repeating: 0xAB, count: 300_000)), (Array("é".utf8), [])])
        _ = try a.makeVersion(basedOn: nil, changes: [], metadata: metadata)
        _ = try Exchange(store: a, transport: MemoryTransport(name: name)).send() // the area is released with its last transport
        let transport = MemoryTransport(name: name)
        _ = try Exchange(store: a, transport: transport).send()
        #expect(try Exchange(store: b, transport: transport).retrieve().problems.isEmpty)
        #expect(try a.hasSameVersions(as: b))
    }

    // MARK: Cancelling

    @Test func cancelledAnywhereKeepsWhatIsWholeAndRunsAgain() throws {
        let spoiled = try Spoiled()
        for stop in 0..<40 {
            let store = try Store.inMemory(), calls = Counter()
            let control = OperationControl(progress: { _ in calls.next() != stop })
            let exchange = Exchange(store: store, transport: try spoiled.transport())
            let stopped = code { _ = try exchange.retrieve(control: control) }
            #expect(stopped == nil || stopped == .cancelled)
            for id in try store.allVersionIDs() { #expect(try store.changes(madeIn: id) == spoiled.source.changes(madeIn: id)) }
            _ = try exchange.retrieve()
            #expect(try store.hasSameVersions(as: spoiled.source))

            let temporary = TemporaryFolder(), sending = Exchange(store: store, transport: try folder(temporary)), sendCalls = Counter()
            let sendStopped = code { _ = try sending.send(control: OperationControl(progress: { _ in sendCalls.next() != stop })) }
            #expect(sendStopped == nil || sendStopped == .cancelled)
            for name in (try? temporary.names("shared/versions")) ?? [] { #expect(temporary.read("shared/changes/\(name)") != nil) }
            #expect(((try? temporary.names("shared/tmp")) ?? []) == [])
            _ = try sending.send()
            #expect(try temporary.names("shared/versions").count == 5)
            if stopped == nil && sendStopped == nil { return }
        }
        Issue.record("it never ran to its end")
    }

    @Test func aTokenCancels() throws {
        let spoiled = try Spoiled(), token = CancelToken()
        token.cancel()
        let exchange = Exchange(store: try Store.inMemory(), transport: try spoiled.transport())
        #expect(code { _ = try exchange.retrieve(control: OperationControl(token: token)) } == .cancelled)
        #expect(code { _ = try exchange.send(control: OperationControl(token: token)) } == .cancelled)
    }

    @Test func comingBackFromACallbackIsAnErrorAndNoDeadlock() throws {
        let spoiled = try Spoiled(), exchange = Exchange(store: try Store.inMemory(), transport: try spoiled.transport())
        let seen = Counter()
        _ = try exchange.retrieve(
            control: OperationControl(progress: { _ in
                if code({ _ = try exchange.send() }) == .busy { _ = seen.next() }
                return true
            }))
        #expect(seen.value > 0)
        exchange.close()
        exchange.close()
        #expect(code { _ = try exchange.retrieve() } == .closed)
    }
}
