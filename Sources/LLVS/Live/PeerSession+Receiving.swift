/// What the other end of a direct connection says, and what is done with it.
extension PeerSession {
    /// How far it is with receiving.
    struct Receiving {
        var sink: VersionSink
        /// Those that came and wait, and their bytes.
        var frames: ArraySlice<(ordinal: UInt64, codec: UInt8, raw: Int, bytes: [UInt8])> = []
        var framesSize: UInt64 = 0
        /// Bytes that the other side may have under way: those that were taken are allowed anew.
        var window = LiveFrame.firstWindow
        /// Bytes that were taken since the other side was allowed more, and since the window grew.
        var consumed: UInt64 = 0, sinceGrown: UInt64 = 0
        /// How far all that the other side has came.
        var theirMark: UInt64 = 0
        /// Versions that came over this link, which need not go back.
        var fromThem: Set<VersionID> = []
        /// Of what the other side told, and since when that waits for an answer: some of it is on its way over another link.
        var news: (ids: [VersionID], at: Double)?
        init(_ sink: VersionSink) { self.sink = sink }
    }

    func take(_ frame: LiveFrame) throws {
        if case .error(let code, let text) = frame { throw PeerSession.ended(code, text) }
        guard let hello else {
            guard comparison == nil else { return try takeComparing(frame) }
            let awaitsPairing = options.pairing == nil && status.pairing == nil
            switch frame {
            case .pairing(let bytes) where awaitsPairing: return status.pairing = bytes
            case .hello(let hello) where !awaitsPairing: return try greet(hello)
            case .bye:
                throw StoreError(
                    .cutShort,
                    "The other side ended the connection before it began, as its store was closed. Nothing was exchanged. "
                        + "Connect again.")
            default: throw LiveFault(.frame, awaitsPairing ? "it does not begin with PAIRING" : "it does not begin with HELLO")
            }
        }
        switch frame {
        case .data, .blob, .want, .news, .ask: hasMoved = true
        default: break
        }
        switch frame {
        case .data, .blob: PeerKnowledge.of(store).noteHeard(ObjectIdentifier(self))
        default: break
        }
        switch frame {
        // One of them comes of everybody, and only behind what this side began with: a pairing, and HELLO.
        case .have, .data:
            options.settled?()
            options.settled = nil
        default: break
        }
        switch frame {
        case .list where sending.asking != nil: break
        case .have, .list, .ranges, .data, .news, .bye:
            guard !heardGoodbye else { throw LiveFault(.frame, "more came behind BYE") }
        default: break
        }
        switch frame {
        case .hello, .pairing, .commitment, .nonce: throw LiveFault(.frame, "a second beginning came")
        case .have(let theirs):
            guard negotiation != nil || isKnown, have == nil else { throw LiveFault(.frame, "HAVE is not due") }
            have = theirs
            try isKnown ? answer(theirs) : compare(theirs)
        case .list(let theirs):
            if sending.asking != nil { return try send(lacking: theirs) }
            guard let have, negotiation != nil, !hasList else { throw LiveFault(.frame, "LIST is not due") }
            hasList = true
            guard !sending.isOn else { return }
            try compare(have, theirs, hello)
        case .ranges(let theirs):
            guard ranges != nil else { throw LiveFault(.frame, "RANGES is not due") }
            if let answer = try ranges?.take(theirs) { try say(.ranges(answer)) }
            try finishRanges()
        case .data(let ordinal, let codec, let raw, let bytes):
            receiving.framesSize += UInt64(bytes.count) + 13
            guard receiving.framesSize + receiving.consumed <= receiving.window else {
                throw LiveFault(.bound, "it sends more than it was allowed")
            }
            receiving.frames.append((ordinal, codec, raw, bytes))
            try drain(hello)
        case .blob(let sha256, let offset, let bytes):
            if try receiving.sink.take(blob: sha256, offset, bytes) { try drain(hello) }
            try ask()
        case .want(let sha256, let offset, let length):
            guard sending.wants.count < 64 else { throw LiveFault(.bound, "it asks for many values at once") }
            sending.wants.append((sha256, offset, offset.addingReportingOverflow(UInt64(length)).partialValue))
            guard sending.wants.last.map({ $0.end >= offset }) ?? false else {
                throw LiveFault(.frame, "a value is asked for behind its end")
            }
        case .ack(_, let ordinal):
            guard ordinal <= sending.mark else { throw LiveFault(.frame, "something is acknowledged that was not sent") }
            if ordinal > sending.acknowledged { PeerKnowledge.of(store).noteAcknowledged() }
            sending.acknowledged = max(sending.acknowledged, ordinal)
            if sending.acknowledged == sending.mark, sending.queue.isEmpty, sending.rest.isEmpty { sending.source.forget() }
        case .credit(let more):
            let (sum, over) = sending.credit.addingReportingOverflow(more)
            guard !over, sum <= LiveFrame.largestWindow else { throw LiveFault(.bound, "it allows more than a window") }
            sending.credit = sum
        case .ping(let token): try say(.pong(token))
        case .bye:
            heardGoodbye = true
            isClosing = true
            if saidGoodbye { status.phase = .ended }
        case .news(let ids):
            guard hello.features & LiveFrame.asks != 0 else { break }
            guard receiving.news == nil else { throw LiveFault(.frame, "NEWS came before the last of it was answered") }
            receiving.news = (ids, Clock.steady())
            try answerNews()
        case .ask(let ids): try send(asked: ids)
        case .pong, .unknown, .error: break
        }
    }

    /// Why the other side says that it ends the connection.
    private static func ended(_ code: UInt16, _ text: String) -> StoreError {
        switch LiveFault.Code(rawValue: code) {
        case .key where text == renewed:
            StoreError(
                .wrongKey,
                "The other side ended the connection, as the keys were renewed since it was made. What had come before is kept. Connect "
                    + "again: members get in.")
        case .key where text == outside:
            StoreError(
                .wrongKey,
                "The other side says that this one is not at the other end of the connection that carries the link: somebody between "
                    + "the two holds two connections, or only one side gave what is outside. Nothing was exchanged. Connect to the host "
                    + "itself, and give it on both sides.")
        case .key:
            StoreError(
                .wrongKey,
                "The other side does not accept the key of this device. Nothing was exchanged. Have it accepted there, then connect again.")
        case .store:
            StoreError(
                .transport,
                "The other side ended the connection: \(text). What had been stored before is kept. See what its store lacks, then connect "
                    + "again.")
        default:
            StoreError(.damaged, "The other side ended the connection (\(code)): \(text). What had been stored before is kept.")
        }
    }

    // MARK: Digits

    private func takeComparing(_ frame: LiveFrame) throws {
        guard var comparison else { return }
        switch frame {
        case .ping(let token): try say(.pong(token))
        case .pong: break
        case .bye:
            guard saidGoodbye else { throw Declined() }
            (heardGoodbye, status.phase) = (true, .ended)
            return
        case .commitment, .nonce:
            if let answer = try comparison.take(frame) { try say(answer) }
            status.digits = comparison.digits ?? ""
        case .pairing(let bytes) where comparison.digits != nil && options.pairing == nil && comparison.pairing == nil:
            comparison.pairing = bytes
        case .hello(let theirs)
        where comparison.digits != nil && comparison.hello == nil && (options.pairing != nil || comparison.pairing != nil):
            comparison.hello = theirs
        default: throw LiveFault(.frame, "a comparison of digits does not go so")
        }
        self.comparison = comparison
        try finishComparison()
    }

    func confirmDigits() throws {
        guard comparison?.isConfirmed == false else { return }
        comparison?.isConfirmed = true
        if let pairing = options.pairing { try say(.pairing(pairing.bytes)) }
        try say(.hello(myHello))
        try finishComparison()
    }

    /// Goes on once the person here has confirmed, and the other side, too.
    private func finishComparison() throws {
        guard let comparison, comparison.isConfirmed else { return }
        status.pairing = comparison.pairing
        guard let hello = comparison.hello else { return }
        self.comparison = nil
        if options.pairing != nil { options.admitted?(link.theirKey) }
        try greet(hello)
    }

    // MARK: An exchange

    private func greet(_ theirs: LiveFrame.Hello) throws {
        guard theirs.first <= LiveFrame.protocolNumber, theirs.last >= LiveFrame.protocolNumber else {
            throw LiveFault(.newer, "it speaks the protocols \(theirs.first) to \(theirs.last)")
        }
        guard options.outer.isEmpty || Crypto.equal(theirs.outer, myHello.outer) else {
            throw LiveFault(.key, PeerSession.outside)
        }
        hello = theirs
        status.device = theirs.device
        sending.credit = theirs.window
        let bothTell = theirs.features & myHello.features & LiveFrame.tellsEarlier != 0
        func fits(_ since: LiveFrame.Since, _ other: LiveFrame.Hello) -> Bool {
            guard since.incarnation != .zero, since.ordinal > 0, since.ordinal <= other.arrivals else { return false }
            return since.incarnation == other.incarnation
                || bothTell && other.earlier.contains { $0.incarnation == since.incarnation && since.ordinal <= $0.ordinal }
        }
        if fits(theirs.since, myHello), fits(myHello.since, theirs) {
            isKnown = true
            return try send(behind: Int(clamping: theirs.since.ordinal - 1), to: theirs)
        }
        guard mayNegotiate else {
            throw LiveFault(.bound, "it finds out anew what is lacking again and again")
        }
        var negotiation = try Negotiation(store, hash: link.hash, hashesLimit: options.hashesLimit)
        let have = try negotiation.have()
        guard have.headCount <= LiveFrame.headsLimit else { throw Negotiation.TooManyHeads(count: have.headCount) }
        try say(.have(have))
        self.negotiation = negotiation
    }

    private func compare(_ theirs: LiveFrame.Have) throws {
        guard var negotiation else { return }
        if negotiation.mine.isSame(theirs) { return try send([]) }
        try say(.list(negotiation.list(theirs)))
        self.negotiation = negotiation
        if negotiation.knowsAll { try send(theirs, nil) }
    }

    /// What is here of what a known side has: it sends the rest.
    private func answer(_ theirs: LiveFrame.Have) throws {
        guard mayNegotiate else {
            // It sends all that came there.
            return try say(.list(LiveFrame.Listed(hasMore: true, bits: theirs.ids.map { _ in false })))
        }
        var negotiation = try Negotiation(store, hash: link.hash, hashesLimit: options.hashesLimit)
        try say(.list(negotiation.list(theirs)))
    }

    /// By the lists of both, or by ranges where these would be too long.
    private func compare(_ have: LiveFrame.Have, _ theirs: LiveFrame.Listed, _ hello: LiveFrame.Hello) throws {
        guard hello.features & LiveFrame.comparesRanges != 0, let found = try negotiation?.ranges(have, theirs) else {
            return try send(have, theirs)
        }
        ranges = found
        guard options.isInitiator, let beginning = try ranges?.begin() else { return }
        try say(.ranges(beginning))
        try finishRanges()
    }
    private func finishRanges() throws {
        guard let found = ranges, found.isDone else { return }
        ranges = nil
        try send(found.lacking)
    }

    /// Takes the frames that wait, up to a value that has to come first.
    private func drain(_ hello: LiveFrame.Hello) throws {
        try receiving.sink.run()
        while !receiving.sink.isWaiting, let frame = receiving.frames.first {
            receiving.frames[receiving.frames.startIndex].bytes = []
            try receiving.sink.append(PeerSession.inflate(frame))
            try receiving.sink.run()
            let size = UInt64(frame.bytes.count) + 13
            receiving.framesSize -= min(receiving.framesSize, size)
            receiving.consumed += size
            receiving.sinceGrown += size
            if receiving.sink.isWaiting, frame.ordinal > 0 {
                // What this frame says of order holds when all of it has been stored.
                receiving.frames[receiving.frames.startIndex] = (frame.ordinal, 0, 0, [])
                receiving.framesSize += 13
                receiving.consumed -= min(receiving.consumed, 13)
                receiving.sinceGrown -= min(receiving.sinceGrown, 13)
                break
            }
            // Of a slice, in constant time: there may be as many empty frames as the window has room for.
            receiving.frames.removeFirst()
            guard frame.ordinal > 0 else { continue }
            try settle()
            receiving.theirMark = frame.ordinal
            if receiving.sink.refused == 0 {
                PeerKnowledge.of(store).note(
                    LiveFrame.Since(incarnation: hello.incarnation, ordinal: frame.ordinal), of: link.theirKey, in: store)
            }
            try say(.ack(count: receiving.sink.stored, ordinal: frame.ordinal))
        }
        try ask()
        try allowMore()
    }

    /// As much again as was taken, and twice as much at once when half of the window was: so who is far away is not waited for each time.
    private func allowMore() throws {
        guard receiving.consumed >= receiving.window / 4 else { return }
        var more = receiving.consumed
        if receiving.sinceGrown >= receiving.window / 2, receiving.window < LiveFrame.largestWindow {
            more += receiving.window
            receiving.window *= 2
            receiving.sinceGrown = 0
        }
        try say(.credit(more))
        receiving.consumed = 0
    }

    /// Stores what came, as one batch.
    func settle() throws {
        try receiving.sink.flush()
        let added = receiving.sink.takeAdded()
        receiving.fromThem.formUnion(added)
        if !added.isEmpty { markReceived() }
        LateArrivals.of(store).note(added)
        if !added.isEmpty { PeerKnowledge.of(store).noteCame(added, over: ObjectIdentifier(self)) }
    }

    /// Asks for what the other side told of and is not here. What is on its way over another link is waited for first, for a while.
    func answerNews() throws {
        guard let news = receiving.news else { return }
        let isLate = Clock.steady() - news.at >= AskedVersions.patience
        let lacking = try PeerKnowledge.of(store).lacking(
            news.ids, over: ObjectIdentifier(self), in: store, evenElsewhere: isLate || isClosing, isLate: isLate || !isClosing)
        guard let lacking else { return }
        receiving.news = nil
        try say(.ask(lacking))
    }

    private func ask() throws { if let want = try receiving.sink.want() { try say(want) } }

    private static func inflate(_ frame: (ordinal: UInt64, codec: UInt8, raw: Int, bytes: [UInt8])) throws -> [UInt8] {
        switch frame.codec {
        case 0:
            guard frame.raw == frame.bytes.count else { throw LiveFault(.frame, "DATA has two sizes") }
            return frame.bytes
        case 1:
            try Memory.expect(frame.raw, "Receiving versions")
            guard let raw = frame.bytes.withUnsafeBytes({ Inflated.bytes(frame.raw, from: $0) }) else {
                throw LiveFault(.frame, "DATA does not inflate to what it says")
            }
            return raw
        default: throw LiveFault(.newer, "DATA has the codec \(frame.codec)")
        }
    }
}
