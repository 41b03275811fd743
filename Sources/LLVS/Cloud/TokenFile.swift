/// A file of secrets for a service, JSON, which several threads and processes share (docs/cloud-drives.md). Members that nobody here knows
/// stay as they are.
struct TokenFile: TokenKeeper {
    static let largest = 64 << 10

    /// Where it is.
    private let place: String
    var path: String? { place }
    var name: String { place }
    var title: String { "The file of tokens \(place)" }
    /// Seconds that another may take to renew a token: longer than any answer of a service that is waited for.
    static let patience = 300.0
    private let patience: Double

    init(_ path: String, patience: Double = TokenFile.patience) {
        place = System.resolved(path) ?? System.absolute(path)
        self.patience = patience
    }

    func read() throws -> CloudAnswer {
        guard let bytes = try FolderFiles.read(DirectoryEntry(place), limit: TokenFile.largest) else {
            throw StoreError(.notFound, "\(title) is not there. Sign in, or check the path.", path: place)
        }
        guard let found = try CloudAnswer(bytes), found.isObject else { throw unusable("is no JSON object") }
        return found
    }

    /// On disk before it returns, for nobody else to read.
    func keep(_ json: [UInt8]) throws {
        let entry = DirectoryEntry(place)
        try posix("Keeping the new token in", place) { () throws(Errno) in
            let part = entry.folder.place("\(entry.name).\(try RandomName.random().hex).part")
            do throws(Errno) {
                let file = try OpenFile(part, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
                try json.borrowed { (bytes) throws(Errno) in try FileSystem().write(file.descriptor, bytes, at: 0) }
                try System.fsync(file.descriptor)
                try part.rename(to: entry)
            } catch {
                try? part.unlink()
                throw error
            }
            // Some file systems sync no directories.
            if let folder = try? entry.folder.readable() { try? System.fsync(folder.descriptor) }
        }
    }

    /// A file beside the tokens, which is locked and stays: it is empty.
    func withLock<R>(_ check: () throws -> Void, _ body: () throws -> R) throws -> R {
        let entry = DirectoryEntry(place + ".lock")
        let file = try posix("Opening", entry.path) { () throws(Errno) in try OpenFile(entry, O_RDWR | O_CREAT, mode: 0o600) }
        let begun = Clock.steady()
        while true {
            do throws(Errno) { try System.lockExclusively(file.descriptor); break } catch {
                // A file system without locks keeps nobody out.
                guard error.code == EWOULDBLOCK || error.code == EAGAIN else { break }
            }
            try check()
            guard Clock.steady() - begun < patience else {
                throw StoreError(
                    .busy, "Another process has held the lock \(entry.path) for \(Int(patience)) seconds. End it, and try again.",
                    path: entry.path)
            }
            usleep(20_000)
        }
        defer { try? System.unlock(file.descriptor) }
        return try body()
    }
}
