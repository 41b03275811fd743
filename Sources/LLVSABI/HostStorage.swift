import CLLVS
import Glibc
import LLVS

// MARK: A storage of the host

/// Behind `llvs_storage`: the callbacks, which one store at a time may use.
final class HostStorageHandle: Handle, @unchecked Sendable {
    let name: String
    let callbacks: llvs_storage_callbacks
    let payload: Payload
    private let lock = Lock()
    private var isClaimed = false
    init(_ name: String, _ callbacks: llvs_storage_callbacks, _ payload: Payload) {
        self.name = name; self.callbacks = callbacks; self.payload = payload
    }

    func claim(readOnly: Bool) throws -> HostStorage {
        try lock.withLock {
            guard !isClaimed else { throw StoreError(.busy, "\(name) is in use by an open store; close that first.") }
            isClaimed = true
        }
        return HostStorage(self, readOnly: readOnly)
    }
    func release() { lock.withLock { isClaimed = false } }
}

/// The engine's side of it: calls back one at a time.
final class HostStorage: Storage, @unchecked Sendable {
    private let host: HostStorageHandle
    let isReadOnly: Bool
    private let lock = Lock()
    private var mark: UInt64 = 0
    private var isClosed = false
    /// What is kept here when the host keeps no blobs.
    private var blobs: [String: [UInt8]] = [:]
    private var counts = StorageStatistics()
    /// The thread that is in a callback. A lock of its own, since the other is held then.
    private var caller: pthread_t?
    private let callerLock = Lock()
    private static let codes: [StoreError.Code] = [.noSpace, .permission, .io, .damaged, .readOnly, .notFound, .unknownOutcome, .busy]

    init(_ host: HostStorageHandle, readOnly: Bool) { self.host = host; isReadOnly = readOnly }
    deinit { if !isClosed { host.release() } }

    var description: String { host.name }
    var damages: [StorageDamage] { [] }
    var statistics: StorageStatistics { lock.withLock { counts } }
    let blobThreshold: Int? = nil
    let blockShape = BlockShape.records(64 << 10)

    var isCallingBack: Bool {
        callerLock.withLock { caller.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// One callback, with nothing else running.
    private func call<R>(_ body: (llvs_storage_callbacks, UnsafeMutableRawPointer?) throws -> R) throws -> R {
        try lock.withLock {
            guard !isClosed else { throw StoreError(.closed, "\(host.name) is closed. Open the store again to go on.") }
            return try body(host.callbacks, host.payload.pointer)
        }
    }
    private func check(_ what: String, _ call: (UnsafeMutablePointer<OpaquePointer?>) -> llvs_status) throws {
        callerLock.withLock { caller = pthread_self() }
        defer { callerLock.withLock { caller = nil } }
        try callHost("\(what) of \(host.name)", keeping: HostStorage.codes, call)
    }

    func append(_ records: [RecordPieces]) throws -> [RecordPlace] {
        guard !records.isEmpty else { return [] }
        return try call { callbacks, payload in
            guard let append = callbacks.append else { throw StoreError(.internal, "\(host.name) cannot append.") }
            // The host gets each record in one piece.
            let arena = Arena()
            let inputs = try arena.array(llvs_bytes.self, records.count)
            for (i, record) in records.enumerated() {
                let whole = try arena.array(UInt8.self, record.length)
                try record.copy(to: UnsafeMutableRawBufferPointer(start: whole, count: record.length))
                (inputs + i).initialize(to: llvs_bytes(data: whole, size: record.length))
            }
            let places = try arena.array(UInt64.self, records.count)
            places.initialize(repeating: 0, count: records.count)
            try check("Appending \(records.count) records") { append(payload, inputs, records.count, places, $0) }
            counts.bytesWritten = counts.bytesWritten.addingReportingOverflow(UInt64(records.reduce(0) { $0 + $1.length })).partialValue
            return withExtendedLifetime(arena) {
                records.indices.map { RecordPlace(segment: 0, offset: places[$0], length: UInt64(records[$0].length)) }
            }
        }
    }

    func sync() throws {
        try call { callbacks, payload in
            guard let sync = callbacks.sync else { return }
            do {
                try check("Syncing") { sync(payload, $0) }
            } catch let error as StoreError where error.code != .user {
                // Appended already: nobody knows whether a power cut takes it.
                throw StoreError(.unknownOutcome, error.message)
            }
            counts.syncs &+= 1
        }
    }

    /// Asks for what came after the mark until there is no more. The records are handed on with no callback running,
    /// so that the store may read while it takes them in.
    private func scan(from mark: inout UInt64, _ found: (ScannedRecord) throws -> Void) throws {
        while true {
            let before = mark
            let reply = Reply()
            var next = mark
            try call { callbacks, payload in
                guard let scan = callbacks.scan else { throw StoreError(.internal, "\(host.name) cannot list its records.") }
                try check("Listing the records") { scan(payload, &next, reply.borrowed, $0) }
            }
            for record in reply.records {
                try record.prefix.withUnsafeBytes { prefix in
                    try found(ScannedRecord(place: RecordPlace(segment: 0, offset: record.place, length: record.size), prefix: prefix))
                }
            }
            mark = next
            if reply.records.isEmpty || next == before { return }
        }
    }

    func scan(_ found: (ScannedRecord) throws -> Void) throws {
        // `scan` is called by one thread at a time; the mark moves only when all went well.
        var next = lock.withLock { mark }
        try scan(from: &next, found)
        lock.withLock { mark = next }
    }

    func read(_ place: RecordPlace, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
        guard let start = buffer.baseAddress, buffer.count > 0 else { return }
        guard offset <= place.length, UInt64(buffer.count) <= place.length - offset else {
            throw StoreError(.damaged, "Reading \(buffer.count) bytes at \(offset) of a record of \(place.length) bytes in \(host.name) failed: it does not reach that far.")
        }
        try call { callbacks, payload in
            guard let read = callbacks.read else { throw StoreError(.internal, "\(host.name) cannot read.") }
            try check("Reading a record") { read(payload, place.offset, offset, start.assumingMemoryBound(to: UInt8.self), buffer.count, $0) }
        }
    }

    func verify(_ control: OperationControl, found: (ScannedRecord) throws -> Void, damage: (StorageDamage) throws -> Void) throws {
        var all: UInt64 = 0
        var count = 0
        try scan(from: &all) { record in
            try control.check(.verifying, count, of: 0, doing: "Verifying \(host.name)")
            count += 1
            try found(record)
        }
    }

    func storeBlob(_ data: UnsafeRawBufferPointer) throws -> BlobID { throw noBlobs }
    func hasBlob(_ id: BlobID) -> Bool { false }
    func readBlob(_ id: BlobID, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws { throw noBlobs }
    private var noBlobs: StoreError { StoreError(.unsupported, "\(host.name) keeps all values within its records.") }

    func cacheGet(_ name: String) throws -> [UInt8]? {
        try call { callbacks, payload in
            guard let get = callbacks.cache_get else { return blobs[name] }
            let reply = Reply(questions: 1)
            try withBorrowed(Array(name.utf8)) { name in try check("Reading a cache") { get(payload, name, reply.borrowed, $0) } }
            return reply.answers[0]
        }
    }
    func cachePut(_ name: String, _ data: [UInt8]) throws {
        try call { callbacks, payload in
            guard let put = callbacks.cache_put else { blobs[name] = data; return }
            try withBorrowed(Array(name.utf8)) { name in
                try withBorrowed(data) { data in try check("Writing a cache") { put(payload, name, data, $0) } }
            }
        }
    }
    func cacheDelete(_ name: String) throws {
        try call { callbacks, payload in
            guard let delete = callbacks.cache_delete else { blobs[name] = nil; return }
            try withBorrowed(Array(name.utf8)) { name in try check("Deleting a cache") { delete(payload, name, $0) } }
        }
    }

    func close(discarding: Bool) throws {
        // In a forked child nothing of the host's is touched.
        if discarding && host.isForked { return }
        try lock.withLock {
            guard !isClosed else { return }
            isClosed = true
            defer { host.release() }
            guard let close = host.callbacks.close else { return }
            try check("Closing") { close(host.payload.pointer, $0) }
        }
    }
}

@_cdecl("llvs_storage_create") @implementation
public func llvs_storage_create(_ name: llvs_bytes, _ callbacks: UnsafePointer<llvs_storage_callbacks>!, _ payload: UnsafeMutableRawPointer!,
                                _ payload_free: llvs_free_fn!, _ storage: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    let payload = Payload(payload, payload_free)
    storage?.pointee = nil
    return entry(error) {
        let out = try required(storage, "storage")
        let table = try requiredStruct(callbacks, "llvs_storage_callbacks")
        guard table.reserved == 0 else { throw InputError.reserved("llvs_storage_callbacks") }
        guard table.append != nil, table.scan != nil, table.read != nil else {
            throw StoreError(.invalidArgument, "A storage needs the callbacks append, scan and read.")
        }
        let caches = [table.cache_get != nil, table.cache_put != nil, table.cache_delete != nil]
        guard caches.allSatisfy({ $0 == caches[0] }) else {
            throw StoreError(.invalidArgument, "A storage needs all of cache_get, cache_put and cache_delete, or none.")
        }
        let name = try text(name, "name")
        out.pointee = HostStorageHandle(name.isEmpty ? "the storage of the host" : "the storage \(name)", table, payload).owned
    }
}

@_cdecl("llvs_storage_free") @implementation
public func llvs_storage_free(_ storage: OpaquePointer!) { free(storage, HostStorageHandle.self, leadsToStore: false) }
