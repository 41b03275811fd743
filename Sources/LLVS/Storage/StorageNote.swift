#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A few bytes that whoever opened the note writes again and again, and finds again after it was killed.
public protocol StorageNote: AnyObject, Sendable {
    /// What was written last; nil when nothing was, or it cannot be read.
    func read() throws -> [UInt8]?
    func write(_ data: [UInt8]) throws
}

/// A note that is a cache of its storage: each writing replaces it. It locks nobody out.
final class CachedNote: StorageNote, @unchecked Sendable {
    private let storage: any Storage
    private let name: String
    init(_ storage: any Storage, _ name: String) { self.storage = storage; self.name = name }
    func read() throws -> [UInt8]? { try storage.cacheGet(name) }
    func write(_ data: [UInt8]) throws { try storage.cachePut(name, data) }
}

/// Takes the place of a note that was let go of.
final class ClosedNote: StorageNote {
    func read() throws -> [UInt8]? { nil }
    func write(_ data: [UInt8]) throws {
        throw StoreError(.closed, "The coordinator is closed. Open it again to go on.")
    }
}

/// A note in a file that stays open and locked: writing takes one system call, and no two processes or handles have it open at once.
///
///     file = slot, at 0, and slot, at 512; the one of the two that is whole and has the higher number counts
///     slot, 160 bytes, little-endian
///            0   8  magic "LLVSnot\n"
///            8   8  number: one more than that of the other slot
///           16   4  bytes of data, at most 136
///           20      data, then zeros
///          156   4  checksum of bytes 0..<156
///
/// The lock is the system's (`flock`): it goes with the process that held it, however that ended. What was written is there after a kill
/// at any moment, since the other slot stays as it was. Nothing is synced.
final class NoteFile: StorageNote, @unchecked Sendable {
    static let magic: UInt64 = 0x0A74_6F6E_5356_4C4C
    static let slotSize = 160, slotDistance: UInt64 = 512, mostData = 136

    private let file: OpenFile
    private let place: Place
    private var path: String { place.path }
    private let system: FileSystem
    /// What is read while nothing was written here: an earlier form of the note.
    private let earlier: () throws -> [UInt8]?
    private let lock = Lock()
    private var number: UInt64 = 0
    private var data: [UInt8]?

    /// - Returns: nil where there can be no such file; a cache of the storage serves then.
    /// - Throws: `.busy` when another has it open, `.io`.
    init?(_ place: Place, _ system: FileSystem, isReadOnly: Bool, makeDirectory: () throws -> Void, earlier: @escaping () throws -> [UInt8]?) throws {
        self.place = place; self.system = system; self.earlier = earlier
        guard let file = try NoteFile.open(place, system.mode, isReadOnly: isReadOnly, makeDirectory: makeDirectory) else { return nil }
        self.file = file
        if !isReadOnly {
            do throws(Errno) { try System.lockExclusively(file.descriptor) } catch {
                if error.code == EWOULDBLOCK || error.code == EAGAIN { throw StoreError(.busy, "The note \(place) is open already.", path: place.path) }
                // A file system without locks: nobody can be kept out there.
            }
        }
        for slot in 0..<2 {
            var bytes = [UInt8](repeating: 0, count: NoteFile.slotSize)
            let got = try? bytes.filled { (b) throws(Errno) in try System.pread(file.descriptor, b, at: UInt64(slot) * NoteFile.slotDistance) }
            guard got == bytes.count, let found = bytes.withUnsafeBytes({ NoteFile.slot($0) }), data == nil || found.number > number else { continue }
            (number, data) = (found.number, found.data)
        }
    }

    private static func open(_ place: Place, _ mode: UInt32, isReadOnly: Bool, makeDirectory: () throws -> Void) throws -> OpenFile? {
        let flags = isReadOnly ? O_RDONLY : O_RDWR | O_CREAT
        func file() throws -> OpenFile? {
            do throws(Errno) { return try OpenFile(place, flags, mode: mode) } catch {
                switch error.code {
                case ENOENT where !isReadOnly: throw error
                case ENOENT, ENOTDIR, EACCES, EPERM, EROFS, ENOSPC, EDQUOT, EISDIR, ELOOP, ENXIO: return nil
                default: throw StoreError.posix(error, doing: "Opening the note", path: place.path)
                }
            }
        }
        let made: OpenFile?
        do { made = try file() } catch is Errno {
            try makeDirectory()
            do { made = try file() } catch is Errno { return nil }
        }
        guard let made, let status = try? System.status(made.descriptor), status.isRegularFile else { return nil }
        return made
    }

    private static func slot(_ b: UnsafeRawBufferPointer) -> (number: UInt64, data: [UInt8])? {
        let size = Int(FrameFormat.load(b, 16, UInt32.self))
        guard FrameFormat.load(b, 0, UInt64.self) == magic, size <= mostData,
              FrameFormat.load(b, 156, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<156])) else { return nil }
        return (FrameFormat.load(b, 8, UInt64.self), Array(b[20..<20 + size]))
    }

    func read() throws -> [UInt8]? { try lock.withLock { data } ?? earlier() }

    func write(_ data: [UInt8]) throws {
        guard data.count <= NoteFile.mostData else {
            throw StoreError(.tooLarge, "A note of \(data.count) bytes was to be written to \(path); it takes \(NoteFile.mostData).", path: path)
        }
        try lock.withLock {
            let next = number &+ 1
            var slot = [UInt8](repeating: 0, count: NoteFile.slotSize)
            slot.withUnsafeMutableBytes { b in
                b.storeBytes(of: NoteFile.magic.littleEndian, toByteOffset: 0, as: UInt64.self)
                b.storeBytes(of: next.littleEndian, toByteOffset: 8, as: UInt64.self)
                b.storeBytes(of: UInt32(truncatingIfNeeded: data.count).littleEndian, toByteOffset: 16, as: UInt32.self)
                for (i, byte) in data.enumerated() { b[20 + i] = byte }
                b.storeBytes(of: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[0..<156])).littleEndian, toByteOffset: 156, as: UInt32.self)
            }
            do throws(Errno) {
                try slot.borrowed { (b) throws(Errno) in try system.write(file.descriptor, b, at: next % 2 * NoteFile.slotDistance) }
            } catch { throw StoreError.posix(error, doing: "Writing the note", path: path) }
            number = next
            self.data = data
        }
    }
}
