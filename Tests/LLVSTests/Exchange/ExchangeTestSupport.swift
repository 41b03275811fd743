import Glibc
import LLVS
import Testing

@testable import LLVSExchange

/// A new directory, which is removed with its contents when the object is released.
final class TemporaryFolder: Sendable {
    let path: String
    /// The test that uses the folder.
    private let test = Test.current?.name ?? "?"
    init() {
        var template = Array("/tmp/llvs-test-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else { fatalError("No folder can be made in /tmp: \(errno)") }
        path = String(cString: made)
    }
    deinit {
        // Other implementations must be able to read the remaining files of an exchange folder (scripts/lib/strict.sh).
        if let strict = getenv("LLVS_STRICT") {
            var child: pid_t = 0
            var arguments: [UnsafeMutablePointer<CChar>?] = [strict, strdup(path), strdup(test), nil]
            if posix_spawn(&child, strict, nil, nil, &arguments, environ) == 0 { waitpid(child, nil, 0) }
            free(arguments[1])
            free(arguments[2])
        }
        TemporaryFolder.remove(path)
    }

    private static func remove(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            chmod(path, 0o700)
            for name in (try? FolderFiles.names(in: path)) ?? [] { remove(path + "/" + name) }
            rmdir(path)
        } else {
            unlink(path)
        }
    }
    func write(_ name: String, _ text: String) throws { try write(name, Array(text.utf8)) }
    func write(_ name: String, _ bytes: [UInt8]) throws {
        unlink("\(path)/\(name)")
        try FolderFiles.writeNew("\(path)/\(name)", OutgoingFile(bytes))
    }
    func read(_ name: String) -> [UInt8]? {
        (try? FolderFiles.read("\(path)/\(name)")) ?? nil
    }
    func names(_ folder: String) throws -> [String] { try FolderFiles.names(in: "\(path)/\(folder)").sorted() }
}

/// The data of another implementation, with the states that it computed.
struct InterchangeVectors {
    static let path: String = {
        let parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        return parts.dropLast(3).joined(separator: "/") + "/Vectors/interchange"
    }()
    var heads: [String] = []
    var mostRecentHead = ""
    var versions: [String] = []
    /// By version, for each value id: "<base64 data>@<stored version id>".
    var states: [String: [ValueID: String]] = [:]

    init() throws {
        guard let bytes = try FolderFiles.read(InterchangeVectors.path + "/expected.json") else {
            throw StoreError(.notFound, "expected.json")
        }
        func text(_ reader: inout JSONReader) throws -> String { String(decoding: try reader.string(), as: UTF8.self) }
        func list(_ reader: inout JSONReader) throws -> [String] {
            var list: [String] = []
            try reader.beginArray()
            while try reader.nextElement() { list.append(try text(&reader)) }
            return list
        }
        try bytes.withUnsafeBytes { raw in
            var reader = JSONReader(raw)
            try reader.beginObject()
            while let member = try reader.nextMember() {
                if try reader.equals(member, "heads") {
                    heads = try list(&reader)
                } else if try reader.equals(member, "mostRecentHead") {
                    mostRecentHead = try text(&reader)
                } else if try reader.equals(member, "versions") {
                    versions = try list(&reader)
                } else if try reader.equals(member, "states") {
                    try reader.beginObject()
                    while let version = try reader.nextMember() {
                        let id = String(decoding: try reader.string(version), as: UTF8.self)
                        states[id] = [:]
                        try reader.beginObject()
                        while let value = try reader.nextMember() {
                            let key = try ValueID(utf8: try reader.string(value))
                            states[id]?[key] = try text(&reader)
                        }
                    }
                } else {
                    try reader.skip()
                }
            }
            try reader.end()
        }
    }

    /// The state at a version, in the form of `states`.
    static func state(of store: Store, at id: VersionID) throws -> [ValueID: String] {
        var state: [ValueID: String] = [:]
        for value in try store.values(at: id, in: .all, after: nil, limit: 1_000_000) {
            state[value.id] = String(decoding: Base64.encode(value.data), as: UTF8.self) + "@\(value.storedVersion)"
        }
        return state
    }

    /// The differences between the store and the expected states; empty if there are none.
    func differences(from store: Store) throws -> [String] {
        var differences: [String] = []
        if try Set(store.heads().map(\.id.description)) != Set(heads) { differences.append("heads") }
        if try store.mostRecentHead()?.id.description != mostRecentHead { differences.append("most recent head") }
        if try Set(store.allVersionIDs().map(\.description)) != Set(versions) { differences.append("versions") }
        for (id, expected) in states {
            if try InterchangeVectors.state(of: store, at: VersionID(id)) != expected { differences.append("state at \(id)") }
        }
        return differences
    }
}

extension Store {
    static func inMemory() throws -> Store {
        var options = Options()
        options.storage = .memory
        return try Store(path: "", options: options)
    }
    /// Whether both have equal records, version by version.
    func hasSameVersions(as other: Store) throws -> Bool {
        let ids = try allVersionIDs()
        guard try Set(ids) == Set(other.allVersionIDs()) else { return false }
        return try ids.allSatisfy { try version($0) == other.version($0) && changes(madeIn: $0) == other.changes(madeIn: $0) }
    }
}

func insert(_ id: String, _ text: String) throws -> Value.Change { .insert(try ValueID(id), data: Array(text.utf8)) }
func update(_ id: String, _ text: String) throws -> Value.Change { .update(try ValueID(id), data: Array(text.utf8)) }

func code(_ body: () throws -> Void) -> StoreError.Code? {
    do { try body(); return nil } catch let error as StoreError { return error.code } catch { return .internal }
}

/// Functions by paths, for tests.
extension FolderFiles {
    static func names(in path: String) throws -> [String] { try names(in: Folder(path)) }
    static func read(_ path: String) throws -> [UInt8]? { try read(DirectoryEntry(path)) }
    static func writeNew(_ path: String, _ data: OutgoingFile) throws { try writeNew(DirectoryEntry(path), data) }
    static func remove(_ path: String) throws { try remove(DirectoryEntry(path)) }
}
