import CLLVSShims

/// Values too large for records, one file each, with a checksum per block. So a part is read and checked without the rest. All integers
/// are little-endian, all checksums CRC-32C.
///
///     header, 64 bytes                        table: checksum:4 for each block of 64 KiB
///      0  8  magic "LLVSblb\n"                data:  the value's bytes
///      8  4  format, 1
///     12  4  block size, 65,536
///     16 16  blob id
///     32  8  bytes of data
///     40  4  checksum of the table
///     44 16  the first 16 bytes of SHA-256 of the data; zero: not known
///     60  4  checksum of bytes 0..<60
///
/// A blob is written under its random name before the record that names it. A blob that no record names is garbage.
final class BlobDirectory: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    static let magic: UInt64 = 0x0A62_6C62_5356_4C4C
    static let headerSize = 64
    static let blockSize = 65_536
    /// Returns the size of the file of a value.
    static func fileSize(of size: Int) -> UInt64 { UInt64(headerSize &+ 4 &* ((size &+ blockSize &- 1) / blockSize) &+ size) }

    let folder: Folder
    var path: String { folder.path }
    let store: StoreDirectory
    let durability: Durability
    let system: FileSystem
    let lock = Lock(.blobs)
    /// Files written here and not synced yet (at durability `normal`).
    private var dirty: [DirectoryEntry] = []
    /// Files published since the last sync.
    private var fresh: [DirectoryEntry] = []
    private var directoryIsDirty = false
    /// Whether the directory's own name was synced: the process that created it may have been killed before it could.
    private var directoryIsDurable = false
    private var isTidied = false
    /// Set if a sync failed: the system may have dropped bytes, so later syncs cannot be believed.
    private var poison: StoreError?
    /// Whether a sync of other writers' files failed: see `rewriteUncertain`.
    private var syncUncertain = false
    /// Guarded by `lock`.
    var open: [OpenBlob] = []

    /// A blob open for reading, with its table.
    final class OpenBlob: Sendable {
        let id: RandomName
        let path: String
        let file: OpenFile
        let size: UInt64
        /// The first bytes of the data's SHA-256, or nil if the header does not have them.
        let digest: [UInt8]?
        let table: [UInt32]
        let identity: FileIdentity
        var dataOffset: UInt64 { UInt64(BlobDirectory.headerSize + 4 * table.count) }
        init(id: RandomName, path: String, file: OpenFile, identity: FileIdentity, size: UInt64, digest: [UInt8]?, table: [UInt32]) {
            self.id = id; self.path = path; self.file = file; self.identity = identity; self.size = size; self.digest = digest;
            self.table = table
        }
    }

    init(_ folder: Folder, store: StoreDirectory, durability: Durability, system: FileSystem) {
        self.folder = folder; self.store = store; self.durability = durability; self.system = system
    }

    // MARK: Writing

    func place(of name: RandomName) -> DirectoryEntry { folder.place(name.hex + ".blob") }

    /// Stores a blob, and returns its name and the number of bytes written.
    func store(_ data: UnsafeRawBufferPointer, _ digest: [UInt8]) throws -> (BlobID, UInt64) {
        var written: UInt64 = 0
        let writer = try FileBlobWriter(self, size: data.count) { written = $0 }
        try writer.append(data)
        return (try writer.finish(digest: digest), written)
    }

    /// Rewrites a damaged or missing blob in a file of its name. Returns the number of bytes written.
    func replace(_ id: BlobID, _ data: UnsafeRawBufferPointer, _ digest: [UInt8]) throws -> UInt64 {
        let name = RandomName(id)
        // A file cannot replace a directory. Removing an empty one loses nothing.
        let place = place(of: name)
        try? place.rmdir()
        if let status = try? place.status(), status.isDirectory {
            throw StoreError(
                .notADirectory,
                "Rewriting a value is not possible: the folder \(place), which is not empty, is where its file should be. "
                    + "Move it away and retrieve again.",
                path: place.path)
        }
        var written: UInt64 = 0
        let writer = try FileBlobWriter(self, size: data.count, replacing: id) { written = $0 }
        try writer.append(data)
        _ = try writer.finish(digest: digest)
        lock.withLock { open.removeAll { $0.id == name } }
        return written
    }

    /// A mark from the directory's times. It is trusted under the conditions for exchange folders: on a local file system, and if the
    /// times are more than two seconds old.
    var mark: BlobMark? {
        let status: System.Status
        do throws(Errno) { status = try System.status(path) } catch { return error == .missing ? BlobMark.unchanging : nil }
        let newest = max(status.modified, status.changed), (age, overflow) = system.now().subtractingReportingOverflow(newest)
        guard !overflow, age > 2_000_000_000, llvs_shim_is_local(path) == 1 else { return nil }
        return BlobMark(inode: status.inode, modified: status.modified, changed: status.changed)
    }

    /// Records that a blob was written and must be synced.
    func note(_ filePath: DirectoryEntry) {
        lock.withLock {
            if durability != .full { dirty.append(filePath) }
            fresh.append(filePath)
            directoryIsDirty = true
        }
    }

    /// Removes a blob that no record names. If that fails, it stays as garbage.
    func remove(_ id: BlobID) {
        forgetOpen(id)
        let filePath = place(of: RandomName(id))
        do throws(Errno) { try system.unlink(filePath) } catch {
            if error.code != ENOENT { Log.write(.warning, "A value that is not used could not be removed: \(filePath).") }
        }
    }

    /// Closes a blob that is open for reading, and forgets that it must be synced: it is about to be removed.
    func forgetOpen(_ id: BlobID) {
        let name = RandomName(id), filePath = place(of: name)
        lock.withLock {
            dirty.removeAll { $0 == filePath }
            fresh.removeAll { $0 == filePath }
            open.removeAll { $0.id == name }
        }
    }

    /// Creates a new file in the current directory. Its `DirectoryEntry` refers to this directory even if another one takes its name.
    func make(_ name: String, readable: Bool = false) throws -> (OpenFile, DirectoryEntry) {
        tidyOnce()
        let (file, place) = try makeFile(name, readable)
        // Lock it while it is open, so that it is not taken for a leftover. Without locks, its age protects it.
        do throws(Errno) { try System.lockExclusively(file.descriptor) } catch {}
        return (file, place)
    }

    /// Removes files that killed processes left unfinished at least a day ago: no process has them open, and no other machine takes that
    /// long to bring one here.
    private func tidyOnce() {
        guard
            lock.withLock({
                let first = !isTidied; isTidied = true; return first
            })
        else { return }
        let day: Int64 = 86_400 * 1_000_000_000
        for name in (try? folder.names()) ?? [] where name.hasSuffix(".new") && RandomName(hex: name.dropLast(4)) != nil {
            let old = folder.place(name)
            guard let file = try? OpenFile(old, O_RDONLY), let status = try? System.status(file.descriptor), status.isRegularFile,
                status.modified < folder.now &- day
            else { continue }
            do throws(Errno) { try System.lockExclusively(file.descriptor) } catch { if error.code == EWOULDBLOCK { continue } }
            withExtendedLifetime(file) { try? system.unlink(old) }
        }
    }

    private func makeFile(_ name: String, _ readable: Bool) throws -> (OpenFile, DirectoryEntry) {
        let flags = (readable ? O_RDWR : O_WRONLY) | O_CREAT | O_EXCL
        func new() throws(Errno) -> (OpenFile, DirectoryEntry) {
            let place = try folder.pinned().place(name)
            return (try OpenFile(place, flags, mode: system.mode), place)
        }
        do throws(Errno) { return try new() } catch {
            guard error.code == ENOENT else { throw StoreError.posix(error, doing: "Making the blob", path: path + "/" + name) }
        }
        try store.make(folder, system)
        return try posix("Making the blob", path + "/" + name) { () throws(Errno) in try new() }
    }

    /// Renames a complete file to its final name in the current directory, which may have been replaced while the file was written.
    func publish(_ file: DirectoryEntry, as name: RandomName) throws -> DirectoryEntry {
        if folder.isElsewhere { folder.renew() }
        let final = place(of: name)
        do throws(Errno) { try system.rename(file, final) } catch {
            guard error.code == ENOENT else { throw StoreError.posix(error, doing: "Publishing the blob", path: final.path) }
            try store.make(folder, system)
            try posix("Publishing the blob", final.path) { () throws(Errno) in try system.rename(file, final) }
        }
        return final
    }

    /// Makes the blobs stored here durable. Returns how many syncs that took.
    func sync() throws -> Int {
        let (paths, directory, fresh, failure) = lock.withLock { (self.dirty, self.directoryIsDirty, self.fresh, self.poison) }
        if let failure { throw failure }
        if directory, folder.isElsewhere {
            folder.renew()
            for place in fresh where (try? place.status()) == nil && lock.withLock({ self.fresh.contains(place) }) {
                lock.withLock { self.fresh = [] }
                throw StoreError.gone("Storing a value in", "the store at \(store.path)", path: path)
            }
        }
        for filePath in paths {
            do throws(Errno) {
                let file = try OpenFile(filePath, O_RDONLY)
                try system.sync(file)
            } catch {
                // The blob was removed meanwhile, since its version was not stored.
                if error.code == ENOENT, lock.withLock({ !dirty.contains(filePath) }) { continue }
                let failure = StoreError.posix(error, doing: "Syncing the blob", path: filePath.path)
                lock.withLock { self.poison = failure }
                throw failure
            }
        }
        if directory {
            if !lock.withLock({ directoryIsDurable }) { try store.syncDirectory(store.root, system) }
            try store.syncDirectory(folder, system)
        }
        if directory || !paths.isEmpty {
            lock.withLock {
                if directory { directoryIsDurable = true }
                let synced = Set(paths), seen = Set(fresh)
                self.fresh.removeAll { seen.contains($0) }
                dirty.removeAll { synced.contains($0) }
                if dirty.isEmpty { directoryIsDirty = false }
            }
        }
        return paths.count + (directory ? 1 : 0)
    }

    var isSyncUncertain: Bool {
        get { lock.withLock { syncUncertain } }
        set { lock.withLock { syncUncertain = newValue } }
    }
}
