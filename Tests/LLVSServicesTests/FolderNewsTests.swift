import Glibc
import LLVSServices
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSExchange

/// Which changes of a folder in packs are news, and that they are reported.
@Suite struct FolderNewsTests {
    /// A device that exchanges through a folder.
    private struct Device {
        let store: Store, exchange: Exchange
        var transport: any StoreTransport { get throws { try #require(exchange.transport as? any StoreTransport) } }
        var hasNews: Bool? { get throws { try transport.hasNews(for: store) } }

        init(_ folder: String, _ query: String, _ place: Exchange.URLOptions = Exchange.URLOptions()) throws {
            store = try memoryStore()
            exchange = try Exchange(store: store, url: "file://\(folder)\(query)", options: place)
        }
        func save(_ name: String, _ data: [UInt8] = [1]) throws {
            try store.makeVersion(basedOn: store.heads().last?.id, changes: [.update(try ValueID(name), data: data)])
        }
    }

    @Test(arguments: ["?layout=packed", "?layout=bridged"]) func whatIsSentIsNewsForTheOthersAlone(_ query: String) throws {
        let directory = TemporaryDirectory(), a = try Device(directory.path, query), b = try Device(directory.path, query)
        try a.save("a")
        _ = try a.exchange.send()
        #expect(try a.hasNews == false)
        #expect(try b.hasNews == true, "nothing is known of the place")
        _ = try b.exchange.retrieve()
        #expect(try b.hasNews == false)
        try b.save("b")
        _ = try b.exchange.send()
        #expect(try a.hasNews == true && b.hasNews == false)
        _ = try a.exchange.retrieve()
        #expect(try a.hasNews == false)
    }

    /// A pack that is incomplete is news each time, since the rest may have arrived.
    @Test func whatCameInPartIsNews() throws {
        let directory = TemporaryDirectory(), a = try Device(directory.path, "?layout=packed")
        let b = try Device(directory.path, "?layout=packed")
        try a.save("a")
        _ = try a.exchange.send()
        _ = try b.exchange.retrieve()
        try a.save("b")
        _ = try a.exchange.send()
        var found: [String] = []
        try FolderFiles.forEachName(in: Folder(directory.path + "/pack1/log")) { found.append(String(decoding: $0, as: UTF8.self)) }
        let sizes = try found.map { (name: $0, size: try System.status(directory.path + "/pack1/log/" + $0).size) }
        for one in sizes { try truncate(directory.path + "/pack1/log/" + one.name, Int(one.size) / 2) }
        _ = try b.exchange.retrieve()
        #expect(try b.hasNews == true)
    }

    private func truncate(_ path: String, _ size: Int) throws {
        let descriptor = try System.open(path, O_WRONLY)
        defer { System.close(descriptor) }
        try #require(ftruncate(descriptor, off_t(size)) == 0)
    }

    /// Files of a single version beside the packs, as another implementation sends them.
    @Test func singleFilesBesidePacksAreNews() throws {
        let directory = TemporaryDirectory(), a = try Device(directory.path, "?layout=bridged")
        try a.save("a")
        _ = try a.exchange.send()
        _ = try a.exchange.retrieve()
        #expect(try a.hasNews == false)
        let other = try memoryStore(), exchange = try Exchange(store: other, transport: FolderTransport(path: directory.path))
        try other.makeVersion(basedOn: nil, changes: [.insert(try ValueID("theirs"), data: [1])])
        _ = try exchange.send()
        #expect(try a.hasNews == true)
        _ = try a.exchange.retrieve()
        #expect(try a.hasNews == false)
    }

    /// News is reported: beginning with an empty folder, also through a symbolic link, and after the folder was replaced.
    @Test(.timeLimit(.minutes(15))) func newsAreReported() throws {
        let directory = TemporaryDirectory(), place = directory.path + "/place", link = directory.path + "/link"
        let a = try Device(place, "?layout=packed")
        try #require(symlink("place", link) == 0)
        let b = try Device(link, "?layout=packed")
        let told = Counter()
        let observation = try #require(try b.exchange.observe { _ = told.next() })
        defer { observation.cancel() }
        for name in ["a", "b", "c"] {
            let before = told.value
            try a.save(name)
            _ = try a.exchange.send()
            #expect(Parallel.becomes { told.value > before })
            _ = try b.exchange.retrieve()
        }
    }
}
