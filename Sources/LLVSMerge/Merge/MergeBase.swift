/// The state of the ancestor of a merge for one key.
enum BaseState {
    case absent
    case present(MapEntry)
    /// The best common ancestors disagree. These are their entries.
    case conflicting([MapEntry?])

    init(_ entry: MapEntry?) { self = entry.map { .present($0) } ?? .absent }
}

/// The ancestor of a merge, key by key.
///
/// A single best common ancestor is used as it is. Several are folded in canonical order into a virtual one, as git's recursive strategy
/// does: the state of a key in the fold of two versions is the result of merging them over the fold of their own bases, recursively. Keys
/// on which the versions agree go no deeper, so a chain of criss-crosses costs only what differs. The stack is explicit, since a chain
/// may be ten thousand levels high. Bases are memoised by the versions folded, states also by key. Keys are queried one after another, so
/// only maps that pay off are built: all of a chain may not fit into memory at once, and would be rebuilt for each key.
struct MergeBase {
    let store: Store
    let bases: [UInt32]
    private var folds: [[UInt32]: FoldedVersions] = [:]
    /// The map of a single base.
    private var onOnly: Prevailing?

    private let control: PacedControl

    /// - Parameter fold: the fold of the bases, if a part of it is known.
    init(store: Store, bases: [UInt32], fold: FoldedVersions? = nil, _ control: PacedControl = .none) {
        self.store = store; self.bases = bases; self.control = control
        if let fold { folds[bases] = fold }
    }

    private struct Frame {
        let fold: FoldedVersions
        var versions: [UInt32] { fold.versions }
        var next = 1
        /// The state of the versions so far, unless they disagree.
        var state: BaseState
        /// If they disagree: their entries, without duplicates.
        var candidates: [MapEntry?] = []
        var candidateVersions: Set<UInt32> = []

        mutating func add(_ entry: MapEntry?) {
            if candidateVersions.insert(entry?.version ?? History.none).inserted { candidates.append(entry) }
        }
        mutating func disagree(_ x: MapEntry?, _ y: MapEntry?) {
            add(x)
            add(y)
        }
    }

    /// Returns the state of the ancestor for a key.
    mutating func state(_ key: UnsafeRawBufferPointer) throws -> BaseState {
        guard let first = bases.first else { return .absent }
        if bases.count == 1 {
            let found = try onOnly ?? store.maps.prevailing(at: first)
            onOnly = found
            return BaseState(try found.lookup(key))
        }
        var memo: [[UInt32]: BaseState] = [:]
        var stack = [try frame(bases, key)]
        var delivered: BaseState?
        while var top = stack.popLast() {
            try control.step(0)
            if top.next == top.versions.count {
                if !top.candidates.isEmpty { top.state = .conflicting(top.candidates) }
                memo[top.versions] = top.state
                delivered = top.state
                continue
            }
            let entry = try store.maps.entry(key, at: top.versions[top.next])
            if !top.candidates.isEmpty {
                top.add(entry)
            } else {
                var mine: MapEntry?
                if case .present(let entry) = top.state { mine = entry }
                if isSame(mine, entry) {
                    // Nothing new.
                } else if let x = mine, let y = entry, try store.haveSameBytes(x, y, key) {
                    top.state = .present(store.isStoredLater(x, y) ? x : y)
                } else {
                    let below = try top.fold.bases(upTo: top.next, in: store, control)
                    if let x = mine, let y = entry, try areNew(x, y, above: below, key) {
                        top.disagree(x, y)
                    } else if let known = below.isEmpty ? .absent : memo[below] ?? delivered {
                        delivered = nil
                        let combined = try combine(known, mine, entry, key)
                        if case .conflicting = combined { top.disagree(mine, entry) } else { top.state = combined }
                    } else {
                        stack.append(top)
                        stack.append(try frame(below, key))
                        continue
                    }
                }
            }
            delivered = nil
            top.next += 1
            stack.append(top)
        }
        return delivered ?? .absent
    }

    private mutating func frame(_ versions: [UInt32], _ key: UnsafeRawBufferPointer) throws -> Frame {
        let fold = folds[versions] ?? FoldedVersions(versions)
        folds[versions] = fold
        return Frame(fold: fold, state: BaseState(try versions.first.flatMap { try store.maps.entry(key, at: $0) }))
    }

    /// Returns whether both were stored in versions that are no ancestors of these, and none of these holds the bytes of either. The fold
    /// of these holds entries of some of these, so its details do not matter then.
    private func areNew(_ x: MapEntry, _ y: MapEntry, above versions: [UInt32], _ key: UnsafeRawBufferPointer) throws -> Bool {
        let areStoredAbove = store.lock.withRead {
            let highest = versions.map { store.dag.rows[Int($0)].generation }.max()
            guard let highest else { return true }
            return store.dag.rows[Int(x.version)].generation > highest && store.dag.rows[Int(y.version)].generation > highest
        }
        guard areStoredAbove else { return false }
        for version in versions {
            guard let entry = try store.maps.entry(key, at: version) else { continue }
            if try store.haveSameBytes(entry, x, key) || store.haveSameBytes(entry, y, key) { return false }
        }
        return true
    }

    /// Returns the state of a key after merging `x` and `y`, which differ, over `base`.
    private func combine(_ base: BaseState, _ x: MapEntry?, _ y: MapEntry?, _ key: UnsafeRawBufferPointer) throws -> BaseState {
        switch try store.unchangedSide(base, x, y, key) {
        case .first: BaseState(y)
        case .second: BaseState(x)
        case nil: .conflicting([x, y])
        }
    }
}

/// Versions that are folded in order, and the bases of each fold: of the first and the second, of both and the third, and so on. If there
/// are many versions, each is walked only once.
final class FoldedVersions {
    let versions: [UInt32]
    /// For more versions, all bases are found together.
    private static let few = 8
    private var found: [[UInt32]] = []

    /// - Parameter other: a fold of as many versions with the same bases.
    init(_ versions: [UInt32], as other: FoldedVersions? = nil) { self.versions = versions; found = other?.found ?? [] }

    /// Returns the bases, newest first, of the fold of `versions[..<count]` and the next version; only that version if it is an ancestor
    /// of those.
    func bases(upTo count: Int, in store: Store, _ control: PacedControl) throws -> [UInt32] {
        if versions.count > FoldedVersions.few, found.isEmpty {
            found = try zip(versions, store.walk(FoldedBases(versions), control.look)).dropFirst().map { $1 ?? [$0] }
        }
        while found.count < count {
            let next = found.count + 1
            found.append(try store.walk(CommonAncestors(Array(versions[..<next]), [versions[next]]), control.look))
        }
        return found[count - 1]
    }
}

extension Store {
    /// Returns whether two references of one id have the same bytes: by length, then by digest for large values, then by bytes. Known
    /// fingerprints save reading bytes that differ.
    func haveSameBytes(
        _ a: MapEntry, _ b: MapEntry, _ id: UnsafeRawBufferPointer, _ aFingerprint: UInt32? = nil, _ bFingerprint: UInt32? = nil
    ) throws -> Bool {
        if a.isSameReference(as: b) { return true }
        if a.size != MapEntry.unknownSize, b.size != MapEntry.unknownSize, a.size != b.size { return false }
        if let x = aFingerprint ?? maps.changeLists.fingerprint(a.version, id),
            let y = bFingerprint ?? maps.changeLists.fingerprint(b.version, id), x != y
        {
            return false
        }
        guard let p = try located(a, id), let q = try located(b, id), p.size == q.size else { return false }
        let (x, y) = lock.withRead { (dag.rows[Int(a.version)].place, dag.rows[Int(b.version)].place) }
        // Compare small values as they are, and large ones by digest if their records have it.
        if Int(p.size) > RecordTable.digestThreshold, let d = try records.findChange(x, id)?.body.digest,
            let e = try records.findChange(y, id)?.body.digest
        {
            return d == e
        }
        do {
            return try records.withBody(x, p, id: id, stored: versionID(a.version)) { left in
                try records.withBody(y, q, id: id, stored: versionID(b.version)) { Bytes.equal(left, $0) }
            }
        } catch let error as StoreError where error.code.isGone {
            let left = try records.digest(of: id, in: x, stored: versionID(a.version))
            return try left == records.digest(of: id, in: y, stored: versionID(b.version))
        }
    }

    /// Returns which of two sides with different references is the only one that equals the base; nil if both or neither do. A value that
    /// was stored again, or changed and reverted, is unchanged.
    func unchangedSide(
        _ base: BaseState, _ first: MapEntry?, _ second: MapEntry?, _ id: UnsafeRawBufferPointer, _ firstFingerprint: UInt32? = nil,
        _ secondFingerprint: UInt32? = nil
    ) throws -> Fork.Side? {
        let held: [MapEntry?] =
            switch base {
            case .absent: [nil]
            case .present(let entry): [entry]
            case .conflicting(let candidates): candidates
            }
        let (isFirst, isSecond) = (held.contains { isSame($0, first) }, held.contains { isSame($0, second) })
        // For a single entry this suffices: if the other side had the same bytes, the sides would be equal, which was checked before.
        if held.count == 1, isFirst || isSecond { return isFirst ? .first : .second }
        func hasBytes(_ side: MapEntry?, _ fingerprint: UInt32?) throws -> Bool {
            guard let side else { return false }
            return try held.contains { entry in try entry.map { try haveSameBytes($0, side, id, nil, fingerprint) } ?? false }
        }
        let firstIsHeld = try isFirst || hasBytes(first, firstFingerprint)
        let secondIsHeld = try isSecond || hasBytes(second, secondFingerprint)
        return firstIsHeld == secondIsHeld ? nil : firstIsHeld ? .first : .second
    }

    /// Returns the entry with the size of the value; nil if its version did not store it.
    private func located(_ entry: MapEntry, _ id: UnsafeRawBufferPointer) throws -> MapEntry? {
        entry.size != MapEntry.unknownSize ? entry : try maps.stored(id, in: entry.version)
    }

    /// Returns whether the bytes of `a` were stored in a later version than those of `b`.
    func isStoredLater(_ a: MapEntry, _ b: MapEntry) -> Bool { lock.withRead { dag.isNewer(a.version, b.version) } }
}
