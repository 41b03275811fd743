/// Computes the values of a state as if saves that devices undid had not been made.
///
/// An undo names the versions that it reverts (`UndoMarks`). The value without them is recomputed from the history, beginning at the first
/// of them. An undone save changes nothing, and neither does an undo or a redo itself. Any other save makes the same change as before.
/// Merges are repeated by the rules. The result therefore does not depend on the order in which saves were undone, or on the devices that
/// undid them. If one of two devices undoes an edit that both made, the result is what the other device left. Used by one thread.
package final class UndoneEdits {
    /// A value at a version, with and without the undone saves.
    struct Made {
        /// The value without the undone saves.
        var value: SideValue?
        /// The value that prevails at the version.
        var actual: SideValue?
        var isActual: Bool { SideValue.isSameReference(value, actual) }
    }

    /// The result for one id: its value without the undone saves.
    struct Outcome {
        var value: SideValue?
        /// Whether the value was changed on several lines that were merged. If so, the undone version alone does not determine the result.
        var isMet = false
        /// The conflict records of the last of those merges.
        var records = ConflictRecords()
        /// Whether members remain that an undone save created for a later form.
        var keepsMembers = false
    }

    /// A version to recompute, since it may have changed one of the ids.
    struct Step {
        enum Kind {
            case save, undone, undo
            case merge(with: UInt32)
        }
        let version: UInt32
        /// Nil for a root.
        let first: UInt32?
        let kind: Kind
        /// Whether the ids that the version changed are unknown.
        let isUntold: Bool
    }

    let store: Store
    let control: PacedControl
    let heads: [UInt32]
    /// Cached results of `targets(of:)`: the versions that an undo or a redo names. Empty for a version that counts as a save.
    var named: [UInt32: [UInt32]] = [:]
    /// The number of undos and redos in `named`.
    var namedCount = 0
    /// Cached results of `mayMatter`.
    var mattering: [UInt32: Bool] = [:]
    /// The versions to recompute, each after its predecessors.
    var versions: [UInt32] = [], covered: Set<UInt32> = []
    var steps: [Step] = []
    /// For versions without a step: the nearest earlier version with the same values of the ids.
    var alike: [UInt32: UInt32] = [:]
    /// The positions of the steps by version, and by the hash of an id that the version may have changed.
    var positions: [UInt32: Int] = [:], touching: [UInt32: [Int]] = [:]
    /// Which steps are recomputed for an id, besides those in `touching`.
    var candidates = Candidates()
    struct Candidates {
        /// For every id; and of the others those for ids with forms.
        var always: [Int] = [], forForms: [Int] = []
        /// Merges, by the hash of an id that their second side changed.
        var merging: [UInt32: [Int]] = [:]
    }
    /// For each step: the step of its first predecessor, or -1; and the earliest step of its line. The steps of a line each have the one
    /// before as their first predecessor. From any step, the way back to the earliest step crosses O(log n) lines.
    var parents: [Int] = [], lines: [Int] = []
    /// For the id that is being recomputed, by line: the steps that may have other values of the id than their first predecessors.
    var marks: [Int: [Int]] = [:]
    var hasMerges = false
    /// The work so far, in units of about 50 ns, and the most of it.
    var work = 0
    let workLimit: Int
    /// For merges: their best common ancestors, and whether one side has an undo that the other side did not know.
    var known: [UInt32: Sides] = [:]
    struct Sides {
        var bases: [UInt32], areApart: Bool
        /// The hashes of the ids that the second side changed since the bases; nil if unknown, or if lines were merged into it.
        var changed: Set<UInt32>?
        /// Whether the merge leaves all ids alone that the second side did not change. Ids with forms may be exceptions.
        var isSimple: Bool { !areApart && bases.count == 1 && changed != nil }
    }
    /// The versions at which recomputing begins, and the versions to undo now.
    var seeds: Set<UInt32> = [], acting: [UInt32] = []
    /// The versions that count as undone.
    var undone: Set<UInt32> = []
    /// The ids to recompute, in byte order.
    var ids: [ValueID] = []
    var hashes: Set<UInt32> = []
    var isAbout: Set<ValueID> = []

    /// The most work for one undo or merge, beyond a multiple of the versions: docs/merging-internals.md, "What is undone".
    package static let workLimit = 32_000_000
    static let workOfVersion = 64

    private init(_ heads: [UInt32], in store: Store, _ control: PacedControl, _ workLimit: Int) {
        (self.heads, self.store, self.control, self.workLimit) = (heads, store, control, workLimit)
    }

    /// Thrown if more work would be needed than is done.
    struct TooMuchWork: Error {}
    func spend(_ more: Int) throws {
        work += more
        if work > workLimit + UndoneEdits.workOfVersion * versions.count { throw TooMuchWork() }
    }
    /// Returns a prepared instance; nil if it would need too much work, which is logged.
    func prepared() throws -> UndoneEdits? {
        do {
            try find()
            while true {
                do { try findCandidates(); return self } catch is MoreIsUndone { try find() }
            }
        } catch is TooMuchWork {
            Log.write(
                .warning,
                "An undo or a merge in \(store.description) did not consider which saves were undone before: for \(ids.count) values the "
                    + "history has too many merges and undos. An undo then reverts its own saves alone. A merge treats undos like other "
                    + "saves.")
            return nil
        }
    }

    /// Prepares an undo at a head.
    /// - Parameters:
    ///   - acting: the versions to undo: saves, or undos to redo.
    ///   - head: the version on which to undo them.
    ///   - limit: the most work; tests have a smaller limit.
    /// - Returns: nil if one of the versions is a merge, or if no merge may concern them: then recomputing yields no more than reverting
    ///   the edits does. Nil as well if it needs too much work.
    package static func undoing(
        _ acting: [UInt32], at head: UInt32, in store: Store, _ control: PacedControl, limit: Int = UndoneEdits.workLimit
    ) throws -> UndoneEdits? {
        let made = UndoneEdits([head], in: store, control, limit)
        guard store.lock.withRead({ acting.allSatisfy { store.dag.rows[Int($0)].second == History.none } }) else { return nil }
        if try !made.mayMeetMerges(acting, upTo: head) { return nil }
        try made.note(made.changedIDs(acting))
        (made.seeds, made.acting) = (Set(acting), acting)
        return try made.prepared()
    }

    /// Finds the values for which two versions disagree about undos: one side undid saves without the other side knowing it, and the other
    /// side changed or undid the same values. Neither version may be an ancestor of the other.
    /// - Parameter bases: their best common ancestors. If nil, finds only values that both sides undid.
    /// - Returns: nil if there is no such value, or if they need too much work.
    static func apart(
        _ first: UInt32, _ second: UInt32, over bases: [UInt32]?, in store: Store, _ control: PacedControl
    ) throws -> UndoneEdits? {
        if store.lock.withRead({ store.dag.undos.isEmpty }) { return nil }
        let found = try store.walk(UndosApart(first, second), control.look)
        guard bases == nil ? !found.left.isEmpty && !found.right.isEmpty : !found.left.isEmpty || !found.right.isEmpty else { return nil }
        let made = UndoneEdits([first, second], in: store, control, workLimit)
        let left = try made.changedIDs(found.left), right = try made.changedIDs(found.right)
        var ids = left.intersection(right)
        if let bases {
            let left = try made.changed(left, at: second, mergedSince: found.mergesRight, bases)
            ids.formUnion(try left.union(made.changed(right, at: first, mergedSince: found.mergesLeft, bases)))
        }
        if ids.isEmpty { return nil }
        made.note(ids)
        do { _ = try made.add(found); return made } catch is MoreIsUndone { return try made.prepared() }
    }

    /// Returns the ids that a line may have changed since its common ancestors with another line. If lines were merged into it, all ids are
    /// returned, since a value may have changed and returned to its earlier bytes.
    func changed(_ ids: Set<ValueID>, at version: UInt32, mergedSince: Bool, _ bases: [UInt32]) throws -> Set<ValueID> {
        if mergedSince || bases.count > 1 { return ids }
        return try ids.filter { id in
            try control.step()
            return try id.bytes.withUnsafeBytes { key in
                try !isSame(bases.first.flatMap { try store.maps.entry(key, at: $0) }, store.maps.entry(key, at: version))
            }
        }
    }

    func contains(_ key: UnsafeRawBufferPointer) -> Bool { isAbout.contains(ValueID(unchecked: key)) }
}
