import Glibc
import LLVSCore
import LLVSTestHelpers
import LLVSUpkeep
import Testing

@testable import LLVSExchange

@Suite struct StoreImporterTests {
    private let directory = InterchangeVectors.path + "/store"

    /// A copy of the example, which a test can damage.
    private func copy() throws -> TemporaryFolder {
        let temporary = TemporaryFolder()
        try copyFiles(directory, temporary.path + "/store")
        return temporary
    }

    @Test func theStatesAreThoseOfTheOtherImplementation() throws {
        let expected = try InterchangeVectors(), store = try Store.inMemory()
        let result = try StoreImporter.importStore(at: directory, into: store)
        #expect(result.problems.isEmpty, "\(result.problems)")
        #expect(result.versions.count == 25)
        #expect(try expected.differences(from: store) == [])
        #expect(try StoreImporter.importStore(at: directory, into: store).versions.isEmpty)
    }

    @Test func itIsTheSameHistoryAsTheFolders() throws {
        let imported = try Store.inMemory(), retrieved = try Store.inMemory()
        _ = try StoreImporter.importStore(at: directory, into: imported)
        let folder = Exchange(store: retrieved, transport: try FolderTransport(path: InterchangeVectors.path + "/folder"))
        _ = try folder.retrieve()
        for id in try imported.allVersionIDs() {
            let a = try #require(try imported.version(id)), b = try #require(try retrieved.version(id))
            #expect(a.predecessors == b.predecessors && a.timestamp.bitPattern == b.timestamp.bitPattern && a.metadata == b.metadata)
        }
        // The other implementation's merges also record values that prevail at the first predecessor anyway. An index cannot show that. All
        // other changes are equal.
        for id in try imported.allVersionIDs() {
            let first = try imported.version(id)?.predecessors.first
            let effective = try retrieved.changes(madeIn: id).filter { change in
                guard case .preserve(let reference) = change, let first else { return true }
                return try retrieved.reference(reference.id, at: first) != reference
            }
            #expect(
                try imported.changes(madeIn: id).filter { $0.kind != .preserveRemoval } == effective.filter { $0.kind != .preserveRemoval },
                "\(id)")
        }
    }

    @Test func whatCannotBeImportedIsNamed() throws {
        let temporary = try copy(), root = "A3001CB5-4C77-4DC6-9147-DDB079424FE4"
        // Compressed bytes of a value, a version without its root, a foreign file, half a version file.
        try temporary.write("store/values/qu/ote\"\\13/A/3001CB5-4C77-4DC6-9147-DDB079424FE4.json", "LLZFxxxx")
        try temporary.write("store/versions/notes.txt", "hello")
        let result = try StoreImporter.importStore(at: temporary.path + "/store", into: Store.inMemory())
        #expect(result.problems.first { $0.name == root }?.error.code == .unsupported)
        #expect(result.problems.first { $0.name == "notes.txt" }?.error.code == .foreignFile)
        #expect(result.problems.allSatisfy { [.unsupported, .foreignFile, .missingPredecessor].contains($0.error.code) })
        #expect(!result.versions.isEmpty && result.versions.count + result.problems.count == 26)

        let head = "FBBDB8AD-255E-4555-9FC9-FB989F9BA46A"
        let second = try copy()
        TemporaryDirectory.remove(second.path + "/store/maps/__llvs_values/__/llvs_root/F/\(head.dropFirst()).json")
        let short = try StoreImporter.importStore(at: second.path + "/store", into: Store.inMemory())
        #expect(short.versions.count == 24)
        #expect(short.problems.map(\.name) == [head] && short.problems.first?.error.code == .missingChanges)
    }

    @Test func otherThingsAreRefused() throws {
        let temporary = TemporaryFolder(), store = try Store.inMemory()
        #expect(code { _ = try StoreImporter.importStore(at: temporary.path + "/none", into: store) } == .notFound)
        #expect(code { _ = try StoreImporter.importStore(at: temporary.path, into: store) } == .notAStore)
        try temporary.write("file", "x")
        #expect(code { _ = try StoreImporter.importStore(at: temporary.path + "/file", into: store) } == .notADirectory)
        try temporary.write("store.sqlite", "SQLite format 3\0etc")
        #expect(code { _ = try StoreImporter.importStore(at: temporary.path + "/store.sqlite", into: store) } == .unsupported)
        #expect(code { _ = try StoreImporter.importStore(at: temporary.path, into: store) } == .unsupported)
        #expect(try store.allVersionIDs().isEmpty)
    }

    @Test(arguments: [("ab", "ab"), ("abc", "ab/c"), ("é-x", "é-/x"), ("e\u{301}-x", "e\u{301}-/x"), ("a", "a"), ("\r\nab", "\r\na/b")])
    func namesAreSplitByCharacters(_ name: String, _ expected: String) {
        #expect(Array(ForeignFileNames.split(name, 2).utf8) == Array(expected.utf8))
    }
}
