import CLLVSShims

/// Passes the control of a call to waits that no parameter reaches: waits for another process's lock on a database, and long statements
/// of SQLite.
package enum Waiting {
    /// Runs `body`. Meanwhile, waits of this thread check `control`.
    package static func looking<R>(at control: PacedControl, _ body: () throws -> R) rethrows -> R {
        guard control.isActive else { return try body() }
        let before = llvs_shim_thread_waiting(Unmanaged.passUnretained(control).toOpaque())
        defer { _ = llvs_shim_thread_waiting(before) }
        return try withExtendedLifetime(control, body)
    }

    /// Checks the control. Called at least every 20 ms of a wait.
    /// - Throws: `.cancelled`, and the errors of the progress callback.
    static func look() throws {
        guard let found = llvs_shim_thread_waiting(nil) else { return }
        defer { _ = llvs_shim_thread_waiting(found) }
        try Unmanaged<PacedControl>.fromOpaque(found).takeUnretainedValue().look()
    }

    /// Checks as `look` does, without calling the host.
    /// - Throws: `.cancelled`, and the error that ended the work before.
    static func lookQuietly() throws {
        guard let found = llvs_shim_thread_waiting(nil) else { return }
        defer { _ = llvs_shim_thread_waiting(found) }
        try Unmanaged<PacedControl>.fromOpaque(found).takeUnretainedValue().lookQuietly()
    }

    /// Runs `body`. Meanwhile, waits of this thread do not call the host.
    static func quietly<R>(_ body: () throws -> R) rethrows -> R {
        guard let found = llvs_shim_thread_waiting(nil) else { return try body() }
        defer { _ = llvs_shim_thread_waiting(found) }
        return try looking(at: Unmanaged<PacedControl>.fromOpaque(found).takeUnretainedValue().quiet, body)
    }

    /// Runs `body`, which calls the host. Calls that the host makes meanwhile have their own controls.
    static func setAside<R>(_ body: () throws -> R) rethrows -> R {
        guard let found = llvs_shim_thread_waiting(nil) else { return try body() }
        defer { _ = llvs_shim_thread_waiting(found) }
        return try body()
    }

    /// Forgets the control of a call that never returned.
    static func forget() { _ = llvs_shim_thread_waiting(nil) }
}
