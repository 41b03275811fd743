/// Connections for reading, so that readers do not wait for the writer and mostly not for each other.
final class SQLiteReaders: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    private let path: String
    private let mode: SQLiteConnection.Mode
    private let patience: SQLiteConnection.Patience
    private let lock = Lock(.descriptors)
    private let returned = Condition()
    private var idle: [SQLiteConnection] = []
    /// The number of running calls of `use`.
    private var uses = 0
    private var closed = false
    /// The most concurrent calls of `use`, and the most idle connections.
    static let limit = 6

    init(_ path: String, _ mode: SQLiteConnection.Mode, _ patience: SQLiteConnection.Patience, first: SQLiteConnection? = nil) {
        self.path = path
        self.mode = mode
        self.patience = patience
        if let first { idle = [first] }
    }

    /// Runs `body` with a connection. Waits while the limit is reached.
    /// - Parameter body: must neither use the readers itself nor wait for a thread that does, so it must not call the store. The host,
    ///   which might do so, is not called meanwhile.
    func use<R>(_ body: (SQLiteConnection) throws -> R) throws -> R {
        try lock.withLock {
            while !closed, uses >= SQLiteReaders.limit { returned.wait(lock) }
            try checkOpen()
            uses += 1
        }
        defer {
            lock.withLock {
                uses -= 1
                returned.broadcast()
            }
        }
        return try Waiting.quietly { try withConnection(body) }
    }

    /// Runs a scan, which calls the store. Never waits for other readers, since they may wait for what the caller holds.
    func useForScan<R>(_ body: (SQLiteConnection) throws -> R) throws -> R { try withConnection(body) }

    private func withConnection<R>(_ body: (SQLiteConnection) throws -> R) throws -> R {
        let found: SQLiteConnection? = try lock.withLock {
            try checkOpen()
            return idle.popLast()
        }
        var connection = found
        defer { give(connection) }
        if let connection { return try body(connection) }
        let made = try SQLiteConnection(path, mode, patience)
        connection = made
        return try body(made)
    }

    private func give(_ connection: SQLiteConnection?) {
        if SQLiteLibrary.isForked { connection?.leak(); return }
        let isKept = lock.withLock {
            guard let connection, !closed, idle.count < SQLiteReaders.limit else { return false }
            idle.append(connection)
            return true
        }
        guard !isKept else { return }
        connection?.close()
    }

    private func checkOpen() throws { if closed { throw StorageRange.closed("the store in the database \(path)") } }

    /// Waits for running calls of `use`. Does not wait for scans, since the host may close the store within one: scans close their
    /// connections themselves.
    func close() {
        lock.withLock {
            closed = true
            returned.broadcast()
            while uses > 0 { returned.wait(lock) }
            for connection in idle { connection.close() }
            idle = []
        }
    }

    func leak() {
        guard pthread_mutex_trylock(lock.raw) == 0 else { return }
        closed = true
        for connection in idle { connection.leak() }
        lock.unlock()
    }
}
