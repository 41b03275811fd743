/// A store's knowledge about its links: the order in which its versions arrived, and how far it has everything of other devices. It is
/// cached for the next opening, which loads it if the versions arrived in the same order. Nothing depends on it.
final class PeerKnowledge: Sendable {
    struct Known {
        var since: LiveFrame.Since
        /// The rows and the live versions at that time. They show whether versions were withdrawn since.
        var rows: Int, live: Int
    }
    struct State {
        var incarnation = PackID.random()
        /// Incarnations of earlier openings, with the ordinals up to which the order is the same. The newest is last.
        var earlier: [LiveFrame.Since] = []
        /// A digest of the ids in the order of arrival, and their number.
        var order = SHA256()
        var ordered = 0
        /// Whether the cached state was loaded, whether there are changes to write, and when they were last written.
        var isLoaded = false, isChanged = false
        var savedAt: Double?
        /// By device key.
        var known: [[UInt8]: Known] = [:]
        /// Open links whose other device is known.
        var open: [ObjectIdentifier: OpenLink] = [:]
        /// Links over which new versions of the store are sent.
        var links: Set<ObjectIdentifier> = []
        /// The rate limits of negotiations by device and by address: how many are left, and when that was computed.
        var negotiations: [[UInt8]: (left: Double, at: Double)] = [:]
        var ofPlaces: [String: (left: Double, at: Double)] = [:]
        /// The versions that were requested over the links.
        var asked = AskedVersions()
        /// The received part of a large value whose link was cut.
        var unfinished: VersionSink.Unfinished?
        /// The device keys with which new links read no values that are differences, and whether those with unknown keys do.
        var withoutDifferences: Set<[UInt8]> = []
        var unknownReadDifferences = true
    }
    /// A link that was opened by the other side.
    struct OpenLink {
        let device: [UInt8], place: String
        /// When bytes last arrived, by the steady clock.
        var heardAt: Double
        /// The link has to end in favour of a newer one.
        var givesWay = false
    }
    /// The most links of one device key, and of one address if any paired device is accepted.
    static let linksOfDevice = 8, linksOfPlace = 64
    /// The seconds of silence after which a link ends in favour of a newer one.
    static let silence = 30.0

    // The store's locks are taken within it.
    let state = Guarded(State(), .unordered)
    private static let limit = 1_024
    /// The rate limit of a device: negotiations at once, and then per second.
    private static let atOnce = 10, aSecond = 1
    /// The rate limit of all devices of an address if any key of the pairing is accepted, since a device can create new keys at will.
    private static let ofPlace = 100, ofPlaceASecond = 10

    static func of(_ store: Store) -> PeerKnowledge { store.attachments.object(PeerKnowledge.self) { PeerKnowledge() } }

    var incarnation: PackID { state.withLock { $0.incarnation } }
    /// Begins a new incarnation: the order of arrival no longer determines what others lack, and will not at the next opening.
    func renew(_ store: Store) {
        state.withLock { ($0.incarnation, $0.earlier, $0.isChanged) = (.random(), [], true) }
        // The cached state is deleted before a device receives the new incarnation.
        if PeerKnowledge.isKept(store) { try? store.cacheDelete(PeerKnowledge.name) }
    }
    /// Incarnations of earlier openings whose order this one continues.
    var earlier: [LiveFrame.Since] { state.withLock { $0.earlier } }

    /// Returns whether there was a link with a device before.
    func knows(_ device: [UInt8]) -> Bool { state.withLock { $0.known[device] != nil } }
    /// Returns whether new links with a device read values that are differences: not if, on an earlier link with it since the store was
    /// opened, a base could not be read here, or differences exceeded the link's budget. A device may have another key in each link. So
    /// unknown devices count as one.
    func readsDifferences(of device: [UInt8]) -> Bool {
        state.withLock { !$0.withoutDifferences.contains(device) && ($0.known[device] != nil || $0.unknownReadDifferences) }
    }
    /// - Parameter isKnown: whether the device was known when the link began.
    func readsNoDifferences(of device: [UInt8], isKnown: Bool) {
        state.withLock {
            // A device that is forgotten loses one more link.
            if $0.withoutDifferences.count >= PeerKnowledge.limit { $0.withoutDifferences = [] }
            $0.withoutDifferences.insert(device)
            if !isKnown { $0.unknownReadDifferences = false }
        }
    }

    /// Admits a link once its device is known. If its device or its address has too many links, the one with the longest silence ends.
    /// - Parameter place: as for `mayNegotiate`.
    /// - Returns: nil if the link is admitted; otherwise the limit: there are that many links, and none is silent.
    func open(_ link: ObjectIdentifier, of device: [UInt8], from place: String, at now: Double = Clock.steady()) -> Int? {
        state.withLock { state in
            func full(_ most: Int, _ isOfSame: (OpenLink) -> Bool) -> Bool {
                let same = state.open.filter { !$0.value.givesWay && isOfSame($0.value) }
                guard same.count >= most else { return false }
                guard let oldest = same.min(by: { $0.value.heardAt < $1.value.heardAt }), now - oldest.value.heardAt > PeerKnowledge.silence
                else { return true }
                state.open[oldest.key]?.givesWay = true
                return false
            }
            if full(PeerKnowledge.linksOfDevice, { $0.device == device }) { return PeerKnowledge.linksOfDevice }
            if !place.isEmpty, full(PeerKnowledge.linksOfPlace, { $0.place == place }) { return PeerKnowledge.linksOfPlace }
            state.open[link] = OpenLink(device: device, place: place, heardAt: now)
            return nil
        }
    }
    /// Records when bytes last arrived over a link.
    /// - Returns: false if the link has to end in favour of another one.
    func lasts(_ link: ObjectIdentifier, heardAt: Double) -> Bool {
        state.withLock { state in
            guard let known = state.open[link] else { return true }
            state.open[link]?.heardAt = max(known.heardAt, heardAt)
            return !known.givesWay
        }
    }

    func join(_ link: ObjectIdentifier) { state.withLock { _ = $0.links.insert(link) } }
    func leave(_ link: ObjectIdentifier) {
        state.withLock {
            $0.links.remove(link)
            $0.open[link] = nil
            $0.asked.end(link)
        }
    }
    var linkCount: Int { state.withLock { $0.links.count } }

    /// Returns whether a device may negotiate once more. A negotiation takes a walk over the whole history.
    /// - Parameter place: its address; empty if it is not known, or if only devices with accepted keys are admitted.
    func mayNegotiate(_ device: [UInt8], from place: String = "", at now: Double = Clock.steady()) -> Bool {
        func take<Key: Hashable>(_ key: Key, _ all: inout [Key: (left: Double, at: Double)], _ atOnce: Int, _ aSecond: Int) -> Bool {
            let most = Double(atOnce), perSecond = Double(aSecond)
            if all.count >= PeerKnowledge.limit, all[key] == nil {
                // Forget those whose limit has fully recovered. If there are none, forget all.
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
        // The previous one is released outside of the lock.
    }
    /// Returns the received large values of a version, and hands them over to the caller.
    func takeUnfinished(_ id: VersionID, _ payload: [UInt8]) -> VersionSink.Unfinished? {
        state.withLock {
            guard let found = $0.unfinished, found.waiting.id == id, found.waiting.payload == payload else { return nil }
            $0.unfinished = nil
            return found
        }
    }

    /// Records that everything that a device had up to that point is stored.
    func note(_ since: LiveFrame.Since, of device: [UInt8], in store: Store) {
        // This runs for each frame, so it uses counts and no walk.
        let (rows, live) = store.lock.withRead { (store.dag.rows.count, store.dag.liveCount) }
        state.withLock {
            if $0.known.count >= PeerKnowledge.limit { $0.known = [:] }
            $0.known[device] = Known(since: since, rows: rows, live: live)
            $0.isChanged = true
        }
    }
    /// Records that a device acknowledged more versions.
    func noteAcknowledged() { state.withLock { $0.isChanged = true } }

    /// Returns the point up to which everything of a device is stored; an empty one if that is not known.
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
