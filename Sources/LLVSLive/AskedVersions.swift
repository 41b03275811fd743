/// The versions that were requested over the links of a store and have not arrived. While a version is on its way over one link, it is
/// not requested over another.
///
/// A device may stall, end the link, or send something else, so no link is relied on for long: docs/live-protocol.md, "NEWS".
struct AskedVersions {
    /// Identifies a link.
    typealias Link = ObjectIdentifier
    /// Seconds without versions or values over a link after which other links are asked; and the most seconds for which a link is not
    /// asked.
    static let quiet = 3.0, patience = 5.0

    private var links: [VersionID: Link] = [:]
    private var asked: [Link: (ids: Set<VersionID>, heardAt: Double)] = [:]
    /// Links that did not deliver in time: how often, and how many versions arrived over them since the last time. Such a link is not
    /// relied on again until the versions are as many as the failures.
    private var idle: [Link: (times: Int, came: Int)] = [:]

    /// Returns whether a version is on its way over another link.
    func isElsewhere(_ id: VersionID, than link: Link, at now: Double) -> Bool {
        guard let other = links[id], other != link, isWaitedFor(other), let heardAt = asked[other]?.heardAt else { return false }
        return now - heardAt < AskedVersions.quiet
    }
    private func isWaitedFor(_ link: Link) -> Bool { idle[link].map { $0.came >= $0.times } ?? true }

    /// - Parameter isLate: whether another link was asked for the versions before, and did not send them in time.
    mutating func note(_ ids: [VersionID], over link: Link, isLate: Bool = true, at now: Double) {
        guard !ids.isEmpty else { return }
        if isLate {
            for other in Set(ids.compactMap { links[$0] }) where other != link && isWaitedFor(other) {
                idle[other] = (min(idle[other]?.times ?? 0, LiveFrame.newsLimit) + 1, 0)
            }
        }
        remove(ids)
        // A device that announces more and more versions and sends none takes no more memory than one frame's versions.
        if (asked[link]?.ids.count ?? 0) + ids.count > LiveFrame.newsLimit { forget(link) }
        for id in ids { links[id] = link }
        asked[link, default: ([], now)].ids.formUnion(ids)
        asked[link]?.heardAt = now
    }

    /// Records that requested versions or values arrive over a link.
    mutating func heard(_ link: Link, at now: Double) { if !asked.isEmpty { asked[link]?.heardAt = now } }

    /// Records that versions were stored, which arrived over a link.
    mutating func came(_ ids: [VersionID], over link: Link) {
        if let was = idle[link] { idle[link] = (was.times, min(was.came, LiveFrame.newsLimit) + ids.count) }
        remove(ids)
    }
    /// Removes versions that were stored, or are requested over another link.
    private mutating func remove(_ ids: [VersionID]) {
        guard !links.isEmpty else { return }
        for id in ids {
            guard let link = links.removeValue(forKey: id) else { continue }
            asked[link]?.ids.remove(id)
            if asked[link]?.ids.isEmpty == true { asked[link] = nil }
        }
    }

    /// Records that a link has ended.
    mutating func end(_ link: Link) {
        forget(link)
        idle[link] = nil
    }
    private mutating func forget(_ link: Link) { for id in asked.removeValue(forKey: link)?.ids ?? [] { links[id] = nil } }
}

extension PeerKnowledge {
    /// Returns the versions to request over a link: those that are not stored. Records them as requested.
    /// - Parameters:
    ///   - evenElsewhere: whether to request also versions that are on their way over another link.
    ///   - isLate: whether the time for versions on their way has passed.
    /// - Returns: nil if some of them are on their way over another link.
    func lacking(
        _ ids: [VersionID], over link: AskedVersions.Link, in store: Store, evenElsewhere: Bool, isLate: Bool = true,
        at now: Double = Clock.steady()
    ) throws -> [VersionID]? {
        try state.withLock { state in
            // Check within the lock: versions are stored first, and only then removed from the requested ones.
            let unknown = try store.unknown(among: ids)
            guard evenElsewhere || !unknown.contains(where: { state.asked.isElsewhere($0, than: link, at: now) }) else { return nil }
            state.asked.note(unknown, over: link, isLate: isLate, at: now)
            return unknown
        }
    }
    func noteCame(_ ids: [VersionID], over link: AskedVersions.Link) { state.withLock { $0.asked.came(ids, over: link) } }
    func noteHeard(_ link: AskedVersions.Link, at now: Double = Clock.steady()) { state.withLock { $0.asked.heard(link, at: now) } }
}
