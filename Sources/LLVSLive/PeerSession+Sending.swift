import CLLVSShims

/// Sends to the other side: the versions that it lacks, as far as it has given credit, and the pieces of large values that it requests.
extension PeerSession {
    /// The state of sending.
    struct Sending {
        var source: VersionSource
        /// Whether it is known what the other side lacks.
        var isOn = false
        /// Versions to send, from `queueAt` on.
        var queue: [VersionID] = []
        var queueAt = 0
        /// The number of rows of the history that were examined.
        var rows = 0
        /// Ordinals in the order of arrival: up to where the other side has everything once the queue is sent; whether that is still to be
        /// reported; what the other side has acknowledged.
        var mark: UInt64 = 0
        var owesMark = false
        var acknowledged: UInt64 = 0
        /// Bytes of versions in a frame: few at first, so that a link that is cut again and again makes progress.
        var block = 16 << 10
        /// Bytes of versions that are in no frame yet, from `restAt` on.
        var rest: [UInt8] = []
        var restAt = 0
        /// Bytes that the other side allows.
        var credit: UInt64 = 0
        /// Versions that cannot be sent.
        var failed: Set<VersionID> = []
        /// Versions that were announced and not requested yet, and the number of rows at that time.
        var news: (ids: [VersionID], rows: Int)?
        /// The pending question to the other side which of the versions that arrived it has, and the number of rows at that time.
        var asking: (negotiation: Negotiation, rows: Int)?
        /// Requested pieces of large values.
        var wants: [(sha256: [UInt8], offset: UInt64, end: UInt64)] = []
        init(_ source: VersionSource) { self.source = source }

        /// Whether the queue and the mark after it were put into frames.
        var isTaken: Bool { queueAt == queue.count && restAt == rest.count && !owesMark }
    }

    private static let blockSize = 256 << 10, outgoingSize = 256 << 10, urgentLimit = 4 << 20
    /// The most links of a store over which new versions are sent unasked. Over more links they are announced.
    private static let mostWithoutAsking = 4

    func say(_ frame: LiveFrame) throws {
        let bytes = frame.encoded()
        urgent.append(bytes)
        // Include the overhead of an array, since most frames are short.
        urgentSize += bytes.count + 48
        guard urgentSize <= PeerSession.urgentLimit else { throw LiveFault(.bound, "it sends requests, and does not read the responses") }
    }

    /// Called when the link is open and the other side is known.
    func opened() throws {
        status.key = link.theirKey
        guard options.onlyFor.isEmpty || Crypto.equal(options.onlyFor, link.theirKey) else {
            throw StoreError(.cutShort, "Another device used the invitation, and was cut off. Make a new one.")
        }
        // A device that is given the pairing is new.
        let gives = options.pairing != nil && (options.invitation != nil || options.comparesDigits)
        guard gives || options.accepted.isEmpty || options.accepted.contains(where: { Crypto.equal($0, link.theirKey) }) else {
            throw LiveFault(.key, "its device key is not accepted")
        }
        // There are few devices with accepted keys: their address does not count.
        if !options.accepted.isEmpty { (options.accepted, options.place) = ([], "") }
        if !options.isInitiator,
            let most = PeerKnowledge.of(store).open(ObjectIdentifier(self), of: link.theirKey, from: options.place)
        {
            let whose = most == PeerKnowledge.linksOfDevice ? "its device" : "devices at its address"
            throw LiveFault(.bound, "\(whose) has \(most) links here already, which is the most; close some, and connect again")
        }
        _ = try store.reloadHistory()
        let known = PeerKnowledge.of(store)
        known.load(store)
        // Versions that are being stored count as arriving later, since nothing else would send them.
        myHello = LiveFrame.Hello(
            device: options.device, incarnation: known.incarnation, arrivals: UInt64(store.settledRows(from: 0)) + 1,
            since: known.since(of: link.theirKey, in: store), earlier: known.earlier)
        receiving.sink.hasDifferences = known.readsDifferences(of: link.theirKey)
        receiving.sink.device = (link.theirKey, known.knows(link.theirKey))
        if !receiving.sink.hasDifferences { myHello.features &= ~LiveFrame.readsDifferences }
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

    /// Puts frames into the link, as far as there is credit, up to some bytes.
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
        // The codec, the size and the ordinal, and then incompressible bytes.
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
        sending.source.account.came((deflated ?? raw).count)
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

    /// Returns nil if the version cannot be sent. Then its successors cannot be sent either.
    private func payload(of id: VersionID) throws -> [UInt8]? {
        do {
            if !sending.failed.isEmpty, let held = try store.version(id)?.predecessors.first(where: sending.failed.contains) {
                throw StoreError(
                    .missingPredecessor, "The version \(id) was not sent, since its predecessor \(held) could not be.",
                    versionID: held.description)
            }
            return try sending.source.payload(of: id)
        } catch let error as StoreError
            where
            [.damaged, .forgotten, .erased, .tooLarge, .io, .notFound, .missingPredecessor].contains(error.code)
        {
            sending.failed.insert(id)
            problems.append(ExchangeProblem(name: id.description, error: error))
            // The announced order of arrival does not hold for it.
            PeerKnowledge.of(store).renew(store)
            return nil
        }
    }

    func send(_ theirs: LiveFrame.Have, _ list: LiveFrame.Listed?) throws {
        guard let negotiation else { return }
        try send(negotiation.missing(theirs, list))
    }

    /// Sends the versions that the other side lacks, and everything that arrives from now on.
    func send(_ missing: [VersionID]) throws {
        sending.rows = Int(clamping: myHello.arrivals - 1)
        begin()
        sending.queue = missing
        // HELLO and HAVE covered only the versions that were present when the link was opened.
        queueArrivals(evenNone: true, but: Set(missing))
    }

    /// Sends the versions that arrived after the rows that the other side knows. If they are many, asks it first which of them it has.
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

    /// Whether the other side may cause one more walk over the whole history.
    var mayNegotiate: Bool {
        PeerKnowledge.of(store).mayNegotiate(link.theirKey, from: options.place)
    }

    /// Returns whether the versions after the first `rows` rows have more bytes than may be sent unasked.
    private func isMuch(behind rows: Int) throws -> Bool {
        var source = VersionSource(store, hasDifferences: sending.source.hasDifferences), size = 0
        for id in store.arrivals(behind: rows, but: receiving.fromThem) {
            do { size += try source.payload(of: id).count } catch let error as StoreError where error.code != .closed { continue }
            if size > LiveFrame.unaskedLimit { return true }
        }
        return false
    }

    /// Sends the versions that the other side was asked about and lacks.
    func send(lacking list: LiveFrame.Listed) throws {
        guard let (asking, end) = sending.asking else { return }
        sending.asking = nil
        let lacking = Set(try asking.missing(LiveFrame.Have(), list))
        let known = store.arrivals(behind: sending.rows, but: receiving.fromThem).filter { !lacking.contains($0) }
        begin()
        // Versions that arrived after HAVE was made were not asked about.
        let asked = Set(known).subtracting(store.arrivals(behind: end, but: []))
        queueArrivals(evenNone: true, but: asked)
    }

    /// From now on, versions that arrive in the store are sent.
    func begin() {
        sending.isOn = true
        PeerKnowledge.of(store).join(ObjectIdentifier(self))
    }

    /// Sends new versions of the store. If the store has many links, announces them first.
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

    /// Sends the announced versions that the other side requests.
    func send(asked ids: [VersionID]) throws {
        guard let news = sending.news, Set(ids).isSubset(of: news.ids) else {
            throw LiveFault(.frame, "it requests versions that were not announced")
        }
        let wanted = Set(ids)
        sending.news = nil
        queue(news.ids.filter(wanted.contains), upTo: news.rows)
        try push()
    }

    func queueArrivals(evenNone: Bool = false, but known: Set<VersionID> = []) {
        // Read the row count before the rows: versions that arrive meanwhile are examined the next time.
        let end = store.settledRows(from: sending.rows)
        let later = store.arrivals(behind: sending.rows, but: receiving.fromThem.union(known))
        // Say it even if everything that arrived is the other side's own. Otherwise the next link would bring it back.
        guard evenNone || !later.isEmpty || UInt64(end) + 1 > sending.mark else { return seen(end) }
        queue(later, upTo: end)
    }

    private func seen(_ end: Int) {
        sending.rows = end
        if end == store.rowCount { receiving.fromThem = [] }
    }

    /// Reports to the other side up to where its versions have arrived, so that a later link begins after them.
    func markReceived() {
        guard sending.isOn, !saidGoodbye, sending.news == nil else { return }
        let end = store.settledRows(from: sending.rows)
        guard UInt64(end) + 1 > sending.mark, store.arrivals(behind: sending.rows, but: receiving.fromThem).isEmpty else { return }
        queue([], upTo: end)
    }

    /// Queues versions, after which the other side has everything up to a row of the history.
    private func queue(_ versions: [VersionID], upTo end: Int) {
        seen(end)
        sending.queue.removeFirst(sending.queueAt)
        sending.queueAt = 0
        sending.queue += versions
        sending.mark = UInt64(end) + 1
        sending.owesMark = true
    }
}
