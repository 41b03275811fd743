/// A file of secrets for a service, JSON, which several threads and processes share (docs/cloud-drives.md). Members that nobody here knows
/// stay as they are.
struct TokenFile: Sendable {
    private static let largest = 64 << 10

    let path: String
    /// Seconds that another may take to renew a token: longer than any answer of a service that is waited for.
    private let patience: Double

    init(_ path: String, patience: Double = 300) {
        self.path = System.resolved(path) ?? System.absolute(path)
        self.patience = patience
    }

    /// - Throws: `.notFound` without a file, `.invalidArgument` for one that is no JSON object.
    func read() throws -> CloudAnswer {
        guard let bytes = try FolderFiles.read(DirectoryEntry(path), limit: TokenFile.largest) else {
            throw StoreError(.notFound, "The file of tokens \(path) is not there. Sign in, or check the path.", path: path)
        }
        guard let found = try CloudAnswer(bytes), found.isObject else { throw unusable("is no JSON object") }
        return found
    }

    func unusable(_ why: String) -> StoreError {
        StoreError(.invalidArgument, "The file of tokens \(path) cannot be used: it \(why). Sign in again, or mend it.", path: path)
    }

    /// All of it or nothing, on disk before it returns, for nobody else to read.
    /// - Parameter changes: members that are put in the place of those of the same name.
    func write(_ known: [(name: String, json: [UInt8])], _ changes: [(name: String, text: String)]) throws {
        var members = known
        for (name, text) in changes {
            let json = JSONString.encode(text)
            if let at = members.firstIndex(where: { $0.name == name }) { members[at].json = json } else { members.append((name, json)) }
        }
        let inner = members.map { JSONString.encode($0.name) + Array(": ".utf8) + $0.json }.joined(separator: Array(",\n  ".utf8))
        let bytes = Array("{\n  ".utf8) + inner + Array("\n}\n".utf8)
        let place = DirectoryEntry(path)
        try posix("Keeping the new token in", path) { () throws(Errno) in
            let part = place.folder.place("\(place.name).\(try RandomName.random().hex).part")
            do throws(Errno) {
                let file = try OpenFile(part, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
                try bytes.borrowed { (bytes) throws(Errno) in try FileSystem().write(file.descriptor, bytes, at: 0) }
                try System.fsync(file.descriptor)
                try part.rename(to: place)
            } catch {
                try? part.unlink()
                throw error
            }
            // Some file systems sync no directories.
            if let folder = try? place.folder.readable() { try? System.fsync(folder.descriptor) }
        }
    }

    /// A file beside the tokens, which is locked and stays: it is empty.
    func withLock<R>(_ check: () throws -> Void, _ body: () throws -> R) throws -> R {
        let place = DirectoryEntry(path + ".lock")
        let file = try posix("Opening", place.path) { () throws(Errno) in try OpenFile(place, O_RDWR | O_CREAT, mode: 0o600) }
        let begun = Clock.steady()
        while true {
            do throws(Errno) { try System.lockExclusively(file.descriptor); break } catch {
                // A file system without locks keeps nobody out.
                guard error.code == EWOULDBLOCK || error.code == EAGAIN else { break }
            }
            try check()
            guard Clock.steady() - begun < patience else {
                throw StoreError(
                    .busy, "Another process has held the lock \(place.path) for \(Int(patience)) seconds. End it, and try again.",
                    path: place.path)
            }
            usleep(20_000)
        }
        defer { try? System.unlock(file.descriptor) }
        return try body()
    }
}
