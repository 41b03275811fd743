import CLLVS
import CLLVSShims
import LLVSCoordinator

// MARK: Exchange

final class ExchangeHandle: Handle, @unchecked Sendable {
    let exchange: Exchange
    /// Points into `arena`.
    let url: llvs_bytes
    private let arena = Arena()
    init(_ exchange: Exchange, url: String) throws {
        self.exchange = exchange
        self.url = url.isEmpty ? noBytes : try arena.copy(url)
    }
    deinit { exchange.close() }
    override func checkReentry() throws { try exchange.store.checkReentry() }
}

package func exchange(_ pointer: OpaquePointer?) throws -> Exchange {
    let exchange = try handle(pointer, ExchangeHandle.self, "exchange").exchange
    // For calls that would not notice by themselves that the exchange is closed.
    try exchange.checkOpen()
    return exchange
}

/// A decoder implemented by the host.
final class HostDecoder: Sendable {
    nonisolated(unsafe) private let fn: llvs_decode_fn
    private let payload: Payload

    /// Nil without a function; then the payload is freed.
    init?(_ fn: llvs_decode_fn?, _ payload: Payload) {
        guard let fn else { return nil }
        self.fn = fn; self.payload = payload
    }
    var decode: ForeignDecoder {
        { [self] data in
            let reply = Reply(questions: 1)
            let status = try withExtendedLifetime(reply) {
                try withBorrowed(data) { data in
                    try callHost("Decoding", expecting: llvs_status(LLVS_PASS.rawValue)) { fn(payload.pointer, data, reply.borrowed, $0) }
                }
            }
            if status != LLVS_OK.rawValue { return nil }
            // A callback that was aborted before it could reply leaves no bytes. Compressed bytes must not count as a value.
            guard let decoded = reply.answers[0] else {
                throw StoreError(.user, "The decoder returned LLVS_OK and set no bytes. For data of another form, return LLVS_PASS.")
            }
            return decoded
        }
    }
}

/// A callback of the host that returns credentials.
final class HostCredentials: Sendable {
    nonisolated(unsafe) private let fn: llvs_credentials_fn
    private let payload: Payload

    /// Nil without a function; then the payload is freed.
    init?(_ fn: llvs_credentials_fn?, _ payload: Payload) {
        guard let fn else { return nil }
        self.fn = fn; self.payload = payload
    }
    var ask: @Sendable (String, Bool) throws -> Exchange.Credentials {
        { [self] place, again in
            let reply = Reply(questions: 3)
            _ = try withExtendedLifetime(reply) {
                try withBorrowed(Array(place.utf8)) { place in
                    try callHost("Asking for credentials") { fn(payload.pointer, place, again ? 1 : 0, reply.borrowed, $0) }
                }
            }
            let answers = try reply.answers.map { answer in
                try answer.map { bytes in
                    guard let text = String(validating: bytes, as: UTF8.self) else {
                        throw StoreError(.invalidArgument, "The credentials from the callback are not UTF-8. Set them in that encoding.")
                    }
                    return text
                }
            }
            return Exchange.Credentials(user: answers[0], password: answers[1], token: answers[2])
        }
    }
}

/// A callback of the host that stores tokens.
final class HostTokenCallback: Sendable {
    nonisolated(unsafe) private let fn: llvs_tokens_fn
    private let payload: Payload

    /// Nil without a function; then the payload is freed.
    init?(_ fn: llvs_tokens_fn?, _ payload: Payload) {
        guard let fn else { return nil }
        self.fn = fn; self.payload = payload
    }
    private static let pass = llvs_status(LLVS_PASS.rawValue)

    private func ask(_ step: llvs_tokens_step_value, _ tokens: [UInt8]? = nil) throws -> (status: llvs_status, tokens: [UInt8]?) {
        let reply = Reply(questions: 1)
        let status = try withExtendedLifetime(reply) {
            guard let tokens else {
                return try callHost("Asking for tokens", expecting: HostTokenCallback.pass) {
                    fn(payload.pointer, step.rawValue, nil, reply.borrowed, $0)
                }
            }
            return try withBorrowed(tokens) { tokens in
                try callHost("Storing the new token", expecting: HostTokenCallback.pass) {
                    fn(payload.pointer, step.rawValue, tokens, reply.borrowed, $0)
                }
            }
        }
        guard step == LLVS_TOKENS_LOCK || status != HostTokenCallback.pass else {
            throw StoreError(.user, "The callback for tokens returned LLVS_PASS. It may do so only for LLVS_TOKENS_LOCK.")
        }
        return (status, reply.answers[0])
    }
    var tokens: HostTokens {
        HostTokens(
            read: { [self] in try ask(LLVS_TOKENS_READ).tokens ?? [] }, keep: { [self] in _ = try ask(LLVS_TOKENS_KEEP, $0) },
            lock: { [self] in try ask(LLVS_TOKENS_LOCK).status != HostTokenCallback.pass },
            unlock: { [self] in _ = try? ask(LLVS_TOKENS_UNLOCK) })
    }
}

/// The sizes before `recipients`, `tokens`, `key_file`, `device_name` and `no_other_readers` were appended.
private let earlierSizesOfExchangeOptions = [176, 224, 248, 280, 296]

private func layout(_ input: llvs_layout) throws -> Exchange.Layout {
    switch input {
    case LLVS_LAYOUT_AUTOMATIC.rawValue: .automatic
    case LLVS_LAYOUT_INTERCHANGE.rawValue: .interchange
    case LLVS_LAYOUT_PACKED.rawValue: .packed
    case LLVS_LAYOUT_BRIDGED.rawValue: .bridged
    default: throw InputError.constant("layout", input)
    }
}

/// Returns the keys of an encrypted place; nil: it is not encrypted.
private func keys(_ input: llvs_exchange_options) throws -> RemoteKeys? {
    let identities = try elements(input.identities, input.identity_count, "identities", limit: PackRecipients.limit)
    let recipients = try elements(input.recipients, input.recipient_count, "recipients", limit: PackRecipients.limit)
    guard !identities.isEmpty || !recipients.isEmpty || input.passphrase.size != 0 else { return nil }
    return try RemoteKeys(
        passphrase: rawBytes(input.passphrase, "passphrase"), identities: identities.map { try rawBytes($0, "identities", limit: 1_024) },
        recipients: recipients.map { try text($0, "recipients", limit: 128) })
}

/// The options of an exchange, converted for the engine.
struct ExchangeSettings {
    var hostTransport: TransportHandle?
    /// Options of the place that the URL cannot express.
    var place = Exchange.URLOptions()
    /// Options of the exchange itself.
    var exchange = Exchange.Options()

    init(_ input: UnsafePointer<llvs_exchange_options>?) throws {
        guard let input = try optionalStruct(input, "llvs_exchange_options", earlierSizes: earlierSizesOfExchangeOptions) else { return }
        // First, so that the callbacks' payloads are freed even if the rest fails.
        exchange.decode = HostDecoder(input.decode, Payload(input.decode_payload, input.decode_free))?.decode
        place.askForCredentials = HostCredentials(input.credentials, Payload(input.credentials_payload, input.credentials_free))?.ask
        place.tokens = HostTokenCallback(input.tokens, Payload(input.tokens_payload, input.tokens_free))?.tokens
        exchange.reportsUnportableIDs = try flag(input.report_unportable, "report_unportable")
        guard input.reserved == 0 else { throw InputError.reserved("llvs_exchange_options") }
        exchange.hasNoOtherReaders = try flag(input.no_other_readers, "no_other_readers")
        place.durability = try durability(input.durability, "durability")
        place.mustExist = try flag(input.must_exist, "must_exist")
        hostTransport = try optionalHandle(input.host_transport, TransportHandle.self, "host_transport")
        place.user = try optionalText(input.user, "user")
        place.password = try optionalText(input.password, "password")
        place.token = try optionalText(input.token, "token")
        place.tokenFile = try optionalText(input.token_file, "token_file")
        place.certificateAuthorities = try optionalText(input.ca_file, "ca_file")
        place.proxy = try optionalText(input.proxy, "proxy")
        place.keyFile = try optionalText(input.key_file, "key_file")
        place.knownHosts = try optionalText(input.known_hosts, "known_hosts")
        place.deviceName = try optionalText(input.device_name, "device_name")
        place.layout = try layout(input.layout)
        place.keys = try keys(input)
        if input.timeout > 0 { place.timeout = Double(input.timeout) / 1_000 }
        try place.check()
    }
}

@_cdecl("llvs_exchange_open") @implementation
public func llvs_exchange_open(
    _ store: OpaquePointer!, _ url: llvs_bytes, _ options: UnsafePointer<llvs_exchange_options>!, _ exchange: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    exchange?.pointee = nil
    return entry(error) {
        let settings = try ExchangeSettings(options)
        let out = try required(exchange, "exchange")
        let store = try LLVSABI.store(store)
        try store.requireOpen()
        let url = try text(url, "url")
        guard settings.hostTransport == nil || url.isEmpty else {
            throw StoreError(
                .invalidArgument, "Both the URL \"\(ExchangeURL.shown(url))\" and a host_transport are given. Give one of them.")
        }
        let transport =
            try settings.hostTransport?.claim(settings.place)
            ?? ExchangeURL.transport(url, settings.place, apartFrom: store.path)
        out.pointee = try ExchangeHandle(Exchange(store: store, transport: transport, options: settings.exchange), url: url).owned
    }
}

@_cdecl("llvs_exchange_url") @implementation
public func llvs_exchange_url(_ exchange: OpaquePointer!) -> llvs_bytes { peek(exchange, ExchangeHandle.self)?.url ?? noBytes }

@_cdecl("llvs_exchange_close") @implementation
public func llvs_exchange_close(_ exchange: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error, whileShort: true) { try handle(exchange, ExchangeHandle.self, "exchange").exchange.close() }
}

@_cdecl("llvs_exchange_free") @implementation
public func llvs_exchange_free(_ exchange: OpaquePointer!) {
    HostCalls.cleanUp(llvs_shim_frame())
    guard let handle = peek(exchange, ExchangeHandle.self), !handle.isForked else { return }
    handle.exchange.close()
    free(exchange, ExchangeHandle.self, leadsToStore: true)
}

// MARK: Results

/// Behind `llvs_exchange_result`: the problems, and three arrays of ids.
final class ExchangeResultHandle: StructHandle<llvs_exchange_result>, @unchecked Sendable {
    init(retrieved: [VersionID] = [], sent: [VersionID] = [], repaired: [VersionID] = [], problems: [ExchangeProblem]) throws {
        let arena = Arena()
        func array(_ ids: [VersionID]) throws -> UnsafePointer<llvs_bytes> {
            let start = try arena.array(llvs_bytes.self, ids.count)
            for (i, id) in ids.enumerated() { (start + i).initialize(to: try arena.copy(id)) }
            return UnsafePointer(start)
        }
        let items = try Items(problems, in: arena, llvs_problem.init)
        try super.init(
            arena,
            llvs_exchange_result(
                struct_size: UInt32(sizeOf: llvs_exchange_result.self), moved: 0, retrieved: array(retrieved),
                retrieved_count: retrieved.count,
                sent: array(sent), sent_count: sent.count, repaired: array(repaired), repaired_count: repaired.count,
                problems: items.start, problem_count: items.count, from: noBytes, to: noBytes, exchanges: nil, exchange_count: 0))
    }
}

/// The results of all exchanges of a coordinator, joined and individually.
final class ExchangesResultHandle: StructHandle<llvs_exchange_result>, @unchecked Sendable {
    /// Owners of the ids, problems and errors that the joined result borrows.
    private let parts: [ExchangeResultHandle]
    private let errors: [ErrorHandle?]

    init(_ outcome: StoreCoordinator.ExchangeOutcome) throws {
        let arena = Arena(), done = outcome.exchanges
        let parts = try done.map {
            try ExchangeResultHandle(
                retrieved: $0.retrieved.versions, sent: $0.sent.versions, repaired: $0.retrieved.repaired,
                problems: $0.retrieved.problems + $0.sent.problems)
        }
        let errors = done.map { $0.failure.map(ErrorHandle.init(thrown:)) }
        self.parts = parts
        self.errors = errors
        func joined(_ list: (llvs_exchange_result) -> (UnsafePointer<llvs_bytes>?, Int)) throws -> (
            start: UnsafePointer<llvs_bytes>, count: Int
        ) {
            let ids = parts.flatMap { part in
                let (start, count) = list(part.contents.pointee)
                return UnsafeBufferPointer(start: start, count: start == nil ? 0 : count)
            }
            let all = try arena.array(llvs_bytes.self, ids.count)
            for (i, id) in ids.enumerated() { (all + i).initialize(to: id) }
            return (UnsafePointer(all), ids.count)
        }
        let retrieved = try joined { ($0.retrieved, $0.retrieved_count) }, sent = try joined { ($0.sent, $0.sent_count) }
        let repaired = try joined { ($0.repaired, $0.repaired_count) }
        let told = parts.flatMap { part in
            let result = part.contents.pointee
            return UnsafeBufferPointer(start: result.problems, count: result.problem_count).compactMap { $0?.pointee }
        }
        let problems = try Items(told, in: arena) { problem, _ in problem }
        let exchanges = try Items(done.indices, in: arena) { i, arena in
            llvs_exchanged(
                struct_size: UInt32(sizeOf: llvs_exchanged.self), reserved: 0, place: try arena.copy(done[i].place),
                result: UnsafePointer(parts[i].contents), error: errors[i]?.borrowed)
        }
        try super.init(
            arena,
            llvs_exchange_result(
                struct_size: UInt32(sizeOf: llvs_exchange_result.self), moved: outcome.move.isMove ? 1 : 0, retrieved: retrieved.start,
                retrieved_count: retrieved.count, sent: sent.start, sent_count: sent.count, repaired: repaired.start,
                repaired_count: repaired.count,
                problems: problems.start, problem_count: problems.count, from: arena.copy(outcome.move.from),
                to: arena.copy(outcome.move.to),
                exchanges: exchanges.start, exchange_count: exchanges.count))
    }
}

@_cdecl("llvs_exchange_result_free") @implementation
public func llvs_exchange_result_free(_ result: UnsafeMutablePointer<llvs_exchange_result>!) { ExchangeResultHandle.free(result) }

// MARK: Exchanging

@_cdecl("llvs_exchange_retrieve") @implementation
public func llvs_exchange_retrieve(
    _ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    retrieve(exchange, control, verifyKnown: false, result, error)
}

@_cdecl("llvs_exchange_verify") @implementation
public func llvs_exchange_verify(
    _ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    retrieve(exchange, control, verifyKnown: true, result, error)
}

private func retrieve(
    _ exchange: OpaquePointer?, _ control: UnsafePointer<llvs_control>?, verifyKnown: Bool, _ result: StructOut<llvs_exchange_result>?,
    _ error: ErrorOut?
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let found = try LLVSABI.exchange(exchange).retrieve(control: LLVSABI.control(control), verifyKnown: verifyKnown)
        if let result {
            result.pointee = try ExchangeResultHandle(retrieved: found.versions, repaired: found.repaired, problems: found.problems)
                .handedOut
        }
    }
}

@_cdecl("llvs_exchange_send") @implementation
public func llvs_exchange_send(
    _ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let done = try LLVSABI.exchange(exchange).send(control: LLVSABI.control(control))
        if let result { result.pointee = try ExchangeResultHandle(sent: done.versions, problems: done.problems).handedOut }
    }
}

@_cdecl("llvs_exchange_observe") @implementation
public func llvs_exchange_observe(
    _ exchange: OpaquePointer!, _ fn: llvs_notify_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
    _ observer: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    registering(fn, payload, payload_free, observer, error) { fn, gate in
        let exchange = try LLVSABI.exchange(exchange)
        guard let observation = try exchange.observe({ gate.run { fn($0.pointer) } }) else {
            throw StoreError(
                .unsupported, "\(exchange.transport.description) cannot report new versions. Retrieve from time to time.")
        }
        return ObserverHandle(gate) { observation.cancel() }
    }
}

@_cdecl("llvs_exchange_restoration_state") @implementation
public func llvs_exchange_restoration_state(_ exchange: OpaquePointer!, _ state: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!)
    -> llvs_status
{
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

extension llvs_problem {
    package init(_ problem: ExchangeProblem, in arena: Arena) throws {
        self.init(
            struct_size: UInt32(sizeOf: llvs_problem.self), code: problem.error.code.rawValue,
            name: try arena.copy(problem.name), message: try arena.copy(problem.error.message))
    }
}
