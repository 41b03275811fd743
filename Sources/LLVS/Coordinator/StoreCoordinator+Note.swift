/// The note in which the current version survives.
extension StoreCoordinator {
    /// Writes down where the coordinator is.
    func persist(_ id: VersionID) throws {
        if !store.isReadOnly { try id.withASCII { try note.write($0) } }
    }

    /// Moves to a version that is stored, by who is through `saveGate`. That it could not be noted must not look as if it had not been saved.
    func move(to id: VersionID) {
        guard current != id else { return }
        do { try persist(id) } catch {
            let why = (error as? StoreError)?.message ?? "\(error)"
            Log.write(.warning, "The current version of the coordinator \(options.name), \(id), could not be noted: \(why)")
        }
        lock.withLock { current = id }
    }

    /// Another may be opened under the name then.
    func releaseNote() {
        let isFirst = lock.withLock { () -> Bool in
            defer { isReleased = true }
            return !isReleased
        }
        guard isFirst else { return }
        // The file is closed, and so unlocked, with the note.
        note = ClosedNote()
        store.releaseNote(ofCoordinator: options.name)
    }
}
