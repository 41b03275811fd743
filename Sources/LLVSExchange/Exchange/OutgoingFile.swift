/// A file to be written elsewhere: whole, or in pieces that are produced on demand, so that a large file is never whole in memory.
public struct OutgoingFile: Sendable {
    /// Receives one piece, which is valid during the call.
    public typealias Sink = (UnsafeRawBufferPointer) throws -> Void
    private enum Source {
        case bytes([UInt8])
        case pieces(@Sendable (Sink) throws -> Void)
    }
    private let source: Source
    /// Bytes in all.
    public let size: Int

    /// A file that is whole in memory.
    public init(_ bytes: [UInt8]) { source = .bytes(bytes); size = bytes.count }
    /// - Parameters:
    ///   - size: bytes in all.
    ///   - pieces: passes all `size` bytes to its argument, in order; the same at each call.
    public init(size: Int, pieces: @escaping @Sendable (Sink) throws -> Void) { source = .pieces(pieces); self.size = size }

    /// Calls `sink` with each piece, in order.
    /// - Throws: errors of `sink` and of producing the pieces, and `.internal` if they are not `size` bytes.
    public func forEachPiece(_ sink: Sink) throws {
        switch source {
        case .bytes(let bytes): try bytes.withUnsafeBytes(sink)
        case .pieces(let make):
            var made = 0
            try make {
                made += $0.count; try sink($0)
            }
            guard made == size else { throw StoreError(.internal, "A file of \(size) bytes came to \(made).") }
        }
    }

    /// Returns all bytes.
    public func bytes() throws -> [UInt8] {
        if case .bytes(let bytes) = source { return bytes }
        var all: [UInt8] = []
        try Memory.grow(&all, by: size, "A file of \(size) bytes")
        try forEachPiece { all.append(contentsOf: $0) }
        return all
    }
}
