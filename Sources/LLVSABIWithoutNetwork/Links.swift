import CLLVS
import CLLVSShims
import LLVSABI
import LLVSCore

// Direct connections, listeners and devices nearby in a library that was built without them: each call that can fail is UNSUPPORTED.
// No handle of them exists, so there is nothing to free.

private func refused(_ error: ErrorOut?, _ release: () throws -> Void = {}) -> llvs_status {
    entry(error) {
        try release()
        throw StoreError(
            .unsupported,
            "This library was built without direct connections (LLVS_NETWORK=OFF). Use one that was built with them, or exchange "
                + "versions over a folder or a transport of the host.")
    }
}

/// Releases the payload in the options of a peer, which the call owns.
private func release(_ options: UnsafePointer<llvs_peer_options>?) throws {
    let input = try requiredStruct(options, "llvs_peer_options", earlierSizes: earlierSizesOfPeerOptions)
    _ = Payload(input.quota_payload, input.quota_free)
}

@_cdecl("llvs_peer_state_free") @implementation
public func llvs_peer_state_free(_ state: UnsafeMutablePointer<llvs_peer_state>!) {}

@_cdecl("llvs_pairing_create") @implementation
public func llvs_pairing_create(_ pairing: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    pairing?.pointee = noBuffer
    return refused(error)
}

@_cdecl("llvs_invitation_create") @implementation
public func llvs_invitation_create(_ code: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    code?.pointee = noBuffer
    return refused(error)
}

@_cdecl("llvs_pairing_matches") @implementation
public func llvs_pairing_matches(
    _ pairing: llvs_bytes, _ beginning: llvs_bytes, _ matches: UnsafeMutablePointer<llvs_bool>!, _ error: ErrorOut!
) -> llvs_status {
    matches?.pointee = 0
    return refused(error)
}

@_cdecl("llvs_device_key") @implementation
public func llvs_device_key(_ identity: llvs_bytes, _ key: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!) -> llvs_status {
    key?.pointee = noBuffer
    return refused(error)
}

@_cdecl("llvs_peer_open") @implementation
public func llvs_peer_open(_ store: OpaquePointer!, _ options: UnsafePointer<llvs_peer_options>!, _ peer: HandleOut!, _ error: ErrorOut!)
    -> llvs_status
{
    peer?.pointee = nil
    return refused(error) { try release(options) }
}

@_cdecl("llvs_peer_receive") @implementation
public func llvs_peer_receive(_ peer: OpaquePointer!, _ data: llvs_bytes, _ error: ErrorOut!) -> llvs_status { refused(error) }

@_cdecl("llvs_peer_receive_end") @implementation
public func llvs_peer_receive_end(_ peer: OpaquePointer!, _ error: ErrorOut!) -> llvs_status { refused(error) }

@_cdecl("llvs_peer_send") @implementation
public func llvs_peer_send(
    _ peer: OpaquePointer!, _ buffer: UnsafeMutableRawPointer!, _ capacity: Int, _ size: UnsafeMutablePointer<Int>!, _ error: ErrorOut!
) -> llvs_status {
    size?.pointee = 0
    return refused(error)
}

@_cdecl("llvs_peer_store_changed") @implementation
public func llvs_peer_store_changed(_ peer: OpaquePointer!, _ error: ErrorOut!) -> llvs_status { refused(error) }

@_cdecl("llvs_peer_tick") @implementation
public func llvs_peer_tick(_ peer: OpaquePointer!, _ seconds: Double, _ error: ErrorOut!) -> llvs_status { refused(error) }

@_cdecl("llvs_peer_confirm") @implementation
public func llvs_peer_confirm(_ peer: OpaquePointer!, _ error: ErrorOut!) -> llvs_status { refused(error) }

@_cdecl("llvs_peer_set_background") @implementation
public func llvs_peer_set_background(_ peer: OpaquePointer!, _ is_in_background: llvs_bool, _ error: ErrorOut!) -> llvs_status {
    refused(error)
}

@_cdecl("llvs_peer_close") @implementation
public func llvs_peer_close(_ peer: OpaquePointer!, _ error: ErrorOut!) -> llvs_status { refused(error) }

@_cdecl("llvs_peer_get_state") @implementation
public func llvs_peer_get_state(_ peer: OpaquePointer!, _ state: StructOut<llvs_peer_state>!, _ error: ErrorOut!) -> llvs_status {
    state?.pointee = nil
    return refused(error)
}

@_cdecl("llvs_peer_free") @implementation
public func llvs_peer_free(_ peer: OpaquePointer!) {}

@_cdecl("llvs_nearby_observe") @implementation
public func llvs_nearby_observe(
    _ name: llvs_bytes, _ port: UInt32, _ fn: llvs_nearby_fn!, _ payload: UnsafeMutableRawPointer!, _ payload_free: llvs_free_fn!,
    _ observer: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    observer?.pointee = nil
    return refused(error) { _ = Payload(payload, payload_free) }
}

@_cdecl("llvs_peer_connect") @implementation
public func llvs_peer_connect(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_peer_options>!, _ address: llvs_bytes, _ seconds: Double, _ peer: HandleOut!,
    _ error: ErrorOut!
) -> llvs_status {
    peer?.pointee = nil
    return refused(error) { try release(options) }
}

@_cdecl("llvs_peer_carry") @implementation
public func llvs_peer_carry(_ peer: OpaquePointer!, _ descriptor: Int32, _ error: ErrorOut!) -> llvs_status {
    refused(error) { if descriptor > 2 { close(descriptor) } }
}

@_cdecl("llvs_peer_wait") @implementation
public func llvs_peer_wait(_ peer: OpaquePointer!, _ seconds: Double, _ in_step: UnsafeMutablePointer<llvs_bool>!, _ error: ErrorOut!)
    -> llvs_status
{
    in_step?.pointee = 0
    return refused(error)
}

@_cdecl("llvs_listener_open") @implementation
public func llvs_listener_open(
    _ address: llvs_bytes, _ options: UnsafePointer<llvs_peer_options>!, _ listener: HandleOut!, _ error: ErrorOut!
) -> llvs_status {
    listener?.pointee = nil
    return refused(error) { try release(options) }
}

@_cdecl("llvs_listener_offer") @implementation
public func llvs_listener_offer(_ listener: OpaquePointer!, _ store: OpaquePointer!, _ pairing: llvs_bytes, _ error: ErrorOut!)
    -> llvs_status
{ refused(error) }

@_cdecl("llvs_listener_offer_members") @implementation
public func llvs_listener_offer_members(_ listener: OpaquePointer!, _ store: OpaquePointer!, _ exchange: OpaquePointer!, _ error: ErrorOut!)
    -> llvs_status
{ refused(error) }

@_cdecl("llvs_listener_address") @implementation
public func llvs_listener_address(_ listener: OpaquePointer!, _ address: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!)
    -> llvs_status
{
    address?.pointee = noBuffer
    return refused(error)
}

@_cdecl("llvs_listener_invite") @implementation
public func llvs_listener_invite(
    _ listener: OpaquePointer!, _ pairing: llvs_bytes, _ seconds: Double, _ code: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!
) -> llvs_status {
    code?.pointee = noBuffer
    return refused(error)
}

@_cdecl("llvs_listener_compare") @implementation
public func llvs_listener_compare(_ listener: OpaquePointer!, _ pairing: llvs_bytes, _ seconds: Double, _ error: ErrorOut!) -> llvs_status {
    refused(error)
}

@_cdecl("llvs_listener_accept") @implementation
public func llvs_listener_accept(_ listener: OpaquePointer!, _ seconds: Double, _ peer: HandleOut!, _ error: ErrorOut!) -> llvs_status {
    peer?.pointee = nil
    return refused(error)
}

@_cdecl("llvs_listener_free") @implementation
public func llvs_listener_free(_ listener: OpaquePointer!) {}
