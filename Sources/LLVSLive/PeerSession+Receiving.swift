/// Handles the frames of the other side.
extension PeerSession {
    /// The state of receiving.
    struct Receiving {
        var sink: VersionSink
        /// Frames that wait, and their bytes.
        var frames: ArraySlice<(ordinal: UInt64, codec: UInt8, raw: Int, bytes: [UInt8])> = []
        var framesSize: UInt64 = 0
        /// The receive window. Consumed bytes are credited back.
        var window = LiveFrame.firstWindow
        /// Bytes consumed since the last credit, and since the window grew.
        var consumed: UInt64 = 0, sinceGrown: UInt64 = 0
        /// The other side's ordinal up to which everything has arrived.
        var theirMark: UInt64 = 0
        /// Versions that arrived over this link, which need not be sent back.
        var fromThem: Set<VersionID> = []
        /// Announced versions that wait for an answer, and since when: some are on their way over another link.
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
        // The first of these frames shows that the other side has completed its beginning: a pairing, and HELLO.
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
                throw LiveFault(.frame, "a value is requested beyond its end")
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
            guard receiving.news == nil else { throw LiveFault(.frame, "NEWS came before the last one was answered") }
            receiving.news = (ids, Clock.steady())
            try answerNews()
        case .ask(let ids): try send(asked: ids)
        case .pong, .unknown, .error: break
        }
    }

    /// Returns the error for the other side's reason to end the connection.
    private static func ended(_ code: UInt16, _ text: String) -> StoreError {
        switch LiveFault.Code(rawValue: code) {
        case .key where text == renewed:
            StoreError(
                .wrongKey,
                "The other side ended the connection, as the keys were renewed since it was made. What came before remains. Connect "
                    + "again: members get in.")
        case .key where text == outside:
            StoreError(
                .wrongKey,
                "The other side says that this one is not at the other end of the connection that carries the link: a device between "
                    + "the two holds two connections, or only one side gave the outer secret. Nothing was exchanged. Connect to the host "
                    + "itself, and give the secret on both sides.")
        case .key:
            StoreError(
                .wrongKey,
                "The other side does not accept the key of this device. Nothing was exchanged. Have it accepted there, then connect again.")
        case .store:
            StoreError(
                .transport,
                "The other side ended the connection: \(text). What was stored before remains. Check what its store lacks, then connect "
                    + "again.")
        default:
            StoreError(.damaged, "The other side ended the connection (\(code)): \(text). What was stored before remains.")
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
        default: throw LiveFault(.frame, "a comparison of digits has other frames")
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

    /// Continues once the persons on both sides have confirmed.
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
        sending.source.hasDifferences = theirs.features & LiveFrame.readsDifferences != 0
        sending.source.hasHollow = theirs.features & LiveFrame.readsHollow != 0
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
            throw LiveFault(.bound, "it asks again and again which versions are lacking")
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

    /// Answers a known side which of its versions are present. It sends the rest.
    private func answer(_ theirs: LiveFrame.Have) throws {
        guard mayNegotiate else {
            // After this answer the other side sends everything that arrived on its side.
            return try say(.list(LiveFrame.Listed(hasMore: true, bits: theirs.ids.map { _ in false })))
        }
        var negotiation = try Negotiation(store, hash: link.hash, hashesLimit: options.hashesLimit)
        try say(.list(negotiation.list(theirs)))
    }

    /// Compares by the lists of both sides, or by ranges if lists would be too long.
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

    /// Reads the waiting frames, up to a large value that must arrive first.
    private func drain(_ hello: LiveFrame.Hello) throws {
        try receiving.sink.run()
        while !receiving.sink.isWaiting, let frame = receiving.frames.first {
            receiving.frames[receiving.frames.startIndex].bytes = []
            try receiving.sink.append(PeerSession.inflate(frame), came: frame.bytes.count)
            try receiving.sink.run()
            let size = UInt64(frame.bytes.count) + 13
            receiving.framesSize -= min(receiving.framesSize, size)
            receiving.consumed += size
            receiving.sinceGrown += size
            if receiving.sink.isWaiting, frame.ordinal > 0 {
                // The ordinal of this frame applies once all of it has been stored.
                receiving.frames[receiving.frames.startIndex] = (frame.ordinal, 0, 0, [])
                receiving.framesSize += 13
                receiving.consumed -= min(receiving.consumed, 13)
                receiving.sinceGrown -= min(receiving.sinceGrown, 13)
                break
            }
            // On a slice this takes constant time: there may be as many empty frames as fit into the window.
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

    /// Credits the consumed bytes. If half of the window was consumed, doubles the window, so that a slow round trip does not stall the
    /// other side.
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

    /// Stores what arrived, as one batch.
    func settle() throws {
        try receiving.sink.flush()
        let added = receiving.sink.takeAdded()
        receiving.fromThem.formUnion(added)
        if !added.isEmpty { markReceived() }
        LateArrivals.of(store).note(added)
        if !added.isEmpty { PeerKnowledge.of(store).noteCame(added, over: ObjectIdentifier(self)) }
    }

    /// Requests the announced versions that are not stored. If some are on their way over another link, it waits for these first, for a
    /// while.
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
