/// Which versions a walk through history gives: those that satisfy all that is set.
public struct HistoryQuery: Sendable {
    /// These versions and their ancestors; empty: all versions.
    public var from: [VersionID]
    /// Neither these versions nor their ancestors: what somebody who has them does not know.
    public var hiding: [VersionID]
    /// Those that carry this branch name.
    public var branch: String?
    /// Those that recorded a change of this value.
    public var value: ValueID?
    /// Those that recorded a change of a value whose id begins with these bytes; empty: any, or none.
    public var prefix: [UInt8]
    /// Everything from the heads on, unless it is said otherwise.
    public init(from: [VersionID] = [], hiding: [VersionID] = [], branch: String? = nil, value: ValueID? = nil, prefix: [UInt8] = []) {
        self.from = from; self.hiding = hiding; self.branch = branch; self.value = value; self.prefix = prefix
    }
}

/// A walk through the history as it was when the walk began, in topological order, newest first: each version before its
/// predecessors. Goes on as far as it is asked to. Used by one thread at a time.
public final class HistoryWalk {
    /// A version of the walk.
    public struct Step: Hashable, Sendable {
        /// Which version.
        public var version: VersionID
        /// What it recorded of the value that was asked for; nil when none was.
        public var kind: Value.Change.Kind?
    }

    private let store: Store
    private let branch: BranchName?
    private let value: ValueID?
    private let prefix: [UInt8]
    /// The way there is still to go: by generations, or a list made beforehand.
    private var queue = WalkQueue()
    private var listed: ArraySlice<UInt32> = []
    /// Of a walk by generations that looks for one value: those that may have changed it and were not met yet, and below which
    /// generation none of them is.
    private var candidates: Set<UInt32>?
    private var floor: UInt32 = 0
    /// Met, and not looked at yet.
    private var met: ArraySlice<UInt32> = []
    /// Found by a call that was stopped before it had as many as were asked for.
    private var ready: [Step] = []
    /// Whether records are looked at.
    private var isAsking: Bool { value != nil || !prefix.isEmpty }
    /// Versions walked over, for the progress.
    private var walked = 0

    /// Versions walked over with the history's lock held.
    private static let mostRows = 8_192
    /// Records that are looked at between two looks at the control, unless those took long.
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

    /// The next versions, at most `limit`; none at the end.
    /// - Throws: `.damaged` and what the storage throws, `.cancelled`, and what the progress callback throws. Nothing is passed over then:
    ///   the next call goes on where this one came to.
    /// - Complexity: a walk over all, or over those of one value, costs what it returns. With `from` or `hiding` one of a value walks over
    ///   the versions between; one of a branch walks over versions of others; one of a prefix looks into the record of each.
    public func next(_ limit: Int, _ control: OperationControl = OperationControl()) throws -> [Step] {
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

    /// What the walk gives of a version that its record has to be asked about; nil when nothing.
    private func look(at ordinal: UInt32) throws -> Step? {
        var kind: Value.Change.Kind?
        if let value {
            guard let recorded = try store.recordedKind(of: value, in: ordinal) else { return nil }
            kind = recorded
        }
        if !prefix.isEmpty, try !store.hasRecordedChange(ofPrefix: prefix, in: ordinal) { return nil }
        return Step(version: store.versionID(ordinal), kind: kind)
    }

    /// Walks on until some versions are met, or enough were walked over. False at the end.
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
    /// - Throws: `.unknownVersion`, `.cancelled`, and what the storage throws.
    /// - Complexity: O(heads). For one value O(versions that changed it), and the first time in a process, and after many versions were
    ///   added, also O(versions).
    public func walk(_ query: HistoryQuery = HistoryQuery(), _ control: OperationControl = OperationControl()) throws -> HistoryWalk {
        try checkOpen()
        return try HistoryWalk(self, query, control)
    }

    /// Where a walk begins. The empty root is behind none while it is virtual.
    fileprivate func walkStarts(_ ids: [VersionID]) throws -> [UInt32] {
        try ids.compactMap { id in
            if id == EmptyRoot.id { return try findOrdinal(id) }
            return try requireOrdinal(id)
        }
    }

    /// Those that stored or removed a value, and others of which nobody knows: large ones, and such whose ids have one hash.
    func versionsThatMayHaveChanged(_ id: ValueID, _ control: OperationControl = OperationControl()) throws -> [UInt32] {
        let index = try maps.keyHistoryIndex(control), hash = id.bytes.withUnsafeBytes(History.keyHash)
        return lock.withRead {
            let newer = (index.end..<max(index.end, UInt32(truncatingIfNeeded: dag.rows.count))).filter { dag.mayHaveChanged($0, hash) }
            return (index.all(hash) + newer).filter { dag.isLive(Int($0)) }
        }
    }

    /// What a version recorded of a value; nil when nothing. O(log changes), one read mostly.
    func recordedKind(of id: ValueID, in ordinal: UInt32) throws -> Value.Change.Kind? {
        try id.bytes.withUnsafeBytes { try records.findChange(place(of: ordinal), $0) }?.kind
    }

    /// Whether a version recorded a change of a value whose id begins so. O(log changes) of a large one, one read mostly.
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
