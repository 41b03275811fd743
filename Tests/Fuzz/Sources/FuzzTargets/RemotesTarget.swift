import LLVS
@testable import LLVSExchange

/// A store's memory of a packed remote, as its caches hold it, and exchanges that continue from it.
///
///     input = how u8 · days u8 · ...    days: how many have passed since then
///     how 0: the bytes as they come
///         1: a state, to which the target adds the first line and the checksum
///         2: one of an encrypted remote, likewise
///         3: one of either with parts that exist only for a while
enum RemotesTarget {
    static let target = FuzzTarget(name: "remotes", run: run, seeds: seeds)
    private static let firstLines = ["LLVSPR1\n", "LLVSPR2\n", "LLVSPR3\n"]

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = Int(input.byte() % 4), days = Int64(input.byte()), rest = input.rest()
        let known = how == 0 ? rest : PackedState.encoded(Array(firstLines[how - 1].utf8) + rest)
        if let state = PackedState(encoded: known) {
            // A state that was read is written and read again.
            guard let again = PackedState(encoded: PackedState.encoded(state.body)) else { fail("a state that was just written is none") }
            let after = text(again)
            for (part, items) in text(state) { require(after[part] == items, "\(part): \(items) became \(after[part] ?? [])") }
        }
        Examining.attempt {
            let made = try PacksOfTwo.made.get()
            let device = try FuzzedDevice(FuzzedFiles(made.files), at: PacksOfTwo.time + days * 86_400, having: made.versions)
            for (pack, ids) in made.sent { try device.notes().put(ids, of: pack) }
            try device.store.storage.cachePut(PackedNotes.name(FuzzedFiles.description), known)
            let held = try device.store.allVersionIDs()
            for _ in 0..<2 {
                let results = [Examining.attempt { try device.retrieve() }, Examining.attempt { try device.send() }]
                for problem in results.flatMap({ $0?.problems ?? [] }) { require(problem.error.code != .internal, "\(problem)") }
            }
            require(try device.store.allVersionIDs() == held, "the versions of the store have changed")
            require(try device.state() != nil, "the cached state is invalid")
            try device.store.close()
        }
    }

    /// The contents of a state without their order. The reason why a file cannot be read is left out, since it is cut to a length.
    private static func text(_ state: PackedState) -> [String: Set<String>] {
        func all(_ items: some Sequence) -> Set<String> { Set(items.map { "\($0)" }) }
        return [
            "numbers": [
                "\(state.writer) \(state.next) \(state.exchanges) \(state.based ?? -1) \(state.healing) \(state.prepared)",
                "\(state.refusesDeletes) \(state.pin.map { "\($0.number) \($0.recipient)" } ?? "")",
            ],
            "roots": all(state.roots), "attempts": all(state.attempts), "holes": all(state.holes), "adopting": all(state.adopting),
            "read": all(state.read), "covered": all(state.covered.all), "seen": all(state.seen), "moved": all(state.moved),
            "active": all(state.active), "wanted": all(state.wanted), "deletions": all(state.deletions),
            "bad": all(state.bad.map { "\($0.key) \($0.value.since) \($0.value.again) \($0.value.fault.map { "\($0.kind)" } ?? "")" }),
            "waiting": all(state.waiting), "blobs": all(state.blobs), "heads": all(state.heads), "lacking": all(state.lacking),
            "older": all(state.oldBlobs), "partials": all(state.partials), "rekeying": all(state.rekeying.map { [$0] } ?? []),
        ]
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        let states = try PacksOfTwo.made.get().states, last = states[states.count - 1].state
        // A pin comes before the count of exchanges, which is the last field.
        let pinned = last.dropFirst(8).dropLast(16 + 8) + [UInt8](repeating: 7, count: 4 + 32 + 8)
        // No pin, no rekeying, and no large value with older keys; the first part of one value was sent.
        var partial = [UInt8](repeating: 0, count: 4 + 8 + 1) + [1] + [UInt8](repeating: 9, count: 16)
        partial += [7, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        partial += [UInt8](repeating: 8, count: 16) + [100]
        var full = Array(last.dropFirst(8).dropLast(16 + 8))
        full += [0] + partial
        full += [UInt8](repeating: 7, count: 8)
        return states.map { FuzzTarget.Seed(name: $0.name, bytes: [1, 0] + $0.state.dropFirst(8).dropLast(16)) } + [
            FuzzTarget.Seed(name: "days-later", bytes: [1, 40] + last.dropFirst(8).dropLast(16)),
            FuzzTarget.Seed(name: "with-keys", bytes: [2, 0] + pinned), FuzzTarget.Seed(name: "in-the-middle", bytes: [3, 0] + full),
            FuzzTarget.Seed(name: "as-it-comes", bytes: [0, 0] + last),
        ]
    }
}

/// A place to which two devices sent packs, and the memory of one of them. It is the same each time.
private struct PacksOfTwo {
    static let time: Int64 = 1_800_000_000
    static let made = Result { try PacksOfTwo() }
    var files: [String: [UInt8]] = [:]
    var versions: [Store.ReceivedVersion] = []
    /// The device's memory at some points in time.
    var states: [(name: String, state: [UInt8])] = []
    /// The versions of its packs.
    var sent: [(PackName, [VersionID])] = []

    init() throws {
        let files = FuzzedFiles([:]), one = try FuzzedDevice(files, at: PacksOfTwo.time - 8 * 86_400, having: [])
        func keep(_ name: String) throws {
            guard let state = try one.store.storage.cacheGet(PackedNotes.name(FuzzedFiles.description)) else { return }
            states.append((name, state))
        }
        func make(_ id: String, _ before: [VersionID], _ key: String) throws -> Store.ReceivedVersion {
            let changes = [Value.Change.insert(try ValueID(key), data: [UInt8](repeating: 5, count: 300))]
            let version = Version(
                id: try VersionID(id), predecessors: before, timestamp: 700_000_010, valueDataSize: InterchangeOrder.valueDataSize(changes),
                metadata: Metadata())
            return Store.ReceivedVersion(version: version, changes: changes)
        }
        func exchange(_ device: FuzzedDevice, _ more: [Store.ReceivedVersion]) throws {
            _ = try device.store.add(more)
            device.clock.time += 86_400
            _ = try device.retrieve()
            _ = try device.send()
        }
        for (version, changes) in try Examples.history() {
            versions.append(Store.ReceivedVersion(version: version, changes: changes))
            try exchange(one, [versions[versions.count - 1]])
            if states.isEmpty { try keep("first") }
        }
        try keep("folded")
        let head = versions[versions.count - 1].version.id
        versions.append(try make("of-another", [head], "other"))
        let two = try FuzzedDevice(files, at: PacksOfTwo.time - 86_400, having: [], random: 1 << 32)
        try exchange(two, [])
        try exchange(two, [versions[versions.count - 1]])
        try exchange(one, [])
        try keep("of-two")
        // A file that is no pack, and one that is truncated.
        let packs = files.all.keys.compactMap { PackName($0) }.filter { $0.kind == .log }.sorted { $0.id < $1.id }
        let none = PackName(kind: .log, writer: 99, first: 1, last: 1, id: PackID(high: 1, low: 2))
        files.all[none.description] = [1, 2, 3]
        for name in packs.prefix(1) { files.all[name.description]?.removeLast(40) }
        versions.append(try make("unsent", [versions[versions.count - 1].version.id], "unsent"))
        try exchange(one, [versions[versions.count - 1]])
        try keep("with-a-bad-one")
        // Save a version that the place lacks, whatever the memory claims.
        versions.append(try make("not-sent-yet", [head], "later"))
        self.files = files.all
        for name in packs { if let ids = try one.notes().ids(of: name) { sent.append((name, ids)) } }
        try one.store.close()
        try two.store.close()
    }
}

/// A store, and its exchange with a place in memory.
private struct FuzzedDevice {
    final class Clock: @unchecked Sendable {
        // Sendable: used by one thread.
        var time: Int64, random: UInt64
        init(_ time: Int64, _ random: UInt64) { self.time = time; self.random = random }
    }
    let store: Store, transport: PackedTransport, clock: Clock

    init(_ files: FuzzedFiles, at time: Int64, having versions: [Store.ReceivedVersion], random: UInt64 = 0) throws {
        store = try Examining.memoryStore()
        _ = try store.add(versions)
        let clock = Clock(time, random)
        var settings = PackedSettings(
            clock: { clock.time },
            random: {
                // The constant of SplitMix64.
                clock.random &+= 0x9E37_79B9_7F4A_7C15
                var word = (clock.random ^ clock.random >> 30) &* 0xBF58_476D_1CE4_E5B9
                word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
                return word ^ word >> 31
            })
        settings.fanIn = 2
        settings.wait = { _, _ in }
        transport = PackedTransport(files, settings: settings)
        self.clock = clock
    }

    func retrieve() throws -> ExchangeResult {
        try transport.retrieve(into: store, verifyKnown: false, OperationControl()) ?? ExchangeResult()
    }
    func send() throws -> ExchangeResult { try transport.send(from: store, OperationControl()) ?? ExchangeResult() }
    func notes() throws -> PackedNotes { try PackedNotes(store, remote: FuzzedFiles.description) }
    func state() throws -> PackedState? { try notes().load() }
}

/// Files in memory.
private final class FuzzedFiles: RemoteFiles, @unchecked Sendable {
    // Sendable: used by one thread.
    static let description = "the place in memory"
    var all: [String: [UInt8]]
    init(_ all: [String: [UInt8]]) { self.all = all }

    var description: String { FuzzedFiles.description }
    var capabilities: RemoteCapabilities { RemoteCapabilities(requestsToPublish: 1, isExclusive: false, hasRanges: true, hasFeed: false) }
    var counts: RemoteCounts { RemoteCounts() }
    func close() {}
    func account(_ check: Check?) throws -> String? { nil }

    func list(_ directory: String, withTimes: Bool, _ check: () throws -> Void) throws -> [RemoteEntry]? {
        all.keys.sorted().filter { Paths.parent(of: $0) == directory }.map { name in
            RemoteEntry(name: String(name.split(separator: "/").last ?? ""), isDirectory: false, size: all[name]?.count)
        }
    }
    func read(_ files: [RemoteRead], _ check: () throws -> Void) throws -> [RemoteContents] {
        files.map { file in
            guard let bytes = all[file.name] else { return .missing }
            guard let range = file.range else { return .bytes(bytes, isWhole: true) }
            return .bytes(Array(bytes[range.clamped(to: 0..<bytes.count)]), isWhole: false)
        }
    }
    func publish(_ files: [RemoteUpload], _ check: () throws -> Void) throws -> [RemotePublished] {
        try files.map { file in
            if all[file.name] != nil, !file.replaces { return .exists }
            all[file.name] = try file.data.bytes()
            return .published
        }
    }
    func delete(_ names: [String], _ check: () throws -> Void) throws { for name in names { all[name] = nil } }
    func changes(since token: [UInt8], _ check: () throws -> Void) throws -> RemoteChanges? { nil }
    func prepareUploads(_ check: () throws -> Void) throws {}
    func takesAnother(_ check: () throws -> Void) throws -> Bool { false }
}
