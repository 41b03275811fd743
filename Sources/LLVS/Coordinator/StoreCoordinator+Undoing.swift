/// Undoing what this device saved, and doing it again.
extension StoreCoordinator {
    /// What there is to undo or to redo.
    public struct Undoable: Sendable {
        /// The saves that count as one, newest first; of a redo the undo.
        public var versions: [VersionID] = []
        /// As the newest of them was described.
        public var description: String?
    }

    /// What an undo or a redo did.
    public struct Undone: Sendable {
        /// What it was about; nil: there was nothing to undo.
        public var what: Undoable?
        /// What was undone in which values, and what was left.
        public var reverted = Store.Reverted()
        /// Where the current version was before, and is after it.
        public var move: Move
    }

    /// As it stands in the metadata of saves.
    var deviceMark: [UInt8]? { options.device.map { UndoMarks.json(Array($0.utf8)) } }

    private func device() throws -> [UInt8] {
        guard let mark = deviceMark else {
            throw StoreError(
                .invalidArgument,
                "The coordinator \(options.name) has no device, so it cannot tell its saves from those of others. Open it with one.")
        }
        return mark
    }

    /// What `undo` would take back: the last save of this device among what led to the current version that was not undone yet, with those
    /// before it that are of its group; and what `redo` would. Read from the history, so it survives restarts.
    /// - Throws: `.invalidArgument` when the coordinator has no device.
    /// - Complexity: the versions since that save.
    public func undoable(_ control: OperationControl = OperationControl()) throws -> (undo: Undoable?, redo: Undoable?) {
        let device = try device()
        return try moving("Looking for what to undo") { try find(device, control) }.result
    }

    /// Takes back the last save of this device that was not undone yet, as `Store.revert` does, in a version of its own. What others
    /// changed since stays. When nothing of it is left to take back, nothing is stored, and the next call goes on with the save before,
    /// also of another process, as long as nobody changes those values. If it was merged with what others changed, and theirs stands, a
    /// version without changes notes the undo: so it does not come back when the others undo theirs.
    /// - Throws: `.invalidArgument` when the coordinator has no device, and as `Store.revert`.
    public func undo(metadata: Metadata = Metadata(), _ control: OperationControl = OperationControl()) throws -> Undone {
        let device = try device()
        return try revert(metadata, control, isOwn: true) { try self.find(device, control).undo }
    }

    /// Takes back what a version changed, whoever saved it, as `Store.revert` does, and moves to the result. Of an undo of this device:
    /// what that had undone is there again, and is the next to be undone.
    /// - Throws: as `Store.revert`.
    public func revert(
        _ version: VersionID, parent: Fork.Side = .first, metadata: Metadata = Metadata(), _ control: OperationControl = OperationControl()
    ) throws -> Undone {
        try revert(metadata, control, parent) { Undoable(versions: [version]) }
    }

    /// Takes back the last undo of this device, when it saved nothing since.
    /// - Throws: as `undo`.
    public func redo(metadata: Metadata = Metadata(), _ control: OperationControl = OperationControl()) throws -> Undone {
        let device = try device()
        return try revert(metadata, control, isOwn: true, isRedo: true) { try self.find(device, control).redo }
    }

    private func revert(
        _ own: Metadata, _ control: OperationControl, _ parent: Fork.Side = .first, isOwn: Bool = false, isRedo: Bool = false,
        _ which: () throws -> Undoable?
    ) throws -> Undone {
        let (done, move) = try moving(isRedo ? "Redoing" : "Undoing") { () throws -> (Undoable?, Store.Reverted) in
            guard let what = try which() else { return (nil, Store.Reverted()) }
            let paced = control.paced(.reading, doing: "Undoing what was saved in \(store.description)")
            func undone(at head: VersionID) throws -> (merge: SwappedMerge, changes: [Value.Change]) {
                let at = try store.requireOrdinal(head, toBuildOn: true)
                let ordinals = try what.versions.map { try store.requireOrdinal($0) }
                var merge = try SwappedMerge(onto: at, in: store, paced)
                let without = try UndoneEdits.undoing(ordinals, at: at, in: store, paced)
                for ordinal in ordinals { try merge.undo(ordinal, to: store.predecessor(of: ordinal, parent), without) }
                if let without { try merge.undoRest(without) }
                return (merge, try merge.changes())
            }
            func isBehindCurrent(_ version: VersionID) throws -> Bool {
                let (ordinal, now) = (try store.requireOrdinal(version), try store.requireOrdinal(current))
                return try ordinal == now || store.walk(AncestorSearch(ordinal, of: now), paced.look)
            }
            // What is to be undone may be behind another head alone that has the same state.
            var head = try !isOwn || what.versions.allSatisfy(isBehindCurrent) ? current : base()
            var done = try undone(at: head)
            if head == current, !done.changes.isEmpty || done.merge.hasMet {
                head = try base()
                // Another head that has the same state may have edits in its history that lost against what is undone.
                if head != current { done = try undone(at: head) }
            }
            var all = lock.withLock { metadata }
            for entry in own.entries { all[entry.key] = entry.value }
            if let device = deviceMark { all[UndoMarks.deviceKey] = device }
            if let description = what.description { all[UndoMarks.descriptionKey] = UndoMarks.json(Array(description.utf8)) }
            if isRedo, let undo = what.versions.first {
                all[UndoMarks.redoKey] = UndoMarks.json(Array(undo.description.utf8))
            } else {
                all[UndoMarks.undoKey] = UndoMarks.json(what.versions)
            }
            let reverted = try store.make(done.changes, of: done.merge, on: head, all, paced)
            // If it was merged with others' saves, the undo is noted although it changes nothing by now: so it does not come back once they
            // undo theirs.
            let isNoted = try reverted.version == nil && (done.merge.hasMet || what.versions.contains(where: isEmptyUndo))
            let noted = try isNoted ? store.makeVersion(basedOn: head, changes: [], metadata: all) : nil
            if let version = reverted.version ?? noted {
                differences = KnownDifferences()
                self.move(to: version.id)
            } else if isOwn {
                try passOver(what.versions, paced)
            }
            return (what, reverted)
        }
        return Undone(what: done.0, reverted: done.1, move: move)
    }

    // MARK: Saves of which nothing is left

    /// The cache in which they are kept for the next process, those told of last. Without it they are told about once more, and nothing
    /// else.
    private var passedOverName: String { "undo-\(options.name)" }
    private static let mostKept = 4_096

    /// Oldest first, each with what it was judged by.
    private func keptAsPassedOver() -> [(id: VersionID, state: [UInt8])] {
        let text = (try? store.cacheGet(passedOverName)) ?? []
        return text.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 1)
            guard parts.count == 2, let id = parts[1].withUnsafeBytes({ VersionID(validating: $0) }) else { return nil }
            return (id, Array(parts[0]))
        }
    }

    private func knownAsPassedOver() -> [VersionID: [UInt8]] {
        if let passedOver { return passedOver }
        let known = Dictionary(keptAsPassedOver().map { ($0.id, $0.state) }) { $1 }
        passedOver = known
        return known
    }

    private func passOver(_ versions: [VersionID], _ control: PacedControl) throws {
        let now = try store.requireOrdinal(current)
        let judged = try versions.map { (id: $0, state: try state(after: store.requireOrdinal($0), at: now, control)) }
        passedOver = knownAsPassedOver().merging(judged.map { ($0.id, $0.state) }) { $1 }
        // What another process added meanwhile stays.
        let added = Set(versions), all = keptAsPassedOver().filter { !added.contains($0.id) } + judged
        let lines = all.suffix(Self.mostKept).map { $0.state + Array(" \($0.id)\n".utf8) }
        try? store.cachePut(passedOverName, Array(lines.joined()))
    }

    /// Whether nothing could be undone of a version, and nobody changed since what it is about.
    private func isPassedOver(_ version: UInt32, at now: UInt32, _ control: PacedControl) throws -> Bool {
        guard let judged = knownAsPassedOver()[store.versionID(version)] else { return false }
        return try judged == state(after: version, at: now, control)
    }

    /// What an undo of a version goes by: a digest of which versions stored the values that it changed, and the rules, as they are now.
    private func state(after version: UInt32, at now: UInt32, _ control: PacedControl) throws -> [UInt8] {
        var hash = SHA256()
        func add(_ key: UnsafeRawBufferPointer) throws {
            try control.step()
            let stored = try store.maps.entry(key, at: now).map { "\(store.versionID($0.version))" } ?? ""
            hash.update(Array("\(key.count) \(stored) ".utf8))
            hash.update(key)
        }
        try MergeSchema.idBytes.withUnsafeBytes { try add($0) }
        if let before = try store.predecessor(of: version, .first) {
            try store.forEachDifference(before, version, control) { try add($0.key) }
        } else {
            try MapNode.forEachDifference(nil, store.maps.map(version, control)) { key, _, _ in try add(key) }
        }
        return InterchangeEncoder.hex(hash.finish())
    }

    /// Whether a version undoes others and changed nothing by that.
    private func isEmptyUndo(_ version: VersionID) throws -> Bool {
        let ordinal = try store.requireOrdinal(version)
        return try store.changeCount(of: version) == 0 && store.lock.withRead { store.dag.rows[Int(ordinal)].traits.contains(.undoes) }
    }

    /// The caller holds `saveGate`.
    private func find(_ device: [UInt8], _ control: OperationControl) throws -> (undo: Undoable?, redo: Undoable?) {
        var undo: Undoable?, redo: Undoable?, group: [UInt8]?, isRedoKnown = false
        // Of what is here: others may have named any number of versions that nobody has.
        var undone: Set<UInt32> = [], redone: Set<UInt32> = []
        guard current != EmptyRoot.id else { return (nil, nil) }
        let paced = control.paced(.reading, doing: "Looking for what to undo in \(store.description)")
        let now = try store.requireOrdinal(current)
        func ordinal(_ id: VersionID) -> UInt32? { store.lock.withRead { store.dag.ordinal(of: id) } }
        let walk = try store.walk(HistoryQuery(from: headsLikeCurrent()), control)
        search: while true {
            let page = try walk.next(64, control)
            if page.isEmpty { break }
            for step in page {
                let found = try store.version(step.version)
                try paced.step(0, bytes: found?.metadata.entries.reduce(0) { $0 + $1.value.count } ?? 0)
                guard let version = found, version.metadata[UndoMarks.deviceKey] == device, version.predecessors.count == 1,
                    let name = ordinal(version.id)
                else { continue }
                // Of an undo or a redo that was undone itself, by its id, nothing is left either.
                if undone.contains(name) { continue }
                func description() throws -> String? { try UndoMarks.string(version.metadata[UndoMarks.descriptionKey], paced) }
                var isRedo = false
                try UndoMarks.forEachID(version.metadata[UndoMarks.redoKey], paced) {
                    isRedo = true
                    if let taken = ordinal($0) { redone.insert(taken) }
                }
                if isRedo { continue }
                if let taken = version.metadata[UndoMarks.undoKey] {
                    if redone.contains(name) { continue }
                    try UndoMarks.forEachID(taken, paced) { if let taken = ordinal($0) { undone.insert(taken) } }
                    if !isRedoKnown, try !isPassedOver(name, at: now, paced) {
                        redo = Undoable(versions: [version.id], description: try description())
                        isRedoKnown = true
                    }
                } else if try !isPassedOver(name, at: now, paced) {
                    // Whoever saved anew has nothing to redo.
                    isRedoKnown = true
                    let own = version.metadata[UndoMarks.groupKey]
                    if undo == nil {
                        guard try store.changeCount(of: version.id) > 0 else { continue }
                        undo = Undoable(versions: [version.id], description: try description())
                        group = own
                        if own == nil { break search }
                    } else {
                        if own != group { break search }
                        undo?.versions.append(version.id)
                    }
                }
            }
        }
        return (undo, redo)
    }
}
