/// Reads bounded bytes from front to back. If the bytes end too early or do not have the form, every method returns nil and leaves the
/// position unchanged: no input can make it trap.
@usableFromInline
package struct ByteReader {
    @usableFromInline let bytes: UnsafeRawBufferPointer
    /// The number of bytes that were read.
    @usableFromInline package internal(set) var position = 0

    /// Begins at the first of the bytes, which must outlive it.
    @inlinable
    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }
    /// The number of bytes that are left.
    @inlinable package var remaining: Int { bytes.count - position }

    /// Reads a little-endian integer.
    @inlinable @inline(__always)
    package mutating func integer<T: FixedWidthInteger>(_ type: T.Type) -> T? {
        guard remaining >= MemoryLayout<T>.size else { return nil }
        let value = bytes.loadUnaligned(fromByteOffset: position, as: T.self)
        position += MemoryLayout<T>.size
        return T(littleEndian: value)
    }

    /// The next byte, which stays.
    @inline(__always)
    func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

    /// LEB128, unsigned, at most ten bytes; overlong forms of more than ten bytes and overflow are refused.
    @inlinable @inline(__always)
    package mutating func varint() -> UInt64? {
        var value: UInt64 = 0, shift: UInt64 = 0, i = position
        while i < bytes.count, shift < 64 {
            let b = bytes[i]
            i += 1
            if shift == 63, b > 1 { return nil }
            value |= UInt64(b & 0x7F) << shift
            if b < 0x80 { position = i; return value }
            shift += 7
        }
        return nil
    }

    /// Reads a number that `ByteWriter.zigzag` wrote.
    mutating func zigzag() -> UInt64? { varint().map { $0 >> 1 ^ (0 &- ($0 & 1)) } }

    /// Reads a varint that is at most `limit`. If `limit` is negative, none is.
    @inlinable @inline(__always)
    package mutating func count(atMost limit: Int) -> Int? {
        guard limit >= 0, let value = varint(), value <= UInt64(limit) else { return nil }
        return Int(value)
    }

    /// Returns the next bytes, without a copy.
    @inlinable @inline(__always)
    package mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, remaining >= count else { return nil }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    /// Reads a version id: 0 and 16 bytes of an upper-case UUID, or its length, 1 to 128, and as many characters.
    package mutating func versionID() -> VersionID? {
        guard let size = integer(UInt8.self) else { return nil }
        if size == 0 {
            guard let high = integer(UInt64.self), let low = integer(UInt64.self) else { return nil }
            return VersionID(high: high.byteSwapped, low: low.byteSwapped)
        }
        guard let text = take(Int(size)) else { return nil }
        guard let id = VersionID(validating: text), id.text != nil else { return nil }
        return id
    }

    mutating func blobID() -> BlobID? {
        guard let high = integer(UInt64.self), let low = integer(UInt64.self) else { return nil }
        return BlobID(high: high.byteSwapped, low: low.byteSwapped)
    }
}

/// Appends in the forms that `ByteReader` reads.
@usableFromInline
package struct ByteWriter {
    /// The bytes that were written.
    @usableFromInline package var bytes: [UInt8] = []
    /// Creates a writer that appends to the bytes.
    @inlinable
    package init(bytes: [UInt8] = []) { self.bytes = bytes }

    /// Appends a little-endian integer.
    @inlinable @inline(__always)
    package mutating func integer<T: FixedWidthInteger>(_ value: T) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Appends an unsigned LEB128.
    @inlinable @inline(__always)
    package mutating func varint(_ value: UInt64) {
        var v = value
        while v >= 0x80 { bytes.append(UInt8(truncatingIfNeeded: v) | 0x80); v >>= 7 }
        bytes.append(UInt8(truncatingIfNeeded: v))
    }

    /// Appends a difference, as a varint that is short for small ones of either sign.
    @inline(__always)
    mutating func zigzag(_ difference: UInt64) {
        let signed = Int64(bitPattern: difference)
        varint(UInt64(bitPattern: signed << 1 ^ signed >> 63))
    }

    /// Appends the bytes alone, without their number.
    @inlinable @inline(__always)
    package mutating func raw(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }
    /// Appends the bytes alone, without their number.
    @inlinable
    package mutating func raw(_ more: [UInt8]) { bytes.append(contentsOf: more) }

    /// Appends the id, as `ByteReader.versionID` reads it.
    package mutating func versionID(_ id: VersionID) {
        if id.text == nil {
            bytes.append(0)
            integer(id.high.byteSwapped)
            integer(id.low.byteSwapped)
        } else {
            id.withASCII {
                bytes.append(UInt8(truncatingIfNeeded: $0.count)); bytes.append(contentsOf: $0)
            }
        }
    }

    /// Appends the 16 bytes of the id.
    package mutating func blobID(_ id: BlobID) {
        integer(id.high.byteSwapped)
        integer(id.low.byteSwapped)
    }

    /// Overwrites four bytes written before.
    package mutating func patch(_ value: UInt32, at offset: Int) {
        guard offset >= 0, offset + 4 <= bytes.count else { return }
        withUnsafeBytes(of: value.littleEndian) { word in for i in 0..<4 { bytes[offset + i] = word[i] } }
    }
    mutating func patch(_ value: UInt64, at offset: Int) {
        patch(UInt32(truncatingIfNeeded: value), at: offset)
        patch(UInt32(truncatingIfNeeded: value >> 32), at: offset + 4)
    }
}
