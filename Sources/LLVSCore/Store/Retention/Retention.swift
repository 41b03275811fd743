/// Finds the values that no kept version shows (docs/format.md, "Retention").
///
/// The state at a version follows from the changes on its chain of first predecessors. So a value prevails at the versions of a subtree,
/// less the subtrees of versions that change its id again. It is kept if a kept version is among them.
struct Retention {
    let store: Store
    let policy: KeepPolicy
    let note: RetentionNote
    /// Seconds since 1970.
    let now: UInt64
    /// Whether the times at which versions were made stand for those at which they came: of a policy that is not pinned.
    let isEstimate: Bool
    private let history: RetainedHistory

    /// What was found.
    struct Outcome {
        /// The indexes of the changes to forget.
        var targets: [VersionID: [Int]] = [:]
        var values: UInt64 = 0, bytes: UInt64 = 0
        /// The values that only one rule keeps, and their bytes.
        var only = [(values: UInt64, bytes: UInt64)](repeating: (0, 0), count: ForgetReport.Rule.allCases.count)
        /// The bytes on the medium of these, and of all values.
        var stored: UInt64 = 0, all: UInt64 = 0
        /// The beginnings of the digests of large values that are hollow: a killed process may have left their files.
        var hollowDigests: Set<[UInt8]> = []
    }

    init(_ store: Store, _ policy: KeepPolicy, isEstimate: Bool) throws {
        self.store = store; self.policy = policy; self.isEstimate = isEstimate
        note = try RetentionNotes(store).load()
        now = RetentionNotes(store).now
        try Memory.expect(store.lock.withRead { store.dag.rows.count } * 160, "Finding what is kept")
        history = RetainedHistory(store)
    }

    // MARK: Kept versions

    private typealias Rules = UInt8
    private static func bit(_ rule: ForgetReport.Rule) -> Rules { 1 << UInt8(truncatingIfNeeded: rule.rawValue - 1) }

    private func ordinals(_ ids: [VersionID]) -> [UInt32] {
        store.lock.withRead { ids.compactMap { store.dag.ordinal(of: $0) }.filter { Int($0) < history.count } }
    }

    /// Returns for each version whether it came before so many days.
    private func isOld(_ days: UInt64) -> [Bool] {
        if days == 0 { return history.isLive.map { $0 } }
        if isEstimate {
            let limit = Double(now) - Clock.secondsFrom1970To2001 - Double(days) * 86_400
            return history.made.map { $0 <= limit }
        }
        return note.heads(before: days, now).map { history.behind(ordinals($0)) } ?? [Bool](repeating: false, count: history.count)
    }

    /// Returns the rules that keep each version whatever the id of a value.
    private func commonRules() throws -> [Rules] {
        var rules = [Rules](repeating: 0, count: history.count)
        let (branches, unbranched) = store.lock.withRead {
            (history.heads.map { store.dag.branch($0)?.key ?? [] }, store.dag.unbranchedHeadOrdinals)
        }
        for (head, branch) in zip(history.heads, branches) where policy.keeps(branch: branch) { rules[Int(head)] |= Retention.bit(.heads) }
        for head in unbranched where policy.keeps(branch: []) && Int(head) < history.count { rules[Int(head)] |= Retention.bit(.heads) }
        // What merges of heads need, and their bases.
        var tips = history.heads
        for _ in 0..<2 {
            guard tips.count <= RetainedHistory.mostHeads else {
                throw StoreError(
                    .tooLarge,
                    "\(store.description) has more than \(RetainedHistory.mostHeads) heads, so it is not known what their merges need. "
                        + "Merge them first.")
            }
            tips = history.commonAncestors(of: tips)
            for tip in tips { rules[Int(tip)] |= Retention.bit(.merges) }
        }
        // What merges with versions need that others made meanwhile.
        for place in note.shared { for tip in history.newest(of: ordinals(place.heads)) { rules[Int(tip)] |= Retention.bit(.merges) } }
        return rules
    }

    /// Returns for each version whether no place, and no other device, is known to have it.
    private func isUnsent() throws -> [Bool] {
        if note.shared.isEmpty {
            // A store that was exchanged before it was noted what others have.
            let isShared = try store.storage.cacheNames().contains { $0.hasPrefix("packs-") || $0.hasPrefix("live-peers") }
            return [Bool](repeating: isShared, count: history.count)
        }
        return history.behind(ordinals(note.shared.flatMap(\.heads))).map { !$0 }
    }

    /// Adds the rules of one group of ids.
    private func add(_ rule: KeepPolicy.Rule, to rules: inout [Rules]) throws {
        let old = isOld(rule.days)
        for i in 0..<history.count where history.isLive[i] && !old[i] { rules[i] |= Retention.bit(.days) }
        if rule.days > 0 {
            let isClosed = isOld(rule.days &* 4)
            for i in 0..<history.count where history.isLive[i] && !isClosed[i] && history.second[i] != History.none {
                let place = store.place(of: UInt32(truncatingIfNeeded: i))
                guard try store.records.header(place).metadata[RecordedConflicts.key] != nil else { continue }
                for ordinal in [UInt32(truncatingIfNeeded: i), history.first[i], history.second[i]] where ordinal != History.none {
                    rules[Int(ordinal)] |= Retention.bit(.merges)
                }
            }
        }
        // The newest of each day, week and month on the chains of these.
        let starts = rules
        for (bit, most, divisor) in [(ForgetReport.Rule.daily, rule.daily, 1.0), (.weekly, rule.weekly, 7.0), (.monthly, rule.monthly, 0)]
        where most > 0 {
            // The number of days from a start to a version, the least of all chains.
            var passed = ContiguousArray<UInt64>(repeating: .max, count: history.count)
            for i in (0..<history.count).reversed() where history.isLive[i] {
                if starts[i] & (Retention.bit(.heads) | Retention.bit(.days)) != 0 { passed[i] = 1 }
                guard passed[i] <= most else { continue }
                guard let before = history.before(i) else { continue }
                let isSame = Retention.period(history.made[i], divisor) == Retention.period(history.made[before], divisor)
                let there = passed[i] + (isSame ? 0 : 1)
                passed[before] = min(passed[before], there)
                if !isSame, there <= most { rules[before] |= Retention.bit(bit) }
            }
        }
    }
    /// Returns the day, the week or the month of a time. 2001 began on a Monday.
    private static func period(_ time: Double, _ days: Double) -> Double {
        days > 0 ? (time / 86_400 / days).rounded(.down) : Double(CalendarMonth.number(ofSecondsSince2001: time))
    }

    // MARK: Values

    /// A change.
    private struct Event {
        /// A number for the id.
        var id: UInt32
        var ordinal: UInt32
        /// The version that stored the value that prevails from here on; `History.none`: none does.
        var stored: UInt32
        var index: UInt32
        var size: UInt32, storedSize: UInt32
        /// Whether the value has bytes here.
        var isWhole: Bool
    }

    /// - Throws: `.damaged` if a table of changes cannot be read.
    func outcome(_ control: PacedControl) throws -> Outcome {
        var ids: [[UInt8]: UInt32] = [:], groups: [Int?] = [], events: [Event] = [], outcome = Outcome()
        let large = store.storage.blobThreshold ?? .max
        for i in 0..<history.count where history.isLive[i] {
            let ordinal = UInt32(truncatingIfNeeded: i)
            guard let place = store.lock.withRead({ store.dag.isLive(i) ? store.dag.rows[i].place : nil }) else { continue }
            try control.step(1)
            try Memory.check()
            var index: UInt32 = 0
            try store.records.forEachChange(place) { entry, header in
                defer { index += 1 }
                guard !entry.id.starts(with: Retention.reserved) else { return }
                let key = Array(entry.id)
                let id = ids[key] ?? UInt32(truncatingIfNeeded: groups.count)
                if Int(id) == groups.count {
                    ids[key] = id
                    groups.append(policy.group(of: entry.id))
                }
                var event = Event(id: id, ordinal: ordinal, stored: History.none, index: index, size: 0, storedSize: 0, isWhole: false)
                switch entry.kind {
                case .insert, .update:
                    event.stored = ordinal
                    event.size = UInt32(truncatingIfNeeded: entry.size)
                    event.storedSize = UInt32(truncatingIfNeeded: entry.blob == nil ? entry.storedSize : entry.size)
                    event.isWhole = !entry.isHollow
                    if entry.isHollow, entry.size > large, let digest = entry.digest {
                        outcome.hollowDigests.insert(Array(digest.prefix(16)))
                    }
                case .preserve:
                    let version = header.dependencies[entry.dependency]
                    event.stored = store.lock.withRead { store.dag.ordinal(of: version) } ?? History.none
                case .remove, .preserveRemoval: break
                }
                try Memory.grow(&events, "Finding what is kept")
                events.append(event)
            }
        }
        let common = try commonRules(), isUnsent = try isUnsent()
        let enter = history.enter
        // Without a prefix first.
        events = try events.sorted(
            by: { a, b in
                let (x, y) = (groups[Int(a.id)] ?? -1, groups[Int(b.id)] ?? -1)
                if x != y { return x < y }
                return a.id != b.id ? a.id < b.id : enter[Int(a.ordinal)] < enter[Int(b.ordinal)]
            }, looking: control.look)
        var at = 0
        while at < events.count {
            let group = groups[Int(events[at].id)]
            let rule = group.map { policy.groups[$0].rule } ?? policy.rule
            var rules = common
            try add(rule, to: &rules)
            let kept = KeptCounts(rules, history)
            while at < events.count, groups[Int(events[at].id)] == group {
                try control.step(0)
                var end = at + 1
                while end < events.count, events[end].id == events[at].id { end += 1 }
                decide(events[at..<end], rule, kept, isUnsent, &outcome)
                at = end
            }
        }
        return outcome
    }
    /// The prefix of the ids of the library's own values, which are not forgotten.
    private static let reserved = Array("__llvs_".utf8)

    /// Decides about the values of one id.
    private func decide(
        _ events: ArraySlice<Event>, _ rule: KeepPolicy.Rule, _ kept: KeptCounts, _ isUnsent: [Bool], _ outcome: inout Outcome
    ) {
        var masks: [UInt32: Rules] = [:]
        // The changes on the way to the current one, each with the kept versions at which it prevails.
        var open: [(end: UInt32, stored: UInt32, counts: KeptCounts.Counts)] = []
        func close() {
            let last = open.removeLast()
            if last.stored != History.none { masks[last.stored, default: 0] |= last.counts.rules }
        }
        for event in events {
            let start = history.enter[Int(event.ordinal)], end = start + history.size[Int(event.ordinal)]
            while let last = open.last, last.end <= start { close() }
            let counts = kept.counts(start, end)
            if !open.isEmpty { open[open.count - 1].counts.subtract(counts) }
            open.append((end, event.stored, counts))
        }
        while !open.isEmpty { close() }
        let stored = events.filter { $0.stored == $0.ordinal }
        if rule.count > 0 {
            let newest = store.lock.withRead { stored.sorted { store.dag.isNewer($0.ordinal, $1.ordinal) } }
            for event in newest.prefix(Int(clamping: rule.count)) { masks[event.ordinal, default: 0] |= Retention.bit(.count) }
        }
        for event in stored where event.isWhole {
            var mask = masks[event.ordinal] ?? 0
            if isUnsent[Int(event.ordinal)] { mask |= Retention.bit(.unsent) }
            outcome.all &+= UInt64(event.storedSize)
            if mask == 0 {
                outcome.targets[store.versionID(event.ordinal), default: []].append(Int(event.index))
                outcome.values &+= 1
                outcome.bytes &+= UInt64(event.size)
                outcome.stored &+= UInt64(event.storedSize)
            } else if mask.nonzeroBitCount == 1 {
                outcome.only[mask.trailingZeroBitCount].values &+= 1
                outcome.only[mask.trailingZeroBitCount].bytes &+= UInt64(event.size)
            }
        }
    }
}

/// The conflicts that merges record.
package enum RecordedConflicts {
    /// The metadata key of the merges.
    package static let key = Array("__llvs_conflicts".utf8)
}

/// How many versions each rule keeps, up to a place in the walk through the tree of first predecessors.
private struct KeptCounts {
    private static let rules = 8
    private var sums: ContiguousArray<UInt32>

    init(_ rules: [UInt8], _ history: RetainedHistory) {
        sums = ContiguousArray(repeating: 0, count: (history.count + 1) * KeptCounts.rules)
        for i in 0..<history.count where history.isLive[i] {
            for rule in 0..<KeptCounts.rules where rules[i] & (1 << UInt8(truncatingIfNeeded: rule)) != 0 {
                sums[(Int(history.enter[i]) + 1) * KeptCounts.rules + rule] = 1
            }
        }
        for i in KeptCounts.rules..<sums.count { sums[i] += sums[i - KeptCounts.rules] }
    }
    struct Counts {
        fileprivate var each = SIMD8<UInt32>()
        mutating func subtract(_ other: Counts) { each &-= other.each }
        /// The rules that keep at least one version.
        var rules: UInt8 {
            var rules: UInt8 = 0
            for rule in 0..<KeptCounts.rules where each[rule] > 0 { rules |= 1 << UInt8(truncatingIfNeeded: rule) }
            return rules
        }
    }
    /// Returns the counts between two places.
    func counts(_ start: UInt32, _ end: UInt32) -> Counts {
        var counts = Counts()
        for rule in 0..<KeptCounts.rules {
            counts.each[rule] = sums[Int(end) * KeptCounts.rules + rule] &- sums[Int(start) * KeptCounts.rules + rule]
        }
        return counts
    }
}
