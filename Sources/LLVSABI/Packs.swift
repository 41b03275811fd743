import CLLVS
import LLVS

// MARK: Packs that the host carries

@_cdecl("llvs_store_write_pack") @implementation
public func llvs_store_write_pack(
    _ store: OpaquePointer!, _ have: UnsafePointer<llvs_bytes>!, _ have_count: Int, _ write: llvs_write_fn!,
    _ payload: UnsafeMutableRawPointer!, _ control: UnsafePointer<llvs_control>!, _ result: StructOut<llvs_exchange_result>!,
    _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store), have = try versionIDs(have, have_count, "have")
        guard let write else { throw InputError.null("write") }
        let done = try store.writePack(have: have, LLVSABI.control(control)) { piece in
            var borrowed = llvs_bytes(data: piece.baseAddress?.assumingMemoryBound(to: UInt8.self), size: piece.count)
            try callHost("Writing a pack", keeping: packCodes) { write(payload, &borrowed, $0) }
        }
        if let result { result.pointee = try ExchangeResultHandle(sent: done.versions, problems: done.problems).handedOut }
    }
}

@_cdecl("llvs_store_read_pack") @implementation
public func llvs_store_read_pack(
    _ store: OpaquePointer!, _ read: llvs_read_fn!, _ payload: UnsafeMutableRawPointer!, _ control: UnsafePointer<llvs_control>!,
    _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let store = try LLVSABI.store(store)
        guard let read else { throw InputError.null("read") }
        let done = try store.readPack(LLVSABI.control(control)) { buffer in
            try readHost("Reading a pack", keeping: packCodes, read, payload, into: buffer)
        }
        if let result {
            result.pointee = try ExchangeResultHandle(retrieved: done.versions, repaired: done.repaired, problems: done.problems).handedOut
        }
    }
}

/// What callbacks may answer beside success, as it is.
private let packCodes: [StoreError.Code] = [.io, .noSpace, .cancelled]
