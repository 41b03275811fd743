/// How many requests an account may make to a service, shared by all exchanges of this process with it: a token bucket, and a gate that
/// stops them all when the service says that there are too many.
final class RequestPace: Sendable {
    private struct State {
        var tokens: Double
        var refilled: Double
        var notBefore = -Double.infinity
    }
    private let perSecond: Double
    private let state: Guarded<State>

    /// - Parameter perSecond: requests that may be made each second, and at once after a second without.
    init(perSecond: Double) {
        self.perSecond = max(perSecond, 0.1)
        state = Guarded(State(tokens: max(1, perSecond), refilled: Clock.steady()))
    }

    /// By `Clock.steady`: nothing is asked before.
    var notBefore: Double { state.withLock { $0.notBefore } }
    func pause(until time: Double) { state.withLock { $0.notBefore = max($0.notBefore, time) } }

    /// Whether a request may be made now, which then counts.
    func take(_ now: Double) -> Bool {
        state.withLock { state in
            let gained = max(0, now - state.refilled) * perSecond
            state.tokens = min(max(1, perSecond), state.tokens + gained)
            state.refilled = max(state.refilled, now)
            guard state.tokens >= 1 else { return false }
            state.tokens -= 1
            return true
        }
    }

    // MARK: Of one account

    private static let all = Guarded<[String: Weak]>([:])
    private struct Weak: Sendable { weak var pace: RequestPace? }

    /// The one of that account in this process.
    static func shared(_ account: String, perSecond: Double) -> RequestPace {
        let name = "\(account) \(perSecond)"
        return all.withLock { all in
            if let known = all[name]?.pace { return known }
            all = all.filter { $0.value.pace != nil }
            let made = RequestPace(perSecond: perSecond)
            all[name] = Weak(pace: made)
            return made
        }
    }
}
