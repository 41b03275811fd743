/// The note that stores the current version.
extension StoreCoordinator {
    /// Writes the current version to the note.
    /// - Parameter isAppended: whether the storage has just appended the version.
    func persist(_ id: VersionID, isAppended: Bool = false) throws {
        if !isReadOnly { try id.withASCII { try note.write($0, isBehindAppend: isAppended) } }
    }

    /// Makes a stored version the current one. If the note cannot be written, this only logs a warning, since the version itself is
    /// saved. Precondition: the caller holds `saveGate`.
    func move(to id: VersionID, isAppended: Bool = false) {
        guard current != id else { return }
        do { try persist(id, isAppended: isAppended) } catch {
            let why = (error as? StoreError)?.message ?? "\(error)"
            Log.write(.warning, "The current version of the coordinator \(options.name), \(id), could not be stored: \(why)")
        }
        lock.withLock { current = id }
    }

    /// Closes the note. After that, another coordinator may be opened under this name.
    func releaseNote() {
        saveGate.runAlone {
            guard !isReleased else { return }
            isReleased = true
            // Releasing the note closes its file, which unlocks it.
            note = ClosedNote()
            store.releaseNote(ofCoordinator: options.name)
        }
    }
}
