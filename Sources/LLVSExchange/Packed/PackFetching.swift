/// Reads files at the remote: packs, parts of packs, and files that were just uploaded: docs/pack-format.md, sections 6 and 7.
struct PackFetching {
    let run: PackedRun

    /// The first request for a pack, and its result.
    struct FirstRead {
        var name: PackName
        var size: Int
        /// Whether reading a part may suffice.
        var isPart: Bool
        var contents = RemoteContents.missing
    }

    /// Returns the request: for a part the end, or, for an encrypted pack, the beginning with the key.
    func request(_ one: FirstRead) -> RemoteRead {
        var read = RemoteRead(name: one.name.description, limit: PackFormat.fileLimit(one.name.kind))
        guard one.isPart else { return read }
        read.range = run.sealing.isEncrypted ? 0..<min(one.size, EncryptedPack.headSize) : PackParts(one.name, size: one.size).tail
        if one.size > 0 { read.limit = one.size }
        return read
    }

    /// Returns packs from their first reads. For encrypted ones this also reads the ends, all at once.
    /// - Returns: for each the pack, or its fault.
    func sources(_ reads: [FirstRead]) throws -> [Result<PackSource, PackFault>] {
        var parts: [PackParts?] = [], ends = reads.map(\.contents)
        for one in reads { parts.append(try self.parts(of: one)) }
        if run.sealing.isEncrypted {
            var asked: [Int] = [], requests: [RemoteRead] = []
            for (i, parts) in parts.enumerated() {
                guard let parts else { continue }
                asked.append(i)
                requests.append(RemoteRead(name: parts.name.description, range: try parts.place(of: parts.tail), limit: reads[i].size))
            }
            if !asked.isEmpty { for (i, contents) in try zip(asked, run.files.read(requests, run.check)) { ends[i] = contents } }
        }
        return try reads.indices.map { i in
            do { return .success(try source(reads[i], parts[i], ends[i])) } catch let fault as PackFault { return .failure(fault) }
        }
    }

    /// Nil if the whole was received, or must be read.
    private func parts(of one: FirstRead) throws -> PackParts? {
        guard one.isPart, case .bytes(let bytes, false) = one.contents else { return nil }
        guard let open = run.sealing.openParts else { return PackParts(one.name, size: one.size) }
        do { return PackParts(one.name, try open(one.name, one.size, bytes)) } catch is PackFault { return nil }
    }

    private func source(_ one: FirstRead, _ parts: PackParts?, _ end: RemoteContents) throws -> PackSource {
        guard let parts else {
            if one.isPart, case .bytes(_, false) = one.contents { return .whole(try whole(one.name, one.size)) }
            return .whole(try file(one.name, one.size, one.contents))
        }
        do {
            let tail = try parts.open(parts.tail, bytes(end, parts.place(of: parts.tail)))
            return .part(try PartialPack(parts, tail: tail, stores: run.state.stores) { try self.bytes(of: parts, $0) })
        } catch let fault as PackFault where fault.kind == .damaged || (fault.kind == .notThere && run.sealing.isEncrypted) {
            // The whole pack shows by its pack id whether it is damaged or still on its way.
            return .whole(try whole(one.name, one.size))
        }
    }

    private func file(_ name: PackName, _ size: Int, _ contents: RemoteContents) throws -> PackFile {
        let bytes = try bytes(contents, atMost: PackFormat.fileLimit(name.kind))
        do {
            return try PackFile(
                name, bytes, stores: run.state.stores, size: size == PackListing.unknownSize ? nil : size, sealing: run.sealing)
        } catch let fault as PackFault
            where fault.kind == .notThere && size != PackListing.unknownSize && size != bytes.count && !run.files.capabilities.isNear
        {
            // In a folder a program may still be syncing the file. A server, however, has just listed its size.
            throw PackFault(
                kind: .notThere, why: "the server lists \(size) bytes, and returns \(bytes.count)", refusal: .cutShort)
        }
    }

    /// Reads a whole pack.
    /// - Throws: `PackFault`.
    func whole(_ name: PackName, _ size: Int) throws -> PackFile {
        guard run.hasTime(for: max(0, size), .down) else { throw run.hasNoTime }
        let read = RemoteRead(name: name.description, limit: PackFormat.fileLimit(name.kind))
        return try file(name, size, run.files.read([read], run.check).first ?? .missing)
    }

    /// Returns the index and services of a pack, reading only its end if possible.
    /// - Throws: `PackFault`.
    func end(_ name: PackName, _ size: Int) throws -> (PackIndex, PackServices) {
        let least = run.sealing.isEncrypted ? 2 * PackedSettings.tail : PackedSettings.tail
        var one = FirstRead(name: name, size: size, isPart: size > least && run.files.capabilities.hasRanges != false)
        one.contents = try run.files.read([request(one)], run.check).first ?? .missing
        guard let source = try sources([one]).first else { throw PackFault.notThere("it was not read") }
        let found = try source.get()
        return (found.index, found.services)
    }

    /// Reads ranges of a pack whose end is known; nil if they are half of it, or if no holder of the keys wrote their bytes: then the whole
    /// must be read.
    func ranges(_ ranges: [Range<Int>], of parts: PackParts, _ size: Int) throws -> [(range: Range<Int>, bytes: [UInt8])]? {
        let places = try ranges.map { try parts.place(of: $0) }, limit = PackFormat.fileLimit(parts.name.kind)
        let count = places.reduce(0) { $0 + $1.count }
        guard count * 2 <= size else { return nil }
        guard run.hasTime(for: count, .down) else { throw run.hasNoTime }
        let reads = places.map { RemoteRead(name: parts.name.description, range: $0, limit: limit) }
        var found: [(range: Range<Int>, bytes: [UInt8])] = []
        for (i, contents) in try zip(ranges.indices, run.files.read(reads, run.check)) {
            let bytes = try bytes(contents, places[i])
            do { found.append((ranges[i], try parts.open(ranges[i], bytes))) } catch is PackFault { return nil }
        }
        return found
    }

    private func bytes(of parts: PackParts, _ range: Range<Int>) throws -> [UInt8] {
        let place = try parts.place(of: range)
        let read = RemoteRead(name: parts.name.description, range: place, limit: PackFormat.fileLimit(parts.name.kind))
        return try parts.open(range, bytes(run.files.read([read], run.check).first ?? .missing, place))
    }

    /// Returns the bytes of a range, also if the whole file was received.
    private func bytes(_ contents: RemoteContents, _ range: Range<Int>) throws -> [UInt8] {
        var bytes = try bytes(contents, atMost: PackFormat.fileLimit(.base))
        if bytes.count > range.count, bytes.count >= range.upperBound { bytes = Array(bytes[range]) }
        guard bytes.count == range.count else { throw PackFault.notThere("it is cut short") }
        return bytes
    }

    /// Returns whether a file with an unknown name of this writer is a pack. If it is not, the file proves nothing.
    func isPack(_ name: PackName, _ size: Int) throws -> Bool {
        if let bad = run.state.bad[name], bad.again > run.now { return false }
        do { _ = try whole(name, size) } catch let fault as PackFault {
            run.fail(name, fault, size)
            return false
        }
        return true
    }

    /// Returns all bytes received.
    func bytes(_ contents: RemoteContents, atMost limit: Int) throws -> [UInt8] {
        switch contents {
        case .missing: throw PackFault.notThere("it is listed, but missing")
        case .bytes(let bytes, _): return bytes
        case .large(let reader): return try reader.whole("A pack in \(run.files.description)", atMost: limit)
        case .unreadable(let error):
            // The message becomes part of a sentence.
            let why = error.message.hasSuffix(".") ? String(error.message.dropLast()) : error.message
            throw error.code == .tooLarge ? PackFault.tooLarge(why) : PackFault(kind: .notThere, why: why, refusal: error.code)
        }
    }

    // MARK: Verifying uploads

    /// Returns whether the file at the remote is what was uploaded, by the service's digest if it returns one, otherwise by reading the
    /// file.
    func isVerified(_ made: MadePack) throws -> Bool {
        if run.files.capabilities.tellsDigests, let entry = try entry(of: made.name), entry.size == made.size,
            entry.digest?.isRight(of: made.bytes) ?? false
        {
            return true
        }
        return try isReadBack(made.name, made.size)
    }

    /// Returns whether a file exists completely, after an upload of unknown outcome.
    func isThere(_ made: MadePack) throws -> Bool {
        guard let entry = try entry(of: made.name), entry.size == made.size else { return false }
        guard let isRight = entry.digest?.isRight(of: made.bytes), !isRight else { return true }
        return try isReadBack(made.name, made.size)
    }

    private func entry(of name: PackName) throws -> RemoteEntry? {
        let (directory, last) = RemoteName.split(name.description)
        return try run.files.list(directory, withTimes: false, run.check)?.first { $0.name == last && !$0.isDirectory }
    }

    /// Returns whether the file at the remote has the uploaded bytes.
    func isReadBack(_ name: PackName, _ size: Int) throws -> Bool { try readBack(name, size).get() }

    /// Returns whether the file at the remote has the uploaded bytes. A failure means that the service does not return the file now, so the
    /// outcome is unknown.
    func readBack(_ name: PackName, _ size: Int) throws -> Result<Bool, StoreError> {
        let read = RemoteRead(name: name.description, limit: PackFormat.fileLimit(name.kind))
        do {
            let contents = try run.files.read([read], run.check).first ?? .missing
            if case .unreadable(let error) = contents, error.code != .tooLarge { return .failure(error) }
            let bytes = try bytes(contents, atMost: PackFormat.fileLimit(name.kind))
            return .success(bytes.count == size && bytes.withUnsafeBytes { PackID(SHA256.digest($0)) } == name.id)
        } catch is PackFault { return .success(false) }
    }
}

extension StoreError {
    /// Whether a service that works otherwise rejected, or did not return, this one pack.
    var isOfOnePack: Bool {
        if circumstance == .oneFile { return true }
        guard retryAfter == nil, ![401, 407, 429, 503].contains(httpStatus) else { return false }
        return code == .permission || (code == .transport && httpStatus >= 400)
    }
}
