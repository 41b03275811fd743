import CLLVSShims

/// Values too large for records, a file each, checksummed per block so that a part can be read and checked
/// without the rest. All integers little-endian, all checksums CRC-32C.
///
///     header, 64 bytes                        table: checksum:4 for each block of 64 KiB
///      0  8  magic "LLVSblb\n"                data:  the value's bytes
///      8  4  format, 1
///     12  4  block size, 65,536
///     16 16  blob id
///     32  8  bytes of data
///     40  4  checksum of the table
///     44 16  the first 16 bytes of SHA-256 of the data; zero: not told
///     60  4  checksum of bytes 0..<60
///
/// A blob is written under its random name before the record that names it; one that no record names
/// is garbage.
final class BlobDirectory: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    static let magic: UInt64 = 0x0A62_6C62_5356_4C4C
    static let headerSize = 64
    static let blockSize = 65_536

    let folder: Folder
    var path: String { folder.path }
    let store: StoreDirectory
    let durability: Durability
    let system: FileSystem
    let lock = Lock(.blobs)
    /// Written here and not synced yet (at durability `normal`).
    private var dirty: [DirectoryEntry] = []
    /// Put in place since the last sync.
    private var fresh: [DirectoryEntry] = []
    private var directoryIsDirty = false
    /// The directory's own name was synced: whoever made it may have been killed before he could.
    private var directoryIsDurable = false
    private var isTidied = false
    /// A sync failed: the system may have dropped bytes, and later syncs cannot be believed.
    private var poison: StoreError?
    /// A sync of what others wrote failed: see `rewriteUncertain`.
    private var syncUncertain = false
    /// Guarded by `lock`.
    var open: [OpenBlob] = []

    /// A blob open for reading, with its table.
    final class OpenBlob: Sendable {
        let id: RandomName
        let path: String
        let file: OpenFile
        let size: UInt64
        /// How the SHA-256 of the data begins; nil where that is not told.
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

    /// Returns the blob's name and the bytes written.
    func store(_ data: UnsafeRawBufferPointer, _ digest: [UInt8]) throws -> (BlobID, UInt64) {
        var written: UInt64 = 0
        let writer = try FileBlobWriter(self, size: data.count) { written = $0 }
        try writer.append(data)
        return (try writer.finish(digest: digest), written)
    }

    /// Writes the bytes of a blob that is damaged, or gone, into a file of its name. Returns the bytes written.
    func replace(_ id: BlobID, _ data: UnsafeRawBufferPointer, _ digest: [UInt8]) throws -> UInt64 {
        let name = RandomName(id)
        // A directory is not replaced by a file; an empty one holds nothing that anybody could miss.
        let place = place(of: name)
        try? place.rmdir()
        if let status = try? place.status(), status.isDirectory {
            throw StoreError(
                .notADirectory,
                "Writing a value anew is not possible: the folder \(place), which is not empty, is in the place of its file. "
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

    /// Of the directory's times, which are believed as those of an exchange folder are: on a file system of this machine, and when they
    /// were older than two seconds.
    var mark: BlobMark? {
        let status: System.Status
        do throws(Errno) { status = try System.status(path) } catch { return error == .missing ? BlobMark.unchanging : nil }
        let newest = max(status.modified, status.changed), (age, overflow) = system.now().subtractingReportingOverflow(newest)
        guard !overflow, age > 2_000_000_000, llvs_shim_is_local(path) == 1 else { return nil }
        return BlobMark(inode: status.inode, modified: status.modified, changed: status.changed)
    }

    /// A blob was written; it is to be synced.
    func note(_ filePath: DirectoryEntry) {
        lock.withLock {
            if durability != .full { dirty.append(filePath) }
            fresh.append(filePath)
            directoryIsDirty = true
        }
    }

    /// For one that no record names. Failures leave it there, as garbage.
    func remove(_ id: BlobID) {
        let name = RandomName(id), filePath = place(of: name)
        lock.withLock {
            dirty.removeAll { $0 == filePath }
            fresh.removeAll { $0 == filePath }
            open.removeAll { $0.id == name }
        }
        do throws(Errno) { try system.unlink(filePath) } catch {
            if error.code != ENOENT { Log.write(.warning, "A value that is not used could not be removed: \(filePath).") }
        }
    }

    /// A new file in the directory as it is now: its place stays with it when another directory takes the name.
    func make(_ name: String, readable: Bool = false) throws -> (OpenFile, DirectoryEntry) {
        tidyOnce()
        let (file, place) = try makeFile(name, readable)
        // As long as it is open: nobody takes it for a leftover. Where there are no locks, its age says so.
        do throws(Errno) { try System.lockExclusively(file.descriptor) } catch {}
        return (file, place)
    }

    /// Removes what killed processes left unfinished, a day ago or longer: nobody holds it, and nobody else's machine can be
    /// so slow in bringing it here.
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

    /// Gives a file that is whole its name, in the directory that is there by now: somebody may have put another in place while it was
    /// written.
    func publish(_ file: DirectoryEntry, as name: RandomName) throws -> DirectoryEntry {
        if folder.isElsewhere { folder.renew() }
        let final = place(of: name)
        do throws(Errno) { try system.rename(file, final) } catch {
            guard error.code == ENOENT else { throw StoreError.posix(error, doing: "Putting in place the blob", path: final.path) }
            try store.make(folder, system)
            try posix("Putting in place the blob", final.path) { () throws(Errno) in try system.rename(file, final) }
        }
        return final
    }

    /// Makes durable what was stored here. Answers how many syncs that took.
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
                // Removed meanwhile, since its version was not stored.
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
