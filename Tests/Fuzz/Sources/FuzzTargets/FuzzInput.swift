/// An input taken apart from the front. Where it ends there are zeros, so that each input is one.
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

    /// Two bytes that tell the size, and as many bytes as there are.
    mutating func part() -> [UInt8] { take(uint16()) }
    /// All that is left.
    mutating func rest() -> [UInt8] { take(bytes.count) }
    private mutating func take(_ count: Int) -> [UInt8] {
        let end = min(bytes.count, position + count)
        defer { position = end }
        return Array(bytes[position..<end])
    }

    /// What `part` takes apart.
    static func part(_ bytes: [UInt8]) -> [UInt8] {
        let bytes = bytes.prefix(0xFFFF)
        return [UInt8(bytes.count & 255), UInt8(bytes.count >> 8)] + bytes
    }
}
