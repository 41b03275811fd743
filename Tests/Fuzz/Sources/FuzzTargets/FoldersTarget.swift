import Glibc
import LLVS

@testable import LLVSExchange

/// The files of an exchange folder, and of a store of the other implementation: their names and contents.
///
///     input = how u8 · (kind u8 · size u8 · name · size u16 · bytes) ...
///     how   = 0 an exchange folder, 1 a store to import, 2 the files that a host's transport returns;   kind: see `folder`
enum FoldersTarget {
    static let target = FuzzTarget(name: "folders", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte() % 3
        var files: [(kind: UInt8, name: [UInt8], bytes: [UInt8])] = []
        while !input.isAtEnd, files.count < 64 {
            let kind = input.byte(), count = Int(input.byte())
            files.append((kind, (0..<count).map { _ in input.byte() }, input.part()))
        }
        Examining.attempt {
            let store = try Examining.memoryStore()
            switch how {
            case 0: try exchange(files, store)
            case 1: try importing(files, store)
            default:
                let area = MemoryTransport(name: "fuzz folders")
                for file in files {
                    let name = String(decoding: file.name, as: UTF8.self), planted = area.planted(name)
                    area.plant(
                        name, version: file.kind & 1 == 0 ? file.bytes : planted.version,
                        changes: file.kind & 1 == 0 ? planted.changes : file.bytes)
                }
                try check(Exchange(store: store, transport: area).retrieve(verifyKnown: true), store)
            }
            try sendOn(store)
            Examining.examine(store)
        }
        if how < 2 { Folder.remove(Folder.path) }
    }

    private static func folder(_ kind: UInt8) -> String { ["versions", "changes", "snapshots", "tmp"][Int(kind & 3)] }

    /// Whether a file system accepts it as a file name.
    private static func isName(_ name: [UInt8]) -> Bool {
        !name.isEmpty && name.count < 256 && !name.contains(0) && !name.contains(UInt8(ascii: "/")) && name != [46] && name != [46, 46]
    }
    private static func write(_ path: [UInt8], _ bytes: [UInt8]) {
        let path = path.map { CChar(bitPattern: $0) } + [0]
        guard let file = fopen(path, "wb") else { return }
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
    }

    private static func exchange(_ files: [(kind: UInt8, name: [UInt8], bytes: [UInt8])], _ store: Store) throws {
        let path = Folder.empty()
        for folder in ["versions", "changes", "snapshots", "tmp"] { mkdir(path + "/" + folder, 0o755) }
        for file in files where isName(file.name) {
            let place = Array("\(path)/\(folder(file.kind))/".utf8) + file.name
            if file.kind & 64 != 0 { mkdir(place.map { CChar(bitPattern: $0) } + [0], 0o755) } else { write(place, file.bytes) }
        }
        var options = FolderTransport.Options()
        options.durability = .normal
        let exchange = try Exchange(store: store, transport: FolderTransport(path: path, options: options))
        try check(exchange.retrieve(), store)
        // A send rewrites unusable files from the store's own versions. Afterwards a retrieve finds nothing new.
        Examining.attempt { _ = try exchange.send() }
        let again = try exchange.retrieve()
        require(again.versions.isEmpty, "versions are retrieved twice")
        Examining.attempt { _ = try Snapshots.restore(Examining.memoryStore(), from: path) }
    }

    private static func importing(_ files: [(kind: UInt8, name: [UInt8], bytes: [UInt8])], _ store: Store) throws {
        let path = Folder.empty()
        for folder in ["versions", "values", "maps"] { mkdir(path + "/" + folder, 0o755) }
        for file in files {
            let parts = file.name.split(separator: UInt8(ascii: "/")).map { Array($0) }
            guard let last = parts.last, parts.count <= 6, parts.allSatisfy(isName) else { continue }
            var place = Array("\(path)/\(["versions", "values", "maps"][Int(file.kind) % 3])".utf8)
            for part in parts.dropLast() {
                place += [UInt8(ascii: "/")] + part
                mkdir(place.map { CChar(bitPattern: $0) } + [0], 0o755)
            }
            write(place + [UInt8(ascii: "/")] + last, file.bytes)
        }
        try check(StoreImporter.importStore(at: path, into: store), store)
    }

    private static func check(_ result: ExchangeResult, _ store: Store) throws {
        for id in result.versions { require(try store.contains(id), "\(id) was retrieved and is not there") }
        for problem in result.problems { require(problem.error.code != .internal, "an internal problem: \(problem.error.message)") }
    }

    /// Sends the received versions to another store, and checks that they are the same there.
    private static func sendOn(_ store: Store) throws {
        let ids = try store.allVersionIDs()
        guard !ids.isEmpty else { return }
        let copy = try Examining.memoryStore(), area = MemoryTransport(name: "fuzz folders, onwards")
        _ = try Exchange(store: store, transport: area).send()
        let result = try Exchange(store: copy, transport: area).retrieve()
        require(result.problems.isEmpty, "accepted versions are refused elsewhere: \(result.problems.first?.error.message ?? "")")
        require(try Set(copy.allVersionIDs()) == Set(ids), "versions got lost on the way")
        for id in ids.prefix(20) {
            require(try copy.version(id) == store.version(id), "the version \(id) differs in the copy")
            require(try copy.changes(madeIn: id) == store.changes(madeIn: id), "the changes of \(id) differ in the copy")
        }
    }

    // MARK: Seeds

    private static func input(_ how: UInt8, _ files: [(kind: UInt8, name: String, bytes: [UInt8])]) -> [UInt8] {
        files.reduce([how]) { $0 + [$1.kind, UInt8($1.name.utf8.count)] + Array($1.name.utf8) + FuzzInput.part($1.bytes) }
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        var files: [(kind: UInt8, name: String, bytes: [UInt8])] = []
        for (version, changes) in try Examples.history() {
            let changes = Array(changes.prefix(8))
            files.append((0, version.id.description, InterchangeEncoder.version(version)))
            files.append((1, version.id.description, InterchangeEncoder.changes(changes)))
        }
        let others: [(kind: UInt8, name: String, bytes: [UInt8])] = [
            (0, ".DS_Store", [0]), (0, "A (2)", []), (1, "A.sync-conflict-20260101-000000-ABCDEFG", []),
            (0, "6ba7b810-9dad-41d1-80b4-00c04fd430c8", []), (66, "chunk-000", []),
        ]
        func json(_ text: String) -> [UInt8] { Array(text.utf8) }
        let foreign: [(kind: UInt8, name: String, bytes: [UInt8])] = [
            (0, "AB/C1.json", json(#"{"identifier":"ABC1","timestamp":5,"valueDataSize":1,"metadata":[]}"#)),
            (
                0, "AB/C2.json",
                json(#"{"identifier":"ABC2","timestamp":6,"predecessors":{"idOfFirst":"ABC1"},"valueDataSize":1,"metadata":[]}"#)
            ),
            (2, "__llvs_values/__/llvs_root/A/BC1.json", json(#"{"children":{"nodes":[{"key":"x","version":"ABC1"}]}}"#)),
            (2, "__llvs_values/__/llvs_root/A/BC2.json", json(#"{"children":{"nodes":[{"key":"x","version":"ABC2"}]}}"#)),
            (
                2, "__llvs_values/x/A/BC1.json",
                json(#"{"children":{"values":[{"valueReference":{"valueId":"x1","storedVersionId":"ABC1"}}]}}"#)
            ),
            (
                2, "__llvs_values/x/A/BC2.json",
                json(#"{"children":{"values":[{"valueReference":{"valueId":"x1","storedVersionId":"ABC2"}}]}}"#)
            ),
            (1, "x1/A/BC1.json", [1]), (1, "x1/A/BC2.json", [2]),
        ]
        return [
            FuzzTarget.Seed(name: "folder", bytes: input(0, files + others)),
            FuzzTarget.Seed(name: "folder-version", bytes: input(0, Array(files.prefix(2)))),
            FuzzTarget.Seed(name: "host", bytes: input(2, files)), FuzzTarget.Seed(name: "import", bytes: input(1, foreign)),
        ]
    }
}
