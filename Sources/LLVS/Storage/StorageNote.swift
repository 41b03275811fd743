/// A few bytes that whoever opened the note writes again and again, and finds again after it was killed. Used by one thread at a time.
public protocol StorageNote: AnyObject, Sendable {
    /// What was written last; nil when nothing was, or it cannot be read.
    func read() throws -> [UInt8]?
    /// Replaces what was written before, as a whole: after a kill at any moment the one or the other is read.
    /// - Parameters:
    ///   - data: what the note is to hold.
    ///   - isBehindAppend: the storage has appended something in the same call just before.
    func write(_ data: UnsafeRawBufferPointer, isBehindAppend: Bool) throws
}

/// A note that is a cache of its storage: each writing replaces it. It locks out nobody of another process.
final class CachedNote: StorageNote, @unchecked Sendable {
    // Sendable: one save at a time uses it.
    private let storage: any Storage
    private let name: String
    private let claim: NoteClaim?
    init(_ storage: any Storage, _ name: String, _ claim: NoteClaim? = nil) { self.storage = storage; self.name = name; self.claim = claim }
    func read() throws -> [UInt8]? { try storage.cacheGet(name) }
    func write(_ data: UnsafeRawBufferPointer, isBehindAppend: Bool) throws { try storage.cachePut(name, Array(data)) }
}

/// Takes the place of a note that was let go of.
final class ClosedNote: StorageNote {
    static var error: StoreError { StoreError(.closed, "The coordinator is closed. Open it again to go on.") }
    func read() throws -> [UInt8]? { nil }
    func write(_ data: UnsafeRawBufferPointer, isBehindAppend: Bool) throws { throw ClosedNote.error }
}

/// The cache in which a note was kept by earlier forms of the library, and is where its file cannot be opened. It counts while nothing
/// was written to the file.
struct NoteCache {
    var get: () throws -> [UInt8]?
    var remove: () throws -> Void = {}
}

/// That a note is open in this process: also one that is a cache, which no lock tells of.
final class NoteClaim: Sendable {
    private struct Claimed: Hashable { let process: pid_t, store: FileIdentity, name: String }
    private static let all = Guarded<Set<Claimed>>([])
    private let claimed: Claimed

    /// - Throws: `.busy` when it is open already. In a forked child, which has none of the parent's notes, it is not.
    init(_ name: String, of store: FileIdentity) throws {
        let claimed = Claimed(process: getpid(), store: store, name: name)
        guard NoteClaim.all.withLock({ $0.insert(claimed).inserted }) else {
            throw StoreError(.busy, "The note \(name) is open already in this process.")
        }
        // Set last: if all properties were set before the error, `deinit` would run and remove the claim of the note that is open.
        self.claimed = claimed
    }
    deinit { NoteClaim.all.withLock { [claimed] in _ = $0.remove(claimed) } }
}

/// A note in a file that stays open and locked: writing takes one system call, and no two processes or handles have it open at once.
///
///     file = slot, at 0, and slot, at 512; the one of the two that is whole and has the later number counts
///     slot, 24 bytes and data, little-endian
///            0   8  magic "LLVSnt2\n"
///            8   8  number: one more than that of the other slot, 0 after the highest; even in the first, odd in the second.
///                   Of two, the one counts that is less than 2^63 steps behind the other
///           16   4  bytes of data, at most 136
///           20   4  checksum of bytes 0..<20 and of the data
///           24      data
///     slot as it was written before: magic "LLVSnot\n", 160 bytes, data at 20, then zeros, and at 156 the checksum of bytes 0..<156
///
/// The lock is the system's (`flock`): it goes with the process that held it, however that ended, and its children have none of it. What
/// was written is there after a kill at any moment, since the other slot stays as it was. Nothing is synced. Who may only read the store
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
    /// That of the slot that counts; nil: neither is whole.
    private var number: UInt64?
    private var isFirstWrite = true
    private let isBehindSegments: Bool
    /// Where the data are in that slot.
    private var data = 0..<0
    /// Both slots, one behind the other, as they are in the file: a save makes nothing new for the one that it writes.
    private let slots: UnsafeMutableRawBufferPointer

    /// - Parameter makeDirectory: makes the directory of the note, or throws where there is to be none; called again when it was removed.
    /// - Parameter isBehindSegments: what the storage appends is written by `FileSystem.pwrite`.
    /// - Returns: nil where there can be no such file; a cache of the storage serves then.
    /// - Throws: `.busy` when another has it open, `.io`.
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
            // Whatever number somebody put there, the one that is written next is later than it.
            if let number, Int64(bitPattern: found.number &- number) < 0 { continue }
            (number, data) = (found.number, found.data)
        }
    }

    /// Seconds between two looks at what the path names: a look takes as long as writing does.
    private static let pause = 0.05
    private var lastLook = -Double.infinity

    /// Opens and locks the file again if it was deleted, moved or replaced, or if the host closed its descriptor. Each takes the lock away.
    private func hold() throws {
        let now = Clock.coarse(), isOurs = held.file.isOurs
        guard !isOurs || now - lastLook >= NoteFile.pause else { return }
        lastLook = now
        guard !isOurs || held.identity.isGone(from: path) else { return }
        try makeDirectory()
        guard let new = try LockedFile.open(place, system, isReadOnly: false, storeOwner: storeOwner, makeDirectory: makeDirectory) else {
            throw StoreError(
                .notFound,
                "Writing the note \(path) failed: it was deleted, moved or replaced while it was open, and cannot be made again. "
                    + "Look at what is in its place.",
                path: path)
        }
        Log.write(
            .warning,
            isOurs
                ? "The note \(path) was deleted, moved or replaced while it was open. It is made again."
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
                .tooLarge, "A note of \(data.count) bytes was to be written to \(path); it takes \(NoteFile.mostData).", path: path)
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
        // Else it would be believed should the note get lost. What keeps it from being removed now may be over at the next opening.
        if isFirstWrite { try? cache.remove() }
        isFirstWrite = false
    }
}
