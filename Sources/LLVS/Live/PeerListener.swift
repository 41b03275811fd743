/// Offers stores to those that connect to them directly, by their pairings, on a thread of its own. Who is not paired gets no answer.
public final class PeerListener: @unchecked Sendable {
    // Sendable: `lock` guards what changes, but for what the thread alone uses.
    /// Where it listens: with the port that the system chose, where 0 was given.
    public let address: String
    private let options: PeerSession.Options
    private let server: Int32
    private let wakes: (reading: Int32, writing: Int32)
    private let process = getpid()
    /// The file of a Unix socket as it was made: another's in its place stays.
    private let file: (path: String, identity: FileIdentity)?
    private let lock = Lock(.unordered)
    private let changed = Condition()
    private var offers: [Offer] = []
    private struct Offer {
        let pairing: Pairing?, members: MemberPairing?
        /// Nil: it was closed. Who has its pairing is no stranger all the same.
        var store: Store?
        /// By the pairing of now, where it follows from keys.
        var now: Pairing? { members?.now() ?? pairing }
        func isBy(_ other: Pairing) -> Bool { pairing?.isSame(other) ?? false }
    }
    /// Device keys that were given a pairing here, and are accepted from then on.
    private var admitted: [[UInt8]] = []
    private var invitations: [Invited] = []
    /// An invitation is good for one device. That may try again until it has the pairing for certain; no other has a try meanwhile.
    private final class Invited: @unchecked Sendable {
        // Sendable: the listener's lock guards what changes.
        let invitation: Invitation, pairing: Pairing, until: Double
        /// The device that has shown its key; empty: none yet.
        var key: [UInt8] = []
        /// The connection that was begun by it last.
        weak var link: PeerLink?
        /// Whether a connection has begun by it, and it is not known yet which device that is.
        var isTaken: Bool { key.isEmpty && link.map { !$0.hasEnded } ?? false }
        init(_ invitation: Invitation, _ pairing: Pairing, until: Double) {
            (self.invitation, self.pairing, self.until) = (invitation, pairing, until)
        }
    }
    /// A connection by an invitation by which another one is being made.
    private struct Taken: Error {}
    /// Whom digits are compared with next: whose pairing, and until when.
    private var compared: (pairing: Pairing, until: Double)?
    private var links: [Connected] = []
    private struct Connected {
        let link: PeerLink, host: String, source: Admission.Source, since: Double
    }
    /// Those that nobody has asked for yet.
    private var arrived: [PeerLink] = []
    private var isClosing = false, isEnded = false
    /// Who did not get in, and who did.
    private var admission = Admission()

    /// Those that connected and have not said yet for which store; the thread's alone.
    private var greetings: [Greeting] = []
    private struct Greeting {
        let descriptor: Int32, host: String, source: Admission.Source, since: Double
        var until: Double { since + PeerListener.patience }
        var came: [UInt8] = []
        /// Whether it is looked at; else it waits until others of its address are known, or gone.
        var isHeard = false
    }

    /// Seconds until it has to be known whose a connection is. Of a source no more are read than it has strangers left; the others wait.
    static let patience = PeerSession.patience
    /// Connections that are accepted before those are looked at of which something came.
    private static let atOnce = 8

    /// Listens at an address.
    /// - Parameters:
    ///   - address: `host:port`, `[host]:port`, or `unix:` and a path. A Unix socket is made for its owner alone.
    ///   - options: who this side is. Pairings come with the stores that are offered.
    /// - Throws: `.transport`, `.invalidArgument`, `.io`.
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

    /// Offers a store to those that have its pairing.
    public func offer(_ store: Store, _ pairing: Pairing) throws {
        try store.checkWritable("Exchanging directly")
        lock.withLock {
            offers.removeAll { $0.isBy(pairing) }
            offers.append(Offer(pairing: pairing, members: nil, store: store))
        }
    }
    /// Offers a store to the members of an encrypted place: to those that have its newest keys, as far as these are known here. Who has
    /// only former ones gets no answer, and connections that were made by these end.
    /// - Throws: `.keyMissing` when the keys were not read yet.
    public func offer(_ store: Store, to members: MemberPairing) throws {
        try store.checkWritable("Exchanging directly")
        let place = try members.current().storeID
        lock.withLock {
            // One that is offered again may know newer keys: what follows from older ones lets nobody in beside them.
            offers.removeAll { $0.members != nil && $0.now?.storeID == place }
            offers.append(Offer(pairing: nil, members: members, store: store))
        }
    }

    /// The code of an invitation to a store: whoever connects by it gets the store's pairing.
    /// - Parameters:
    ///   - pairing: of a store that is offered.
    ///   - seconds: for how long it is good. It is good for one device: one that was cut before it had the pairing for certain may try
    ///     again, with the same `identity`.
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

    /// Lets one device in within so many seconds whose digits people compare: its link has them (`PeerSession.Status.digits`), and it gets
    /// the store's pairing once both sides have confirmed.
    /// - Throws: `.notFound`, `.busy` when that was asked for already.
    public func compare(_ pairing: Pairing, for seconds: Double = 600) throws {
        try check(pairing)
        try lock.withLock {
            if let compared, compared.until > Clock.steady() {
                throw StoreError(.busy, "Another device is waited for already, whose digits are compared. Wait until it has come.")
            }
            compared = (pairing, Clock.steady() + seconds)
        }
    }

    private func check(_ pairing: Pairing) throws {
        guard lock.withLock({ offers.contains { $0.isBy(pairing) && $0.store != nil } }) else {
            throw StoreError(.notFound, "No store is offered here by that pairing. Offer it first.")
        }
    }

    /// The next connection that nobody has asked for yet; it goes on in any case.
    /// - Parameter seconds: for how long it is waited for.
    /// - Returns: nil when none came.
    public func accept(within seconds: Double) throws -> PeerLink? {
        guard getpid() == process else { return nil }
        let end = Clock.steady() + seconds
        return lock.withLock {
            while true {
                forgetEnded()
                if !arrived.isEmpty { return arrived.removeFirst() }
                let left = end - Clock.steady()
                guard !isClosing, left > 0 else { return nil }
                _ = changed.wait(lock, until: Clock.steady() + min(left, 3_600))
            }
        }
    }

    /// The connections that last.
    public var connections: [PeerLink] {
        lock.withLock {
            forgetEnded()
            return links.map(\.link)
        }
    }

    /// Listens no more, and ends the connections as `PeerLink.close` does.
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

    /// Under the lock.
    private func wake() {
        guard !isEnded else { return }
        var one: UInt8 = 1
        _ = write(wakes.writing, &one, 1)
    }
    /// Nobody is let in any more, also where a forked process has the descriptor as well.
    private func closeAll() {
        _ = shutdown(server, Int32(SHUT_RDWR))
        for fd in [server, wakes.reading, wakes.writing] { System.close(fd) }
    }
    private static func remove(_ file: (path: String, identity: FileIdentity)?) {
        if let file, FileIdentity(file.path) == file.identity { _ = unlink(file.path) }
    }

    /// Lets go of links that have ended. Who never said who it is was a stranger: a first message can be replayed. Under the lock.
    private func forgetEnded() {
        links = links.filter { one in
            // Asked first: it is known who the other side is before that ends.
            let hasEnded = one.link.hasEnded
            if one.link.isPaired { admission.gotIn(from: one.host) } else if hasEnded { refuse(one.source) }
            return !hasEnded
        }
        arrived.removeAll { $0.hasEnded }
    }

    /// Remembers that somebody from there did not get in. Under the lock.
    private func refuse(_ source: Admission.Source) { admission.refuse(source.key, at: Clock.steady()) }

    /// Returns the source of a connection that was accepted, if it is read; another one may have to end for it. Under the lock.
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
            // It counts as one that did not get in once it has ended.
            waiting[i - greetings.count].link.beginStopping()
            return source
        }
    }

    /// How many more of a source may be read now. Under the lock.
    private func room(_ source: Admission.Source) -> Int {
        guard !source.key.isEmpty else { return Admission.halfOpen }
        let heard = greetings.filter { $0.isHeard && $0.source == source }.count
        let strange = links.filter { $0.source == source && !$0.link.isPaired }.count
        return Admission.strangers - heard - strange - admission.refusals(source.key, at: Clock.steady())
    }

    /// Looks at those that waited, in the order in which they came; whether some still wait.
    private func hearWaiting() -> Bool {
        var full: Set<String> = []
        lock.withLock {
            forgetEnded()
            // Asked once, as a minute may be over in between.
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
            // Without a descriptor to spare the system gives no connection; it would say at once that one waits.
            var all = [pollfd(fd: wakes.reading, events: Int16(POLLIN), revents: 0)]
            all.append(pollfd(fd: pause ? -1 : server, events: Int16(POLLIN), revents: 0))
            all += greetings.map { pollfd(fd: $0.isHeard ? $0.descriptor : -1, events: Int16(POLLIN), revents: 0) }
            let rest = min(someWait ? 0.02 : 3_600, greetings.map { $0.until - Clock.steady() }.min() ?? 3_600)
            _ = poll(&all, nfds_t(all.count), Int32(max(0, min(pause ? 0.1 : 3_600, rest)) * 1_000) + 1)
            guard getpid() == process else { return }
            if lock.withLock({ isClosing }) { break }
            pause = false
            let now = Clock.steady()
            for (i, greeting) in greetings.enumerated().reversed() {
                let isReady = all[i + 2].revents != 0
                if isReady ? greet(i) : greeting.until <= now { greetings.remove(at: i) }
                if !isReady, greeting.until <= now { giveUp(greeting) }
            }
            // Behind that: what has come already is not silent.
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

    /// Takes those that wait to be let in; false when the system gives none.
    private func letIn() -> Bool {
        do {
            // What has come of these is read before others come.
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

    /// Takes what came of a connection; true when it is a link now, or none any more.
    private func greet(_ index: Int) -> Bool {
        let descriptor = greetings[index].descriptor
        // The last byte stays where it is, until it is known that the other side is not to be told that it was cut: see `LiveSocket.drop`.
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
            // A failure of this side, by which nobody becomes a stranger.
            if !isTaken { System.close(descriptor) }
        }
        return true
    }

    private func giveUp(_ greeting: Greeting) {
        // Who waited for others of its address had no time to say who it is.
        if greeting.isHeard { lock.withLock { refuse(greeting.source) } }
        System.close(greeting.descriptor)
    }

    /// A device that was given a pairing here is let in by its key from now on.
    private func admit(_ key: [UInt8], by invited: Invited? = nil) {
        lock.withLock {
            if !admitted.contains(key) { admitted.append(key) }
            invited?.key = key
        }
    }
    /// An invitation is used up.
    private func forget(_ invited: Invited) { lock.withLock { invitations.removeAll { $0 === invited } } }

    /// Which of the stores a connection is for, by what it began with, and by which invitation; nil when it is for none.
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
