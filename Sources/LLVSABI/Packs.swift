import CLLVS
import LLVSCoordinator

// MARK: Packs that the host carries

@_cdecl("llvs_store_write_pack") @implementation
public func llvs_store_write_pack(
    _ store: OpaquePointer!, _ have: UnsafePointer<llvs_bytes>!, _ have_count: Int, _ options: UnsafePointer<llvs_pack_options>!,
    _ write: llvs_write_fn!, _ payload: UnsafeMutableRawPointer!, _ control: UnsafePointer<llvs_control>!,
    _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store), have = try versionIDs(have, have_count, "have")
        guard let write else { throw InputError.null("write") }
        let done = try store.writePack(have: have, for: recipients(options), control: LLVSABI.control(control)) { piece in
            var borrowed = llvs_bytes(data: piece.baseAddress?.assumingMemoryBound(to: UInt8.self), size: piece.count)
            try callHost("Writing a pack", keeping: packCodes) { write(payload, &borrowed, $0) }
        }
        if let result { result.pointee = try ExchangeResultHandle(sent: done.versions, problems: done.problems).handedOut }
    }
}

@_cdecl("llvs_store_read_pack") @implementation
public func llvs_store_read_pack(
    _ store: OpaquePointer!, _ options: UnsafePointer<llvs_pack_options>!, _ read: llvs_read_fn!, _ payload: UnsafeMutableRawPointer!,
    _ control: UnsafePointer<llvs_control>!, _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store)
        guard let read else { throw InputError.null("read") }
        let done = try store.readPack(by: unlocking(options), control: LLVSABI.control(control)) { buffer in
            try readHost("Reading a pack", keeping: packCodes, read, payload, into: buffer)
        }
        if let result {
            result.pointee = try ExchangeResultHandle(retrieved: done.versions, repaired: done.repaired, problems: done.problems).handedOut
        }
    }
}

/// Returns the recipients of a stream; nil: it is not encrypted.
private func recipients(_ input: UnsafePointer<llvs_pack_options>?) throws -> PackRecipients? {
    guard let input = try packOptions(input) else { return nil }
    let recipients = try elements(input.recipients, input.recipient_count, "llvs_pack_options.recipients", limit: PackRecipients.limit)
    guard input.identity_count == 0 else {
        throw StoreError(.invalidArgument, "A pack is written for recipients, not for identities, which open it. Give recipients: age1...")
    }
    guard recipients.isEmpty || input.passphrase.size == 0 else {
        throw StoreError(.invalidArgument, "A pack is encrypted for recipients or with a passphrase. Give one of the two.")
    }
    if input.passphrase.size != 0 { return try PackRecipients(passphrase: rawBytes(input.passphrase, "llvs_pack_options.passphrase")) }
    return recipients.isEmpty ? nil : try PackRecipients(recipients.map { try text($0, "llvs_pack_options.recipients", limit: 128) })
}

/// Returns the keys that open a stream; nil: it is not encrypted.
private func unlocking(_ input: UnsafePointer<llvs_pack_options>?) throws -> PackUnlocking? {
    guard let input = try packOptions(input) else { return nil }
    let identities = try elements(input.identities, input.identity_count, "llvs_pack_options.identities", limit: PackRecipients.limit)
    guard input.recipient_count == 0 else {
        throw StoreError(.invalidArgument, "A pack is opened by identities, not by recipients. Give an identity: AGE-SECRET-KEY-1...")
    }
    guard identities.isEmpty || input.passphrase.size == 0 else {
        throw StoreError(.invalidArgument, "A pack is opened by identities or with a passphrase. Give one of the two.")
    }
    if input.passphrase.size != 0 { return try PackUnlocking(passphrase: rawBytes(input.passphrase, "llvs_pack_options.passphrase")) }
    return identities.isEmpty ? nil : try PackUnlocking(identities.map { try rawBytes($0, "llvs_pack_options.identities", limit: 1_024) })
}

private func packOptions(_ input: UnsafePointer<llvs_pack_options>?) throws -> llvs_pack_options? {
    guard let input = try optionalStruct(input, "llvs_pack_options") else { return nil }
    guard input.reserved == 0 else { throw InputError.reserved("llvs_pack_options") }
    return input
}

/// Codes of callbacks, besides success, that are passed on unchanged.
private let packCodes: [StoreError.Code] = [.io, .noSpace, .cancelled]
