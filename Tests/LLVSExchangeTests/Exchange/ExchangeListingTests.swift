import CLLVSShims
import Glibc
import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// Exchanges notice new files although they only read folders that may have changed.
@Suite struct ExchangeListingTests {
    private func folder(_ path: String, _ durability: Durability = .normal) throws -> FolderTransport {
        var options = FolderTransport.Options()
        options.durability = durability
        return try FolderTransport(path: path, options: options)
    }
    private func files(_ name: String) -> ExchangeFiles { ExchangeFiles(name: name, version: Array("{}".utf8), changes: Array("[]".utf8)) }
    private func chain(_ store: Store, _ count: Int) throws -> [VersionID] {
        var ids: [VersionID] = []
        for i in 0..<count { ids.append(try store.makeVersion(basedOn: ids.last, changes: [insert("k\(i)", "v")]).id) }
        return ids
    }

    // MARK: The folder

    @Test func namesAreSortedOut() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path)
        try transport.send(["A", "B", "C"].map(files), OperationControl())
        try FolderFiles.remove(temporary.path + "/changes/A")
        try FolderFiles.remove(temporary.path + "/versions/B")
        for name in ["versions/x y", "changes/x y", "changes/.z"] { try temporary.write(name, "") }
        let listing = try transport.list(OperationControl())
        #expect(Set(listing.versions.map(\.description)) == ["A", "C"])
        #expect(listing.changesOnly.map(\.description) == ["B"] && listing.versionsOnly.map(\.description) == ["A"])
        #expect(Set(listing.foreign) == [.init(name: "x y", folder: .versions), .init(name: "x y", folder: .changes)])
    }

    @Test func directoriesAreReadAgainOnlyWhenTheyChanged() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path)
        try transport.send(["A", "B"].map(files), OperationControl())
        try #require(llvs_shim_is_local(temporary.path) == 1)
        var listing = FolderListing()
        let shared = Folder(temporary.path), versions = shared.folder("versions"), changes = shared.folder("changes")
        // The directory was written a moment ago, so another change could have the same time.
        #expect(try listing.read(versions, changes).mark == nil)
        listing.now = { System.now + 10_000_000_000 }
        let first = try listing.read(versions, changes)
        #expect(first.mark != nil && first.versions.count == 2)
        #expect(try listing.read(versions, changes).mark == first.mark)
        // Each kind of change is noticed even if the times are reset.
        var times = [timeval(tv_sec: 1_000_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000_000, tv_usec: 0)]
        var mark = first.mark
        let steps: [(String, (String) throws -> Void)] = [
            ("a version", { _ in try temporary.write("versions/C", "{}") }),
            ("its changes", { _ in try temporary.write("changes/C", "[]") }),
            ("one less", { _ in try FolderFiles.remove(temporary.path + "/versions/A") }),
            (
                "a replaced directory",
                { path in
                    rename(path + "/versions", path + "/old"); mkdir(path + "/versions", 0o700)
                }
            ),
        ]
        for (what, change) in steps {
            try change(temporary.path)
            for directory in ["versions", "changes"] { utimes("\(temporary.path)/\(directory)", &times) }
            let again = try listing.read(versions, changes)
            #expect(again.mark != nil && again.mark != mark, "\(what)")
            mark = again.mark
        }
        // If the clock was set back, the times lie in the future and prove nothing.
        listing.now = { 0 }
        try temporary.write("versions/D", "{}")
        #expect(try listing.read(versions, changes).mark == nil)
        #expect(
            try listing.read(Folder(temporary.path + "/nowhere").folder("versions"), Folder(temporary.path + "/nowhere").folder("changes"))
                .mark == nil)
    }

    @Test func aBatchIsSyncedAtOnce() throws {
        let temporary = TemporaryFolder(), transport = try folder(temporary.path, .full)
        try transport.send((0..<200).map { files("V\($0)") }, OperationControl())
        #expect(transport.syncCount == (llvs_shim_is_local(temporary.path) == 1 ? 3 : 402))
        // A few files are not worth a sync of the whole file system, which waits for other programs' writes.
        try transport.send([files("X")], OperationControl())
        #expect(transport.syncCount == (llvs_shim_is_local(temporary.path) == 1 ? 3 : 402) + 4)
        let quick = try folder(temporary.path)
        try quick.send((0..<200).map { files("W\($0)") }, OperationControl())
        #expect(quick.syncCount == 0)
        #expect(try temporary.names("tmp") == [] && temporary.names("versions").count == 401)
    }

    // MARK: The exchange

    /// A folder whose listings carry a mark that the test sets. It counts requests.
    private final class Marked: @unchecked Sendable {
        let folder: FolderTransport
        var mark: UInt64? = 1
        var fetches = 0, sent: [String] = [], looked: Set<String> = []
        init(_ folder: FolderTransport) { self.folder = folder }
        func transport() -> any ExchangeTransport { MarkedTransport(self) }
    }
    private final class MarkedTransport: ExchangeTransport, @unchecked Sendable {
        let marked: Marked
        init(_ marked: Marked) { self.marked = marked }
        var description: String { marked.folder.description }
        func list(_ control: OperationControl) throws -> ExchangeListing {
            var listing = try marked.folder.list(control)
            listing.mark = marked.mark
            return listing
        }
        func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
            marked.fetches += 1; return try marked.folder.fetchVersions(names, control)
        }
        func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
            try marked.folder.fetchChanges(names, control)
        }
        func send(_ files: [ExchangeFiles], _ control: OperationControl) throws {
            marked.sent += files.map(\.name); try marked.folder.send(files, control)
        }
        func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
            marked.looked.formUnion(names); return try marked.folder.unusable(among: names, control)
        }
        func readSnapshotFile(_ name: String) throws -> [UInt8]? { nil }
        func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws {}
        func deleteSnapshotFile(_ name: String) throws {}
        func snapshotFileNames() throws -> [String] { [] }
        var restorationState: [UInt8] {
            get { [] }
            set {}
        }
        func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
        func close() {}
    }

    @Test func anUnchangedListingHidesNothing() throws {
        let temporary = TemporaryFolder(), marked = Marked(try folder(temporary.path + "/shared"))
        let store = try Store.inMemory(), other = try Store.inMemory()
        let exchange = Exchange(store: store, transport: marked.transport()), theirs = Exchange(store: other, transport: marked.folder)
        let ids = try chain(other, 4)
        #expect(try theirs.send().versions == ids)
        // With a problem, the whole listing is processed each time, whatever its mark.
        try temporary.write("shared/changes/\(ids[3])", "[")
        for _ in 0..<2 { #expect(try exchange.retrieve().problems.map(\.name) == [ids[3].description]) }
        #expect(marked.fetches == 2)
        try temporary.write(
            "shared/changes/\(ids[3])", String(decoding: InterchangeEncoder.changes(other.changes(madeIn: ids[3])), as: UTF8.self))
        #expect(try exchange.retrieve().versions == [ids[3]])
        #expect(try exchange.retrieve().problems.isEmpty && marked.fetches == 3)
        // New local versions are sent; new files at the place change its mark.
        #expect(try exchange.send().versions.isEmpty)
        let own = try store.makeVersion(basedOn: ids[3], changes: [insert("own", "1")]).id
        #expect(try exchange.send().versions == [own])
        let more = try other.makeVersion(basedOn: ids[2], changes: [insert("more", "1")]).id
        _ = try theirs.send()
        #expect(try exchange.retrieve().versions.isEmpty)
        marked.mark = 2
        #expect(try exchange.retrieve().versions == [more])
        // A file that lost its bytes is repaired although no name changed.
        #expect(try exchange.send().versions.isEmpty)
        try temporary.write("shared/versions/\(ids[0])", "")
        #expect(try exchange.send().versions == [ids[0]])
        #expect(try exchange.send().versions.isEmpty)
        // A send also rewrites a file that the listing lacks.
        try FolderFiles.remove("\(temporary.path)/shared/changes/\(ids[1])")
        #expect(try exchange.send().versions == [ids[1]])
        marked.mark = nil
        try temporary.write("shared/versions/\(ids[0])", "")
        #expect(try exchange.send().versions == [ids[0]])
    }

    @Test func filesOfAllVersionsAreLookedAtInTurn() throws {
        let temporary = TemporaryFolder(), marked = Marked(try folder(temporary.path + "/shared")), store = try Store.inMemory()
        let ids = try chain(store, 3 * ExchangeLimits.verifiedCount)
        let exchange = Exchange(store: store, transport: marked.transport())
        #expect(try exchange.send().versions == ids)
        for name in [ids[0], ids[700], ids[999], ids[1499]] { try temporary.write("shared/versions/\(name)", "") }
        marked.sent = []
        for _ in 0..<3 { _ = try exchange.send() }
        #expect(marked.looked == Set(ids.map(\.description)))
        #expect(Set(marked.sent) == Set([ids[0], ids[700], ids[999], ids[1499]].map(\.description)))
    }

    @Test func samplesNameTheNewestAndTheOthersInTurn() throws {
        let store = try Store.inMemory(), ids = try chain(store, 10)
        let coverage = try store.coverage(by: ids.filter { $0 != ids[9] && $0 != ids[2] }, complete: nil)
        var position = 5
        func sample(_ count: Int) -> [VersionID] { store.ids(coverage.sample(count, from: &position)) }
        #expect(sample(2) == [ids[8], ids[7], ids[5], ids[6]])
        #expect(sample(2) == [ids[8], ids[7], ids[0], ids[1]])
        #expect(sample(2) == [ids[8], ids[7], ids[3], ids[4]])
        #expect(sample(100) == ids.filter { $0 != ids[9] && $0 != ids[2] }.reversed())
        #expect(try store.missing(from: coverage) == [ids[2], ids[9]])
        #expect(try store.missing(from: store.coverage(by: [], complete: 10)).isEmpty)
        #expect(try store.missing(from: store.coverage(by: [], complete: 9)) == ids)
    }
}
