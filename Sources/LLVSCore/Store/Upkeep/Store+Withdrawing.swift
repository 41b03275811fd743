/// Withdraws versions whose records are damaged. A history from the caches names versions without reading their records. If a record turns
/// out to be damaged, the history becomes what the records alone would result in: the version leaves it, and its descendants wait. This
/// affects calls that list versions or open a coordinator. A call for the version by its id gets the error: the cache still proves that a
/// version has this id, so that a retrieve accepts no other one.
extension Store {
    /// The same as `version`, but returns nil for a version from a cache whose record is damaged.
    package func readableVersion(_ id: VersionID) throws -> Version? {
        guard let ordinal = try findReadable(id) else { return nil }
        return try readableVersion(ordinal)
    }

    /// Returns a version of the history; nil if it came from a cache and its record turned out to be damaged. Then it is no longer in the
    /// history.
    func readableVersion(_ ordinal: UInt32) throws -> Version? {
        do { return try version(ordinal) } catch let error as StoreError where Store.isUnreadable(error) {
            try withdraw([Unreadable(ordinal: ordinal, error: error)])
            return nil
        }
    }

    /// Returns the versions that `find` returns. If some of them left the history, calls it again.
    func readableVersions(_ control: PacedControl = .none, _ find: () throws -> [UInt32]) throws -> [Version] {
        while true {
            var found: [Version] = [], unreadable: [Unreadable] = []
            for ordinal in try find() {
                try control.step()
                try Memory.check()
                do { found.append(try version(ordinal)) } catch let error as StoreError where Store.isUnreadable(error) {
                    unreadable.append(Unreadable(ordinal: ordinal, error: error))
                }
            }
            if unreadable.isEmpty { return found }
            try withdraw(unreadable)
        }
    }

    /// A version of the history whose record cannot be read, and the error.
    private struct Unreadable {
        var ordinal: UInt32
        var error: StoreError
    }
    private static func isUnreadable(_ error: StoreError) -> Bool { error.code == .damaged || error.code == .newerFormat }

    /// Withdraws versions that came from a cache, and all of their descendants, which wait then. Unreadable ancestors are withdrawn at
    /// the same time. The cache is deleted.
    /// - Throws: the error of an unreadable version that did not come from a cache. Then nothing has changed.
    /// - Complexity: O(versions), and reads one record for each descendant.
    private func withdraw(_ first: [Unreadable]) throws {
        let cached = lock.withRead { caches.rows }
        if let other = first.first(where: { Int($0.ordinal) >= cached }) { throw other.error }
        var all = first, seen = Set(first.map(\.ordinal)), next = 0
        while next < all.count {
            for predecessor in lock.withRead({ dag.predecessors(all[next].ordinal) }) where seen.insert(predecessor).inserted {
                do { _ = try version(predecessor) } catch let error as StoreError where Store.isUnreadable(error) {
                    all.append(Unreadable(ordinal: predecessor, error: error))
                }
            }
            next += 1
        }
        let gone = lock.withWrite { () -> [UInt32] in
            caches.areWrong = true
            maps.persisted = nil
            maps.keyHistory = nil
            validSchemas.forget()
            return dag.withdraw(all.map(\.ordinal))
        }
        // Another thread was faster.
        guard !gone.isEmpty else { return }
        if !storage.isReadOnly { try? storage.cacheDelete(Store.historyName) }
        let damaged = Set(all.map(\.ordinal)), waiting = gone.filter { !damaged.contains($0) }
        Log.write(
            .warning,
            "A cache of \(description) held version \(versionID(all[0].ordinal))\(all.count > 1 ? " and \(all.count - 1) others" : ""), "
                + "whose records are damaged. \(waiting.count) descendants of such versions wait."
        )
        for version in all { noteDamage(self.place(of: version.ordinal), version.error.message, version: versionID(version.ordinal)) }
        for ordinal in waiting {
            let place = self.place(of: ordinal)
            do {
                _ = try admit([PendingVersions.Record(place: place, header: records.header(place))])
            } catch let error as StoreError where error.code == .damaged || error.code == .newerFormat {
                noteDamage(place, error.message, version: versionID(ordinal))
            }
        }
    }
}
