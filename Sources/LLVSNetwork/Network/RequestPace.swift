/// The rate limit of an account's requests to a service, shared by all exchanges of this process with it: a token bucket if the service
/// has a known limit, and a pause of all requests if the service reports too many.
package final class RequestPace: Sendable {
    /// The longest pause in seconds. A server may give a nonsensical time, and reopening the exchange does not end a pause.
    static let longestPause = 86_400.0
    private struct State {
        var tokens: Double
        var refilled: Double
        var notBefore = -Double.infinity
    }
    private let perSecond: Double?
    /// The most requests at once after a time without any.
    private let depth: Double
    /// The name by which other exchanges find it.
    private let name: String?
    private let state: Guarded<State>

    /// - Parameter perSecond: the requests per second, and at once after a second without any; nil for no limit.
    package convenience init(perSecond: Double?) { self.init(perSecond, depth: nil, name: nil, notBefore: -.infinity) }
    private init(_ perSecond: Double?, depth: Double?, name: String?, notBefore: Double) {
        self.perSecond = perSecond.map { max($0, 0.1) }
        self.depth = max(1, depth ?? perSecond ?? 1)
        self.name = name
        state = Guarded(State(tokens: self.depth, refilled: Clock.steady(), notBefore: notBefore))
    }

    /// The time by `Clock.steady` before which no request is made.
    var notBefore: Double { state.withLock { $0.notBefore } }
    package func pause(until time: Double) {
        let time = min(time, Clock.steady() + RequestPace.longestPause)
        state.withLock { $0.notBefore = max($0.notBefore, time) }
        guard let name else { return }
        RequestPace.all.withLock { all in
            guard var known = all[name] else { return }
            known.notBefore = max(known.notBefore, time)
            all[name] = known
        }
    }

    /// Returns whether a request may be made now. `take` counts it.
    func has(_ now: Double) -> Bool {
        guard let perSecond else { return true }
        return state.withLock { $0.tokens + max(0, now - $0.refilled) * perSecond >= 1 }
    }
    /// Returns whether a request may be made now, and counts it then.
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

    // MARK: Accounts

    private static let all = Guarded<[String: Known]>([:])
    private struct Known: Sendable {
        weak var pace: RequestPace?
        /// Outlives the exchanges: a reopened exchange must respect the pause as well.
        var notBefore: Double
    }

    /// Returns the rate limit of an account in this process.
    /// - Parameter depth: the most requests at once after a time without any; nil for those of a second.
    package static func shared(_ account: String, perSecond: Double?, depth: Double? = nil) -> RequestPace {
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
