/// Adds versions that were made elsewhere.
extension Store {
    /// A version as an exchange received it.
    public struct ReceivedVersion: Sendable {
        /// The version as its file describes it. The size of its data is counted again.
        public var version: Version
        /// The changes of the version, in any order, without duplicate ids.
        public var changes: [Value.Change]
        /// Whether it matches its id, if that was checked already.
        package var vouching: Vouching?
        /// The changes whose bytes are in a file of the storage already, or that came without bytes, by index. They have no data.
        package var written: [Int: WrittenValue] = [:]
        /// Creates an unchecked version with its changes.
        public init(version: Version, changes: [Value.Change]) { self.version = version; self.changes = changes }

        /// Returns the same with the bytes of all values in memory.
        func inMemory(from storage: any Storage) throws -> ReceivedVersion {
            var whole = self
            whole.written = written.filter { $0.value.isHollow }
            for (i, value) in written where i >= 0 && i < changes.count && !value.isHollow {
                try Memory.expect(value.size, "A value that is to be repaired")
                var data = [UInt8](repeating: 0, count: value.size)
                try data.withUnsafeMutableBytes { try storage.readBlob(value.blob, at: 0, into: $0) }
                let id = changes[i].id
                whole.changes[i] = changes[i].kind == .insert ? .insert(id, data: data) : .update(id, data: data)
            }
            return whole
        }
    }

    /// The outcome of adding a received version.
    public enum Addition: Sendable {
        /// The version was added, and is as durable as the store's versions; or it is in the store, and pending.
        case added
        /// The same version was present.
        case alreadyPresent
        /// The version was present and damaged, and was repaired.
        case repaired
        /// Nothing of it was stored, for the given reason.
        case problem(StoreError)
    }

    /// Adds versions as one batch, predecessors first, whatever their order. For a version that cannot be added, the result has the
    /// problem, which only its descendants share. A version that does not match its id (`.contentMismatch`) does not prevent others from
    /// being added, even with the same id. A present version with known damage is repaired.
    /// - Parameters:
    ///   - received: the versions with their changes. An id may occur several times.
    ///   - isVerifying: whether to read all present versions for damage.
    ///   - control: checked with stage `.adding`.
    /// - Throws: only errors of the storage and of the control. Then nothing of the batch is stored.
    public func add(_ received: [ReceivedVersion], isVerifying: Bool = false, control: OperationControl = OperationControl()) throws
        -> [Addition]
    {
        try checkWritable("Adding versions")
        let waiting = control.quiet.paced(.adding, doing: "Adding versions to \(self.description)")
        let control = control.paced(.adding, of: received.count, doing: "Adding versions to \(self.description)")
        let count = received.count
        var received = received, results = [Addition?](repeating: nil, count: count), prepared: [Prepared?] = []
        for i in received.indices {
            try control.step(0)
            do { prepared.append(try prepare(received[i])) } catch let error as StoreError where Store.isProblem(error.code) {
                results[i] = .problem(error)
                prepared.append(nil)
            }
        }
        if try needsEmptyRoot(received, prepared) {
            received.append(ReceivedVersion(version: EmptyRoot.version, changes: []))
            prepared.append(Prepared(sorted: [], vouching: .content))
            results.append(nil)
        }
        let order = predecessorsFirst(received, prepared)
        var drafts: [(index: Int, ordinal: UInt32, draft: Draft)] = []
        var batch: [VersionID: Int] = [:], ancestry = KnownAncestry()
        let hasNewOrders = try orders.read(received) { prepared[$0] != nil }
        // Values that are stored without bytes, since an order that counts here names them. They outlive the records.
        let ordered = try orders.erased(), lacking = try lackingBytes()
        var stripped: [WrittenValue] = []
        do {
            for i in order {
                guard var ready = prepared[i] else { continue }
                try control.step()
                do {
                    ready = try asMade(received[i].version, ready, beside: (drafts, batch)) { try control.step(0) }
                    if let indexes = ordered[received[i].version.id] { ready.strip(indexes, received[i].version, &stripped) }
                    if lacking.contains(received[i].version.id), try RecordRepair(store: self).fillWhereHollow(received[i], ready.sorted) {
                        results[i] = .repaired; continue
                    }
                    if try Waiting.looking(
                        at: waiting,
                        { try RecordRepair(store: self).repairWhereDamaged(received[i], ready.sorted, isVerifying: isVerifying) })
                    {
                        results[i] = .repaired; continue
                    }
                    guard var draft = try draft(for: received[i].version, ready, beside: (drafts, batch), &ancestry, control) else {
                        results[i] = .alreadyPresent; continue
                    }
                    batch[draft.version.id] = drafts.count
                    drafts.append(
                        (
                            i,
                            try lock.withWrite {
                                try dag.preallocate(); return appendHidden(&draft)
                            }, draft
                        ))
                } catch let error as StoreError where Store.isProblem(error.code) {
                    results[i] = .problem(error)
                }
            }
            try expectRoom(drafts.map { ($0.draft, received[$0.index].written) })
            try withExtendedLifetime((received, stripped)) {
                try Waiting.looking(at: waiting) { try store(drafts.map { ($0.ordinal, $0.draft) }) }
            }
        } catch {
            lock.withWrite { for draft in drafts { dag.drop(draft.ordinal) } }
            throw error
        }
        for draft in drafts { results[draft.index] = .added }
        noteLacking(drafts.lazy.filter { !received[$0.index].written.isEmpty }.map { received[$0.index] })
        noteClocksAhead(drafts.lazy.map(\.draft))
        if !drafts.isEmpty { RetentionNotes(self).noteReceived { drafts.map(\.draft.version) } }
        let ids = drafts.map(\.draft.version.id)
        if !ids.isEmpty {
            tellOfNew(ids)
        }
        orders.followNew(hasNewOrders)
        return results.prefix(count).map { $0 ?? .problem(StoreError(.internal, "A received version was neither added nor refused.")) }
    }

    /// Refuses to receive versions that would leave no space for local saves.
    /// - Throws: `.noSpace`.
    private func expectRoom(_ drafts: [(draft: Draft, written: [Int: WrittenValue])]) throws {
        guard !drafts.isEmpty, let room = storage.room() else { return }
        // Files of the storage use their space already.
        let needed = drafts.reduce(UInt64(0)) { sum, item in
            let inFiles = item.written.values.reduce(UInt64(0)) { $0 &+ UInt64(clamping: $1.size) }
            let all = item.draft.version.valueDataSize
            let (next, overflow) = sum.addingReportingOverflow(all > inFiles ? all - inFiles : 0)
            return overflow ? .max : next
        }
        guard room.free < room.reserve || room.free - room.reserve < needed else { return }
        throw StoreError(
            .noSpace,
            "Receiving \(drafts.count) versions with \(needed) bytes into \(description) failed: \(room.free) bytes are free, of which "
                + "\(room.reserve) are reserved for local saves. Make room (or raise the quota), and exchange again; nothing stored "
                + "before is affected.")
    }

    private static func isProblem(_ code: StoreError.Code) -> Bool {
        switch code {
        case .missingPredecessor, .versionMismatch, .invalidVersionID, .invalidValueID, .invalidUTF8, .tooLarge, .duplicateID,
            .invalidReference, .invalidMetadata, .invalidArgument, .damaged, .forgotten, .erased, .contentMismatch:
            true
        default: false
        }
    }

    /// A valid received version that matches its id.
    private struct Prepared {
        /// Borrowed from the version, in order of the ids.
        var sorted: [RecordChange]
        var vouching: Vouching
        /// The digests of the values that carry theirs in the record.
        var digests: [UInt8] = []

        /// Removes the bytes of values.
        /// - Parameters:
        ///   - indexes: of the changes.
        ///   - values: gets the values without bytes, which must outlive the changes.
        mutating func strip(_ indexes: [Int], _ version: Version, _ values: inout [WrittenValue]) {
            var isChanged = false
            for i in indexes
            where sorted.indices.contains(i) && sorted[i].hasData && sorted[i].hollow == nil
                && !sorted[i].id.starts(with: EraseOrder.reserved)
            {
                let value = WrittenValue(hollow: sorted[i].size, digest: sorted[i].digest)
                values.append(value)
                sorted[i].written = Unmanaged.passUnretained(value)
                sorted[i].data = UnsafeRawBufferPointer(start: nil, count: 0)
                isChanged = true
            }
            guard isChanged else { return }
            digests = []
            _ = version.vouching(RecordChanges(sorted), digests: &digests)
        }
    }

    private func prepare(_ received: ReceivedVersion) throws -> Prepared {
        var prepared = Prepared(sorted: try sortedChanges(received), vouching: .free)
        let version = received.version
        if version.id.hasContentForm, version.id.text != nil, environment.checksIDs { throw version.isNotWhatItsIDSays }
        prepared.vouching = received.vouching ?? version.vouching(RecordChanges(prepared.sorted), digests: &prepared.digests)
        if prepared.vouching == .none, environment.checksIDs, !version.mayBeRelayed(prepared.sorted) { throw version.isNotWhatItsIDSays }
        return prepared
    }

    /// Restores the original form of a merge that another implementation relayed. The other implementation records what differs from either
    /// predecessor, and adds a `preserve` or `preserveRemoval` of what prevails at the first predecessor in any case. The id is that of the
    /// merge without these changes, so they are dropped.
    /// - Parameter look: called now and then. It may throw to end the work.
    /// - Throws: `.contentMismatch` if the id does not match without them either, `.missingPredecessor`, and the errors of reading.
    private func asMade(
        _ version: Version, _ prepared: Prepared, beside others: Batch, looking look: () throws -> Void
    ) throws -> Prepared {
        guard prepared.vouching == .none, environment.checksIDs, version.mayBeRelayed(prepared.sorted),
            let first = version.predecessors.first
        else { return prepared }
        var made = Prepared(sorted: [], vouching: .none)
        for change in prepared.sorted {
            let present = try prevailing(change.id, at: first, for: version.id, beside: others, look)
            switch change.kind {
            case .remove, .preserveRemoval: if present == nil { continue }
            case .preserve: if present != nil, present == change.storedVersion { continue }
            case .insert, .update: break
            }
            made.sorted.append(change)
        }
        if made.sorted.count < prepared.sorted.count {
            made.vouching = version.vouching(RecordChanges(made.sorted), digests: &made.digests)
        }
        if made.vouching == .none { throw version.isNotWhatItsIDSays }
        return made
    }

    /// Returns which version stored the value that prevails for an id, at a present version or at one of the batch; nil if there is none.
    /// - Parameter look: called for each version of the batch that is checked.
    /// - Complexity: O(versions of the batch) lookups.
    private func prevailing(
        _ key: UnsafeRawBufferPointer, at id: VersionID, for version: VersionID, beside others: Batch, _ look: () throws -> Void
    ) throws -> VersionID? {
        var at = id
        while let draft = others.index[at].map({ others.drafts[$0].draft }) {
            try look()
            if let change = draft.changes.change(of: key) {
                switch change.kind {
                case .insert, .update: return at
                case .preserve: return change.storedVersion
                case .remove, .preserveRemoval: return nil
                }
            }
            guard let next = draft.version.predecessors.first else { return nil }
            at = next
        }
        let ordinal = try knownOrdinal(at, for: version, beside: others)
        return try maps.prevailing(at: ordinal).lookup(key).map { versionID($0.version) }
    }

    /// Records whether a version matches its id, so that its bytes need not be retained for that.
    /// - Throws: `.contentMismatch`, and the errors in its changes.
    package func look(at received: inout ReceivedVersion) throws {
        guard received.version.id.hasContentForm else { return }
        let looked = received
        let vouching = try withExtendedLifetime(looked) { try prepare(looked).vouching }
        // Another implementation sends only single files.
        if vouching == .none, environment.checksIDs { throw received.version.isNotWhatItsIDSays }
        received.vouching = vouching
    }

    /// Returns whether a version is valid and matches its id. Precondition: its predecessors are present.
    package func isGenuine(_ received: ReceivedVersion) throws -> Bool {
        do {
            return try withExtendedLifetime(received) {
                try settled(asMade(received.version, prepare(received), beside: ([], [:])) {}.vouching, received.version) != .none
            }
        } catch let error as StoreError where Store.isProblem(error.code) { return false }
    }

    /// Returns whether a version's predecessor is the empty root, which is neither present nor among the given versions. Its content is
    /// known, so no version waits for it.
    private func needsEmptyRoot(_ received: [ReceivedVersion], _ prepared: [Prepared?]) throws -> Bool {
        guard try !contains(EmptyRoot.id) else { return false }
        var isNamed = false
        for (item, ready) in zip(received, prepared) where ready != nil {
            if item.version.id == EmptyRoot.id { return false }
            isNamed = isNamed || item.version.predecessors.contains(EmptyRoot.id)
        }
        return isNamed
    }

    /// Returns the indexes of the valid versions, each after its predecessors in the batch.
    private func predecessorsFirst(_ received: [ReceivedVersion], _ prepared: [Prepared?]) -> [Int] {
        // The first index of each id, and for each index the next one with the same id.
        var index: [VersionID: Int] = [:], next = [Int?](repeating: nil, count: received.count)
        for i in received.indices.reversed() where prepared[i] != nil {
            next[i] = index[received[i].version.id]
            index[received[i].version.id] = i
        }
        var order: [Int] = [], stack: [Int] = []
        var state = [UInt8](repeating: 0, count: received.count) // 0 not seen, 1 on the stack, 2 done
        for start in received.indices where state[start] == 0 && prepared[start] != nil {
            stack.append(start)
            while let i = stack.last {
                if state[i] == 0 {
                    state[i] = 1
                    var needs = received[i].version.predecessors
                    for change in received[i].changes { if case .preserve(let reference) = change { needs.append(reference.version) } }
                    for need in needs {
                        var same = index[need]
                        while let j = same {
                            if state[j] == 0 { stack.append(j) }
                            same = next[j]
                        }
                    }
                } else {
                    stack.removeLast()
                    if state[i] == 1 { state[i] = 2; order.append(i) }
                }
            }
        }
        return order
    }

    /// Returns the changes of a received version in order of their ids, if they are valid. Borrowed from it.
    package func sortedChanges(_ received: ReceivedVersion) throws -> [RecordChange] {
        let version = received.version
        guard version.timestamp.isFinite, version.predecessors.count <= 2, Set(version.predecessors).count == version.predecessors.count,
            !version.predecessors.contains(version.id)
        else {
            throw StoreError(
                .invalidArgument,
                "Version \(version.id) has a timestamp or predecessors that no version can have. Nothing of it was stored; "
                    + "its maker must make it again.",
                versionID: version.id.description)
        }
        guard received.changes.count <= Limits.changesPerVersion else {
            throw StoreError(
                .tooLarge, "Version \(version.id) has \(received.changes.count) changes; at most \(Limits.changesPerVersion) are allowed.",
                versionID: version.id.description)
        }
        try Memory.expect(
            2 * received.changes.count * MemoryLayout<RecordChange>.stride, "Putting \(received.changes.count) changes in order")
        let sorted = received.changes.withBorrowed { borrowed in
            var list = Array(borrowed)
            for (i, value) in received.written where i >= 0 && i < list.count { list[i].written = Unmanaged.passUnretained(value) }
            list.sort { Bytes.compare($0.id, $1.id) < 0 }
            return list
        }
        for i in sorted.indices {
            try ValueID.check(sorted[i].id)
            let id = ValueID(unchecked: sorted[i].id)
            if sorted[i].size > Limits.valueSize {
                throw StoreError(
                    .tooLarge,
                    "Version \(version.id) has a value of \(sorted[i].size) bytes under \"\(id)\"; at most 1 GiB is allowed.",
                    valueID: id, versionID: version.id.description)
            }
            if i > 0, Bytes.equal(sorted[i - 1].id, sorted[i].id) {
                throw StoreError(
                    .duplicateID,
                    "Version \(version.id) names \"\(id)\" twice. Nothing of it was stored; its maker must make it again.", valueID: id,
                    versionID: version.id.description)
            }
        }
        return sorted
    }

    /// Returns the draft of a received version; nil if it is present.
    private func draft(
        for version: Version, _ prepared: Prepared, beside others: Batch, _ ancestry: inout KnownAncestry, _ control: PacedControl
    ) throws -> Draft? {
        let sorted = prepared.sorted
        if let other = others.index[version.id].map({ others.drafts[$0].draft }) {
            guard identityDigest(other.version, other.changes) == identityDigest(version, sorted) else {
                throw StoreError(
                    .versionMismatch,
                    "Version \(version.id) arrived twice at once, and the two differ. One was stored; remove the other at its origin.",
                    versionID: version.id.description)
            }
            return nil
        }
        if try existingVersion(version, sorted, comparingTimestamp: true) != nil { return nil }
        try checkUnconfirmed(version, sorted)
        let ordinals = try version.predecessors.map { try knownOrdinal($0, for: version.id, beside: others) }
        if prepared.vouching == .oldMerge, let first = ordinals.first,
            version.timestamp.bitPattern != Clock.after(lock.withRead { dag.rows[Int(first)].timestamp }).bitPattern
        {
            throw version.isNotWhatItsIDSays
        }
        for change in sorted where change.kind == .preserve {
            guard let stored = change.storedVersion else { continue }
            let ordinal = try knownOrdinal(stored, for: version.id, beside: others)
            try control.step(0)
            let inAncestry = try ancestry.contains(ordinal, behind: ordinals, in: self, control.look)
            guard inAncestry else {
                throw StoreError(
                    .invalidReference,
                    "Version \(version.id) preserves bytes of version \(stored), which is not among its ancestors. "
                        + "Nothing of it was stored; its maker must make it again.",
                    valueID: ValueID(unchecked: change.id), versionID: version.id.description)
            }
            try checkStored(change.id, ordinal, stored, for: version.id, beside: others)
        }
        var recorded = version
        recorded.valueDataSize = sorted.reduce(UInt64(0)) { $0 + UInt64($1.size) }
        var draft = Draft(
            version: recorded, first: ordinals.first ?? History.none, second: ordinals.count > 1 ? ordinals[1] : History.none,
            changes: sorted,
            traits: sorted.contains { $0.kind == .preserve } ? .preserves : [])
        draft.digests = prepared.digests
        return draft
    }

    /// The drafts of a batch so far, and their indexes by id.
    private typealias Batch = (drafts: [(index: Int, ordinal: UInt32, draft: Draft)], index: [VersionID: Int])

    private func knownOrdinal(_ id: VersionID, for version: VersionID, beside others: Batch) throws -> UInt32 {
        if let ordinal = lock.withRead({ dag.ordinal(of: id) }) ?? others.index[id].map({ others.drafts[$0].ordinal }) { return ordinal }
        throw StoreError(
            .missingPredecessor, "Version \(version) builds on version \(id), which is not in the store. Add that first, or both at once.",
            versionID: id.description)
    }

    /// Checks that a preserve names bytes that its version stored, in the store or in the same batch.
    private func checkStored(
        _ id: UnsafeRawBufferPointer, _ ordinal: UInt32, _ stored: VersionID, for version: VersionID, beside others: Batch
    ) throws {
        let kind: Value.Change.Kind?
        if let other = others.index[stored].map({ others.drafts[$0] }), other.ordinal == ordinal {
            kind = other.draft.changes.change(of: id)?.kind
        } else {
            kind = try records.findChange(place(of: ordinal), id)?.kind
        }
        guard kind == .insert || kind == .update else {
            throw StoreError(
                .invalidReference,
                "Version \(version) preserves \"\(ValueID(unchecked: id))\" of version \(stored), which stored no such value. "
                    + "Nothing of it was stored; its maker must make it again.",
                valueID: ValueID(unchecked: id), versionID: version.description)
        }
    }
}
