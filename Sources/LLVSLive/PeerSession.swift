import CLLVSShims

/// Runs one end of a direct connection between two stores, without the connection: it reads the bytes that arrived and returns the bytes to
/// send (docs/live-protocol.md). The program that carries the bytes decides when; the session never waits.
///
/// Both stores receive the versions that they lack. Then they receive each other's saves as long as the connection lasts. If it breaks,
/// stored versions remain, and the next connection continues from there.
///
/// Threads: all calls may be made from any thread. The calls of one session wait for each other.
public final class PeerSession: @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    /// The options of a session.
    public struct Options: Sendable {
        /// Whether this side opened the connection.
        public var isInitiator = true
        /// The secret that both devices share; nil if this side gets it by an invitation.
        public var pairing: Pairing?
        /// The pairing of the members of an encrypted place, instead of `pairing`. The connection ends when the keys of the place are
        /// renewed.
        public var members: MemberPairing?
        /// The invitation of this connection. The side that has a pairing gives it to the other side, which has none.
        public var invitation: Invitation?
        /// Whether people compare digits, after which the side without a pairing gets it.
        public var comparesDigits = false
        /// The secret half of this device's key, 32 bytes; nil for a key of this session only, by which the device cannot be recognised.
        public var identity: [UInt8]?
        /// The name of this device for the other side, at most 255 bytes.
        public var device = ""
        /// The public halves of the accepted device keys; empty to accept each device that has the pairing. A device that gets the
        /// pairing on this connection, by an invitation or by comparing digits, is accepted whatever its key.
        public var accepted: [[UInt8]] = []
        /// Called before this many more bytes are stored or requested. If it throws, the connection ends, and they are not stored. It is
        /// called while the session works: it must not call the session or the store.
        public var quota: (@Sendable (_ bytes: Int) throws -> Void)?
        /// The address of the other side, by which its negotiations are limited, too; empty if the program does not know it.
        public var place = ""
        /// A secret of both ends of the connection that carries this one: the value of a TLS exporter. If both sides pass it, that proves
        /// that there is one such connection, and no device in between. If this side passes it, the other side must.
        public var outer: [UInt8] = []
        /// Called with the key of the device that was given the pairing.
        var admitted: (@Sendable (_ key: [UInt8]) -> Void)?
        /// Called when the other side has proved that it received the pairing.
        var settled: (@Sendable () -> Void)?
        /// The device key that the invitation is for; empty for any. Other devices get no answer.
        var onlyFor: [UInt8] = []
        /// The most hashes in a list, on both sides. Lower in tests.
        var hashesLimit = LiveFrame.hashesLimit
        /// Options of the side that connects, for all devices of a pairing.
        /// - Parameter pairing: the secret that both devices share.
        public init(pairing: Pairing) { self.pairing = pairing }
        /// Options of the side that connects, for the members of an encrypted place.
        /// - Parameter members: their pairing.
        public init(members: MemberPairing) { self.members = members }
        /// Options of the side that connects with an invitation, to get the pairing.
        /// - Parameter invitation: the invitation that the other device returned.
        public init(invitation: Invitation) { self.invitation = invitation }
        /// Options of the side that connects to get the pairing after people have compared digits on both sides: `Status.digits`,
        /// `confirm`.
        public init() { comparesDigits = true }
    }

    /// The phase of a session.
    public enum Phase: Int32, Sendable {
        /// The other side is not known yet.
        case connecting = 0
        /// Both sides find out what each lacks.
        case negotiating = 1
        /// Versions are on their way.
        case exchanging = 2
        /// Each side has everything that the other has.
        case inStep = 3
        /// The session has ended.
        case ended = 4
    }

    /// The state of a session so far.
    public struct Status: Sendable {
        /// The phase of the session.
        public var phase = Phase.connecting
        /// The name that the other side gives; empty before it is known.
        public var device = ""
        /// The public half of its device key; empty before it is known.
        public var key: [UInt8] = []
        /// The pairing that an invitation brought. Store it as a secret, for all further connections. Nil before it arrived.
        public var pairing: [UInt8]?
        /// Six digits for people to compare, if that was asked for; empty before they are known.
        public var digits = ""
        /// The number of versions sent.
        public var sent = 0
        /// The number of versions that arrived and were added.
        public var received = 0
        /// Why the session ended, unless both sides said goodbye.
        public var error: StoreError?
        /// Whether it waits for versions over another link, at most for some seconds.
        var waitsForOthers = false
    }

    let store: Store
    var options: Options
    private let lock = Lock(.unordered)
    /// The state before the running call, and the thread of that call: it may call observers of the store.
    private let shown = Guarded<(status: Status, thread: pthread_t?)>((Status(), nil))
    var link: LiveLink
    var status = Status()
    var problems: [ExchangeProblem] = []
    /// Set while people compare digits.
    var comparison: DigitComparison?
    var saidGoodbye = false, heardGoodbye = false, isClosing = false
    /// Whether a byte of the other side arrived.
    private var hasCome = false
    /// The error that will end the session after the remaining bytes are sent.
    private var failing: (any Error)?
    var myHello = LiveFrame.Hello()
    var hello: LiveFrame.Hello?
    var negotiation: Negotiation?
    var have: LiveFrame.Have?
    var hasList = false
    /// Whether each side knows how far it has everything of the other.
    var isKnown = false
    var ranges: RangeReconciliation?
    /// Frames that go before all others.
    var urgent: [[UInt8]] = []
    var urgentSize = 0

    // The states of sending and receiving.
    var sending: Sending
    var receiving: Receiving

    // Time.
    private var hasHeard = true
    /// Bytes that arrived since `cameAt`, and that time, by the steady clock.
    private var heardBytes = 0, cameAt = -Double.infinity
    /// Receiving this many bytes of a frame proves that the other side is alive.
    static let sign = 16 << 10
    private var heardAt: Double?
    private var began: Double?
    private var hasPinged = false
    /// Whether versions moved since the last `tick`, and when they last did.
    var hasMoved = false
    private var movedAt: Double?
    private var isInBackground = false

    /// Creates a session that has sent nothing yet: `send` returns the connection's first bytes.
    /// - Parameters:
    ///   - store: the store to exchange. It must be writable.
    ///   - options: the identity of this side, and the condition for the other.
    /// - Throws: `.readOnly`, `.closed`, `.invalidArgument`, `.unsupported` if there is no libcrypto.
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
                throw StoreError(.invalidArgument, "The pairing of an encrypted place is given, and another way. Give one of them.")
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

    /// Stores what the next connection needs, and no longer counts as a session of the store.
    func end() {
        receiving.sink.keepUnfinished()
        PeerKnowledge.of(store).leave(ObjectIdentifier(self))
        PeerKnowledge.of(store).save(store)
    }

    /// Ends the session. The program carries it no longer.
    func abandon() {
        lock.withLock {
            guard status.phase != .ended else { return }
            status.phase = .ended
            end()
            shown.withLock { $0.status = status }
        }
    }

    /// Returns the public half of a device key.
    /// - Parameter identity: the secret half, 32 bytes.
    /// - Throws: `.invalidArgument`, `.unsupported`.
    public static func publicKey(of identity: [UInt8]) throws -> [UInt8] {
        guard identity.count == NoiseHandshake.keySize else {
            throw StoreError(.invalidArgument, "A device key has 32 bytes. Give all of it.")
        }
        return try Crypto(for: LiveLink.purpose).publicKey(of: Secret(identity))
    }

    /// The phase, and what happened so far.
    public var state: Status { shown.withLock { $0.status } }

    private func checkOutside() throws {
        guard isWithin else { return }
        throw StoreError(
            .busy,
            "A connection cannot be used from within an observer of the store that hears of what it received. Do it on another thread.")
    }

    /// Whether this thread is within a call of the session: an observer of the store is being notified of versions that the session stored.
    private var isWithin: Bool { shown.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false } }

    /// Returns the problems since the last call: versions that could not be sent or received, and hold back only their successors.
    /// Returns none within an observer of the store.
    public func takeProblems() -> [ExchangeProblem] {
        if isWithin { return [] }
        return lock.withLock {
            defer { problems = [] }
            return problems + receiving.sink.takeProblems() + store.takeClockProblems()
        }
    }

    // MARK: What the carrier calls

    /// Reads bytes that arrived, in pieces of any size.
    /// - Parameter bytes: valid during the call.
    /// - Throws: the error by which the session ended: `.wrongKey` if the other side is not paired, `.damaged`, `.tooLarge`,
    ///   `.newerFormat`, and errors of the store. `send` returns the bytes that report it to the other side.
    public func receive(_ bytes: UnsafeRawBufferPointer) throws {
        try step {
            hasCome = hasCome || !bytes.isEmpty
            hear(bytes.count)
            try link.append(bytes)
            while status.phase != .ended {
                let wasOpen = link.isOpen
                let frame = try link.next()
                if !wasOpen, link.isOpen { try opened() }
                guard let frame else { break }
                (hasHeard, heardBytes, cameAt) = (true, 0, Clock.steady())
                try take(LiveFrame(frame))
            }
            try settle()
        }
    }

    /// Records received bytes. A whole frame proves that the other side is alive. In a slow frame, only parts of a certain size do, so that
    /// a side that sends single bytes counts as silent.
    private func hear(_ count: Int) {
        heardBytes += count
        if !link.isOpen || heardBytes >= PeerSession.sign { (hasHeard, heardBytes, cameAt) = (true, 0, Clock.steady()) }
    }

    /// Ends the session after the connection has ended.
    /// - Throws: `.wrongKey` if the other side ended it before it identified itself, as it does for unknown devices; `.cutShort` if the
    ///   connection was cut.
    public func receiveEnd() throws { try receiveEnd(nil) }
    /// - Parameter cut: the system's error if the connection did not end in order.
    func receiveEnd(_ cut: Errno?) throws {
        try step {
            guard status.phase != .ended else { return }
            guard heardGoodbye else { throw ended(cut) }
            status.phase = .ended
        }
    }

    /// Returns the error for an end without a goodbye. A listener closes without sending a byte if it does not know the device.
    private func ended(_ cut: Errno?) -> StoreError {
        let how = cut.map { " (\($0))" } ?? ""
        if hasCome, options.invitation != nil, options.pairing == nil, status.pairing == nil {
            return StoreError(
                .cutShort,
                "The other side ended the connection before it gave the pairing\(how): it was cut, or another device used the "
                    + "invitation. Nothing was exchanged. Connect again; if that does not help, ask for a new invitation there.")
        }
        guard options.isInitiator, !hasCome else {
            return StoreError(
                .cutShort, "The connection was cut\(how). What came remains; connect again, and the exchange continues from there.")
        }
        guard cut == nil else {
            return StoreError(
                .cutShort,
                "The other side let no device in\(how): it was ending, or saw too many failed attempts from here. Nothing was "
                    + "exchanged. Connect again in a minute; if that does not help, pair the two again.")
        }
        let why =
            if options.invitation != nil {
                "does not know the invitation: it was used, is too old, or has another code. Nothing was exchanged. "
                    + "Ask for a new one there"
            } else if options.comparesDigits {
                "does not compare digits now. Nothing was exchanged. Begin a comparison there, then connect again"
            } else if options.members != nil {
                "has other keys of the encrypted place, or offers its store no more. Nothing was exchanged. Exchange with the place on "
                    + "both, then connect again"
            } else {
                "does not know this pairing, or offers its store no more. Nothing was exchanged. Offer it there, or pair the two again"
            }
        return StoreError(.wrongKey, "The other side \(why).")
    }

    /// Fills a buffer with the next bytes to send.
    /// - Returns: the number of bytes; 0 if there is nothing to send until bytes arrive or a version is saved. After the end of a
    ///   session, 0 means that everything was returned.
    /// - Throws: errors of the store.
    public func send(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        var filled = 0
        try step {
            if let failing {
                self.failing = nil
                // The session may have ended by the same error meanwhile. If so, its goodbye is sent.
                if status.phase != .ended { throw failing }
            }
            while filled < buffer.count {
                if link.outgoingCount == 0 {
                    do { try produce() } catch {
                        // The returned bytes may end within a message, so the rest is sent before the reason for the end.
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

    /// Checks the store for new versions to send. Call it when the store reports some. Versions that this session stored need no call.
    /// - Throws: errors of the store.
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

    /// Sets whether the program is in the background. In the background, the session says goodbye after 20 minutes without versions in
    /// either direction.
    public func setBackground(_ isInBackground: Bool) {
        func set() { (self.isInBackground, hasMoved) = (isInBackground, true) }
        if isWithin { set() } else { lock.withLock(set) }
    }
    /// The most idle seconds in the background.
    static let idleLimit = 1_200.0
    /// The seconds within which the other side must identify itself.
    static let patience = 10.0
    static let stranger = StoreError(.cutShort, "The other side did not identify itself within 10 seconds. Connect again.")

    /// Informs the session of the time. Pings a silent side, and ends the session if it does not answer.
    /// - Parameter seconds: the time by a monotonic clock.
    /// - Throws: `.cutShort` if the other side was silent for 90 seconds, or for 10 before it identified itself.
    public func tick(_ seconds: Double) throws {
        try step {
            guard status.phase != .ended else { return }
            let began = self.began ?? seconds
            self.began = began
            if link.isOpen, !PeerKnowledge.of(store).lasts(ObjectIdentifier(self), heardAt: cameAt) {
                throw StoreError(.cutShort, "The other side has opened another link, and was silent on this one. It ends for that.")
            }
            if hasHeard || heardAt == nil { (heardAt, hasHeard, hasPinged) = (seconds, false, false) }
            if hasMoved || movedAt == nil { (movedAt, hasMoved) = (seconds, false) }
            if isInBackground, seconds - (movedAt ?? seconds) >= PeerSession.idleLimit { isClosing = true }
            try answerNews()
            let silent = seconds - (heardAt ?? seconds)
            if !link.isOpen, seconds - began > PeerSession.patience { throw PeerSession.stranger }
            if comparison != nil, seconds - began > DigitComparison.patience {
                throw StoreError(.cutShort, "The digits were not confirmed within 10 minutes. Pair the two again.")
            }
            if silent > 90 { throw StoreError(.cutShort, "The other side has been silent for 90 seconds. Connect again.") }
            if silent > 30, link.isOpen, !hasPinged {
                hasPinged = true
                try say(.ping(UInt64(bitPattern: Int64(silent))))
            }
        }
    }

    /// Confirms that the person on this side sees the same digits on both sides (`Status.digits`). The side without a pairing gets it
    /// when both have confirmed.
    /// - Throws: `.invalidArgument` if there are no digits to compare.
    public func confirm() throws {
        try checkOutside()
        guard lock.withLock({ comparison?.digits != nil && status.phase != .ended }) else {
            throw StoreError(.invalidArgument, "There are no digits to confirm. Wait until the state of the connection has some.")
        }
        try step { try confirmDigits() }
    }

    /// Says goodbye once everything queued has been sent. The session ends when the other side has done so, too.
    public func close() throws {
        try step {
            isClosing = true
            if !link.isOpen { status.phase = .ended }
        }
    }

    /// Runs one call. An error ends the session, and is reported to the other side.
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

    /// The person at the other end says that the digits differ, or does not want to pair.
    struct Declined: Error {}
    /// The reason reported to the other side if the keys of the encrypted place were renewed.
    static let renewed = "the keys were renewed since"
    static let outside = "it is not at the other end of the connection that carries this one"

    /// Returns the error for the program, and the frame that reports it to the other side.
    private static func told(_ error: any Error) -> (StoreError, LiveFrame?) {
        let store = LiveFrame.error(LiveFault.Code.store.rawValue, "the store failed")
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
                    code, "The connection was ended, since the other side broke a rule: \(fault.why). What was stored before remains.",
                    versionID: fault.version?.description), .error(fault.code.rawValue, fault.why)
            )
        case let many as Negotiation.TooManyHeads:
            let count = many.count, limit = LiveFrame.headsLimit
            return (
                StoreError(
                    .tooLarge,
                    "This store has \(count) heads, of which it announces at most \(limit) to a device with no recent link to it. "
                        + "Merge some of them; then connect again."),
                .error(LiveFault.Code.bound.rawValue, "it has \(count) heads, which have to be merged there first")
            )
        case is NoiseHandshake.Refused:
            return (
                StoreError(
                    .wrongKey,
                    "The other side has another pairing, or its bytes were changed on the way. What came before remains. Pair the two."),
                nil
            )
        case is MemberPairing.Renewed:
            return (
                StoreError(
                    .wrongKey,
                    "The keys of the encrypted place were renewed since this connection was made, as when a member is removed. What "
                        + "came before remains. Connect again: members get in."), .error(LiveFault.Code.key.rawValue, renewed)
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
                    .damaged, "Something between the two changed what the other side sent. What came before remains. Connect again."),
                nil
            )
        // Closing the store is no error.
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
        if status.phase == .inStep {
            PeerKnowledge.of(store).save(store, atMostEvery: PeerKnowledge.pause)
            store.noteDevice(status.device, key: link.theirKey)
        }
    }
}
