/// What a device knows of when versions came to it, and of what is elsewhere: the cache `retention` (docs/format.md, "Retention"). It is
/// written while a policy says what to keep. If it is lost, more is kept.
package struct RetentionNote {
    /// The heads at a time. They and their ancestors had come by then.
    struct Seen {
        var time: UInt64, heads: [VersionID]
    }
    /// Heads that a place has, or that came from others.
    struct Shared {
        var place: String, heads: [VersionID]
    }
    var seen: [Seen] = []
    var shared: [Shared] = []
    /// When values were forgotten last, in seconds since 1970; 0: never.
    var thinned: UInt64 = 0

    static let name = "retention"
    /// The name of all from whom versions came.
    static let others = "others"
    /// The most heads of a line: fewer only keep more. The most places, and lines of times.
    static let mostHeads = 4_096, mostPlaces = 256, mostSeen = 4_096
    /// The least seconds between two lines.
    static let pause: UInt64 = 86_400

    init() {}
    init(_ bytes: [UInt8]) {
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let words = line.split(separator: UInt8(ascii: " "))
            guard words.count >= 2 else { continue }
            let heads = words.dropFirst(2).compactMap { Array($0).withUnsafeBytes { try? VersionID(ascii: $0) } }
            let text = String(decoding: words[1], as: UTF8.self)
            switch String(decoding: words[0], as: UTF8.self) {
            case "seen": if let time = UInt64(text) { seen.append(Seen(time: time, heads: heads)) }
            case "shared": shared.append(Shared(place: text, heads: heads))
            case "thinned": thinned = UInt64(text) ?? 0
            default: break
            }
        }
        seen.sort { $0.time < $1.time }
    }
    var bytes: [UInt8] {
        func list(_ heads: [VersionID]) -> String { heads.map { " \($0)" }.joined() }
        var text = thinned > 0 ? "thinned \(thinned)\n" : ""
        for line in seen { text += "seen \(line.time)\(list(line.heads))\n" }
        for line in shared { text += "shared \(line.place)\(list(line.heads))\n" }
        return Array(text.utf8)
    }

    /// Adds what is there now, unless a line is newer than `pause`.
    /// - Parameter most: the longest days for which lines are needed.
    /// - Returns: whether the note changed.
    mutating func note(_ heads: [VersionID], at now: UInt64, days most: UInt64) -> Bool {
        // A clock was wrong.
        let count = seen.count
        seen.removeAll { $0.time > now }
        if let last = seen.last, now - last.time < RetentionNote.pause { return seen.count != count }
        seen.append(Seen(time: now, heads: Array(heads.prefix(RetentionNote.mostHeads))))
        // The newest line before that is needed, too.
        let limit = now - min(now, most &* 86_400)
        if let first = seen.lastIndex(where: { $0.time <= limit }) { seen.removeFirst(first) }
        if seen.count > RetentionNote.mostSeen { seen.removeFirst(seen.count - RetentionNote.mostSeen) }
        return true
    }
    /// Returns the heads at the last time that is so many days ago; nil if that is not known.
    func heads(before days: UInt64, _ now: UInt64) -> [VersionID]? {
        guard now >= days &* 86_400 else { return nil }
        return seen.last { $0.time <= now - days &* 86_400 }?.heads
    }
    mutating func share(_ place: String, _ heads: [VersionID]) {
        shared.removeAll { $0.place == place }
        shared.append(Shared(place: place, heads: heads))
        if shared.count > RetentionNote.mostPlaces { shared.removeFirst() }
    }
}

/// Reads and writes the note.
package struct RetentionNotes {
    let store: Store
    package init(_ store: Store) { self.store = store }

    /// What is kept by the policy of this device; nil if it says nothing.
    var keep: KeepPolicy? {
        get throws { try store.lock.withRead({ store.erasureParts }) == nil ? nil : store.orders.known()?.policy.keep }
    }
    func load() throws -> RetentionNote { RetentionNote(try store.storage.cacheGet(RetentionNote.name) ?? []) }
    var now: UInt64 { UInt64(min(max(store.environment.clock() + Clock.secondsFrom1970To2001, 0), 1e15)) }
    private var heads: [VersionID] {
        store.lock.withRead { store.dag.headOrdinals.sorted { store.dag.isNewer($0, $1) }.map(store.dag.id) }
    }

    /// Notes which versions are here now. An error is logged: then they count as come later.
    func noteSeen() {
        guard !store.storage.isReadOnly else { return }
        do {
            guard let keep = try keep else { return }
            var note = try load()
            // Conflicts are kept four times as long.
            if note.note(heads, at: now, days: 4 * keep.mostDays) { try store.storage.cachePut(RetentionNote.name, note.bytes) }
        } catch { Log.write(.info, "What came to \(store.description) was not noted: \(error)") }
    }

    // MARK: What is elsewhere

    /// Returns the heads, to be noted as at a place once they are there; nil if the policy says nothing of what is kept.
    package func headsToShare() -> [VersionID]? {
        guard !store.storage.isReadOnly, (try? keep) ?? nil != nil else { return nil }
        return heads
    }
    /// Notes that a place has these versions, and all behind them.
    package func noteShared(_ heads: [VersionID], with place: String) {
        change { $0.share(Base32.encode(Array(Array(place.utf8).withUnsafeBytes { SHA256.digest($0) }.prefix(10))), heads) }
    }
    /// Notes versions that came from others.
    func noteReceived(_ versions: () -> [Version]) {
        guard (try? keep) ?? nil != nil else { return }
        let added = versions()
        let behind = Set(added.flatMap(\.predecessors))
        change { note in
            let known = note.shared.first { $0.place == RetentionNote.others }?.heads ?? []
            let new = added.map(\.id).filter { !behind.contains($0) }
            var heads = known.filter { !behind.contains($0) } + new
            if heads.count > RetentionNote.mostHeads { heads = newest(of: heads) }
            note.share(RetentionNote.others, heads)
        }
    }
    /// Returns those of the versions behind which no other is.
    private func newest(of ids: [VersionID]) -> [VersionID] {
        let history = RetainedHistory(store)
        let all = ids.compactMap { id in store.lock.withRead { store.dag.ordinal(of: id) } }
        return history.newest(of: all).map(store.versionID)
    }
    private func change(_ change: (inout RetentionNote) -> Void) {
        do {
            guard let keep = try keep else { return }
            var note = try load()
            change(&note)
            _ = note.note(heads, at: now, days: 4 * keep.mostDays)
            try store.storage.cachePut(RetentionNote.name, note.bytes)
        } catch { Log.write(.info, "What of \(store.description) is elsewhere was not noted: \(error)") }
    }
}
