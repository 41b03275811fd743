import LLVSCore
import LLVSExchange
import LLVSServices
import LLVSTestHelpers
import Testing

/// Folders in packs that are named by URL.
@Suite struct PackedFolderTests {
    @Test func packsInAFolder() throws {
        let folder = TemporaryFolder()
        var options = Store.Options()
        options.storage = .memory
        let url = "file://\(folder.path)/packs?layout=packed"
        let a = try Store(path: "", options: options), b = try Store(path: "", options: options)
        let large = [UInt8](repeating: 7, count: 3 << 20)
        let version = try a.makeVersion(basedOn: nil, changes: [.insert(ValueID("x"), data: large)])
        let here = try Exchange(store: a, url: url), there = try Exchange(store: b, url: url)
        #expect(try here.retrieve().versions.isEmpty)
        #expect(try here.send().versions == [version.id])
        #expect(try there.retrieve().versions == [version.id])
        #expect(try b.value(ValueID("x"), at: version.id)?.data == large)
        #expect(try there.retrieve(verifyKnown: true).problems.isEmpty)
        #expect(try there.send().versions.isEmpty)
        #expect(try folder.names("packs/pack1/log").count == 1)
        #expect(try folder.names("packs/tmp").isEmpty)
        for wrong in ["file:///x?layout=none", "file:///x?layout=packed&layout=packed", "memory:x?layout=packed"] {
            if wrong.hasPrefix("memory") { continue }
            #expect(throws: StoreError.self) { try Exchange(store: a, url: wrong) }
        }
    }

    @Test func threeLayoutsOfOneFolder() throws {
        let folder = TemporaryFolder()
        var options = Store.Options()
        options.storage = .memory
        let stores = try (0..<3).map { _ in try Store(path: "", options: options) }
        let ways = try zip(stores, ["?layout=bridged", "?layout=packed", ""]).map {
            try Exchange(store: $0, url: "file://\(folder.path)/x\($1)")
        }
        let first = try stores[0].makeVersion(basedOn: nil, changes: [.insert(ValueID("x"), data: [1])]).id
        #expect(try ways[0].send().versions == [first])
        for way in ways[1...] { #expect(try way.retrieve().versions == [first]) }
        let second = try stores[2].makeVersion(basedOn: first, changes: [.insert(ValueID("y"), data: [2])]).id
        #expect(try ways[2].send().versions == [second])
        #expect(try ways[0].retrieve().versions == [second])
        _ = try ways[0].send()
        #expect(try ways[1].retrieve().versions == [second])
    }

    @Test func whatCannotBeBridged() throws {
        let store = try memoryStore()
        var options = Exchange.URLOptions()
        options.keys = try Array("words".utf8).withUnsafeBytes { try RemoteKeys(passphrase: $0) }
        #expect(throws: StoreError.self) { try Exchange(store: store, url: "file:///nowhere?layout=bridged", options: options) }
        options.keys = nil
        options.layout = .bridged
        #expect(throws: StoreError.self) { try Exchange(store: store, url: "memory:x", options: options) }
    }

    @Test func optionsPrintNoSecrets() throws {
        var options = Exchange.URLOptions()
        options.keys = try Array("a secret passphrase".utf8).withUnsafeBytes { try RemoteKeys(passphrase: $0) }
        var dumped = ""
        dump(options, to: &dumped)
        for text in ["\(options)", String(reflecting: options), dumped] { #expect(!text.contains("secret passphrase")) }
    }
}
