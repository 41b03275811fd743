import CLLVS
import LLVSCoordinator

// MARK: A transport of the host

/// The sizes before large files could be sent in pieces, and before unusable files could be reported.
let earlierSizesOfTransportCallbacks = [80, 88]

/// Behind `llvs_transport`: one exchange at a time can be opened on it.
class TransportHandle: Handle, @unchecked Sendable {
    let name: String
    private let lock = Lock()
    private var isClaimed = false
    init(_ name: String) { self.name = name }

    /// - Parameter place: the options of the exchange for its place.
    final func claim(_ place: Exchange.URLOptions = Exchange.URLOptions()) throws -> any ExchangeTransport {
        try claimed { try open(place) }
    }
    /// Does the same as `claim` for the named files below.
    final func claimFiles() throws -> any RemoteFiles { try claimed { try openFiles() } }
    private func claimed<T>(_ open: () throws -> T) throws -> T {
        try lock.withLock {
            guard !isClaimed else { throw StoreError(.busy, "\(name) is in use by an open exchange; close that first.") }
            isClaimed = true
        }
        do { return try open() } catch {
            release()
            throw error
        }
    }
    final func release() { lock.withLock { isClaimed = false } }

    /// Opens the transport. Must ensure that `release` is called when it is closed.
    func open(_ place: Exchange.URLOptions) throws -> any ExchangeTransport { throw StoreError(.internal, "\(name) cannot be opened.") }
    /// Opens the named files, likewise.
    func openFiles() throws -> any RemoteFiles {
        throw StoreError(
            .invalidArgument, "\(name) transports single versions and has no files. Give one that llvs_transport_create_on_files made.")
    }
    /// The state that the transport needs in a later process.
    func state() throws -> [UInt8] { [] }
    func setState(_ state: [UInt8]) throws {
        throw StoreError(.unsupported, "\(name) has no state of the host. Only transports that llvs_transport_create made have one.")
    }
    /// Notifies the observers.
    func notify() {}
}

/// A transport that the host implements by callbacks.
final class HostTransportHandle: TransportHandle, @unchecked Sendable {
    let callbacks: llvs_transport_callbacks
    let payload: Payload
    private let lock = Lock()
    private var stateBytes: [UInt8] = []
    /// The observers of news; an observation that ended is removed.
    private var observations: [WeakObservation] = []
    private struct WeakObservation { weak var observation: ObservationThread? }

    init(_ name: String, _ callbacks: llvs_transport_callbacks, _ payload: Payload) {
        self.callbacks = callbacks; self.payload = payload
        super.init(name)
    }

    override func open(_ place: Exchange.URLOptions) throws -> any ExchangeTransport {
        guard place.keys == nil, place.layout != .packed, place.layout != .bridged else {
            throw StoreError(
                .invalidArgument,
                "Keys or the packed layout are given for \(name), which transports single versions unencrypted. "
                    + "Leave them out, or give files (llvs_transport_create_on_files)."
            )
        }
        return HostTransport(self)
    }
    override func state() -> [UInt8] { lock.withLock { stateBytes } }
    override func setState(_ state: [UInt8]) { lock.withLock { stateBytes = state } }

    func observe(_ changed: @escaping @Sendable () -> Void) throws -> ObservationThread {
        let observation = try ObservationThread(changed)
        lock.withLock {
            observations.removeAll { $0.observation == nil }
            observations.append(WeakObservation(observation: observation))
        }
        return observation
    }
    override func notify() { for observation in lock.withLock({ observations }) { observation.observation?.signal() } }
}

/// Makes the callbacks of one exchange, one at a time.
final class HostTransport: ExchangeTransport, @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    private let host: HostTransportHandle
    private let lock = Lock()
    private var isClosed = false
    static let codes: [StoreError.Code] = [.transport, .permission, .noSpace, .io, .cancelled]

    init(_ host: HostTransportHandle) { self.host = host }
    deinit { close() }

    var description: String { host.name }
    private var callbacks: llvs_transport_callbacks { host.callbacks }
    private var payload: UnsafeMutableRawPointer? { host.payload.pointer }

    /// Calls back without the lock, since the callback may run another exchange.
    private func check(_ what: String, _ call: (UnsafeMutablePointer<OpaquePointer?>) -> llvs_status) throws {
        guard !lock.withLock({ isClosed }) else {
            throw StoreError(.closed, "The exchange with \(host.name) is closed. Open another one to continue.")
        }
        try callHost("\(what) \(host.name)", keeping: HostTransport.codes, call)
    }
    private func missing(_ callback: String) -> StoreError { StoreError(.internal, "\(host.name) has no callback \(callback).") }

    func list(_ control: OperationControl) throws -> ExchangeListing {
        guard let list = callbacks.list else { throw missing("list") }
        let reply = Reply(token: control.token)
        try check("Listing") { list(payload, reply.borrowed, $0) }
        // A name that is not UTF-8 is foreign, and is shown with replacement characters.
        return ExchangeListing(versions: reply.items.map { String(decoding: $0, as: UTF8.self) })
    }

    private typealias Question =
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<llvs_bytes>?, Int, OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>?) ->
        llvs_status

    private func ask(_ what: String, _ names: [String], _ reply: Reply, _ question: Question) throws {
        let arena = Arena()
        let inputs = try arena.array(llvs_bytes.self, names.count)
        for (i, name) in names.enumerated() { (inputs + i).initialize(to: try arena.copy(name)) }
        try withExtendedLifetime((arena, reply)) { try check(what) { question(payload, inputs, names.count, reply.borrowed, $0) } }
    }
    private func fetch(_ names: [String], _ control: OperationControl, _ fetch: Question) throws -> [FetchedFile] {
        let reply = Reply(questions: names.count, token: control.token)
        try ask("Fetching from", names, reply, fetch)
        return reply.answers.enumerated().map { index, answer in
            if let source = reply.sources[index] { return .pieces(source) }
            return answer.map(FetchedFile.data) ?? .missing
        }
    }
    func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        guard let callback = callbacks.fetch_versions else { throw missing("fetch_versions") }
        return try fetch(names, control, callback)
    }
    func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        guard let callback = callbacks.fetch_changes else { throw missing("fetch_changes") }
        return try fetch(names, control, callback)
    }

    func send(_ files: [ExchangeFiles], _ control: OperationControl) throws {
        guard let send = callbacks.send else { throw missing("send") }
        // A large file is sent in a call of its own.
        if let file = files.first, files.count == 1, file.changes.size > ExchangeLimits.wholeFileSize, callbacks.send_large != nil {
            return try sendLarge(file, control)
        }
        let reply = Reply(token: control.token)
        let arena = Arena()
        let items = try Items(files, in: arena) { file, arena in
            llvs_exchange_files(
                struct_size: UInt32(sizeOf: llvs_exchange_files.self), reserved: 0, name: try arena.copy(file.name),
                version: try arena.copy(file.version), changes: try arena.copy(file.changes))
        }
        try withExtendedLifetime((arena, reply)) { try check("Sending to") { send(payload, items.start, items.count, reply.borrowed, $0) } }
    }

    private func sendLarge(_ file: ExchangeFiles, _ control: OperationControl) throws {
        guard let send = callbacks.send_large else { throw missing("send_large") }
        let reply = Reply(token: control.token), changes = Outgoing(file.changes)
        try withBorrowed(Array(file.name.utf8)) { name in
            try withBorrowed(file.version) { version in
                try withExtendedLifetime((reply, changes)) {
                    try check("Sending to") { send(payload, name, version, changes.borrowed, reply.borrowed, $0) }
                }
            }
        }
    }

    func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        guard let unusable = callbacks.unusable, !names.isEmpty else { return [] }
        let reply = Reply(token: control.token), asked = Set(names)
        try ask("Finding unusable files in", names, reply, unusable)
        return reply.items.compactMap { String(validating: $0, as: UTF8.self) }.filter(asked.contains)
    }

    // MARK: Snapshots

    private var noSnapshots: StoreError {
        StoreError(.unsupported, "\(host.name) stores no snapshots: it has no callbacks for them. Give it all four.")
    }

    func readSnapshotFile(_ name: String) throws -> [UInt8]? {
        guard let read = callbacks.snapshot_read else { throw noSnapshots }
        let reply = Reply(questions: 1)
        try withBorrowed(Array(name.utf8)) { name in try check("Reading a snapshot from") { read(payload, name, reply.borrowed, $0) } }
        if let source = reply.sources[0] { return try source.whole("A file of the transport", atMost: ExchangeLimits.fileSize) }
        return reply.answers[0]
    }
    func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws {
        guard let write = callbacks.snapshot_write else { throw noSnapshots }
        try withBorrowed(Array(name.utf8)) { name in
            try withBorrowed(data) { data in try check("Writing a snapshot to") { write(payload, name, data, $0) } }
        }
    }
    func deleteSnapshotFile(_ name: String) throws {
        guard let delete = callbacks.snapshot_delete else { throw noSnapshots }
        try withBorrowed(Array(name.utf8)) { name in try check("Deleting a snapshot from") { delete(payload, name, $0) } }
    }
    func snapshotFileNames() throws -> [String] {
        guard let list = callbacks.snapshot_list else { throw noSnapshots }
        let reply = Reply()
        try check("Listing the snapshots of") { list(payload, reply.borrowed, $0) }
        return reply.items.map { String(decoding: $0, as: UTF8.self) }
    }

    // MARK: State, news and the end

    var restorationState: [UInt8] {
        get { host.state() }
        set { host.setState(newValue) }
    }
    func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { try host.observe(changed) }

    func close() {
        let first = lock.withLock {
            defer { isClosed = true }; return !isClosed
        }
        guard first else { return }
        if let close = callbacks.close {
            // The failure cannot be reported; the exchange ends in any case.
            _ = try? callHost("Closing \(host.name)") { close(payload, $0) }
        }
        host.release()
    }
}

@_cdecl("llvs_transport_create") @implementation
public func llvs_transport_create(
    _ name: llvs_bytes, _ callbacks: UnsafePointer<llvs_transport_callbacks>!, _ payload: UnsafeMutableRawPointer!,
    _ payload_free: llvs_free_fn!, _ transport: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    let payload = Payload(payload, payload_free)
    transport?.pointee = nil
    return entry(error) {
        let out = try required(transport, "transport")
        let table = try requiredStruct(callbacks, "llvs_transport_callbacks", earlierSizes: earlierSizesOfTransportCallbacks)
        guard table.reserved == 0 else { throw InputError.reserved("llvs_transport_callbacks") }
        guard table.list != nil, table.fetch_versions != nil, table.fetch_changes != nil, table.send != nil else {
            throw StoreError(.invalidArgument, "A transport needs the callbacks list, fetch_versions, fetch_changes and send.")
        }
        let snapshots = [table.snapshot_list != nil, table.snapshot_read != nil, table.snapshot_write != nil, table.snapshot_delete != nil]
        guard snapshots.allSatisfy({ $0 == snapshots[0] }) else {
            throw StoreError(.invalidArgument, "A transport needs all four callbacks for snapshots, or none.")
        }
        let name = try text(name, "name")
        out.pointee = HostTransportHandle(name.isEmpty ? "the transport of the host" : "the transport \(name)", table, payload).owned
    }
}

@_cdecl("llvs_transport_notify") @implementation
public func llvs_transport_notify(_ transport: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try handle(transport, TransportHandle.self, "transport").notify() }
}

@_cdecl("llvs_transport_state") @implementation
public func llvs_transport_state(_ transport: OpaquePointer!, _ state: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!)
    -> llvs_status
{
    state?.pointee = noBuffer
    return entry(error) {
        let out = try required(state, "state")
        out.pointee = try handle(transport, TransportHandle.self, "transport").state().withUnsafeBytes(ownedBuffer)
    }
}

@_cdecl("llvs_transport_set_state") @implementation
public func llvs_transport_set_state(_ transport: OpaquePointer!, _ state: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try handle(transport, TransportHandle.self, "transport").setState(array(state, "state")) }
}

@_cdecl("llvs_transport_free") @implementation
public func llvs_transport_free(_ transport: OpaquePointer!) { free(transport, TransportHandle.self, leadsToStore: false) }
