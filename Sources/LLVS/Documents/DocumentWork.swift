extension Bytes {
    /// Whether the byte is among them.
    static func contains(_ byte: UInt8, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress, bytes.count > 0 else { return false }
        return memchr(base, Int32(byte), bytes.count) != nil
    }
}

/// Counts what a merge does, and looks from time to time whether it is to stop.
final class DocumentWork {
    private static let perCheck = 1 << 20
    private let check: (() throws -> Void)?
    private var left = perCheck

    /// - Parameter check: called about once in every million steps; throws to stop the work.
    init(_ check: (() throws -> Void)? = nil) { self.check = check }

    @inline(__always)
    func done(_ steps: Int) throws {
        left -= steps
        if left <= 0 { try look() }
    }

    private func look() throws {
        left = Self.perCheck
        try check?()
    }
}
