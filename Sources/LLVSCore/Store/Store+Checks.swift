/// Checks that calls make before they begin.
extension Store {
    /// Throws `.busy` within a callback of the store's own storage, which runs with the store's locks held.
    package func checkReentry() throws {
        if isCallingBack {
            throw StoreError(
                .busy,
                "A callback of \(description) cannot call the store that uses it: it would wait for itself. "
                    + "Do it after the callback has returned."
            )
        }
    }

    /// Throws `.closed` for a closed store. For calls that would not notice it themselves.
    package func requireOpen() throws { _ = try contains(EmptyRoot.id) }

    /// Returns a version that must exist. Throws `.unknownVersion`.
    package func knownVersion(_ id: VersionID) throws -> Version { try version(requireOrdinal(id)) }
}

extension Store.Options {
    /// - Throws: `.invalidArgument` for options that no store can be opened with.
    package func check() throws {
        guard memoryBudget > 0 else {
            throw StoreError(.invalidArgument, "The memory budget must be above 0 bytes; 64 MiB is the default.")
        }
        for (name, seconds) in [("compaction_grace", compactionGrace), ("busy_timeout", busyTimeout)] {
            guard !(seconds >= 0 && seconds.isFinite) else { continue }
            throw StoreError(
                .invalidArgument, "The \(name) of a store is \(seconds) s; give a finite number of seconds that is not negative.")
        }
        if let mode = fileMode, mode > 0o777 || mode & 0o600 != 0o600 {
            throw StoreError(
                .invalidArgument,
                "The file mode is 0\(String(mode, radix: 8)); give permissions (at most 0777) that let the owner read and write (0600).")
        }
    }
}
