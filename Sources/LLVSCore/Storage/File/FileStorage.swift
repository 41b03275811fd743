/// The default storage: a directory of append-only segments. Only one handle of one process ever writes to a segment. Processes and a
/// folder-syncing program may share the directory.
///
///     store/
///         llvs-store              the marker: "LLVS store", "format 1"
///         segments/<32 hex>.seg   records (see `FrameFormat`)
///         blobs/<32 hex>.blob     large values (see `BlobFile`)
///         cache/<name>.cache      derived; may be deleted at any time
///
/// Opening and reading write nothing in an existing store. `append` takes one system call, `scan` one per unsealed segment and the time
/// for new records, `read` one system call. On a network file system, only one host may use a store at a time: locks and the order of
/// writes do not hold between hosts.
package final class FileStorage: Storage, @unchecked Sendable {
    // Sendable: `appending` guards what is documented to be under it, `state` the rest.
    /// How a directory is used.
    package struct Options: Sendable {
        /// Whether to create the store if there is none.
        package var create = true
        /// Whether to never write anything (caches go to memory, or to `cacheDirectory` if given).
        package var readOnly = false
        /// At `full`, a blob is durable before the record that names it is written.
        package var durability = Durability.full
        /// Where caches are stored; nil for in the store. Must be outside of a synced folder, and used by one store only.
        package var cacheDirectory: String?
        /// The size in bytes at which a segment is sealed and a new one begun. A single larger batch is allowed.
        package var segmentLimit: UInt64 = 64 << 20
        /// The most segments that are kept open for reading.
        package var openFiles = 64
        /// When small segments are compacted into large ones.
        package var compaction = Compaction.automatic
        /// At close, more small segments than this are compacted; at opening, more than four times as many.
        package var compactionThreshold = 64
        /// Seconds for which compacted segments are retained, so that a program that copies the directory misses nothing.
        package var compactionGrace: Double = 900
        /// Names versions in damage reports.
        package var inspector: RecordInspector?
        /// Tests pass failing system calls here.
        var system = FileSystem()
        /// Options of a durable store, which is created if there is none, with its caches inside.
        package init() {}
    }

    package let description: String
    package let isReadOnly: Bool
    package var path: String { directory.path }
    /// A syncing program may bring large values after the records that name them. Their directory is created with the first one.
    package var watchedPlaces: [WatchedDirectory] {
        [
            WatchedDirectory(directory.segments, names: { $0.hasSuffix(".seg") }),
            WatchedDirectory(directory.blobs, isOptional: true, names: { $0.hasSuffix(".blob") }),
            WatchedDirectory(directory.path, names: { ["segments", "blobs"].contains($0) }),
        ]
    }
    package let blobThreshold: Int? = 1 << 20
    package let blockShape = BlockShape.segments(8 << 10)

    let directory: StoreDirectory
    /// The directory that was opened, and its identity. While it is open, no other directory gets its number. Guarded by `state`.
    private var held: (directory: OpenFile, identity: FileIdentity)?
    let options: Options
    let blobs: BlobDirectory
    let caches: CacheDirectory
    /// The file `erasures`, beside the records.
    let ordersFile: CacheDirectory

    /// Held while writing to segments. Taken before `state`, never while it is held.
    let appending = Lock(.writing)
    /// The open file of `openRecordsLock` for appends; nil until one needs it. Used by one thread at a time, as `append` is.
    var sharedRecordsLock: OpenFile?
    /// Reused by all appends. Guarded by `appending`.
    var scratch = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    /// Guards everything below. Held briefly, never during a system call.
    let state = Lock(.storage)
    var closed = false
    var segments: [Segment] = []
    var segmentsByName: [String: Int] = [:]
    /// Files that an earlier process knew to be compacted into others when it wrote its mark. They are not read.
    var passedOver: Set<String> = []
    /// The listing of `segments/` by `resume`, for the scan that follows at once.
    var listed: [String]?
    /// The indices of the segments that are open for reading.
    var opened: [Int] = []
    var useClock: UInt64 = 0
    /// The opened and the pinned segments, for readers that do not hold `state`.
    let descriptors = SegmentDescriptors()
    var writer: SegmentWriter?
    var damageList: [StorageDamage] = []
    var damageSet: Set<StorageDamage> = []
    var durability = DurabilityState()
    var counters = StorageStatistics()
    /// The number of segments opened so far, for tests of the cost of opening a store.
    var filesOpened = 0
    /// Held while compacting segments. Taken before the others.
    let compacting = Gate("store")
    /// Held while syncing.
    let syncing = Lock(.syncing)
    private let syncs = Guarded<UInt64>(0)
    func countSync() { syncs.withLock { $0 &+= 1 } }

    /// Opens the store at `path`, or creates one there.
    /// - Throws: `.notFound`, `.notAStore`, `.notADirectory`, `.newerFormat`, `.permission`, `.noSpace`, `.readOnly`, `.io`.
    package init(path: String, options: Options = Options()) throws {
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
        ordersFile = CacheDirectory(besideRecordsOf: directory, writable: !options.readOnly, system: options.system)
        damageList = damages
        damageSet = Set(damages)
        if !isReadOnly, let root = try? directory.root.held(), let status = try? System.status(root.descriptor) {
            held = (root, FileIdentity(status))
        }
    }

    deinit { Memory.release(scratch) }

    package var damages: [StorageDamage] { state.withLock { damageList } }

    package func room() -> StorageRoom? { System.room(directory.path) }

    package func statistics(_ control: PacedControl) throws -> StorageStatistics {
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

    package func cacheBytes(_ control: PacedControl) throws -> UInt64 {
        var bytes: UInt64 = 0
        do {
            try caches.folder.forEachName(control) { name in
                let status = try? caches.folder.place(String(decoding: name, as: UTF8.self)).status()
                if let status, status.isRegularFile { bytes &+= status.size }
            }
        } catch is Errno {}
        return bytes
    }

    /// Syncs everything and seals this process's segment, so that the next process to open the store need not check it.
    package func close(discarding: Bool) throws {
        if discarding { discard(); return }
        appending.lock()
        defer { appending.unlock() }
        if state.withLock({ closed }) { return }
        var failure: (any Error)?
        if !isReadOnly {
            do {
                try makeDurable(foreign: false, appendingHeld: true, isClosing: true)
                if let writer = state.withLock({ self.writer }), writer.state != .cutShort {
                    // Without the seal, the next process to open the store checks some bytes, nothing else.
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

    /// After a fork: closes this process's descriptors. The parent's locks stay (they belong to the shared open file). If a thread of the
    /// parent held one of the mutexes, the descriptors that it guards stay open, too.
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
        sharedRecordsLock = nil
        blobs.letGo()
        caches.folder.letGo()
        directory.letGo()
    }

    func checkOpen() throws { if closed { throw StorageRange.closed(description) } }

    func checkWritable() throws {
        try state.withLock { try checkOpen() }
        if isReadOnly { throw StorageRange.readOnly(description) }
    }

    /// Throws if the directory is no longer the one that was opened.
    package func checkPresence(_ doing: String) throws {
        if let identity = state.withLock({ held?.identity }), identity.isGone(from: directory.path) {
            throw StoreError.gone(doing, description, path: directory.path)
        }
    }

    /// Records a damage, and returns whether it is new. Precondition: `state` is held.
    func remember(_ damage: StorageDamage) {
        if damageSet.insert(damage).inserted { damageList.append(damage) }
    }

    // MARK: Blobs and caches

    package func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { try storeBlob(data, digest: SHA256.digest(data)) }

    package func storeBlob(_ data: UnsafeRawBufferPointer, digest: [UInt8]) throws -> BlobID {
        try checkWritable()
        try checkPresence("Adding a value to")
        let (id, size) = try blobs.store(data, digest)
        state.withLock {
            counters.bytesWritten &+= size
        }
        return id
    }

    package func blobWriter(size: Int?) throws -> any BlobWriter {
        try checkWritable()
        try checkPresence("Adding a value to")
        return try FileBlobWriter(blobs, size: size) { [self] written in
            state.withLock {
                counters.bytesWritten &+= written
            }
        }
    }

    package func removeBlob(_ id: BlobID) { blobs.remove(id) }

    package func replaceBlob(_ id: BlobID, _ data: UnsafeRawBufferPointer, digest: [UInt8]) throws {
        try checkWritable()
        try checkPresence("Rewriting a value in")
        let written = try blobs.replace(id, data, digest)
        state.withLock {
            counters.bytesWritten &+= written
        }
    }

    package func hasBlob(_ id: BlobID) throws -> Bool {
        guard (try? state.withLock({ try checkOpen() })) != nil else { return false }
        return try blobs.has(id)
    }

    package var blobMark: BlobMark? { blobs.mark }

    package func blobTells(_ id: BlobID) -> [UInt8]? {
        guard (try? state.withLock({ try checkOpen() })) != nil else { return nil }
        return blobs.tells(id)
    }

    package func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try state.withLock { try checkOpen() }
        try blobs.read(id, at: offset, into: buffer)
    }

    package func cacheGet(_ name: String) throws -> [UInt8]? {
        try state.withLock { try checkOpen() }
        return try caches.get(name)
    }
    package func cachePut(_ name: String, _ data: [UInt8]) throws {
        try state.withLock { try checkOpen() }
        try checkPresence("Writing a cache to")
        try caches.put(name, data)
    }
    package func cacheDelete(_ name: String) throws {
        try state.withLock { try checkOpen() }
        try caches.delete(name)
    }
    package func openNote(_ name: String) throws -> any StorageNote {
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
    package func cacheLocation(_ name: String) -> String { caches.path + "/" + name + ".cache" }
    package func cacheOpen(_ name: String) throws -> OpenCache? {
        try state.withLock { try checkOpen() }
        return try caches.open(name)
    }
    package func cacheWriter(_ name: String?) throws -> any CacheWriter {
        try state.withLock { try checkOpen() }
        try checkPresence("Writing a cache to")
        return try caches.writer(name)
    }
}

/// What a handle knows of one file in `segments/`. Guarded by the storage's `state`.
final class Segment {
    let index: UInt32
    let name: String
    /// The id in its header; nil until it was read.
    var id: RandomName?
    /// Where the next frame begins. Everything before was reported by `scan`, or appended here. 0: the header was not read.
    var position: UInt64 = 0
    /// Where the frame before `position` begins. 0: there is none, or it is not known.
    var lastFrame: UInt64 = 0
    /// The number of bytes known to be durable.
    var durable: UInt64 = 0
    /// Whether its seal was reached: nothing follows.
    var complete = false
    /// If parts of it could not be read: when to read it again although it did not change, in nanoseconds since 1970.
    var due: Int64?
    /// In nanoseconds.
    static let longestWait: Int64 = 600 * 1_000_000_000
    /// Reading a failing medium is slow: leave most of the time for other work.
    static func nextLook(began: Int64) -> Int64 {
        let now = System.now, taken = min(max(0, now &- began), longestWait / 10)
        return taken < 20_000_000 ? now : now &+ taken * 10
    }
    /// The result of `stat` when it was last read to its end; nil if it must be read again.
    var look: System.Status?
    /// Returns whether `stat` will differ once there is more. A writer can fill the unused room after its frames without changing the
    /// size, and file systems count time in steps of up to two seconds.
    static func isTelling(_ status: System.Status, readTo position: UInt64) -> Bool {
        let (age, overflow) = System.now.subtractingReportingOverflow(status.modified)
        return status.size <= position || (!overflow && age > 2_000_000_000)
    }
    var file: OpenFile?
    /// This process's own file if another took its name: the only way to its content.
    var pinned: OpenFile?
    var lastUse: UInt64 = 0
    /// Whether damage was found: scanning to the end did not report every record that it once held.
    var damaged = false
    /// Whether it was compacted into others that hold all of it, so that its file is no longer needed.
    var replaced = false
    /// Whether its file was missing at the last look.
    var gone = false
    /// Whether its records were stored elsewhere since values in it were erased.
    var isErased = false
    /// Where the segment's records are in other segments.
    var relocations: [Relocation] = []
    init(index: UInt32, name: String) { self.index = index; self.name = name }
}
