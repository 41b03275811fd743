import CLLVS
import LLVS

// MARK: Exchange

final class ExchangeHandle: Handle, @unchecked Sendable {
    let exchange: Exchange
    private let lock = Lock()
    private var isClosed = false
    init(_ exchange: Exchange) { self.exchange = exchange }
    deinit { exchange.close() }
    override func checkReentry() throws { try exchange.store.checkReentry() }

    func close() {
        lock.withLock { isClosed = true }
        exchange.close()
    }
    /// For calls that would not notice by themselves.
    func checkOpen() throws {
        if lock.withLock({ isClosed }) {
            throw StoreError(.closed, "The exchange with \(exchange.transport.description) is closed. Open another to go on.")
        }
    }
}

func exchange(_ pointer: OpaquePointer?) throws -> Exchange {
    let handle = try handle(pointer, ExchangeHandle.self, "exchange")
    try handle.checkOpen()
    return handle.exchange
}

/// Before a decoder and `report_unportable`, these had 24 bytes.
func exchangeOptions(_ options: UnsafePointer<llvs_exchange_options>?) throws -> llvs_exchange_options? {
    try optionalStruct(options, "llvs_exchange_options", earlierSizes: [24])
}

/// A decoder of the host.
final class HostDecoder: Sendable {
    nonisolated(unsafe) private let fn: llvs_decode_fn
    private let payload: Payload

    /// Nil without a function; the payload is freed then.
    init?(_ fn: llvs_decode_fn?, _ payload: Payload) {
        guard let fn else { return nil }
        self.fn = fn; self.payload = payload
    }
    var decode: ForeignDecoder {
        { [self] data in
            let reply = Reply(questions: 1)
            try withExtendedLifetime(reply) {
                try withBorrowed(data) { data in try callHost("Decoding") { fn(payload.pointer, data, reply.borrowed, $0) } }
            }
            return reply.answers[0]
        }
    }
}

private func opened(_ store: OpaquePointer?, _ options: UnsafePointer<llvs_exchange_options>?, _ transport: (Durability) throws -> any ExchangeTransport) throws -> OpaquePointer {
    // Whatever fails, what the caller gave for the callback is freed.
    let given = try exchangeOptions(options)
    let decoder = given.flatMap { HostDecoder($0.decode, Payload($0.decode_payload, $0.decode_free)) }
    let store = try LLVSABI.store(store)
    try store.requireOpen()
    let options = given
    if let options, options.reserved != 0 { throw InputError.reserved("llvs_exchange_options") }
    let durability = try options.map { try LLVSABI.durability($0.durability, "durability") } ?? .full
    let state = try options.map { try array($0.restoration_state, "restoration_state") } ?? []
    var settings = Exchange.Options()
    settings.reportsUnportableIDs = try options.map { try flag($0.report_unportable, "report_unportable") } ?? false
    settings.decode = decoder?.decode
    let exchange = Exchange(store: store, transport: try transport(durability), options: settings)
    if !state.isEmpty { exchange.restorationState = state }
    return ExchangeHandle(exchange).owned
}

@_cdecl("llvs_exchange_open") @implementation
public func llvs_exchange_open(_ store: OpaquePointer!, _ url: llvs_bytes, _ options: UnsafePointer<llvs_exchange_options>!, _ exchange: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    exchange?.pointee = nil
    return entry(error) {
        let out = try required(exchange, "exchange")
        out.pointee = try opened(store, options) { try ExchangeURL.transport(text(url, "url"), $0) }
    }
}

@_cdecl("llvs_exchange_open_transport") @implementation
public func llvs_exchange_open_transport(_ store: OpaquePointer!, _ transport: OpaquePointer!, _ options: UnsafePointer<llvs_exchange_options>!, _ exchange: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    exchange?.pointee = nil
    return entry(error) {
        let out = try required(exchange, "exchange")
        let host = try handle(transport, TransportHandle.self, "transport")
        out.pointee = try opened(store, options) { _ in try host.claim() }
    }
}

@_cdecl("llvs_exchange_close") @implementation
public func llvs_exchange_close(_ exchange: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try handle(exchange, ExchangeHandle.self, "exchange").close() }
}

@_cdecl("llvs_exchange_free") @implementation
public func llvs_exchange_free(_ exchange: OpaquePointer!) {
    guard let handle = peek(exchange, ExchangeHandle.self), !handle.isForked else { return }
    handle.close()
    free(exchange, ExchangeHandle.self, leadsToStore: true)
}

// MARK: Results

/// Behind `llvs_exchange_result`: the problems as a list, and two arrays of ids.
final class ExchangeResultHandle: ListHandle<llvs_problem>, @unchecked Sendable {
    private(set) var retrieved = UnsafeBufferPointer<llvs_bytes>(start: nil, count: 0)
    private(set) var sent = UnsafeBufferPointer<llvs_bytes>(start: nil, count: 0)
    private(set) var repaired = UnsafeBufferPointer<llvs_bytes>(start: nil, count: 0)

    init(retrieved: [VersionID] = [], sent: [VersionID] = [], repaired: [VersionID] = [], problems: [ExchangeProblem]) throws {
        try super.init(problems) { problem, arena in
            llvs_problem(struct_size: UInt32(MemoryLayout<llvs_problem>.size), code: problem.error.code.rawValue,
                         name: try arena.copy(problem.name), message: try arena.copy(problem.error.message))
        }
        self.retrieved = try ids(retrieved)
        self.sent = try ids(sent)
        self.repaired = try ids(repaired)
    }
    private func ids(_ ids: [VersionID]) throws -> UnsafeBufferPointer<llvs_bytes> {
        let start = try arena.array(llvs_bytes.self, ids.count)
        for (i, id) in ids.enumerated() { (start + i).initialize(to: try arena.copy(id)) }
        return UnsafeBufferPointer(start: start, count: ids.count)
    }
}

@_cdecl("llvs_exchange_result_retrieved") @implementation
public func llvs_exchange_result_retrieved(_ result: OpaquePointer!, _ count: UnsafeMutablePointer<Int>!) -> UnsafePointer<llvs_bytes>! {
    let ids = peek(result, ExchangeResultHandle.self)?.retrieved
    count?.pointee = ids?.count ?? 0
    return ids?.baseAddress
}

@_cdecl("llvs_exchange_result_sent") @implementation
public func llvs_exchange_result_sent(_ result: OpaquePointer!, _ count: UnsafeMutablePointer<Int>!) -> UnsafePointer<llvs_bytes>! {
    let ids = peek(result, ExchangeResultHandle.self)?.sent
    count?.pointee = ids?.count ?? 0
    return ids?.baseAddress
}

@_cdecl("llvs_exchange_result_repaired") @implementation
public func llvs_exchange_result_repaired(_ result: OpaquePointer!, _ count: UnsafeMutablePointer<Int>!) -> UnsafePointer<llvs_bytes>! {
    let ids = peek(result, ExchangeResultHandle.self)?.repaired
    count?.pointee = ids?.count ?? 0
    return ids?.baseAddress
}

@_cdecl("llvs_exchange_result_problem_count") @implementation
public func llvs_exchange_result_problem_count(_ result: OpaquePointer!) -> Int { peek(result, ExchangeResultHandle.self)?.count ?? 0 }

@_cdecl("llvs_exchange_result_problem_at") @implementation
public func llvs_exchange_result_problem_at(_ result: OpaquePointer!, _ index: Int) -> UnsafePointer<llvs_problem>! { peek(result, ExchangeResultHandle.self)?.at(index) }

@_cdecl("llvs_exchange_result_free") @implementation
public func llvs_exchange_result_free(_ result: OpaquePointer!) { free(result, ExchangeResultHandle.self, leadsToStore: false) }

// MARK: Exchanging

@_cdecl("llvs_exchange_retrieve") @implementation
public func llvs_exchange_retrieve(_ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    retrieve(exchange, control, verifyKnown: false, result, error)
}

@_cdecl("llvs_exchange_verify") @implementation
public func llvs_exchange_verify(_ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    retrieve(exchange, control, verifyKnown: true, result, error)
}

private func retrieve(_ exchange: OpaquePointer?, _ control: UnsafePointer<llvs_control>?, verifyKnown: Bool, _ result: HandleOut?, _ error: ErrorOut?) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let found = try LLVSABI.exchange(exchange).retrieve(LLVSABI.control(control), verifyKnown: verifyKnown)
        if let result { result.pointee = try ExchangeResultHandle(retrieved: found.versions, repaired: found.repaired, problems: found.problems).owned }
    }
}

@_cdecl("llvs_exchange_send") @implementation
public func llvs_exchange_send(_ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let done = try LLVSABI.exchange(exchange).send(LLVSABI.control(control))
        if let result { result.pointee = try ExchangeResultHandle(sent: done.versions, problems: done.problems).owned }
    }
}

/// Observes one or several exchanges with one callback; nil when none can tell.
func observe(_ exchanges: [Exchange], _ fn: @escaping llvs_notify_fn, _ payload: Payload) throws -> ObserverHandle? {
    let gate = CallbackGate(payload)
    let serial = Lock()
    let observations = try exchanges.compactMap { exchange in
        try exchange.observe { serial.withLock { gate.run { fn($0) } } }
    }
    guard !observations.isEmpty else { return nil }
    return ObserverHandle(gate) { for observation in observations { observation.cancel() } }
}

@_cdecl("llvs_exchange_observe") @implementation
public func llvs_exchange_observe(_ exchange: OpaquePointer!, _ fn: llvs_notify_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
                                  _ observer: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    let payload = Payload(payload, payload_free)
    observer?.pointee = nil
    return entry(error) {
        let out = try required(observer, "observer")
        guard let fn else { throw InputError.null("fn") }
        let exchange = try LLVSABI.exchange(exchange)
        guard let observation = try observe([exchange], fn, payload) else {
            throw StoreError(.unsupported, "\(exchange.transport.description) cannot tell when it gains versions; retrieve from time to time.")
        }
        out.pointee = observation.owned
    }
}

@_cdecl("llvs_exchange_restoration_state") @implementation
public func llvs_exchange_restoration_state(_ exchange: OpaquePointer!, _ state: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    state?.pointee = noBuffer
    return entry(error) {
        let out = try required(state, "state")
        out.pointee = try LLVSABI.exchange(exchange).restorationState.withUnsafeBytes(ownedBuffer)
    }
}

@_cdecl("llvs_exchange_set_restoration_state") @implementation
public func llvs_exchange_set_restoration_state(_ exchange: OpaquePointer!, _ state: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try LLVSABI.exchange(exchange).restorationState = array(state, "state") }
}
