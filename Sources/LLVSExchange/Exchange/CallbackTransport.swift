/// An exchange with whatever the host can reach, through closures.
///
/// The exchange rethrows the errors of the closures unchanged. It calls them on the thread that called it, one at a time per exchange,
/// while no lock of a store is held.
public final class CallbackTransport: ExchangeTransport, RequestingTransport, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// The closures. Each does what `ExchangeTransport` says of the requirement with its name.
    public struct Callbacks: Sendable {
        /// For messages: "the exchange with example.org".
        public var description: String
        /// Lists what the other side has. It is called for each listing, and nothing is cached.
        public var list: @Sendable (OperationControl) throws -> ExchangeListing
        /// Returns the version files with the names, in order: at least one, and fewer than requested if they are large.
        public var fetchVersions: @Sendable ([String], OperationControl) throws -> [FetchedFile]
        /// Returns the changes files with the names, likewise.
        public var fetchChanges: @Sendable ([String], OperationControl) throws -> [FetchedFile]
        /// Stores the files of each version, its changes before the version; each file whole or not at all.
        public var send: @Sendable ([ExchangeFiles], OperationControl) throws -> Void
        /// Nil: only fetching a file shows that it is unusable.
        public var unusable: (@Sendable ([String], OperationControl) throws -> [String])?
        /// Nil, like the three that follow: there are no snapshots, and writing one throws `.unsupported`.
        public var readSnapshotFile: (@Sendable (String) throws -> [UInt8]?)?
        /// Replaces the snapshot file of a name as a whole.
        public var writeSnapshotFile: (@Sendable (String, [UInt8]) throws -> Void)?
        /// Removes the snapshot file of a name. A missing file is no error.
        public var deleteSnapshotFile: (@Sendable (String) throws -> Void)?
        /// The names of all snapshot files, in any order.
        public var snapshotFileNames: (@Sendable () throws -> [String])?
        /// Nil: there is no state to save.
        public var restorationState: (@Sendable () -> [UInt8])?
        /// Saves the state; nil: discards it.
        public var setRestorationState: (@Sendable ([UInt8]) -> Void)?
        /// Nil: the other side cannot report changes.
        public var observe: (@Sendable (@escaping @Sendable () -> Void) throws -> (any ExchangeObservation)?)?
        /// Called once, at the latest when the transport is released.
        public var close: (@Sendable () -> Void)?

        /// Sets the four closures that every exchange needs. Set the others afterwards if the host supports them.
        public init(
            description: String,
            list: @escaping @Sendable (OperationControl) throws -> ExchangeListing,
            fetchVersions: @escaping @Sendable ([String], OperationControl) throws -> [FetchedFile],
            fetchChanges: @escaping @Sendable ([String], OperationControl) throws -> [FetchedFile],
            send: @escaping @Sendable ([ExchangeFiles], OperationControl) throws -> Void
        ) {
            self.description = description
            self.list = list; self.fetchVersions = fetchVersions; self.fetchChanges = fetchChanges; self.send = send
        }
    }

    private let callbacks: Callbacks
    private let lock = Lock(.leaf)
    private var isClosed = false

    /// Holds the closures until `close`, or until it is released.
    public init(_ callbacks: Callbacks) { self.callbacks = callbacks }
    deinit { close() }

    public var description: String { callbacks.description }
    public func list(_ control: OperationControl) throws -> ExchangeListing { try callbacks.list(control) }
    public func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try callbacks.fetchVersions(names, control)
    }
    public func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try callbacks.fetchChanges(names, control)
    }
    public func send(_ files: [ExchangeFiles], _ control: OperationControl) throws { try callbacks.send(files, control) }
    public func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        try callbacks.unusable?(names, control) ?? []
    }

    public func readSnapshotFile(_ name: String) throws -> [UInt8]? { try callbacks.readSnapshotFile?(name) }
    public func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws {
        guard let write = callbacks.writeSnapshotFile else {
            throw StoreError(
                .unsupported,
                "A snapshot cannot be written to \(description): it has no callbacks that write snapshot files. "
                    + "Give it those callbacks, or write the snapshot into a folder."
            )
        }
        try write(name, data)
    }
    public func deleteSnapshotFile(_ name: String) throws { try callbacks.deleteSnapshotFile?(name) }
    public func snapshotFileNames() throws -> [String] { try callbacks.snapshotFileNames?() ?? [] }

    public var restorationState: [UInt8] {
        get { callbacks.restorationState?() ?? [] }
        set { callbacks.setRestorationState?(newValue) }
    }
    public func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? {
        try callbacks.observe?(changed)
    }
    package var filesAtOnce: Int { ExchangeLimits.batchCount }
    public func close() {
        let first = lock.withLock {
            defer { isClosed = true }; return !isClosed
        }
        if first { callbacks.close?() }
    }
}
