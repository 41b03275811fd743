import CLLVS
import LLVSCoordinator

// MARK: Members of encrypted places

/// Behind `llvs_member_list`.
final class MemberList: StructHandle<llvs_member_list>, @unchecked Sendable {
    init(_ members: [RemoteMember]) throws {
        let arena = Arena()
        let items = try Items(members, in: arena) { member, arena in
            llvs_member(
                struct_size: UInt32(sizeOf: llvs_member.self), kind: member.kind.rawValue, name: try arena.copy(member.name),
                recipient: try arena.copy(member.recipient), added: try arena.copy(member.added))
        }
        try super.init(
            arena,
            llvs_member_list(
                struct_size: UInt32(sizeOf: llvs_member_list.self), reserved: 0, count: items.count, items: items.start))
    }
}

@_cdecl("llvs_member_list_free") @implementation
public func llvs_member_list_free(_ list: UnsafeMutablePointer<llvs_member_list>!) { MemberList.free(list) }

@_cdecl("llvs_exchange_members") @implementation
public func llvs_exchange_members(
    _ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ members: StructOut<llvs_member_list>!, _ error: ErrorOut!
) -> llvs_status {
    members?.pointee = nil
    return entry(error) {
        let out = try required(members, "members")
        out.pointee = try MemberList(LLVSABI.exchange(exchange).members(control: LLVSABI.control(control))).handedOut
    }
}

@_cdecl("llvs_exchange_add_member") @implementation
public func llvs_exchange_add_member(
    _ exchange: OpaquePointer!, _ recipient: llvs_bytes, _ name: llvs_bytes, _ kind: llvs_member_kind,
    _ control: UnsafePointer<llvs_control>!, _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        guard let kind = RemoteMember.Kind(rawValue: kind) else { throw InputError.constant("kind", kind) }
        try LLVSABI.exchange(exchange).addMember(
            text(recipient, "recipient", limit: 128), name: text(name, "name", limit: 4_096), kind: kind, control: LLVSABI.control(control))
    }
}

@_cdecl("llvs_exchange_remove_member") @implementation
public func llvs_exchange_remove_member(
    _ exchange: OpaquePointer!, _ recipient: llvs_bytes, _ control: UnsafePointer<llvs_control>!, _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        try LLVSABI.exchange(exchange).removeMember(text(recipient, "recipient", limit: 128), control: LLVSABI.control(control))
    }
}

@_cdecl("llvs_exchange_change_passphrase") @implementation
public func llvs_exchange_change_passphrase(
    _ exchange: OpaquePointer!, _ passphrase: llvs_bytes, _ leaked: llvs_bool, _ control: UnsafePointer<llvs_control>!, _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        try LLVSABI.exchange(exchange).changePassphrase(
            to: rawBytes(passphrase, "passphrase"), hasLeaked: flag(leaked, "leaked"), control: LLVSABI.control(control))
    }
}

@_cdecl("llvs_exchange_pairing") @implementation
public func llvs_exchange_pairing(
    _ exchange: OpaquePointer!, _ read_anew: llvs_bool, _ control: UnsafePointer<llvs_control>!,
    _ pairing: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!
) -> llvs_status {
    pairing?.pointee = noBuffer
    return entry(error) {
        let out = try required(pairing, "pairing"), isReadAnew = try flag(read_anew, "read_anew")
        let found = try LLVSABI.exchange(exchange).pairing(isReadAnew: isReadAnew, control: LLVSABI.control(control))
        out.pointee = try found.withUnsafeBytes(ownedBuffer)
    }
}

@_cdecl("llvs_exchange_join_keys") @implementation
public func llvs_exchange_join_keys(
    _ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ error: ErrorOut!
) -> llvs_status {
    entry(error) { try LLVSABI.exchange(exchange).joinKeys(control: LLVSABI.control(control)) }
}

@_cdecl("llvs_exchange_rekey") @implementation
public func llvs_exchange_rekey(
    _ exchange: OpaquePointer!, _ renew: llvs_bool, _ control: UnsafePointer<llvs_control>!, _ left: UnsafeMutablePointer<UInt64>!,
    _ error: ErrorOut!
) -> llvs_status {
    left?.pointee = 0
    return entry(error) {
        let found = try LLVSABI.exchange(exchange).rekey(renewing: flag(renew, "renew"), control: LLVSABI.control(control))
        left?.pointee = UInt64(clamping: found)
    }
}

@_cdecl("llvs_exchange_retire") @implementation
public func llvs_exchange_retire(
    _ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let done = try LLVSABI.exchange(exchange).retire(control: LLVSABI.control(control))
        if let result { result.pointee = try ExchangeResultHandle(sent: done.versions, problems: done.problems).handedOut }
    }
}

@_cdecl("llvs_exchange_enable_differences") @implementation
public func llvs_exchange_enable_differences(
    _ exchange: OpaquePointer!, _ control: UnsafePointer<llvs_control>!, _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let done = try LLVSABI.exchange(exchange).enableDifferences(control: LLVSABI.control(control))
        if let result { result.pointee = try ExchangeResultHandle(sent: done.versions, problems: done.problems).handedOut }
    }
}

@_cdecl("llvs_identity_create") @implementation
public func llvs_identity_create(
    _ identity: UnsafeMutablePointer<llvs_buffer>!, _ recipient: UnsafeMutablePointer<llvs_buffer>!, _ error: ErrorOut!
) -> llvs_status {
    identity?.pointee = noBuffer
    recipient?.pointee = noBuffer
    return entry(error) {
        let out = try required(identity, "identity"), half = try required(recipient, "recipient")
        let made = try RemoteIdentity()
        let other = try Array(made.recipient.utf8).withUnsafeBytes(ownedBuffer)
        half.pointee = other
        out.pointee = try made.withSecret(ownedBuffer)
    }
}
