#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Small derived files beside the records, replaced atomically; what does not match its checksum is not there.
///
///     <name>.cache = envelope data          envelope, 32 bytes, little-endian
///                                            0  8  magic "LLVScch\n"
///                                            8  4  format, 1
///                                           12  4  checksum of the name
///                                           16  8  bytes of data
///                                           24  4  checksum of the data
///                                           28  4  checksum of bytes 0..<28
///
/// Where the directory cannot be written, they are kept in memory.
final class CacheDirectory: @unchecked Sendable {
    static let magic: UInt64 = 0x0A68_6363_5356_4C4C
    static let envelopeSize = 32

    let path: String
    private let writable: Bool
    private let store: StoreDirectory
    private let system: FileSystem
    private let lock = Lock()
    /// What could not be written; nil: deleted.
    private var memory: [String: [UInt8]?] = [:]
    private var tidied = false

    init(path: String, writable: Bool, store: StoreDirectory, system: FileSystem) throws {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(.invalidArgument, "The path of the cache directory is \(path.isEmpty ? "empty" : "not a path: it holds a NUL").", path: path)
        }
        self.path = System.absolute(path); self.writable = writable; self.store = store; self.system = system
    }

    private func file(_ name: String) -> String { path + "/" + name + ".cache" }

    func get(_ name: String) throws -> [UInt8]? {
        try CacheName.check(name)
        if let kept = lock.withLock({ memory[name] }) { return kept }
        // Whatever keeps it from being read, it is derived and can be made again.
        guard let file = try? OpenFile(file(name), O_RDONLY), let status = try? System.status(file.descriptor), status.isRegularFile,
              status.size >= UInt64(CacheDirectory.envelopeSize), let count = Int(exactly: status.size) else { return nil }
        var envelope = [UInt8](repeating: 0, count: CacheDirectory.envelopeSize)
        let length: Int? = envelope.withUnsafeMutableBytes { b in
            guard let got = try? System.pread(file.descriptor, b, at: 0), got == b.count else { return nil }
            let b = UnsafeRawBufferPointer(b)
            guard FrameFormat.load(b, 28, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<28])),
                  FrameFormat.load(b, 0, UInt64.self) == CacheDirectory.magic, FrameFormat.load(b, 8, UInt32.self) == 1,
                  FrameFormat.load(b, 12, UInt32.self) == CacheDirectory.checksum(name),
                  FrameFormat.load(b, 16, UInt64.self) == UInt64(count - CacheDirectory.envelopeSize) else { return nil }
            return count - CacheDirectory.envelopeSize
        }
        guard let length else { return nil }
        let data = [UInt8](unsafeUninitializedCapacity: length) { buffer, initialized in
            let raw = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: length)
            initialized = (try? System.pread(file.descriptor, raw, at: UInt64(CacheDirectory.envelopeSize))) ?? 0
        }
        let expected = envelope.withUnsafeBytes { FrameFormat.load($0, 24, UInt32.self) }
        guard data.count == length, data.withUnsafeBytes({ Bytes.crc32c($0) }) == expected else { return nil }
        return data
    }

    func put(_ name: String, _ data: [UInt8]) throws {
        try CacheName.check(name)
        guard writable else { lock.withLock { memory[name] = .some(data) }; return }
        do {
            try write(name, data)
            _ = lock.withLock { memory.removeValue(forKey: name) }
        } catch let error as StoreError where error.code == .readOnly || error.code == .permission {
            lock.withLock { memory[name] = .some(data) }
        }
    }

    func delete(_ name: String) throws {
        try CacheName.check(name)
        guard writable else { lock.withLock { memory[name] = .some(nil) }; return }
        do throws(Errno) {
            try System.unlink(file(name))
            _ = lock.withLock { memory.removeValue(forKey: name) }
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR: _ = lock.withLock { memory.removeValue(forKey: name) }
            case EROFS, EACCES, EPERM: lock.withLock { memory[name] = .some(nil) }
            default: throw StoreError.posix(error, doing: "Deleting the cache", path: file(name))
            }
        }
    }

    /// Not synced: after a power cut the old, the new, or nothing is there, and all three are fine.
    private func write(_ name: String, _ data: [UInt8]) throws {
        var envelope = [UInt8](repeating: 0, count: CacheDirectory.envelopeSize)
        envelope.withUnsafeMutableBytes { b in
            b.storeBytes(of: CacheDirectory.magic.littleEndian, toByteOffset: 0, as: UInt64.self)
            b.storeBytes(of: UInt32(1).littleEndian, toByteOffset: 8, as: UInt32.self)
            b.storeBytes(of: CacheDirectory.checksum(name).littleEndian, toByteOffset: 12, as: UInt32.self)
            b.storeBytes(of: UInt64(data.count).littleEndian, toByteOffset: 16, as: UInt64.self)
            b.storeBytes(of: data.withUnsafeBytes { Bytes.crc32c($0) }.littleEndian, toByteOffset: 24, as: UInt32.self)
            let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<28]))
            b.storeBytes(of: crc.littleEndian, toByteOffset: 28, as: UInt32.self)
        }
        let suffix = try posix("Writing the cache", file(name)) { () throws(Errno) in try RandomName.random().hex }
        let aside = path + "/" + suffix + ".tmp"
        let out = try make(aside)
        tidyOnce()
        do throws(Errno) {
            try envelope.borrowed { (b) throws(Errno) in try system.write(out.descriptor, b, at: 0) }
            try data.borrowed { (b) throws(Errno) in try system.write(out.descriptor, b, at: UInt64(CacheDirectory.envelopeSize)) }
            try System.rename(aside, file(name))
        } catch {
            try? System.unlink(aside)
            throw StoreError.posix(error, doing: "Writing the cache", path: file(name))
        }
    }

    private func make(_ aside: String) throws -> OpenFile {
        do throws(Errno) {
            return try OpenFile(aside, O_WRONLY | O_CREAT | O_EXCL)
        } catch {
            guard error.code == ENOENT else { throw StoreError.posix(error, doing: "Making the cache", path: aside) }
        }
        try store.makeDirectories(path, system)
        return try posix("Making the cache", aside) { () throws(Errno) in try OpenFile(aside, O_WRONLY | O_CREAT | O_EXCL) }
    }

    /// Removes what writers that were killed left behind, once it is a day old.
    private func tidyOnce() {
        guard lock.withLock({ let first = !tidied; tidied = true; return first }) else { return }
        let yesterday = System.now &- 86_400 * 1_000_000_000
        for name in (try? System.names(in: path)) ?? [] where name.hasSuffix(".tmp") && RandomName(hex: name.dropLast(4)) != nil {
            let old = path + "/" + name
            if let status = try? System.status(old), status.modified < yesterday { try? System.unlink(old) }
        }
    }

    private static func checksum(_ name: String) -> UInt32 { Array(name.utf8).withUnsafeBytes { Bytes.crc32c($0) } }
}
