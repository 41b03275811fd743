/// Events and claims to report about a remote in the packed layout. They do not affect the exchange: docs/pack-format.md, section 7.
struct PackedReports: Equatable {
    /// A writer of which another writer has seen a later pack than this device.
    struct Ahead: Equatable { var number: UInt32, since: Int64, teller: UInt64 }
    /// A pack of a writer, and its preceding pack.
    struct Link: Equatable { var number: UInt32, id: PackID, before: PackID }
    enum Kind: UInt8 { case rolledBack = 1, forked, seededAnew }
    struct Event: Equatable { var kind: Kind, writer: UInt64, number: UInt32, since: Int64 }
    /// The new address of the remote, and the writer that announced it.
    struct Move: Equatable { var address: String, writer: UInt64 }

    var ahead: [UInt64: Ahead] = [:]
    var chains: [UInt64: [Link]] = [:]
    var events: [Event] = []
    var move: Move?

    /// Bounds, since other devices may write any number of packs and writers.
    static let writersLimit = 256, chainLimit = 32, eventsLimit = 100
    /// Bytes of an address.
    static let addressLimit = 1_024
    /// In seconds: how long a writer may be ahead before that is reported, how long an event is reported, and how long it is remembered.
    static let patience: Int64 = 3_600, telling: Int64 = 86_400, memory: Int64 = 30 * 86_400

    mutating func putRight(at now: Int64) {
        for (writer, one) in ahead where one.since > now { ahead[writer]?.since = now }
        for i in events.indices where events[i].since > now { events[i].since = now }
    }

    mutating func happened(_ kind: Kind, _ writer: UInt64, _ number: UInt32, at now: Int64) {
        events.removeAll { now - $0.since > PackedReports.memory }
        guard events.count < PackedReports.eventsLimit,
            !events.contains(where: { $0.kind == kind && $0.writer == writer && $0.number == number })
        else { return }
        events.append(Event(kind: kind, writer: writer, number: number, since: now))
    }

    /// Records a link.
    /// - Returns: a number for which two packs have different predecessors, if other packs continue both; nil otherwise.
    mutating func link(_ writer: UInt64, _ link: Link) -> UInt32? {
        guard chains[writer] != nil || chains.count < PackedReports.writersLimit else { return nil }
        var chain = chains[writer] ?? []
        guard !chain.contains(link) else { return nil }
        chain.append(link)
        chain.sort { ($0.number, $0.id) < ($1.number, $1.id) }
        chain.removeFirst(max(0, chain.count - PackedReports.chainLimit))
        chains[writer] = chain
        let continued = Set(chain.map(\.before))
        for (a, b) in zip(chain, chain.dropFirst()) where a.number == b.number && a.before != b.before {
            if continued.contains(a.id), continued.contains(b.id) { return a.number }
        }
        return nil
    }
}

/// The display name of a device: 1 to 128 bytes of UTF-8, without control characters and direction marks.
package enum DeviceName {
    package static let limit = 128
    /// Returns the name; nil if it is invalid.
    package static func text(_ bytes: [UInt8]) -> String? {
        guard (1...limit).contains(bytes.count), let text = String(validating: bytes, as: UTF8.self) else { return nil }
        return text.unicodeScalars.contains(where: isRefused) ? nil : text
    }
    /// Returns whether a scalar controls a terminal, ends a line, or changes the direction of writing. Joiners of letters and emoji are
    /// allowed.
    private static func isRefused(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // C0; DEL and C1.
        case 0x00...0x1F, 0x7F...0x9F: true
        // Line and paragraph separators; embeddings and overrides.
        case 0x2028...0x202E: true
        // Direction marks; isolates.
        case 0x061C, 0x200E...0x200F, 0x2066...0x2069: true
        default: false
        }
    }
}
extension PackServices.Notice {
    init(naming name: String) { self.init(kind: Self.named, payload: Array(name.utf8)) }
}

extension PackedRun {
    /// Processes the service records of a pack. A writer that announces its own end counts as silent at once, until it writes again.
    func hear(_ services: PackServices, _ index: PackIndex, from name: PackName) {
        let own = PackServices.Notice(kind: PackServices.Notice.retired, payload: PackID.bytes(of: name.writer))
        if services.notices.contains(own), state.seen[name.writer]?.number == name.last {
            state.active[name.writer] = now - settings.silence
        }
        for notice in services.notices {
            if notice.kind == PackServices.Notice.moved, (1...PackedReports.addressLimit).contains(notice.payload.count),
                let address = String(validating: notice.payload, as: UTF8.self)
            {
                state.reports.move = PackedReports.Move(address: address, writer: name.writer)
            } else if notice.kind == PackServices.Notice.named, let called = DeviceName.text(notice.payload) {
                let before = state.names[name.writer]
                if before != nil || state.names.count < PackedReports.writersLimit, before?.number ?? 0 <= name.last {
                    state.names[name.writer] = PackedState.Named(number: name.last, name: called)
                }
            } else if notice.kind == PackServices.Notice.damagedPart, name.writer != state.writer {
                if let (digest, part) = notice.damagedPart { state.claim(part, of: digest, at: now) }
            } else if notice.kind == PackServices.Notice.seededAnew, state.roots.count > 1, state.read.count > 1 {
                // This device knew the remote before that.
                state.reports.happened(.seededAnew, name.writer, name.last, at: now)
            }
        }
        for one in services.seen where one.writer != state.writer && one.number > state.seen[one.writer]?.number ?? 0 {
            hear(name.writer, sees: one)
        }
        guard name.writer != state.writer, name.kind == .log || name.first == name.last else { return }
        let link = PackedReports.Link(number: name.last, id: name.id, before: index.link)
        if let number = state.reports.link(name.writer, link) { state.reports.happened(.forked, name.writer, number, at: now) }
    }

    private func hear(_ teller: UInt64, sees one: PackServices.Seen) {
        guard !state.covered.has(one.writer, one.number) else { return }
        let known = state.reports.ahead[one.writer]
        guard known != nil || state.reports.ahead.count < PackedReports.writersLimit, known?.number ?? 0 < one.number else { return }
        // The pack that was ahead before may have arrived meanwhile.
        let isStill = known.map { !isHere(one.writer, $0.number) } ?? false
        let since = isStill ? known?.since ?? now : now
        state.reports.ahead[one.writer] = PackedReports.Ahead(number: one.number, since: since, teller: teller)
    }
    private func isHere(_ writer: UInt64, _ number: UInt32) -> Bool {
        state.seen[writer]?.number ?? 0 >= number || state.covered.has(writer, number)
    }

    /// Returns what to report after a listing.
    func reports(_ listed: [PackName: Int]) -> [ExchangeProblem] {
        let time = now
        state.reports.ahead = state.reports.ahead.filter { !isHere($0.key, $0.value.number) }
        var found: [ExchangeProblem] = []
        func tell(_ code: StoreError.Code, _ writer: UInt64, _ message: String) {
            let name = PackKind.log.prefix + Base32.encode(PackID.bytes(of: writer))
            found.append(ExchangeProblem(name: name, error: StoreError(code, message, path: name)))
        }
        for (writer, ahead) in state.reports.ahead where time - ahead.since > PackedReports.patience {
            // A listed pack that cannot be read is reported by its name instead.
            guard !listed.keys.contains(where: { $0.writer == writer && $0.last >= ahead.number }) else { continue }
            let text = Base32.encode(PackID.bytes(of: writer)), teller = Base32.encode(PackID.bytes(of: ahead.teller))
            tell(
                .withheld, writer,
                "\(files.description) does not show the pack \(ahead.number) of the device \(text), which the device \(teller) has seen "
                    + "there more than an hour ago. It may show each device another state. Compare the fingerprints of two devices.")
        }
        for event in state.reports.events where (0..<PackedReports.telling).contains(time - event.since) {
            let text = Base32.encode(PackID.bytes(of: event.writer))
            switch event.kind {
            case .rolledBack:
                tell(
                    .rolledBack, event.writer,
                    "\(files.description) does not show the newest pack of the device \(text) any more, number \(event.number): it was "
                        + "reset to an older state, or files were deleted. What is missing there is sent again; nothing was removed "
                        + "here.")
            case .seededAnew:
                tell(
                    .rolledBack, event.writer,
                    "\(files.description) was emptied, and refilled by the device \(text). What is missing there is sent again; nothing "
                        + "was removed here.")
            case .forked:
                tell(
                    .writerForked, event.writer,
                    "Two sequences of packs of the device \(text) are in \(files.description), from number \(event.number) "
                        + "on: its store was copied, or the place shows two states. All of them are read. Compare the fingerprints of two "
                        + "devices.")
            }
        }
        if let move = state.reports.move {
            var error = StoreError(
                .placeMoved,
                "\(files.description) continues at \"\(move.address)\", by the device \(Base32.encode(PackID.bytes(of: move.writer))). "
                    + "Exchange with that place, if you know the device; the data here stays.")
            error.path = move.address
            found.append(ExchangeProblem(name: "pack1", error: error))
        }
        return found
    }

    /// Sends the remaining versions, then announces the new address of the remote to the other devices.
    func announce(_ address: String) throws -> ExchangeResult {
        let result = try send(isFresh: false)
        var sending = PackedSending(self)
        try sending.publish(evenEmpty: true, notices: [PackServices.Notice(kind: PackServices.Notice.moved, payload: Array(address.utf8))])
        state.reports.move = PackedReports.Move(address: address, writer: state.writer)
        return result
    }
}
