/// A few bytes that are written again and again, and are still there after the process was killed. Used by one thread at a time.
package protocol StorageNote: AnyObject, Sendable {
    /// Returns the bytes that were written last; nil if there are none, or they cannot be read.
    func read() throws -> [UInt8]?
    /// Replaces the bytes as a whole: after a kill at any moment, either the old or the new ones are read.
    /// - Parameters:
    ///   - data: the new bytes.
    ///   - isBehindAppend: whether the storage has just appended something in the same call.
    func write(_ data: UnsafeRawBufferPointer, isBehindAppend: Bool) throws
}

/// A note in a cache of its storage, which each write replaces. It does not lock out other processes.
package final class CachedNote: StorageNote, @unchecked Sendable {
    // Sendable: one save at a time uses it.
    private let storage: any Storage
    private let name: String
    private let claim: NoteClaim?
    init(_ storage: any Storage, _ name: String, _ claim: NoteClaim? = nil) { self.storage = storage; self.name = name; self.claim = claim }
    package func read() throws -> [UInt8]? { try storage.cacheGet(name) }
    package func write(_ data: UnsafeRawBufferPointer, isBehindAppend: Bool) throws { try storage.cachePut(name, Array(data)) }
}

/// Replaces a note that was released.
package final class ClosedNote: StorageNote {
    package static var error: StoreError { StoreError(.closed, "The coordinator is closed. Open it again to continue.") }
    package init() {}
    package func read() throws -> [UInt8]? { nil }
    package func write(_ data: UnsafeRawBufferPointer, isBehindAppend: Bool) throws { throw ClosedNote.error }
}

/// The cache in which earlier versions of the library stored a note, and which is used if the note's file cannot be opened. It counts
/// until something is written to the file.
struct NoteCache {
    var get: () throws -> [UInt8]?
    var remove: () throws -> Void = {}
}

/// Records that a note is open in this process. This includes a note in a cache, which has no lock.
final class NoteClaim: Sendable {
    private struct Claimed: Hashable { let process: pid_t, store: FileIdentity, name: String }
    private static let all = Guarded<Set<Claimed>>([])
    private let claimed: Claimed

    /// - Throws: `.busy` if it is open already. A forked child has none of the parent's notes.
    init(_ name: String, of store: FileIdentity) throws {
        let claimed = Claimed(process: getpid(), store: store, name: name)
        guard NoteClaim.all.withLock({ $0.insert(claimed).inserted }) else {
            throw StoreError(.busy, "The note \(name) is open already in this process.")
        }
        // Set last: if all properties were set before the error, `deinit` would run and remove the claim of the open note.
        self.claimed = claimed
    }
    deinit { NoteClaim.all.withLock { [claimed] in _ = $0.remove(claimed) } }
}

/// A note in a file that stays open and locked: writing takes one system call, and no two processes or handles have it open at once.
///
///     file = slot, at 0, and slot, at 512; of the valid ones, the one with the later number counts
///     slot, 24 bytes and data, little-endian
///            0   8  magic "LLVSnt2\n"
///            8   8  number: one more than that of the other slot, 0 after the highest; even in the first, odd in the second.
///                   Of two, the one counts that is less than 2^63 steps behind the other
///           16   4  bytes of data, at most 136
///           20   4  checksum of bytes 0..<20 and of the data
///           24      data
///     slot as earlier releases wrote it: magic "LLVSnot\n", 160 bytes, data at 20, then zeros, and at 156 the checksum of bytes 0..<156
///
/// The lock is the system's (`flock`): it ends with the process, however that ended, and children do not have it. What was written is
/// still there after a kill at any moment, since the other slot is unchanged. Nothing is synced. A process that may only read the store
/// cannot open the file, and so not lock it.
final class NoteFile: StorageNote, @unchecked Sendable {
    // Sendable: one save at a time uses it: `saveGate` of the coordinator.
    static let magic: UInt64 = 0x0A32_746E_5356_4C4C, earlierMagic: UInt64 = 0x0A74_6F6E_5356_4C4C
    static let slotSize = 160, slotDistance: UInt64 = 512, head = 24, mostData = 136

    private let place: DirectoryEntry
    private var path: String { place.path }
    private let system: FileSystem
    private let storeOwner: @Sendable () -> UInt32?
    private let makeDirectory: @Sendable () throws -> Void
    private let cache: NoteCache
    private let claim: NoteClaim?
    private var held: LockedFile
    /// The number of the slot that counts; nil if neither is valid.
    private var number: UInt64?
    private var isFirstWrite = true
    private let isBehindSegments: Bool
    /// The range of the data in that slot.
    private var data = 0..<0
    /// Both slots, one after the other, as in the file. Saving changes one of them in place.
    private let slots: UnsafeMutableRawBufferPointer

    /// - Parameter makeDirectory: creates the directory of the note, or throws if there is to be none. Called again if it was removed.
    /// - Parameter isBehindSegments: whether the storage appends by `FileSystem.pwrite`.
    /// - Returns: nil if there can be no such file. Then a cache of the storage is used.
    /// - Throws: `.busy` if another process has it open, `.io`.
    init?(
        _ place: DirectoryEntry, _ system: FileSystem, isReadOnly: Bool, storeOwner: @escaping @Sendable () -> UInt32?,
        claim: NoteClaim? = nil, makeDirectory: @escaping @Sendable () throws -> Void, cache: NoteCache, isBehindSegments: Bool = false
    ) throws {
        self.isBehindSegments = isBehindSegments
        self.place = place; self.system = system; self.storeOwner = storeOwner; self.claim = claim
        self.makeDirectory = makeDirectory; self.cache = cache
        let found = try LockedFile.open(place, system, isReadOnly: isReadOnly, storeOwner: storeOwner, makeDirectory: makeDirectory)
        guard let found else { return nil }
        held = found
        slots = .allocate(byteCount: 2 * NoteFile.slotSize, alignment: 8)
        slots.initializeMemory(as: UInt8.self, repeating: 0)
        load()
    }

    deinit { slots.deallocate() }

    private func slot(_ i: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: slots[i * NoteFile.slotSize..<(i + 1) * NoteFile.slotSize])
    }

    private func load() {
        number = nil
        for i in 0..<2 {
            guard let got = try? System.pread(held.file.descriptor, slot(i), at: UInt64(i) * NoteFile.slotDistance),
                let found = NoteFile.whole(UnsafeRawBufferPointer(rebasing: slot(i)[..<got]))
            else { continue }
            guard found.number % 2 == UInt64(i) else { continue }
            // Whatever numbers the file has, the next number to write is later than this one.
            if let number, Int64(bitPattern: found.number &- number) < 0 { continue }
            (number, data) = (found.number, found.data)
        }
    }

    /// Seconds between two checks of the path, since a check takes as long as a write.
    private static let pause = 0.05
    private var lastLook = -Double.infinity

    /// Opens and locks the file again if it was deleted, moved or replaced, or if the host closed its descriptor. All of these release
    /// the lock.
    private func hold() throws {
        let now = Clock.coarse(), isOurs = held.file.isOurs
        guard !isOurs || now - lastLook >= NoteFile.pause else { return }
        lastLook = now
        guard !isOurs || held.identity.isGone(from: path) else { return }
        try makeDirectory()
        guard let new = try LockedFile.open(place, system, isReadOnly: false, storeOwner: storeOwner, makeDirectory: makeDirectory) else {
            throw StoreError(
                .notFound,
                "Writing the note \(path) failed: it was deleted, moved or replaced while it was open, and cannot be created again. "
                    + "Check what is in its place.",
                path: path)
        }
        Log.write(
            .warning,
            isOurs
                ? "The note \(path) was deleted, moved or replaced while it was open. It is created again."
                : "The program closed the descriptor of the note \(path). It is opened again: find out what in the program closes "
                    + "descriptors that it did not open.")
        held = new
        load()
    }

    private static func whole(_ b: UnsafeRawBufferPointer) -> (number: UInt64, data: Range<Int>)? {
        guard b.count >= head else { return nil }
        let magic = FrameFormat.load(b, 0, UInt64.self), size = FrameFormat.load(b, 16, UInt32.self)
        guard size <= mostData else { return nil }
        let data: Range<Int>
        switch magic {
        case NoteFile.magic:
            data = head..<head + Int(size)
            guard b.count >= data.upperBound, FrameFormat.load(b, 20, UInt32.self) == checksum(b, data) else { return nil }
        case earlierMagic:
            data = 20..<20 + Int(size)
            guard b.count == slotSize, FrameFormat.load(b, 156, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[..<156]))
            else { return nil }
        default: return nil
        }
        return (FrameFormat.load(b, 8, UInt64.self), data)
    }

    private static func checksum(_ b: UnsafeRawBufferPointer, _ data: Range<Int>) -> UInt32 {
        Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[data]), from: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: b[..<20])))
    }

    func read() throws -> [UInt8]? {
        try number.map { Array(slot(Int($0 % 2))[data]) } ?? cache.get()
    }

    func write(_ data: UnsafeRawBufferPointer, isBehindAppend: Bool = false) throws {
        guard data.count <= NoteFile.mostData else {
            throw StoreError(
                .tooLarge, "A note of \(data.count) bytes was to be written to \(path); it holds at most \(NoteFile.mostData).", path: path)
        }
        try hold()
        let next = (number ?? 0) &+ 1, place = NoteFile.head..<NoteFile.head + data.count
        let b = UnsafeMutableRawBufferPointer(rebasing: slot(Int(next % 2))[..<place.upperBound])
        b.storeBytes(of: NoteFile.magic.littleEndian, toByteOffset: 0, as: UInt64.self)
        b.storeBytes(of: next.littleEndian, toByteOffset: 8, as: UInt64.self)
        b.storeBytes(of: UInt32(truncatingIfNeeded: data.count).littleEndian, toByteOffset: 16, as: UInt32.self)
        UnsafeMutableRawBufferPointer(rebasing: b[place]).copyMemory(from: data)
        b.storeBytes(of: NoteFile.checksum(UnsafeRawBufferPointer(b), place).littleEndian, toByteOffset: 20, as: UInt32.self)
        do throws(Errno) {
            let bytes = UnsafeRawBufferPointer(b), offset = next % 2 * NoteFile.slotDistance
            let done = isBehindAppend && isBehindSegments ? try system.pwriteAllowed(held.file.descriptor, bytes, offset) : 0
            try system.write(held.file, UnsafeRawBufferPointer(rebasing: bytes[done...]), at: offset &+ UInt64(done))
        } catch { throw StoreError.posix(error, doing: "Writing the note", path: path) }
        (number, self.data) = (next, place)
        // Remove the cache, or it would count again if the note was lost. If that fails, the next opening tries again.
        if isFirstWrite { try? cache.remove() }
        isFirstWrite = false
    }
}
