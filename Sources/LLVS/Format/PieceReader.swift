import CLLVSShims

/// A file that is read piece by piece, once, from front to back. Used by one thread at a time.
public protocol PieceReader: AnyObject, Sendable {
    /// Bytes in all, as far as is known: for messages, and for how much is fetched at once.
    var size: Int { get }
    /// Fills the buffer from its start with what comes next, as far as that can be had at once; 0 at the end.
    /// - Throws: `.io`, `.permission`, `.notFound` or `.tooLarge` when this one file cannot be read, which becomes a
    ///   problem of its version; everything else ends the exchange.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int
    /// Throws when the work shall stop: called now and then by what takes long with what was read. By default it never stops.
    func look() throws
}

extension PieceReader {
    public func look() throws {}

    /// All that is still to come.
    /// - Parameter what: is read, for messages: "A file of the transport".
    /// - Throws: `.tooLarge` when it has more bytes than the limit, and what reading throws.
    package func whole(_ what: String, atMost limit: Int) throws -> [UInt8] {
        var all: [UInt8] = []
        try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
            while case let got = try read(into: buffer), got > 0 {
                guard all.count + got <= limit else {
                    throw StoreError(
                        .tooLarge,
                        "\(what) has more than \(limit) bytes, which is the most that is read of one. Move it away: "
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

/// What reading pieces threw, as opposed to what is wrong with the bytes.
struct PieceFailure: Error {
    let error: StoreError
    /// Whether the fault is this one file's.
    var isOfFile: Bool { [.io, .permission, .notFound, .tooLarge].contains(error.code) }
}

/// The part of a document that is in memory while it is read piece by piece.
final class PieceWindow {
    private let source: any PieceReader
    private let limit: Int
    private var start: UnsafeMutableRawPointer?
    private var capacity = 0
    private var count = 0
    private var total = 0
    private let pieceSize: Int

    /// - Parameters:
    ///   - limit: bytes that are read at most, whatever the reader says of its size.
    ///   - pieceSize: how many are asked for at once.
    init(_ source: any PieceReader, limit: Int, pieceSize: Int = 256 << 10) {
        self.source = source; self.limit = limit; self.pieceSize = pieceSize
    }
    deinit { free(start) }

    /// What is there, good until the next `advance`.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// Bytes that are still to come, as far as the reader knows.
    var left: Int { max(0, min(source.size, limit) - total) }

    /// Lets go of all before `kept`, and reads on behind the rest. False at the end, where there is nothing more than the rest.
    /// - Throws: `PieceFailure`.
    func advance(keepingFrom kept: Int) throws -> Bool {
        let rest = max(0, count - kept)
        // Twice the room each time, so that one long string is not moved again and again.
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
