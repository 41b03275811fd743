import CLLVSShims

/// A database in SQLite that mirrors one version of a store in tables, and is updated by the differences: docs/finding.md.
///
/// The program opens the database with any driver and queries it; only the library writes it. Each update is one transaction that also
/// records the version. So readers, also after a crash, see one version or another and never a mixture. It is derived data: after a
/// deletion it is rebuilt.
///
/// Safe from all threads. Updates run one at a time.
public final class Projection: @unchecked Sendable {
    // Sendable: the thread inside `gate` uses `database`; `state` guards the rest.
    /// How a projection is opened.
    public struct Options: Sendable {
        /// The coordinator whose current version the database follows, on a thread of the library; nil: only `update` updates it.
        public var coordinator: StoreCoordinator?
        /// Seconds to wait for other writers of the database.
        public var busyTimeout: Double = 5
        /// The permissions of a new database, restricted by the process's mask.
        public var fileMode: UInt32 = 0o600
        /// Updated only by `update`.
        public init() {}
    }

    /// A part of a value that did not fit its column, which is NULL instead.
    public struct Problem: Sendable, Equatable {
        /// Increases with each problem found: pass the last one to get those after it.
        public var number: Int64
        /// The name of the table.
        public var table: String
        /// The id of the value.
        public var id: String
        /// The column's JSON pointer; empty if the whole value is not JSON.
        public var pointer: String
        /// "type", "range" (a number that SQLite cannot represent), "size" or "not-json".
        public var reason: String
    }

    /// The store.
    public let store: Store
    /// The path of the database.
    public let path: String
    /// The definition of its tables.
    public let definition: ProjectionDefinition
    let options: Options
    private let gate: Gate
    /// Used by the thread inside `gate`.
    private var database: ProjectionDatabase?
    private let state = Guarded<(failure: StoreError?, isClosed: Bool)>((nil, false))
    private let follower = Guarded<CurrentVersionFollower?>(nil)

    /// Opens the database, or creates it if there is none. With a coordinator the first update begins at once, on another thread.
    /// - Parameters:
    ///   - store: the store to mirror.
    ///   - path: the path of the database.
    ///   - definition: the definition of its tables.
    ///   - options: the coordinator to follow, and how long to wait for other writers.
    /// - Throws: `.notAStore` if something else is at the path, `.permission` if it belongs to another user and lies in a folder that all
    ///   may write to, `.newerFormat`, `.busy`, `.unsupported` without SQLite, `.closed`, and errors of the system.
    @available(*, noasync, message: "It waits for the disk. Import LLVSAsync, and await Projection.open(_:path:_:options:).")
    public init(_ store: Store, path: String, _ definition: ProjectionDefinition, options: Options = Options()) throws {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(
                .invalidArgument,
                "The path of a projection is \(path.isEmpty ? "empty" : "not a path: it holds a NUL"). Give the path of a file.",
                path: path)
        }
        guard options.coordinator.map({ $0.store === store }) ?? true else {
            throw StoreError(
                .invalidArgument, "A projection is opened with a coordinator of another store. Give the store of the coordinator.")
        }
        try store.requireOpen()
        var path = System.absolute(Paths.withoutTrailingSlashes(path))
        try SQLiteConnection.checkOwner(path, doing: "Opening the projection", "Give")
        // SQLite's other files are beside the target of a link.
        if (try? DirectoryEntry(path).status())?.isLink == true, let resolved = System.resolved(path) { path = resolved }
        self.store = store
        self.path = path
        self.definition = definition
        self.options = options
        gate = Gate("projection")
        database = try explained { try open() }
        if let coordinator = options.coordinator {
            let follower = try CurrentVersionFollower(
                coordinator, ifNot: "A projection was not brought up to date", failed: { [weak self] in self?.note($0) }
            ) { [weak self] control in
                try self?.update(control: control)
                return self != nil
            }
            self.follower.withLock { $0 = follower }
        }
    }

    deinit { release() }

    /// Closes the database after waiting for a running update; an update by the library's own thread is cancelled. Later calls throw
    /// `.closed`.
    public func close() {
        guard
            state.withLock({ state in
                defer { state.isClosed = true }
                return !state.isClosed
            })
        else { return }
        let follower = follower.withLock { follower in
            defer { follower = nil }
            return follower
        }
        follower?.end()
        // In a forked child no SQLite call is allowed, and the gate may be held for ever.
        if SQLiteLibrary.isForked { return release() }
        gate.runAlone { release() }
    }

    private func release() {
        if SQLiteLibrary.isForked { database?.connection.leak() } else { database?.connection.close() }
        database = nil
    }

    private func open() throws -> ProjectionDatabase {
        try ProjectionDatabase(path, mode: options.fileMode, SQLiteConnection.Patience(seconds: options.busyTimeout))
    }

    /// Returns the database, reopened if its file was deleted or replaced. Called inside the gate.
    private func opened() throws -> ProjectionDatabase {
        if state.withLock({ $0.isClosed }) {
            throw StoreError(.closed, "The projection is closed. Open another one to continue.")
        }
        try SQLiteLibrary.checkProcess("Using the projection", path)
        if let database, !database.isGone { return database }
        database?.connection.close()
        database = nil
        let opened = try open()
        database = opened
        return opened
    }

    /// Replaces the message of damage: nothing of the store is lost with this database.
    private func explained<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch var error as StoreError where error.path == path && error.code == .damaged {
            error.message =
                "The database \(path) of a projection is damaged. Close all programs that use it, and delete it with the files named -wal "
                + "and -shm beside it: it is rebuilt from the store."
            throw error
        }
    }

    // MARK: Updating

    /// The version of the database; nil before the first update, and if its tables do not match the definition.
    public var version: VersionID? {
        @available(*, noasync, message: "It reads the database. Import LLVSAsync, and await readVersion().")
        get throws {
            try gate.run("Asking a projection") { try explained { try opened().version(of: definition) } }
        }
    }

    /// Why the last update by the library's own thread failed; nil if it succeeded.
    public var failure: StoreError? { state.withLock { $0.failure } }
    func note(_ failure: StoreError?) { state.withLock { $0.failure = failure } }

    /// Returns the version to use if none is named.
    func current() throws -> VersionID {
        if let coordinator = options.coordinator { return coordinator.currentVersion }
        return try store.mostRecentHead()?.id ?? EmptyRoot.id
    }

    /// Brings the database to a version, in one transaction. Applies the differences from its present version; if the store no longer has
    /// that version, or the tables do not match the definition, rebuilds all tables.
    /// - Parameters:
    ///   - version: nil: the coordinator's current version, or the newest head.
    ///   - control: progress (stage `.reading`, in values) and cancellation. A cancelled update leaves the database unchanged.
    /// - Returns: the number of rows inserted, changed or removed.
    /// - Throws: `.unknownVersion`, `.damaged` with the id of a value that cannot be read, `.busy` if other programs keep the database
    ///   locked, `.invalidArgument` if it has a table of that name that the projection did not make, `.unsupported` if SQLite lacks
    ///   something that the definition needs, `.noSpace`, `.cancelled`.
    /// - Complexity: O(values that differ), or O(values under the prefixes).
    @discardableResult
    public func update(to version: VersionID? = nil, control: OperationControl = OperationControl()) throws -> UInt64 {
        try gate.run("Updating a projection", control) {
            try explained {
                let target = try version ?? current(), ordinal = try store.requireOrdinal(target)
                let paced = control.paced(.reading, doing: "Updating the projection \(path)")
                try paced.look()
                let database = try opened()
                return try database.connection.watched(by: paced) {
                    if try database.version(of: definition) == target { return 0 }
                    return try database.connection.transaction(doing: "Updating the projection") {
                        // Another process may have updated it first.
                        let from = try database.version(of: definition)
                        if from == target { return 0 }
                        return try write(database, from, target, ordinal, paced)
                    }
                }
            }
        }
    }

    private func write(
        _ database: ProjectionDatabase, _ from: VersionID?, _ target: VersionID, _ ordinal: UInt32, _ control: PacedControl
    ) throws -> UInt64 {
        // Without the old version there are no differences to apply.
        let basis = try from.flatMap { try store.readableVersion($0) == nil && $0 != EmptyRoot.id ? nil : $0 }
        if basis == nil {
            try checkSearch(database)
            try database.make(definition)
        }
        var changed: UInt64 = 0
        for table in definition.tables {
            let rows = try ProjectionRows(database.connection, table, isNew: basis == nil, control)
            if let basis {
                let differences = try store.differences(from: basis, to: target, in: .prefix(table.prefix), control: control.forPart)
                try control.look()
                var left = differences[...]
                try put(rows, table, control) { values in try Projection.take(from: &left, values) }
            } else {
                var walk = PrefixWalk(try store.maps.map(ordinal, control), table.prefix)
                try put(rows, table, control) { values in try walk.next { try values.append($0, $1) }?.bytes }
            }
            changed += rows.changed
        }
        if basis == nil { try database.makeIndexes(definition) }
        try database.note(target, definition)
        return changed
    }

    private func checkSearch(_ database: ProjectionDatabase) throws {
        guard definition.tables.contains(where: { $0.search != nil }) else { return }
        let doing = "Updating the projection"
        guard try database.connection.integer("SELECT sqlite_compileoption_used('ENABLE_FTS5')", doing: doing) == 1 else {
            throw StoreError(
                .unsupported,
                "Updating the projection \(path) failed: the system's SQLite was built without FTS5, which tables for searching need. "
                    + "Install one that has it, or leave \"search\" out of the definition.", path: path)
        }
        let needsTrigrams = definition.tables.contains { $0.search?.tokenizer == .trigram }
        guard !needsTrigrams || database.connection.sqlite.pointee.libversion_number() >= 3_034_000 else {
            throw StoreError(
                .unsupported,
                "Updating the projection \(path) failed: the tokenizer \"trigram\" needs SQLite 3.34. "
                    + "Install a newer one, or choose another tokenizer.",
                path: path)
        }
    }

    /// The most values, and about the most bytes, that are read together.
    private static let mostRead = 1_024, mostReadBytes: UInt64 = 1 << 20

    /// Writes the rows of values in batches. Several threads read the values, and this one writes.
    /// - Parameter next: adds the next values, and returns about how many bytes they have; nil at the end.
    private func put(
        _ rows: ProjectionRows, _ table: ProjectionTable, _ control: PacedControl, _ next: (ProjectionValues) throws -> Int?
    ) throws {
        let store = store
        // The host's callbacks are called on the calling thread.
        let threads = store.storage is CallbackStorage ? 1 : SharedThreads.most
        try SharedWork.run(threads: threads, control) {
            let values = ProjectionValues(store, table)
            return try next(values).map { (values, bytes: $0) }
        } make: { values, control in
            try values.read(control)
            return values
        } take: {
            try rows.put($0)
        }
    }

    /// Moves the first differences, about one batch of bytes, from `left` to `values`.
    private static func take(from left: inout ArraySlice<Store.ChangeSummary>, _ values: ProjectionValues) throws -> Int? {
        guard !left.isEmpty else { return nil }
        var count = 0, bytes: UInt64 = 0
        while let change = left.first, count < mostRead, bytes < mostReadBytes {
            try change.id.bytes.withUnsafeBytes { try values.append($0, change.entry) }
            bytes &+= change.size
            count += 1
            left.removeFirst()
        }
        return Int(clamping: bytes)
    }

    // MARK: Problems

    /// The number of problems of a page.
    public static let problemsOfPage = 1_000

    /// Returns the parts that did not fit their columns, in the order in which they were found, at most 1,000 at once.
    /// - Parameter after: the number of the last one of the page before; 0: from the first.
    public func problems(after: Int64 = 0) throws -> [Problem] {
        try gate.run("Asking a projection") {
            try explained {
                let database = try opened()
                guard try database.version(of: definition) != nil else { return [] }
                return try database.problems(after: after, limit: Projection.problemsOfPage).map {
                    func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
                    return Problem(
                        number: $0.number, table: text($0.table), id: text($0.id), pointer: text($0.pointer), reason: text($0.reason))
                }
            }
        }
    }
}
