/// Reads versions and their relations in the DAG.
extension Store {
    /// Returns a version by its id; nil if it does not exist. Reloads if the version is not known. The empty root is in every store.
    public func version(_ id: VersionID) throws -> Version? {
        guard let ordinal = try findReadable(id) else { return nil }
        return try version(ordinal)
    }

    /// Returns whether a version is in the history, so that all its ancestry is. Does not reload.
    public func contains(_ id: VersionID) throws -> Bool {
        try lock.withRead {
            try checkOpenLocked()
            return dag.ordinal(of: id) != nil
        }
    }

    package func version(_ ordinal: UInt32) throws -> Version {
        let id = versionID(ordinal), row = lock.withRead { dag.rows[Int(ordinal)] }
        func read(_ row: History.Row) throws -> Version {
            let header = try records.header(row.place)
            // A history from a cache is not trusted: compare it with the record.
            guard header.checksum == row.checksum, header.id == id else {
                throw records.damaged(row.place, "is not the one that was found before", version: id)
            }
            var version = header.version
            version.madeAt = row.made
            return version
        }
        do { return try read(row) } catch let error as StoreError where error.code == .damaged {
            var version: Version?
            try records.again(row.place, after: error) { _ in version = try read(lock.withRead { dag.rows[Int(ordinal)] }) }
            guard let version else { throw error }
            return version
        }
    }

    package func versionID(_ ordinal: UInt32) -> VersionID { lock.withRead { dag.id(ordinal) } }

    /// Returns the versions without successors, newest first. O(heads × log heads), and reads one record for each returned version.
    /// - Parameters:
    ///  - limit: the most versions to return; the newest ones.
    ///  - control: checked with stage `.listing`.
    public func heads(limit: Int = .max, control: OperationControl = OperationControl()) throws -> [Version] {
        let control = control.paced(.listing, doing: "Listing the heads of \(description)")
        try control.look()
        return try readableVersions(control) {
            // Sorted without the lock: other devices may have made any number of them.
            let found = try lock.withRead {
                try checkOpenLocked(); return Array(dag.headOrdinals)
            }
            return try Array(newestFirst(found, control.look).prefix(max(0, limit)))
        }
    }

    /// Returns the ids of the heads, newest first. O(heads × log heads); reads no records.
    public func headIDs() throws -> [VersionID] {
        try orderKeys(
            lock.withRead {
                try checkOpenLocked(); return Array(dag.headOrdinals)
            }, {}
        ).sorted(by: OrderKey.isNewer).map(\.id)
    }

    /// Returns the newest head; nil in an empty store.
    public func mostRecentHead() throws -> Version? {
        try readableVersions {
            try lock.withRead {
                try checkOpenLocked()
                return dag.headOrdinals.max { dag.isNewer($1, $0) }.map { [$0] } ?? []
            }
        }.first
    }

    /// Returns the heads that carry the branch, newest first. O(heads), and reads one record for each returned version.
    /// - Parameters:
    ///  - branch: the name of the branch.
    ///  - limit: the most versions to return; the newest ones.
    ///  - control: checked with stage `.listing`.
    public func heads(
        onBranch branch: String, limit: Int = .max, control: OperationControl = OperationControl()
    ) throws -> [Version] {
        let control = control.paced(.listing, doing: "Listing the heads of \(description)")
        try control.look()
        return try readableVersions(control) {
            let found = try lock.withRead {
                try checkOpenLocked(); return dag.headsInNoOrder(onBranch: branch)
            }
            return try Array(newestFirst(found, control.look).prefix(max(0, limit)))
        }
    }

    /// Returns the versions that have this one as a predecessor, newest first.
    /// - Parameters:
    ///  - id: a version of the history.
    ///  - control: checked with stage `.listing`.
    public func successors(of id: VersionID, control: OperationControl = OperationControl()) throws -> [Version] {
        let control = control.paced(.listing, doing: "Listing the successors of \(id) in \(description)")
        try control.look()
        let ordinal = try requireOrdinal(id)
        return try readableVersions(control) {
            try newestFirst(lock.withRead { Array(dag.successors(ordinal)) }, control.look)
        }
    }

    /// Returns all versions, newest first in topological order: each before its predecessors. `walk` returns them page by page.
    public func history() throws -> [VersionID] { try allVersionIDs().reversed() }

    /// Returns all versions, each after its predecessors. O(versions × log versions).
    /// - Parameter control: checked with stage `.listing`.
    public func allVersionIDs(control: OperationControl = OperationControl()) throws -> [VersionID] {
        let control = control.paced(.listing, doing: "Listing the versions of \(description)")
        try control.look()
        return try lock.withRead {
            try checkOpenLocked()
            try Memory.expect(dag.liveCount * (16 + 2 * MemoryLayout<OrderKey>.stride), "A list of \(dag.liveCount) versions")
            return dag.orderKeys(dag.liveOrdinals)
        }.sorted { try control.look() }.map(\.id)
    }

    /// Returns whether `a` can be reached from `b` by going back at least one step: no version is its own ancestor.
    /// - Parameters:
    ///  - a: a version of the history.
    ///  - b: another one.
    ///  - control: checked with stage `.reading`.
    public func isAncestor(_ a: VersionID, of b: VersionID, control: OperationControl = OperationControl()) throws -> Bool {
        let control = control.paced(.reading, doing: "Checking whether \(b) descends from \(a) in \(description)")
        try control.look()
        let x = try requireOrdinal(a), y = try requireOrdinal(b)
        return try walk(AncestorSearch(x, of: y), control.look)
    }

    /// Returns all best common ancestors, newest first. If one version is an ancestor of the other, it is the only one. Returns none if the
    /// two are not related. The cost grows with what is between the versions and their bases.
    /// - Parameters:
    ///  - a: a version of the history.
    ///  - b: another one.
    ///  - control: checked with stage `.reading`.
    public func mergeBases(_ a: VersionID, _ b: VersionID, control: OperationControl = OperationControl()) throws -> [VersionID] {
        let control = control.paced(.reading, doing: "Finding the common ancestors of \(a) and \(b) in \(description)")
        try control.look()
        let x = try requireOrdinal(a), y = try requireOrdinal(b)
        return try ids(walk(CommonAncestors([x], [y]), control.look))
    }

    /// Returns where the known records of a version are, whether it is in the history or pending. The caller holds no lock.
    package func recordPlaces(of id: VersionID) -> [RecordPlace] {
        lock.withRead {
            // Alternatives to a known one exist only while a scan finds records that another handle replaced.
            if let ordinal = dag.ordinalIncludingStaged(of: id) {
                return [dag.rows[Int(ordinal)].place] + pending.alternatives(to: id).map(\.place)
            }
            return ([pending.records[id]].compactMap { $0 } + pending.alternatives(to: id)).map(\.place)
        }
    }
    package func place(of ordinal: UInt32) -> RecordPlace { lock.withRead { dag.rows[Int(ordinal)].place } }
}

extension Store {
    /// The number of rows: all versions that were ever in the history, stored or not.
    package var rowCount: Int { lock.withRead { dag.rows.count } }

    /// Returns the ids of versions whose ordinals an earlier call returned.
    package func ids(_ ordinals: [UInt32]) -> [VersionID] { lock.withRead { ordinals.map(dag.id) } }
}
