import CLLVSShims

/// Reads values from their files, block by block, and checks each block.
extension BlobDirectory {
    /// Returns whether a blob is present. A damaged blob also counts as present once it was not written to for `longestPause`: it is not
    /// in transit, and versions that name it need not wait. A modification time further ahead of the clock than that is ignored, since a
    /// program that writes the blob now sets the current time.
    /// - Throws: whatever keeps the blob from being examined: a lack of descriptors, memory or permission, a lease, or a failing medium.
    ///   Such an error says nothing about the blob, and its version must not be skipped.
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
                throw StoreError.posix(failure, doing: "Checking for the value", path: place.path)
            }
            guard status.isRegularFile else { return false }
            let (age, overflow) = System.now.subtractingReportingOverflow(status.modified)
            if overflow || age.magnitude > BlobDirectory.longestPause.magnitude { return true }
            if [.io, .permission, .busy].contains(error.code) { throw error }
            return false
        }
    }
    /// The longest time in nanoseconds between two writes of a program that copies a blob here.
    private static let longestPause: Int64 = 60 * 1_000_000_000

    /// Returns the first bytes of the data's SHA-256 from the header; nil if it does not have them, or cannot be read.
    func tells(_ id: BlobID) -> [UInt8]? { (try? blob(RandomName(id)))?.digest }

    func read(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        let blob = try blob(RandomName(id))
        do { try read(blob, at: offset, into: buffer) } catch let error as StoreError
            where error.code == .damaged && (try? place(of: blob.id).status()).map(FileIdentity.init) != blob.identity
            || !blob.file.isOurs
        {
            // A whole file was put in its place, or the host closed the descriptor.
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
                // Read whole blocks directly into the caller's buffer, as many as there are.
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

    /// Returns the names of all possible blobs, in no order; none if the folder cannot be read.
    /// - Throws: the errors of the control, and of the checks of this thread's waits.
    func names(_ control: PacedControl) throws -> [String] {
        do { return try folder.names(control) { $0.suffix(5).elementsEqual(".blob".utf8) } } catch is Errno { return [] }
    }

    /// Checks every block of every blob whose file has its full length.
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
                continue // Still in transit, or gone again.
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
                    + "Restore the whole file, or exchange with a store that has the value.",
                path: blob.path)
        }
    }

    private func check(_ blob: OpenBlob, _ block: Int, _ bytes: UnsafeRawBufferPointer) throws {
        guard block < blob.table.count, Bytes.crc32c(bytes) == blob.table[block] else {
            forget(blob)
            throw StoreError(
                .damaged,
                "A value is damaged: block \(block) of the blob \(blob.path) does not match its checksum. "
                    + "Restore a good copy of the file, or exchange with a store that has the value.",
                path: blob.path)
        }
    }

    private func forget(_ blob: OpenBlob) { lock.withLock { open.removeAll { $0 === blob } } }

    private static let openLimit = 16
    /// Returns the opened blob with its checked table.
    /// - Throws: `.notFound` if it is not present, or not complete.
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
                + "Restore a good copy of the file, or exchange with a store that has the value.",
            path: filePath)
        let incomplete = StoreError(
            .notFound,
            "The blob \(filePath) is incomplete. If a syncing program is still copying it, wait; "
                + "otherwise restore a good copy of the file, or exchange with a store that has the value.",
            path: filePath)
        let status = try posix("Examining the blob", filePath) { () throws(Errno) in try System.status(file.descriptor) }
        let fileSize = status.size
        guard status.isRegularFile else {
            throw StoreError(
                .damaged,
                "The blob \(filePath) is not a file. Remove it and restore a copy of the file, or retrieve the version from a store that "
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
        // Before allocating the table: the file must be as long as its header says. The library writes no larger blob, and a sparse file
        // of any size costs nothing to create.
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
                "The blob \(filePath) is incomplete. If a syncing program is still copying it, wait; "
                    + "otherwise restore a good copy of the file, or retrieve from a store that has the value.",
                path: filePath)
        }
        return bytes
    }
}
