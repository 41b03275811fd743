/// A storage of the host's: the application keeps the records in whatever it has.
///
/// Calls are serialised by a lock and must not call the store back. Errors that the host's functions
/// throw reach the caller unchanged. What the host hands back is not trusted: each record is given to it
/// in an envelope with checksums, and what comes back is checked.
///
///     envelope = header block*                header, 24 bytes, little-endian
///     block    = checksum:4 bytes              0  4  magic "LVCR"
///                                              4  4  format, 1
///     A block holds 64 KiB of the record,      8  8  bytes of the record
///     the last one what is left. Checksums    16  4  zero
///     are CRC-32C.                            20  4  checksum of bytes 0..<20
public final class CallbackStorage: Storage, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// What the host provides. Buffers are borrowed for the call.
    public struct Functions {
        /// Stores the records as one batch: all of them or none. Returns a number for each, by which it is
        /// found again, now and later. Throws when none was stored.
        public var append: (_ records: [UnsafeRawBufferPointer]) throws -> [UInt64]
        /// The records that were stored after `mark` was returned, by whomever, and the mark to give next time. 0 is
        /// the mark before all. It may return a part of them: it is called again with the new mark until it returns
        /// none, or the same mark.
        public var list: (_ mark: UInt64) throws -> (records: [Listed], mark: UInt64)
        /// Fills the buffer with bytes of one record from `offset` on, and returns how many it could.
        public var read: (_ place: UInt64, _ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer) throws -> Int
        /// Makes durable what was appended.
        public var sync: () throws -> Void
        /// Whether the calling thread is within one of these functions; nil: nobody can tell.
        public var isCallingBack: (() -> Bool)?
        /// Whether this is a forked child of the process that opened the store: then nothing is called any more. Nil: a
        /// store that is discarded is taken for that.
        public var isForked: (() -> Bool)?
        /// Called once, when the store is closed. Nothing is called after it but `release`.
        public var close: () throws -> Void
        /// Small named blobs beside the records; kept in memory unless all three are given.
        public var cacheGet: ((_ name: String) throws -> [UInt8]?)?
        /// Replaces the blob of a name as a whole; the bytes are borrowed for the call.
        public var cachePut: ((_ name: String, _ data: UnsafeRawBufferPointer) throws -> Void)?
        /// Removes the blob of a name; it is no error when there is none.
        public var cacheDelete: ((_ name: String) throws -> Void)?
        /// Called once, when nothing is called any more.
        public var release: (() -> Void)?

        /// The functions that every storage needs; the others are set afterwards, where there is something behind them.
        public init(
            append: @escaping (_ records: [UnsafeRawBufferPointer]) throws -> [UInt64],
            list: @escaping (_ mark: UInt64) throws -> (records: [Listed], mark: UInt64),
            read: @escaping (_ place: UInt64, _ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer) throws -> Int,
            sync: @escaping () throws -> Void = {},
            close: @escaping () throws -> Void = {}
        ) {
            self.append = append; self.list = list; self.read = read; self.sync = sync; self.close = close
        }
    }

    /// A record that the host has.
    public struct Listed: Sendable {
        /// Its number.
        public var place: UInt64
        /// Bytes in it.
        public var size: UInt64
        /// Its first bytes, where the host had them at hand: they need not be read then.
        public var first: [UInt8]
        /// What the host lists: a number, a size in bytes, and the first bytes where they were at hand.
        public init(place: UInt64, size: UInt64, first: [UInt8] = []) { self.place = place; self.size = size; self.first = first }
    }

    public let description: String
    public let isReadOnly: Bool
    public let blobThreshold: Int? = nil
    public let blockShape = BlockShape.records(CallbackStorage.blockSize)

    static let headerSize = 24
    static let blockSize = 65_536
    static let magic: UInt32 = 0x5243_564C

    let functions: Functions
    let inspector: RecordInspector?
    let lock = Lock(.writing)
    var mark: UInt64 = 0
    /// Appended here and not listed since.
    var own: Set<UInt64> = []
    private var memoryCaches: [String: [UInt8]] = [:]
    var damageList: [StorageDamage] = []
    var damageSet: Set<StorageDamage> = []
    private var counters = StorageStatistics()
    private var closed = false
    private var abandoned = false

    /// - Parameters:
    ///   - name: what messages call the store.
    ///   - readOnly: nothing is written, whatever the functions could do.
    ///   - inspector: names versions in damage reports.
    ///   - functions: what the host provides.
    public init(name: String = "the host's store", readOnly: Bool = false, inspector: RecordInspector? = nil, functions: Functions) {
        description = name
        isReadOnly = readOnly
        self.inspector = inspector
        self.functions = functions
    }

    deinit { if !abandoned { functions.release?() } }

    public var isCallingBack: Bool { functions.isCallingBack?() ?? false }
    public var damages: [StorageDamage] { lock.withLock { damageList } }
    public func statistics(_ control: PacedControl) throws -> StorageStatistics { lock.withLock { counters } }

    // MARK: Writing

    public func append(_ records: [RecordPieces]) throws -> [RecordPlace] {
        guard !records.isEmpty else { return [] }
        if isReadOnly { throw StorageRange.readOnly(description) }
        var total = 0
        let sizes = try records.map { record in
            let size = CallbackStorage.envelopeSize(UInt64(record.length))
            let (sum, overflow) = total.addingReportingOverflow(Int(clamping: size))
            guard !overflow, sum < Int.max / 2 else {
                throw StoreError(
                    .tooLarge,
                    "Adding \(records.count) records to \(description) failed: together they are too large. Add them in several batches.")
            }
            total = sum
            return Int(size)
        }
        let memory = try Memory.allocate(total, "Adding \(records.count) records to \(description)")
        defer { Memory.release(memory) }
        var envelopes: [UnsafeRawBufferPointer] = []
        var at = 0
        for (record, size) in zip(records, sizes) {
            let envelope = UnsafeMutableRawBufferPointer(rebasing: memory[at..<at + size])
            try CallbackStorage.wrap(record, in: envelope)
            envelopes.append(UnsafeRawBufferPointer(envelope))
            at += size
        }
        return try lock.withLockWhileCalling {
            try checkOpen()
            let places = try functions.append(envelopes)
            guard places.count == records.count else {
                throw StoreError(
                    .unknownOutcome,
                    "Adding \(records.count) records to \(description) failed: the host's append returned \(places.count) places. "
                        + "Whether they were stored is not known."
                )
            }
            own.formUnion(places)
            counters.bytesWritten &+= UInt64(total)
            return zip(places, records).map { RecordPlace(segment: 0, offset: $0, length: UInt64($1.length)) }
        }
    }

    public func sync() throws {
        try lock.withLockWhileCalling {
            try checkOpen()
            if isReadOnly { return }
            try functions.sync()
            counters.syncs &+= 1
        }
    }

    // MARK: Reading

    public func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        _ = try StorageRange.check(offset, buffer.count, within: place.length, of: description)
        guard place.segment == 0 else { throw StorageRange.unknownPlace(description) }
        let size = UInt64(CallbackStorage.blockSize)
        var block: [UInt8] = []
        var done = 0
        while done < buffer.count {
            let at = offset + UInt64(done)
            try load(place, at / size, &block)
            let from = Int(at % size)
            let count = min(block.count - 4 - from, buffer.count - done)
            block.withUnsafeBytes { bytes in
                if let to = buffer.baseAddress, let source = bytes.baseAddress { memcpy(to + done, source + 4 + from, count) }
            }
            done += count
        }
        if buffer.count == 0 { try lock.withLock { try checkOpen() } }
    }

    /// One block with its checksum before it.
    /// - Parameter checked: it must match.
    func load(_ place: RecordPlace, _ number: UInt64, _ block: inout [UInt8], checked: Bool = false) throws {
        let size = UInt64(CallbackStorage.blockSize)
        let count = Int(min(size, place.length - number * size)) + 4
        if block.count != count { block = [UInt8](repeating: 0, count: count) }
        let offset = UInt64(CallbackStorage.headerSize) + number * (size + 4)
        try fetch(place.offset, offset, &block)
        guard checked else { return }
        let whole = block.withUnsafeBytes { bytes in
            FrameFormat.load(bytes, 0, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[4...]))
        }
        guard whole else { throw damaged(place.offset, "bytes \(offset) to \(offset + UInt64(count)) do not match their checksum") }
    }

    func fetch(_ place: UInt64, _ offset: UInt64, _ bytes: inout [UInt8]) throws {
        let wanted = bytes.count
        let got = try bytes.withUnsafeMutableBytes { buffer in
            try lock.withLockWhileCalling {
                try checkOpen()
                return try functions.read(place, offset, buffer)
            }
        }
        guard got == wanted else {
            throw damaged(place, "of \(wanted) bytes at \(offset) the host's read returned \(UInt(bitPattern: got))")
        }
    }

    func damaged(_ place: UInt64, _ what: String) -> StoreError {
        StoreError(
            .damaged,
            "A version in \(description) is damaged: of the record at \(place), \(what). Exchange with a store that has the version.")
    }

    // MARK: The envelope

    /// Bytes of the envelope of a record of that many.
    static func envelopeSize(_ length: UInt64) -> UInt64 {
        let blocks = length / UInt64(blockSize) &+ (length % UInt64(blockSize) == 0 ? 0 : 1)
        return UInt64(headerSize) &+ length &+ 4 &* blocks
    }

    /// Bytes of the record in an envelope of that many.
    static func recordSize(_ size: UInt64) -> UInt64 {
        let bytes = size > UInt64(headerSize) ? size - UInt64(headerSize) : 0, block = UInt64(blockSize) + 4
        return bytes - bytes / block * 4 - min(4, bytes % block)
    }

    private static func wrap(_ record: RecordPieces, in envelope: UnsafeMutableRawBufferPointer) throws {
        envelope.storeBytes(of: magic.littleEndian, toByteOffset: 0, as: UInt32.self)
        envelope.storeBytes(of: UInt32(1).littleEndian, toByteOffset: 4, as: UInt32.self)
        envelope.storeBytes(of: UInt64(record.length).littleEndian, toByteOffset: 8, as: UInt64.self)
        envelope.storeBytes(of: 0, toByteOffset: 16, as: UInt32.self)
        envelope.storeBytes(
            of: Bytes.crc32c(UnsafeRawBufferPointer(rebasing: envelope[0..<20])).littleEndian, toByteOffset: 20, as: UInt32.self)
        var block = headerSize, filled = 0
        func finishBlock() {
            let crc = Bytes.crc32c(UnsafeRawBufferPointer(rebasing: envelope[block + 4..<block + 4 + filled]))
            envelope.storeBytes(of: crc.littleEndian, toByteOffset: block, as: UInt32.self)
            block += 4 + filled
            filled = 0
        }
        try record.forEach { piece in
            var at = 0
            while at < piece.count {
                let count = min(piece.count - at, blockSize - filled)
                if let to = envelope.baseAddress, let from = piece.baseAddress { memcpy(to + block + 4 + filled, from + at, count) }
                at += count
                filled += count
                if filled == blockSize { finishBlock() }
            }
        }
        if filled > 0 { finishBlock() }
    }

    /// The record's length, when the bytes begin with a header that matches its checksum.
    static func length(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        guard bytes.count >= headerSize, FrameFormat.load(bytes, 0, UInt32.self) == magic, FrameFormat.load(bytes, 4, UInt32.self) == 1,
            FrameFormat.load(bytes, 20, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[0..<20]))
        else { return nil }
        return FrameFormat.load(bytes, 8, UInt64.self)
    }

    // MARK: Blobs and caches

    public func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { throw StorageRange.noBlobs(description) }
    public func hasBlob(_ id: BlobID) -> Bool { false }
    public func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        throw StorageRange.noBlobs(description)
    }

    /// Whether caches go to the host. A read-only storage keeps its own in memory.
    private var hostKeepsCaches: Bool {
        !isReadOnly && functions.cacheGet != nil && functions.cachePut != nil && functions.cacheDelete != nil
    }

    /// With a checksum before it, so that what the host hands back can be told from garbage.
    public func cacheGet(_ name: String) throws -> [UInt8]? {
        try CacheName.check(name)
        return try lock.withLockWhileCalling {
            try checkOpen()
            guard hostKeepsCaches else { return memoryCaches[name] }
            guard let bytes = try functions.cacheGet?(name), bytes.count >= 4 else { return nil }
            try Memory.expect(bytes.count, "Reading a cache")
            return bytes.withUnsafeBytes { all in
                let data = UnsafeRawBufferPointer(rebasing: all[4...])
                return FrameFormat.load(all, 0, UInt32.self) == Bytes.crc32c(data) ? Array(data) : nil
            }
        }
    }

    public func cachePut(_ name: String, _ data: [UInt8]) throws {
        try CacheName.check(name)
        try lock.withLockWhileCalling {
            try checkOpen()
            guard hostKeepsCaches else { memoryCaches[name] = data; return }
            let crc = data.withUnsafeBytes { Bytes.crc32c($0) }
            try Memory.expect(2 * data.count, "Writing a cache")
            try (withUnsafeBytes(of: crc.littleEndian) { Array($0) } + data).withUnsafeBytes { try functions.cachePut?(name, $0) }
        }
    }

    public func cacheDelete(_ name: String) throws {
        try CacheName.check(name)
        try lock.withLockWhileCalling {
            try checkOpen()
            guard hostKeepsCaches else { memoryCaches[name] = nil; return }
            try functions.cacheDelete?(name)
        }
    }

    public func close(discarding: Bool) throws {
        if discarding, functions.isForked?() ?? true {
            // After a fork nothing of the host's is called: what it holds is its parent's.
            abandoned = true
            return
        }
        try lock.withLockWhileCalling {
            if closed { return }
            closed = true
            try functions.close()
        }
    }

    func checkOpen() throws { if closed { throw StorageRange.closed(description) } }
}
