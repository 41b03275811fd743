/// Adds versions that `writePack` wrote elsewhere.
extension Store {
    /// Adds the versions of a stream of packs, as an exchange does. A version that cannot be added is reported as a problem, and holds
    /// back only its descendants. Present versions are skipped, and damaged ones repaired.
    ///
    /// Each version is added completely or not at all. If an error is thrown, what was added before stays, and the same stream can be
    /// read again. Nothing after the end of the stream is read. Memory: one pack of at most 16 MiB, and the versions that are added at
    /// once; with storages that have no files for large values, these as well.
    /// - Parameters:
    ///   - control: called with stage `.receiving`, in packs and parts of large values, and with `.adding`, in versions.
    ///   - read: fills the buffer from its start with the next bytes, as many as are available at once. Returns 0 at the end.
    /// - Returns: the versions added, in that order, and the problems.
    /// - Throws: the errors of `read`; `.foreignFile` if the bytes are not a stream of packs; `.cutShort`, `.damaged`,
    ///   `.identifierMismatch`, `.tooLarge` and `.newerFormat` if the stream was changed, or this library cannot read it; `.cancelled`,
    ///   and errors that prevent the store from adding.
    public func readPack(
        control: OperationControl = OperationControl(), _ read: (UnsafeMutableRawBufferPointer) throws -> Int
    ) throws -> ExchangeResult {
        try checkWritable("Reading a pack")
        _ = try reloadHistory(control: control)
        return try withoutActuallyEscaping(read) { read in
            var reading = PackReading(self, control, read)
            return try reading.run().counting()
        }
    }
}

/// One call of `Store.readPack`.
struct PackReading {
    private let store: Store
    private let control: OperationControl
    private let read: (UnsafeMutableRawBufferPointer) throws -> Int
    private var taking: PackTaking
    private var sum = PackStreamSum()
    private var link = PackID.zero
    private var number: UInt32 = 0
    private let what: String

    init(_ store: Store, _ control: OperationControl, _ read: @escaping (UnsafeMutableRawBufferPointer) throws -> Int) {
        self.store = store; self.control = control; self.read = read
        what = "Reading a pack into \(store.description)"
        taking = PackTaking(store, control, doing: what, from: "the pack")
    }

    mutating func run() throws -> ExchangeResult {
        defer { taking.blobs.removeAll() }
        let storeID = try readStart()
        while try readFile(storeID) {}
        var result = taking.result
        if taking.furtherProblems > 0 {
            result.problems.append(
                ExchangeProblem(
                    name: "",
                    error: StoreError(
                        .damaged, "\(taking.furtherProblems) further versions of the pack could not be read either. Have it made again.")))
        }
        let advice = "Versions that need less were stored. Let the maker of the pack send the others in another way."
        if let problem = taking.account.problem("the pack", advice) { result.problems.append(problem) }
        result.problems = ExchangeProblem.inOrder(result.problems)
        return store.tellingOfClocks(result)
    }

    // MARK: The stream

    private func readStart() throws -> PackID {
        let start = try bytes(PackStream.startSize, isStart: true)
        guard start.starts(with: PackStream.magic) else {
            guard !start.starts(with: AgeHeader.magic) else { throw PackReading.encrypted }
            throw PackReading.foreign
        }
        guard start[8] <= PackStream.format else {
            throw PackFault.newer("it has the format \(start[8])").error("The pack")
        }
        guard start[8] == PackStream.format, start[9..<16].allSatisfy({ $0 == 0 }), let storeID = PackID(start[16..<32]) else {
            throw PackFault.damaged("its beginning is not as it was written").error("The pack")
        }
        return storeID
    }
    private static let encrypted = StoreError(
        .wrongKey,
        "The pack is encrypted, and no key was given for it. Give an identity (AGE-SECRET-KEY-1...) or its passphrase.")
    private static let foreign = StoreError(
        .foreignFile,
        "The bytes are not a pack of versions: they begin differently. Pass what writing a pack returned, from its first byte.")

    /// Reads exactly `count` bytes.
    private func bytes(_ count: Int, isStart: Bool = false) throws -> [UInt8] {
        var all: [UInt8] = []
        try withScratch(min(count, 256 << 10)) { buffer in
            while all.count < count {
                try control.check(.receiving, sum.count, of: 0, doing: what)
                let wanted = min(buffer.count, count - all.count)
                let got = try read(UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
                guard got >= 0, got <= wanted else {
                    throw StoreError(
                        .invalidArgument, "Reading a pack returned \(UInt(bitPattern: got)) bytes for a buffer of \(wanted).")
                }
                guard got > 0 else {
                    if isStart, !all.starts(with: PackStream.magic.prefix(all.count)) { throw PackReading.foreign }
                    throw StoreError(
                        .cutShort,
                        "The pack ends too early: it was cut short, or is still being written. What was added completely remains; "
                            + "read the pack again when it is complete.")
                }
                try Memory.grow(&all, by: got, "Reading a pack")
                all.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<got]))
            }
        }
        return all
    }

    /// Reads the next file. Returns false at the end.
    private mutating func readFile(_ storeID: PackID) throws -> Bool {
        let frame = try bytes(PackStream.frameSize)
        let size = Int(frame[1..<5].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
        guard let id = PackID(frame[5...]) else { return false }
        do {
            if frame[0] == 0 {
                guard size == sum.count, id == sum.finish() else { throw PackReading.disorder }
                return false
            }
            guard let kind = PackKind(rawValue: frame[0]), kind == .log || kind == .blob else {
                throw frame[0] < PackRecordType.ignorable && frame[0] > PackKind.root.rawValue
                    ? PackFault.newer("it has a file of kind \(frame[0])") : PackFault.damaged("it has a file of kind \(frame[0])")
            }
            guard size <= PackStream.fileLimit(kind) else { throw PackFault.tooLarge("it has a file of \(size) bytes") }
            let bytes = try bytes(size)
            let file = try PackFile(try name(kind, id, bytes), bytes, stores: [storeID])
            sum.add(id)
            taking.account.came(id, size)
            if kind == .blob {
                try taking.blobs.append(file)
            } else {
                try take(file)
            }
            return true
        } catch let fault as PackFault { throw fault.error("The pack") }
    }

    /// Returns the name that a file would have at a remote. Its header has everything in the name except the id.
    private func name(_ kind: PackKind, _ id: PackID, _ bytes: [UInt8]) throws -> PackName {
        guard bytes.count >= PackFormat.headerSize + PackFormat.trailerSize else { throw PackFault.damaged("a file of it is too short") }
        return try bytes.withUnsafeBytes { raw in
            var cursor = PackCursor(UnsafeRawBufferPointer(rebasing: raw[48..<64]))
            let writer = try cursor.word(), last = try cursor.integer(UInt32.self), first = try cursor.integer(UInt32.self)
            if kind == .blob {
                var link = PackCursor(UnsafeRawBufferPointer(rebasing: raw[(bytes.count - 120)..<(bytes.count - 104)]))
                return PackName(kind: .blob, digest: try link.id(), first: first, last: last, id: id)
            }
            guard writer != 0, last == number &+ 1 else { throw PackReading.disorder }
            return PackName(kind: .log, writer: writer, first: first, last: last, id: id)
        }
    }

    private static let disorder = PackFault.damaged("files of it are missing, or are in another order")

    // MARK: Versions

    private mutating func take(_ pack: PackFile) throws {
        guard pack.index.link == link else { throw PackReading.disorder }
        try taking.blobs.finishCurrent()
        (link, self.number) = (pack.index.name.id, pack.index.name.last)
        _ = try taking.take(try taking.wanted(of: pack.index.versions), of: pack.index.versions, pack.block)
    }
}
