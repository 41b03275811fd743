/// A history from the caches names versions without a look at their records. Where a record turns out damaged, the history becomes what
/// the records alone would have made it, for who lists versions or opens a coordinator: that version is not in it, and those that build on
/// it wait. Who asks for the version by its id gets the error: what the cache tells of it keeps a retrieve from taking another for it.
extension Store {
    /// As `version`, for who goes on without a version whose record is damaged and of which a cache told: nil.
    package func readableVersion(_ id: VersionID) throws -> Version? {
        guard let ordinal = try findReadable(id) else { return nil }
        return try readableVersion(ordinal)
    }

    /// A version of the history; nil when its record turned out damaged, and a cache had told of it: then it is not in the
    /// history any more.
    func readableVersion(_ ordinal: UInt32) throws -> Version? {
        do { return try version(ordinal) } catch let error as StoreError where error.code == .damaged || error.code == .newerFormat {
            guard try withdraw(ordinal, error) else { throw error }
            return nil
        }
    }

    /// The versions that `find` gives, which is asked again when one of them has left the history.
    func readableVersions(_ find: () throws -> [UInt32]) throws -> [Version] {
        while true {
            var found: [Version] = [], isWhole = true
            for ordinal in try find() where isWhole {
                if let version = try readableVersion(ordinal) { found.append(version) } else { isWhole = false }
            }
            if isWhole { return found }
        }
    }

    /// Takes a version of which a cache told out of the history, and all that build on it: they wait. The cache goes.
    /// - Parameter error: why its record cannot be read.
    /// - Returns: false when no cache had told of it: nothing has changed then.
    /// - Complexity: O(versions), and reads one record for each version that builds on it.
    private func withdraw(_ ordinal: UInt32, _ error: StoreError) throws -> Bool {
        let (id, place) = lock.withRead { (dag.id(ordinal), dag.rows[Int(ordinal)].place) }
        guard lock.withRead({ Int(ordinal) < cachedRows }) else { return false }
        let gone = lock.withWrite { () -> [UInt32] in
            guard dag.isLive(Int(ordinal)) else { return [] }
            cachesAreWrong = true
            maps.persisted = nil
            maps.keyHistory = nil
            return dag.withdraw(ordinal)
        }
        // Another thread was faster.
        guard !gone.isEmpty else { return true }
        if !storage.isReadOnly { try? storage.cacheDelete(Store.historyName) }
        let waiting = gone.count - 1
        Log.write(
            .warning, "A cache of \(description) told of version \(id), whose record is damaged. \(waiting) versions that build on it wait."
        )
        noteDamage(place, error.message, version: id)
        for ordinal in gone.dropFirst() {
            let place = self.place(of: ordinal)
            do {
                _ = try admit([PendingVersions.Record(place: place, header: records.header(place))])
            } catch let error as StoreError where error.code == .damaged || error.code == .newerFormat {
                noteDamage(place, error.message, version: versionID(ordinal))
            }
        }
        return true
    }
}
