/// A record to append: pieces that are written one after another, borrowed for the call.
///
/// The pieces of a large record are made as they are asked for, so that it is never in memory as a whole.
public struct RecordPieces {
    private enum Source {
        case whole(UnsafeRawBufferPointer)
        case list([UnsafeRawBufferPointer])
        case made((_ sink: (UnsafeRawBufferPointer) throws -> Void) throws -> Void)
    }
    private let source: Source
    /// Bytes in all.
    public let length: Int
    private let knownChecksum: UInt32?

    /// A record of these pieces, in order; they stay the caller's and must not change meanwhile.
    public init(_ pieces: [UnsafeRawBufferPointer]) {
        source = .list(pieces)
        length = pieces.reduce(0) { $0 + $1.count }
        knownChecksum = nil
    }

    package init(_ whole: UnsafeRawBufferPointer) { source = .whole(whole); length = whole.count; knownChecksum = nil }

    /// `pieces` hands them to its argument, in order, the same each time that it is called.
    /// - Parameter checksum: CRC-32C of all of them.
    package init(length: Int, checksum: UInt32, pieces: @escaping (_ sink: (UnsafeRawBufferPointer) throws -> Void) throws -> Void) {
        source = .made(pieces)
        self.length = length
        knownChecksum = checksum
    }

    static let changed = StoreError(
        .invalidArgument, "A version was changed while it was being stored. Leave what is handed in as it is until the call returns.")

    /// Calls with each piece, in order; the bytes are good until it returns.
    /// - Throws: what `body` throws, and `.invalidArgument` when they are not `length` bytes in the end: somebody changed them meanwhile.
    public func forEach(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
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
    public func checksum() throws -> UInt32 {
        if let knownChecksum { return knownChecksum }
        var crc: UInt32 = 0
        try forEach { crc = Bytes.crc32c($0, from: crc) }
        return crc
    }

    /// A copy of all bytes at the beginning of `target`.
    /// - Throws: `.internal` when there is too little room.
    public func copy(to target: UnsafeMutableRawBufferPointer) throws {
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
    public func bytes() throws -> [UInt8] {
        try Memory.expect(length, "A copy of a record")
        return try [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            try copy(to: UnsafeMutableRawBufferPointer(buffer))
            count = length
        }
    }
}
