import CLLVSShims

/// What one end of a direct connection says: the versions that the other side lacks, as far as it allows, and pieces of large values that
/// it asks for.
extension PeerSession {
    /// How far it is with sending.
    struct Sending {
        var source: VersionSource
        /// It is known what the other side lacks.
        var isOn = false
        /// Versions that are to go, from `queueAt` on.
        var queue: [VersionID] = []
        var queueAt = 0
        /// Rows of the history that were gone through.
        var rows = 0
        /// What the other side has when it has all of the queue, by the order of arrival here; whether that is to be said, and which it
        /// has acknowledged.
        var mark: UInt64 = 0
        var owesMark = false
        var acknowledged: UInt64 = 0
        /// Bytes of versions in a frame: few at first, so that a link that is cut again and again gets on all the same.
        var block = 16 << 10
        /// Bytes of versions that are in no frame yet, from `restAt` on.
        var rest: [UInt8] = []
        var restAt = 0
        /// Bytes that the other side allows.
        var credit: UInt64 = 0
        /// Versions that cannot be sent.
        var failed: Set<VersionID> = []
        /// Versions that the other side was told of and has not asked for yet, and how far the history was.
        var news: (ids: [VersionID], rows: Int)?
        /// The other side was asked what it has of what came here, of so many rows.
        var asking: (negotiation: Negotiation, rows: Int)?
        /// Pieces of large values that the other side asked for.
        var wants: [(sha256: [UInt8], offset: UInt64, end: UInt64)] = []
        init(_ source: VersionSource) { self.source = source }

        /// All that is to be sent was put into frames, and so was the mark behind it.
        var isTaken: Bool { queueAt == queue.count && restAt == rest.count && !owesMark }
    }

    private static let blockSize = 256 << 10, outgoingSize = 256 << 10, urgentLimit = 4 << 20
    /// Links of a store that are sent what comes to it; where there are more, they are told of it.
    private static let mostWithoutAsking = 4

    func say(_ frame: LiveFrame) throws {
        let bytes = frame.encoded()
        urgent.append(bytes)
        // With what an array takes beside its bytes: most are short.
        urgentSize += bytes.count + 48
        guard urgentSize <= PeerSession.urgentLimit else { throw LiveFault(.bound, "it asks, and does not take the answers") }
    }

    /// The link is open: it is known who the other side is.
    func opened() throws {
        status.key = link.theirKey
        guard options.onlyFor.isEmpty || Crypto.equal(options.onlyFor, link.theirKey) else {
            throw StoreError(.cutShort, "The invitation is another device's by now, which was cut when it used it. Make a new one.")
        }
        // Whoever is given the pairing is new here.
        let gives = options.pairing != nil && (options.invitation != nil || options.comparesDigits)
        guard gives || options.accepted.isEmpty || options.accepted.contains(where: { Crypto.equal($0, link.theirKey) }) else {
            throw LiveFault(.key, "its device key is not accepted")
        }
        // Of the devices that are let in by their keys there are few: their address does not count.
        if !options.accepted.isEmpty { (options.accepted, options.place) = ([], "") }
        _ = try store.reloadHistory()
        let known = PeerKnowledge.of(store)
        known.load(store)
        // What is being stored just now counts as coming later: nothing else would send it.
        myHello = LiveFrame.Hello(
            device: options.device, incarnation: known.incarnation, arrivals: UInt64(store.settledRows(from: 0)) + 1,
            since: known.since(of: link.theirKey, in: store), earlier: known.earlier)
        if !options.outer.isEmpty {
            myHello.outer = try link.mac(options.outer)
            myHello.features |= LiveFrame.tellsOuter
        }
        if options.comparesDigits {
            let comparison = try DigitComparison(isInitiator: options.isInitiator, hash: link.hash)
            if let beginning = comparison.beginning { try say(beginning) }
            self.comparison = comparison
            return
        }
        if options.invitation != nil, let pairing = options.pairing {
            try say(.pairing(pairing.bytes))
            options.admitted?(link.theirKey)
        }
        try say(.hello(myHello))
    }

    /// Puts what is to be sent into the link, as far as is allowed, up to some bytes.
    func produce() throws {
        if isClosing { try answerNews() }
        for frame in urgent { try link.send(frame) }
        (urgent, urgentSize) = ([], 0)
        guard status.phase != .ended, link.isOpen else { return }
        while link.outgoingCount < PeerSession.outgoingSize {
            if try sendPiece() { continue }
            if try sendData() { continue }
            break
        }
        let isSent = sending.isOn ? sending.news == nil && sending.acknowledged == sending.mark : sending.asking == nil
        if isClosing, !saidGoodbye, isSent {
            saidGoodbye = true
            try link.send(LiveFrame.bye.encoded())
            if heardGoodbye { status.phase = .ended }
        }
    }

    private func sendPiece() throws -> Bool {
        guard let want = sending.wants.first else { return false }
        let count = Int(min(UInt64(PeerSession.blockSize), want.end - want.offset))
        var piece: [UInt8] = []
        do { piece = try sending.source.piece(want.sha256, want.offset, count) } catch let error as StoreError where error.code != .closed {
            problems.append(ExchangeProblem(name: "", error: error))
        }
        try link.send(LiveFrame.blob(sha256: want.sha256, offset: want.offset, bytes: piece).encoded())
        sending.wants[0].offset += UInt64(piece.count)
        if piece.isEmpty || sending.wants[0].offset == want.end { sending.wants.removeFirst() }
        return true
    }

    private func sendData() throws -> Bool {
        guard sending.isOn, !sending.isTaken else { return false }
        // Behind codec, size and ordinal, what is not made smaller.
        guard sending.credit >= UInt64(PeerSession.blockSize + 13) else { return false }
        while sending.rest.count - sending.restAt < sending.block, sending.queueAt < sending.queue.count {
            let id = sending.queue[sending.queueAt]
            sending.queueAt += 1
            if let payload = try payload(of: id) {
                sending.rest += payload
                status.sent += id == EmptyRoot.id ? 0 : 1
            }
        }
        let end = min(sending.rest.count, sending.restAt + sending.block)
        sending.block = min(2 * sending.block, PeerSession.blockSize)
        let raw = Array(sending.rest[sending.restAt..<end])
        sending.restAt = end
        if sending.restAt == sending.rest.count || sending.restAt > 1 << 20 {
            sending.rest.removeFirst(sending.restAt)
            sending.restAt = 0
        }
        if sending.queueAt == sending.queue.count { (sending.queue, sending.queueAt) = ([], 0) }
        var ordinal: UInt64 = 0
        if sending.restAt == sending.rest.count, sending.queue.isEmpty {
            ordinal = sending.mark
            sending.owesMark = false
        }
        guard !raw.isEmpty || ordinal > 0 else { return true }
        let deflated = PeerSession.deflate(raw)
        hasMoved = true
        let frame = LiveFrame.data(ordinal: ordinal, codec: deflated == nil ? 0 : 1, raw: raw.count, bytes: deflated ?? raw).encoded()
        sending.credit -= min(sending.credit, UInt64(frame.count - 1))
        try link.send(frame)
        return true
    }

    private static func deflate(_ raw: [UInt8]) -> [UInt8]? {
        guard raw.count > 64 else { return nil }
        var out = [UInt8](repeating: 0, count: raw.count - 1)
        let size = raw.withUnsafeBytes { raw in
            out.withUnsafeMutableBytes { out in
                guard let from = raw.baseAddress, let to = out.baseAddress else { return 0 }
                return llvs_shim_deflate_fast(from, raw.count, to, out.count)
            }
        }
        guard size > 0 else { return nil }
        out.removeLast(out.count - size)
        return out
    }

    /// Nil when the version cannot be sent; then neither can what builds on it.
    private func payload(of id: VersionID) throws -> [UInt8]? {
        do {
            if !sending.failed.isEmpty, let held = try store.version(id)?.predecessors.first(where: sending.failed.contains) {
                throw StoreError(
                    .missingPredecessor, "The version \(id) was not sent, since its predecessor \(held) could not be.",
                    versionID: held.description)
            }
            return try sending.source.payload(of: id)
        } catch let error as StoreError where [.damaged, .tooLarge, .io, .notFound, .missingPredecessor].contains(error.code) {
            sending.failed.insert(id)
            problems.append(ExchangeProblem(name: id.description, error: error))
            // What was told of the order of arrival does not hold for it.
            PeerKnowledge.of(store).renew(store)
            return nil
        }
    }

    func send(_ theirs: LiveFrame.Have, _ list: LiveFrame.Listed?) throws {
        guard let negotiation else { return }
        try send(negotiation.missing(theirs, list))
    }

    /// What the other side lacks is known: it is sent, and what comes from now on as well.
    func send(_ missing: [VersionID]) throws {
        sending.rows = Int(clamping: myHello.arrivals - 1)
        begin()
        sending.queue = missing
        // HELLO and HAVE covered only the versions that were here when the link was opened.
        queueArrivals(evenNone: true, but: Set(missing))
    }

    /// What came here later than the other side knows is sent: at once where it is little, else what it lacks of it, which it is asked.
    func send(behind rows: Int, to theirs: LiveFrame.Hello) throws {
        sending.rows = rows
        let end = Int(clamping: myHello.arrivals - 1), answers = theirs.features & LiveFrame.listsWhenKnown != 0
        if answers, try isMuch(behind: rows), mayNegotiate {
            var asking = try Negotiation(store, hash: link.hash, hashesLimit: options.hashesLimit)
            let have = try asking.have()
            if have.headCount <= LiveFrame.headsLimit {
                try say(.have(have))
                sending.asking = (asking, end)
                return
            }
        }
        begin()
        queueArrivals(evenNone: true)
    }

    /// Whether one more walk over all that is here may be made for the other side.
    var mayNegotiate: Bool {
        PeerKnowledge.of(store).mayNegotiate(link.theirKey, from: options.place)
    }

    /// Whether what came behind the first rows has more bytes than are sent unasked.
    private func isMuch(behind rows: Int) throws -> Bool {
        var source = VersionSource(store), size = 0
        for id in store.arrivals(behind: rows, but: receiving.fromThem) {
            do { size += try source.payload(of: id).count } catch let error as StoreError where error.code != .closed { continue }
            if size > LiveFrame.unaskedLimit { return true }
        }
        return false
    }

    /// What the other side has of what it was asked about is not sent.
    func send(lacking list: LiveFrame.Listed) throws {
        guard let (asking, end) = sending.asking else { return }
        sending.asking = nil
        let lacking = Set(try asking.missing(LiveFrame.Have(), list))
        let known = store.arrivals(behind: sending.rows, but: receiving.fromThem).filter { !lacking.contains($0) }
        begin()
        // What came since HAVE was made is not among what was asked about.
        let asked = Set(known).subtracting(store.arrivals(behind: end, but: []))
        queueArrivals(evenNone: true, but: asked)
    }

    /// From now on what comes to the store is sent.
    func begin() {
        sending.isOn = true
        PeerKnowledge.of(store).join(ObjectIdentifier(self))
    }

    /// Sends what came to the store; where many are linked to it, whoever lacks it still asks for it first.
    func push() throws {
        let tells = PeerKnowledge.of(store).linkCount > PeerSession.mostWithoutAsking
        guard tells, let hello, hello.features & LiveFrame.asks != 0 else { return queueArrivals() }
        guard sending.news == nil else { return }
        let end = store.settledRows(from: sending.rows), later = store.arrivals(behind: sending.rows, but: receiving.fromThem)
        guard !later.isEmpty, later.count <= LiveFrame.newsLimit else { return queueArrivals() }
        sending.news = (later, end)
        hasMoved = true
        try say(.news(later))
    }

    /// The other side lacks these of what it was told of.
    func send(asked ids: [VersionID]) throws {
        guard let news = sending.news, Set(ids).isSubset(of: news.ids) else {
            throw LiveFault(.frame, "it asks for versions that it was not told of")
        }
        let wanted = Set(ids)
        sending.news = nil
        queue(news.ids.filter(wanted.contains), upTo: news.rows)
        try push()
    }

    func queueArrivals(evenNone: Bool = false, but known: Set<VersionID> = []) {
        // First how far the history is, then what is in it: what comes meanwhile is looked at the next time.
        let end = store.settledRows(from: sending.rows)
        let later = store.arrivals(behind: sending.rows, but: receiving.fromThem.union(known))
        // That all which came is the other side's own is said as well: the next link would bring it back, else.
        guard evenNone || !later.isEmpty || UInt64(end) + 1 > sending.mark else { return seen(end) }
        queue(later, upTo: end)
    }

    private func seen(_ end: Int) {
        sending.rows = end
        if end == store.rowCount { receiving.fromThem = [] }
    }

    /// What came over the link counts among what the other side has: it is told so, and a later link begins behind it.
    func markReceived() {
        guard sending.isOn, !saidGoodbye, sending.news == nil else { return }
        let end = store.settledRows(from: sending.rows)
        guard UInt64(end) + 1 > sending.mark, store.arrivals(behind: sending.rows, but: receiving.fromThem).isEmpty else { return }
        queue([], upTo: end)
    }

    /// Versions that are to go, behind which the other side has all up to some row of the history.
    private func queue(_ versions: [VersionID], upTo end: Int) {
        seen(end)
        sending.queue.removeFirst(sending.queueAt)
        sending.queueAt = 0
        sending.queue += versions
        sending.mark = UInt64(end) + 1
        sending.owesMark = true
    }
}
