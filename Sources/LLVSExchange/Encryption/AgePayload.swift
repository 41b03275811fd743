/// The payload after the header of a file of age: a nonce of 16 bytes, and segments of 64 KiB. Each segment is encrypted and authenticated
/// by itself, together with its number and whether it is the last. So a range of the plaintext can be read from a range of segments, and
/// truncation is detected.
struct AgePayload: Sendable {
    private let key: Secret
    private let crypto: Crypto
    static let segmentSize = 64 << 10
    static let sealedSize = segmentSize + Crypto.tagSize
    static let nonceSize = 16

    /// - Parameter nonce: the bytes after the header.
    init(_ fileKey: Secret, nonce: [UInt8], _ crypto: Crypto) throws {
        key = try crypto.derive(fileKey, salt: nonce, info: "payload")
        self.crypto = crypto
    }

    /// Returns the size of the plaintext for a size after the nonce; nil if no file has that size.
    static func plainSize(_ size: Int) -> Int? {
        let whole = size / sealedSize, rest = size % sealedSize
        guard size >= Crypto.tagSize, rest == 0 || rest >= Crypto.tagSize, !(whole > 0 && rest == Crypto.tagSize) else { return nil }
        return size - (whole + (rest > 0 ? 1 : 0)) * Crypto.tagSize
    }
    /// Returns the size after the nonce for a size of the plaintext; `Int.max` on overflow.
    static func sealedSize(_ plain: Int) -> Int {
        let segments = max(1, plain / segmentSize + (plain % segmentSize > 0 ? 1 : 0))
        let (size, overflow) = plain.addingReportingOverflow(segments * Crypto.tagSize)
        return overflow ? .max : size
    }

    /// Returns which bytes after the nonce hold a range of the plaintext.
    /// - Parameter size: bytes after the nonce.
    /// - Throws: `AgeFault.damaged` if no file has that size, or if the range is outside.
    static func sealedRange(of range: Range<Int>, size: Int) throws -> Range<Int> {
        guard let plain = plainSize(size), range.lowerBound >= 0, range.upperBound <= plain else {
            throw AgeFault.damaged("it has \(size) bytes after its header, without the requested range")
        }
        guard !range.isEmpty else { return 0..<0 }
        let first = range.lowerBound / segmentSize, last = (range.upperBound - 1) / segmentSize
        return first * sealedSize..<min(size, (last + 1) * sealedSize)
    }

    /// Decrypts a range of the plaintext.
    /// - Parameters:
    ///   - sealed: the bytes that `sealedRange` returns.
    ///   - size: bytes after the nonce.
    func open(_ range: Range<Int>, _ sealed: UnsafeRawBufferPointer, size: Int) throws -> [UInt8] {
        let place = try AgePayload.sealedRange(of: range, size: size)
        guard sealed.count == place.count else { throw AgeFault.cutShort }
        guard !range.isEmpty else { return [] }
        var number = place.lowerBound / AgePayload.sealedSize, at = 0, out: [UInt8] = []
        try Memory.expect(range.count + AgePayload.segmentSize, "Opening an encrypted file")
        out.reserveCapacity(range.count)
        try withScratch(AgePayload.segmentSize) { scratch in
            while at < sealed.count {
                let end = min(sealed.count, at + AgePayload.sealedSize)
                let isLast = place.lowerBound + end == size
                let count = try open(number, isLast, UnsafeRawBufferPointer(rebasing: sealed[at..<end]), into: scratch)
                let start = number * AgePayload.segmentSize
                let from = max(0, range.lowerBound - start), to = min(count, range.upperBound - start)
                if from < to { out.append(contentsOf: UnsafeRawBufferPointer(rebasing: scratch[from..<to])) }
                (at, number) = (end, number + 1)
            }
        }
        return out
    }

    /// Decrypts one segment. Returns its size.
    /// - Throws: `AgeFault.damaged`.
    func open(_ number: Int, _ isLast: Bool, _ sealed: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer) throws -> Int {
        let count = sealed.count - Crypto.tagSize
        guard count >= 0, count <= AgePayload.segmentSize, isLast || count == AgePayload.segmentSize, !isLast || count > 0 || number == 0,
            crypto.unseal(key, nonce: AgePayload.nonce(number, isLast), sealed, into: out)
        else { throw AgeFault.damaged(isLast ? "its end was changed, or is missing" : "a part of it was changed") }
        return count
    }

    /// Encrypts one segment; the result has 16 more bytes.
    func seal(_ number: Int, _ isLast: Bool, _ plain: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer) throws {
        try crypto.seal(key, nonce: AgePayload.nonce(number, isLast), plain, into: out)
    }

    /// Returns the nonce of a segment: its number in eleven bytes, the high one first, and whether it is the last.
    private static func nonce(_ number: Int, _ isLast: Bool) -> [UInt8] {
        var nonce = [UInt8](repeating: 0, count: Crypto.nonceSize)
        for i in 0..<8 { nonce[10 - i] = UInt8(truncatingIfNeeded: number >> (8 * i)) }
        nonce[11] = isLast ? 1 : 0
        return nonce
    }
}
