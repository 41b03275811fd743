/// What was asked for over which link of a store, and has not come: another link is not asked for it as well while that is on its way.
///
/// Who was asked may stall, end, or send something else, so nobody is relied on for long: docs/live-protocol.md, "NEWS".
struct AskedVersions {
    /// Which of the links.
    typealias Link = ObjectIdentifier
    /// Seconds without versions or values over a link that was asked, after which others are; and for how long one is not asked at most.
    static let quiet = 3.0, patience = 5.0

    private var links: [VersionID: Link] = [:]
    private var asked: [Link: (ids: Set<VersionID>, heardAt: Double)] = [:]
    /// Links in whose place others were asked: how often, and how many versions came over them since the last time. None of them is waited
    /// for before these are as many.
    private var idle: [Link: (times: Int, came: Int)] = [:]

    /// Whether a version is on its way over another link.
    func isElsewhere(_ id: VersionID, than link: Link, at now: Double) -> Bool {
        guard let other = links[id], other != link, isWaitedFor(other), let heardAt = asked[other]?.heardAt else { return false }
        return now - heardAt < AskedVersions.quiet
    }
    private func isWaitedFor(_ link: Link) -> Bool { idle[link].map { $0.came >= $0.times } ?? true }

    /// - Parameter isLate: whether a link that was asked for them before has not sent them in time.
    mutating func note(_ ids: [VersionID], over link: Link, isLate: Bool = true, at now: Double) {
        guard !ids.isEmpty else { return }
        if isLate {
            for other in Set(ids.compactMap { links[$0] }) where other != link && isWaitedFor(other) {
                idle[other] = (min(idle[other]?.times ?? 0, LiveFrame.newsLimit) + 1, 0)
            }
        }
        remove(ids)
        // Who tells of ever more and sends none of it takes no more room than by one frame.
        if (asked[link]?.ids.count ?? 0) + ids.count > LiveFrame.newsLimit { forget(link) }
        for id in ids { links[id] = link }
        asked[link, default: ([], now)].ids.formUnion(ids)
        asked[link]?.heardAt = now
    }

    /// Something of what was asked for comes over a link.
    mutating func heard(_ link: Link, at now: Double) { if !asked.isEmpty { asked[link]?.heardAt = now } }

    /// These are here, by a link.
    mutating func came(_ ids: [VersionID], over link: Link) {
        if let was = idle[link] { idle[link] = (was.times, min(was.came, LiveFrame.newsLimit) + ids.count) }
        remove(ids)
    }
    /// These are here, or asked for elsewhere.
    private mutating func remove(_ ids: [VersionID]) {
        guard !links.isEmpty else { return }
        for id in ids {
            guard let link = links.removeValue(forKey: id) else { continue }
            asked[link]?.ids.remove(id)
            if asked[link]?.ids.isEmpty == true { asked[link] = nil }
        }
    }

    /// A link has ended.
    mutating func end(_ link: Link) {
        forget(link)
        idle[link] = nil
    }
    private mutating func forget(_ link: Link) { for id in asked.removeValue(forKey: link)?.ids ?? [] { links[id] = nil } }
}

extension PeerKnowledge {
    /// Which of these versions are to be asked for over a link: those that are not here. They count as asked for.
    /// - Parameters:
    ///   - evenElsewhere: also those that are on their way over another link.
    ///   - isLate: whether that has had its time.
    /// - Returns: nil while some of them are on their way over another link.
    func lacking(
        _ ids: [VersionID], over link: AskedVersions.Link, in store: Store, evenElsewhere: Bool, isLate: Bool = true,
        at now: Double = Clock.steady()
    ) throws -> [VersionID]? {
        try state.withLock { state in
            // Within it, as what comes is stored first and then not asked for any more.
            let unknown = try store.unknown(among: ids)
            guard evenElsewhere || !unknown.contains(where: { state.asked.isElsewhere($0, than: link, at: now) }) else { return nil }
            state.asked.note(unknown, over: link, isLate: isLate, at: now)
            return unknown
        }
    }
    func noteCame(_ ids: [VersionID], over link: AskedVersions.Link) { state.withLock { $0.asked.came(ids, over: link) } }
    func noteHeard(_ link: AskedVersions.Link, at now: Double = Clock.steady()) { state.withLock { $0.asked.heard(link, at: now) } }
}
