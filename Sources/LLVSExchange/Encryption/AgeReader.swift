/// Decrypts a file of age as a stream, with one segment of 64 KiB in memory. Returned bytes are authenticated; only the end of the stream
/// shows that the file is complete.
struct AgeReader {
    /// The key that opens it.
    enum Key {
        case identities([AgeIdentity])
        case passphrase(Secret)
    }
    /// The identity that opened it; nil for a passphrase.
    let identity: AgeIdentity?
    private let payload: AgePayload
    private let source: (UnsafeMutableRawBufferPointer) throws -> Int
    /// Bytes read but not yet decrypted: up to a segment, and one byte that shows that another follows.
    private var waiting: [UInt8]
    private var number = 0
    private var plain: Secret
    private var given = 0, opened = 0
    private var isAtEnd = false

    /// Reads the header.
    /// - Parameter source: fills the buffer from its start as far as it can at once; 0 at the end.
    /// - Throws: `AgeFault`, and errors of `source`.
    init(_ key: Key, _ crypto: Crypto, _ source: @escaping (UnsafeMutableRawBufferPointer) throws -> Int) throws {
        var head: [UInt8] = [], found: AgeHeader?
        while true {
            let wanted = head.count + 4_096
            var got = 1
            while got > 0, head.count < wanted { got = try AgeReader.more(&head, upTo: wanted, source) }
            found = try head.withUnsafeBytes { try AgeHeader.parse($0, isWhole: got == 0) }
            if found != nil { break }
        }
        guard let header = found else { throw AgeFault.cutShort }
        let fileKey: Secret
        switch key {
        case .identities(let identities): (fileKey, identity) = try header.fileKey(identities, crypto)
        case .passphrase(let passphrase): (fileKey, identity) = (try header.fileKey(passphrase: passphrase, crypto), nil)
        }
        let end = header.size + AgePayload.nonceSize
        while head.count < end { if try AgeReader.more(&head, upTo: end, source) == 0 { throw AgeFault.cutShort } }
        payload = try AgePayload(fileKey, nonce: Array(head[header.size..<end]), crypto)
        self.source = source
        waiting = Array(head[end...])
        plain = try Secret(size: AgePayload.segmentSize)
    }

    private static func more(
        _ bytes: inout [UInt8], upTo size: Int, _ source: (UnsafeMutableRawBufferPointer) throws -> Int
    ) throws -> Int {
        let old = bytes.count
        bytes += [UInt8](repeating: 0, count: size - old)
        let got = try bytes.withUnsafeMutableBytes { try source(UnsafeMutableRawBufferPointer(rebasing: $0[old...])) }
        guard got >= 0, got <= size - old else { throw StoreError(.invalidArgument, "Reading returned \(got) bytes for \(size - old).") }
        bytes.removeLast(size - old - got)
        return got
    }

    /// Fills the buffer from its start with the next bytes, up to the end of a segment; 0 at the end.
    /// - Throws: `AgeFault`, and errors of the source.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        guard buffer.count > 0 else { return 0 }
        if given == opened, !isAtEnd { try openNext() }
        let count = min(buffer.count, opened - given), from = given
        plain.withBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[from..<from + count])) }
        given += count
        return count
    }

    private mutating func openNext() throws {
        var isOver = false
        while waiting.count <= AgePayload.sealedSize, !isOver {
            isOver = try AgeReader.more(&waiting, upTo: AgePayload.sealedSize + 1, source) == 0
        }
        let isLast = waiting.count <= AgePayload.sealedSize, size = min(waiting.count, AgePayload.sealedSize)
        guard size >= Crypto.tagSize else { throw AgeFault.cutShort }
        let number = number, payload = payload
        opened = try waiting.withUnsafeBytes { sealed in
            try plain.fill { try payload.open(number, isLast, UnsafeRawBufferPointer(rebasing: sealed[..<size]), into: $0) }
        }
        given = 0
        waiting.removeFirst(size)
        self.number += 1
        isAtEnd = isLast
    }

    /// Decrypts a file in memory.
    /// - Parameter limit: the most bytes of plaintext.
    /// - Throws: `AgeFault`.
    static func decrypt(_ bytes: [UInt8], _ key: Key, _ crypto: Crypto, limit: Int) throws -> (plain: Secret, identity: AgeIdentity?) {
        guard let header = try bytes.withUnsafeBytes({ try AgeHeader.parse($0, isWhole: true) }) else { throw AgeFault.cutShort }
        let size = bytes.count - header.size - AgePayload.nonceSize
        guard let count = AgePayload.plainSize(size) else {
            throw size % AgePayload.sealedSize == Crypto.tagSize ? AgeFault.damaged("an empty part is at its end") : AgeFault.cutShort
        }
        guard count <= limit else { throw AgeFault.tooLarge("it has \(count) bytes, and at most \(limit) are read") }
        var at = 0
        var reader = try AgeReader(key, crypto) { buffer in
            let got = min(buffer.count, bytes.count - at)
            bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[at..<at + got])) }
            at += got
            return got
        }
        let plain = try Secret(size: count)
        try plain.fill { out in
            var filled = 0
            while true {
                let room = UnsafeMutableRawBufferPointer(rebasing: out[filled...])
                // At the end one more read shows that nothing follows.
                var spare: UInt8 = 0
                let got = try room.isEmpty ? withUnsafeMutableBytes(of: &spare) { try reader.read(into: $0) } : reader.read(into: room)
                guard got > 0 else { break }
                guard !room.isEmpty else { throw AgeFault.damaged("it holds more than its size says") }
                filled += got
            }
            guard filled == out.count else { throw AgeFault.cutShort }
        }
        return (plain, reader.identity)
    }
}
