/// Takes an input apart from the front. After its end there are zeros, so every input is valid.
struct FuzzInput {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { position >= bytes.count }

    mutating func byte() -> UInt8 {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return bytes[position]
    }
    mutating func uint16() -> Int { Int(byte()) | Int(byte()) << 8 }
    mutating func uint32() -> UInt32 { UInt32(uint16()) | UInt32(uint16()) << 16 }
    mutating func uint64() -> UInt64 { UInt64(uint32()) | UInt64(uint32()) << 32 }

    /// A size of two bytes, and as many bytes as the input still has, up to that size.
    mutating func part() -> [UInt8] { take(uint16()) }
    /// All remaining bytes.
    mutating func rest() -> [UInt8] { take(bytes.count) }
    private mutating func take(_ count: Int) -> [UInt8] {
        let end = min(bytes.count, position + count)
        defer { position = end }
        return Array(bytes[position..<end])
    }

    /// Encodes what `part` reads.
    static func part(_ bytes: [UInt8]) -> [UInt8] {
        let bytes = bytes.prefix(0xFFFF)
        return [UInt8(bytes.count & 255), UInt8(bytes.count >> 8)] + bytes
    }
}
