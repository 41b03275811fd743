/// A direct connection over a socket. The library runs it on a thread of its own until it is closed, is cut, or the store is closed.
/// Versions that are saved on either side are sent to the other at once.
public final class PeerLink: @unchecked Sendable {
    // Sendable: `lock` guards the mutable state, except what only the thread uses.
    /// This side's end of the connection.
    public let session: PeerSession
    /// The store that is exchanged.
    public let store: Store
    private let descriptor: Int32
    private let wakes: (reading: Int32, writing: Int32)
    /// Received bytes of the connection's beginning.
    private let beginning: [UInt8]
    private let process = getpid()
    private let lock = Lock(.leaf)
    private let changed = Condition()
    private var phase = PeerSession.Phase.connecting
    private var failure: StoreError?
    private var isEnded = false, isClosing = false, isStopped = false
    /// Whether the other side is known, and the deadline for that.
    private var isKnown = false
    private let greeted: Double
    /// Bytes from the session, and how many of them the socket has. Only the thread uses them.
    private var pending: [UInt8] = [], at = 0
    /// How often a check of the store was requested, and the last of these that was done.
    private var asked = 0, looked = 0

    /// The most bytes that are written to the socket, and read from it, at once. What is read at once is stored at once.
    private static let outgoing = 256 << 10, incoming = 1 << 20
    /// Seconds for the other side to receive what is on its way when a connection ends.
    private static let farewell = 5.0
    /// Bytes that are first taken from the session: an idle link uses little memory.
    private static let few = 2 << 10

    /// Connects a store to the one that `PeerListener` offers at an address.
    /// - Parameters:
    ///   - store: the store to exchange. It must be writable.
    ///   - address: `host:port`, `[host]:port`, or `unix:` and a path.
    ///   - options: the identity of this side, and the pairing.
    ///   - seconds: the timeout for connecting.
    /// - Throws: `.transport`, and the errors of `PeerSession`.
    @available(*, noasync, message: "It waits for the network. Import LLVSAsync, and await PeerLink.connect(_:to:options:within:).")
    public convenience init(_ store: Store, to address: String, options: PeerSession.Options, within seconds: Double = 10) throws {
        try self.init(store, to: address, options: options, within: seconds, token: nil)
    }
    /// - Parameter token: cancels connecting, which then throws `.transport`.
    package convenience init(
        _ store: Store, to address: String, options: PeerSession.Options, within seconds: Double, token: CancelToken?
    ) throws {
        var options = options
        options.isInitiator = true
        let session = try PeerSession(store, options: options)
        try self.init(
            session, over: LiveSocket.connect(LiveSocket.Address(address), within: seconds, token: token, named: address))
    }

    /// Runs a session over a connected socket of the program.
    /// - Parameters:
    ///   - session: a session that was not used yet.
    ///   - descriptor: the link owns and closes it from here on, also if this throws.
    ///   - beginning: bytes that were received already.
    /// - Throws: `.io`, `.closed`.
    public convenience init(_ session: PeerSession, over descriptor: Int32, beginning: [UInt8] = []) throws {
        try self.init(session, over: descriptor, beginning: beginning, greeted: Clock.steady() + PeerSession.patience)
    }
    /// - Parameter greeted: the deadline for knowing the other side.
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

    /// Ends the connection even if a forked process has the descriptor, too.
    private func closeAll() {
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
        for fd in [descriptor, wakes.reading, wakes.writing] { System.close(fd) }
    }

    /// Asks the thread to check for changes.
    public func signal() {
        guard getpid() == process else { return }
        lock.withLock {
            guard !isEnded else { return }
            var one: UInt8 = 1
            // If the pipe is full, the thread checks in any case.
            _ = write(wakes.writing, &one, 1)
        }
    }

    /// Why it ended; nil while it lasts, if both sides said goodbye, or if this side closed it.
    public var error: StoreError? { lock.withLock { failure } }
    /// Whether the other side has proved that it is paired.
    var isPaired: Bool { lock.withLock { isKnown } }
    /// Whether it has ended.
    public var hasEnded: Bool { lock.withLock { isEnded } }

    /// Waits until both stores are in step, including everything that is in this store now, or until the link ends.
    /// - Parameter seconds: the timeout.
    /// - Returns: whether they are in step.
    /// - Throws: the error by which the link ended.
    public func wait(within seconds: Double = .infinity) throws -> Bool { try wait(seconds, as: WaitToken()) }

    /// The same, until `cancel` is called with the token.
    /// - Throws: `.cancelled`, and the errors of `wait`.
    package func wait(_ seconds: Double, as token: WaitToken) throws -> Bool {
        guard getpid() == process else { return false }
        let end = Clock.steady() + seconds
        let mine = lock.withLock { () -> Int in
            asked += 1
            return asked
        }
        signal()
        return try lock.withLock {
            while true {
                if token.isCancelled { throw StoreError(.cancelled, "Waiting for a connection was cancelled. The link goes on.") }
                guard !isEnded, looked < mine || phase.rawValue < PeerSession.Phase.inStep.rawValue else { break }
                let left = end - Clock.steady()
                guard left > 0 else { return false }
                _ = changed.wait(lock, until: Clock.steady() + min(left, 3_600))
            }
            if isEnded, let failure { throw failure }
            return !isEnded && phase == .inStep
        }
    }

    /// Cancels a call of `wait` or `waitForEnd`, also one that begins later.
    package func cancel(_ token: WaitToken) {
        lock.withLock {
            token.isCancelled = true
            changed.broadcast()
        }
    }

    /// Waits until it has ended, with a timeout. Returns whether it has.
    public func waitForEnd(within seconds: Double = .infinity) -> Bool { waitForEnd(seconds, as: WaitToken()) }

    /// The same, until `cancel` is called with the token.
    package func waitForEnd(_ seconds: Double, as token: WaitToken) -> Bool {
        let end = Clock.steady() + seconds
        return lock.withLock {
            while !isEnded, !token.isCancelled {
                guard changed.wait(lock, until: end) || Clock.steady() < end else { return isEnded }
            }
            return isEnded
        }
    }

    /// Confirms on this side that the digits are equal: see `PeerSession.confirm`.
    public func confirm() throws {
        try session.confirm()
        signal()
    }

    /// Sends what is queued, says goodbye, and waits until the other side does so, or for the given seconds. Then the link ends.
    public func close(within seconds: Double = 10) {
        guard getpid() == process else { return }
        beginClosing()
        if !waitForEnd(within: max(0, seconds)) { stop() }
    }
    /// The same without waiting.
    public func beginClosing() {
        lock.withLock { isClosing = true }
        signal()
    }

    /// Ends the link at once. The other side sees it as cut. Within a callback of the store, this does not wait.
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
        // A child process that a callback forked must not end the parent's connection.
        guard getpid() == process else { return }
        LinkNews.of(store).remove(self)
        session.abandon()
        // What was requested over this link is requested over another now.
        LinkNews.of(store).wakeWaiting()
        // The key may have arrived together with what ended the link.
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
            // A device that sends byte by byte must meet the deadline, too.
            if isStrange, Clock.steady() >= greeted { throw PeerSession.stranger }
            try session.tick(Clock.steady())
            if both[0].revents != 0, try !look() { return }
            if both[1].revents & ~Int16(POLLOUT) != 0 {
                if try !hear() { return }
            }
            if both[1].revents & Int16(POLLOUT) != 0 {
                do { at += try LiveSocket.write(descriptor, pending[at...]) } catch {
                    // Bytes received before the cut may say why it was cut.
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

    /// Reads what arrived. Returns false if the connection has ended in order.
    /// - Parameter cut: why nothing can be sent any more. Then this reads what is there, and does not wait for more.
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

    /// Does what the thread was woken for. Returns false if it must end at once.
    private func look() throws -> Bool {
        var data = [UInt8](repeating: 0, count: 256)
        while read(wakes.reading, &data, data.count) == data.count {}
        let (upTo, isClosing, isStopped) = lock.withLock { (asked, self.isClosing, self.isStopped) }
        if isStopped { return false }
        // Send also what was saved before it was closed.
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

    /// Sends the rest and the reason for ending, as far as the other side reads.
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
        // Closing with unread bytes would revoke what was sent last.
        _ = shutdown(descriptor, Int32(SHUT_WR))
        // Do not wait for a side that sends all the time.
        while Clock.steady() < end, (try? LiveSocket.wait(descriptor, Int16(POLLIN), until: end)) == true {
            var passed: [UInt8] = []
            guard (try? LiveSocket.read(descriptor, into: &passed, most: PeerLink.incoming)) == true else { return }
        }
    }
}

/// Signals all links of a store that new versions arrived: one thread for all links.
private final class LinkNews: Sendable {
    private struct State {
        var observation: (any ExchangeObservation)?, ended: (any ExchangeObservation)?
        var links: [ObjectIdentifier: PeerLink] = [:]
    }
    // A thread is started while this lock is held.
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
        // Waits for a running call.
        for one in last { one.cancel() }
    }

    /// Wakes the links that wait for versions which were requested over others.
    func wakeWaiting() {
        for link in state.withLock({ Array($0.links.values) }) where link.session.state.waitsForOthers { link.signal() }
    }

    private func tell() { for link in state.withLock({ Array($0.links.values) }) { link.signal() } }
}
