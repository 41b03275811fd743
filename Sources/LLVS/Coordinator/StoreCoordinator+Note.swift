/// The note in which the current version survives.
extension StoreCoordinator {
    /// Writes down where the coordinator is.
    /// - Parameter isAppended: the storage has just appended the version.
    func persist(_ id: VersionID, isAppended: Bool = false) throws {
        if !isReadOnly { try id.withASCII { try note.write($0, isBehindAppend: isAppended) } }
    }

    /// Makes a stored version the current one. The caller holds `saveGate`.
    /// A note that cannot be written is only a warning in the log: the version itself is saved.
    func move(to id: VersionID, isAppended: Bool = false) {
        guard current != id else { return }
        do { try persist(id, isAppended: isAppended) } catch {
            let why = (error as? StoreError)?.message ?? "\(error)"
            Log.write(.warning, "The current version of the coordinator \(options.name), \(id), could not be noted: \(why)")
        }
        lock.withLock { current = id }
    }

    /// Closes the note. After that, another coordinator may be opened under this name.
    func releaseNote() {
        saveGate.runAlone {
            guard !isReleased else { return }
            isReleased = true
            // The file is closed, and so unlocked, with the note.
            note = ClosedNote()
            store.releaseNote(ofCoordinator: options.name)
        }
    }
}
