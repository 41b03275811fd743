/// An id whose state differs between two versions.
package struct Difference {
    package var key: UnsafeRawBufferPointer
    package var before: MapEntry?
    package var after: MapEntry?
    /// The fingerprints of the bytes, as far as they are known.
    package var beforeFingerprint: UInt32?
    package var afterFingerprint: UInt32?
    package init(
        key: UnsafeRawBufferPointer, before: MapEntry? = nil, after: MapEntry? = nil, beforeFingerprint: UInt32? = nil,
        afterFingerprint: UInt32? = nil
    ) {
        self.key = key; self.before = before; self.after = after; self.beforeFingerprint = beforeFingerprint
        self.afterFingerprint = afterFingerprint
    }
}

/// The changes that two versions recorded since their chains of first predecessors met. Nothing else is read, except maps if a record does
/// not show what it replaced.
final class RecordedSides {
    private let store: Store
    let meeting: Meeting
    let left: ChainChanges
    let right: ChainChanges
    /// The maps of the left version, of the right one, and of their meeting, as far as they are in memory.
    private let leftMap: MapCache.Slot?
    private let rightMap: MapCache.Slot?
    private var met: Prevailing?

    /// Nil if the two do not meet, or only far away.
    /// - Parameter needsMaps: whether maps are needed in any case, for entries that the records do not show.
    init?(_ a: UInt32, _ b: UInt32, needsMaps: Bool, in store: Store, _ control: PacedControl = .none) throws {
        let mapsAreHere = needsMaps || (store.maps.slot(a) != nil && store.maps.slot(b) != nil)
        let limit = MapPolicy.mostCompared(mapsAreHere: mapsAreHere)
        guard let meeting = store.lock.withRead({ store.dag.meeting(a, b, leftAtMost: limit, rightAtMost: limit) }) else { return nil }
        self.store = store
        self.meeting = meeting
        left = try ChainChanges(meeting.left, in: store, control)
        right = try ChainChanges(meeting.right, in: store, control)
        leftMap = store.maps.slot(a)
        rightMap = store.maps.slot(b)
        met = store.maps.slot(meeting.at).map { .map($0.root) }
    }

    /// Calls with the items of both sides in byte order: two with the same key, or one.
    private func forEachPair(_ body: (ChainChanges.Item?, ChainChanges.Item?) throws -> Void) rethrows {
        let left = left.items, right = right.items
        var i = 0, j = 0
        while i < left.count || j < right.count {
            let order = i == left.count ? 1 : j == right.count ? -1 : Bytes.compare(left[i].key, right[j].key)
            try body(order <= 0 ? left[i] : nil, order >= 0 ? right[j] : nil)
            if order <= 0 { i += 1 }
            if order >= 0 { j += 1 }
        }
    }

    /// Calls with each id whose reference differs, in byte order. Keys are valid while this object exists.
    func forEachDifference(_ body: (Difference) throws -> Void) throws {
        try forEachPair { x, y in
            guard let key = x?.key ?? y?.key else { return }
            let before = try x.map(\.entry) ?? whereTheyMet(key, unchangedIn: leftMap)
            let after = try y.map(\.entry) ?? whereTheyMet(key, unchangedIn: rightMap)
            if isSame(before, after) { return }
            try body(
                Difference(key: key, before: before, after: after, beforeFingerprint: x?.fingerprint, afterFingerprint: y?.fingerprint))
        }
    }

    /// Calls with the change of each id from the left version to the right one, in byte order, and the resulting entry.
    func forEachChange(_ body: (Value.Change.Kind, UnsafeRawBufferPointer, MapEntry?) throws -> Void) throws {
        try forEachPair { x, y in
            guard let key = x?.key ?? y?.key else { return }
            var wasThere: Bool
            var after = y?.entry
            if x == nil, let y, leftMap == nil, met == nil, let told = y.toldBefore {
                // The left side did not change the value. If the right side restored bytes of an ancestor of the meeting, they differ from
                // the bytes at the meeting.
                wasThere = told
            } else {
                let before = try x.map(\.entry) ?? whereTheyMet(key, unchangedIn: leftMap)
                if y == nil { after = x?.before == .absent ? nil : try whereTheyMet(key, unchangedIn: rightMap) }
                if isSame(before, after) { return }
                wasThere = before != nil
            }
            if wasThere || after != nil { try body(after == nil ? .remove : wasThere ? .update : .insert, key, after) }
        }
    }

    /// Returns the entry at the meeting for a key that one of the versions, whose map is passed, did not change.
    private func whereTheyMet(_ key: UnsafeRawBufferPointer, unchangedIn map: MapCache.Slot?) throws -> MapEntry? {
        if let map { return map.root?.lookup(key) }
        let found = try met ?? store.maps.prevailing(at: meeting.at)
        met = found
        return try found.lookup(key)
    }
}

extension Store {
    /// Calls with each id whose reference differs between the states at two versions, in byte order. The cost grows with what was
    /// recorded since their chains of first predecessors met, if that is near, else with what differs. Keys are valid during the call.
    package func forEachDifference(_ a: UInt32, _ b: UInt32, _ control: PacedControl = .none, _ body: (Difference) throws -> Void) throws {
        if a == b { return }
        if let sides = try RecordedSides(a, b, needsMaps: true, in: self, control) {
            return try withExtendedLifetime(sides) { try sides.forEachDifference(body) }
        }
        try MapNode.forEachDifference(maps.map(a, control), maps.map(b, control)) { try body(Difference(key: $0, before: $1, after: $2)) }
    }
}
