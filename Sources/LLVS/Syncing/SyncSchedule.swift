/// When a syncer's next round is due, and which places it visits: a value that is told what happens and what time it is, and does nothing
/// by itself (docs/background-sync.md). Times are seconds of a clock that only grows.
struct SyncSchedule {
    /// Delays, in seconds.
    struct Pace: Sendable {
        /// After the last save, and at most after the first.
        var quietAfterSave = 2.0, longestAfterSave = 10.0
        /// Between polls: at first, and at most.
        var poll = 30.0, longestPoll = 900.0
        /// How long polls stay frequent after something came or went.
        var lively = 300.0
        /// Saves are only sent to who was retrieved from within this time.
        var freshness = 30.0
        /// Rounds because the application came to the front, and because of news, are at least this far apart; so are merges of what came
        /// otherwise, as rounds because of news.
        var frontSpacing = 5.0, newsSpacing = 1.0
        /// Of failures: the first pause, and the longest.
        var firstPause = 1.0, longestPause = 900.0
        /// Until something is sent again to a place without room, or that refuses what is sent.
        var roomPause = 3_600.0
        /// How long the other places of a round, and the merge, wait for one.
        var turn = 30.0
    }

    /// What leads to a round.
    enum Trigger: Sendable {
        case save, front, news, user
        /// Versions came into the store otherwise than in a round: over a link, by another process, by an import.
        case arrival
    }

    typealias Reason = Syncer.Reason
    typealias Conditions = Syncer.Conditions

    /// An attached exchange.
    struct Place: Sendable {
        var name: String
        /// How it is called for people.
        var title: String
        var reason = Reason.none
        var failures = 0
        /// Not before, whoever asks: what a server asked for.
        var notBefore = -Double.infinity
        /// Not before, by the clock.
        var retryAt = -Double.infinity
        /// Nothing is sent before, by the clock: it has no room, or refuses what is sent. Polls go on.
        var sendAt = -Double.infinity
        /// Who asks may read there and not write: until then, or until somebody asks, it is only received from.
        var mayNotSend = false
        /// Only a person can answer what it failed with: the clock does not help.
        var waitsForUser = false
        var retrievedAt = -Double.infinity
    }

    /// A round that is due.
    struct Round: Equatable, Sendable {
        var places: [String]
        /// Whether nothing is retrieved and merged.
        var onlySends: Bool
        /// Those of the places to which nothing is sent.
        var onlyReceive: Set<String> = []
        /// Whether nothing is exchanged: what came otherwise is merged.
        var onlyMerges: Bool { places.isEmpty }
        static let merging = Round(places: [], onlySends: false)
    }

    /// The next thing to do.
    enum Next: Equatable {
        case now(Round)
        /// Nothing until then, or until something happens.
        case at(Double)
        case whenTold
    }

    var pace = Pace()
    var conditions: Conditions = []
    private(set) var places: [Place] = []
    /// Places that are still being exchanged with, beside what else is due.
    private var left: Set<String> = []
    private var open: [Place] { left.isEmpty ? places : places.filter { !left.contains($0.name) } }
    private var firstSave: Double?, lastSave: Double?
    /// When something is to be sent that was left to others until then.
    var lateSend: Double?
    private var asked: (front: Bool, news: Bool, user: Bool) = (true, false, false)
    /// Something came that no round has merged.
    private var hasArrivals = false
    private var lastMerge = -Double.infinity
    /// How many wait for a round.
    private var waiting = 0
    /// Whether saves led to the round that runs.
    private var isOfSaves = false
    private var lastRound = -Double.infinity, lastSuccess = -Double.infinity, lastMoved = -Double.infinity
    private var interval: Double, nextPoll = -Double.infinity
    /// Between 0 and 1; drawn anew for each use.
    private let draw: @Sendable () -> Double

    init(pace: Pace = Pace(), draw: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }) {
        self.pace = pace
        self.draw = draw
        interval = pace.poll
    }

    /// Takes over which places there are; those that stay keep their state.
    mutating func attach(_ names: [(name: String, title: String)]) {
        places = names.map { name in places.first { $0.name == name.name } ?? Place(name: name.name, title: name.title) }
    }

    /// Another exchange has the name by now: what is known of the one before does not hold.
    mutating func forget(_ name: String) {
        places.removeAll { $0.name == name }
        left.remove(name)
    }

    /// A round goes on without a place, which is not due until its exchange is over.
    mutating func leave(_ name: String) { left.insert(name) }
    mutating func comeBack(_ name: String) { left.remove(name) }

    /// Somebody waits for a round as a user who asks for one, or does not any more although none began.
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

    /// Whether somebody asks for a round now.
    var isAsked: Bool { asked.user || waiting > 0 }

    /// What is to be done at `now`. What came is merged by a whole round if one is due, else apart, also without places and offline.
    func next(_ now: Double) -> Next {
        let exchange = nextExchange(now)
        guard hasArrivals, !conditions.contains(.paused) else { return exchange }
        if case .now(let round) = exchange, !round.onlySends { return exchange }
        // What comes of a place that goes on is merged when it is over, as in a round; what else comes does not wait for that.
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

    /// When a round is wanted, and when sending alone is.
    private var wanted: (whole: Double, sends: Double) {
        var whole = conditions.contains(.background) ? Double.infinity : nextPoll
        if asked.front { whole = min(whole, lastSuccess + pace.frontSpacing) }
        if asked.news { whole = min(whole, lastRound + pace.newsSpacing) }
        let late = lateSend ?? .infinity
        guard let firstSave, let lastSave else { return (whole, late) }
        return (whole, min(late, lastSave + pace.quietAfterSave, firstSave + pace.longestAfterSave))
    }

    /// When a place is visited, if rounds are wanted from `wanted` on.
    private func due(_ place: Place, _ wanted: Double) -> Double {
        if place.waitsForUser && !asked.front && !place.mayNotSend { return .infinity }
        // One that failed is tried again by the clock, without another reason; but what another process does is no failure.
        let again = [.noSpace, .signIn].contains(place.reason) ? max(place.retryAt, place.sendAt) : place.retryAt
        let isByClock = place.reason != .none && (place.reason != .alreadyRunning || place.retryAt > -.infinity)
        let retry = isByClock && !conditions.contains(.background) ? again : Double.infinity
        return max(min(wanted, retry), place.notBefore, place.retryAt)
    }

    /// Whether somebody has to do something, most likely.
    static func needsSomebody(_ reason: Reason) -> Bool { [.signIn, .updateApp, .passphrase, .remoteReset].contains(reason) }

    /// What became of one place.
    struct Outcome: Sendable {
        var name: String
        var reason = Reason.none
        /// Whether only a person can answer that: by a password, a consent or a payment.
        var needsUser = false
        /// What a server asked for, in seconds.
        var retryAfter: Double?
        /// Whether it was retrieved from.
        var retrieved = true
        /// Whether it was to be sent to, and whether that is what failed.
        var sends = true, failedToSend = false
        /// Whether versions came or went.
        var moved = false
    }

    /// A round begins: what asked for it is served by it. What is told from here on asks for another.
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

    /// A round that merged alone is over.
    mutating func finishMerging(at now: Double) { lastMerge = now }

    /// A round is over.
    mutating func finish(_ outcomes: [Outcome], at now: Double, isInterrupted: Bool = false) {
        lastRound = now
        for outcome in outcomes {
            guard let i = places.firstIndex(where: { $0.name == outcome.name }) else { continue }
            if outcome.moved { lastMoved = now }
            if outcome.reason == .none, !outcome.sends {
                // There is no more room than before, nor another right.
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
                // Another process does what is due. Saves that led here are looked after again, and polls are frequent meanwhile.
                lastMoved = now
                places[i].retryAt = isOfSaves || places[i].retryAt > -.infinity ? now + pace.longestAfterSave : -Double.infinity
                continue
            }
            places[i].failures += 1
            if let after = outcome.retryAfter { places[i].notBefore = now + min(max(0, after), 86_400) }
            if outcome.reason == .noSpace {
                // Where this device has no room for what is received nothing goes on.
                let again = now + pace.roomPause
                (places[i].sendAt, places[i].retryAt) = outcome.failedToSend ? (again, -Double.infinity) : (-Double.infinity, again)
                continue
            }
            if outcome.reason == .signIn {
                // Who may read goes on receiving. If that is refused as well, all of it waits.
                places[i].mayNotSend = outcome.failedToSend
                places[i].sendAt = outcome.failedToSend ? (outcome.needsUser ? .infinity : now + pace.roomPause) : -.infinity
                if outcome.failedToSend { places[i].retryAt = -.infinity; continue }
            }
            let longest = min(pace.longestPause, pace.firstPause * Double(1 << min(places[i].failures - 1, 20)))
            places[i].retryAt = now + longest * draw()
        }
        if isInterrupted {
            // What it left is for the next one, which comes soon.
            if isOfSaves { tell(.save, at: now) }
            nextPoll = nextPoll > now ? min(nextPoll, now + pace.quietAfterSave) : now + pace.quietAfterSave
            return
        }
        let isSeldom = !conditions.isDisjoint(with: [.metered, .lowBattery])
        interval = now - lastMoved <= pace.lively ? pace.poll : min(pace.longestPoll, interval * 1.5)
        nextPoll = now + interval * (0.8 + 0.4 * draw()) * (isSeldom ? 4 : 1)
    }
}
