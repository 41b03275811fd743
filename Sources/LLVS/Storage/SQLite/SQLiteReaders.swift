/// A few connections for reading, so that readers wait neither for the writer nor, mostly, for each other.
final class SQLiteReaders: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let path: String
    private let mode: SQLiteConnection.Mode
    private let patience: SQLiteConnection.Patience
    private let lock = Lock(.descriptors)
    private let returned = Condition()
    private var idle: [SQLiteConnection] = []
    private var count = 0
    private var closed = false
    /// Connections at most. A scan and a verification may hold one each for long.
    private static let limit = 6

    init(_ path: String, _ mode: SQLiteConnection.Mode, _ patience: SQLiteConnection.Patience, first: SQLiteConnection? = nil) {
        self.path = path
        self.mode = mode
        self.patience = patience
        if let first { idle = [first]; count = 1 }
    }

    func use<R>(_ body: (SQLiteConnection) throws -> R) throws -> R {
        let connection = try take()
        defer { give(connection) }
        return try body(connection)
    }

    private func take() throws -> SQLiteConnection {
        lock.lock()
        while !closed, idle.isEmpty, count >= SQLiteReaders.limit { returned.wait(lock) }
        if closed { lock.unlock(); throw StorageRange.closed("the store in the database \(path)") }
        if let connection = idle.popLast() { lock.unlock(); return connection }
        count += 1
        lock.unlock()
        do {
            return try SQLiteConnection(path, mode, patience)
        } catch {
            give(nil)
            throw error
        }
    }

    private func give(_ connection: SQLiteConnection?) {
        lock.withLock {
            if let connection { idle.append(connection) } else { count -= 1 }
            returned.broadcast()
        }
    }

    /// Waits for those who read.
    func close() {
        lock.withLock {
            closed = true
            returned.broadcast()
            while idle.count < count { returned.wait(lock) }
            for connection in idle { connection.close() }
            idle = []
            count = 0
        }
    }

    func leak() {
        guard pthread_mutex_trylock(lock.raw) == 0 else { return }
        closed = true
        for connection in idle { connection.leak() }
        lock.unlock()
    }
}
