/// An exchange within one process, for tests and for stores of one program.
///
/// All transports of one name share one area, which exists as long as any of them. Safe from all threads.
public final class MemoryTransport: ExchangeTransport, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// The area that it shares with all transports of this name in the process.
    public let name: String
    private let area: Area
    private let lock = Lock(.leaf)
    private var state: [UInt8] = []

    /// Joins the area of that name, or creates it if no transport has it.
    public init(name: String) {
        self.name = name
        area = Area.shared(name)
    }
    public var description: String { "the area \"\(name)\" in memory" }

    public func list(_ control: OperationControl) throws -> ExchangeListing {
        area.lock.withLock {
            ExchangeListing(versions: Array(area.versions.keys), changesOnly: area.changes.keys.filter { area.versions[$0] == nil })
        }
    }
    public func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        area.lock.withLock { Area.take(names, from: area.versions) }
    }
    public func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        area.lock.withLock { Area.take(names, from: area.changes) }
    }
    public func send(_ files: [ExchangeFiles], _ control: OperationControl) throws {
        let changes = try files.map { try $0.changes.bytes() }
        let watchers = area.lock.withLock {
            for (file, changes) in zip(files, changes) {
                area.changes[file.name] = changes
                area.versions[file.name] = file.version
            }
            return area.watchers.values.filter { $0.transport != ObjectIdentifier(self) }
        }
        for watcher in watchers { watcher.thread?.state.signal() }
    }
    public func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        area.lock.withLock { names.filter { area.versions[$0]?.isEmpty ?? true || area.changes[$0]?.isEmpty ?? true } }
    }

    public func readSnapshotFile(_ name: String) throws -> [UInt8]? { area.lock.withLock { area.snapshots[name] } }
    public func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws { area.lock.withLock { area.snapshots[name] = data } }
    public func deleteSnapshotFile(_ name: String) throws { area.lock.withLock { area.snapshots[name] = nil } }
    public func snapshotFileNames() throws -> [String] { area.lock.withLock { Array(area.snapshots.keys) } }

    public var restorationState: [UInt8] {
        get { lock.withLock { state } }
        set { lock.withLock { state = newValue } }
    }

    /// Reports what other transports send, not what this one sends.
    public func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        let thread = try ObservationThread(changed)
        return Observation(thread: thread, area: area, key: area.watch(thread, for: ObjectIdentifier(self)))
    }
    public func close() {}

    /// Plants files as they are, for tests of bad ones; nil removes.
    func plant(_ name: String, version: [UInt8]?, changes: [UInt8]?) {
        area.lock.withLock {
            area.versions[name] = version; area.changes[name] = changes
        }
    }
    func planted(_ name: String) -> (version: [UInt8]?, changes: [UInt8]?) {
        area.lock.withLock { (area.versions[name], area.changes[name]) }
    }

    /// The area that all transports of one name share.
    private final class Area: @unchecked Sendable {
        // Sendable: `lock` guards all that changes.
        struct Watcher {
            let transport: ObjectIdentifier
            weak var thread: ObservationThread?
        }
        let lock = Lock(.leaf)
        var versions: [String: [UInt8]] = [:], changes: [String: [UInt8]] = [:], snapshots: [String: [UInt8]] = [:]
        var watchers: [Int: Watcher] = [:]
        private var nextKey = 0

        func watch(_ thread: ObservationThread, for transport: ObjectIdentifier) -> Int {
            lock.withLock {
                nextKey += 1
                watchers[nextKey] = Watcher(transport: transport, thread: thread)
                return nextKey
            }
        }

        static func take(_ names: [String], from files: [String: [UInt8]]) -> [FetchedFile] {
            var taken: [FetchedFile] = [], size = 0
            for name in names {
                let file = files[name]
                taken.append(file.map(FetchedFile.data) ?? .missing)
                size += file?.count ?? 0
                if size >= ExchangeLimits.batchSize { break }
            }
            return taken
        }

        private struct WeakArea { weak var area: Area? }
        private static let registryLock = Lock(.leaf)
        nonisolated(unsafe) private static var registry: [String: WeakArea] = [:]
        static func shared(_ name: String) -> Area {
            registryLock.withLock {
                if let area = registry[name]?.area { return area }
                registry = registry.filter { $0.value.area != nil }
                let area = Area()
                registry[name] = WeakArea(area: area)
                return area
            }
        }
    }

    private final class Observation: ExchangeObservation, @unchecked Sendable {
        // Sendable: `lock` guards all that changes.
        let thread: ObservationThread, area: Area, key: Int
        init(thread: ObservationThread, area: Area, key: Int) { self.thread = thread; self.area = area; self.key = key }
        func cancel() {
            area.lock.withLock { area.watchers[key] = nil }
            thread.cancel()
        }
        deinit { cancel() }
    }
}
