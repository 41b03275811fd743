// Reading the files that a transport returned, and checking them against the request.

extension FetchedFile {
    /// The bytes, as far as known.
    var size: Int {
        switch self {
        case .data(let bytes): bytes.count
        case .pieces(let reader): reader.size
        case .missing, .unreadable: 0
        }
    }

    /// Nil if there is nothing to read. A large file in memory is also read in pieces, so that `check` is called before each MiB.
    func document(checking check: @escaping () throws -> Void) -> InterchangeDecoder.Document? {
        switch self {
        case .data(let bytes): bytes.count > ExchangeLimits.wholeFileSize ? .pieces(CheckedBytes(bytes, check)) : .bytes(bytes)
        case .pieces(let reader): .pieces(reader)
        case .missing, .unreadable: nil
        }
    }
}

/// A large file in memory, read with checks.
private final class CheckedBytes: PieceReader, @unchecked Sendable {
    // Sendable: used by one thread at a time, the one that holds it.
    private let bytes: [UInt8], check: () throws -> Void
    func look() throws { try check() }
    private var position = 0, nextCheck = 0

    init(_ bytes: [UInt8], _ check: @escaping () throws -> Void) { self.bytes = bytes; self.check = check }
    var size: Int { bytes.count }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        if position >= nextCheck {
            try check()
            nextCheck = position + OperationControl.bytesPerCheck
        }
        let count = min(buffer.count, bytes.count - position)
        bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[position..<position + count])) }
        position += count
        return count
    }
}

extension ExchangeTransport {
    /// Fetches files, and checks that their number fits the request.
    func fetched(
        _ names: [String], of kind: String, _ fetch: ([String], OperationControl) throws -> [FetchedFile], _ control: OperationControl
    ) throws -> [FetchedFile] {
        let files = try fetch(names, control)
        guard !files.isEmpty, files.count <= names.count else {
            throw StoreError(
                .transport,
                "\(description) was asked for \(names.count) \(kind) and returned \(files.count). Correct the transport: "
                    + "it must return at least one, and at most as many as requested."
            )
        }
        return files
    }
}
