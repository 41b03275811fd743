/// Notices in packs: what the devices at a place report about one another: docs/pack-format.md, section 7.
struct PackNotices {
    let run: PackedRun

    /// Processes the service records of a pack. A writer that announces its own end counts as silent at once, until it writes again.
    func hear(_ services: PackServices, _ index: PackIndex, from name: PackName) {
        let own = PackServices.Notice(kind: PackServices.Notice.retired, payload: PackID.bytes(of: name.writer))
        if services.notices.contains(own), run.state.seen[name.writer]?.number == name.last {
            run.state.active[name.writer] = run.now - run.settings.silence
        }
        for notice in services.notices {
            if notice.kind == PackServices.Notice.moved, (1...PackedReports.addressLimit).contains(notice.payload.count),
                let address = String(validating: notice.payload, as: UTF8.self)
            {
                run.state.reports.move = PackedReports.Move(address: address, writer: name.writer)
            } else if notice.kind == PackServices.Notice.named, let called = DeviceName.text(notice.payload) {
                let before = run.state.names[name.writer]
                if before != nil || run.state.names.count < PackedReports.writersLimit, before?.number ?? 0 <= name.last {
                    run.state.names[name.writer] = PackedState.Named(number: name.last, name: called)
                }
            } else if notice.kind == PackServices.Notice.damagedPart, name.writer != run.state.writer {
                if let (digest, part) = notice.damagedPart { run.state.claim(part, of: digest, at: run.now) }
            } else if notice.kind == PackServices.Notice.seededAnew, run.state.roots.count > 1, run.state.read.count > 1 {
                // This device knew the remote before that.
                run.state.reports.happened(.seededAnew, name.writer, name.last, at: run.now)
            }
        }
        for one in services.seen where one.writer != run.state.writer && one.number > run.state.seen[one.writer]?.number ?? 0 {
            hear(name.writer, sees: one)
        }
        guard name.writer != run.state.writer, name.kind == .log || name.first == name.last else { return }
        let link = PackedReports.Link(number: name.last, id: name.id, before: index.link)
        if let number = run.state.reports.link(name.writer, link) { run.state.reports.happened(.forked, name.writer, number, at: run.now) }
    }

    private func hear(_ teller: UInt64, sees one: PackServices.Seen) {
        guard !run.state.covered.has(one.writer, one.number) else { return }
        let known = run.state.reports.ahead[one.writer]
        guard known != nil || run.state.reports.ahead.count < PackedReports.writersLimit, known?.number ?? 0 < one.number else { return }
        // The pack that was ahead before may have arrived meanwhile.
        let isStill = known.map { !isHere(one.writer, $0.number) } ?? false
        let since = isStill ? known?.since ?? run.now : run.now
        run.state.reports.ahead[one.writer] = PackedReports.Ahead(number: one.number, since: since, teller: teller)
    }
    private func isHere(_ writer: UInt64, _ number: UInt32) -> Bool {
        run.state.seen[writer]?.number ?? 0 >= number || run.state.covered.has(writer, number)
    }

    /// Returns what to report after a listing.
    func reports(_ listed: [PackName: Int]) -> [ExchangeProblem] {
        let time = run.now
        run.state.reports.ahead = run.state.reports.ahead.filter { !isHere($0.key, $0.value.number) }
        var found: [ExchangeProblem] = []
        func tell(_ code: StoreError.Code, _ writer: UInt64, _ message: String) {
            let name = PackKind.log.prefix + Base32.encode(PackID.bytes(of: writer))
            found.append(ExchangeProblem(name: name, error: StoreError(code, message, path: name)))
        }
        for (writer, ahead) in run.state.reports.ahead where time - ahead.since > PackedReports.patience {
            // A listed pack that cannot be read is reported by its name instead.
            guard !listed.keys.contains(where: { $0.writer == writer && $0.last >= ahead.number }) else { continue }
            let text = Base32.encode(PackID.bytes(of: writer)), teller = Base32.encode(PackID.bytes(of: ahead.teller))
            tell(
                .withheld, writer,
                "\(run.files.description) does not show the pack \(ahead.number) of the device \(text), which the device \(teller) has "
                    + "seen there more than an hour ago. It may show each device another state. Compare the fingerprints of two devices.")
        }
        for event in run.state.reports.events where (0..<PackedReports.telling).contains(time - event.since) {
            let text = Base32.encode(PackID.bytes(of: event.writer))
            switch event.kind {
            case .rolledBack:
                tell(
                    .rolledBack, event.writer,
                    "\(run.files.description) does not show the newest pack of the device \(text) any more, number \(event.number): it was "
                        + "reset to an older state, or files were deleted. What is missing there is sent again; nothing was removed "
                        + "here.")
            case .seededAnew:
                tell(
                    .rolledBack, event.writer,
                    "\(run.files.description) was emptied, and refilled by the device \(text). What is missing there is sent again; "
                        + "nothing was removed here.")
            case .forked:
                tell(
                    .writerForked, event.writer,
                    "Two sequences of packs of the device \(text) are in \(run.files.description), from number \(event.number) "
                        + "on: its store was copied, or the place shows two states. All of them are read. Compare the fingerprints of two "
                        + "devices.")
            }
        }
        if let move = run.state.reports.move {
            var error = StoreError(
                .placeMoved,
                "\(run.files.description) continues at \"\(move.address)\", by the device \(Base32.encode(PackID.bytes(of: move.writer))). "
                    + "Exchange with that place, if you know the device; the data here stays.")
            error.path = move.address
            found.append(ExchangeProblem(name: "pack1", error: error))
        }
        return found
    }

    /// Sends the remaining versions, then announces the new address of the remote to the other devices.
    func announce(_ address: String) throws -> ExchangeResult {
        let result = try run.publishing.send(isFresh: false)
        var sending = PackedSending(run)
        try sending.publish(evenEmpty: true, notices: [PackServices.Notice(kind: PackServices.Notice.moved, payload: Array(address.utf8))])
        run.state.reports.move = PackedReports.Move(address: address, writer: run.state.writer)
        return result
    }

    /// A notice with the device's name, if its packs do not have it yet.
    var introduction: [PackServices.Notice] {
        guard let name = run.settings.deviceName, name != run.state.saidName else { return [] }
        return [PackServices.Notice(naming: name)]
    }

    /// The newest packs of the writers that advanced since the last pack of this one.
    var movedWriters: [PackServices.Seen] {
        let moved = run.state.moved.compactMap { run.state.seen[$0] }.filter { $0.writer != run.state.writer }
        // The most recent if there are too many.
        return Array(
            moved.sorted { (run.state.active[$0.writer] ?? 0) > (run.state.active[$1.writer] ?? 0) }.prefix(PackFormat.entriesLimit))
    }
}
