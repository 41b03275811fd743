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
        /// By which this connection is made; the side that has a pairing gives it to the other one, which has none.
        public var invitation: Invitation?
        /// The secret half of this device's key, 32 bytes; nil: one for this session alone, by which nobody knows the device again.
        public var identity: [UInt8]?
        /// What the other side is told that this device is called; at most 255 bytes.
        public var device = ""
        /// The public halves of the device keys that are accepted; empty: all that have the pairing.
        public var accepted: [[UInt8]] = []
        /// Options of the side that connected, for all devices.
        /// - Parameter pairing: what both devices share.
        public init(pairing: Pairing) { self.pairing = pairing }
        /// Options of the side that connected, by an invitation, to get the pairing.
        /// - Parameter invitation: what the other device was given to show.
        public init(invitation: Invitation) { self.invitation = invitation }
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
        /// How many versions were sent.
        public var sent = 0
        /// How many came, and were added here.
        public var received = 0
        /// Why it ended, unless both sides said goodbye.
        public var error: StoreError?
    }

    private let store: Store
    private let options: Options
    private let lock = Lock(.unordered)
    private var link: LiveLink
    private var status = Status()
    private var problems: [ExchangeProblem] = []
    private var hasSentHello = false, saidGoodbye = false, heardGoodbye = false, isClosing = false
    private var myHello = LiveFrame.Hello()
    private var hello: LiveFrame.Hello?
    private var negotiation: Negotiation?
    private var have: LiveFrame.Have?
    private var list: LiveFrame.Listed?
    private var hasList = false
    /// Frames that wait for nothing.
    private var urgent: [[UInt8]] = []
    private var urgentSize = 0

    // Sending.
    private var source: VersionSource
    private var isSending = false
    private var queue: [VersionID] = []
    private var queueAt = 0
    /// Rows of the history that were gone through.
    private var rows = 0
    private var mark: UInt64 = 0
    private var owesMark = false
    private var acknowledged: UInt64 = 0
    /// Bytes of versions in a frame: few at first, so that a link that is cut again and again gets on all the same.
    private var block = 16 << 10
    private var rest: [UInt8] = []
    private var restAt = 0
    private var credit: UInt64 = 0
    private var failed: Set<VersionID> = []
    private var wants: [(sha256: [UInt8], offset: UInt64, end: UInt64)] = []

    // Receiving.
    private var sink: VersionSink
    private var frames: [(ordinal: UInt64, codec: UInt8, raw: Int, bytes: [UInt8])] = []
    private var framesSize: UInt64 = 0
    private var consumed: UInt64 = 0
    private var theirMark: UInt64 = 0
    private var fromThem: Set<VersionID> = []

    // Time.
    private var hasHeard = true
    private var heardAt: Double?
    private var began: Double?
    private var hasPinged = false

    private static let blockSize = 256 << 10, outgoingSize = 256 << 10, urgentLimit = 4 << 20

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
        self.store = store; self.options = options
        guard let linked = options.invitation?.pairing ?? options.pairing else {
            throw StoreError(.invalidArgument, "There is neither a pairing nor an invitation. Give one of them.")
        }
        link = try LiveLink(linked, identity: Secret(identity), isInitiator: options.isInitiator)
        source = VersionSource(store)
        sink = VersionSink(store)
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
    public var state: Status { lock.withLock { status } }

    /// The problems met since this was asked: versions that could not be sent or taken, and hold back only what builds on them.
    public func takeProblems() -> [ExchangeProblem] {
        lock.withLock {
            defer { problems = [] }
            return problems + sink.takeProblems()
        }
    }

    // MARK: What the carrier calls

    /// Takes what came of the connection, in pieces of any size.
    /// - Parameter bytes: what came; good during the call.
    /// - Throws: why the session ended, if it did by that: `.wrongKey` when the other side is not paired, `.damaged`, `.tooLarge`,
    ///   `.newerFormat`, and failures of the store. What is to be sent yet tells the other side.
    public func receive(_ bytes: UnsafeRawBufferPointer) throws {
        try step {
            hasHeard = true
            try link.append(bytes)
            while status.phase != .ended {
                let wasOpen = link.isOpen
                let frame = try link.next()
                if !wasOpen, link.isOpen { try opened() }
                guard let frame else { break }
                try take(LiveFrame(frame))
            }
        }
    }

    /// The connection has ended: nothing comes any more.
    /// - Throws: `.cutShort` when it was cut.
    public func receiveEnd() throws {
        try step {
            guard status.phase != .ended else { return }
            guard heardGoodbye else {
                throw StoreError(
                    .cutShort, "The connection was cut. What had come is kept; connect again, and the exchange goes on from there.")
            }
            status.phase = .ended
        }
    }

    /// Fills a buffer with what is to be sent next.
    /// - Returns: how much; 0: nothing, until something came, or was saved. Behind the end of a session, all has been given.
    /// - Throws: failures of the store.
    public func send(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        var filled = 0
        try step {
            while filled < buffer.count {
                if link.outgoing.isEmpty { try produce() }
                let count = link.take(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
                guard count > 0 else { break }
                filled += count
            }
        }
        return filled
    }

    /// Looks for versions that came into the store, to be sent. To be called when the store tells of some.
    /// - Throws: failures of the store.
    public func storeChanged() throws {
        try step {
            guard isSending, status.phase != .ended, !isClosing else { return }
            _ = try store.reloadHistory()
            queueArrivals()
        }
    }

    /// Says what time it is: a side that is silent is asked for a sign, and given up when there is none.
    /// - Parameter seconds: of any clock that never goes back.
    /// - Throws: `.cutShort` when the other side has been silent for 90 seconds, or for 10 before it said who it is.
    public func tick(_ seconds: Double) throws {
        try step {
            guard status.phase != .ended else { return }
            let began = self.began ?? seconds
            self.began = began
            if hasHeard || heardAt == nil { (heardAt, hasHeard, hasPinged) = (seconds, false, false) }
            let silent = seconds - (heardAt ?? seconds)
            if !link.isOpen, seconds - began > 10 {
                throw StoreError(.cutShort, "The other side did not say within 10 seconds who it is. Connect again.")
            }
            if silent > 90 { throw StoreError(.cutShort, "The other side has been silent for 90 seconds. Connect again.") }
            if silent > 30, link.isOpen, !hasPinged {
                hasPinged = true
                try say(.ping(UInt64(bitPattern: Int64(silent))))
            }
        }
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
        try lock.withLock {
            do {
                try body()
                updatePhase()
            } catch {
                let (told, code, text) = PeerSession.told(error)
                if status.phase != .ended {
                    (urgent, urgentSize) = ([], 0)
                    if link.isOpen, let code { try? link.send(LiveFrame.error(code.rawValue, text).encoded()) }
                    status.error = told
                    status.phase = .ended
                }
                throw told
            }
        }
    }

    private static func told(_ error: any Error) -> (StoreError, LiveFault.Code?, String) {
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
                    versionID: fault.version?.description), fault.code, fault.why)
        case is NoiseHandshake.Refused:
            return (
                StoreError(
                    .wrongKey,
                    "The other side has another pairing, or somebody changed what it sent. What had come before is kept. Pair the two."),
                nil, "")
        case is LiveLink.Altered:
            return (
                StoreError(
                    .damaged, "Something between the two changed what the other side sent. What had come before is kept. Connect again."),
                nil, "")
        case let error as StoreError:
            return (error, error.code == .cutShort ? nil : .store, "the store could not go on")
        default: return (StoreError(.internal, "A connection ended: \(error)."), .store, "the store could not go on")
        }
    }

    private func updatePhase() {
        guard status.phase != .ended else { return }
        status.sent = max(0, status.sent)
        status.received = Int(clamping: sink.stored)
        guard link.isOpen else { return }
        if !isSending { status.phase = .negotiating; return }
        let isSent = queueAt == queue.count && restAt == rest.count && !owesMark && acknowledged == mark
        status.phase = isSent && theirMark > 0 && frames.isEmpty && !sink.isWaiting ? .inStep : .exchanging
    }

    // MARK: What is said

    private func say(_ frame: LiveFrame) throws {
        let bytes = frame.encoded()
        urgent.append(bytes)
        urgentSize += bytes.count
        guard urgentSize <= PeerSession.urgentLimit else { throw LiveFault(.bound, "it asks, and does not take the answers") }
    }

    /// The link is open: it is known who the other side is.
    private func opened() throws {
        status.key = link.theirKey
        guard options.accepted.isEmpty || options.accepted.contains(where: { Crypto.equal($0, link.theirKey) }) else {
            throw LiveFault(.key, "its device key is not accepted")
        }
        _ = try store.reloadHistory()
        let place = LivePlace.of(store)
        myHello = LiveFrame.Hello(
            device: options.device, incarnation: place.incarnation, arrivals: UInt64(store.rowCount) + 1,
            since: place.since(of: link.theirKey, in: store))
        if options.invitation != nil, let pairing = options.pairing { try say(.pairing(pairing.bytes)) }
        try say(.hello(myHello))
    }

    /// Puts what is to be sent into the link, as far as is allowed, up to some bytes.
    private func produce() throws {
        for frame in urgent { try link.send(frame) }
        (urgent, urgentSize) = ([], 0)
        guard status.phase != .ended, link.isOpen else { return }
        while link.outgoing.count < PeerSession.outgoingSize {
            if try sendPiece() { continue }
            if try sendData() { continue }
            break
        }
        if isClosing, !saidGoodbye, !isSending || acknowledged == mark {
            saidGoodbye = true
            try link.send(LiveFrame.bye.encoded())
            if heardGoodbye { status.phase = .ended }
        }
    }

    private func sendPiece() throws -> Bool {
        guard let want = wants.first else { return false }
        let count = Int(min(UInt64(PeerSession.blockSize), want.end - want.offset))
        var piece: [UInt8] = []
        do { piece = try source.piece(want.sha256, want.offset, count) } catch let error as StoreError where error.code != .closed {
            problems.append(ExchangeProblem(name: "", error: error))
        }
        try link.send(LiveFrame.blob(sha256: want.sha256, offset: want.offset, bytes: piece).encoded())
        wants[0].offset += UInt64(piece.count)
        if piece.isEmpty || wants[0].offset == want.end { wants.removeFirst() }
        return true
    }

    private func sendData() throws -> Bool {
        guard isSending, restAt < rest.count || queueAt < queue.count || owesMark else { return false }
        // Behind codec, size and ordinal, what is not made smaller.
        guard credit >= UInt64(PeerSession.blockSize + 13) else { return false }
        while rest.count - restAt < block, queueAt < queue.count {
            let id = queue[queueAt]
            queueAt += 1
            if let payload = try payload(of: id) {
                rest += payload
                status.sent += id == EmptyRoot.id ? 0 : 1
            }
        }
        let end = min(rest.count, restAt + block)
        block = min(2 * block, PeerSession.blockSize)
        let raw = Array(rest[restAt..<end])
        restAt = end
        if restAt == rest.count || restAt > 1 << 20 {
            rest.removeFirst(restAt)
            restAt = 0
        }
        if queueAt == queue.count { (queue, queueAt) = ([], 0) }
        var ordinal: UInt64 = 0
        if restAt == rest.count, queue.isEmpty {
            ordinal = mark
            owesMark = false
        }
        guard !raw.isEmpty || ordinal > 0 else { return true }
        let deflated = PeerSession.deflate(raw)
        let frame = LiveFrame.data(ordinal: ordinal, codec: deflated == nil ? 0 : 1, raw: raw.count, bytes: deflated ?? raw).encoded()
        credit -= min(credit, UInt64(frame.count - 1))
        try link.send(frame)
        return true
    }

    private static func deflate(_ raw: [UInt8]) -> [UInt8]? {
        guard raw.count > 64 else { return nil }
        var out = [UInt8](repeating: 0, count: raw.count - 1)
        let size = raw.withUnsafeBytes { raw in
            out.withUnsafeMutableBytes { out in
                if let from = raw.baseAddress, let to = out.baseAddress { llvs_shim_deflate(from, raw.count, to, out.count) } else { 0 }
            }
        }
        guard size > 0 else { return nil }
        out.removeLast(out.count - size)
        return out
    }

    /// Nil when the version cannot be sent; then neither can what builds on it.
    private func payload(of id: VersionID) throws -> [UInt8]? {
        do {
            if let held = try store.version(id)?.predecessors.first(where: failed.contains) {
                throw StoreError(
                    .missingPredecessor, "The version \(id) was not sent, since its predecessor \(held) could not be.",
                    versionID: held.description)
            }
            return try source.payload(of: id)
        } catch let error as StoreError where [.damaged, .tooLarge, .io, .notFound, .missingPredecessor].contains(error.code) {
            failed.insert(id)
            problems.append(ExchangeProblem(name: id.description, error: error))
            // What was told of the order of arrival does not hold for it.
            LivePlace.of(store).renew()
            return nil
        }
    }

    // MARK: What comes

    private func take(_ frame: LiveFrame) throws {
        if case .error(let code, let text) = frame {
            throw StoreError(
                code == LiveFault.Code.key.rawValue ? .wrongKey : .damaged,
                "The other side ended the connection (\(code)): \(text). What had been stored before is kept.")
        }
        guard let hello else {
            let awaitsPairing = options.pairing == nil && status.pairing == nil
            switch frame {
            case .pairing(let bytes) where awaitsPairing: return status.pairing = bytes
            case .hello(let hello) where !awaitsPairing: return try greet(hello)
            default: throw LiveFault(.frame, awaitsPairing ? "it does not begin with PAIRING" : "it does not begin with HELLO")
            }
        }
        switch frame {
        case .have, .list, .data, .news, .bye:
            guard !heardGoodbye else { throw LiveFault(.frame, "more came behind BYE") }
        default: break
        }
        switch frame {
        case .hello, .pairing: throw LiveFault(.frame, "a second beginning came")
        case .have(let theirs):
            guard negotiation != nil, have == nil else { throw LiveFault(.frame, "HAVE is not due") }
            have = theirs
            try compare(theirs)
        case .list(let theirs):
            guard let have, negotiation != nil, !hasList else { throw LiveFault(.frame, "LIST is not due") }
            hasList = true
            list = theirs
            guard !isSending else { return }
            try send(have, theirs)
        case .data(let ordinal, let codec, let raw, let bytes):
            framesSize += UInt64(bytes.count) + 13
            guard framesSize + consumed <= myHello.window else { throw LiveFault(.bound, "it sends more than it was allowed") }
            frames.append((ordinal, codec, raw, bytes))
            try drain(hello)
        case .blob(let sha256, let offset, let bytes):
            if try sink.take(blob: sha256, offset, bytes) { try drain(hello) }
            try ask()
        case .want(let sha256, let offset, let length):
            guard wants.count < 64 else { throw LiveFault(.bound, "it asks for many values at once") }
            wants.append((sha256, offset, offset.addingReportingOverflow(UInt64(length)).partialValue))
            guard wants.last.map({ $0.end >= offset }) ?? false else { throw LiveFault(.frame, "a value is asked for behind its end") }
        case .ack(_, let ordinal):
            guard ordinal <= mark else { throw LiveFault(.frame, "something is acknowledged that was not sent") }
            acknowledged = max(acknowledged, ordinal)
            if acknowledged == mark, queue.isEmpty, rest.isEmpty { source.forget() }
        case .credit(let more):
            let (sum, over) = credit.addingReportingOverflow(more)
            guard !over, sum <= LiveFrame.largestWindow else { throw LiveFault(.bound, "it allows more than a window") }
            credit = sum
        case .ping(let token): try say(.pong(token))
        case .bye:
            heardGoodbye = true
            isClosing = true
            if saidGoodbye { status.phase = .ended }
        case .news, .pong, .unknown, .error: break
        }
    }

    private func greet(_ theirs: LiveFrame.Hello) throws {
        guard theirs.first <= LiveFrame.protocolNumber, theirs.last >= LiveFrame.protocolNumber else {
            throw LiveFault(.newer, "it speaks the protocols \(theirs.first) to \(theirs.last)")
        }
        hello = theirs
        status.device = theirs.device
        credit = theirs.window
        func fits(_ since: LiveFrame.Since, _ other: LiveFrame.Hello) -> Bool {
            since.incarnation != .zero && since.ordinal > 0 && since.incarnation == other.incarnation && since.ordinal <= other.arrivals
        }
        if fits(theirs.since, myHello), fits(myHello.since, theirs) {
            rows = Int(clamping: theirs.since.ordinal - 1)
            isSending = true
            queueArrivals(evenNone: true)
            return
        }
        var negotiation = try Negotiation(store, hash: link.hash)
        try say(.have(negotiation.have()))
        self.negotiation = negotiation
    }

    private func compare(_ theirs: LiveFrame.Have) throws {
        guard var negotiation else { return }
        if negotiation.mine.isSame(theirs) { return try send([]) }
        try say(.list(negotiation.list(theirs)))
        self.negotiation = negotiation
        if negotiation.knowsAll { try send(theirs, nil) }
    }

    private func send(_ theirs: LiveFrame.Have, _ list: LiveFrame.Listed?) throws {
        guard let negotiation else { return }
        try send(negotiation.missing(theirs, list))
    }

    /// What the other side lacks is known: it is sent, and what comes from now on as well.
    private func send(_ missing: [VersionID]) throws {
        rows = Int(clamping: myHello.arrivals - 1)
        isSending = true
        queue = missing
        // What came since the link was opened was told of in part.
        queueArrivals(evenNone: true, but: Set(missing))
    }

    private func queueArrivals(evenNone: Bool = false, but known: Set<VersionID> = []) {
        // First how far the history is, then what is in it: what comes meanwhile is looked at the next time.
        let end = store.settledRows(from: rows)
        let later = store.arrivals(behind: rows, but: fromThem.union(known))
        rows = end
        if end == store.rowCount { fromThem = [] }
        guard evenNone || !later.isEmpty else { return }
        queue.removeFirst(queueAt)
        queueAt = 0
        queue += later
        mark = UInt64(rows) + 1
        owesMark = true
    }

    /// Takes the frames that wait, up to a value that has to come first.
    private func drain(_ hello: LiveFrame.Hello) throws {
        try sink.run()
        while !sink.isWaiting, let frame = frames.first {
            frames.removeFirst()
            try sink.append(PeerSession.inflate(frame))
            try sink.run()
            fromThem.formUnion(sink.takeAdded())
            let size = UInt64(frame.bytes.count) + 13
            framesSize -= min(framesSize, size)
            consumed += size
            if sink.isWaiting {
                // What this frame says of order holds when all of it has been stored.
                if frame.ordinal > 0 { frames.insert((frame.ordinal, 0, 0, []), at: 0); framesSize += 13; consumed -= min(consumed, 13) }
                break
            }
            guard frame.ordinal > 0 else { continue }
            theirMark = frame.ordinal
            if sink.refused == 0 {
                LivePlace.of(store).note(
                    LiveFrame.Since(incarnation: hello.incarnation, ordinal: frame.ordinal), of: link.theirKey, in: store)
            }
            try say(.ack(count: sink.stored, ordinal: frame.ordinal))
        }
        fromThem.formUnion(sink.takeAdded())
        try ask()
        if consumed >= myHello.window / 4 {
            try say(.credit(consumed))
            consumed = 0
        }
    }

    private func ask() throws { if let want = sink.want() { try say(want) } }

    private static func inflate(_ frame: (ordinal: UInt64, codec: UInt8, raw: Int, bytes: [UInt8])) throws -> [UInt8] {
        switch frame.codec {
        case 0:
            guard frame.raw == frame.bytes.count else { throw LiveFault(.frame, "DATA has two sizes") }
            return frame.bytes
        case 1:
            try Memory.expect(frame.raw, "Receiving versions")
            var isWhole = false
            let raw = [UInt8](unsafeUninitializedCapacity: frame.raw) { buffer, filled in
                frame.bytes.withUnsafeBytes { bytes in
                    if let to = buffer.baseAddress, let from = bytes.baseAddress {
                        isWhole = llvs_shim_inflate(from, bytes.count, to, frame.raw) == 1
                    }
                }
                filled = isWhole ? frame.raw : 0
            }
            guard isWhole else { throw LiveFault(.frame, "DATA does not inflate to what it says") }
            return raw
        default: throw LiveFault(.newer, "DATA has the codec \(frame.codec)")
        }
    }
}
