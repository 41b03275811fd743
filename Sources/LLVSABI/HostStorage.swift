import CLLVS
import Glibc
import LLVSCoordinator
import LLVSTesting

// MARK: A storage of the host

/// Behind `llvs_storage`: one store at a time can be opened on it.
class StorageHandle: Handle, @unchecked Sendable {
    let name: String
    private let lock = Lock()
    private var isClaimed = false
    init(_ name: String) { self.name = name }

    /// Opens the storage with the faults of the plans; the first plan is the innermost.
    final func claim(readOnly: Bool, failing plans: [FaultPlan] = []) throws -> any Storage {
        try lock.withLock {
            guard !isClaimed else {
                throw StoreError(
                    .busy,
                    "\(name) is in use by an open store, or was being opened when a callback of it did not return. "
                        + "Close the store, or make another storage."
                )
            }
            isClaimed = true
        }
        let claim = StorageClaim(self)
        do { return try open(readOnly: readOnly, plans, claim) } catch {
            claim.end()
            throw error
        }
    }
    fileprivate func release() { lock.withLock { isClaimed = false } }

    func open(readOnly: Bool, _ plans: [FaultPlan], _ claim: StorageClaim) throws -> any Storage {
        throw StoreError(.internal, "\(name) cannot be opened.")
    }
}

/// The claim of one store on a storage, which ends once.
final class StorageClaim: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let lock = Lock()
    private var handle: StorageHandle?
    init(_ handle: StorageHandle) { self.handle = handle }
    deinit { end() }
    func end() {
        let handle = lock.withLock { () -> StorageHandle? in
            defer { self.handle = nil }
            return self.handle
        }
        handle?.release()
    }
}

/// A storage that the host implements by callbacks.
final class HostStorageHandle: StorageHandle, @unchecked Sendable {
    let callbacks: llvs_storage_callbacks
    let payload: Payload
    init(_ name: String, _ callbacks: llvs_storage_callbacks, _ payload: Payload) {
        self.callbacks = callbacks; self.payload = payload
        super.init(name)
    }

    override func open(readOnly: Bool, _ plans: [FaultPlan], _ claim: StorageClaim) throws -> any Storage {
        var functions = HostFunctions(self).functions(claim)
        for plan in plans { functions = functions.failing(plan, name: name) }
        for plan in plans { try plan.opening(name) }
        return CallbackStorage(name: name, readOnly: readOnly, inspector: Store.versionNamed, functions: functions)
    }
}

/// Adapts the callbacks to the engine, which calls one at a time.
private final class HostFunctions: HostCallMark, @unchecked Sendable {
    // Sendable: `callerLock` guards all that changes.
    private let host: HostStorageHandle
    /// The thread that is in a callback.
    private var caller: pthread_t?
    private let callerLock = Lock()
    private static let codes: [StoreError.Code] = [
        .noSpace, .permission, .io, .damaged, .readOnly, .notFound, .unknownOutcome, .busy, .tooManyFiles,
    ]

    init(_ host: HostStorageHandle) { self.host = host }

    private var callbacks: llvs_storage_callbacks { host.callbacks }
    private var payload: UnsafeMutableRawPointer? { host.payload.pointer }

    private func check(_ what: String, _ call: (UnsafeMutablePointer<OpaquePointer?>) -> llvs_status) throws {
        callerLock.withLock { caller = pthread_self() }
        defer { callerLock.withLock { caller = nil } }
        _ = try HostCalls.run(self) { try callHost("\(what) of \(host.name)", keeping: HostFunctions.codes, call) }
    }
    func hostLeft() { callerLock.withLock { caller = nil } }
    private func missing(_ callback: String) -> StoreError { StoreError(.internal, "\(host.name) has no callback \(callback).") }

    func functions(_ claim: StorageClaim) -> CallbackStorage.Functions {
        var functions = CallbackStorage.Functions(append: append, list: list, read: read, sync: sync) { [self] in
            defer { claim.end() }
            guard let close = callbacks.close else { return }
            try check("Closing") { close(payload, $0) }
        }
        functions.isCallingBack = { [self] in callerLock.withLock { caller.map { pthread_equal($0, pthread_self()) != 0 } ?? false } }
        functions.isForked = { [host] in host.isForked }
        functions.release = { claim.end() }
        if callbacks.cache_get != nil {
            functions.cacheGet = cacheGet
            functions.cachePut = cachePut
            functions.cacheDelete = cacheDelete
        }
        return functions
    }

    private func append(_ records: [UnsafeRawBufferPointer]) throws -> [UInt64] {
        guard let append = callbacks.append else { throw missing("append") }
        let inputs = records.map { llvs_bytes(data: $0.baseAddress?.assumingMemoryBound(to: UInt8.self), size: $0.count) }
        var places = [UInt64](repeating: .max, count: records.count)
        try inputs.withUnsafeBufferPointer { inputs in
            try places.withUnsafeMutableBufferPointer { places in
                try check("Appending \(records.count) records") {
                    append(payload, inputs.baseAddress, records.count, places.baseAddress, $0)
                }
            }
        }
        guard !places.contains(.max) else {
            throw StoreError(
                .unknownOutcome,
                "Appending \(records.count) records of \(host.name) returned LLVS_OK and did not set the place of each. "
                    + "It is not known whether they are stored."
            )
        }
        return places
    }

    private func list(_ mark: UInt64) throws -> (records: [CallbackStorage.Listed], mark: UInt64) {
        guard let scan = callbacks.scan else { throw missing("scan") }
        let reply = Reply()
        var next = mark
        try check("Listing the records") { scan(payload, &next, reply.borrowed, $0) }
        return (reply.records.map { CallbackStorage.Listed(place: $0.place, size: $0.size, first: $0.prefix) }, next)
    }

    private func read(_ place: UInt64, _ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        guard let read = callbacks.read else { throw missing("read") }
        guard let start = buffer.baseAddress, buffer.count > 0 else { return 0 }
        try check("Reading a record") { read(payload, place, offset, start.assumingMemoryBound(to: UInt8.self), buffer.count, $0) }
        return buffer.count
    }

    private func sync() throws {
        guard let sync = callbacks.sync else { return }
        do {
            try check("Syncing") { sync(payload, $0) }
        } catch var error as StoreError where error.code != .user {
            // The records were appended already; whether a power cut loses them is unknown.
            error.code = .unknownOutcome
            throw error
        }
    }

    private func cacheGet(_ name: String) throws -> [UInt8]? {
        guard let get = callbacks.cache_get else { throw missing("cache_get") }
        let reply = Reply(questions: 1)
        try withBorrowed(Array(name.utf8)) { name in try check("Reading a cache") { get(payload, name, reply.borrowed, $0) } }
        return reply.answers[0]
    }
    private func cachePut(_ name: String, _ data: UnsafeRawBufferPointer) throws {
        guard let put = callbacks.cache_put else { throw missing("cache_put") }
        var bytes = llvs_bytes(data: data.baseAddress?.assumingMemoryBound(to: UInt8.self), size: data.count)
        try withBorrowed(Array(name.utf8)) { name in try check("Writing a cache") { put(payload, name, &bytes, $0) } }
    }
    private func cacheDelete(_ name: String) throws {
        guard let delete = callbacks.cache_delete else { throw missing("cache_delete") }
        try withBorrowed(Array(name.utf8)) { name in try check("Deleting a cache") { delete(payload, name, $0) } }
    }
}

@_cdecl("llvs_storage_create") @implementation
public func llvs_storage_create(
    _ name: llvs_bytes, _ callbacks: UnsafePointer<llvs_storage_callbacks>!, _ payload: UnsafeMutableRawPointer!,
    _ payload_free: llvs_free_fn!, _ storage: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
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
public func llvs_storage_free(_ storage: OpaquePointer!) { free(storage, StorageHandle.self, leadsToStore: false) }
