/// A direct connection over a socket, which the library carries on a thread of its own until it is closed, is cut, or the store is closed.
/// What is saved on either side goes to the other at once.
public final class PeerLink: @unchecked Sendable {
    // Sendable: `lock` guards what changes, but for what the thread alone uses.
    /// The end of the connection on this side.
    public let session: PeerSession
    /// What is exchanged.
    public let store: Store
    private let descriptor: Int32
    private let wakes: (reading: Int32, writing: Int32)
    /// What a connection begins with that came already.
    private let beginning: [UInt8]
    private let process = getpid()
    private let lock = Lock(.leaf)
    private let changed = Condition()
    private var phase = PeerSession.Phase.connecting
    private var failure: StoreError?
    private var isEnded = false, isClosing = false, isStopped = false
    /// Whether it is known who the other side is, and until when it has to be.
    private var isKnown = false
    private let greeted: Double
    /// What was taken of the session, and how much of it the socket has. The thread's alone.
    private var pending: [UInt8] = [], at = 0
    /// How often somebody asked for a look at the store, and which of these was done.
    private var asked = 0, looked = 0

    /// Bytes that are given to the socket, and taken of it, at once: what comes at once is stored at once.
    private static let outgoing = 256 << 10, incoming = 1 << 20
    /// Seconds in which the other side takes what is on its way when a connection ends.
    private static let farewell = 5.0
    /// Bytes that are asked for of the session while there are few: a link that is idle takes little memory.
    private static let few = 2 << 10

    /// Connects a store to the one that `PeerListener` offers at an address.
    /// - Parameters:
    ///   - store: what is exchanged; it has to be writable.
    ///   - address: `host:port`, `[host]:port`, or `unix:` and a path.
    ///   - options: who this side is, and by which pairing the two know each other.
    ///   - seconds: for the connection itself.
    /// - Throws: `.transport`, and what `PeerSession` throws.
    public convenience init(_ store: Store, to address: String, options: PeerSession.Options, within seconds: Double = 10) throws {
        var options = options
        options.isInitiator = true
        let session = try PeerSession(store, options: options)
        try self.init(session, over: LiveSocket.connect(LiveSocket.Address(address), within: seconds, named: address))
    }

    /// Carries a session over a stream of the program's: a connected socket.
    /// - Parameters:
    ///   - session: nothing of it was carried yet.
    ///   - descriptor: the link's from here on, which closes it, also when this throws.
    ///   - beginning: what came of it already.
    /// - Throws: `.io`, `.closed`.
    public convenience init(_ session: PeerSession, over descriptor: Int32, beginning: [UInt8] = []) throws {
        try self.init(session, over: descriptor, beginning: beginning, greeted: Clock.steady() + PeerSession.patience)
    }
    /// - Parameter greeted: until when it has to be known who the other side is.
    init(_ session: PeerSession, over descriptor: Int32, beginning: [UInt8], greeted: Double) throws {
        self.session = session
        self.greeted = greeted
        store = session.store
        self.beginning = beginning
        do {
            self.descriptor = try System.adopted(descriptor)
        } catch { throw StoreError(.io, "The stream of a connection cannot be used: \(error). Give one that is open.") }
        do { wakes = try System.pipe() } catch {
            System.close(self.descriptor)
            throw StoreError(.io, "A connection takes two more descriptors: \(error). Close some.")
        }
        do {
            try LinkNews.of(store).add(self)
            try OwnThread.start("A thread of a connection") { [self] in run() }
        } catch {
            LinkNews.of(store).remove(self)
            isEnded = true
            closeAll()
            throw error
        }
    }

    /// The connection ends also where a forked process has the descriptor as well.
    private func closeAll() {
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
        for fd in [descriptor, wakes.reading, wakes.writing] { System.close(fd) }
    }

    /// Has the thread look at what changed.
    public func signal() {
        guard getpid() == process else { return }
        lock.withLock {
            guard !isEnded else { return }
            var one: UInt8 = 1
            // When it is full the thread looks in any case.
            _ = write(wakes.writing, &one, 1)
        }
    }

    /// Why it ended, unless both sides said goodbye, or this one closed it; nil while it lasts.
    public var error: StoreError? { lock.withLock { failure } }
    /// Whether the other side has shown that it is paired.
    var isPaired: Bool { lock.withLock { isKnown } }
    /// Whether it lasts no more.
    public var hasEnded: Bool { lock.withLock { isEnded } }

    /// Waits until both stores are in step, with all that is in this one now, or it has ended.
    /// - Parameter seconds: for how long at most.
    /// - Returns: whether they are in step.
    /// - Throws: why it ended.
    public func wait(_ seconds: Double = .infinity) throws -> Bool {
        guard getpid() == process else { return false }
        let end = Clock.steady() + seconds
        let mine = lock.withLock { () -> Int in
            asked += 1
            return asked
        }
        signal()
        return try lock.withLock {
            while !isEnded, looked < mine || phase.rawValue < PeerSession.Phase.inStep.rawValue {
                let left = end - Clock.steady()
                guard left > 0 else { return false }
                _ = changed.wait(lock, until: Clock.steady() + min(left, 3_600))
            }
            if isEnded, let failure { throw failure }
            return !isEnded && phase == .inStep
        }
    }

    /// Waits until it has ended, at most so long; whether it has.
    public func waitForEnd(_ seconds: Double) -> Bool {
        let end = Clock.steady() + seconds
        return lock.withLock {
            while !isEnded { guard changed.wait(lock, until: end) || Clock.steady() < end else { return isEnded } }
            return true
        }
    }

    /// Says on this side that the digits are the same: see `PeerSession.confirm`.
    public func confirm() throws {
        try session.confirm()
        signal()
    }

    /// Sends what is to be sent, says goodbye, and waits for the other side to do so; then, or after so many seconds, it ends.
    public func close(within seconds: Double = 10) {
        guard getpid() == process else { return }
        beginClosing()
        if !waitForEnd(max(0, seconds)) { stop() }
    }
    /// The same without waiting.
    public func beginClosing() {
        lock.withLock { isClosing = true }
        signal()
    }

    /// Ends it at once: the other side takes it for cut. From within a callback of the store it is not waited for.
    public func stop() {
        guard getpid() == process else { return }
        beginStopping()
        guard !HostCalls.isObserving else { return }
        lock.withLock { while !isEnded { changed.wait(lock) } }
    }
    /// The same without waiting.
    func beginStopping() {
        lock.withLock { isStopped = true }
        signal()
    }

    // MARK: The thread

    private func run() {
        do {
            if !beginning.isEmpty { try beginning.withUnsafeBytes { try session.receive($0) } }
            try carry()
        } catch {
            guard getpid() == process else { return }
            tellWhy()
            lock.withLock { if !isStopped { failure = (error as? StoreError) ?? StoreError(.transport, "A connection failed: \(error).") } }
        }
        // In a child that a callback forked nothing of this is its to end.
        guard getpid() == process else { return }
        LinkNews.of(store).remove(self)
        session.abandon()
        // Also where that was learned with what ended it.
        let isKnown = !session.state.key.isEmpty
        lock.withLock {
            self.isKnown = isKnown
            isEnded = true
            phase = .ended
            closeAll()
            changed.broadcast()
        }
    }

    private func carry() throws {
        var room = PeerLink.few
        while true {
            if at == pending.count {
                (pending, at) = (try produced(room), 0)
                room = pending.count == room ? PeerLink.outgoing : PeerLink.few
            }
            let state = note()
            if state.phase == .ended, pending.isEmpty { return }
            let events = Int16(POLLIN) | (at < pending.count ? Int16(POLLOUT) : 0)
            var both = [pollfd(fd: wakes.reading, events: Int16(POLLIN), revents: 0), pollfd(fd: descriptor, events: events, revents: 0)]
            let isStrange = !isPaired, most: Double = state.waitsForOthers ? 1 : 5
            let rest = isStrange ? min(most, max(0, greeted - Clock.steady())) : most
            let count = poll(&both, 2, Int32(rest * 1_000) + 1), error = Errno.current
            guard getpid() == process else { return }
            if count < 0 {
                guard error.code == EINTR else { throw StoreError(.io, "Waiting for a connection failed: \(error). Connect again.") }
                continue
            }
            // Also who is heard all the time, byte by byte.
            if isStrange, Clock.steady() >= greeted { throw PeerSession.stranger }
            try session.tick(Clock.steady())
            if both[0].revents != 0, try !look() { return }
            if both[1].revents & ~Int16(POLLOUT) != 0 {
                if try !hear() { return }
            }
            if both[1].revents & Int16(POLLOUT) != 0 {
                do { at += try LiveSocket.write(descriptor, pending[at...]) } catch {
                    // What came before it was cut may say why.
                    while try hear(afterCut: error) {}
                    return
                }
            }
        }
    }

    private func produced(_ room: Int) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: room) { buffer, filled in
            filled = try session.send(into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<room]))
        }
    }

    /// Takes what came; false when nothing comes any more, and both sides knew that it would end.
    /// - Parameter cut: why nothing can be sent any more: what is there is taken, and no more is waited for.
    private func hear(afterCut cut: Errno? = nil) throws -> Bool {
        var data: [UInt8] = [], goesOn = true, why = cut
        do { goesOn = try LiveSocket.read(descriptor, into: &data, most: PeerLink.incoming) } catch {
            (goesOn, why) = (false, cut ?? error)
        }
        if !data.isEmpty { try data.withUnsafeBytes { try session.receive($0) } }
        if goesOn, cut == nil || !data.isEmpty { return true }
        try session.receiveEnd(why)
        return false
    }

    /// Does what the thread was woken for; false when it is to end at once.
    private func look() throws -> Bool {
        var data = [UInt8](repeating: 0, count: 256)
        while read(wakes.reading, &data, data.count) == data.count {}
        let (upTo, isClosing, isStopped) = lock.withLock { (asked, self.isClosing, self.isStopped) }
        if isStopped { return false }
        // What was saved before it was to be closed goes along.
        try session.storeChanged()
        if isClosing { try session.close() }
        note()
        lock.withLock {
            looked = upTo
            changed.broadcast()
        }
        return true
    }

    @discardableResult private func note() -> PeerSession.Status {
        let state = session.state
        lock.withLock {
            isKnown = !state.key.isEmpty
            guard state.phase != phase else { return }
            phase = state.phase
            changed.broadcast()
        }
        return state
    }

    /// What is left to be said of why it ends, behind what was begun, as far as the other side takes it.
    private func tellWhy() {
        var end = Clock.steady() + PeerLink.farewell
        while true {
            while at < pending.count {
                guard let sent = try? LiveSocket.write(descriptor, pending[at...]) else { return }
                at += sent
                guard Clock.steady() < end, sent > 0 || (try? LiveSocket.wait(descriptor, Int16(POLLOUT), until: end)) == true else {
                    return
                }
            }
            guard let more = try? produced(PeerLink.outgoing), !more.isEmpty else { break }
            (pending, at) = (more, 0)
        }
        end = Clock.steady() + 1
        // Closed with bytes that nobody read it would take back what was said last.
        _ = shutdown(descriptor, Int32(SHUT_WR))
        // Who sends all the time is not waited for.
        while Clock.steady() < end, (try? LiveSocket.wait(descriptor, Int16(POLLIN), until: end)) == true {
            var passed: [UInt8] = []
            guard (try? LiveSocket.read(descriptor, into: &passed, most: PeerLink.incoming)) == true else { return }
        }
    }
}

/// Tells all links of a store that the library carries of what comes to it: by one thread for all of them.
private final class LinkNews: Sendable {
    private struct State {
        var observation: (any ExchangeObservation)?, ended: (any ExchangeObservation)?
        var links: [ObjectIdentifier: PeerLink] = [:]
    }
    // A thread is begun within it.
    private let state = Guarded(State(), .unordered)

    static func of(_ store: Store) -> LinkNews { store.attachments.object(LinkNews.self) { LinkNews() } }

    /// - Throws: `.closed`, `.busy` and `.io`.
    func add(_ link: PeerLink) throws {
        try state.withLock { state in
            if state.observation == nil {
                state.observation = try link.store.observeAdditions { [weak self] in self?.tell() }
                state.ended = link.store.ended.add { [weak self] in self?.tell() }
            }
            state.links[ObjectIdentifier(link)] = link
        }
    }

    func remove(_ link: PeerLink) {
        let last = state.withLock { state -> [any ExchangeObservation] in
            guard state.links.removeValue(forKey: ObjectIdentifier(link)) != nil, state.links.isEmpty else { return [] }
            defer { (state.observation, state.ended) = (nil, nil) }
            return [state.observation, state.ended].compactMap { $0 }
        }
        // Waits for a call that runs.
        for one in last { one.cancel() }
    }

    private func tell() { for link in state.withLock({ Array($0.links.values) }) { link.signal() } }
}
