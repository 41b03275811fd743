/// A JSON file of secrets for a service, shared by several threads and processes (docs/cloud-drives.md). Unknown members are preserved.
package struct TokenFile: TokenKeeper {
    static let largest = 64 << 10

    /// The path of the file.
    private let place: String
    package var path: String? { place }
    package var name: String { place }
    package var title: String { "The file of tokens \(place)" }
    /// Seconds to wait for another renewal: longer than the longest wait for a response.
    static let patience = 300.0
    private let patience: Double

    package init(_ path: String, patience: Double = TokenFile.patience) {
        place = System.resolved(path) ?? System.absolute(path)
        self.patience = patience
    }

    package func read() throws -> CloudAnswer {
        guard let bytes = try FolderFiles.read(DirectoryEntry(place), limit: TokenFile.largest) else {
            throw StoreError(.notFound, "\(title) does not exist. Sign in, or check the path.", path: place)
        }
        guard let found = try CloudAnswer(bytes), found.isObject else { throw unusable("is not a JSON object") }
        return found
    }

    /// Returns after the file is on disk, readable only by its owner.
    package func keep(_ json: [UInt8]) throws {
        let entry = DirectoryEntry(place)
        try posix("Storing the new token in", place) { () throws(Errno) in
            let part = entry.folder.place("\(entry.name).\(try RandomName.random().hex).part")
            do throws(Errno) {
                let file = try OpenFile(part, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
                try json.borrowed { (bytes) throws(Errno) in try FileSystem().write(file, bytes, at: 0) }
                try System.fsync(file.descriptor)
                try part.rename(to: entry)
            } catch {
                try? part.unlink()
                throw error
            }
            // Some file systems cannot sync directories.
            if let folder = try? entry.folder.readable() { try? System.fsync(folder.descriptor) }
        }
    }

    /// The thread of this process that holds a lock.
    private struct Holder: Equatable {
        let thread = pthread_self(), process = getpid()
        static func == (a: Holder, b: Holder) -> Bool { a.process == b.process && pthread_equal(a.thread, b.thread) != 0 }
    }
    private static let holders = Guarded<[String: Holder]>([:])

    /// Locks an empty file beside the tokens, which is never removed. Other users cannot open it, and so cannot hold the lock.
    package func withLock<R>(_ check: () throws -> Void, _ body: () throws -> R) throws -> R {
        let entry = DirectoryEntry(place + ".lock"), begun = Clock.steady()
        guard TokenFile.holders.withLock({ $0[place] }) != Holder() else {
            throw StoreError(
                .busy, "\(title) is being renewed by the call that made this one, for example in a callback. Let that end first.",
                path: place)
        }
        while true {
            let (file, identity) = try TokenFile.lockFile(entry)
            do throws(Errno) {
                try System.lockExclusively(file.descriptor)
                // The file may have been removed between opening and locking.
                if identity.isGone(from: entry.path) { continue }
            } catch {
                // A file system without locks excludes no other process.
                if error.code == EWOULDBLOCK || error.code == EAGAIN {
                    try check()
                    guard Clock.steady() - begun < patience else {
                        throw StoreError(
                            .busy, "Another process has held the lock \(entry.path) for \(Int(patience)) seconds. End it, and try again.",
                            path: entry.path)
                    }
                    usleep(20_000)
                    continue
                }
            }
            TokenFile.holders.withLock { $0[place] = Holder() }
            defer {
                TokenFile.holders.withLock { $0[place] = nil }
                try? System.unlock(file.descriptor)
            }
            return try body()
        }
    }

    /// Opens the lock file, which must belong to this process's user or to one with all rights in the folder. Removes another user's file.
    /// - Throws: `.permission` if that fails.
    private static func lockFile(_ entry: DirectoryEntry) throws -> (OpenFile, FileIdentity) {
        while true {
            var opened: OpenFile?, failure: Errno?
            do throws(Errno) { opened = try OpenFile(entry, O_RDWR | O_CREAT, mode: 0o600) } catch { failure = error }
            let found = try? opened.map { try System.status($0.descriptor) } ?? entry.status()
            guard let found else {
                // If there is no file, none can be created; otherwise it was removed just now.
                if let failure { throw StoreError.posix(failure, doing: "Opening", path: entry.path) }
                continue
            }
            guard isTrusted(found, entry) else {
                try posix("Removing the file of another user (number \(found.owner)), who could hold it forever,", entry.path) {
                    () throws(Errno) in
                    do throws(Errno) {
                        if FileIdentity(try entry.status()) == FileIdentity(found) { try entry.unlink() }
                    } catch { if error != .missing { throw error } }
                }
                continue
            }
            guard let opened else { throw StoreError.posix(failure ?? Errno(EACCES), doing: "Opening", path: entry.path) }
            if found.permissions & 0o077 != 0, found.owner == geteuid() { try? System.setPermissions(opened.descriptor, 0o600) }
            return (opened, FileIdentity(found))
        }
    }

    private static func isTrusted(_ status: System.Status, _ entry: DirectoryEntry) -> Bool {
        if [UInt32(geteuid()), 0].contains(status.owner) { return true }
        guard let folder = try? entry.folder.place(".").status() else { return false }
        return status.owner == folder.owner
    }
}
