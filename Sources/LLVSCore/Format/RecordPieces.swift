/// A record to append: pieces that are written one after another, borrowed for the call.
///
/// The pieces of a large record are made on demand, so that it is never in memory as a whole.
package struct RecordPieces {
    private enum Source {
        case whole(UnsafeRawBufferPointer)
        case list([UnsafeRawBufferPointer])
        case made((_ sink: (UnsafeRawBufferPointer) throws -> Void) throws -> Void)
    }
    private let source: Source
    /// Bytes in all.
    package let length: Int
    private let knownChecksum: UInt32?

    /// Creates a record from these pieces, in order. They belong to the caller, and must not change meanwhile.
    package init(_ pieces: [UnsafeRawBufferPointer]) {
        source = .list(pieces)
        length = pieces.reduce(0) { $0 + $1.count }
        knownChecksum = nil
    }

    package init(_ whole: UnsafeRawBufferPointer) { source = .whole(whole); length = whole.count; knownChecksum = nil }

    /// Creates a record from `pieces`, which passes them to its argument in order. Each call passes the same pieces.
    /// - Parameter checksum: the CRC-32C of all of them.
    package init(length: Int, checksum: UInt32, pieces: @escaping (_ sink: (UnsafeRawBufferPointer) throws -> Void) throws -> Void) {
        source = .made(pieces)
        self.length = length
        knownChecksum = checksum
    }

    static let changed = StoreError(
        .invalidArgument, "A version was changed while it was being stored. Do not change the arguments until the call returns.")

    /// Calls with each piece, in order. Its bytes are valid until `body` returns.
    /// - Throws: the errors of `body`, and `.invalidArgument` if the pieces do not have `length` bytes in all because they changed
    ///   meanwhile.
    package func forEach(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        switch source {
        case .whole(let bytes): try body(bytes)
        case .list(let pieces): for piece in pieces { try body(piece) }
        case .made(let make):
            var made = 0
            try make { piece in
                made += piece.count
                guard made <= length else { throw RecordPieces.changed }
                try body(piece)
            }
            guard made == length else { throw RecordPieces.changed }
        }
    }

    /// CRC-32C of all bytes.
    package func checksum() throws -> UInt32 {
        if let knownChecksum { return knownChecksum }
        var crc: UInt32 = 0
        try forEach { crc = Bytes.crc32c($0, from: crc) }
        return crc
    }

    /// Copies all bytes to the beginning of `target`.
    /// - Throws: `.internal` if `target` is too small.
    package func copy(to target: UnsafeMutableRawBufferPointer) throws {
        guard target.count >= length else {
            throw StoreError(.internal, "There is no room for a record of \(length) bytes in \(target.count).")
        }
        var at = 0
        try forEach { piece in
            UnsafeMutableRawBufferPointer(rebasing: target[at...]).copyMemory(from: piece)
            at += piece.count
        }
    }

    /// A copy of all bytes.
    package func bytes() throws -> [UInt8] {
        try Memory.expect(length, "A copy of a record")
        return try [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            try copy(to: UnsafeMutableRawBufferPointer(buffer))
            count = length
        }
    }
}
