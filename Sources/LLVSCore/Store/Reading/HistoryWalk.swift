/// The versions that a walk through the history returns: those that match all conditions.
public struct HistoryQuery: Sendable {
    /// These versions and their ancestors; empty for all versions.
    public var from: [VersionID]
    /// Excludes these versions and their ancestors: returns what a device with them lacks.
    public var hiding: [VersionID]
    /// Only versions with this branch name.
    public var branch: String?
    /// Only versions that recorded a change of this value.
    public var value: ValueID?
    /// Only versions that recorded a change of a value whose id has this prefix; empty for no condition.
    public var prefix: [UInt8]
    /// Creates a query, by default for everything.
    public init(from: [VersionID] = [], hiding: [VersionID] = [], branch: String? = nil, value: ValueID? = nil, prefix: [UInt8] = []) {
        self.from = from; self.hiding = hiding; self.branch = branch; self.value = value; self.prefix = prefix
    }
}

/// A walk through the history as of its beginning, in topological order, newest first: each version before its predecessors. Continues as
/// far as the caller asks. Used by one thread at a time.
public final class HistoryWalk {
    /// A version of the walk.
    public struct Step: Hashable, Sendable {
        /// The version.
        public var version: VersionID
        /// The change that it recorded of the queried value; nil if none was queried.
        public var kind: Value.Change.Kind?
    }

    private let store: Store
    private let branch: BranchName?
    private let value: ValueID?
    private let prefix: [UInt8]
    /// The versions that are still to be walked: a queue by generations, or a list made beforehand.
    private var queue = WalkQueue()
    private var listed: ArraySlice<UInt32> = []
    /// For a walk by generations for one value: the remaining versions that may have changed it, and the least generation of these.
    private var candidates: Set<UInt32>?
    private var floor: UInt32 = 0
    /// Versions that were reached and not examined yet.
    private var met: ArraySlice<UInt32> = []
    /// Steps found by a call that was interrupted before it had enough.
    private var ready: [Step] = []
    /// Whether records are read.
    private var isAsking: Bool { value != nil || !prefix.isEmpty }
    /// The number of versions walked, for the progress.
    private var walked = 0

    /// Versions that are walked while the history's lock is held once.
    private static let mostRows = 8_192
    /// The most records that are read between two checks of the control, unless that takes longer than the pause.
    private static let mostRecords = 256, longestPause = 0.05

    fileprivate init(_ store: Store, _ query: HistoryQuery, _ control: OperationControl) throws {
        self.store = store
        branch = query.branch.map { BranchName($0) }
        value = query.value
        prefix = query.prefix
        try control.check(.reading, 0, of: 0, doing: HistoryWalk.doing(store))
        let from = try store.walkStarts(query.from), hiding = try store.walkStarts(query.hiding)
        let wanted = try query.value.map { try store.versionsThatMayHaveChanged($0, control) }
        if let wanted, query.from.isEmpty, hiding.isEmpty {
            let keys = store.lock.withRead { store.dag.orderKeys(wanted) }
            let paced = control.paced(.reading, doing: HistoryWalk.doing(store))
            listed = try keys.sorted(looking: paced.look).reversed().map(\.ordinal)[...]
            return
        }
        store.lock.withRead {
            let dag = store.dag
            if let wanted {
                candidates = Set(wanted)
                floor = wanted.reduce(.max) { min($0, dag.rows[Int($1)].generation) }
            }
            for ordinal in query.from.isEmpty ? Array(dag.headOrdinals) : from { queue.push(ordinal, isHidden: false, in: dag) }
            for ordinal in hiding { queue.push(ordinal, isHidden: true, in: dag) }
        }
    }

    /// Returns the next versions, at most `limit`; none at the end.
    /// - Throws: `.damaged` and other errors of the storage, `.cancelled`, and errors of the progress callback. No version is skipped
    ///   then: the next call continues where this one stopped.
    /// - Complexity: a walk over all versions, or over those of one value, takes time in proportion to the number of results. With `from`
    ///   or `hiding`, a walk for a value also visits the versions between. A walk for a branch also visits other versions. A walk for a
    ///   prefix reads the record of each.
    @available(*, noasync, message: "It may wait for the disk. Import LLVSAsync, and use Store.versions(matching:).")
    public func next(_ limit: Int, control: OperationControl = OperationControl()) throws -> [Step] {
        var looked = 0, lastCheck = Clock.steady()
        func check() throws {
            try control.check(.reading, walked, of: 0, doing: HistoryWalk.doing(store))
            (looked, lastCheck) = (0, Clock.steady())
        }
        try check()
        while ready.count < limit {
            guard let ordinal = met.first else {
                guard try meet(limit - ready.count) else { break }
                try check()
                continue
            }
            try Memory.check()
            if let step = try look(at: ordinal) {
                try Memory.grow(&ready, "A page of history")
                ready.append(step)
            }
            met.removeFirst()
            guard isAsking else { continue }
            looked += 1
            if looked == HistoryWalk.mostRecords || Clock.steady() - lastCheck > HistoryWalk.longestPause { try check() }
        }
        try Memory.expect(min(limit, ready.count) * MemoryLayout<Step>.stride, "A page of history")
        let page = Array(ready.prefix(limit))
        ready.removeFirst(page.count)
        return page
    }

    /// Returns the step for a version whose record must be read; nil if it does not match.
    private func look(at ordinal: UInt32) throws -> Step? {
        var kind: Value.Change.Kind?
        if let value {
            guard let recorded = try store.recordedKind(of: value, in: ordinal) else { return nil }
            kind = recorded
        }
        if !prefix.isEmpty, try !store.hasRecordedChange(ofPrefix: prefix, in: ordinal) { return nil }
        return Step(version: store.versionID(ordinal), kind: kind)
    }

    /// Walks until versions are reached, or enough were visited. Returns false at the end.
    private func meet(_ most: Int) throws -> Bool {
        try store.lock.withRead {
            try store.checkOpenLocked()
            let dag = store.dag
            var found: [UInt32] = [], rows = 0
            let enough = isAsking ? max(most, HistoryWalk.mostRecords) : most
            while found.count < enough, rows < HistoryWalk.mostRows {
                guard let (ordinal, isHidden) = nextOnTheWay(dag) else { break }
                rows += 1
                if isHidden { continue }
                if candidates != nil, candidates?.remove(ordinal) == nil { continue }
                if let branch, dag.branch(ordinal) != branch { continue }
                found.append(ordinal)
            }
            walked += rows
            met = found[...]
            return rows > 0
        }
    }

    private func nextOnTheWay(_ dag: History) -> (UInt32, isHidden: Bool)? {
        if let ordinal = listed.popFirst() { return (ordinal, false) }
        if queue.isDone || candidates?.isEmpty == true { return nil }
        guard let next = queue.next(in: dag) else { return nil }
        return candidates != nil && dag.rows[Int(next.ordinal)].generation < floor ? nil : (next.ordinal, next.isHidden)
    }

    private static func doing(_ store: Store) -> String { "Walking through the history of \(store.description)" }
}

extension Store {
    /// Begins a walk through the history.
    /// - Throws: `.unknownVersion`, `.cancelled`, and the errors of the storage.
    /// - Complexity: O(heads). For one value O(versions that changed it), plus O(versions) the first time in a process and after many
    ///   versions were added.
    @available(*, noasync, message: "It may wait for the disk. Import LLVSAsync, and use versions(matching:).")
    public func walk(_ query: HistoryQuery = HistoryQuery(), control: OperationControl = OperationControl()) throws -> HistoryWalk {
        try checkOpen()
        return try HistoryWalk(self, query, control)
    }

    /// Returns where a walk begins. The virtual empty root has no descendants.
    fileprivate func walkStarts(_ ids: [VersionID]) throws -> [UInt32] {
        try ids.compactMap { id in
            if id == EmptyRoot.id { return try findOrdinal(id) }
            return try requireOrdinal(id)
        }
    }

    /// Returns the versions that stored or removed a value, and others that may have: large ones, and those with an id of the same hash.
    package func versionsThatMayHaveChanged(_ id: ValueID, _ control: OperationControl = OperationControl()) throws -> [UInt32] {
        let index = try maps.keyHistoryIndex(control), hash = id.bytes.withUnsafeBytes(History.keyHash)
        return lock.withRead {
            let newer = (index.end..<max(index.end, UInt32(truncatingIfNeeded: dag.rows.count))).filter { dag.mayHaveChanged($0, hash) }
            return (index.all(hash) + newer).filter { dag.isLive(Int($0)) }
        }
    }

    /// Returns the change that a version recorded for a value; nil if there is none. O(log changes), mostly one read.
    package func recordedKind(of id: ValueID, in ordinal: UInt32) throws -> Value.Change.Kind? {
        try id.bytes.withUnsafeBytes { try records.findChange(place(of: ordinal), $0) }?.kind
    }

    /// Returns whether a version recorded a change of a value whose id has a prefix. O(log changes) for a large version, mostly one read.
    fileprivate func hasRecordedChange(ofPrefix prefix: [UInt8], in ordinal: UInt32) throws -> Bool {
        let (place, count) = lock.withRead { (dag.rows[Int(ordinal)].place, Int(dag.rows[Int(ordinal)].changeCount)) }
        guard count > 0 else { return false }
        if count <= MapPolicy.longestKeptList {
            var found = false
            try maps.forEachRecordedChange(ordinal) { found = found || $0.key.starts(with: prefix) }
            return found
        }
        return try prefix.withUnsafeBytes { try records.hasChange(place, ofPrefix: $0) }
    }
}
