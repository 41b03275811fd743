/// Which version changed an id last, on the way from any version back along first predecessors: so that what prevailed under
/// a single id is found without the maps of the versions between.
///
/// An id is known by its hash. Whoever asks looks into the record of the version that is answered, and asks on from the
/// one behind it when it does not name the id. Never changes once made; safe from all threads. What was added since
/// has to be walked over. 8 bytes for each change and for each version.
///
/// Source of the jumps: E. Myers, "An applicative random-access stack", Information Processing Letters 17 (1983).
final class KeyHistoryIndex: Sendable {
    /// Hash of an id × 2³² + ordinal of a version that changed it; ascending.
    private let changes: ContiguousArray<UInt64>
    /// Versions of which nobody knows by heart which ids they changed; ascending.
    private let others: ContiguousArray<UInt32>
    /// For each version, how many first predecessors are behind it, and one of them further back: itself where there is none.
    private let steps: ContiguousArray<(depth: UInt32, jump: UInt32)>
    /// The ordinals below this are in it.
    let end: UInt32

    /// Bytes that it takes.
    var memory: Int { changes.count * 8 + others.count * 4 + steps.count * 8 }

    /// What has to be copied of a history before it can be sorted; taken while nobody changes that.
    struct Rows {
        fileprivate var changes: ContiguousArray<UInt64> = []
        fileprivate var others: ContiguousArray<UInt32> = []
        fileprivate var steps: ContiguousArray<(depth: UInt32, jump: UInt32)> = []

        /// All versions behind those of `index`, up to the first that is being stored.
        init(_ history: History, behind index: KeyHistoryIndex?) {
            steps = index?.steps ?? []
            steps.reserveCapacity(history.rows.count)
            for i in steps.count..<max(steps.count, history.rows.count) {
                let row = history.rows[i], ordinal = UInt32(truncatingIfNeeded: i)
                guard row.isSettled else { break }
                // One that was given up is behind no other; it may have been pointed at predecessors that came after it.
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

    /// A version that changed several ids of one hash is in it once.
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

    /// By hashes; what has one hash stays in the order in which it is. O(changes): a radix sort.
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
        /// It may have changed the id; none between has.
        case version(UInt32)
        case none
        /// Too many others would have to be looked at.
        case tooMany
    }

    /// The nearest version at or behind `ordinal`, which is below `end`, that may have changed an id of that hash. O(log changes) when
    /// no other branches change the same id.
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

    /// All versions that may have changed an id of that hash, in no order: those that are known to, and those that nobody knows of.
    func all(_ hash: UInt32) -> [UInt32] {
        let key = UInt64(hash) << 32
        let known = changes[KeyHistoryIndex.lowerBound(changes, key)..<KeyHistoryIndex.upperBound(changes, key | UInt64(UInt32.max))]
        return known.map { UInt32(truncatingIfNeeded: $0) } + others
    }

    /// Along first predecessors; a version counts as its own. O(log versions).
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

    /// The first index whose element is not below, or is above.
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
