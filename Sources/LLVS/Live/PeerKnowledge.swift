/// What a store knows of its links: in which order its versions came, and how far it has all of others. It is kept among the caches of the
/// store for the next opening, which takes it where the versions came in the same order there: nothing relies on it.
final class PeerKnowledge: Sendable {
    struct Known {
        var since: LiveFrame.Since
        /// What was in the history then, by which it is told whether something of it was withdrawn.
        var rows: Int, live: Int
    }
    struct State {
        var incarnation = PackID.random()
        /// Those of earlier openings, with the ordinals up to which the order is the same; the newest last.
        var earlier: [LiveFrame.Since] = []
        /// Of the ids in the order in which they came, and of how many.
        var order = SHA256()
        var ordered = 0
        /// Whether it was looked for what an earlier opening kept, whether there is something new to keep, and when that was done last.
        var isLoaded = false, isChanged = false
        var savedAt: Double?
        /// By device keys.
        var known: [[UInt8]: Known] = [:]
        /// Links over which what comes to the store is sent.
        var links: Set<ObjectIdentifier> = []
        /// How many negotiations a device has left, and an address, and when that was so.
        var negotiations: [[UInt8]: (left: Double, at: Double)] = [:]
        var ofPlaces: [String: (left: Double, at: Double)] = [:]
        /// What was asked for over which of the links.
        var asked = AskedVersions()
        /// What came of a large value before its link was cut.
        var unfinished: VersionSink.Unfinished?
    }
    // The store's locks are taken within it.
    let state = Guarded(State(), .unordered)
    private static let limit = 1_024
    /// Negotiations of a device; then so many a second.
    private static let atOnce = 10, aSecond = 1
    /// Those of all devices of an address, where anybody who is paired gets in: a key is drawn as quickly as another is refused.
    private static let ofPlace = 100, ofPlaceASecond = 10

    static func of(_ store: Store) -> PeerKnowledge { store.attachments.object(PeerKnowledge.self) { PeerKnowledge() } }

    var incarnation: PackID { state.withLock { $0.incarnation } }
    /// The order of arrival does not tell any more what others lack; nor will it at the next opening.
    func renew(_ store: Store) {
        state.withLock { ($0.incarnation, $0.earlier, $0.isChanged) = (.random(), [], true) }
        // Before anybody is told of something by the new one.
        if PeerKnowledge.isKept(store) { try? store.cacheDelete(PeerKnowledge.name) }
    }
    /// Incarnations of earlier openings whose order goes on in this one.
    var earlier: [LiveFrame.Since] { state.withLock { $0.earlier } }

    func join(_ link: ObjectIdentifier) { state.withLock { _ = $0.links.insert(link) } }
    func leave(_ link: ObjectIdentifier) {
        state.withLock {
            $0.links.remove(link)
            $0.asked.end(link)
        }
    }
    var linkCount: Int { state.withLock { $0.links.count } }

    /// Whether a device may find out anew what is lacking, which costs a walk over all that is here.
    /// - Parameter place: where it is; empty: that is not known, or only devices get in whose keys are.
    func mayNegotiate(_ device: [UInt8], from place: String = "", at now: Double = Clock.steady()) -> Bool {
        func take<Key: Hashable>(_ key: Key, _ all: inout [Key: (left: Double, at: Double)], _ atOnce: Int, _ aSecond: Int) -> Bool {
            let most = Double(atOnce), perSecond = Double(aSecond)
            if all.count >= PeerKnowledge.limit, all[key] == nil {
                // Those whose time is over count no more; where there are none such, nobody's does.
                all = all.filter { $0.value.left + (now - $0.value.at) * perSecond < most }
                if all.count >= PeerKnowledge.limit { all = [:] }
            }
            let last = all[key] ?? (left: most, at: now), left = min(most, last.left + max(0, now - last.at) * perSecond)
            all[key] = (left: left < 1 ? left : left - 1, at: now)
            return left >= 1
        }
        return state.withLock { state in
            if !place.isEmpty, !take(place, &state.ofPlaces, PeerKnowledge.ofPlace, PeerKnowledge.ofPlaceASecond) { return false }
            return take(device, &state.negotiations, PeerKnowledge.atOnce, PeerKnowledge.aSecond)
        }
    }

    func keep(_ unfinished: VersionSink.Unfinished) {
        var other: VersionSink.Unfinished? = unfinished
        state.withLock { swap(&$0.unfinished, &other) }
        // What was kept before is let go of outside of the lock.
    }
    /// What came of the large values of a version; it is the caller's now.
    func takeUnfinished(_ id: VersionID, _ payload: [UInt8]) -> VersionSink.Unfinished? {
        state.withLock {
            guard let found = $0.unfinished, found.waiting.id == id, found.waiting.payload == payload else { return nil }
            $0.unfinished = nil
            return found
        }
    }

    /// All that a device had up to there is here.
    func note(_ since: LiveFrame.Since, of device: [UInt8], in store: Store) {
        // Once for each frame, and so not by going over all of them.
        let (rows, live) = store.lock.withRead { (store.dag.rows.count, store.dag.liveCount) }
        state.withLock {
            if $0.known.count >= PeerKnowledge.limit { $0.known = [:] }
            $0.known[device] = Known(since: since, rows: rows, live: live)
            $0.isChanged = true
        }
    }
    /// A device has more of what is here than it had.
    func noteAcknowledged() { state.withLock { $0.isChanged = true } }

    /// How far all that a device had is here; nothing where that is not known.
    func since(of device: [UInt8], in store: Store) -> LiveFrame.Since {
        guard let known = state.withLock({ $0.known[device] }), PeerKnowledge.live(known.rows, store) == known.live else {
            return LiveFrame.Since()
        }
        return known.since
    }

    private static func live(_ rows: Int, _ store: Store) -> Int {
        store.lock.withRead {
            store.dag.rows.prefix(rows).reduce(0) {
                Work.versions.count()
                return $0 + ($1.state == .live ? 1 : 0)
            }
        }
    }
}
