/// Decides when a syncer's next round is due, and which places it visits. It is a value without a clock: callers pass events and the time
/// (docs/background-sync.md). Times are seconds of a monotonic clock.
struct SyncSchedule {
    /// Delays, in seconds.
    struct Pace: Sendable {
        /// The delay after the last save, and the longest delay after the first save.
        var quietAfterSave = 2.0, longestAfterSave = 10.0
        /// The interval between polls: the shortest and the longest.
        var poll = 30.0, longestPoll = 900.0
        /// How long polls remain frequent after versions were received or sent.
        var lively = 300.0
        /// Saves alone are only sent to a place if the device received from it within this time.
        var freshness = 30.0
        /// The shortest interval between rounds that are due because the application came to the front, and between those that news led to.
        /// The latter also applies to merges of arrivals.
        var frontSpacing = 5.0, newsSpacing = 1.0
        /// The pause after a first failure, and the longest pause after failures.
        var firstPause = 1.0, longestPause = 900.0
        /// The pause before sending again to a place without room, or to a place that refused the versions.
        var roomPause = 3_600.0
        /// How long the other places of a round, and the merge, wait for one place.
        var turn = 30.0

        /// Returns how long a round waits for a place after it waited for other places in vain. All waits together take no longer than two
        /// full ones.
        func pause(after awaited: Int) -> Double { turn / Double(1 << min(max(0, awaited), 62)) }
    }

    /// A reason for a round.
    enum Trigger: Sendable {
        case save, front, news, user
        /// Versions came into the store outside of a round: over a link, by another process, or by an import.
        case arrival
    }

    typealias Reason = Syncer.Reason
    typealias Conditions = Syncer.Conditions

    /// An attached exchange.
    struct Place: Sendable {
        var name: String
        /// The name of the place for people.
        var title: String
        var reason = Reason.none
        var failures = 0
        /// The earliest next visit, whatever the trigger: the time that a server asked for.
        var notBefore = -Double.infinity
        /// The earliest next visit by the clock.
        var retryAt = -Double.infinity
        /// The earliest next sending, by the clock: the place has no room, or refuses the versions. Polls continue.
        var sendAt = -Double.infinity
        /// This device may read the place but not write to it. Until `sendAt`, or until the user asks, it only receives.
        var mayNotSend = false
        /// Only a person can resolve the failure, so it is not retried by the clock.
        var waitsForUser = false
        var retrievedAt = -Double.infinity
    }

    /// A round that is due.
    struct Round: Equatable, Sendable {
        var places: [String]
        /// Whether the round only sends, without receiving and merging.
        var onlySends: Bool
        /// The places that the round only receives from.
        var onlyReceive: Set<String> = []
        /// Whether the round exchanges nothing and only merges arrivals.
        var onlyMerges: Bool { places.isEmpty }
        static let merging = Round(places: [], onlySends: false)
    }

    /// The next action.
    enum Next: Equatable {
        /// A round is due.
        case now(Round)
        /// Nothing is due before that time, unless an event occurs.
        case at(Double)
        /// Nothing is due until an event occurs.
        case whenTold
    }

    var pace = Pace()
    var conditions: Conditions = []
    private(set) var places: [Place] = []
    /// Places with an exchange that is still under way although its round has ended.
    private var left: Set<String> = []
    private var open: [Place] { left.isEmpty ? places : places.filter { !left.contains($0.name) } }
    private var firstSave: Double?, lastSave: Double?
    /// When this device sends versions of other devices: until then their makers are expected to send them.
    var lateSend: Double?
    private var asked: (front: Bool, news: Bool, user: Bool) = (true, false, false)
    /// Versions arrived that no round has merged.
    private var hasArrivals = false
    private var lastMerge = -Double.infinity
    /// The number of calls that wait for a round.
    private var waiting = 0
    /// Whether saves led to the running round.
    private var isOfSaves = false
    private var lastRound = -Double.infinity, lastSuccess = -Double.infinity, lastMoved = -Double.infinity
    private var interval: Double, nextPoll = -Double.infinity
    /// Returns a random number between 0 and 1.
    private let draw: @Sendable () -> Double

    init(pace: Pace = Pace(), draw: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }) {
        self.pace = pace
        self.draw = draw
        interval = pace.poll
    }

    /// Updates the list of places. Those that remain keep their state.
    mutating func attach(_ names: [(name: String, title: String)]) {
        places = names.map { name in places.first { $0.name == name.name } ?? Place(name: name.name, title: name.title) }
    }

    /// Discards the state of a place: its name now belongs to another exchange.
    mutating func forget(_ name: String) {
        places.removeAll { $0.name == name }
        left.remove(name)
    }

    /// Excludes a place until its exchange ends: its round continues without it.
    mutating func leave(_ name: String) { left.insert(name) }
    mutating func comeBack(_ name: String) { left.remove(name) }

    /// Counts a call that waits for a round, as if the user asked for one; `withdraw` if the call ends before a round began.
    mutating func wait() { waiting += 1 }
    mutating func withdraw() { waiting = max(0, waiting - 1) }

    mutating func tell(_ trigger: Trigger, at now: Double) {
        switch trigger {
        case .save:
            if firstSave == nil { firstSave = now }
            lastSave = now
        case .news: asked.news = true
        case .user: asked.user = true
        case .arrival: hasArrivals = true
        case .front:
            asked.front = true
            for i in places.indices {
                places[i].retryAt = -Double.infinity
                if !places[i].mayNotSend { places[i].sendAt = -Double.infinity }
            }
        }
    }

    /// Returns whether the user or a waiting call wants a round now.
    var isAsked: Bool { asked.user || waiting > 0 }

    /// Returns the next action. A whole round also merges arrivals. If none is due, arrivals are merged alone, even without places or
    /// offline.
    func next(_ now: Double) -> Next {
        let exchange = nextExchange(now)
        guard hasArrivals, !conditions.contains(.paused) else { return exchange }
        if case .now(let round) = exchange, !round.onlySends { return exchange }
        // Versions from a place that is still being exchanged with are merged when its exchange ends, as in a round. Other arrivals do not
        // wait for it.
        let due = lastMerge + (left.isEmpty ? pace.newsSpacing : max(pace.newsSpacing, pace.turn))
        if due <= now { return .now(.merging) }
        return switch exchange {
        case .now: exchange
        case .at(let moment): .at(min(moment, due))
        case .whenTold: .at(due)
        }
    }

    private func nextExchange(_ now: Double) -> Next {
        let places = open
        if places.isEmpty { return .whenTold }
        if isAsked {
            let ready = places.filter { $0.notBefore <= now }.map(\.name)
            if !ready.isEmpty { return .now(Round(places: ready, onlySends: false)) }
            return .at(places.map(\.notBefore).min() ?? now)
        }
        if !conditions.isDisjoint(with: [.offline, .paused]) { return .whenTold }
        let (whole, sends) = wanted
        let dues = places.map { due($0, min(whole, max(sends, $0.sendAt))) }
        let ready = zip(places, dues).filter { $0.1 <= now }.map(\.0)
        guard ready.isEmpty else {
            let isFresh = ready.allSatisfy { now - $0.retrievedAt <= pace.freshness }
            let full = ready.filter { $0.sendAt > now && !(asked.front && $0.mayNotSend) }.map(\.name)
            return .now(Round(places: ready.map(\.name), onlySends: whole > now && isFresh, onlyReceive: Set(full)))
        }
        let first = dues.min() ?? .infinity
        return first < .infinity ? .at(first) : .whenTold
    }

    /// The time for the next whole round, and that for the next sending.
    private var wanted: (whole: Double, sends: Double) {
        var whole = conditions.contains(.background) ? Double.infinity : nextPoll
        if asked.front { whole = min(whole, lastSuccess + pace.frontSpacing) }
        if asked.news { whole = min(whole, lastRound + pace.newsSpacing) }
        let late = lateSend ?? .infinity
        guard let firstSave, let lastSave else { return (whole, late) }
        return (whole, min(late, lastSave + pace.quietAfterSave, firstSave + pace.longestAfterSave))
    }

    /// Returns when to visit a place, if rounds are wanted from `wanted` on.
    private func due(_ place: Place, _ wanted: Double) -> Double {
        if place.waitsForUser && !asked.front && !place.mayNotSend { return .infinity }
        // A failed place is retried by the clock, without another reason. A place that another process exchanges with has not failed.
        let again = [.noSpace, .signIn].contains(place.reason) ? max(place.retryAt, place.sendAt) : place.retryAt
        let isByClock = place.reason != .none && (place.reason != .alreadyRunning || place.retryAt > -.infinity)
        let retry = isByClock && !conditions.contains(.background) ? again : Double.infinity
        return max(min(wanted, retry), place.notBefore, place.retryAt)
    }

    /// Returns whether the failure most likely requires a person.
    static func needsSomebody(_ reason: Reason) -> Bool { [.signIn, .updateApp, .passphrase, .remoteReset].contains(reason) }

    /// The result of a round for one place.
    struct Outcome: Sendable {
        var name: String
        var reason = Reason.none
        /// Whether only a person can resolve the failure: by a password, a consent or a payment.
        var needsUser = false
        /// The pause that a server asked for, in seconds.
        var retryAfter: Double?
        /// Whether the round received from the place.
        var retrieved = true
        /// Whether the round was to send to the place, and whether the sending failed.
        var sends = true, failedToSend = false
        /// Whether versions were received or sent.
        var moved = false
    }

    /// Begins a round, which serves all triggers so far. Later triggers lead to another round.
    mutating func begin(_ round: Round) {
        if !round.onlySends { hasArrivals = false }
        if round.onlyMerges { return }
        isOfSaves = firstSave != nil
        firstSave = nil
        lastSave = nil
        lateSend = nil
        if !round.onlySends {
            asked = (false, false, false)
            waiting = 0
        }
    }

    /// Ends a round that only merged.
    mutating func finishMerging(at now: Double) { lastMerge = now }

    /// Ends a round.
    mutating func finish(_ outcomes: [Outcome], at now: Double, isInterrupted: Bool = false) {
        lastRound = now
        for outcome in outcomes {
            guard let i = places.firstIndex(where: { $0.name == outcome.name }) else { continue }
            if outcome.moved { lastMoved = now }
            if outcome.reason == .none, !outcome.sends {
                // The place still has no more room, or this device no more rights, than before.
                places[i].reason = places[i].mayNotSend ? .signIn : .noSpace
                places[i].retryAt = -Double.infinity
                places[i].notBefore = -Double.infinity
                lastSuccess = now
                continue
            }
            places[i].reason = outcome.reason
            places[i].waitsForUser = outcome.needsUser
            if outcome.sends { (places[i].sendAt, places[i].mayNotSend) = (-Double.infinity, false) }
            if outcome.reason == .none {
                places[i].failures = 0
                places[i].retryAt = -Double.infinity
                places[i].notBefore = -Double.infinity
                if outcome.retrieved { places[i].retrievedAt = now }
                lastSuccess = now
                continue
            }
            places[i].retrievedAt = -Double.infinity
            if outcome.reason == .alreadyRunning {
                // Another process exchanges with the place. If saves led to this round, it is checked again later. Polls are frequent
                // meanwhile.
                lastMoved = now
                places[i].retryAt = isOfSaves || places[i].retryAt > -.infinity ? now + pace.longestAfterSave : -Double.infinity
                continue
            }
            places[i].failures += 1
            if let after = outcome.retryAfter { places[i].notBefore = now + min(max(0, after), 86_400) }
            if outcome.reason == .noSpace {
                // If this device has no room to receive, the place is neither received from nor sent to.
                let again = now + pace.roomPause
                (places[i].sendAt, places[i].retryAt) = outcome.failedToSend ? (again, -Double.infinity) : (-Double.infinity, again)
                continue
            }
            if outcome.reason == .signIn {
                // If only sending was refused, receiving continues. If receiving was refused as well, the place waits.
                places[i].mayNotSend = outcome.failedToSend
                places[i].sendAt = outcome.failedToSend ? (outcome.needsUser ? .infinity : now + pace.roomPause) : -.infinity
                if outcome.failedToSend { places[i].retryAt = -.infinity; continue }
            }
            let longest = min(pace.longestPause, pace.firstPause * Double(1 << min(places[i].failures - 1, 20)))
            places[i].retryAt = now + longest * draw()
        }
        if isInterrupted {
            // The next round comes soon, and does what this one left.
            if isOfSaves { tell(.save, at: now) }
            nextPoll = nextPoll > now ? min(nextPoll, now + pace.quietAfterSave) : now + pace.quietAfterSave
            return
        }
        let isSeldom = !conditions.isDisjoint(with: [.metered, .lowBattery])
        interval = now - lastMoved <= pace.lively ? pace.poll : min(pace.longestPoll, interval * 1.5)
        nextPoll = now + interval * (0.8 + 0.4 * draw()) * (isSeldom ? 4 : 1)
    }
}
