/// The outcome of preparing a merge: nothing to store, or a version to store.
enum MergeOutcome {
    /// One is an ancestor of the other, or both are the same: this one is the result.
    case fastForward(UInt32)
    case version(Version, first: UInt32, second: UInt32, changes: [Value.Change])
}

/// Prepares merges: order, bases, forks, the arbiter's answer, and the canonical version that comes of it.
extension Store {
    func prepareMerge(_ a: UInt32, _ b: UInt32, arbiter: any MergeArbiter, metadata: Metadata, relation: MergeRelation) throws -> MergeOutcome {
        if let ahead = lock.withRead({ a == b || dag.isAncestor(b, of: a) ? a : dag.isAncestor(a, of: b) ? b : nil }) { return .fastForward(ahead) }
        let (first, second, bases) = lock.withRead { () -> (UInt32, UInt32, [UInt32]) in
            let aIsNewer = dag.isNewer(a, b)
            return (aIsNewer ? a : b, aIsNewer ? b : a, relation == .unrelated ? [] : dag.bestCommonAncestors([a], [b]))
        }
        if relation == .related, bases.isEmpty {
            throw StoreError(.noCommonAncestor, "Versions \(versionID(a)) and \(versionID(b)) have no common ancestor. Use an unrelated merge to join them.", versionID: versionID(b).description)
        }
        let x = try map(first), y = try map(second)
        // Replicas that settled one question differently are settled without asking again.
        let sameState = MapNode.haveSameContents(x, y)
        if sameState || (!bases.isEmpty && lock.withRead({ dag.holdMergesOnly(a, b) })) {
            return .version(mergeVersion(first, second, Metadata(), []), first: first, second: second, changes: [])
        }
        let (forks, brought) = try forks(first, x, second, y, bases)
        let merge = Merge(
            first: try version(first), second: try version(second), oursSide: a == first ? .first : .second,
            bases: try bases.map { try version($0) }, forks: forks)
        let resolved = try arbiter.resolve(merge, in: self)
        let changes = try canonicalChanges(merge, resolved, brought, first, x, second, y)
        return .version(mergeVersion(first, second, metadata, changes), first: first, second: second, changes: changes)
    }

    /// All forks in byte order of the ids, and what the second side brings although it is no fork: bytes that
    /// equal the first's, but were stored later.
    private func forks(_ first: UInt32, _ x: MapNode?, _ second: UInt32, _ y: MapNode?, _ bases: [UInt32]) throws -> ([(id: ValueID, fork: Fork)], [Value.Reference]) {
        var base = MergeBase(store: self, bases: bases)
        var forks: [(id: ValueID, fork: Fork)] = []
        var brought: [Value.Reference] = []
        func reference(_ id: ValueID, _ entry: MapEntry?) -> Value.Reference? { entry.map { Value.Reference(id: id, version: versionID($0.version)) } }

        try MapNode.forEachDifference(x, y) { key, p, q in
            let id = ValueID(unchecked: key)
            if let p, let q, try haveSameBytes(p, q, key) {
                if isStoredLater(q, p), let later = reference(id, q) { brought.append(later) }
                return
            }
            var ancestor: MapEntry?
            var disagreeing = false
            switch try base.state(key) {
            case .absent: break
            case .present(let entry): ancestor = entry
            case .conflicting(let candidates):
                let firstUnchanged = candidates.contains { isSame($0, p) }, secondUnchanged = candidates.contains { isSame($0, q) }
                if firstUnchanged != secondUnchanged { ancestor = firstUnchanged ? p : q } else { disagreeing = true }
            }
            var fork = Store.classify(p, q, ancestor, disagreeing: disagreeing)
            fork.first = reference(id, p)
            fork.second = reference(id, q)
            fork.ancestor = reference(id, ancestor)
            forks.append((id, fork))
        }

        // What both sides removed shows in neither map.
        var removed: Set<ValueID> = []
        for ancestor in bases {
            try MapNode.forEachDifference(map(ancestor), x) { key, _, now in
                guard now == nil, y?.lookup(key) == nil else { return }
                let id = ValueID(unchecked: key)
                guard removed.insert(id).inserted, case .present(let entry) = try base.state(key) else { return }
                forks.append((id, Fork(kind: .twiceRemoved, side: nil, first: nil, second: nil, ancestor: reference(id, entry))))
            }
        }
        forks.sort { $0.id < $1.id }
        return (forks, brought)
    }

    /// The table of `Fork`. `p` and `q` differ.
    private static func classify(_ p: MapEntry?, _ q: MapEntry?, _ o: MapEntry?, disagreeing: Bool) -> Fork {
        func fork(_ kind: Fork.Kind, _ side: Fork.Side? = nil) -> Fork { Fork(kind: kind, side: side, first: nil, second: nil, ancestor: nil) }
        if disagreeing {
            if p != nil, q != nil { return fork(.twiceUpdated) }
            return fork(.removedAndUpdated, p == nil ? .first : .second)
        }
        guard o != nil else {
            if p != nil, q != nil { return fork(.twiceInserted) }
            return fork(.inserted, p != nil ? .first : .second)
        }
        if isSame(q, o) { return p == nil ? fork(.removed, .first) : fork(.updated, .first) }
        if isSame(p, o) { return q == nil ? fork(.removed, .second) : fork(.updated, .second) }
        if p != nil, q != nil { return fork(.twiceUpdated) }
        return fork(.removedAndUpdated, p == nil ? .first : .second)
    }

    /// The changes of the merge version: the arbiter's, and what the second side brings; those that leave the
    /// first side as it is dropped, labels true, in byte order of the ids.
    private func canonicalChanges(
        _ merge: Merge, _ resolved: [Value.Change], _ brought: [Value.Reference], _ first: UInt32, _ x: MapNode?, _ second: UInt32, _ y: MapNode?
    ) throws -> [Value.Change] {
        var changes: [ValueID: Value.Change] = [:]
        for change in resolved {
            try change.id.bytes.withUnsafeBytes { try ValueID.check($0) }
            guard changes.updateValue(change, forKey: change.id) == nil else {
                throw StoreError(.duplicateID, "The arbiter returned two changes of \"\(change.id)\". Return one for each id.", valueID: change.id)
            }
        }
        for (id, fork) in merge.forks where changes[id] == nil {
            guard !fork.isConflicting else {
                throw StoreError(
                    .unresolvedConflict, "The arbiter left the conflict of \"\(id)\" (\(fork.kind)) unresolved. Return a change for each conflicting fork.", valueID: id)
            }
            guard fork.side == .second else { continue }
            changes[id] = fork.second.map { .preserve($0) } ?? .preserveRemoval(id)
        }
        for reference in brought where changes[reference.id] == nil { changes[reference.id] = .preserve(reference) }

        var out: [Value.Change] = []
        for (id, change) in changes {
            if let change = try id.bytes.withUnsafeBytes({ try canonical(change, id, $0, first, x?.lookup($0), second, y?.lookup($0)) }) { out.append(change) }
        }
        return out.sorted { $0.id < $1.id }
    }

    private func canonical(
        _ change: Value.Change, _ id: ValueID, _ key: UnsafeRawBufferPointer, _ first: UInt32, _ p: MapEntry?, _ second: UInt32, _ q: MapEntry?
    ) throws -> Value.Change? {
        switch change {
        case .insert(_, let data), .update(_, let data):
            guard data.count <= Limits.valueSize else {
                throw StoreError(.tooLarge, "The arbiter returned \(data.count) bytes for \"\(id)\"; at most 1 GiB is allowed.", valueID: id)
            }
            guard let p else { return .insert(id, data: data) }
            if p.size == MapEntry.unknownSize || Int(p.size) == data.count {
                let place = place(of: p.version)
                if try withBody(place, p, id: key, stored: versionID(p.version), { now in data.withUnsafeBytes { Bytes.equal(now, $0) } }) { return nil }
            }
            return .update(id, data: data)
        case .remove, .preserveRemoval:
            return p == nil ? nil : q == nil ? .preserveRemoval(id) : .remove(id)
        case .preserve(let reference):
            // What prevails on a side is there, and in the ancestry.
            if let p, versionID(p.version) == reference.version { return nil }
            if let q, versionID(q.version) == reference.version { return .preserve(reference) }
            let ordinal = try checkReference(key, reference.version)
            let inAncestry = lock.withRead {
                [first, second].contains { $0 == ordinal || dag.isAncestor(ordinal, of: $0) }
            }
            if inAncestry { return .preserve(reference) }
            let data = try value(reference)?.data ?? []
            return try canonical(.update(id, data: data), id, key, first, p, second, q)
        }
    }

    /// The version of a merge: its id and timestamp follow from what it says.
    private func mergeVersion(_ first: UInt32, _ second: UInt32, _ metadata: Metadata, _ changes: [Value.Change]) -> Version {
        let (predecessors, timestamp) = lock.withRead {
            ([dag.id(first), dag.id(second)], Clock.after(dag.rows[Int(first)].timestamp))
        }
        var hasher = IdentityHasher("llvs merge 1")
        hasher.add(predecessors: predecessors)
        hasher.add(metadata)
        hasher.add(changeCount: changes.count)
        var size: UInt64 = 0
        changes.withBorrowed { borrowed in
            for change in borrowed {
                hasher.add(change.kind, change.id, size: change.data.count, digest: SHA256.digest(change.data), stored: change.storedVersion)
                size += UInt64(change.data.count)
            }
        }
        return Version(id: VersionID(uuid8From: hasher.finish()), predecessors: predecessors, timestamp: timestamp, valueDataSize: size, metadata: metadata)
    }
}
