/// Later additions to the state of a remote, each in a part of its own, which older libraries skip.
extension PackedState {
    private enum Part {
        static let badSizes: UInt8 = 18, incomplete: UInt8 = 19, passed: UInt8 = 20
        static let bridging: UInt8 = 1, newest: UInt8 = 2, ahead: UInt8 = 3, chains: UInt8 = 4, events: UInt8 = 5, move: UInt8 = 6
        static let seedsAnew: UInt8 = 7, extent: UInt8 = 8, withoutRoom: UInt8 = 9, names: UInt8 = 10, saidName: UInt8 = 11
        static let partSizes: UInt8 = 12, missingBlobs: UInt8 = 13, damagedParts: UInt8 = 14
        static let refusedSize: UInt8 = 15, cut: UInt8 = 16, formerStores: UInt8 = 17, claims: UInt8 = 21
        static let keyFiles: UInt8 = 22, mayHaveOldKeys: UInt8 = 23, erasing: UInt8 = 24
    }
    var hasMore: Bool {
        !incomplete.isEmpty || !passed.isEmpty || bad.values.contains { $0.size != nil }
            || !bridging.isEmpty || !newest.isEmpty || reports != PackedReports() || seedsAnew || extent != nil || withoutRoom != 0
            || !names.isEmpty || saidName != nil || !partSizes.isEmpty || !missingBlobs.isEmpty || !damagedParts.isEmpty
            || refusedSize != nil || cut != nil || !formerStores.isEmpty || !claims.isEmpty || keyFiles != KeyFileNotes() || mayHaveOldKeys
            || erasing != Erasing()
    }

    var parts: [(part: UInt8, contents: StateWriter)] {
        var parts: [(UInt8, StateWriter)] = []
        func add<T>(_ part: UInt8, _ items: [T], _ put: (inout StateWriter, T) -> Void) {
            guard !items.isEmpty else { return }
            var out = StateWriter()
            out.list(items, put)
            parts.append((part, out))
        }
        add(Part.bridging, Array(bridging)) { out, item in
            out.bytes.versionID(item.key)
            out.bytes.integer(item.value.since)
            out.bytes.bytes.append(item.value.isFromPacks ? 1 : 0)
        }
        add(Part.newest, Array(newest.values)) { $0.put($1) }
        add(Part.ahead, Array(reports.ahead)) { out, item in
            out.bytes.integer(item.key)
            out.bytes.integer(item.value.number)
            out.bytes.integer(item.value.since)
            out.bytes.integer(item.value.teller)
        }
        add(Part.chains, Array(reports.chains)) { out, item in
            out.bytes.integer(item.key)
            out.list(item.value) { out, link in
                out.bytes.integer(link.number)
                out.put(link.id)
                out.put(link.before)
            }
        }
        add(Part.events, reports.events) { out, event in
            out.bytes.bytes.append(event.kind.rawValue)
            out.bytes.integer(event.writer)
            out.bytes.integer(event.number)
            out.bytes.integer(event.since)
        }
        add(Part.move, reports.move.map { [$0] } ?? []) { out, move in
            out.text(move.address)
            out.bytes.integer(move.writer)
        }
        add(Part.seedsAnew, seedsAnew ? [true] : []) { out, _ in out.bytes.bytes.append(1) }
        add(Part.mayHaveOldKeys, mayHaveOldKeys ? [true] : []) { out, _ in out.bytes.bytes.append(1) }
        add(Part.extent, extent.map { [$0] } ?? []) { out, extent in
            out.bytes.integer(Int64(extent.names))
            out.bytes.integer(Int64(extent.bytes))
            out.bytes.integer(extent.at)
        }
        add(Part.withoutRoom, withoutRoom != 0 ? [withoutRoom] : []) { $0.bytes.integer($1) }
        add(Part.names, Array(names)) { out, item in
            out.bytes.integer(item.key)
            out.bytes.integer(item.value.number)
            out.text(item.value.name)
        }
        add(Part.saidName, saidName.map { [$0] } ?? []) { $0.text($1) }
        add(Part.partSizes, Array(partSizes)) { out, item in
            out.put(item.key)
            out.bytes.varint(UInt64(max(0, item.value)))
        }
        add(Part.missingBlobs, Array(missingBlobs)) { out, item in
            out.put(item.key)
            out.bytes.integer(item.value)
        }
        add(Part.damagedParts, Array(damagedParts)) { out, item in
            out.put(item.key)
            out.put(item.value.digest)
            out.bytes.integer(item.value.told)
        }
        add(Part.badSizes, bad.compactMap { name, bad in bad.size.map { (name, $0) } }) { out, item in
            out.put(item.0)
            out.bytes.varint(UInt64(max(0, item.1)))
        }
        add(Part.incomplete, Array(incomplete)) { out, item in
            out.put(item.key)
            out.bytes.integer(item.value.since)
            out.bytes.integer(item.value.again)
            out.list(item.value.parts) { $0.put($1) }
        }
        add(Part.passed, passed.isEmpty ? [] : [passedSince]) { out, since in
            out.bytes.integer(since)
            out.list(Array(passed)) { $0.put($1) }
        }
        add(Part.refusedSize, refusedSize.map { [$0] } ?? []) { out, refused in
            out.bytes.varint(UInt64(max(0, refused.most)))
            out.bytes.integer(refused.at)
        }
        add(Part.cut, cut.map { [$0] } ?? []) { out, cut in
            out.bytes.varint(UInt64(max(0, cut.most)))
            out.bytes.integer(cut.at)
        }
        add(Part.formerStores, formerStores) { $0.put($1) }
        add(Part.erasing, erasing == Erasing() ? [] : [erasing]) { out, erasing in
            out.put(erasing.mark)
            out.bytes.bytes.append(erasing.mustLookForParts ? 1 : 0)
            out.list(Array(erasing.parts)) { $0.put($1) }
            out.list(Array(erasing.packs)) { out, item in
                out.put(item.key)
                out.bytes.varint(UInt64(max(0, item.value)))
            }
        }
        add(Part.claims, Array(claims)) { out, item in
            out.put(item.key)
            out.put(item.value.digest)
            out.bytes.varint(UInt64(max(0, item.value.found)))
            out.bytes.integer(item.value.until)
            out.bytes.bytes.append(item.value.isOpen ? 1 : 0)
        }
        add(Part.keyFiles, keyFiles == KeyFileNotes() ? [] : [keyFiles]) { out, notes in
            func put(_ out: inout StateWriter, _ name: KeyFileName) {
                out.bytes.integer(name.epoch)
                out.put(name.id)
            }
            out.put(notes.identities)
            out.list([notes.next, notes.nextAgain] + (notes.turn.map { [$0] } ?? []), put)
            for names in [notes.rings, notes.strange, notes.passphrases] { out.list(names, put) }
            let tried = notes.tried.map { (name: $0.key, outcome: $0.value) }
            out.list(tried.sorted { ($0.name.id, $0.name.epoch) < ($1.name.id, $1.name.epoch) }) { out, item in
                put(&out, item.name)
                out.bytes.bytes.append(item.outcome.rawValue)
            }
        }
        return parts
    }

    /// - Throws: `PackFault`.
    mutating func take(_ part: UInt8, _ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { bytes in
            var from = StateReader(bytes)
            switch part {
            case Part.bridging:
                for (id, one) in try from.list({ from in
                    (try from.cursor.versionID(), Bridging(since: try from.time(), isFromPacks: try from.flag()))
                }) { bridging[id] = one }
            case Part.newest: for one in try from.list({ try $0.seen() }) { newest[one.writer] = one }
            case Part.ahead:
                for (writer, one) in try from.list({ from in
                    let writer = try from.cursor.integer(UInt64.self), number = try from.cursor.integer(UInt32.self)
                    let since = try from.time(), teller = try from.cursor.integer(UInt64.self)
                    return (writer, PackedReports.Ahead(number: number, since: since, teller: teller))
                }) { reports.ahead[writer] = one }
            case Part.chains:
                for (writer, chain) in try from.list({ from in
                    let writer = try from.cursor.integer(UInt64.self)
                    let chain = try from.list { from in
                        PackedReports.Link(
                            number: try from.cursor.integer(UInt32.self), id: try from.cursor.id(), before: try from.cursor.id())
                    }
                    return (writer, chain)
                }) { reports.chains[writer] = chain }
            case Part.events:
                reports.events = try from.list({ from in
                    let kind = PackedReports.Kind(rawValue: try from.cursor.integer(UInt8.self))
                    let writer = try from.cursor.integer(UInt64.self), number = try from.cursor.integer(UInt32.self)
                    let since = try from.time()
                    return kind.map { PackedReports.Event(kind: $0, writer: writer, number: number, since: since) }
                }).compactMap { $0 }
            case Part.move:
                for move in try from.list({ from in
                    PackedReports.Move(address: try from.text(), writer: try from.cursor.integer(UInt64.self))
                }) { reports.move = move }
            case Part.seedsAnew: seedsAnew = try !from.list({ try $0.flag() }).isEmpty
            case Part.mayHaveOldKeys: mayHaveOldKeys = try !from.list({ try $0.flag() }).isEmpty
            case Part.extent:
                for one in try from.list({ from in
                    Extent(names: Int(try from.time()), bytes: Int(try from.time()), at: try from.time())
                }) { extent = one }
            case Part.withoutRoom: for time in try from.list({ try $0.time() }) { withoutRoom = time }
            case Part.names:
                for (writer, one) in try from.list({ from in
                    let writer = try from.cursor.integer(UInt64.self), number = try from.cursor.integer(UInt32.self)
                    return (writer, Named(number: number, name: try from.text()))
                }) { names[writer] = one }
            case Part.saidName: saidName = try from.list({ try $0.text() }).first
            case Part.partSizes: for (part, size) in try from.list({ (try $0.cursor.id(), try $0.size()) }) { partSizes[part] = size }
            case Part.missingBlobs:
                for (digest, since) in try from.list({ (try $0.cursor.id(), try $0.time()) }) { missingBlobs[digest] = since }
            case Part.damagedParts:
                for (part, one) in try from.list({ from in
                    (try from.cursor.id(), DamagedPart(digest: try from.cursor.id(), told: try from.time()))
                }) { damagedParts[part] = one }
            case Part.badSizes:
                for (name, size) in try from.list({ (try $0.name(), try $0.size()) }) { bad[name]?.size = size }
            case Part.incomplete:
                for (name, one) in try from.list({ from in
                    let name = try from.name(), since = try from.time(), again = try from.time()
                    return (name, Incomplete(since: since, again: again, parts: try from.list { try $0.name() }))
                }) where waiting[name] != nil { incomplete[name] = one }
            case Part.passed:
                for (since, ids) in try from.list({ from in (try from.time(), try from.list { try $0.cursor.id() }) }) {
                    (passedSince, passed) = (since, Set(ids))
                }
            case Part.refusedSize:
                for one in try from.list({ RefusedSize(most: try $0.size(), at: try $0.time()) }) { refusedSize = one }
            case Part.cut: for one in try from.list({ Cut(most: try $0.size(), at: try $0.time()) }) { cut = one }
            case Part.claims:
                for (part, claim) in try from.list({ from in
                    let part = try from.cursor.id(), digest = try from.cursor.id(), found = try from.size(), until = try from.time()
                    return (part, Claim(digest: digest, found: found, until: until, isOpen: try from.flag()))
                }) { claims[part] = claim }
            case Part.keyFiles:
                for notes in try from.list({ from in
                    func name(_ from: inout StateReader) throws -> KeyFileName {
                        KeyFileName(epoch: try from.cursor.integer(UInt32.self), id: try from.cursor.id())
                    }
                    let identities = try from.cursor.id(), ends = try from.list(name)
                    var notes = KeyFileNotes(rings: try from.list(name), strange: try from.list(name), identities: identities)
                    if ends.count >= 2 { (notes.next, notes.nextAgain, notes.turn) = (ends[0], ends[1], ends.dropFirst(2).first) }
                    notes.passphrases = try from.list(name)
                    for (name, outcome) in try from.list({ (try name(&$0), try $0.cursor.integer(UInt8.self)) }) {
                        notes.tried[name] = KeyFileNotes.Outcome(rawValue: outcome)
                    }
                    return notes
                }) { keyFiles = notes }
            case Part.erasing:
                for one in try from.list({ from in
                    var erasing = Erasing(mark: try from.cursor.id())
                    erasing.mustLookForParts = try from.flag()
                    erasing.parts = Set(try from.list { try $0.cursor.id() })
                    for (name, size) in try from.list({ (try $0.name(), try $0.size()) }) { erasing.packs[name] = size }
                    return erasing
                }) { erasing = one }
            case Part.formerStores: formerStores = try from.list { try $0.cursor.id() }
            default: return
            }
            try from.cursor.end()
        }
    }
}
