import CLLVS
import CLLVSShims
import LLVSABI
import LLVSLive

// MARK: Direct connections that the library carries

@_cdecl("llvs_peer_connect") @implementation
public func llvs_peer_connect(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_peer_options>!, _ address: llvs_bytes, _ seconds: Double, _ peer: HandleOut!,
    _ error: ErrorOut!
) -> llvs_status {
    peer?.pointee = nil
    return entry(error) {
        let input = try requiredStruct(options, "llvs_peer_options", earlierSizes: earlierSizesOfPeerOptions)
        let quota = HostQuota(input.quota, Payload(input.quota_payload, input.quota_free))?.ask
        let out = try required(peer, "peer"), store = try LLVSABI.store(store), seconds = try patience(seconds)
        let link = try PeerLink(store, to: text(address, "address"), options: peerOptions(input, quota), within: seconds)
        out.pointee = PeerHandle(Peer(link.session, link), store: store).owned
    }
}

/// Checks a number of seconds to wait.
private func patience(_ seconds: Double) throws -> Double {
    guard seconds.isFinite, seconds >= 0 else { throw StoreError(.invalidArgument, "Seconds to wait are not finite, or negative.") }
    return seconds
}

@_cdecl("llvs_peer_carry") @implementation
public func llvs_peer_carry(_ peer: OpaquePointer!, _ descriptor: Int32, _ error: ErrorOut!) -> llvs_status {
    entry(error) {
        do { _ = try hosts(peer) } catch {
            if descriptor > 2 { close(descriptor) }
            throw error
        }
        try LLVSABILinks.peer(peer).carry(descriptor)
    }
}

@_cdecl("llvs_peer_wait") @implementation
public func llvs_peer_wait(_ peer: OpaquePointer!, _ seconds: Double, _ in_step: UnsafeMutablePointer<llvs_bool>!, _ error: ErrorOut!)
    -> llvs_status
{
    in_step?.pointee = 0
    return entry(error) {
        let out = try required(in_step, "in_step"), peer = try LLVSABILinks.peer(peer), seconds = try patience(seconds)
        guard let link = peer.link else {
            throw StoreError(.invalidArgument, "The host carries the bytes of this connection, so this call cannot wait for it.")
        }
        out.pointee = try link.wait(within: seconds) ? 1 : 0
    }
}

typealias ListenerHandle = ObjectHandle<PeerListener>

private func listener(_ pointer: OpaquePointer?) throws -> PeerListener { try handle(pointer, ListenerHandle.self, "listener").object }

@_cdecl("llvs_listener_open") @implementation
public func llvs_listener_open(
    _ address: llvs_bytes, _ options: UnsafePointer<llvs_peer_options>!, _ listener: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    listener?.pointee = nil
    return entry(error) {
        var input = try requiredStruct(options, "llvs_peer_options", earlierSizes: earlierSizesOfPeerOptions)
        let quota = HostQuota(input.quota, Payload(input.quota_payload, input.quota_free))?.ask
        let out = try required(listener, "listener")
        guard input.pairing.size == 0, input.invitation.size == 0, input.compares_digits == 0, input.initiator == 0, input.exchange == nil,
            input.place.size == 0, input.outer.size == 0
        else {
            throw StoreError(.invalidArgument, "A listener gets pairings with the stores that it offers. Leave the other fields empty.")
        }
        input.compares_digits = 1 // no device has a pairing yet
        out.pointee = ListenerHandle(try PeerListener(at: text(address, "address"), options: peerOptions(input, quota))).owned
    }
}

@_cdecl("llvs_listener_offer") @implementation
public func llvs_listener_offer(_ listener: OpaquePointer!, _ store: OpaquePointer!, _ pairing: llvs_bytes, _ error: ErrorOut!)
    -> llvs_status
{
    entry(error) { try LLVSABILinks.listener(listener).offer(LLVSABI.store(store), Pairing(rawBytes(pairing, "pairing"))) }
}

@_cdecl("llvs_listener_offer_members") @implementation
public func llvs_listener_offer_members(_ listener: OpaquePointer!, _ store: OpaquePointer!, _ exchange: OpaquePointer!, _ error: ErrorOut!)
    -> llvs_status
{
    entry(error) { try LLVSABILinks.listener(listener).offer(LLVSABI.store(store), to: LLVSABI.exchange(exchange).memberPairing) }
}

@_cdecl("llvs_listener_address") @implementation
public func llvs_listener_address(_ listener: OpaquePointer!, _ address: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!)
    -> llvs_status
{
    address?.pointee = llvs_buffer(data: nil, size: 0)
    return entry(error) {
        let out = try required(address, "address")
        out.pointee = try Array(LLVSABILinks.listener(listener).address.utf8).withUnsafeBytes { try ownedBuffer($0) }
    }
}

@_cdecl("llvs_listener_invite") @implementation
public func llvs_listener_invite(
    _ listener: OpaquePointer!, _ pairing: llvs_bytes, _ seconds: Double, _ code: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!
) -> llvs_status {
    code?.pointee = llvs_buffer(data: nil, size: 0)
    return entry(error) {
        let out = try required(code, "code"), seconds = try patience(seconds)
        let made = try LLVSABILinks.listener(listener).invite(Pairing(rawBytes(pairing, "pairing")), for: seconds)
        out.pointee = try Array(made.utf8).withUnsafeBytes { try ownedBuffer($0) }
    }
}

@_cdecl("llvs_listener_compare") @implementation
public func llvs_listener_compare(_ listener: OpaquePointer!, _ pairing: llvs_bytes, _ seconds: Double, _ error: ErrorOut!) -> llvs_status {
    entry(error) { try LLVSABILinks.listener(listener).compare(Pairing(rawBytes(pairing, "pairing")), for: patience(seconds)) }
}

@_cdecl("llvs_listener_accept") @implementation
public func llvs_listener_accept(_ listener: OpaquePointer!, _ seconds: Double, _ peer: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    peer?.pointee = nil
    return entry(error) {
        let out = try required(peer, "peer"), listener = try LLVSABILinks.listener(listener)
        guard let link = try listener.accept(within: patience(seconds)) else { return }
        out.pointee = PeerHandle(Peer(link.session, link), store: link.store).owned
    }
}

@_cdecl("llvs_listener_free") @implementation
public func llvs_listener_free(_ listener: OpaquePointer!) {
    HostCalls.cleanUp(llvs_shim_frame())
    if let handle = peek(listener, ListenerHandle.self), !handle.isForked { handle.object.close() }
    free(listener, ListenerHandle.self, leadsToStore: true)
}
