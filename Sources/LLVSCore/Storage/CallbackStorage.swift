/// A storage of the host's: the application stores the records wherever it likes.
///
/// Calls are serialised by a lock and must not call the store. Errors of the host's functions reach the caller unchanged. Bytes from the
/// host are not trusted: each record is passed to it in an envelope with checksums, and checked when it is read.
///
///     envelope = header block*                header, 24 bytes, little-endian
///     block    = checksum:4 bytes              0  4  magic "LVCR"
///                                              4  4  format, 1
///     A block holds 64 KiB of the record,      8  8  bytes of the record
///     the last one what is left. Checksums    16  4  zero
///     are CRC-32C.                            20  4  checksum of bytes 0..<20
public final class CallbackStorage: Storage, @unchecked Sendable {
    // Sendable: `lock` guards all mutable state.
    /// The functions of the host. Buffers are borrowed for the call.
    public struct Functions {
        /// Stores the records as one batch: all of them or none. Returns a number for each, by which it is found from then on. Throws if
        /// none was stored.
        public var append: (_ records: [UnsafeRawBufferPointer]) throws -> [UInt64]
        /// Returns the records that any process stored after `mark` was returned, and the next mark. 0 is the mark before all records. It
        /// may return a part of them: it is called again with the new mark until it returns no records, or the same mark.
        public var list: (_ mark: UInt64) throws -> (records: [Listed], mark: UInt64)
        /// Fills the buffer with bytes of one record from `offset` on. Returns the number of bytes.
        public var read: (_ place: UInt64, _ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer) throws -> Int
        /// Makes the appended records durable.
        public var sync: () throws -> Void
        /// Returns whether the calling thread is within one of these functions; nil if that cannot be known.
        package var isCallingBack: (() -> Bool)?
        /// Returns whether this is a forked child of the process that opened the store: then no function is called any more. If it is
        /// nil, closing with `discarding` counts as being in such a child.
        public var isForked: (() -> Bool)?
        /// Called once, when the store is closed. No function except `release` is called after it.
        public var close: () throws -> Void
        /// Returns a small named blob beside the records. Such blobs are kept in memory unless all three functions are given.
        public var cacheGet: ((_ name: String) throws -> [UInt8]?)?
        /// Replaces the blob of a name as a whole. The bytes are borrowed for the call.
        public var cachePut: ((_ name: String, _ data: UnsafeRawBufferPointer) throws -> Void)?
        /// Removes the blob of a name. It is not an error if there is none.
        public var cacheDelete: ((_ name: String) throws -> Void)?
        /// Called once, after all other calls.
        public var release: (() -> Void)?

        /// Creates functions from those that every storage needs. Set the others afterwards if the host has them.
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

    /// A record of the host.
    public struct Listed: Sendable {
        /// Its number.
        public var place: UInt64
        /// The number of bytes in it.
        public var size: UInt64
        /// The first bytes of the record, if the host has them at hand: then they need not be read.
        public var first: [UInt8]
        /// Creates a listed record from its number, its size in bytes, and its first bytes if they are at hand.
        public init(place: UInt64, size: UInt64, first: [UInt8] = []) { self.place = place; self.size = size; self.first = first }
    }

    package let description: String
    package let isReadOnly: Bool
    package let blobThreshold: Int? = nil
    package let blockShape = BlockShape.records(CallbackStorage.blockSize)

    static let headerSize = 24
    static let blockSize = 65_536
    static let magic: UInt32 = 0x5243_564C

    let functions: Functions
    let inspector: RecordInspector?
    let lock = Lock(.writing)
    var mark: UInt64 = 0
    /// Records that were appended here and not listed since.
    var own: Set<UInt64> = []
    private var memoryCaches: [String: [UInt8]] = [:]
    var damageList: [StorageDamage] = []
    var damageSet: Set<StorageDamage> = []
    private var counters = StorageStatistics()
    private var closed = false
    private var abandoned = false

    /// - Parameters:
    ///   - name: the name of the store in messages.
    ///   - readOnly: whether nothing may be written, even if the functions could.
    ///   - functions: the functions of the host.
    public convenience init(name: String = "the host's store", readOnly: Bool = false, functions: Functions) {
        self.init(name: name, readOnly: readOnly, inspector: nil, functions: functions)
    }

    /// - Parameter inspector: names versions in damage reports.
    package init(name: String = "the host's store", readOnly: Bool = false, inspector: RecordInspector?, functions: Functions) {
        description = name
        isReadOnly = readOnly
        self.inspector = inspector
        self.functions = functions
    }

    deinit { if !abandoned { functions.release?() } }

    package var isCallingBack: Bool { functions.isCallingBack?() ?? false }
    package var damages: [StorageDamage] { lock.withLock { damageList } }
    package func statistics(_ control: PacedControl) throws -> StorageStatistics { lock.withLock { counters } }

    /// The host reports neither the bytes on its medium nor its caches.
    package func overhead(of place: RecordPlace) -> UInt64 { CallbackStorage.envelopeSize(place.length) &- place.length }

    // MARK: Writing

    package func append(_ records: [RecordPieces]) throws -> [RecordPlace] {
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
                        + "It is not known whether they were stored."
                )
            }
            own.formUnion(places)
            counters.bytesWritten &+= UInt64(total)
            return zip(places, records).map { RecordPlace(segment: 0, offset: $0, length: UInt64($1.length)) }
        }
    }

    package func sync() throws {
        try lock.withLockWhileCalling {
            try checkOpen()
            if isReadOnly { return }
            try functions.sync()
            counters.syncs &+= 1
        }
    }

    // MARK: Reading

    package func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
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

    /// Reads one block with its checksum before it.
    /// - Parameter checked: whether it must match the checksum.
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

    /// Returns the size of the envelope of a record of a given size.
    static func envelopeSize(_ length: UInt64) -> UInt64 {
        let blocks = length / UInt64(blockSize) &+ (length % UInt64(blockSize) == 0 ? 0 : 1)
        return UInt64(headerSize) &+ length &+ 4 &* blocks
    }

    /// Returns the size of the record in an envelope of a given size.
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

    /// Returns the record's length if the bytes begin with a header that matches its checksum.
    static func length(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
        guard bytes.count >= headerSize, FrameFormat.load(bytes, 0, UInt32.self) == magic, FrameFormat.load(bytes, 4, UInt32.self) == 1,
            FrameFormat.load(bytes, 20, UInt32.self) == Bytes.crc32c(UnsafeRawBufferPointer(rebasing: bytes[0..<20]))
        else { return nil }
        return FrameFormat.load(bytes, 8, UInt64.self)
    }

    // MARK: Blobs and caches

    package func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { throw StorageRange.noBlobs(description) }
    package func hasBlob(_ id: BlobID) -> Bool { false }
    package func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        throw StorageRange.noBlobs(description)
    }

    /// Whether the host stores caches. A read-only storage has its own in memory.
    private var hostKeepsCaches: Bool {
        !isReadOnly && functions.cacheGet != nil && functions.cachePut != nil && functions.cacheDelete != nil
    }

    /// Caches have a checksum before them, so that damaged bytes from the host are detected.
    package func cacheGet(_ name: String) throws -> [UInt8]? {
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

    package func cachePut(_ name: String, _ data: [UInt8]) throws {
        try CacheName.check(name)
        try lock.withLockWhileCalling {
            try checkOpen()
            guard hostKeepsCaches else { memoryCaches[name] = data; return }
            let crc = data.withUnsafeBytes { Bytes.crc32c($0) }
            try Memory.expect(2 * data.count, "Writing a cache")
            try (withUnsafeBytes(of: crc.littleEndian) { Array($0) } + data).withUnsafeBytes { try functions.cachePut?(name, $0) }
        }
    }

    package func cacheDelete(_ name: String) throws {
        try CacheName.check(name)
        try lock.withLockWhileCalling {
            try checkOpen()
            guard hostKeepsCaches else { memoryCaches[name] = nil; return }
            try functions.cacheDelete?(name)
        }
    }

    package func close(discarding: Bool) throws {
        if discarding, functions.isForked?() ?? true {
            // After a fork, no function of the host is called: its resources belong to the parent.
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
