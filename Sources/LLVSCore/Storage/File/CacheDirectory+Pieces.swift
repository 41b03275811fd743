/// Large caches, which are written and read in pieces.
///
/// A file with a name is read and not mapped, like records: other programs may truncate it. Reading after the end of a mapped file, or
/// from a failing medium, ends the process. Only a file that lost its name before anything was written to it is mapped.
extension CacheDirectory {
    /// Opens a cache; nil if it does not exist or its envelope is invalid. Its bytes are read on access and not compared with their
    /// checksum: a caller that reads a few of many bytes has checksums of the parts. O(1).
    func open(_ name: String) throws -> OpenCache? {
        try CacheName.check(name)
        if let kept = keptInMemory(name) { return kept.map { $0.withUnsafeBytes { OpenCache(copying: $0) } } }
        guard let opened = try? OpenFile(file(name), O_RDONLY) else { return nil }
        return pieces(opened, name)
    }

    /// Returns the data of a cache file; nil if its envelope is invalid, or there is no memory for it.
    fileprivate func pieces(_ file: OpenFile, _ name: String) -> OpenCache? {
        guard let (count, _) = CacheDirectory.envelope(of: file, name), count > 0 else { return nil }
        return FilePieces(file, from: UInt64(CacheDirectory.envelopeSize), count: count)?.bytes
    }

    /// Maps a file of `size` bytes that no other process can open; nil if that fails.
    fileprivate func map(_ file: OpenFile, _ size: UInt64) -> OpenCache? {
        guard let size = Int(exactly: size), size > 0,
            let memory = mmap(nil, size, PROT_READ, MAP_SHARED, file.descriptor, 0), memory != MAP_FAILED
        else { return nil }
        return OpenCache(
            UnsafeRawBufferPointer(start: memory, count: size), release: { munmap(memory, size) }, isMapped: true,
            letGo: { HugePages.release(memory, $0) })
    }

    /// Returns a writer for a cache in pieces. If the name is nil, the file has no name either.
    func writer(_ name: String?) throws -> any CacheWriter {
        if let name { try CacheName.check(name) }
        guard isWritable else {
            guard let name else { return MemoryCacheWriter() }
            return MemoryCacheWriter { [self] in keepInMemory(name, $0) }
        }
        guard let name else {
            // Private from the first moment on: a process that could open it could truncate it.
            let (aside, file) = try makeAside(mode: 0o600)
            try posix("Writing a cache", path) { () throws(Errno) in try aside.unlink() }
            return FileCacheWriter(self, file, place: nil)
        }
        let (aside, file) = try makeAside(mode: system.mode)
        // Removes maps whose names were lost because a process was killed before it reported them, or closed at once. If such a map is in
        // use all the same, it stays open, and is rebuilt from the records later.
        if name.hasPrefix(CacheDirectory.mapPrefix) { removeOld { $0.hasPrefix(CacheDirectory.mapPrefix) && $0.hasSuffix(".cache") } }
        return FileCacheWriter(self, file, place: (name, aside))
    }

    private final class FileCacheWriter: CacheWriter {
        private static let pieceSize = 256 << 10
        private let directory: CacheDirectory
        private let file: OpenFile
        /// The temporary entry and the final name; nil once it is published, and for a file without a name.
        private var place: (name: String, aside: DirectoryEntry)?
        private let start: UInt64
        private var piece: [UInt8] = []
        private var written: UInt64 = 0
        private var checksum: UInt32 = 0

        init(_ directory: CacheDirectory, _ file: OpenFile, place: (name: String, aside: DirectoryEntry)?) {
            self.directory = directory
            self.file = file
            self.place = place
            start = place == nil ? 0 : UInt64(CacheDirectory.envelopeSize)
            piece.reserveCapacity(FileCacheWriter.pieceSize)
        }
        deinit { if let place { try? place.aside.unlink() } }

        func append(_ bytes: UnsafeRawBufferPointer) throws {
            if piece.count + bytes.count > FileCacheWriter.pieceSize { try flush() }
            if bytes.count > FileCacheWriter.pieceSize { try write(bytes) } else { piece.append(contentsOf: bytes) }
        }

        private func flush() throws {
            try piece.withUnsafeBytes { try write($0) }
            piece.removeAll(keepingCapacity: true)
        }

        private func write(_ bytes: UnsafeRawBufferPointer) throws {
            try posix("Writing a cache", directory.path) { () throws(Errno) in
                try directory.system.write(file, bytes, at: start + written)
            }
            written += UInt64(bytes.count)
            checksum = Bytes.crc32c(bytes, from: checksum)
        }

        /// Without a sync: after a power cut, the file does not match its checksum or does not exist, and both are fine.
        func finish() throws -> OpenCache {
            try flush()
            guard let (name, aside) = place else {
                if let bytes = directory.map(file, written) { return bytes }
                throw StoreError(.io, "A cache in \(directory.path) cannot be mapped. Free some memory.", path: directory.path)
            }
            let envelope = CacheDirectory.envelope(name, size: written, checksum: checksum)
            try posix("Writing a cache", directory.path) { () throws(Errno) in
                try envelope.borrowed { (b) throws(Errno) in try directory.system.write(file, b, at: 0) }
            }
            guard let bytes = directory.pieces(file, name) else {
                let message =
                    "A cache in \(directory.path) does not match what was written to it, or there is no memory to read it. Check the disk."
                throw StoreError(.io, message, path: directory.path)
            }
            try posix("Writing a cache", directory.path) { () throws(Errno) in try aside.rename(to: directory.file(name)) }
            place = nil
            return bytes
        }
    }
}

/// The bytes of a file in private memory, read on access. Loaded pieces do not change if the file does. Pieces that can no longer be read
/// are missing.
private final class FilePieces: @unchecked Sendable {
    // Sendable: `lock` guards which pieces are loaded. Their bytes do not change after that.
    private static let size = 16 << 10
    private let memory: UnsafeMutableRawBufferPointer
    private let start: UInt64
    private let lock = Lock(.leaf)
    /// Set until all pieces are loaded.
    private var file: OpenFile?
    private var isHere: [Bool]
    private var missing: Int

    /// Nil if there is no address space for them. Memory is used as pieces are loaded.
    init?(_ file: OpenFile, from start: UInt64, count: Int) {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        guard count > 0, let memory = mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0), memory != MAP_FAILED else { return nil }
        self.memory = UnsafeMutableRawBufferPointer(start: memory, count: count)
        self.file = file
        self.start = start
        missing = (count - 1) / FilePieces.size + 1
        isHere = [Bool](repeating: false, count: missing)
    }
    deinit { munmap(memory.baseAddress, memory.count) }

    var bytes: OpenCache {
        OpenCache(
            UnsafeRawBufferPointer(memory), release: { withExtendedLifetime(self) {} }, fill: { [unowned self] in fill($0) },
            letGo: { [unowned self] in letGo($0) })
    }

    private func fill(_ range: Range<Int>) -> Bool {
        guard range.lowerBound >= 0, range.upperBound <= memory.count else { return false }
        if range.isEmpty { return true }
        return lock.withLock {
            var piece = range.lowerBound / FilePieces.size
            let last = (range.upperBound - 1) / FilePieces.size
            while missing > 0, piece <= last {
                var end = piece
                while end <= last, !isHere[end] { end += 1 }
                if end > piece {
                    guard read(piece * FilePieces.size..<min(end * FilePieces.size, memory.count)) else { return false }
                    for i in piece..<end { isHere[i] = true }
                    missing -= end - piece
                }
                piece = end + 1
            }
            if missing == 0 { file = nil }
            return true
        }
    }

    /// Releases the pieces that are completely within a range.
    private func letGo(_ range: Range<Int>) {
        lock.withLock {
            let first = (range.lowerBound + FilePieces.size - 1) / FilePieces.size, end = range.upperBound / FilePieces.size
            guard file != nil, first < end, end <= isHere.count else { return }
            for piece in first..<end where isHere[piece] {
                isHere[piece] = false
                missing += 1
            }
            if let base = memory.baseAddress { HugePages.release(base, first * FilePieces.size..<end * FilePieces.size) }
        }
    }

    private func read(_ range: Range<Int>) -> Bool {
        let part = UnsafeMutableRawBufferPointer(rebasing: memory[range])
        guard let file, let base = part.baseAddress else { return false }
        HugePages.advise(base, part.count)
        return (try? System.pread(file.descriptor, part, at: start + UInt64(range.lowerBound))) == part.count
    }
}
