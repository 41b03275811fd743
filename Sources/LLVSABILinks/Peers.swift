import CLLVS
import CLLVSShims
import LLVSABI
import LLVSLive

// MARK: Direct connections

/// Behind `llvs_peer`.
final class Peer: Sendable {
    let session: PeerSession
    private let carried: Guarded<PeerLink?>
    init(_ session: PeerSession, _ link: PeerLink? = nil) { self.session = session; carried = Guarded(link) }
    /// The link that carries the bytes, if the library does.
    var link: PeerLink? { carried.withLock { $0 } }
    /// Lets the library carry the bytes over a descriptor, which it owns from then on, even if this fails.
    func carry(_ descriptor: Int32) throws {
        let made = try PeerLink(session, over: descriptor)
        carried.withLock { $0 = made }
    }
}

typealias PeerHandle = ObjectHandle<Peer>

func peer(_ pointer: OpaquePointer?) throws -> Peer { try handle(pointer, PeerHandle.self, "peer").object }
func session(_ pointer: OpaquePointer?) throws -> PeerSession { try peer(pointer).session }
/// Returns the session of a connection that the host carries.
func hosts(_ pointer: OpaquePointer?) throws -> PeerSession {
    let peer = try peer(pointer)
    guard peer.link == nil else {
        throw StoreError(.invalidArgument, "The library carries the bytes of this connection. Call llvs_peer_wait to wait for it.")
    }
    return peer.session
}

private func stateHandle(_ state: PeerSession.Status, _ problems: [ExchangeProblem]) throws -> StructHandle<llvs_peer_state> {
    let arena = Arena(), items = try Items(problems, in: arena, llvs_problem.init)
    return try StructHandle.make(
        arena,
        llvs_peer_state(
            struct_size: UInt32(sizeOf: llvs_peer_state.self), phase: UInt32(bitPattern: state.phase.rawValue),
            device: try arena.copy(state.device), key: try arena.copy(state.key), sent: UInt64(state.sent),
            received: UInt64(state.received), problems: items.start, problem_count: items.count,
            pairing: try state.pairing.map(arena.copy) ?? noBytes, digits: state.digits.isEmpty ? noBytes : try arena.copy(state.digits)
        ))
}

@_cdecl("llvs_peer_state_free") @implementation
public func llvs_peer_state_free(_ state: UnsafeMutablePointer<llvs_peer_state>!) { StructHandle<llvs_peer_state>.free(state) }

@_cdecl("llvs_pairing_create") @implementation
public func llvs_pairing_create(_ pairing: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    pairing?.pointee = llvs_buffer(data: nil, size: 0)
    return entry(error) {
        let out = try required(pairing, "pairing")
        out.pointee = try Pairing.random().withUnsafeBytes { try ownedBuffer($0) }
    }
}

@_cdecl("llvs_invitation_create") @implementation
public func llvs_invitation_create(_ code: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    code?.pointee = llvs_buffer(data: nil, size: 0)
    return entry(error) {
        let out = try required(code, "code")
        out.pointee = try Array(Invitation.random().utf8).withUnsafeBytes { try ownedBuffer($0) }
    }
}

@_cdecl("llvs_pairing_matches") @implementation
public func llvs_pairing_matches(
    _ pairing: llvs_bytes, _ beginning: llvs_bytes, _ matches: UnsafeMutablePointer<llvs_bool>!, _ error: ErrorOut!
) -> llvs_status {
    matches?.pointee = 0
    return entry(error) {
        let out = try required(matches, "matches"), beginning = try rawBytes(beginning, "beginning")
        guard pairing.size > 0 else { return out.pointee = try Pairing.isToCompare(beginning: beginning) ? 1 : 0 }
        let isInvitation = pairing.size > 0 && pairing.size < Pairing.size
        out.pointee =
            try isInvitation
            ? Invitation(text(pairing, "pairing")).matches(beginning: beginning) ? 1 : 0
            : Pairing(rawBytes(pairing, "pairing")).matches(beginning: beginning) ? 1 : 0
    }
}

@_cdecl("llvs_device_key") @implementation
public func llvs_device_key(_ identity: llvs_bytes, _ key: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    key?.pointee = llvs_buffer(data: nil, size: 0)
    return entry(error) {
        let out = try required(key, "key")
        out.pointee = try PeerSession.publicKey(of: array(identity, "identity")).withUnsafeBytes { try ownedBuffer($0) }
    }
}

/// A callback of the host that limits what is stored.
final class HostQuota: Sendable {
    nonisolated(unsafe) private let fn: llvs_quota_fn
    private let payload: Payload

    /// Nil without a function; then the payload is freed.
    init?(_ fn: llvs_quota_fn?, _ payload: Payload) {
        guard let fn else { return nil }
        self.fn = fn; self.payload = payload
    }
    var ask: @Sendable (Int) throws -> Void {
        { [self] bytes in
            let full = LLVS_ERROR_NO_SPACE.rawValue
            let status = try callHost("Asking for room", expecting: full) { fn(payload.pointer, UInt64(max(0, bytes)), $0) }
            guard status != full else {
                throw StoreError(.noSpace, "The host has no room for \(bytes) more bytes of the other side. Make room, and connect again.")
            }
        }
    }
}

/// Converts the options of a peer.
func peerOptions(_ input: llvs_peer_options, _ quota: (@Sendable (Int) throws -> Void)?) throws -> PeerSession.Options {
    let comparesDigits = try flag(input.compares_digits, "llvs_peer_options.compares_digits")
    let invitation = try optionalText(input.invitation, "llvs_peer_options.invitation").map(Invitation.init)
    var options: PeerSession.Options
    if let exchange = input.exchange {
        guard input.pairing.size == 0 else {
            throw StoreError(.invalidArgument, "A pairing and an exchange to derive one from are given. Give one of them.")
        }
        options = PeerSession.Options(members: try LLVSABI.exchange(exchange).memberPairing)
        options.invitation = invitation
    } else if let invitation, input.pairing.size == 0 {
        options = PeerSession.Options(invitation: invitation)
    } else if comparesDigits, input.pairing.size == 0 {
        options = PeerSession.Options()
    } else {
        options = PeerSession.Options(pairing: try Pairing(rawBytes(input.pairing, "llvs_peer_options.pairing")))
        options.invitation = invitation
    }
    options.comparesDigits = comparesDigits
    options.quota = quota
    options.isInitiator = try flag(input.initiator, "llvs_peer_options.initiator")
    if input.identity.size > 0 { options.identity = try array(input.identity, "llvs_peer_options.identity", limit: 1_024) }
    options.device = try optionalText(input.device, "llvs_peer_options.device") ?? ""
    options.place = try optionalText(input.place, "llvs_peer_options.place") ?? ""
    options.outer = try array(input.outer, "llvs_peer_options.outer", limit: 255)
    guard options.outer.isEmpty || options.outer.count >= 16 else {
        throw StoreError(.invalidArgument, "The output of a TLS exporter has 16 bytes or more. Give all of it.")
    }
    options.accepted = try elements(input.accepted, input.accepted_count, "llvs_peer_options.accepted").map {
        try array($0, "llvs_peer_options.accepted", limit: 1_024)
    }
    return options
}

@_cdecl("llvs_peer_open") @implementation
public func llvs_peer_open(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_peer_options>!, _ peer: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    peer?.pointee = nil
    return entry(error) {
        let input = try requiredStruct(options, "llvs_peer_options", earlierSizes: earlierSizesOfPeerOptions)
        // First, so that the callback's payload is freed even if the rest fails.
        let quota = HostQuota(input.quota, Payload(input.quota_payload, input.quota_free))?.ask
        let out = try required(peer, "peer"), store = try LLVSABI.store(store)
        let options = try peerOptions(input, quota)
        out.pointee = PeerHandle(Peer(try PeerSession(store, options: options)), store: store).owned
    }
}

@_cdecl("llvs_peer_receive") @implementation
public func llvs_peer_receive(_ peer: OpaquePointer!, _ data: llvs_bytes, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try hosts(peer).receive(rawBytes(data, "data")) }
}

@_cdecl("llvs_peer_receive_end") @implementation
public func llvs_peer_receive_end(_ peer: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try hosts(peer).receiveEnd() }
}

@_cdecl("llvs_peer_send") @implementation
public func llvs_peer_send(
    _ peer: OpaquePointer!, _ buffer: UnsafeMutableRawPointer!, _ capacity: Int, _ size: UnsafeMutablePointer<Int>!, _ error: ErrorOut!
) -> llvs_status {
    size?.pointee = 0
    return entry(error) {
        let out = try required(size, "size"), session = try hosts(peer)
        guard buffer != nil || capacity == 0 else { throw InputError.nullWithSize("buffer", capacity) }
        guard capacity >= 0 else { throw InputError.tooLarge("capacity", capacity, Int.max) }
        out.pointee = try session.send(into: UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
    }
}

@_cdecl("llvs_peer_store_changed") @implementation
public func llvs_peer_store_changed(_ peer: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error) {
        let peer = try LLVSABILinks.peer(peer)
        if let link = peer.link { link.signal() } else { try peer.session.storeChanged() }
    }
}

@_cdecl("llvs_peer_tick") @implementation
public func llvs_peer_tick(_ peer: OpaquePointer!, _ seconds: Double, _ error: ErrorOut!) -> llvs_status {
    entry(error) {
        let session = try hosts(peer)
        guard seconds.isFinite else { throw StoreError(.invalidArgument, "A time is not finite. Give seconds of a clock.") }
        try session.tick(seconds)
    }
}

@_cdecl("llvs_peer_confirm") @implementation
public func llvs_peer_confirm(_ peer: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error) {
        let peer = try LLVSABILinks.peer(peer)
        try peer.link?.confirm() ?? peer.session.confirm()
    }
}

@_cdecl("llvs_peer_set_background") @implementation
public func llvs_peer_set_background(_ peer: OpaquePointer!, _ is_in_background: llvs_bool, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try session(peer).setBackground(flag(is_in_background, "is_in_background")) }
}

@_cdecl("llvs_peer_close") @implementation
public func llvs_peer_close(_ peer: OpaquePointer!, _ error: ErrorOut!) -> llvs_status {
    entry(error) {
        let peer = try LLVSABILinks.peer(peer)
        if let link = peer.link { link.beginClosing() } else { try peer.session.close() }
    }
}

@_cdecl("llvs_peer_get_state") @implementation
public func llvs_peer_get_state(_ peer: OpaquePointer!, _ state: StructOut<llvs_peer_state>!, _ error: ErrorOut!) -> llvs_status {
    state?.pointee = nil
    return entry(error) {
        let out = try required(state, "state"), session = try LLVSABILinks.session(peer)
        out.pointee = try stateHandle(session.state, session.takeProblems()).handedOut
    }
}

@_cdecl("llvs_peer_free") @implementation
public func llvs_peer_free(_ peer: OpaquePointer!) {
    HostCalls.cleanUp(llvs_shim_frame())
    if let handle = peek(peer, PeerHandle.self), !handle.isForked { handle.object.link?.stop() }
    free(peer, PeerHandle.self, leadsToStore: true)
}

// MARK: Devices on the local network

@_cdecl("llvs_nearby_observe") @implementation
public func llvs_nearby_observe(
    _ name: llvs_bytes, _ port: UInt32, _ fn: llvs_nearby_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
    _ observer: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    registering(fn, payload, payload_free, observer, error) { fn, gate in
        guard let port = UInt16(exactly: port) else { throw StoreError(.invalidArgument, "A port is 1 to 65535, or 0 for none.") }
        let observation = try Nearby.observe(name: optionalText(name, "name") ?? "", port: port == 0 ? nil : port) { event in
            let (kind, name, address, port): (llvs_nearby_event_value, String, String, UInt16) =
                switch event {
                case .found(let name, let address, let port): (LLVS_NEARBY_FOUND, name, address, port)
                case .gone(let name, let address, let port): (LLVS_NEARBY_GONE, name, address, port)
                case .named(let name): (LLVS_NEARBY_NAMED, name, "", 0)
                }
            gate.run { payload in
                withBorrowed(Array(name.utf8)) { name in
                    withBorrowed(Array(address.utf8)) { fn(payload.pointer, kind.rawValue, name, $0, UInt32(port)) }
                }
            }
        }
        return ObserverHandle(gate) { observation.cancel() }
    }
}
