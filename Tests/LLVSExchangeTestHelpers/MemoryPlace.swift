import LLVSCore
import LLVSTestHelpers

@testable import LLVSExchange

/// Files in memory that several devices share, with outdated listings, torn uploads and lost answers.
package final class MemoryPlace: @unchecked Sendable {
    package var files: [String: [UInt8]] = [:]
    private var born: [String: Int] = [:]
    private var gone: [String: (at: Int, size: Int)] = [:]
    package var random: SeededRandom
    /// Counts steps; each request takes one.
    package var clock = 0
    package var hasFaults = false
    package var isFull = false
    /// Whether there is room for a file of this name.
    package var hasRoom: (String) -> Bool = { _ in true }
    /// The largest size of a file in bytes; the service refuses larger ones.
    package var most = Int.max
    /// How many bytes an upload can have before the call is cancelled, and how many bytes were uploaded in all.
    package var carries = Int.max, carried = 0
    package var refusesDeletes = false
    /// The error of deletes, unless `refusesDeletes` is set.
    package var deleteFault: StoreError?
    /// The probability that an upload is torn, and that the answer to one is lost.
    package var tearing = 0.08, losing = 0.06
    /// Sizes that listings report instead of the right ones.
    package var claims: [String: Int] = [:]
    /// The names that no listing shows.
    package var hides: Set<String> = []
    /// How many steps a listing may be outdated.
    package static let stale = 60
    /// Seconds that a step takes by default.
    package static let step: Int64 = 720
    package var pace = MemoryPlace.step

    package init(seed: UInt64 = 0) { random = SeededRandom(seed: seed) }
    package var time: Int64 { 1_000_000 + Int64(clock) * pace }
    package func chance(_ probability: Double) -> Bool { hasFaults && Double.random(in: 0..<1, using: &random) < probability }

    package func isNew(_ name: String) -> Bool { clock - (born[name] ?? -1_000) < MemoryPlace.stale }
    package func put(_ name: String, _ bytes: [UInt8]) {
        files[name] = bytes
        born[name] = clock
    }
    package func remove(_ name: String) {
        guard let bytes = files.removeValue(forKey: name) else { return }
        gone[name] = (clock, bytes.count)
    }
    /// The entries of a directory. They are sorted if each of them draws a random number, so that a seed determines everything.
    private func inside<T>(_ directory: String, _ files: [String: T]) -> [(key: String, value: T)] {
        let found = files.filter { $0.key.hasPrefix(directory) && Paths.parent(of: $0.key) == directory }
        return hasFaults ? found.sorted { $0.key < $1.key } : Array(found)
    }
    package func list(_ directory: String) -> [String: Int] {
        var found: [String: Int] = [:]
        for (name, bytes) in inside(directory, files) where !hides.contains(name) {
            if !(isNew(name) && chance(0.3)) { found[name] = claims[name] ?? bytes.count }
        }
        for (name, (at, size)) in inside(directory, gone) {
            if clock - at < MemoryPlace.stale, chance(0.3) { found[name] = size }
        }
        return found
    }

    /// The versions in whole packs.
    package func versions() -> Set<VersionID> {
        // A root that was torn by rewriting still counts: devices that know it continue with it.
        for (text, bytes) in files {
            if let name = PackName(text), name.kind == .root, let root = try? PackedState.Root(name, bytes) { stores.insert(root.store) }
        }
        var all: Set<VersionID> = []
        for (text, bytes) in files {
            // Files of one name and size have the same bytes.
            if let (size, ids) = held[text], size == bytes.count { all.formUnion(ids); continue }
            guard let name = PackName(text), name.kind == .log || name.kind == .base else { continue }
            guard let file = try? PackFile(name, bytes, stores: Array(stores)) else { continue }
            held[text] = (bytes.count, file.index.versions.map(\.id))
            all.formUnion(file.index.versions.map(\.id))
        }
        return all
    }
    /// The versions in whole packs of an encrypted place.
    package func versions(opening keys: StoreKeys) throws -> Set<VersionID> {
        let sealing = try PackCipher(keys, RemoteKeys.crypto()).sealing
        var all: Set<VersionID> = []
        for (text, bytes) in files {
            guard let name = PackName(text), name.kind == .log || name.kind == .base else { continue }
            guard let file = try? PackFile(name, bytes, stores: [keys.store], sealing: sealing) else { continue }
            all.formUnion(file.index.versions.map(\.id))
        }
        return all
    }
    /// The versions of a pack that existed, whole, at a call of `versions` up to now.
    package func versionsOnce(of name: String) -> Set<VersionID>? { held[name].map { Set($0.1) } }
    private var held: [String: (Int, [VersionID])] = [:], stores: Set<PackID> = []
    package func names(_ kind: PackKind) -> [PackName] { files.keys.compactMap { PackName($0) }.filter { $0.kind == kind } }
}

/// A device's access to the place.
package final class MemoryFiles: RemoteFiles, @unchecked Sendable {
    package let place: MemoryPlace
    /// Called before each request; an error that it throws ends the device.
    package var before: () throws -> Void = {}
    /// The requests since the last check.
    package var asked: [String] = []
    /// Bytes that were read since this was last set to 0.
    package var bytesRead = 0
    /// The ranges that were read, by file, since this was last emptied.
    package var ranges: [(name: String, range: Range<Int>)] = []
    /// Called with the name and bytes of each upload.
    package var made: (String, [UInt8]) -> Void = { _, _ in }
    /// The error with which an upload of that name and size is refused; nil: accepted.
    package var refuses: (String, Int) -> StoreError? = { _, _ in nil }
    /// Called with the number of bytes of each read.
    package var gave: (Int) -> Void = { _ in }
    /// Called with each uploaded name; an error that it throws replaces the answer.
    package var published: (String) throws -> Void = { _ in }
    /// Whether an upload reports that the file already existed: the answer to a first attempt was lost.
    package var isToldTwice: (String) -> Bool = { _ in false }
    /// Bytes that a read returns instead of the file's; nil: the file's.
    package var readsInstead: (String) -> [UInt8]? = { _ in nil }
    /// The error of a read; nil: it succeeds.
    package var withholds: (String) -> StoreError? = { _ in nil }
    /// The digest of a file in listings; nil: this place reports no digests.
    package var digest: ((String, [UInt8]) -> RemoteDigest?)?
    /// Whether ranges of a file can be read; otherwise each read returns the whole file.
    package var hasRanges = true
    /// Whether listings report sizes, which not all services do.
    package var tellsSizes = true

    package let description: String
    /// - Parameter named: the description; a store exchanges with one place of a name at a time.
    package init(_ place: MemoryPlace, named description: String = "the place in memory") {
        self.place = place; self.description = description
    }
    package var largestFile: Int?
    /// The largest number of files that one call requested.
    package private(set) var mostAtOnce = 0
    /// The size of the latest upload, whether it succeeded or not.
    package private(set) var sizeToPut = 0
    package var capabilities: RemoteCapabilities {
        var found = RemoteCapabilities(requestsToPublish: 1, isExclusive: false, hasRanges: true, hasFeed: false)
        found.largestFile = largestFile
        found.tellsDigests = digest != nil
        return found
    }
    package var counts: RemoteCounts { RemoteCounts(requests: asked.count) }
    package func close() {}

    package static let lost = StoreError(.transport, "The answer was lost.")
    /// The error with which a device dies.
    package static let died = StoreError(.user, "The device died.")

    private func request(_ what: String) throws {
        asked.append(what)
        try before()
        place.clock += 1
        if place.chance(0.02) { throw MemoryFiles.lost }
    }

    package func list(_ directory: String, withTimes: Bool, _ check: () throws -> Void) throws -> [RemoteEntry]? {
        try check()
        try request("list \(directory)")
        let entries = place.list(directory).map { name, size in
            var entry = RemoteEntry(
                name: String(name.split(separator: "/").last ?? ""), isDirectory: false, size: tellsSizes ? size : nil)
            entry.digest = digest?(name, place.files[name] ?? [])
            return entry
        }
        return entries.sorted { $0.name < $1.name }
    }
    package func read(_ files: [RemoteRead], _ check: () throws -> Void) throws -> [RemoteContents] {
        mostAtOnce = max(mostAtOnce, files.count)
        return try files.map { file in
            try check()
            try request("read \(file.name)")
            if let error = withholds(file.name) { return .unreadable(error) }
            guard var bytes = readsInstead(file.name) ?? place.files[file.name], !(place.isNew(file.name) && place.chance(0.1)) else {
                return .missing
            }
            if place.chance(0.02) { bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &place.random))) }
            let range = hasRanges ? file.range?.clamped(to: 0..<bytes.count) : nil
            if let range { bytes = Array(bytes[range]) }
            bytesRead += bytes.count
            gave(bytes.count)
            ranges.append((file.name, range ?? 0..<bytes.count))
            return .bytes(bytes, isWhole: range == nil)
        }
    }
    package func publish(_ files: [RemoteUpload], _ check: () throws -> Void) throws -> [RemotePublished] {
        try files.map { file in
            try check()
            try request("publish \(file.name)")
            let bytes = try file.data.bytes()
            sizeToPut = bytes.count
            place.carried += min(bytes.count, place.carries)
            guard bytes.count <= place.carries else { throw StoreError(.cancelled, "The time is over.") }
            if bytes.count > place.most { throw StoreError(.tooLarge, "The server answers 413.") }
            if place.isFull || !place.hasRoom(file.name) { throw StoreError(.noSpace, "The place is full.") }
            if let error = refuses(file.name, bytes.count) { throw error }
            made(file.name, bytes)
            let isTorn = place.chance(place.tearing)
            place.put(file.name, isTorn ? Array(bytes.prefix(Int.random(in: 0..<bytes.count, using: &place.random))) : bytes)
            try published(file.name)
            if place.chance(isTorn ? 0.6 : place.losing) { throw MemoryFiles.lost }
            return isToldTwice(file.name) ? .exists : .published
        }
    }
    package func delete(_ names: [String], _ check: () throws -> Void) throws {
        for name in names {
            try check()
            try request("delete \(name)")
            if place.refusesDeletes { throw StoreError(.permission, "Nothing is deleted here.") }
            if let fault = place.deleteFault { throw fault }
            place.remove(name)
            if place.chance(0.05) { throw MemoryFiles.lost }
        }
    }
}

/// A storage in memory whose caches survive the death of the device.
package final class PackedStorage: Storage, @unchecked Sendable {
    package let description = "the store under test", isReadOnly = false
    package let blobThreshold: Int? = nil
    package let damages: [StorageDamage] = []
    private let base = MemoryStorage()
    package var caches: [String: [UInt8]] = [:]
    /// If true, caches are no longer written.
    package var isDead = false

    package func append(_ records: [RecordPieces]) throws -> [RecordPlace] { try base.append(records) }
    package func sync() throws {}
    package func scan(_ control: PacedControl, _ found: (ScannedRecord) throws -> Void) throws {}
    package func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try base.read(place, at: offset, into: buffer)
    }
    package func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { try base.storeBlob(data) }
    package func hasBlob(_ id: BlobID) -> Bool { false }
    package func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        try base.readBlob(id, at: offset, into: buffer)
    }
    package func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
    }
    package func cacheGet(_ name: String) throws -> [UInt8]? { caches[name] }
    package func cachePut(_ name: String, _ data: [UInt8]) throws { if !isDead { caches[name] = data } }
    package func cacheDelete(_ name: String) throws { if !isDead { caches[name] = nil } }
    package func statistics(_ control: PacedControl) throws -> StorageStatistics { try base.statistics(control) }
    package func close(discarding: Bool) throws { try base.close(discarding: discarding) }
}

/// A store, and its exchange with a place in memory.
package final class PackedDevice {
    package let storage = PackedStorage()
    package let store: Store
    package let files: MemoryFiles
    package private(set) var exchange: Exchange
    private let settings: PackedSettings
    private let keys: RemoteKeys?
    private let isBridged: Bool
    package var isRunning = false
    /// By how many seconds the device's clock is ahead of the place's.
    package let clockAhead = Ahead()
    package final class Ahead: @unchecked Sendable {
        // Sendable: one thread uses it.
        package var value: Int64 = 0
    }

    /// - Parameter wait: called instead of waiting.
    package init(
        _ place: MemoryPlace, fanIn: Int = 8, silence: Int64? = nil, mostNames: Int? = nil, random: (@Sendable () -> UInt64)? = nil,
        keys: RemoteKeys? = nil, isBridged: Bool = false, named: String? = nil, steady: @escaping () -> Double = { Clock.steady() },
        wait: @escaping () throws -> Void = {}
    ) throws {
        self.keys = keys
        self.isBridged = isBridged
        var options = Store.Options()
        options.storage = .custom(storage)
        store = try Store(path: "", options: options)
        files = MemoryFiles(place)
        var settings = PackedSettings(
            clock: { [clockAhead] in place.time + clockAhead.value }, random: random ?? { place.random.next() })
        settings.fanIn = fanIn
        settings.silence = silence ?? settings.silence
        settings.mostNames = mostNames ?? settings.mostNames
        settings.deviceName = named
        nonisolated(unsafe) let waits = wait
        nonisolated(unsafe) let passes = steady
        settings.steady = { passes() }
        settings.wait = { _, _ in try waits() }
        self.settings = settings
        let transport = PackedTransport(files, settings: settings, keys: try keys.map(PackedKeys.init), isBridged: isBridged)
        exchange = Exchange(store: store, transport: transport)
    }

    /// As after a death: everything in memory is lost.
    package func restart() {
        let keys = keys.flatMap { try? PackedKeys($0) }
        exchange = Exchange(store: store, transport: PackedTransport(files, settings: settings, keys: keys, isBridged: isBridged))
    }

    /// The same store, on another machine.
    package func clone(random: @escaping @Sendable () -> UInt64, keys: RemoteKeys? = nil) throws -> PackedDevice {
        let twin = try PackedDevice(
            files.place, fanIn: settings.fanIn, silence: settings.silence, random: random, keys: keys)
        try give(to: twin)
        twin.storage.caches = storage.caches
        return twin
    }

    /// Copies all versions to another device, past the place.
    package func give(to other: PackedDevice) throws {
        var bytes: [UInt8] = []
        _ = try store.writePack { bytes.append(contentsOf: $0) }
        var at = 0
        _ = try other.store.readPack { buffer in
            let count = min(buffer.count, bytes.count - at)
            bytes[at..<at + count].withUnsafeBytes { buffer.copyMemory(from: $0) }
            at += count
            return count
        }
    }

    /// What the device remembers about the place.
    package var known: PackedState? { try? PackedNotes.known(of: store, remote: files.description) }

    package var ids: Set<VersionID> { Set((try? store.missing(from: store.coverage(behind: []))) ?? []) }

    @discardableResult
    package func save(_ name: String = "key", _ data: [UInt8] = [1]) throws -> VersionID {
        let head = try store.heads().last?.id
        let change: Value.Change = .insert(try ValueID(name), data: data)
        return try store.makeVersion(basedOn: head, changes: [change]).id
    }

    /// Exchanges once and returns the requests.
    @discardableResult
    package func exchangeOnce() throws -> [String] {
        files.asked = []
        _ = try exchange.retrieve()
        _ = try exchange.send()
        return files.asked
    }
}
