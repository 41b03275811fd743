import CLLVS
import LLVSCoordinator

// MARK: Large files to and from a transport of the host

/// A file that the host supplies piece by piece.
final class HostFile: PieceReader, @unchecked Sendable {
    // Sendable: used only by the thread that owns it.
    let size: Int
    private let next: llvs_read_fn
    private let payload: Payload
    private static let codes: [StoreError.Code] = HostTransport.codes + [.notFound]

    /// - Parameter size: 0 if unknown: then the file does not count as empty until it is read.
    init(_ size: Int, _ next: @escaping llvs_read_fn, _ payload: Payload) {
        self.size = max(1, size); self.next = next; self.payload = payload
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        try readHost("Reading a file of the transport", keeping: HostFile.codes, next, payload.pointer, into: buffer)
    }
}

/// Behind `llvs_outgoing`.
final class Outgoing: Handle, @unchecked Sendable {
    let file: OutgoingFile
    /// Throws if the exchange must stop.
    let check: () throws -> Void
    init(_ file: OutgoingFile, check: @escaping () throws -> Void = {}) { self.file = file; self.check = check }
}

@_cdecl("llvs_outgoing_size") @implementation
public func llvs_outgoing_size(_ outgoing: OpaquePointer!) -> UInt64 { peek(outgoing, Outgoing.self).map { UInt64($0.file.size) } ?? 0 }

@_cdecl("llvs_outgoing_write") @implementation
public func llvs_outgoing_write(
    _ outgoing: OpaquePointer!, _ write: llvs_write_fn!, _ payload: UnsafeMutableRawPointer!, _ error: ErrorOut!
) -> llvs_status {
    entry(error) {
        guard let write else { throw InputError.null("write") }
        let outgoing = try handle(outgoing, Outgoing.self, "outgoing")
        try outgoing.file.forEachPiece { piece in
            try outgoing.check()
            var borrowed = llvs_bytes(data: piece.baseAddress?.assumingMemoryBound(to: UInt8.self), size: piece.count)
            try callHost("Writing a file of the transport", keeping: HostTransport.codes) { write(payload, &borrowed, $0) }
        }
    }
}
