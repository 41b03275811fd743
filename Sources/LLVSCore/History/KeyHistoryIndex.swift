/// Finds the version that last changed an id, from any version back along first predecessors. So the value under a single id is found
/// without the maps of the versions in between.
///
/// An id is represented by its hash. The caller reads the record of the version returned; if it does not name the id, the caller asks again
/// from that version's first predecessor. Immutable; safe from all threads. Versions added since have to be walked over. 8 bytes for each
/// change and for each version.
///
/// Source of the jumps: E. Myers, "An applicative random-access stack", Information Processing Letters 17 (1983).
final class KeyHistoryIndex: Sendable {
    /// Hash of an id × 2³² + ordinal of a version that changed it; ascending.
    private let changes: ContiguousArray<UInt64>
    /// Versions whose changed ids are not recorded; ascending.
    private let others: ContiguousArray<UInt32>
    /// For each version the number of first predecessors before it, and the jump: a first predecessor further back, or the version itself
    /// if there is none.
    private let steps: ContiguousArray<(depth: UInt32, jump: UInt32)>
    /// The index covers the ordinals below this.
    let end: UInt32

    /// The bytes of its arrays.
    var memory: Int { changes.count * 8 + others.count * 4 + steps.count * 8 }

    /// A copy of the rows that the index needs. Made while the history cannot change, and sorted afterwards.
    struct Rows {
        fileprivate var changes: ContiguousArray<UInt64> = []
        fileprivate var others: ContiguousArray<UInt32> = []
        fileprivate var steps: ContiguousArray<(depth: UInt32, jump: UInt32)> = []

        /// Copies the rows after those of `index`, up to the first that is being stored.
        init(_ history: History, behind index: KeyHistoryIndex?) {
            steps = index?.steps ?? []
            steps.reserveCapacity(history.rows.count)
            for i in steps.count..<max(steps.count, history.rows.count) {
                let row = history.rows[i], ordinal = UInt32(truncatingIfNeeded: i)
                guard row.isSettled else { break }
                // A discarded version has no descendants, so the row is never asked for. Its predecessors are not noted: they may have
                // higher ordinals.
                guard row.state == .live else { steps.append((0, ordinal)); continue }
                if let hashes = history.keyHashes(of: ordinal) {
                    for hash in hashes { changes.append(UInt64(hash) << 32 | UInt64(ordinal)) }
                } else {
                    others.append(ordinal)
                }
                guard row.first < ordinal else { steps.append((0, ordinal)); continue }
                let before = steps[Int(row.first)], jumped = steps[Int(before.jump)]
                let isEven = before.depth - jumped.depth == jumped.depth - steps[Int(jumped.jump)].depth
                steps.append((before.depth + 1, isEven ? jumped.jump : row.first))
            }
        }
    }

    /// A version that changed several ids of one hash is listed once.
    init(_ rows: Rows, behind index: KeyHistoryIndex?) {
        let new = KeyHistoryIndex.sorted(rows.changes), old = index?.changes ?? []
        var changes = ContiguousArray<UInt64>()
        changes.reserveCapacity(old.count + new.count)
        var i = 0
        for change in new {
            while i < old.count, old[i] < change { changes.append(old[i]); i += 1 }
            if changes.last != change { changes.append(change) }
        }
        changes.append(contentsOf: old[i...])
        self.changes = changes
        others = (index?.others ?? []) + rows.others
        steps = rows.steps
        end = UInt32(truncatingIfNeeded: rows.steps.count)
    }

    /// Sorts by hash; entries of one hash keep their order. O(changes): a radix sort.
    private static func sorted(_ changes: ContiguousArray<UInt64>) -> ContiguousArray<UInt64> {
        var from = changes, to = changes
        for shift in [32, 43, 54] {
            var ends = ContiguousArray(repeating: 0, count: 2_048)
            for change in from { ends[Int(change >> UInt64(shift) & 2_047)] += 1 }
            var start = 0
            for i in ends.indices { (ends[i], start) = (start, start + ends[i]) }
            for change in from {
                let digit = Int(change >> UInt64(shift) & 2_047)
                to[ends[digit]] = change
                ends[digit] += 1
            }
            swap(&from, &to)
        }
        return from
    }

    enum Found {
        /// This version may have changed the id; none in between has.
        case version(UInt32)
        /// Certainly none of the versions back to the root has changed the id.
        case none
        /// Too many other versions would have to be checked.
        case tooMany
    }

    /// Returns the nearest version, from `ordinal` back, that may have changed an id of that hash. `ordinal` must be below `end`. O(log
    /// changes) if no other branches change the same id.
    func nearest(_ hash: UInt32, at ordinal: UInt32, in history: History) -> Found {
        let key = UInt64(hash) << 32
        var found: UInt32?, tries = 0
        var i = KeyHistoryIndex.upperBound(changes, key | UInt64(ordinal)) - 1
        while i >= 0, changes[i] & ~UInt64(UInt32.max) == key {
            let other = UInt32(truncatingIfNeeded: changes[i])
            if isAncestor(other, of: ordinal, in: history) { found = other; break }
            tries += 1
            if tries > MapPolicy.mostIndexTries { return .tooMany }
            i -= 1
        }
        i = KeyHistoryIndex.upperBound(others, ordinal) - 1
        while i >= 0, found.map({ $0 < others[i] }) ?? true {
            if isAncestor(others[i], of: ordinal, in: history) { return .version(others[i]) }
            tries += 1
            if tries > MapPolicy.mostIndexTries { return .tooMany }
            i -= 1
        }
        return found.map { .version($0) } ?? .none
    }

    /// Returns all versions that may have changed an id of that hash, in no order, including those whose changed ids are not recorded.
    func all(_ hash: UInt32) -> [UInt32] {
        let key = UInt64(hash) << 32
        let known = changes[KeyHistoryIndex.lowerBound(changes, key)..<KeyHistoryIndex.upperBound(changes, key | UInt64(UInt32.max))]
        return known.map { UInt32(truncatingIfNeeded: $0) } + others
    }

    /// Follows first predecessors; a version counts as its own ancestor. O(log versions).
    private func isAncestor(_ wanted: UInt32, of ordinal: UInt32, in history: History) -> Bool {
        var at = ordinal
        while at > wanted {
            let jump = steps[Int(at)].jump
            if jump >= wanted, jump < at { at = jump; continue }
            at = history.rows[Int(at)].first
            if at == History.none { return false }
        }
        return at == wanted
    }

    /// Return the first index whose element is not below `wanted`, and the first whose element is above.
    private static func lowerBound<T: Comparable>(_ list: ContiguousArray<T>, _ wanted: T) -> Int { partition(list) { $0 < wanted } }
    private static func upperBound<T: Comparable>(_ list: ContiguousArray<T>, _ wanted: T) -> Int { partition(list) { $0 <= wanted } }
    @inline(__always)
    private static func partition<T>(_ list: ContiguousArray<T>, _ isBefore: (T) -> Bool) -> Int {
        var low = 0, high = list.count
        while low < high {
            let middle = (low + high) >> 1
            if isBefore(list[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
