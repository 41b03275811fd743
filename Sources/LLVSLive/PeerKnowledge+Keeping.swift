/// Caches what is known of links for the next opening of a store.
///
/// Each opening begins a new incarnation, so that two copies of a store never give one name to two orders. It also states up to which
/// ordinal it continues the order of earlier incarnations, as far as that was written. A store that was reset to an older state continues
/// less of it, so what other devices remember no longer matches.
extension PeerKnowledge {
    static let name = "live-peers", version: UInt32 = 1
    /// The least seconds between two writes while links last.
    static let pause = 60.0
    /// The most devices that are remembered.
    static let keptLimit = 256

    /// The cached state.
    struct Kept: Equatable {
        /// How many versions arrived, a digest of their order, and what is known of each device.
        var rows: UInt64 = 0
        var order: [UInt8] = []
        var incarnations: [LiveFrame.Since] = []
        var devices: [(key: [UInt8], known: Known)] = []

        static func == (a: Kept, b: Kept) -> Bool { a.bytes == b.bytes }

        var bytes: [UInt8] {
            var out = ByteWriter()
            out.integer(PeerKnowledge.version)
            out.integer(rows)
            out.raw(order)
            out.integer(UInt32(truncatingIfNeeded: incarnations.count))
            out.integer(UInt32(truncatingIfNeeded: devices.count))
            for one in incarnations {
                out.raw(one.incarnation.bytes)
                out.integer(one.ordinal)
            }
            for (key, known) in devices {
                out.raw(key)
                out.raw(known.since.incarnation.bytes)
                out.integer(known.since.ordinal)
                out.integer(UInt64(known.rows))
                out.integer(UInt64(known.live))
            }
            return out.bytes
        }

        init() {}
        /// Nil if the bytes are not a valid state.
        init?(_ bytes: [UInt8]) {
            let isWhole = bytes.withUnsafeBytes { bytes -> Bool in
                var reader = ByteReader(bytes)
                guard reader.integer(UInt32.self) == PeerKnowledge.version, let rows = reader.integer(UInt64.self),
                    let order = reader.take(32), let incarnationCount = reader.integer(UInt32.self),
                    let deviceCount = reader.integer(UInt32.self), incarnationCount <= LiveFrame.earlierLimit,
                    deviceCount <= PeerKnowledge.keptLimit
                else { return false }
                (self.rows, self.order) = (rows, Array(order))
                for _ in 0..<incarnationCount {
                    guard let id = reader.take(PackID.size).flatMap({ PackID(Array($0)) }), let ordinal = reader.integer(UInt64.self) else {
                        return false
                    }
                    incarnations.append(LiveFrame.Since(incarnation: id, ordinal: ordinal))
                }
                for _ in 0..<deviceCount {
                    guard let key = reader.take(NoiseHandshake.keySize), let id = reader.take(PackID.size).flatMap({ PackID(Array($0)) }),
                        let ordinal = reader.integer(UInt64.self), let count = reader.integer(UInt64.self).flatMap(Int.init(exactly:)),
                        let live = reader.integer(UInt64.self).flatMap(Int.init(exactly:)), count <= rows
                    else { return false }
                    let since = LiveFrame.Since(incarnation: id, ordinal: ordinal)
                    devices.append((Array(key), Known(since: since, rows: count, live: live)))
                }
                return reader.remaining == 0
            }
            guard isWhole else { return nil }
        }
    }

    /// Loads the state of an earlier opening, once, if the same versions arrived in the same order then.
    func load(_ store: Store) {
        guard
            state.withLock({ state in
                defer { state.isLoaded = true }
                return !state.isLoaded
            }), PeerKnowledge.isKept(store), let bytes = try? store.cacheGet(PeerKnowledge.name), let kept = Kept(bytes),
            let rows = Int(exactly: kept.rows)
        else { return }
        state.withLock { state in
            guard PeerKnowledge.order(&state, upTo: rows, in: store), kept.order == PeerKnowledge.digest(state) else { return }
            state.earlier = kept.incarnations
            for (key, known) in kept.devices where state.known[key] == nil { state.known[key] = known }
        }
    }

    /// Writes the state for the next opening, if it changed.
    /// - Parameter pause: the seconds that must have passed since the last write.
    func save(_ store: Store, atMostEvery pause: Double = 0) {
        guard PeerKnowledge.isKept(store) else { return }
        let now = Clock.steady()
        let bytes = state.withLock { (state) -> [UInt8]? in
            guard state.isChanged, pause == 0 || now - (state.savedAt ?? -.infinity) >= pause else { return nil }
            (state.isChanged, state.savedAt) = (false, now)
            let rows = store.settledRows(from: state.ordered)
            guard PeerKnowledge.order(&state, upTo: rows, in: store) else { return nil }
            var kept = Kept()
            (kept.rows, kept.order) = (UInt64(rows), PeerKnowledge.digest(state))
            kept.incarnations = state.earlier.suffix(LiveFrame.earlierLimit - 1)
            kept.incarnations.append(LiveFrame.Since(incarnation: state.incarnation, ordinal: UInt64(rows) + 1))
            let newest = state.known.filter { $0.value.rows <= rows }.sorted { $0.value.rows > $1.value.rows }
            kept.devices = newest.prefix(PeerKnowledge.keptLimit).map { ($0.key, $0.value) }
            return kept.bytes
        }
        guard let bytes else { return }
        // Nothing relies on it.
        try? store.cachePut(PeerKnowledge.name, bytes)
    }

    /// Returns whether caching is of use: not if the cache ends with the handle. A host's storage may keep its cache in memory.
    static func isKept(_ store: Store) -> Bool { !(store.storage is MemoryStorage || store.storage is CallbackStorage) }

    /// Extends the digest of the order up to a number of versions.
    /// - Returns: false if there are fewer, or some of them will not be there at the next opening.
    private static func order(_ state: inout State, upTo rows: Int, in store: Store) -> Bool {
        var coded = ByteWriter(), order = state.order
        return store.lock.withRead {
            guard state.ordered <= rows, rows <= store.dag.rows.count else { return false }
            for ordinal in state.ordered..<rows {
                Work.versions.count()
                guard store.dag.rows[ordinal].isSettled, store.dag.rows[ordinal].state != .dead else { return false }
                coded.bytes.removeAll(keepingCapacity: true)
                coded.versionID(store.dag.id(UInt32(truncatingIfNeeded: ordinal)))
                order.update(coded.bytes)
            }
            (state.order, state.ordered) = (order, rows)
            return true
        }
    }

    private static func digest(_ state: State) -> [UInt8] {
        var order = state.order
        return order.finish()
    }
}
