/// Small derived files beside the records, replaced atomically. A file that does not match its checksum counts as missing.
///
///     <name>.cache = envelope data          envelope, 32 bytes, little-endian
///                                            0  8  magic "LLVScch\n"
///                                            8  4  format, 1
///                                           12  4  checksum of the name
///                                           16  8  bytes of data
///                                           24  4  checksum of the data
///                                           28  4  checksum of bytes 0..<28
///
/// If the directory is not writable, caches are kept in memory.
final class CacheDirectory: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    /// The prefix of the names of flat maps. A new map removes the old ones.
    static let mapPrefix = "map-"

    static let magic: UInt64 = 0x0A68_6363_5356_4C4C
    static let envelopeSize = 32

    /// In the store, or in the directory that the caller chose.
    let folder: Folder
    var path: String { folder.path }
    private let isInner: Bool
    private let suffix: String
    private let writable: Bool
    private let store: StoreDirectory
    let system: FileSystem
    private let lock = Lock(.leaf)
    /// Caches that could not be written; nil for a deleted one.
    private var memory: [String: [UInt8]?] = [:]
    private var tidied = false

    /// - Parameter path: the directory; nil for one in the store.
    init(path: String?, writable: Bool, store: StoreDirectory, system: FileSystem) throws {
        if let path {
            guard !path.isEmpty, !path.utf8.contains(0) else {
                throw StoreError(
                    .invalidArgument,
                    "The path of the cache directory is \(path.isEmpty ? "empty" : "not a path: it holds a NUL"). "
                        + "Give the path of a directory.",
                    path: path)
            }
        }
        isInner = path == nil
        folder = path.map { Folder(System.absolute($0)) } ?? store.root.folder("cache")
        suffix = ".cache"
        self.writable = writable; self.store = store; self.system = system
    }

    /// Files of this form in the directory of the store itself, which are no caches. Their names have no suffix.
    init(besideRecordsOf store: StoreDirectory, writable: Bool, system: FileSystem) {
        (folder, isInner, suffix) = (store.root, false, "")
        self.writable = writable; self.store = store; self.system = system
    }

    func file(_ name: String) -> DirectoryEntry { folder.place(name + suffix) }
    /// Creates the directory.
    func makeFolder() throws { if isInner { try store.make(folder, system) } else { try store.makeDirectories(path, system) } }

    func get(_ name: String) throws -> [UInt8]? {
        try CacheName.check(name)
        if let kept = lock.withLock({ memory[name] }) { return kept }
        // Errors are ignored: a cache is derived, and can be rebuilt.
        guard let file = try? OpenFile(file(name), O_RDONLY),
            let (length, expected) = CacheDirectory.envelope(of: file, name)
        else { return nil }
        try Memory.expect(length, "Reading a cache")
        let data = [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
            let raw = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: length)
            initialized = (try? System.pread(file.descriptor, raw, at: UInt64(CacheDirectory.envelopeSize))) ?? 0
        }
        guard data.count == length, data.withUnsafeBytes({ Bytes.crc32c($0) }) == expected else { return nil }
        return data
    }

    /// Returns the number of data bytes and their checksum from the envelope; nil if the file is not a valid cache of this name.
    static func envelope(of file: OpenFile, _ name: String) -> (count: Int, checksum: UInt32)? {
        guard let status = try? System.status(file.descriptor), status.isRegularFile,
            let size = Int(exactly: status.size), size >= envelopeSize
        else { return nil }
        var envelope = [UInt8](repeating: 0, count: envelopeSize)
        guard (try? envelope.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: 0) }) == envelopeSize,
            let expected = envelope.withUnsafeBytes({ dataChecksum(envelope: $0, name, size: size) }),
            !isHollow(file.descriptor, status.size)
        else { return nil }
        return (size - envelopeSize, expected)
    }

    /// Returns whether a large file has holes. Caches are written without holes, and the size of a hole must not cost memory or time.
    static func isHollow(_ fd: Int32, _ size: UInt64) -> Bool { size > 1 << 20 && System.hasHole(fd, before: size) }

    /// Returns the checksum of the data in a file of `size` bytes; nil if the envelope is not valid for this name.
    static func dataChecksum(envelope b: UnsafeRawBufferPointer, _ name: String, size: Int) -> UInt32? {
        guard b.count == envelopeSize, size >= envelopeSize,
            FrameFormat.load(b, 28, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<28])),
            FrameFormat.load(b, 0, UInt64.self) == magic, FrameFormat.load(b, 8, UInt32.self) == 1,
            FrameFormat.load(b, 12, UInt32.self) == checksum(name), FrameFormat.load(b, 16, UInt64.self) == UInt64(size - envelopeSize)
        else { return nil }
        return FrameFormat.load(b, 24, UInt32.self)
    }

    static func envelope(_ name: String, size: UInt64, checksum: UInt32) -> [UInt8] {
        var envelope = [UInt8](repeating: 0, count: envelopeSize)
        envelope.withUnsafeMutableBytes { b in
            b.storeBytes(of: magic.littleEndian, toByteOffset: 0, as: UInt64.self)
            b.storeBytes(of: UInt32(1).littleEndian, toByteOffset: 8, as: UInt32.self)
            b.storeBytes(of: self.checksum(name).littleEndian, toByteOffset: 12, as: UInt32.self)
            b.storeBytes(of: size.littleEndian, toByteOffset: 16, as: UInt64.self)
            b.storeBytes(of: checksum.littleEndian, toByteOffset: 24, as: UInt32.self)
            let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<28]))
            b.storeBytes(of: crc.littleEndian, toByteOffset: 28, as: UInt32.self)
        }
        return envelope
    }

    var isWritable: Bool { writable }
    /// The names of caches that could not be written.
    var namesInMemory: [String] { lock.withLock { memory.compactMap { $0.value == nil ? nil : $0.key } } }
    /// Returns the cache in memory: nil if there is none, and nil within for a deleted one.
    func keptInMemory(_ name: String) -> [UInt8]?? { lock.withLock { memory[name] } }
    func keepInMemory(_ name: String, _ data: [UInt8]) { lock.withLock { memory[name] = .some(data) } }

    /// - Parameter durably: whether the new cache survives a power cut after this call. If false, a power cut may also take the old one.
    func put(_ name: String, _ data: [UInt8], durably: Bool = false) throws {
        try CacheName.check(name)
        guard writable else { lock.withLock { memory[name] = .some(data) }; return }
        do {
            try write(name, data, durably)
            _ = lock.withLock { memory.removeValue(forKey: name) }
        } catch let error as StoreError where error.code == .readOnly || error.code == .permission {
            lock.withLock { memory[name] = .some(data) }
        }
    }

    func delete(_ name: String) throws {
        try CacheName.check(name)
        guard writable else { lock.withLock { memory[name] = .some(nil) }; return }
        do throws(Errno) {
            try file(name).unlink()
            _ = lock.withLock { memory.removeValue(forKey: name) }
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR: _ = lock.withLock { memory.removeValue(forKey: name) }
            case EROFS, EACCES, EPERM: lock.withLock { memory[name] = .some(nil) }
            default: throw StoreError.posix(error, doing: "Deleting the cache", path: file(name).path)
            }
        }
    }

    /// Mostly without a sync: after a power cut the file is the old one, the new one, or missing, and all three are fine.
    private func write(_ name: String, _ data: [UInt8], _ durably: Bool) throws {
        let envelope = CacheDirectory.envelope(name, size: UInt64(data.count), checksum: data.withUnsafeBytes { Bytes.crc32c($0) })
        let (aside, out) = try makeAside(mode: name.hasSuffix(CacheName.secret) ? 0o600 : system.mode)
        do throws(Errno) {
            try envelope.borrowed { (b) throws(Errno) in try system.write(out, b, at: 0) }
            try data.borrowed { (b) throws(Errno) in try system.write(out, b, at: UInt64(CacheDirectory.envelopeSize)) }
            if durably { try system.sync(out) }
            try aside.rename(to: file(name))
        } catch {
            try? aside.unlink()
            throw StoreError.posix(error, doing: "Writing the cache", path: file(name).path)
        }
    }

    /// Creates a new file with a temporary name.
    func makeAside(mode: UInt32) throws -> (place: DirectoryEntry, file: OpenFile) {
        let suffix = try posix("Writing a cache", path) { () throws(Errno) in try RandomName.random().hex }
        let aside = folder.place(suffix + ".tmp")
        let flags = O_RDWR | O_CREAT | O_EXCL
        do throws(Errno) {
            let file = try OpenFile(aside, flags, mode: mode)
            tidyOnce()
            return (aside, file)
        } catch {
            guard error.code == ENOENT else { throw StoreError.posix(error, doing: "Making the cache", path: aside.path) }
        }
        try makeFolder()
        return (aside, try posix("Making the cache", aside.path) { () throws(Errno) in try OpenFile(aside, flags, mode: mode) })
    }

    /// Removes the leftovers of killed writers.
    private func tidyOnce() {
        guard
            lock.withLock({
                let first = !tidied; tidied = true; return first
            })
        else { return }
        removeOld { $0.hasSuffix(".tmp") && RandomName(hex: $0.dropLast(4)) != nil }
    }

    /// Removes matching files that are more than a day old.
    func removeOld(where matches: (String) -> Bool) {
        let day: Int64 = 86_400 * 1_000_000_000
        for name in (try? folder.names()) ?? [] where matches(name) {
            let old = folder.place(name)
            if let status = try? old.status(), status.modified < folder.now &- day { try? old.unlink() }
        }
    }

    private static func checksum(_ name: String) -> UInt32 { Array(name.utf8).withUnsafeBytes { Bytes.crc32c($0) } }
}
