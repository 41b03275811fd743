/// Encodes the state of a remote: little-endian, lists preceded by their counts, and a checksum at the end.
extension PackedState {
    private static let magic = Array("LLVSPR1\n".utf8)
    /// With a pin: the state of an encrypted remote. An earlier library rejects it, and so does not use it for an unencrypted remote.
    private static let encryptedMagic = Array("LLVSPR2\n".utf8)
    /// With or without a pin, and with temporary state.
    private static let fullMagic = Array("LLVSPR3\n".utf8)
    private var isFull: Bool { rekeying != nil || !oldBlobs.isEmpty || !partials.isEmpty || (pin != nil && !blobs.isEmpty) || hasMore }
    /// The same format with later additions.
    private static let openMagic = Array("LLVSPR4\n".utf8)
    private static func checksum(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        bytes.withUnsafeBytes { SHA256.digest($0) }.prefix(16)
    }

    /// Returns the saved form of `body`.
    static func encoded(_ body: [UInt8]) -> [UInt8] { body + checksum(body[...]) }

    /// The encoding without the checksum; ends with the count of exchanges, 8 bytes.
    var body: [UInt8] {
        var out = StateWriter()
        let magic = pin == nil ? PackedState.magic : PackedState.encryptedMagic
        out.bytes.raw(hasMore ? PackedState.openMagic : isFull ? PackedState.fullMagic : magic)
        out.bytes.integer(writer)
        out.bytes.integer(next)
        out.bytes.integer(based ?? -1)
        out.bytes.integer(healing)
        out.bytes.integer(prepared)
        out.bytes.bytes.append(refusesDeletes ? 1 : 0)
        out.list(roots) { out, root in
            out.put(root.name)
            out.bytes.raw(root.store.bytes)
            out.bytes.varint(UInt64(root.bytes.count))
            out.bytes.raw(root.bytes)
        }
        out.list(attempts.sorted { $0.key.id < $1.key.id }) { out, item in
            let (name, attempt) = item
            out.put(name)
            out.bytes.varint(UInt64(max(0, attempt.size)))
            out.bytes.raw([attempt.outcome.rawValue, attempt.level, attempt.isAdoption ? 1 : 0])
            out.bytes.integer(attempt.listed)
            out.list(attempt.replaces) { $0.put($1) }
            out.list(attempt.covers) { $0.put($1) }
            out.list(attempt.seen) { $0.put($1) }
        }
        out.list(holes.sorted()) { $0.bytes.integer($1) }
        out.list(adopting) { $0.put($1) }
        out.list(Array(read)) { out, item in
            out.put(item.key)
            out.bytes.varint(UInt64(max(0, item.value.size)))
            out.bytes.bytes.append((item.value.isReplaced ? 1 : 0) | (item.value.isVerified ? 2 : 0) | (item.value.unread != 0 ? 4 : 0))
            out.bytes.integer(item.value.missing)
            if item.value.unread != 0 { out.bytes.integer(item.value.unread) }
        }
        out.list(covered.all) { $0.put($1) }
        out.list(Array(seen.values)) { out, one in
            out.put(one)
            out.bytes.bytes.append(moved.contains(one.writer) ? 1 : 0)
            out.bytes.integer(active[one.writer] ?? 0)
        }
        out.list(Array(wanted)) { out, item in
            out.put(item.key)
            out.bytes.varint(UInt64(max(0, item.value)))
        }
        out.list(Array(deletions)) { out, item in
            out.put(item.key)
            out.bytes.integer(item.value.due)
            out.bytes.integer(item.value.exchange)
        }
        out.list(Array(bad)) { out, item in
            out.put(item.key)
            out.bytes.integer(item.value.since)
            out.bytes.integer(item.value.again)
            out.bytes.bytes.append(item.value.fault.map { $0.kind.code } ?? 0)
            let why = Array((item.value.fault?.why ?? "").utf8.prefix(1_024))
            out.bytes.varint(UInt64(why.count))
            out.bytes.raw(why)
        }
        out.list(Array(waiting)) { out, item in
            out.put(item.key)
            out.list(item.value) { $0.bytes.versionID($1) }
        }
        out.list(Array(blobs.values)) { $1.write(into: &$0.bytes) }
        out.list(heads) { $0.bytes.versionID($1) }
        out.list(lacking) { $0.bytes.versionID($1) }
        if isFull { out.bytes.bytes.append(pin == nil ? 0 : 1) }
        if let pin {
            out.bytes.integer(pin.number)
            out.bytes.raw(pin.recipient.bytes)
        }
        if isFull {
            out.bytes.integer(rekeying?.epoch ?? 0)
            out.bytes.integer(rekeying?.since ?? 0)
            out.list(Array(oldBlobs)) { $0.put($1) }
            out.list(Array(partials)) { out, item in
                out.put(item.key)
                out.bytes.integer(item.value.since)
                out.bytes.bytes.append(item.value.isNamed ? 1 : 0)
                out.list(item.value.parts) { out, part in
                    out.put(part.id)
                    out.bytes.varint(UInt64(max(0, part.size)))
                }
            }
        }
        if hasMore { out.list(parts) { $0.put($1.part, $1.contents.bytes.bytes) } }
        out.bytes.integer(exchanges)
        return out.bytes.bytes
    }

    /// Nil if it is invalid or damaged: then the device becomes a new writer.
    init?(encoded bytes: [UInt8]) {
        let hasMore = bytes.starts(with: PackedState.openMagic), isFull = hasMore || bytes.starts(with: PackedState.fullMagic)
        let hasPin = bytes.starts(with: PackedState.encryptedMagic)
        guard bytes.count > 32, isFull || hasPin || bytes.starts(with: PackedState.magic),
            PackedState.checksum(bytes.dropLast(16)).elementsEqual(bytes.suffix(16))
        else { return nil }
        do {
            self = try bytes.dropLast(16).dropFirst(8).withUnsafeBytes {
                try PackedState.read($0, hasPin: hasPin, isFull: isFull, hasMore: hasMore)
            }
        } catch { return nil }
    }

    private static func read(_ bytes: UnsafeRawBufferPointer, hasPin: Bool, isFull: Bool, hasMore: Bool) throws -> PackedState {
        var state = PackedState(), from = StateReader(bytes)
        state.writer = try from.cursor.integer(UInt64.self)
        state.next = try from.cursor.integer(UInt32.self)
        let based = try from.time()
        state.based = based < 0 ? nil : based
        state.healing = try from.time()
        state.prepared = try from.time()
        state.refusesDeletes = try from.flag()
        state.roots = try from.list { from in
            let name = try from.name(), store = try from.cursor.id()
            return Root(name: name, store: store, bytes: try from.bytes())
        }
        for (name, attempt) in try from.list({ from in
            let name = try from.name()
            var attempt = Attempt(size: try from.size(), listed: 0)
            attempt.outcome = Outcome(rawValue: try from.cursor.integer(UInt8.self)) ?? .failed
            attempt.level = try from.cursor.integer(UInt8.self)
            attempt.isAdoption = try from.flag()
            attempt.listed = try from.time()
            attempt.replaces = try from.list { try $0.name() }
            attempt.covers = try from.list { try $0.range() }
            attempt.seen = try from.list { try $0.seen() }
            return (name, attempt)
        }) { state.attempts[name] = attempt }
        state.holes = Set(try from.list { try $0.cursor.integer(UInt32.self) })
        state.adopting = try from.list { try $0.name() }
        for (name, read) in try from.list({ from in
            let name = try from.name(), size = try from.size(), bits = try from.cursor.integer(UInt8.self)
            var read = Read(size: size, isReplaced: bits & 1 != 0, missing: try from.time())
            read.isVerified = bits & 2 != 0
            if bits & 4 != 0 { read.unread = try from.time() }
            return (name, read)
        }) { state.read[name] = read }
        state.covered = CoveredNumbers(try from.list { try $0.range() })
        for (one, hasMoved, active) in try from.list({ (try $0.seen(), try $0.flag(), try $0.time()) }) {
            state.seen[one.writer] = one
            state.active[one.writer] = active
            if hasMoved { state.moved.insert(one.writer) }
        }
        for (name, size) in try from.list({ (try $0.name(), try $0.size()) }) { state.wanted[name] = size }
        for (name, deletion) in try from.list({
            (try $0.name(), Deletion(due: try $0.time(), exchange: try $0.cursor.integer(UInt64.self)))
        }) { state.deletions[name] = deletion }
        for (name, bad) in try from.list({ from in
            let name = try from.name()
            var bad = Bad(since: try from.time(), again: try from.time())
            let kind = PackFault.Kind(code: try from.cursor.integer(UInt8.self))
            let why = String(decoding: try from.bytes(), as: UTF8.self)
            bad.fault = kind.map { PackFault(kind: $0, why: why) }
            return (name, bad)
        }) { state.bad[name] = bad }
        for (name, ids) in try from.list({ (try $0.name(), try $0.list { try $0.cursor.versionID() }) }) { state.waiting[name] = ids }
        for blob in try from.list({ try BlobReference(&$0.cursor, partsLimit: PackFormat.versionParts) }) {
            state.blobs[blob.digest] = blob
        }
        state.heads = try from.list { try $0.cursor.versionID() }
        state.lacking = try from.list { try $0.cursor.versionID() }
        if try isFull ? from.flag() : hasPin {
            let number = try from.cursor.integer(UInt32.self)
            guard let recipient = AgeRecipient(Array(try from.cursor.take(32))) else { throw PackFault.damaged("it has no pin") }
            state.pin = StoreKeys.Pin(number: number, recipient: recipient)
        }
        if isFull {
            let epoch = try from.cursor.integer(UInt32.self), since = try from.time()
            if epoch != 0, state.pin != nil { state.rekeying = Rekeying(epoch: epoch, since: since) }
            state.oldBlobs = Set(try from.list { try $0.cursor.id() })
            for (digest, partial) in try from.list({ from in
                let digest = try from.cursor.id()
                var partial = Partial(since: try from.time())
                partial.isNamed = try from.flag()
                partial.parts = try from.list { Partial.Part(id: try $0.cursor.id(), size: try $0.size()) }
                guard partial.parts.count <= PackFormat.versionParts else { throw PackFault.damaged("it has too many parts") }
                return (digest, partial)
            }) { state.partials[digest] = partial }
        }
        // Written by a library that did not record the keys of large values.
        if !isFull, state.pin != nil { state.oldBlobs = Set(state.blobs.keys) }
        if hasMore {
            for (part, bytes) in try from.list({ (try $0.cursor.integer(UInt8.self), try $0.bytes()) }) { try state.take(part, bytes) }
        }
        state.exchanges = try from.cursor.integer(UInt64.self)
        try from.cursor.end()
        guard state.writer != 0, state.next != 0 else { throw PackFault.damaged("it has no writer") }
        return state
    }
}

extension PackFault.Kind {
    fileprivate var code: UInt8 {
        switch self {
        case .notThere: 1
        case .damaged: 2
        case .newer: 3
        case .tooLarge: 4
        case .otherStore: 5
        case .keyMissing: 6
        }
    }
    fileprivate init?(code: UInt8) {
        switch code {
        case 1: self = .notThere
        case 2: self = .damaged
        case 3: self = .newer
        case 4: self = .tooLarge
        case 5: self = .otherStore
        case 6: self = .keyMissing
        default: return nil
        }
    }
}
