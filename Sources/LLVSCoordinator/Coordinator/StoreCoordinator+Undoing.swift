/// Undoes and redoes the saves of this device.
extension StoreCoordinator {
    /// The saves to undo, or the undo to redo.
    public struct Undoable: Sendable {
        /// The saves of one undo, newest first; for a redo, the undo.
        public var versions: [VersionID] = []
        /// The description of the newest of them.
        public var description: String?
    }

    /// The result of an undo or a redo.
    public struct Undone: Sendable {
        /// The saves or the undo; nil if there was nothing to undo.
        public var undoable: Undoable?
        /// The values that were reverted, and those that were left.
        public var reverted = Store.Reverted()
        /// The current version before and after.
        public var move: Move
    }

    /// The name of the device in the form in which the metadata of saves has it.
    var deviceMark: [UInt8]? { options.device.map { UndoMarks.json(Array($0.utf8)) } }

    private func device() throws -> [UInt8] {
        guard let mark = deviceMark else {
            throw StoreError(
                .invalidArgument,
                "The coordinator \(options.name) has no device, so it cannot distinguish its saves from others. Open it with one.")
        }
        return mark
    }

    /// Returns what `undo` and `redo` would revert. `undo` reverts the last save of this device in the history of the current version that
    /// is not undone, together with the earlier saves of its group. The result comes from the history, so it survives restarts.
    /// - Throws: `.invalidArgument` if the coordinator has no device.
    /// - Complexity: the number of versions since that save.
    public func undoable(control: OperationControl = OperationControl()) throws -> (undo: Undoable?, redo: Undoable?) {
        let device = try device()
        return try moving("Finding what to undo") { try find(device, control) }.result
    }

    /// Reverts the last save of this device that is not undone, as `Store.revert` does, in a version of its own. Later changes by other
    /// devices remain. If nothing of the save is left to revert, nothing is stored, and the next call continues with the save before. This
    /// also holds in other processes, as long as those values do not change. If the save was merged with changes of other devices, and
    /// theirs prevail, a version without changes records the undo. The save then does not return when the other devices undo theirs.
    /// - Throws: `.invalidArgument` if the coordinator has no device, and as `Store.revert`.
    public func undo(metadata: Metadata = Metadata(), control: OperationControl = OperationControl()) throws -> Undone {
        let device = try device()
        return try revert(metadata, control, isOwn: true) { try self.find(device, control).undo }
    }

    /// Reverts a version of any device, as `Store.revert` does, and moves to the result. If the version is an undo of this device, the save
    /// that it undid is restored, and is the next to be undone.
    /// - Throws: as `Store.revert`.
    public func revert(
        _ version: VersionID, parent: Fork.Side = .first, metadata: Metadata = Metadata(), control: OperationControl = OperationControl()
    ) throws -> Undone {
        try revert(metadata, control, parent) { Undoable(versions: [version]) }
    }

    /// Reverts the last undo of this device, if it saved nothing since.
    /// - Throws: as `undo`.
    public func redo(metadata: Metadata = Metadata(), control: OperationControl = OperationControl()) throws -> Undone {
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
            // The versions to undo may be in the history of another head only, which has the same state.
            var head = try !isOwn || what.versions.allSatisfy(isBehindCurrent) ? current : base()
            var done = try undone(at: head)
            if head == current, !done.changes.isEmpty || done.merge.hasMet {
                head = try base()
                // Another head with the same state may have edits in its history that lost against the undone ones.
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
            // If the save was merged with saves of other devices, the undo is recorded even if it changes nothing now. The save then does
            // not return when the other devices undo theirs.
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
        return Undone(undoable: done.0, reverted: done.1, move: move)
    }

    // MARK: Saves with nothing left to undo

    /// The cache with the most recently reported of these saves, for the next process. If it is lost, they are reported once more.
    private var passedOverName: String { "undo-\(options.name)" }
    private static let mostKept = 4_096

    /// The saves, oldest first, each with the state by which it was judged.
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
        // Saves that another process added meanwhile are retained.
        let added = Set(versions), all = keptAsPassedOver().filter { !added.contains($0.id) } + judged
        let lines = all.suffix(Self.mostKept).map { $0.state + Array(" \($0.id)\n".utf8) }
        try? store.cachePut(passedOverName, Array(lines.joined()))
    }

    /// Returns whether nothing of a version could be undone, and its values have not changed since then.
    private func isPassedOver(_ version: UInt32, at now: UInt32, _ control: PacedControl) throws -> Bool {
        guard let judged = knownAsPassedOver()[store.versionID(version)] else { return false }
        return try judged == state(after: version, at: now, control)
    }

    /// Returns the state on which an undo of a version depends: a digest of the versions that now store the values that it changed, and the
    /// rules.
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
        return Hex.utf8(of: hash.finish())
    }

    /// Returns whether a version undoes others and changed nothing.
    private func isEmptyUndo(_ version: VersionID) throws -> Bool {
        let ordinal = try store.requireOrdinal(version)
        return try store.changeCount(of: version) == 0 && store.lock.withRead { store.dag.rows[Int(ordinal)].traits.contains(.undoes) }
    }

    /// Finds the next undo and the next redo. The caller holds `saveGate`.
    private func find(_ device: [UInt8], _ control: OperationControl) throws -> (undo: Undoable?, redo: Undoable?) {
        var undo: Undoable?, redo: Undoable?, group: [UInt8]?, isRedoKnown = false
        // Only versions in the store are recorded here: another device may have named any number of absent versions.
        var undone: Set<UInt32> = [], redone: Set<UInt32> = []
        guard current != EmptyRoot.id else { return (nil, nil) }
        let paced = control.paced(.reading, doing: "Finding what to undo in \(store.description)")
        let now = try store.requireOrdinal(current)
        func ordinal(_ id: VersionID) -> UInt32? { store.lock.withRead { store.dag.ordinal(of: id) } }
        let walk = try store.walk(HistoryQuery(from: headsLikeCurrent()), control: control)
        search: while true {
            let page = try walk.next(64, control: control)
            if page.isEmpty { break }
            for step in page {
                let found = try store.version(step.version)
                try paced.step(0, bytes: found?.metadata.entries.reduce(0) { $0 + $1.value.count } ?? 0)
                guard let version = found, version.metadata[UndoMarks.deviceKey] == device, version.predecessors.count == 1,
                    let name = ordinal(version.id)
                else { continue }
                // An undone version is skipped, and so is an undo or a redo whose id an undo names.
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
                } else {
                    // After a new save there is nothing to redo, even if nothing of that save is left to undo.
                    isRedoKnown = true
                    guard try !isPassedOver(name, at: now, paced) else { continue }
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
