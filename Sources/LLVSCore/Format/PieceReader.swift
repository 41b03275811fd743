import CLLVSShims

/// Reads a file piece by piece, once, from front to back. One thread at a time uses it.
public protocol PieceReader: AnyObject, Sendable {
    /// The total size, as far as it is known: for messages, and to choose how much to fetch at once.
    var size: Int { get }
    /// Fills the buffer with the next bytes, as many as are available at once. Returns their number; 0 at the end.
    /// - Throws: `.io`, `.permission`, `.notFound` or `.tooLarge` if this one file cannot be read, which becomes a problem of its version.
    ///   Other errors end the exchange.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int
    /// Throws if the work is cancelled. Long work on the bytes calls it repeatedly. By default it never throws.
    func look() throws
}

extension PieceReader {
    public func look() throws {}

    /// Reads all remaining bytes.
    /// - Parameter what: the file, for messages: "A file of the transport".
    /// - Throws: `.tooLarge` if it has more bytes than the limit, and errors of reading.
    package func whole(_ what: String, atMost limit: Int) throws -> [UInt8] {
        var all: [UInt8] = []
        try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
            while case let got = try read(into: buffer), got > 0 {
                guard all.count + got <= limit else {
                    throw StoreError(
                        .tooLarge,
                        "\(what) has more than \(limit) bytes, the most that is read of one file. Move it away: "
                            + "no version makes such a file."
                    )
                }
                try Memory.grow(&all, by: got, what)
                all.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<got]))
            }
        }
        return all
    }
}

/// An error of reading pieces, as opposed to a fault in the bytes.
package struct PieceFailure: Error {
    package let error: StoreError
    /// Whether the error concerns this one file.
    package var isOfFile: Bool { [.io, .permission, .notFound, .tooLarge].contains(error.code) }
}

/// The part of a document in memory while it is read piece by piece.
final class PieceWindow {
    private let source: any PieceReader
    private let limit: Int
    private var start: UnsafeMutableRawPointer?
    private var capacity = 0
    private var count = 0
    private var total = 0
    private let pieceSize: Int

    /// - Parameters:
    ///   - limit: the most bytes to read, whatever size the reader claims.
    ///   - pieceSize: the bytes to request at once.
    init(_ source: any PieceReader, limit: Int, pieceSize: Int = 256 << 10) {
        self.source = source; self.limit = limit; self.pieceSize = pieceSize
    }
    deinit { free(start) }

    /// The bytes in the window, valid until the next `advance`.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// The number of remaining bytes, as far as the reader knows.
    var left: Int { max(0, min(source.size, limit) - total) }

    /// Drops all bytes before `kept`, and reads more after the rest. Returns false at the end of the document.
    /// - Throws: `PieceFailure`.
    func advance(keepingFrom kept: Int) throws -> Bool {
        let rest = max(0, count - kept)
        // Double the room each time, so that one long string is not moved again and again.
        let wanted = max(2 * rest, rest + pieceSize)
        if wanted > capacity {
            guard let grown = llvs_shim_reallocate(start, wanted) else {
                throw PieceFailure(
                    error: StoreError(.outOfMemory, "There is no memory for \(wanted) bytes of a file. Free some, and run it again."))
            }
            start = grown
            capacity = wanted
        }
        guard let start else { return false }
        if kept > 0, rest > 0 { memmove(start, start + kept, rest) }
        count = rest
        let got: Int
        do { got = try source.read(into: UnsafeMutableRawBufferPointer(start: start + rest, count: min(pieceSize, capacity - rest))) } catch
        {
            throw PieceFailure(error: StoreError.of(error))
        }
        guard got > 0 else { return false }
        count += min(got, capacity - rest)
        total += got
        guard total <= limit else {
            throw PieceFailure(
                error: StoreError(
                    .tooLarge, "A file has more than the \(limit) bytes that are read of one. Move it away: no version makes such a file."))
        }
        return true
    }
}
