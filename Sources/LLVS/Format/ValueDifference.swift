import CLLVSShims

/// The stored bytes of a value that is a difference from an earlier value of the same id, its *base*: docs/format.md, "Values as
/// differences". Pointers are good as long as the stored bytes are.
struct ValueDifference {
    /// Bytes of the largest value that is read as a difference.
    static let largestValue = 64 << 20
    /// The largest place that is read.
    static let largestPlace = 1_023
    /// How many differences lead to the value that is stored whole, at most.
    static let mostSteps = 16

    /// Of the value: a base has a smaller one, and 0 if it is stored whole.
    var place: Int
    /// Stored bytes of all differences on the way to the value that is stored whole, this one included.
    var waySize: Int
    /// The version that stored the base.
    var base: VersionID
    var baseSize: Int
    /// Where the body of the base probably begins in its record; 0: not told.
    var baseBody: Int
    /// CRC-32C of the base's bytes.
    var baseChecksum: UInt32
    /// CRC-32C of the value's bytes.
    var checksum: UInt32
    /// Bytes of the streams once they are inflated.
    var streamsSize: Int
    var isDeflated: Bool
    var streams: UnsafeRawBufferPointer

    enum Reading {
        case difference(ValueDifference)
        /// Of a kind that this library does not know.
        case newer
        case damaged
    }

    /// Reads the stored bytes of a value of `size` bytes. What they claim is within the limits of docs/format.md; only the base and the
    /// streams themselves have not been looked at.
    static func read(_ stored: UnsafeRawBufferPointer, size: Int) -> Reading {
        var reader = ByteReader(stored)
        guard let kind = reader.integer(UInt8.self), stored.count <= largestStored(of: size), size <= largestValue else { return .damaged }
        guard kind <= 1 else { return .newer }
        guard let place = reader.count(atMost: largestPlace), place >= 1,
            let waySize = reader.count(atMost: Int.max), waySize >= stored.count,
            let base = reader.versionID(),
            let baseSize = reader.count(atMost: largestBase(of: size)),
            let baseBody = reader.count(atMost: Int.max),
            let baseChecksum = reader.integer(UInt32.self), let checksum = reader.integer(UInt32.self),
            size <= RecordTable.deflateRatio * stored.count + 2 * baseSize
        else { return .damaged }
        var streamsSize = reader.remaining
        if kind == 1 {
            guard let inflated = reader.count(atMost: RecordTable.deflateRatio * stored.count) else { return .damaged }
            streamsSize = inflated
        }
        guard streamsSize <= 2 * size + 64, let streams = reader.take(reader.remaining) else { return .damaged }
        return .difference(
            ValueDifference(
                place: place, waySize: waySize, base: base, baseSize: baseSize, baseBody: baseBody, baseChecksum: baseChecksum,
                checksum: checksum, streamsSize: streamsSize, isDeflated: kind == 1, streams: streams))
    }

    /// How many bytes may be stored for a value of `size` bytes.
    static func largestStored(of size: Int) -> Int { size + 256 }
    /// How many bytes another value on the way of one of `size` bytes may have.
    static func largestBase(of size: Int) -> Int { 4 * size + 64 << 10 }
    /// How many bytes the values on the way of one of `size` bytes, which is included, may have together.
    static func largestWay(of size: Int) -> Int { 16 * size + 1 << 20 }

    /// Fills the buffer, which has the size of the value, from the bytes of the base; false if they are not the base's, or the streams do
    /// not make exactly the value. What is in the buffer then may not be used.
    /// - Throws: `.outOfMemory`.
    func apply(to base: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) throws -> Bool {
        guard base.count == baseSize, Bytes.crc32c(base) == baseChecksum else { return false }
        func apply(_ streams: UnsafeRawBufferPointer) -> Bool {
            llvs_shim_difference_apply(
                streams.baseAddress, streams.count, base.baseAddress, base.count, target.baseAddress, target.count) == 1
                && Bytes.crc32c(UnsafeRawBufferPointer(target)) == checksum
        }
        guard isDeflated else { return apply(streams) }
        return try withScratch(streamsSize) { scratch in
            Inflated.fill(scratch.baseAddress, size: streamsSize, from: streams) && apply(UnsafeRawBufferPointer(scratch))
        }
    }
}
