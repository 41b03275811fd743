import CLLVS
import LLVSCoordinator

// MARK: The knowledge about a place in packs

/// Behind `llvs_remote`.
final class RemoteStatusHandle: StructHandle<llvs_remote>, @unchecked Sendable {
    init(_ status: RemoteStatus) throws {
        let arena = Arena()
        try super.init(arena, llvs_remote(status, in: arena))
    }
}

func since1970(_ time: Double?) -> Double { time.map { $0 + Version.secondsFrom1970To2001 } ?? 0 }

extension llvs_remote {
    init(_ status: RemoteStatus, in arena: Arena) throws {
        let writers = try Items(status.writers, in: arena) { writer, arena in
            llvs_remote_writer(
                struct_size: UInt32(sizeOf: llvs_remote_writer.self), number: writer.number, id: try arena.copy(writer.id),
                last_seen: since1970(writer.lastSeen), here: writer.isHere ? 1 : 0, reserved: 0,
                name: try arena.copy(writer.name ?? ""))
        }
        self = llvs_remote(
            struct_size: UInt32(sizeOf: llvs_remote.self),
            layout: status.layout == .bridged ? LLVS_LAYOUT_BRIDGED.rawValue : LLVS_LAYOUT_PACKED.rawValue, epoch: status.epoch,
            reserved: 0, fingerprint: try arena.copy(status.fingerprint), packs: status.packs, bytes: status.bytes,
            listed: since1970(status.listed), writers: writers.start, writer_count: writers.count)
    }
}

@_cdecl("llvs_remote_free") @implementation
public func llvs_remote_free(_ remote: UnsafeMutablePointer<llvs_remote>!) { RemoteStatusHandle.free(remote) }

@_cdecl("llvs_exchange_remote") @implementation
public func llvs_exchange_remote(_ exchange: OpaquePointer!, _ remote: StructOut<llvs_remote>!, _ error: ErrorOut!) -> llvs_status {
    remote?.pointee = nil
    return entry(error) {
        let out = try required(remote, "remote")
        out.pointee = try LLVSABI.exchange(exchange).remoteStatus().map { try RemoteStatusHandle($0).handedOut }
    }
}

@_cdecl("llvs_exchange_announce_move") @implementation
public func llvs_exchange_announce_move(
    _ exchange: OpaquePointer!, _ address: llvs_bytes, _ control: UnsafePointer<llvs_control>!,
    _ result: StructOut<llvs_exchange_result>!, _ error: ErrorOut!
) -> llvs_status {
    result?.pointee = nil
    return entry(error) {
        let done = try LLVSABI.exchange(exchange).announceMove(to: text(address, "address"), control: LLVSABI.control(control))
        if let result { result.pointee = try ExchangeResultHandle(sent: done.versions, problems: done.problems).handedOut }
    }
}
