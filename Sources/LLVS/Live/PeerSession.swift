import CLLVSShims

/// One end of a direct connection between two stores, without the connection: it takes the bytes that came and gives those that are to be
/// sent (docs/live-protocol.md). Whoever carries them decides when; nothing is waited for here.
///
/// Both stores get what they lack, and then what is saved in either, as long as the connection lasts. Whatever was stored when it breaks
/// stays, and the next one goes on from there.
///
/// Threads: all may be called from any thread, one call at a time; the calls of one session wait for each other.
public final class PeerSession: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// How a session is opened.
    public struct Options: Sendable {
        /// Whether this side made the connection.
        public var isInitiator = true
        /// What both devices share; nil: this side gets it by an invitation.
        public var pairing: Pairing?
        /// In the place of that, what the members of an encrypted place share. The connection ends when the keys of that are renewed.
        public var members: MemberPairing?
        /// By which this connection is made; the side that has a pairing gives it to the other one, which has none.
        public var invitation: Invitation?
        /// Whether people compare digits by which the other side gets the pairing, or this one where it has none.
        public var comparesDigits = false
        /// The secret half of this device's key, 32 bytes; nil: one for this session alone, by which nobody knows the device again.
        public var identity: [UInt8]?
        /// What the other side is told that this device is called; at most 255 bytes.
        public var device = ""
        /// The public halves of the device keys that are accepted; empty: all that have the pairing. Whoever is given the pairing on this
        /// connection, by an invitation or by comparing digits, is let in whatever its key.
        public var accepted: [[UInt8]] = []
        /// Asked before so many bytes more are stored or asked for; what it throws ends the connection, and they are not stored.
        /// Called while the session works: it must not call the session or the store.
        public var quota: (@Sendable (_ bytes: Int) throws -> Void)?
        /// Where the other side is, by which its negotiations are counted as well; empty where whoever carries the bytes does not say.
        public var place = ""
        /// What the two ends of the connection that carries this one, and nobody else, have in common: what an exporter of TLS gives. Given
        /// on both sides it shows that there is one such connection, and nobody in between; given here, the other side has to give it.
        public var outer: [UInt8] = []
        /// Told the device key of whoever was given the pairing.
        var admitted: (@Sendable (_ key: [UInt8]) -> Void)?
        /// Told when the other side has shown that it took what it was given.
        var settled: (@Sendable () -> Void)?
        /// The device key that the invitation is for; empty: whoever has it. Nobody else is told anything.
        var onlyFor: [UInt8] = []
        /// Hashes in a list, of both sides; fewer in tests.
        var hashesLimit = LiveFrame.hashesLimit
        /// Options of the side that connected, for all devices.
        /// - Parameter pairing: what both devices share.
        public init(pairing: Pairing) { self.pairing = pairing }
        /// Options of the side that connected, for the members of an encrypted place.
        /// - Parameter members: what they share.
        public init(members: MemberPairing) { self.members = members }
        /// Options of the side that connected, by an invitation, to get the pairing.
        /// - Parameter invitation: what the other device was given to show.
        public init(invitation: Invitation) { self.invitation = invitation }
        /// Options of the side that connected, to get the pairing once people have compared digits on both: `Status.digits`, `confirm`.
        public init() { comparesDigits = true }
    }

    /// How far a session is.
    public enum Phase: Int32, Sendable {
        /// It is not known yet who the other side is.
        case connecting = 0
        /// They find out what each lacks.
        case negotiating = 1
        /// Versions are on their way.
        case exchanging = 2
        /// Each has all that the other has.
        case inStep = 3
        /// Nothing comes any more.
        case ended = 4
    }

    /// What happened until now.
    public struct Status: Sendable {
        /// How far it is.
        public var phase = Phase.connecting
        /// What the other side says that it is called; empty before it is known.
        public var device = ""
        /// The public half of its device key; empty before it is known.
        public var key: [UInt8] = []
        /// The pairing that an invitation brought: to be kept in secret, for all further connections. Nil before it came.
        public var pairing: [UInt8]?
        /// Six digits to be compared by people, where that was asked for; empty before they are known.
        public var digits = ""
        /// How many versions were sent.
        public var sent = 0
        /// How many came, and were added here.
        public var received = 0
        /// Why it ended, unless both sides said goodbye.
        public var error: StoreError?
        /// Whether it waits for what another link brings, at most for some seconds.
        var waitsForOthers = false
    }

    let store: Store
    var options: Options
    private let lock = Lock(.unordered)
    /// The state as it was before the call that runs, and the thread of that: observers of the store are called from within it.
    private let shown = Guarded<(status: Status, thread: pthread_t?)>((Status(), nil))
    var link: LiveLink
    var status = Status()
    var problems: [ExchangeProblem] = []
    /// While people compare digits.
    var comparison: DigitComparison?
    var saidGoodbye = false, heardGoodbye = false, isClosing = false
    /// Whether a byte of the other side's came.
    private var hasCome = false
    /// What ended it while bytes were taken that go first.
    private var failing: (any Error)?
    var myHello = LiveFrame.Hello()
    var hello: LiveFrame.Hello?
    var negotiation: Negotiation?
    var have: LiveFrame.Have?
    var hasList = false
    /// Whether each side knows how far it has all of the other.
    var isKnown = false
    var ranges: RangeReconciliation?
    /// Frames that wait for nothing.
    var urgent: [[UInt8]] = []
    var urgentSize = 0

    // What goes, and what comes.
    var sending: Sending
    var receiving: Receiving

    // Time.
    private var hasHeard = true
    private var heardAt: Double?
    private var began: Double?
    private var hasPinged = false
    /// Whether versions were on their way since the last look at the clock, and when they were last.
    var hasMoved = false
    private var movedAt: Double?
    private var isInBackground = false

    /// A session that has sent nothing yet: `send` gives what the connection begins with.
    /// - Parameters:
    ///   - store: what is exchanged; it has to be writable.
    ///   - options: who this side is, and who the other has to be.
    /// - Throws: `.readOnly`, `.closed`, `.invalidArgument`, `.unsupported` when there is no libcrypto.
    public init(_ store: Store, options: Options) throws {
        try store.checkWritable("Exchanging directly")
        guard options.identity?.count ?? NoiseHandshake.keySize == NoiseHandshake.keySize,
            options.accepted.allSatisfy({ $0.count == NoiseHandshake.keySize })
        else { throw StoreError(.invalidArgument, "A device key has 32 bytes. Give all of it.") }
        guard options.device.utf8.count <= 255 else {
            throw StoreError(.invalidArgument, "A device's name has at most 255 bytes of UTF-8. Give a shorter one.")
        }
        var identity = options.identity ?? [UInt8](repeating: 0, count: NoiseHandshake.keySize)
        defer { Secret.wipe(&identity) }
        if options.identity == nil { try Pairing.fillRandom(&identity) }
        var options = options
        if let members = options.members {
            guard options.invitation == nil, !options.comparesDigits, options.pairing == nil else {
                throw StoreError(.invalidArgument, "A pairing follows from an encrypted place, and another way is given. Give one of them.")
            }
            options.pairing = try members.current()
        }
        self.store = store; self.options = options
        guard !options.comparesDigits || options.invitation == nil else {
            throw StoreError(.invalidArgument, "There is an invitation, and digits are to be compared. Give one of them.")
        }
        let toCompare = options.comparesDigits ? try Pairing.toCompare() : nil
        guard let linked = toCompare ?? options.invitation?.pairing ?? options.pairing else {
            throw StoreError(.invalidArgument, "There is neither a pairing nor an invitation. Give one of them, or compare digits.")
        }
        link = try LiveLink(linked, identity: Secret(identity), isInitiator: options.isInitiator)
        sending = Sending(VersionSource(store))
        receiving = Receiving(VersionSink(store, quota: options.quota))
    }
    deinit { end() }

    /// What is kept for the next connection, and what is not counted any more.
    func end() {
        receiving.sink.keepUnfinished()
        PeerKnowledge.of(store).leave(ObjectIdentifier(self))
        PeerKnowledge.of(store).save(store)
    }

    /// Whoever carried it does no more.
    func abandon() {
        lock.withLock {
            guard status.phase != .ended else { return }
            status.phase = .ended
            end()
            shown.withLock { $0.status = status }
        }
    }

    /// The public half of a device key.
    /// - Parameter identity: the secret half, 32 bytes.
    /// - Throws: `.invalidArgument`, `.unsupported`.
    public static func publicKey(of identity: [UInt8]) throws -> [UInt8] {
        guard identity.count == NoiseHandshake.keySize else {
            throw StoreError(.invalidArgument, "A device key has 32 bytes. Give all of it.")
        }
        return try Crypto(for: LiveLink.purpose).publicKey(of: Secret(identity))
    }

    /// How far it is, and what happened until now.
    public var state: Status { shown.withLock { $0.status } }

    private func checkOutside() throws {
        guard isWithin else { return }
        throw StoreError(
            .busy,
            "A connection cannot be used from within an observer of the store that hears of what it brought. Do it on another thread.")
    }

    /// Whether this is within a call of the session's on this thread: in an observer of the store, which hears of what it stored.
    private var isWithin: Bool { shown.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false } }

    /// The problems met since this was asked: versions that could not be sent or taken, and hold back only what builds on them. None from
    /// within an observer of the store.
    public func takeProblems() -> [ExchangeProblem] {
        if isWithin { return [] }
        return lock.withLock {
            defer { problems = [] }
            return problems + receiving.sink.takeProblems() + store.takeClockProblems()
        }
    }

    // MARK: What the carrier calls

    /// Takes what came of the connection, in pieces of any size.
    /// - Parameter bytes: what came; good during the call.
    /// - Throws: why the session ended, if it did by that: `.wrongKey` when the other side is not paired, `.damaged`, `.tooLarge`,
    ///   `.newerFormat`, and failures of the store. What is to be sent yet tells the other side.
    public func receive(_ bytes: UnsafeRawBufferPointer) throws {
        try step {
            (hasHeard, hasCome) = (true, hasCome || !bytes.isEmpty)
            try link.append(bytes)
            while status.phase != .ended {
                let wasOpen = link.isOpen
                let frame = try link.next()
                if !wasOpen, link.isOpen { try opened() }
                guard let frame else { break }
                try take(LiveFrame(frame))
            }
            try settle()
        }
    }

    /// The connection has ended: nothing comes any more.
    /// - Throws: `.wrongKey` when the other side ended it before it said who it is, as it does for those that it does not know; `.cutShort`
    ///   when it was cut.
    public func receiveEnd() throws { try receiveEnd(nil) }
    /// - Parameter cut: what the system says of a connection that did not come to an orderly end.
    func receiveEnd(_ cut: Errno?) throws {
        try step {
            guard status.phase != .ended else { return }
            guard heardGoodbye else { throw ended(cut) }
            status.phase = .ended
        }
    }

    /// Why it ended without a goodbye. Whoever listens closes without a byte when it does not know who connects.
    private func ended(_ cut: Errno?) -> StoreError {
        let how = cut.map { " (\($0))" } ?? ""
        if hasCome, options.invitation != nil, options.pairing == nil, status.pairing == nil {
            return StoreError(
                .cutShort,
                "The other side ended the connection before it gave the pairing\(how): it was cut, or the invitation is another device's "
                    + "by now. Nothing was exchanged. Connect again; if that does not help, ask for a new invitation there.")
        }
        guard options.isInitiator, !hasCome else {
            return StoreError(
                .cutShort, "The connection was cut\(how). What had come is kept; connect again, and the exchange goes on from there.")
        }
        guard cut == nil else {
            return StoreError(
                .cutShort,
                "The other side let nobody in\(how): it was ending, or has had too many tries from here that failed. Nothing was "
                    + "exchanged. Connect again in a minute; if that does not help, pair the two anew.")
        }
        let why =
            if options.invitation != nil {
                "does not know the invitation: it was used, is too old, or has another code. Nothing was exchanged. "
                    + "Ask for a new one there"
            } else if options.comparesDigits {
                "compares digits with nobody now. Nothing was exchanged. Have that asked for there, then connect again"
            } else if options.members != nil {
                "has other keys of the encrypted place, or offers its store no more. Nothing was exchanged. Exchange with the place on "
                    + "both, then connect again"
            } else {
                "does not know this pairing, or offers its store no more. Nothing was exchanged. Offer it there, or pair the two anew"
            }
        return StoreError(.wrongKey, "The other side \(why).")
    }

    /// Fills a buffer with what is to be sent next.
    /// - Returns: how much; 0: nothing, until something came, or was saved. Behind the end of a session, all has been given.
    /// - Throws: failures of the store.
    public func send(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        var filled = 0
        try step {
            if let failing {
                self.failing = nil
                // It may have ended by the same in the meantime: then its goodbye goes out.
                if status.phase != .ended { throw failing }
            }
            while filled < buffer.count {
                if link.outgoingCount == 0 {
                    do { try produce() } catch {
                        // What was taken may end within a message: it goes first, and why it ends behind it.
                        guard filled > 0 else { throw error }
                        failing = error
                        break
                    }
                }
                let count = link.take(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
                guard count > 0 else { break }
                filled += count
            }
        }
        return filled
    }

    /// Looks for versions that came into the store, to be sent. To be called when the store tells of some; of those that this very session
    /// has stored it needs to hear nothing.
    /// - Throws: failures of the store.
    public func storeChanged() throws {
        if isWithin { return }
        try step {
            guard status.phase != .ended else { return }
            try answerNews()
            guard sending.isOn, !isClosing else { return }
            _ = try store.reloadHistory()
            try push()
        }
    }

    /// Says whether the program is in the background from now on: then it says goodbye when no version went either way for 20 minutes.
    public func setBackground(_ isInBackground: Bool) {
        func set() { (self.isInBackground, hasMoved) = (isInBackground, true) }
        if isWithin { set() } else { lock.withLock(set) }
    }
    /// For how many seconds.
    static let idleLimit = 1_200.0
    /// So many seconds there are to say who one is.
    static let patience = 10.0
    static let stranger = StoreError(.cutShort, "The other side did not say within 10 seconds who it is. Connect again.")

    /// Says what time it is: a side that is silent is asked for a sign, and given up when there is none.
    /// - Parameter seconds: of any clock that never goes back.
    /// - Throws: `.cutShort` when the other side has been silent for 90 seconds, or for 10 before it said who it is.
    public func tick(_ seconds: Double) throws {
        try step {
            guard status.phase != .ended else { return }
            let began = self.began ?? seconds
            self.began = began
            if hasHeard || heardAt == nil { (heardAt, hasHeard, hasPinged) = (seconds, false, false) }
            if hasMoved || movedAt == nil { (movedAt, hasMoved) = (seconds, false) }
            if isInBackground, seconds - (movedAt ?? seconds) >= PeerSession.idleLimit { isClosing = true }
            try answerNews()
            let silent = seconds - (heardAt ?? seconds)
            if !link.isOpen, seconds - began > PeerSession.patience { throw PeerSession.stranger }
            if comparison != nil, seconds - began > DigitComparison.patience {
                throw StoreError(.cutShort, "Nobody said within 10 minutes that the digits are the same. Pair the two again.")
            }
            if silent > 90 { throw StoreError(.cutShort, "The other side has been silent for 90 seconds. Connect again.") }
            if silent > 30, link.isOpen, !hasPinged {
                hasPinged = true
                try say(.ping(UInt64(bitPattern: Int64(silent))))
            }
        }
    }

    /// Says that the person on this side sees the same digits on both (`Status.digits`). Whoever has no pairing gets it when both have.
    /// - Throws: `.invalidArgument` when there are no digits to compare.
    public func confirm() throws {
        try checkOutside()
        guard lock.withLock({ comparison?.digits != nil && status.phase != .ended }) else {
            throw StoreError(.invalidArgument, "There are no digits to confirm. Wait until the state of the connection has some.")
        }
        try step { try confirmDigits() }
    }

    /// Says goodbye once all that is queued has been sent; the session ends when the other side has said so, too.
    public func close() throws {
        try step {
            isClosing = true
            if !link.isOpen { status.phase = .ended }
        }
    }

    /// What throws ends the session, and the other side is told why.
    private func step(_ body: () throws -> Void) throws {
        try checkOutside()
        try lock.withLock {
            shown.withLock { $0.thread = pthread_self() }
            defer { shown.withLock { $0 = (status, nil) } }
            do {
                if let members = options.members, let pairing = options.pairing, status.phase != .ended, !members.isCurrent(pairing) {
                    throw MemberPairing.Renewed()
                }
                try body()
                updatePhase()
                if status.phase == .ended { end() }
            } catch {
                let (told, farewell) = PeerSession.told(error)
                if status.phase != .ended {
                    try? receiving.sink.flushBefore()
                    (urgent, urgentSize) = ([], 0)
                    if link.isOpen, !saidGoodbye, let farewell { try? link.send(farewell.encoded()) }
                    status.error = told
                    status.phase = .ended
                    end()
                }
                throw told
            }
        }
    }

    /// The person at the other end says that the digits are not the same, or does not want to pair.
    struct Declined: Error {}
    /// What the other side is told when the keys of the encrypted place were renewed.
    static let renewed = "the keys were renewed since"
    static let outside = "it is not at the other end of the connection that carries this one"

    /// Why it ended, for the program and for the other side.
    private static func told(_ error: any Error) -> (StoreError, LiveFrame?) {
        let store = LiveFrame.error(LiveFault.Code.store.rawValue, "the store could not go on")
        switch error {
        case let fault as LiveFault:
            let code: StoreError.Code =
                switch fault.code {
                case .bound, .pending: .tooLarge
                case .newer: .newerFormat
                case .key: .wrongKey
                default: .damaged
                }
            return (
                StoreError(
                    code, "The connection was ended, since the other side broke a rule: \(fault.why). What had been stored before is kept.",
                    versionID: fault.version?.description), .error(fault.code.rawValue, fault.why)
            )
        case let many as Negotiation.TooManyHeads:
            let count = many.count, limit = LiveFrame.headsLimit
            return (
                StoreError(
                    .tooLarge,
                    "This store has \(count) heads, and a device that has not met it lately is told of \(limit) at most. "
                        + "Merge some of them; then connect again."),
                .error(LiveFault.Code.bound.rawValue, "it has \(count) heads, which have to be merged there first")
            )
        case is NoiseHandshake.Refused:
            return (
                StoreError(
                    .wrongKey,
                    "The other side has another pairing, or somebody changed what it sent. What had come before is kept. Pair the two."),
                nil
            )
        case is MemberPairing.Renewed:
            return (
                StoreError(
                    .wrongKey,
                    "The keys of the encrypted place were renewed since this connection was made, as when a member is removed. What had "
                        + "come before is kept. Connect again: members get in."), .error(LiveFault.Code.key.rawValue, renewed)
            )
        case is Declined:
            return (
                StoreError(
                    .wrongKey,
                    "The other side says that the digits are not the same, or does not want to pair. Nothing was exchanged. "
                        + "Pair the two again."),
                .bye
            )
        case is LiveLink.Altered:
            return (
                StoreError(
                    .damaged, "Something between the two changed what the other side sent. What had come before is kept. Connect again."),
                nil
            )
        // A store that is closed is no fault of anybody's.
        case let error as StoreError where error.code == .closed: return (error, .bye)
        case let error as StoreError: return (error, [.cutShort, .wrongKey].contains(error.code) ? nil : store)
        default: return (StoreError(.internal, "A connection ended: \(error)."), store)
        }
    }

    private func updatePhase() {
        guard status.phase != .ended else { return }
        status.sent = max(0, status.sent)
        status.received = Int(clamping: receiving.sink.stored)
        status.waitsForOthers = receiving.news != nil
        guard link.isOpen else { return }
        if !sending.isOn { status.phase = .negotiating; return }
        let isSent = sending.isTaken && sending.acknowledged == sending.mark
        let isReceived = receiving.theirMark > 0 && receiving.frames.isEmpty && !receiving.sink.isWaiting
        status.phase = isSent && sending.news == nil && receiving.news == nil && isReceived ? .inStep : .exchanging
        if status.phase == .inStep { PeerKnowledge.of(store).save(store, atMostEvery: PeerKnowledge.pause) }
    }
}
