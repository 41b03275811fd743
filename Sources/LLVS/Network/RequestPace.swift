/// How many requests an account may make to a service, shared by all exchanges of this process with it: a token bucket where the service
/// has a known limit, and a gate that stops them all when the service says that there are too many.
final class RequestPace: Sendable {
    /// Seconds that the gate is closed at most: what a server says may be nonsense, and opening again does not help.
    static let longestPause = 86_400.0
    private struct State {
        var tokens: Double
        var refilled: Double
        var notBefore = -Double.infinity
    }
    private let perSecond: Double?
    /// Requests that may be made at once after a time without.
    private let depth: Double
    /// By which others find it.
    private let name: String?
    private let state: Guarded<State>

    /// - Parameter perSecond: requests that may be made each second, and at once after a second without; nil: as many as the server takes.
    convenience init(perSecond: Double?) { self.init(perSecond, depth: nil, name: nil, notBefore: -.infinity) }
    private init(_ perSecond: Double?, depth: Double?, name: String?, notBefore: Double) {
        self.perSecond = perSecond.map { max($0, 0.1) }
        self.depth = max(1, depth ?? perSecond ?? 1)
        self.name = name
        state = Guarded(State(tokens: self.depth, refilled: Clock.steady(), notBefore: notBefore))
    }

    /// By `Clock.steady`: nothing is asked before.
    var notBefore: Double { state.withLock { $0.notBefore } }
    func pause(until time: Double) {
        let time = min(time, Clock.steady() + RequestPace.longestPause)
        state.withLock { $0.notBefore = max($0.notBefore, time) }
        guard let name else { return }
        RequestPace.all.withLock { all in
            guard var known = all[name] else { return }
            known.notBefore = max(known.notBefore, time)
            all[name] = known
        }
    }

    /// Whether a request may be made now. It counts when it is taken.
    func has(_ now: Double) -> Bool {
        guard let perSecond else { return true }
        return state.withLock { $0.tokens + max(0, now - $0.refilled) * perSecond >= 1 }
    }
    /// Whether a request may be made now, which then counts.
    func take(_ now: Double) -> Bool {
        guard let perSecond else { return true }
        return state.withLock { state in
            let gained = max(0, now - state.refilled) * perSecond
            state.tokens = min(depth, state.tokens + gained)
            state.refilled = max(state.refilled, now)
            guard state.tokens >= 1 else { return false }
            state.tokens -= 1
            return true
        }
    }

    // MARK: Of one account

    private static let all = Guarded<[String: Known]>([:])
    private struct Known: Sendable {
        weak var pace: RequestPace?
        /// Outlives the exchanges: one that is opened anew is to leave the account alone as well.
        var notBefore: Double
    }

    /// The one of that account in this process.
    /// - Parameter depth: requests that may be made at once after a time without; nil: those of a second.
    static func shared(_ account: String, perSecond: Double?, depth: Double? = nil) -> RequestPace {
        let name = "\(account) \(perSecond ?? 0)", now = Clock.steady()
        return all.withLock { all in
            if let known = all[name]?.pace { return known }
            all = all.filter { $0.value.pace != nil || $0.value.notBefore > now }
            let notBefore = all[name]?.notBefore ?? -.infinity
            let made = RequestPace(perSecond, depth: depth, name: name, notBefore: notBefore)
            all[name] = Known(pace: made, notBefore: notBefore)
            return made
        }
    }
}
