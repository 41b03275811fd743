/// The default storage: a directory of append-only segments, each written by one handle of one
/// process ever, that processes and a folder-syncing program may share.
///
///     store/
///         llvs-store              the marker: "LLVS store", "format 1"
///         segments/<32 hex>.seg   records (see `FrameFormat`)
///         blobs/<32 hex>.blob     large values (see `BlobFile`)
///         cache/<name>.cache      derived; may be deleted at any time
///
/// Opening and reading write nothing in an existing store. `append` costs one system call; `scan` one
/// look per segment that is not sealed, plus what is new; `read` one system call. On a network file
/// system one host only may use a store at a time: locks and the order of writes are not kept between hosts.
public final class FileStorage: Storage, @unchecked Sendable {
    // Sendable: `appending` guards what is said to be under it, `state` the rest.
    /// How a directory is used.
    public struct Options: Sendable {
        /// Makes the store where there is none.
        public var create = true
        /// Never writes anything (caches go to memory, or to `cacheDirectory` where given).
        public var readOnly = false
        /// At `full`, a blob is durable before the record that names it is written.
        public var durability = Durability.full
        /// Where caches are kept; nil: in the store. To be outside of a synced folder, and of one store alone.
        public var cacheDirectory: String?
        /// Bytes at which a segment is sealed and the next begun. A larger batch is fine.
        public var segmentLimit: UInt64 = 64 << 20
        /// Segments kept open for reading.
        public var openFiles = 64
        /// When small segments are compacted into large ones.
        public var compaction = Compaction.automatic
        /// At close, more small segments than this are compacted; at opening, more than four times as many.
        public var compactionThreshold = 64
        /// Seconds for which segments that were compacted are kept, so that whoever is copying the directory misses nothing.
        public var compactionGrace: Double = 900
        /// Names versions in damage reports.
        public var inspector: RecordInspector?
        /// Tests put failing system calls here.
        var system = FileSystem()
        /// A durable store, which is made where there is none, with its caches inside.
        public init() {}
    }

    public let description: String
    public let isReadOnly: Bool
    public var path: String { directory.path }
    /// Values of their own may come after the records that name them, from a syncing program. Their directory is made with the first.
    public var watchedPlaces: [WatchedDirectory] {
        [
            WatchedDirectory(directory.segments, names: { $0.hasSuffix(".seg") }),
            WatchedDirectory(directory.blobs, isOptional: true, names: { $0.hasSuffix(".blob") }),
            WatchedDirectory(directory.path, names: { ["segments", "blobs"].contains($0) }),
        ]
    }
    public let blobThreshold: Int? = 1 << 20
    public let blockShape = BlockShape.segments(8 << 10)

    let directory: StoreDirectory
    /// The directory that was opened, and which it is; while it is open no other gets its number. Guarded by `state`.
    private var held: (directory: OpenFile, identity: FileIdentity)?
    let options: Options
    let blobs: BlobDirectory
    let caches: CacheDirectory

    /// Held while writing to segments; taken before `state`, never while holding it.
    let appending = Lock(.writing)
    /// Reused by all appends; touched under `appending` only.
    var scratch = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    /// Guards all that follows; held for moments, never during a system call.
    let state = Lock(.storage)
    var closed = false
    var segments: [Segment] = []
    var segmentsByName: [String: Int] = [:]
    /// Files that were compacted into others by the time an earlier process came to its mark: not looked at.
    var passedOver: Set<String> = []
    /// What `resume` found in `segments/`, for the scan that follows at once.
    var listed: [String]?
    /// The indices of the segments that are open for reading.
    var opened: [Int] = []
    var useClock: UInt64 = 0
    /// The same, and what is pinned, for those who read without `state`.
    let descriptors = SegmentDescriptors()
    var writer: SegmentWriter?
    var damageList: [StorageDamage] = []
    var damageSet: Set<StorageDamage> = []
    var durability = DurabilityState()
    var counters = StorageStatistics()
    /// Segments opened so far, for tests of what opening a store costs.
    var filesOpened = 0
    /// Held while compacting segments; taken before the others.
    let compacting = Gate("store")
    /// Held while syncing.
    let syncing = Lock(.syncing)
    private let syncs = Guarded<UInt64>(0)
    func countSync() { syncs.withLock { $0 &+= 1 } }

    /// Opens the store at `path`, or makes one there.
    /// - Throws: `.notFound`, `.notAStore`, `.notADirectory`, `.newerFormat`, `.permission`, `.noSpace`, `.readOnly`, `.io`.
    public init(path: String, options: Options = Options()) throws {
        let directory = try StoreDirectory(path)
        self.directory = directory
        self.options = options
        description = "the store at \(directory.path)"
        isReadOnly = options.readOnly
        let damages = try directory.open(create: options.create && !options.readOnly, durably: options.system)
        blobs = BlobDirectory(directory.blobsFolder, store: directory, durability: options.durability, system: options.system)
        caches = try CacheDirectory(
            path: options.cacheDirectory, writable: !options.readOnly || options.cacheDirectory != nil, store: directory,
            system: options.system)
        damageList = damages
        damageSet = Set(damages)
        if !isReadOnly, let root = try? directory.root.held(), let status = try? System.status(root.descriptor) {
            held = (root, FileIdentity(status))
        }
    }

    deinit { Memory.release(scratch) }

    public var damages: [StorageDamage] { state.withLock { damageList } }

    public func room() -> StorageRoom? { System.room(directory.path) }

    public func statistics(_ control: PacedControl) throws -> StorageStatistics {
        var all = state.withLock { counters }
        all.syncs = syncs.withLock { $0 }
        for (folder, isSegments) in [(directory.segmentsFolder, true), (directory.blobsFolder, false), (caches.folder, false)] {
            do {
                try folder.forEachName(control) { bytes in
                    let name = String(decoding: bytes, as: UTF8.self)
                    guard let status = try? folder.place(name).status(), status.isRegularFile else { return }
                    all.bytes &+= status.size
                    if isSegments, name.hasSuffix(".seg") { all.segments &+= 1 }
                }
            } catch is Errno { continue }
        }
        return all
    }

    /// Everything is synced, and our segment sealed: the next to open the store need not check it.
    public func close(discarding: Bool) throws {
        if discarding { discard(); return }
        appending.lock()
        defer { appending.unlock() }
        if state.withLock({ closed }) { return }
        var failure: (any Error)?
        if !isReadOnly {
            do {
                try makeDurable(foreign: false, appendingHeld: true, isClosing: true)
                if let writer = state.withLock({ self.writer }), writer.state != .cutShort {
                    // A seal that is not written costs the next opener some checking, nothing else.
                    try? writer.seal()
                }
            } catch { failure = error }
        }
        state.withLock {
            closed = true
            descriptors.removeAll()
        }
        letGo()
        if let failure { throw failure }
    }

    /// After a fork: closes our descriptors. The parent's locks stay (they belong to the open file that
    /// both share), and where a lock of ours was held by a thread that is not here, its descriptors stay too.
    private func discard() {
        guard pthread_mutex_trylock(state.raw) == 0 else { return }
        state.unlock()
        letGo()
    }

    private func letGo() {
        state.withLock {
            closed = true
            writer = nil
            segments = []
            segmentsByName = [:]
            passedOver = []
            listed = nil
            opened = []
            durability = DurabilityState()
            held = nil
        }
        blobs.letGo()
        caches.folder.letGo()
        directory.letGo()
    }

    func checkOpen() throws { if closed { throw StorageRange.closed(description) } }

    func checkWritable() throws {
        try state.withLock { try checkOpen() }
        if isReadOnly { throw StorageRange.readOnly(description) }
    }

    /// Throws when the directory is not the one that was opened any more.
    public func checkPresence(_ doing: String) throws {
        if let identity = state.withLock({ held?.identity }), identity.isGone(from: directory.path) {
            throw StoreError.gone(doing, description, path: directory.path)
        }
    }

    /// Remembers a damage; whether it is new. Under `state`.
    func remember(_ damage: StorageDamage) {
        if damageSet.insert(damage).inserted { damageList.append(damage) }
    }

    // MARK: Blobs and caches

    public func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { try storeBlob(data, digest: SHA256.digest(data)) }

    public func storeBlob(_ data: UnsafeRawBufferPointer, digest: [UInt8]) throws -> BlobID {
        try checkWritable()
        try checkPresence("Adding a value to")
        let (id, size) = try blobs.store(data, digest)
        state.withLock {
            counters.bytesWritten &+= size
        }
        return id
    }

    public func blobWriter(size: Int?) throws -> any BlobWriter {
        try checkWritable()
        try checkPresence("Adding a value to")
        return try FileBlobWriter(blobs, size: size) { [self] written in
            state.withLock {
                counters.bytesWritten &+= written
            }
        }
    }

    public func removeBlob(_ id: BlobID) { blobs.remove(id) }

    public func replaceBlob(_ id: BlobID, _ data: UnsafeRawBufferPointer, digest: [UInt8]) throws {
        try checkWritable()
        try checkPresence("Writing a value anew to")
        let written = try blobs.replace(id, data, digest)
        state.withLock {
            counters.bytesWritten &+= written
        }
    }

    public func hasBlob(_ id: BlobID) throws -> Bool {
        guard (try? state.withLock({ try checkOpen() })) != nil else { return false }
        return try blobs.has(id)
    }

    public var blobMark: BlobMark? { blobs.mark }

    public func blobTells(_ id: BlobID) -> [UInt8]? {
        guard (try? state.withLock({ try checkOpen() })) != nil else { return nil }
        return blobs.tells(id)
    }

    public func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try state.withLock { try checkOpen() }
        try blobs.read(id, at: offset, into: buffer)
    }

    public func cacheGet(_ name: String) throws -> [UInt8]? {
        try state.withLock { try checkOpen() }
        return try caches.get(name)
    }
    public func cachePut(_ name: String, _ data: [UInt8]) throws {
        try state.withLock { try checkOpen() }
        try checkPresence("Writing a cache to")
        try caches.put(name, data)
    }
    public func cacheDelete(_ name: String) throws {
        try state.withLock { try checkOpen() }
        try caches.delete(name)
    }
    public func openNote(_ name: String) throws -> any StorageNote {
        try CacheName.check(name)
        try state.withLock { try checkOpen() }
        try checkPresence("Opening a note in")
        let claim = try state.withLock { held?.identity }.map { try NoteClaim(name, of: $0) }
        let file = try NoteFile(
            caches.folder.place(name + ".note"), options.system, isReadOnly: !caches.isWritable,
            storeOwner: { [root = directory.root] in try? root.place(".").status().owner }, claim: claim,
            makeDirectory: { [weak self] in
                try self?.checkPresence("Writing a note in")
                try self?.caches.makeFolder()
            },
            cache: NoteCache(get: { [caches] in try caches.get(name) }, remove: { [caches] in try caches.delete(name) }),
            isBehindSegments: true)
        return file ?? CachedNote(self, name, claim)
    }
    public func cacheLocation(_ name: String) -> String { caches.path + "/" + name + ".cache" }
    public func cacheOpen(_ name: String) throws -> OpenCache? {
        try state.withLock { try checkOpen() }
        return try caches.open(name)
    }
    public func cacheWriter(_ name: String?) throws -> any CacheWriter {
        try state.withLock { try checkOpen() }
        try checkPresence("Writing a cache to")
        return try caches.writer(name)
    }
}

/// What a handle knows of one file in `segments/`. Guarded by the storage's `state`.
final class Segment {
    let index: UInt32
    let name: String
    /// The id in its header; nil until that was read.
    var id: RandomName?
    /// Where the next frame begins; everything before was reported by `scan`, or appended here. 0: the header was not read.
    var position: UInt64 = 0
    /// Where the frame before `position` begins; 0: there is none, or nobody has looked.
    var lastFrame: UInt64 = 0
    /// Bytes known to be on the medium.
    var durable: UInt64 = 0
    /// Its seal was met: nothing follows.
    var complete = false
    /// Parts of it could not be read: when it is looked at again though it did not change, nanoseconds since 1970.
    var due: Int64?
    /// Nanoseconds.
    static let longestWait: Int64 = 600 * 1_000_000_000
    /// A medium that fails takes its time: most of it is to be left for other things.
    static func nextLook(began: Int64) -> Int64 {
        let now = System.now, taken = min(max(0, now &- began), longestWait / 10)
        return taken < 20_000_000 ? now : now &+ taken * 10
    }
    /// What `stat` said when it was last read to its end; nil: it is to be read again.
    var look: System.Status?
    /// Whether `stat` will say something else once there is more. Into the room behind its frames a writer can write without
    /// changing the size, and file systems count time in steps, of at most two seconds.
    static func isTelling(_ status: System.Status, readTo position: UInt64) -> Bool {
        let (age, overflow) = System.now.subtractingReportingOverflow(status.modified)
        return status.size <= position || (!overflow && age > 2_000_000_000)
    }
    var file: OpenFile?
    /// Our own file, when another took its name: the only way to what it holds.
    var pinned: OpenFile?
    var lastUse: UInt64 = 0
    /// A damage was met in it: reading it to its end did not report all that it once held.
    var damaged = false
    /// It was compacted into others that hold all of it: nobody needs its file any more.
    var replaced = false
    /// Its file was not there when last looked for.
    var gone = false
    /// Where its records are as well.
    var relocations: [Relocation] = []
    init(index: UInt32, name: String) { self.index = index; self.name = name }
}
