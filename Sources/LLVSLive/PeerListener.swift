/// Offers stores to paired devices that connect directly, on a thread of its own. Devices that are not paired get no answer.
public final class PeerListener: @unchecked Sendable {
    // Sendable: `lock` guards the mutable state, except what only the thread uses.
    /// The address that it listens at. If port 0 was given, it has the port that the system chose.
    public let address: String
    private let options: PeerSession.Options
    private let server: Int32
    private let wakes: (reading: Int32, writing: Int32)
    private let process = getpid()
    /// The file of the Unix socket. A file that replaced it is not deleted.
    private let file: (path: String, identity: FileIdentity)?
    private let lock = Lock(.unordered)
    private let changed = Condition()
    private var offers: [Offer] = []
    private struct Offer {
        let pairing: Pairing?, members: MemberPairing?
        /// Nil if the store was closed. A device with the store's pairing is no stranger even then.
        var store: Store?
        /// The current pairing, if it is derived from keys.
        var now: Pairing? { members?.now() ?? pairing }
        func isBy(_ other: Pairing) -> Bool { pairing?.isSame(other) ?? false }
    }
    /// The keys of devices that got a pairing from this listener, and are accepted from then on.
    private var admitted: [[UInt8]] = []
    private var invitations: [Invited] = []
    /// An invitation is valid for one device. This device may try again until it certainly has the pairing. No other device may try
    /// meanwhile.
    private final class Invited: @unchecked Sendable {
        // Sendable: the listener's lock guards what changes.
        let invitation: Invitation, pairing: Pairing, until: Double
        /// The key of the device that used it; empty if none did yet.
        var key: [UInt8] = []
        /// The last connection that was begun with it.
        weak var link: PeerLink?
        /// Whether a connection was begun with it whose device is not known yet.
        var isTaken: Bool { key.isEmpty && link.map { !$0.hasEnded } ?? false }
        init(_ invitation: Invitation, _ pairing: Pairing, until: Double) {
            (self.invitation, self.pairing, self.until) = (invitation, pairing, until)
        }
    }
    /// Thrown if another connection with the same invitation is being opened.
    private struct Taken: Error {}
    /// The pairing for the next comparison of digits, and its deadline.
    private var compared: (pairing: Pairing, until: Double)?
    private var links: [Connected] = []
    private struct Connected {
        let link: PeerLink, host: String, source: Admission.Source, since: Double
    }
    /// Connections that `accept` has not returned yet.
    private var arrived: [PeerLink] = []
    private var isClosing = false, isEnded = false
    /// Counts the sources of refused and accepted connections.
    private var admission = Admission()

    /// Connections that have not said yet which store they want. Only the thread uses them.
    private var greetings: [Greeting] = []
    private struct Greeting {
        let descriptor: Int32, host: String, source: Admission.Source, since: Double
        var until: Double { since + PeerListener.patience }
        var came: [UInt8] = []
        /// Whether it is read. If not, it waits until other connections of its address are known or gone.
        var isHeard = false
    }

    /// The seconds until the other side must be known. From one source, only as many connections are read as it may still have strangers;
    /// the others wait.
    static let patience = PeerSession.patience
    /// The number of connections that are accepted before others are read.
    private static let atOnce = 8

    /// Listens at an address.
    /// - Parameters:
    ///   - address: `host:port`, `[host]:port`, or `unix:` and a path. A Unix socket is created for its owner only.
    ///   - options: the identity of this side. Pairings come with the stores that are offered.
    /// - Throws: `.transport`, `.invalidArgument`, `.io`.
    @available(*, noasync, message: "It may wait for the name of a host. Import LLVSAsync, and await PeerListener.listen(at:options:).")
    public init(at address: String, options: PeerSession.Options) throws {
        var options = options
        (options.isInitiator, options.pairing, options.members, options.invitation, options.comparesDigits) = (false, nil, nil, nil, false)
        self.options = options
        let place = try LiveSocket.Address(address)
        server = try LiveSocket.listen(place, named: address)
        if case .path(let path) = place {
            file = FileIdentity(path).map { (path, $0) }
            self.address = address
        } else {
            file = nil
            self.address = LiveSocket.own(server) ?? address
        }
        do { wakes = try System.pipe() } catch {
            System.close(server)
            PeerListener.remove(file)
            throw StoreError(.io, "Listening takes two more descriptors: \(error). Close some.")
        }
        do { try OwnThread.start("A thread that listens") { [self] in run() } } catch {
            isEnded = true
            closeAll()
            PeerListener.remove(file)
            throw error
        }
    }

    /// Offers a store to devices that have its pairing.
    public func offer(_ store: Store, _ pairing: Pairing) throws {
        try store.checkWritable("Exchanging directly")
        lock.withLock {
            if offers.isEmpty { wake() }
            offers.removeAll { $0.isBy(pairing) }
            offers.append(Offer(pairing: pairing, members: nil, store: store))
        }
    }
    /// Offers a store to the members of an encrypted place: to devices that have its newest keys, as far as this device knows them.
    /// Devices that have only former keys get no answer, and connections that were made with these end.
    /// - Throws: `.keyMissing` if the keys were not read yet.
    public func offer(_ store: Store, to members: MemberPairing) throws {
        try store.checkWritable("Exchanging directly")
        let place = try members.current().storeID
        lock.withLock {
            if offers.isEmpty { wake() }
            // A repeated offer may have newer keys: pairings of older keys must let no device in beside them.
            offers.removeAll { $0.members != nil && $0.now?.storeID == place }
            offers.append(Offer(pairing: nil, members: members, store: store))
        }
    }

    /// Returns the code of an invitation to a store. A device that connects with it gets the store's pairing.
    /// - Parameters:
    ///   - pairing: the pairing of a store that is offered.
    ///   - seconds: how long it is valid. It is valid for one device. If that device was cut off before it certainly had the pairing, it
    ///     may try again with the same `identity`.
    /// - Throws: `.notFound`, `.io`.
    public func invite(_ pairing: Pairing, for seconds: Double = 600) throws -> String {
        try check(pairing)
        let code = try Invitation.random(), invitation = try Invitation(code), now = Clock.steady()
        lock.withLock {
            invitations.removeAll { $0.until <= now }
            invitations.append(Invited(invitation, pairing, until: now + seconds))
        }
        return code
    }

    /// Lets one device in within the given seconds after people compared digits: its link has them (`PeerSession.Status.digits`). It gets
    /// the store's pairing once both sides have confirmed.
    /// - Throws: `.notFound`, `.busy` if a comparison is pending.
    public func compare(_ pairing: Pairing, for seconds: Double = 600) throws {
        try check(pairing)
        try lock.withLock {
            if let compared, compared.until > Clock.steady() {
                throw StoreError(.busy, "A comparison of digits with another device is pending already. Wait until it has ended.")
            }
            compared = (pairing, Clock.steady() + seconds)
        }
    }

    private func check(_ pairing: Pairing) throws {
        guard lock.withLock({ offers.contains { $0.isBy(pairing) && $0.store != nil } }) else {
            throw StoreError(.notFound, "No store is offered here by that pairing. Offer it first.")
        }
    }

    /// Returns the next connection that was not returned yet. Connections run also if they are never returned.
    /// - Parameter seconds: the timeout.
    /// - Returns: nil if none arrived.
    public func accept(within seconds: Double) throws -> PeerLink? { accept(within: seconds, as: WaitToken()) }

    /// The same, until `cancel` is called with the token.
    package func accept(within seconds: Double, as token: WaitToken) -> PeerLink? {
        guard getpid() == process else { return nil }
        let end = Clock.steady() + seconds
        return lock.withLock {
            while true {
                forgetEnded()
                if !arrived.isEmpty { return arrived.removeFirst() }
                let left = end - Clock.steady()
                guard !isClosing, !token.isCancelled, left > 0 else { return nil }
                _ = changed.wait(lock, until: Clock.steady() + min(left, 3_600))
            }
        }
    }

    /// Cancels a call of `accept`, also one that begins later.
    package func cancel(_ token: WaitToken) {
        lock.withLock {
            token.isCancelled = true
            changed.broadcast()
        }
    }

    /// The connections that last.
    public var connections: [PeerLink] {
        lock.withLock {
            forgetEnded()
            return links.map(\.link)
        }
    }

    /// Stops listening, and ends the connections as `PeerLink.close` does.
    public func close(within seconds: Double = 10) {
        guard getpid() == process else { return }
        let end = Clock.steady() + seconds
        lock.withLock {
            isClosing = true
            wake()
            while !isEnded { changed.wait(lock) }
            arrived = []
        }
        let last = lock.withLock { links.map(\.link) }
        for link in last { link.beginClosing() }
        for link in last { link.close(within: max(0, end - Clock.steady())) }
        lock.withLock { links = [] }
    }

    /// Precondition: the lock is held.
    private func wake() {
        guard !isEnded else { return }
        var one: UInt8 = 1
        _ = write(wakes.writing, &one, 1)
    }
    /// Lets no device in any more, even if a forked process has the descriptor, too.
    private func closeAll() {
        _ = shutdown(server, Int32(SHUT_RDWR))
        for fd in [server, wakes.reading, wakes.writing] { System.close(fd) }
    }
    private static func remove(_ file: (path: String, identity: FileIdentity)?) {
        if let file, FileIdentity(file.path) == file.identity { _ = unlink(file.path) }
    }

    /// Removes links that have ended. A device that never proved its identity was a stranger, since a first message can be replayed.
    /// Precondition: the lock is held.
    private func forgetEnded() {
        links = links.filter { one in
            // Read this first: a link sets `isPaired` before it ends.
            let hasEnded = one.link.hasEnded
            if one.link.isPaired { admission.gotIn(from: one.host) } else if hasEnded { refuse(one.source) }
            return !hasEnded
        }
        arrived.removeAll { $0.hasEnded }
    }

    /// Records a refused connection. Precondition: the lock is held.
    private func refuse(_ source: Admission.Source) { admission.refuse(source.key, at: Clock.steady()) }

    /// Returns the source of an accepted connection, or nil if it is refused. May end another connection for it. Precondition: the lock
    /// is held.
    private func makeRoom(for host: String) -> Admission.Source? {
        forgetEnded()
        let now = Clock.steady(), source = admission.source(of: host), waiting = links.filter { !$0.link.isPaired }
        let halfOpen =
            greetings.map { Admission.HalfOpen(source: $0.source, since: $0.since, isSilent: true) }
            + waiting.map { Admission.HalfOpen(source: $0.source, since: $0.since, isSilent: false) }
        switch admission.decide(source, among: halfOpen, at: now) {
        case .refuse: return nil
        case .take: return source
        case .replace(let i) where i < greetings.count:
            let greeting = greetings.remove(at: i)
            if greeting.isHeard, now - greeting.since >= Admission.least { refuse(greeting.source) }
            LiveSocket.drop(greeting.descriptor)
            return source
        case .replace(let i):
            // Once it has ended, it counts as refused.
            waiting[i - greetings.count].link.beginStopping()
            return source
        }
    }

    /// Returns how many more connections of a source may be read now. Precondition: the lock is held.
    private func room(_ source: Admission.Source) -> Int {
        guard !source.key.isEmpty else { return Admission.halfOpen }
        let heard = greetings.filter { $0.isHeard && $0.source == source }.count
        let strange = links.filter { $0.source == source && !$0.link.isPaired }.count
        return Admission.strangers - heard - strange - admission.refusals(source.key, at: Clock.steady())
    }

    /// Reads the connections that waited, in their order. Returns whether some still wait.
    private func hearWaiting() -> Bool {
        var full: Set<String> = []
        lock.withLock {
            forgetEnded()
            // One time for all, since a minute may end in between.
            let now = Clock.steady()
            let refused = Set(greetings.map(\.source.key)).filter { admission.refusals($0, at: now) >= Admission.strangers }
            greetings.removeAll { greeting in
                guard !greeting.isHeard, refused.contains(greeting.source.key) else { return false }
                LiveSocket.drop(greeting.descriptor)
                return true
            }
            for i in greetings.indices where !greetings[i].isHeard && !full.contains(greetings[i].source.key) {
                if room(greetings[i].source) > 0 { greetings[i].isHeard = true } else { full.insert(greetings[i].source.key) }
            }
        }
        return !full.isEmpty
    }

    // MARK: The thread

    private func run() {
        var pause = false
        while true {
            let someWait = hearWaiting()
            // If the process is out of descriptors, accepting fails at once while a connection waits. So do not poll the server socket.
            // Before the first offer, connections wait: a device must not be rejected because its store is not offered yet.
            let accepts = !pause && lock.withLock { !offers.isEmpty }
            var all = [pollfd(fd: wakes.reading, events: Int16(POLLIN), revents: 0)]
            all.append(pollfd(fd: accepts ? server : -1, events: Int16(POLLIN), revents: 0))
            all += greetings.map { pollfd(fd: $0.isHeard ? $0.descriptor : -1, events: Int16(POLLIN), revents: 0) }
            let rest = min(someWait ? 0.02 : 3_600, greetings.map { $0.until - Clock.steady() }.min() ?? 3_600)
            _ = poll(&all, nfds_t(all.count), Int32(max(0, min(pause ? 0.1 : 3_600, rest)) * 1_000) + 1)
            guard getpid() == process else { return }
            if lock.withLock({ isClosing }) { break }
            if all[0].revents != 0 {
                var byte: UInt8 = 0
                _ = read(wakes.reading, &byte, 1)
            }
            pause = false
            let now = Clock.steady()
            for (i, greeting) in greetings.enumerated().reversed() {
                let isReady = all[i + 2].revents != 0
                if isReady ? greet(i) : greeting.until <= now { greetings.remove(at: i) }
                if !isReady, greeting.until <= now { giveUp(greeting) }
            }
            // Accept only after reading, so that a connection whose bytes have arrived does not count as silent.
            if all[1].revents != 0 { pause = !letIn() }
        }
        for greeting in greetings { LiveSocket.drop(greeting.descriptor) }
        greetings = []
        PeerListener.remove(file)
        lock.withLock {
            isEnded = true
            closeAll()
            changed.broadcast()
        }
    }

    /// Accepts waiting connections. Returns false if the system gives none.
    private func letIn() -> Bool {
        do {
            // Read what has arrived of these before accepting others.
            for _ in 0..<PeerListener.atOnce {
                guard let (fd, host) = try LiveSocket.accept(server) else { break }
                guard let source = lock.withLock({ makeRoom(for: host) }) else {
                    LiveSocket.drop(fd)
                    continue
                }
                greetings.append(Greeting(descriptor: fd, host: host, source: source, since: Clock.steady()))
            }
            return true
        } catch { return false }
    }

    /// Reads the beginning of a connection. Returns true if it became a link, or has ended.
    private func greet(_ index: Int) -> Bool {
        let descriptor = greetings[index].descriptor
        // The last byte stays in the socket until it is certain that the other side must not see the connection as cut: see
        // `LiveSocket.drop`.
        func hear(_ most: Int, leaving: Bool = false) -> Bool {
            (try? LiveSocket.read(descriptor, into: &greetings[index].came, most: most, leaving: leaving)) == true
        }
        let most = LiveLink.beginning - 1
        guard hear(most - greetings[index].came.count), greetings[index].came.count < most || hear(1, leaving: true) else {
            giveUp(greetings[index])
            return true
        }
        let greeting = greetings[index]
        guard greeting.came.count == LiveLink.beginning else { return false }
        var isTaken = false
        do {
            let whom: (offered: Store?, options: PeerSession.Options, invited: Invited?)?
            do { whom = try whomItIsFor(greeting.came, greeting.source.key) } catch is Taken {
                LiveSocket.drop(descriptor)
                return true
            }
            _ = hear(1)
            guard let (offered, options, invited) = whom else {
                giveUp(greeting)
                return true
            }
            guard let store = offered else {
                System.close(descriptor)
                return true
            }
            let session: PeerSession
            do { session = try PeerSession(store, options: options) } catch let error as StoreError where error.code == .closed {
                lock.withLock { for i in offers.indices where offers[i].store === store { offers[i].store = nil } }
                throw error
            }
            isTaken = true
            let link = try PeerLink(session, over: descriptor, beginning: greeting.came, greeted: greeting.until)
            lock.withLock {
                links.append(Connected(link: link, host: greeting.host, source: greeting.source, since: greeting.since))
                invited?.link = link
                arrived.append(link)
                changed.broadcast()
            }
        } catch {
            // An error of this side does not make the other side a stranger.
            if !isTaken { System.close(descriptor) }
        }
        return true
    }

    private func giveUp(_ greeting: Greeting) {
        // Only a connection that was read counts as a refusal: one that waited for other connections of its address had no time to say who
        // it is.
        if greeting.isHeard { lock.withLock { refuse(greeting.source) } }
        System.close(greeting.descriptor)
    }

    /// Accepts the key of a device that got a pairing from this listener.
    private func admit(_ key: [UInt8], by invited: Invited? = nil) {
        lock.withLock {
            if !admitted.contains(key) { admitted.append(key) }
            invited?.key = key
        }
    }
    /// Removes an invitation that was used.
    private func forget(_ invited: Invited) { lock.withLock { invitations.removeAll { $0 === invited } } }

    /// Returns the store that a connection wants according to its beginning, and the invitation; nil if it wants none.
    /// - Throws: `Taken`.
    private func whomItIsFor(_ beginning: [UInt8], _ source: String) throws -> (Store?, PeerSession.Options, Invited?)? {
        try lock.withLock {
            try beginning.withUnsafeBytes { beginning in
                var options = self.options
                let now = Clock.steady()
                (options.place, options.admitted) = (source, { [weak self] key in self?.admit(key) })
                if !options.accepted.isEmpty { options.accepted += admitted }
                func found(_ pairing: Pairing, _ invited: Invited? = nil) -> (Store?, PeerSession.Options, Invited?)? {
                    guard let offer = offers.first(where: { $0.isBy(pairing) }) else { return nil }
                    options.pairing = pairing
                    return (offer.store, options, invited)
                }
                for one in invitations where try one.until > now && one.invitation.matches(beginning: beginning) {
                    guard !one.isTaken else { throw Taken() }
                    (options.invitation, options.onlyFor) = (one.invitation, one.key)
                    options.admitted = { [weak self] key in self?.admit(key, by: one) }
                    options.settled = { [weak self] in self?.forget(one) }
                    return found(one.pairing, one)
                }
                if try Pairing.isToCompare(beginning: beginning) {
                    guard let compared, compared.until > now else { return nil }
                    self.compared = nil
                    options.comparesDigits = true
                    return found(compared.pairing)
                }
                for offer in offers where try offer.now?.matches(beginning: beginning) ?? false {
                    (options.pairing, options.members) = (offer.pairing, offer.members)
                    return (offer.store, options, nil)
                }
                return nil
            }
        }
    }
}
