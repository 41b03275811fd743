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
    private let lock = Lock(.blobs)
    /// Written here and not synced yet (at durability `normal`).
    private var dirty: [Place] = []
    /// Put in place since the last sync.
    private var fresh: [Place] = []
    private var directoryIsDirty = false
    /// The directory's own name was synced: whoever made it may have been killed before he could.
    private var directoryIsDurable = false
    private var isTidied = false
    /// A sync failed: the system may have dropped bytes, and later syncs cannot be believed.
    private var poison: StoreError?
    /// A sync of what others wrote failed: see `rewriteDoubtful`.
    private var syncUncertain = false
    private var open: [OpenBlob] = []
    private static let openLimit = 16

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

    private func place(of name: RandomName) -> Place { folder.place(name.hex + ".blob") }

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
        let newest = max(status.modified, status.changed), (age, overflow) = System.now.subtractingReportingOverflow(newest)
        guard !overflow, age > 2_000_000_000, llvs_shim_is_local(path) == 1 else { return nil }
        return BlobMark(inode: status.inode, modified: status.modified, changed: status.changed)
    }

    /// A blob was written; it is to be synced.
    func note(_ filePath: Place) {
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
    func make(_ name: String, readable: Bool = false) throws -> (OpenFile, Place) {
        tidyOnce()
        let (file, place) = try makeFile(name, readable)
        // As long as it is open: nobody takes it for a leftover. Where there are no locks, its age says so.
        do throws(Errno) { try System.lockExclusively(file.descriptor) } catch {}
        return (file, place)
    }

    /// Removes what killed processes left unfinished, a day ago or longer: nobody holds it, and nobody else's machine can be
    /// so slow in bringing it here.
    private func tidyOnce() {
        guard lock.withLock({ let first = !isTidied; isTidied = true; return first }) else { return }
        let yesterday = System.now &- 86_400 * 1_000_000_000
        for name in (try? folder.names()) ?? [] where name.hasSuffix(".new") && RandomName(hex: name.dropLast(4)) != nil {
            let old = folder.place(name)
            guard let file = try? OpenFile(old, O_RDONLY), let status = try? System.status(file.descriptor), status.isRegularFile,
                status.modified < yesterday
            else { continue }
            do throws(Errno) { try System.lockExclusively(file.descriptor) } catch { if error.code == EWOULDBLOCK { continue } }
            withExtendedLifetime(file) { try? system.unlink(old) }
        }
    }

    private func makeFile(_ name: String, _ readable: Bool) throws -> (OpenFile, Place) {
        let flags = (readable ? O_RDWR : O_WRONLY) | O_CREAT | O_EXCL
        func new() throws(Errno) -> (OpenFile, Place) {
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
    func publish(_ file: Place, as name: RandomName) throws -> Place {
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
                try system.fdatasync(file.descriptor)
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

    var isDoubtful: Bool {
        get { lock.withLock { syncUncertain } }
        set { lock.withLock { syncUncertain = newValue } }
    }

    // MARK: Reading

    /// Also one that is damaged, once nobody has written to it for a while: it is not on its way, and what names it need not wait.
    /// A time that is more than a pause ahead says nothing of when it was written: whoever writes it now leaves the time of now.
    /// - Throws: what keeps it from being looked at: being short of descriptors or of memory, not being allowed to, a lease, a medium
    ///   that fails. That says nothing of the blob, and its version must not be passed over.
    func has(_ id: BlobID) throws -> Bool {
        do {
            _ = try blob(RandomName(id))
            return true
        } catch let error as StoreError where [.tooManyFiles, .outOfMemory].contains(error.code) {
            throw error
        } catch let error as StoreError {
            let place = place(of: RandomName(id)), status: System.Status
            do throws(Errno) { status = try place.status() } catch let failure {
                if [ENOENT, ENOTDIR, ELOOP].contains(failure.code) { return false }
                throw StoreError.posix(failure, doing: "Looking for the value", path: place.path)
            }
            guard status.isRegularFile else { return false }
            let (age, overflow) = System.now.subtractingReportingOverflow(status.modified)
            if overflow || age.magnitude > BlobDirectory.longestPause.magnitude { return true }
            if [.io, .permission, .busy].contains(error.code) { throw error }
            return false
        }
    }
    /// Nanoseconds between two writes of whoever carries a blob here.
    private static let longestPause: Int64 = 60 * 1_000_000_000

    /// How the SHA-256 of its bytes begins, as its header has it; nil where it does not, or cannot be read.
    func tells(_ id: BlobID) -> [UInt8]? { (try? blob(RandomName(id)))?.digest }

    func read(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        let blob = try blob(RandomName(id))
        do { try read(blob, at: offset, into: buffer) } catch let error as StoreError
            where error.code == .damaged && (try? place(of: blob.id).status()).map(FileIdentity.init) != blob.identity
        {
            // Somebody has put a good file in its place.
            forget(blob)
            try read(self.blob(RandomName(id)), at: offset, into: buffer)
        }
    }

    private func read(_ blob: OpenBlob, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard offset <= blob.size, UInt64(buffer.count) <= blob.size - offset else {
            throw StoreError(
                .damaged,
                "Reading \(buffer.count) bytes at \(offset) of the blob \(blob.path) failed: it has \(blob.size). Verify the store.",
                path: blob.path)
        }
        let blockSize = UInt64(BlobDirectory.blockSize)
        var done = 0
        var spare: [UInt8] = []
        while done < buffer.count {
            let at = offset + UInt64(done)
            let block = at / blockSize
            let inBlock = Int(at % blockSize)
            let length = Int(min(blockSize, blob.size - block * blockSize))
            let wanted = min(length - inBlock, buffer.count - done)
            if inBlock == 0, wanted == length {
                // Whole blocks, as many as there are, go where they are wanted.
                var whole = 0
                var blocks = 0
                while done + whole < buffer.count {
                    let next = Int(min(blockSize, blob.size - (block + UInt64(blocks)) * blockSize))
                    if next == 0 || done + whole + next > buffer.count || whole >= 1 << 20 { break }
                    whole += next
                    blocks += 1
                }
                let target = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + whole])
                try load(blob, at, target)
                var from = 0
                for i in 0..<blocks {
                    let end = min(whole, from + BlobDirectory.blockSize)
                    try check(blob, Int(block) + i, UnsafeRawBufferPointer(rebasing: target[from..<end]))
                    from = end
                }
                done += whole
            } else {
                if spare.isEmpty { spare = [UInt8](repeating: 0, count: BlobDirectory.blockSize) }
                try spare.withUnsafeMutableBytes { spare in
                    let whole = UnsafeMutableRawBufferPointer(rebasing: spare[0..<length])
                    try load(blob, block * blockSize, whole)
                    try check(blob, Int(block), UnsafeRawBufferPointer(whole))
                    if let to = buffer.baseAddress, let from = whole.baseAddress { memcpy(to + done, from + inBlock, wanted) }
                }
                done += wanted
            }
        }
    }

    /// The names of what may be blobs, in no order; none where the folder cannot be read.
    /// - Throws: what the control throws, and what the waits of this thread look at.
    func names(_ control: PacedControl) throws -> [String] {
        do { return try folder.names(control) { $0.suffix(5).elementsEqual(".blob".utf8) } } catch is Errno { return [] }
    }

    /// Checks every block of every blob that is whole in length.
    func verify(_ control: PacedControl, progress: (UInt64) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        let names = try names(control)
        var done: UInt64 = 0
        for name in try names.sorted(by: <, looking: control.look) {
            guard let id = RandomName(hex: name.dropLast(5)) else { continue }
            try progress(done)
            do {
                let blob = try blob(id)
                var bytes = [UInt8](repeating: 0, count: BlobDirectory.blockSize * 16)
                var at: UInt64 = 0
                while at < blob.size {
                    let count = Int(min(blob.size - at, UInt64(bytes.count)))
                    if at > 0 { try progress(done) }
                    do {
                        try bytes.withUnsafeMutableBytes {
                            try read(
                                BlobID(high: id.high, low: id.low), at: at, into: UnsafeMutableRawBufferPointer(rebasing: $0[0..<count]))
                        }
                    } catch let error as StoreError where error.code.isOfOne {
                        try damage(StorageDamage(file: blob.path, offset: blob.dataOffset + at, message: error.message, lost: .value))
                    }
                    at += UInt64(count)
                    done &+= UInt64(count)
                }
            } catch let error as StoreError where error.code == .notFound {
                continue  // Still on its way, or gone again.
            } catch let error as StoreError where error.code.isOfOne {
                try damage(StorageDamage(file: path + "/" + name, offset: 0, message: error.message, lost: .value))
            }
        }
    }

    func letGo() { lock.withLock { open = [] } }

    private func load(_ blob: OpenBlob, _ at: UInt64, _ target: UnsafeMutableRawBufferPointer) throws {
        let got = try posix("Reading the blob", blob.path) { () throws(Errno) in
            try System.pread(blob.file.descriptor, target, at: blob.dataOffset + at)
        }
        if got < target.count {
            forget(blob)
            throw StoreError(
                .damaged,
                "Reading the blob \(blob.path) failed: it has become shorter than it was. "
                    + "Put back the whole file, or exchange with a store that has the value.",
                path: blob.path)
        }
    }

    private func check(_ blob: OpenBlob, _ block: Int, _ bytes: UnsafeRawBufferPointer) throws {
        guard block < blob.table.count, Bytes.crc32c(bytes) == blob.table[block] else {
            forget(blob)
            throw StoreError(
                .damaged,
                "A value is damaged: block \(block) of the blob \(blob.path) does not match its checksum. "
                    + "Put back a good copy of the file, or exchange with a store that has the value.",
                path: blob.path)
        }
    }

    private func forget(_ blob: OpenBlob) { lock.withLock { open.removeAll { $0 === blob } } }

    /// The blob, open and with a checked table.
    /// - Throws: `.notFound` when it is not here, or not wholly.
    private func blob(_ id: RandomName) throws -> OpenBlob {
        let known: OpenBlob? = lock.withLock {
            guard let i = open.firstIndex(where: { $0.id == id }) else { return nil }
            let blob = open.remove(at: i)
            open.append(blob)
            return blob
        }
        if let known { return known }
        let place = place(of: id), filePath = place.path
        let file = try posix("Opening the blob", filePath) { () throws(Errno) in try OpenFile(place, O_RDONLY) }
        let damaged = StoreError(
            .damaged,
            "A value is damaged: the header or the table of the blob \(filePath) does not match its checksum. "
                + "Put back a good copy of the file, or exchange with a store that has the value.",
            path: filePath)
        let incomplete = StoreError(
            .notFound,
            "The blob \(filePath) is not wholly here. If a syncing program is bringing it, wait; "
                + "else put back a good copy of the file, or exchange with a store that has the value.",
            path: filePath)
        let status = try posix("Looking at the blob", filePath) { () throws(Errno) in try System.status(file.descriptor) }
        let fileSize = status.size
        guard status.isRegularFile else {
            throw StoreError(
                .damaged,
                "The blob \(filePath) is not a file. Remove it and put back a copy of the file, or retrieve the version from a store that "
                    + "has it.",
                path: filePath)
        }
        guard fileSize >= UInt64(BlobDirectory.headerSize) else { throw incomplete }
        let header = try bytes(of: file, filePath, at: 0, BlobDirectory.headerSize)
        let (size, tableChecksum, digest): (UInt64, UInt32, [UInt8]) = try header.withUnsafeBytes { b in
            guard FrameFormat.load(b, 60, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<60])),
                  FrameFormat.load(b, 0, UInt64.self) == BlobDirectory.magic, FrameFormat.load(b, 8, UInt32.self) == 1,
                FrameFormat.load(b, 12, UInt32.self) == UInt32(BlobDirectory.blockSize), RandomName(loading: b, at: 16) == id
            else { throw damaged }
            return (FrameFormat.load(b, 32, UInt64.self), FrameFormat.load(b, 40, UInt32.self), Array(b[44..<60]))
        }
        let blocks = size / UInt64(BlobDirectory.blockSize) + (size % UInt64(BlobDirectory.blockSize) == 0 ? 0 : 1)
        // Before memory is taken for the table: the file must be as long as its header says.
        // Nobody writes a larger one; a sparse file of any size costs nothing to make.
        guard size <= UInt64(Limits.valueSize) else { throw damaged }
        guard size <= fileSize, blocks * 4 <= fileSize - size, fileSize - size - blocks * 4 >= UInt64(BlobDirectory.headerSize),
            let count = Int(exactly: blocks)
        else { throw incomplete }
        let table = try bytes(of: file, filePath, at: UInt64(BlobDirectory.headerSize), count * 4)
        let blob: OpenBlob = try table.withUnsafeBytes { b in
            guard Bytes.crc32c(b) == tableChecksum else { throw damaged }
            return OpenBlob(
                id: id, path: filePath, file: file, identity: FileIdentity(status), size: size,
                digest: digest.contains { $0 != 0 } ? digest : nil, table: (0..<count).map { FrameFormat.load(b, $0 * 4, UInt32.self) })
        }
        lock.withLock {
            if open.count >= BlobDirectory.openLimit { open.removeFirst() }
            open.append(blob)
        }
        return blob
    }

    private func bytes(of file: OpenFile, _ filePath: String, at offset: UInt64, _ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = try posix("Reading the blob", filePath) { () throws(Errno) in
            try bytes.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: offset) }
        }
        guard got == count else {
            throw StoreError(
                .notFound,
                "The blob \(filePath) is not wholly here. If a syncing program is bringing it, wait; "
                    + "else put back a good copy of the file, or retrieve from a store that has the value.",
                path: filePath)
        }
        return bytes
    }
}
