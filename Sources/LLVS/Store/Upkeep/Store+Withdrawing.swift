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
        do { return try version(ordinal) } catch let error as StoreError where Store.isUnreadable(error) {
            try withdraw([Unreadable(ordinal: ordinal, error: error)])
            return nil
        }
    }

    /// The versions that `find` gives, which is asked again when some of them have left the history.
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

    /// A version of the history whose record cannot be read, and why.
    private struct Unreadable {
        var ordinal: UInt32
        var error: StoreError
    }
    private static func isUnreadable(_ error: StoreError) -> Bool { error.code == .damaged || error.code == .newerFormat }

    /// Takes versions of which a cache told out of the history, and all that build on them: they wait. So are those behind them that cannot
    /// be read either, all at once. The cache goes.
    /// - Throws: why one cannot be read of which no cache told. Nothing has changed then.
    /// - Complexity: O(versions), and reads one record for each version that builds on them.
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
            "A cache of \(description) told of version \(versionID(all[0].ordinal))\(all.count > 1 ? " and \(all.count - 1) others" : ""), "
                + "whose records are damaged. \(waiting.count) versions that build on such wait."
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
