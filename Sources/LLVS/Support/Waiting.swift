import CLLVSShims

/// What the waits of a call look at, where no parameter leads to them: waits for the lock of another process on a database, and long
/// statements of SQLite.
enum Waiting {
    /// Runs `body`; meanwhile the waits of this thread look at `control`.
    static func looking<R>(at control: PacedControl, _ body: () throws -> R) rethrows -> R {
        guard control.isActive else { return try body() }
        let before = llvs_shim_thread_waiting(Unmanaged.passUnretained(control).toOpaque())
        defer { _ = llvs_shim_thread_waiting(before) }
        return try withExtendedLifetime(control, body)
    }

    /// Called at least every 20 ms of a wait.
    /// - Throws: `.cancelled`, and what the progress callback throws.
    static func look() throws {
        guard let found = llvs_shim_thread_waiting(nil) else { return }
        defer { _ = llvs_shim_thread_waiting(found) }
        try Unmanaged<PacedControl>.fromOpaque(found).takeUnretainedValue().look()
    }

    /// The same, and calls nothing of the host's.
    /// - Throws: `.cancelled`, and what ended the work before.
    static func lookQuietly() throws {
        guard let found = llvs_shim_thread_waiting(nil) else { return }
        defer { _ = llvs_shim_thread_waiting(found) }
        try Unmanaged<PacedControl>.fromOpaque(found).takeUnretainedValue().lookQuietly()
    }

    /// Runs `body`; meanwhile the waits of this thread call nothing of the host's.
    static func quietly<R>(_ body: () throws -> R) rethrows -> R {
        guard let found = llvs_shim_thread_waiting(nil) else { return try body() }
        defer { _ = llvs_shim_thread_waiting(found) }
        return try looking(at: Unmanaged<PacedControl>.fromOpaque(found).takeUnretainedValue().quiet, body)
    }

    /// Runs `body`, which calls the host: what it calls from there waits for itself.
    static func setAside<R>(_ body: () throws -> R) rethrows -> R {
        guard let found = llvs_shim_thread_waiting(nil) else { return try body() }
        defer { _ = llvs_shim_thread_waiting(found) }
        return try body()
    }

    /// A call that was left by what never returned has nothing to look at any more.
    static func forget() { _ = llvs_shim_thread_waiting(nil) }
}
