import Glibc
import LLVS
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSExchange

/// Returns its bytes in steps. Throws after a given number of bytes if a failure is set.
private final class Trickle: PieceReader, @unchecked Sendable {
    let bytes: [UInt8], step: Int
    var failure: (behind: Int, error: StoreError)?
    private(set) var position = 0
    init(_ bytes: [UInt8], step: Int, failure: (behind: Int, error: StoreError)? = nil) {
        self.bytes = bytes; self.step = step; self.failure = failure
    }
    var size: Int { bytes.count }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        if let failure, position >= failure.behind { throw failure.error }
        let end = min(bytes.count, position + min(step, buffer.count))
        bytes.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: buffer[..<(end - position)]).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: $0[position..<end]))
        }
        defer { position = end }
        return end - position
    }
}

/// Values and files that are read and written in pieces give the same as whole ones.
@Suite struct LargeValueTests {
    private static let steps = [1, 2, 3, 7, 64, 1 << 20]

    private func random(_ size: Int, _ seed: UInt64 = 1) -> [UInt8] {
        var random = SeededRandom(seed: seed), bytes: [UInt8] = []
        bytes.reserveCapacity(size + 8)
        while bytes.count < size { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
        return Array(bytes.prefix(size))
    }

    // MARK: Reading

    @Test func jsonIsAcceptedOrRefusedAlikeInPieces() {
        func accepts(_ bytes: [UInt8], _ step: Int?) -> Bool {
            let window = PieceWindow(Trickle(bytes, step: step ?? 1), limit: 1 << 20, pieceSize: 5)
            return bytes.withUnsafeBytes { raw in
                withExtendedLifetime(window) {
                    var reader = step == nil ? JSONReader(raw) : JSONReader(window)
                    do { try reader.skip(); try reader.end(); return true } catch { return false }
                }
            }
        }
        let whole = Array(
            ("  {\"version\" : {\"metadata\":[\"k\",{\"data\":\"IiI=\"}],\"timestamp\":-1.5e3,\"x\":[true,null,\"\\u00e9\\\\\\\"\",12, "
                + "false]}} ").utf8)
        #expect(accepts(whole, nil))
        for step in [1, 2, 3, 5] { #expect(accepts(whole, step)) }
        for end in 0..<whole.count { #expect(accepts(Array(whole[..<end]), 2) == accepts(Array(whole[..<end]), nil), "cut at \(end)") }
        var random = SeededRandom(seed: 1)
        for _ in 0..<3_000 {
            var bytes = whole
            for _ in 0..<Int(random.next() % 3 + 1) {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            #expect(accepts(bytes, 1) == accepts(bytes, nil), "\(String(decoding: bytes, as: UTF8.self))")
        }
    }

    @Test func changesAreReadAlikeInPieces() throws {
        let id = try VersionID("V")
        func outcome(_ document: InterchangeDecoder.Document) -> Result<[Value.Change], StoreError> {
            do { return .success(try InterchangeDecoder.changes(document, of: id)) } catch { return .failure(StoreError.of(error)) }
        }
        let text = """
            [ {"insert":{"data":"/\\/+\\u002B/\\u002fAA","id":"slashes \\ud83d\\ude00"}},
            {"update":{"id":"b","unknown":[1,{"x":"\\n"}],"data":""}},
            {"remove":"c"},{"preserve":{"storedVersionId":"S","valueId":"d"}},{"preserveRemoval":"e"},
            {"insert":{"id":"f","data":"QUI="}},{"insert":{"id":"g","data":"QQ=="}},
            {"insert":{"id":"h","data":"\(String(decoding: Base64.encode(random(1_000)), as: UTF8.self))"}} ]
            """
        let whole = Array(text.utf8), expected = try outcome(.bytes(whole)).get()
        #expect(expected.count == 8 && expected.first?.kind == .update)
        for step in LargeValueTests.steps { #expect(try outcome(.pieces(Trickle(whole, step: step))).get() == expected) }
        for end in 1..<whole.count where end < 600 || end % 16 == 0 {
            guard case .failure(let error) = outcome(.pieces(Trickle(Array(whole[..<end]), step: 3))) else {
                Issue.record("cut at \(end)"); continue
            }
            #expect(error.code == .cutShort, "cut at \(end): \(error.message)")
            guard case .failure(let same) = outcome(.bytes(Array(whole[..<end]))) else { Issue.record("cut at \(end)"); continue }
            #expect(same.code == .cutShort, "cut at \(end): \(same.message)")
        }
        var random = SeededRandom(seed: 2)
        for _ in 0..<sample(usual: 600, deep: 2_000) {
            var bytes = whole
            for _ in 0..<Int(random.next() % 3 + 1) { bytes[Int(random.next() % 600)] = UInt8(truncatingIfNeeded: random.next()) }
            let step = Int(random.next() % 9 + 1)
            switch (outcome(.bytes(bytes)), outcome(.pieces(Trickle(bytes, step: step)))) {
            case (.success(let a), .success(let b)): #expect(a == b)
            case (.failure, .failure): break
            default: Issue.record("whole and in pieces differ: \(String(decoding: bytes, as: UTF8.self))")
            }
        }
    }

    @Test func base64IsDecodedAlikeInPieces() {
        func inPieces(_ text: [UInt8], _ step: Int) -> [UInt8]? {
            var decoder = Base64.Decoder(), out: [UInt8] = [], at = 0
            while at < text.count {
                let end = min(text.count, at + step)
                guard text[at..<end].withUnsafeBytes({ decoder.append($0, to: &out) }) else { return nil }
                at = end
            }
            return decoder.finish(&out) ? out : nil
        }
        for size in [0, 1, 2, 3, 4, 5, 6, 7, 100, 70_000] {
            let text = Base64.encode(random(size))
            for step in [1, 2, 3, 4, 5, 100, 65_537] { #expect(inPieces(text, step) == random(size), "\(size) by \(step)") }
        }
        for bad in ["A", "AA", "AAA", "AA=A", "A===", "====", "AB==", "ABD=", "AA==AA==", "AAAA=", "AA A", "AAA-", "AAAAA"] {
            let text = Array(bad.utf8)
            #expect(text.withUnsafeBytes(Base64.decode) == nil)
            for step in 1...5 { #expect(inPieces(text, step) == nil, "\(bad) by \(step)") }
        }
    }

    @Test func aStringMayBeLongButNotAValue() throws {
        let long = String(repeating: "x", count: 300_000)
        let document = Array("[{\"\(long)\":\"\(long)\",\"insert\":{\"id\":\"a\",\"data\":\"QUJD\"}}]".utf8)
        #expect(try InterchangeDecoder.changes(.pieces(Trickle(document, step: 1_000)), of: VersionID("V")) == [insert("a", "ABC")])
        let window = PieceWindow(Trickle(Array("\"QUJDRA==\"".utf8), step: 3), limit: 1 << 20)
        withExtendedLifetime(window) {
            var reader = JSONReader(window)
            #expect(throws: JSONReader.TooLong.self) { try reader.base64(atMost: 3) }
        }
        #expect(throws: PieceFailure.self) {
            let window = PieceWindow(Trickle(Array(repeating: 0x20, count: 100), step: 7), limit: 50)
            try withExtendedLifetime(window) {
                var reader = JSONReader(window)
                try reader.skip()
            }
        }
    }

    /// The window discards what was read, so its size does not depend on the length of the document.
    @Test func theWindowStaysSmall() throws {
        let document = Array("[".utf8) + (0..<20_000).flatMap { Array("{\"remove\":\"\($0)\"},".utf8) } + Array("{\"remove\":\"x\"}]".utf8)
        let window = PieceWindow(Trickle(document, step: 4_096), limit: 1 << 20, pieceSize: 4_096)
        try withExtendedLifetime(window) {
            var reader = JSONReader(window), largest = 0
            try reader.beginArray()
            while try reader.nextElement() { try reader.skip(); largest = max(largest, window.bytes.count) }
            try reader.end()
            #expect(largest < 10_000)
        }
    }

    // MARK: Writing

    private func filled(_ store: Store) throws -> VersionID {
        let first = try store.makeVersion(basedOn: nil, changes: [insert("gone", "x"), insert("kept", "y")])
        let changes: [Value.Change] = try [
            .insert(ValueID("a\n\"\u{1}"), data: random(1_200_001)), update("kept", "z"), .remove(ValueID("gone")), insert("empty", ""),
            .insert(ValueID("big"), data: random(1_100_000, 2)), .insert(ValueID("even"), data: [UInt8](repeating: 7, count: 1_060_000)),
        ]
        return try store.makeVersion(basedOn: first.id, changes: changes).id
    }

    @Test(arguments: ["", "a.llvs", "a.sqlite"])
    func filesAndSnapshotsAreTheSameInPieces(_ name: String) throws {
        let temporary = TemporaryFolder()
        func open(_ name: String) throws -> Store {
            var options = Store.Options()
            if name.isEmpty { options.storage = .memory }
            if name.hasSuffix("sqlite") { options.storage = .custom(try SQLiteStorage(path: temporary.path + "/" + name)) }
            return try Store(path: temporary.path + "/" + name, options: options)
        }
        let store = try open(name), id = try filled(store)
        let file = try InterchangeEncoder.changes(madeIn: id, of: store), whole = InterchangeEncoder.changes(try store.changes(madeIn: id))
        #expect(file.size == whole.count)
        #expect(try file.bytes() == whole)
        var largest = 0
        try file.forEachPiece { largest = max(largest, $0.count) }
        #expect(largest < 512 << 10)

        let sent = try Exchange(store: store, transport: FolderTransport(path: temporary.path + "/shared")).send()
        #expect(sent.versions.count == 2 && sent.problems.isEmpty)
        #expect(temporary.read("shared/changes/\(id)") == whole)
        let transport = try FolderTransport(path: temporary.path + "/shared")
        guard case .pieces = try transport.fetchChanges([id.description], OperationControl()).first else {
            Issue.record("not in pieces"); return
        }
        let second = try open(name.isEmpty ? "" : "b" + name), retrieved = try Exchange(store: second, transport: transport).retrieve()
        #expect(retrieved.versions.count == 2 && retrieved.problems.isEmpty)
        #expect(try store.hasSameVersions(as: second))

        _ = try Snapshots.write(second, to: temporary.path + "/snapshot")
        let third = try open(name.isEmpty ? "" : "c" + name)
        _ = try Snapshots.restore(third, from: temporary.path + "/snapshot")
        #expect(try store.hasSameVersions(as: third))
        let area = MemoryTransport(name: "\(VersionID.random())")
        _ = try Exchange(store: third, transport: area).send()
        #expect(area.planted(id.description).changes == whole)
        for store in [store, second, third] { try store.close() }
    }

    // MARK: Failures

    @Test func aLargeFileThatIsCutShortIsAProblemAndIsWrittenAnew() throws {
        let temporary = TemporaryFolder(), store = try Store.inMemory(), second = try Store.inMemory(), id = try filled(store)
        _ = try Exchange(store: store, transport: FolderTransport(path: temporary.path + "/shared")).send()
        let whole = temporary.read("shared/changes/\(id)") ?? []
        for (bad, code) in [
            (Array(whole.dropLast(1_000_000)), StoreError.Code.cutShort),
            (whole.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: "*") : $0 }, .invalidBase64),
        ] {
            try temporary.write("shared/changes/\(id)", bad)
            let exchange = Exchange(store: second, transport: try FolderTransport(path: temporary.path + "/shared"))
            let result = try exchange.retrieve()
            #expect(result.problems.map(\.name) == [id.description] && result.problems.map(\.error.code) == [code])
            #expect(try second.allVersionIDs().count == 1)
            // A device that has the version and found the bad file rewrites it.
            let owner = Exchange(store: store, transport: try FolderTransport(path: temporary.path + "/shared"))
            _ = try owner.retrieve(verifyKnown: true)
            #expect(try owner.send().versions == [id])
            #expect(temporary.read("shared/changes/\(id)") == whole)
        }
    }

    @Test func whatAReaderThrowsEndsTheExchangeOrCostsTheVersion() throws {
        let store = try Store.inMemory(), id = try filled(store)
        let changes = try InterchangeEncoder.changes(madeIn: id, of: store).bytes(), area = MemoryTransport(name: "\(VersionID.random())")
        _ = try Exchange(store: store, transport: area).send()
        for (code, ends) in [(StoreError.Code.io, false), (.permission, false), (.transport, true), (.cancelled, true), (.user, true)] {
            var callbacks = CallbackTransport.Callbacks(
                description: "a test", list: { try area.list($0) }, fetchVersions: { try area.fetchVersions($0, $1) },
                fetchChanges: { names, control in
                    guard names.first == id.description else { return [try area.fetchChanges([names[0]], control)[0]] }
                    return [.pieces(Trickle(changes, step: 10_000, failure: (1_000_000, StoreError(code, "It broke."))))]
                }, send: { _, _ in })
            callbacks.close = nil
            let second = try Store.inMemory(), exchange = Exchange(store: second, transport: CallbackTransport(callbacks))
            if ends {
                #expect(LLVSTestHelpers.code { _ = try exchange.retrieve() } == code)
            } else {
                #expect(try exchange.retrieve().problems.map(\.error.code) == [code])
            }
            #expect(try second.allVersionIDs().count == 1)
        }
    }

    @Test func damageFoundWhileSendingCostsThatVersionAlone() throws {
        let temporary = TemporaryFolder(), store = try Store(path: temporary.path + "/a.llvs"), bad = try filled(store)
        let good = try store.makeVersion(basedOn: nil, changes: [insert("other", "x")]).id
        try store.close()
        let blobs = try temporary.names("a.llvs/blobs")
        #expect(blobs.count == 3)
        for blob in blobs {
            var bytes = temporary.read("a.llvs/blobs/\(blob)") ?? []
            bytes[bytes.count - 1] ^= 1
            try temporary.write("a.llvs/blobs/\(blob)", bytes)
        }
        let again = try Store(path: temporary.path + "/a.llvs")
        let result = try Exchange(store: again, transport: FolderTransport(path: temporary.path + "/shared")).send()
        #expect(result.problems.map(\.name) == [bad.description] && result.problems.map(\.error.code) == [.damaged])
        #expect(result.versions.contains(good) && result.versions.count == 2)
        #expect(try temporary.names("shared/tmp") == [] && !temporary.names("shared/changes").contains(bad.description))
        try again.close()
    }

    @Test func sendingAndRetrievingInPiecesCanBeCancelled() throws {
        let temporary = TemporaryFolder(), store = try Store.inMemory(), id = try filled(store)
        final class Count: @unchecked Sendable { var calls = 0 }
        func cancelling(after calls: Int) -> OperationControl {
            let count = Count()
            return OperationControl(progress: { _ in
                count.calls += 1; return count.calls <= calls
            })
        }
        func path() throws -> FolderTransport { try FolderTransport(path: temporary.path + "/shared") }
        // The control is polled for each MiB, so there are many points at which to stop.
        var calls = 0
        while code({ _ = try Exchange(store: store, transport: path()).send(control: cancelling(after: calls)) }) == .cancelled {
            #expect(((try? temporary.names("shared/tmp")) ?? []) == [])
            calls += 1
        }
        #expect(calls > 5)
        #expect(try temporary.names("shared/versions").contains(id.description))
        let second = try Store.inMemory()
        calls = 0
        while code({ _ = try Exchange(store: second, transport: path()).retrieve(control: cancelling(after: calls)) }) == .cancelled {
            calls += 1
        }
        #expect(calls > 5)
        #expect(try store.hasSameVersions(as: second))
    }
}
