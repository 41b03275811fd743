import CLLVSShims

/// The decoded stored bytes of a value that is a difference from an earlier value of the same id, its *base*: docs/format.md, "Values as
/// differences". Its pointers are valid as long as the stored bytes are.
package struct ValueDifference {
    /// The size in bytes of the largest value that a reader accepts as a difference.
    static let largestValue = 64 << 20
    /// The largest place that a reader accepts.
    static let largestPlace = 1_023
    /// The most differences on a way that a reader accepts.
    package static let mostSteps = 16

    /// The place of the value. Writers base it on a value with a smaller place. A whole value has place 0.
    package var place: Int
    /// The stored bytes of all differences on the way, this one included.
    package var waySize: Int
    /// The version that stored the base.
    package var base: VersionID
    package var baseSize: Int
    /// A hint: where the body of the base begins in its record. 0 if the difference has no hint.
    var baseBody: Int
    /// The CRC-32C of the base's bytes.
    package var baseChecksum: UInt32
    /// The CRC-32C of the value's bytes.
    package var checksum: UInt32
    /// The size of the inflated streams in bytes.
    var streamsSize: Int
    package var isDeflated: Bool
    var streams: UnsafeRawBufferPointer

    package enum Reading {
        case difference(ValueDifference)
        /// The difference is of a kind that this library does not know.
        case newer
        case damaged
    }

    /// Reads the stored bytes of a value of `size` bytes. Checks them against the limits of docs/format.md, but does not check the base
    /// and the contents of the streams.
    package static func read(_ stored: UnsafeRawBufferPointer, size: Int) -> Reading {
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

    /// Returns the most bytes that may be stored for a value of `size` bytes.
    static func largestStored(of size: Int) -> Int { size + 256 }
    /// Returns the most bytes that another value on the way of a value of `size` bytes may have.
    static func largestBase(of size: Int) -> Int { 4 * size + 64 << 10 }
    /// Returns the most bytes that all values on the way of a value of `size` bytes may have together, this value included.
    static func largestWay(of size: Int) -> Int { 16 * size + 1 << 20 }

    /// Makes the value in the buffer, which has its size, from the bytes of the base.
    /// - Parameter isBaseChecked: whether the base is known to have the checksum.
    /// - Returns: false if the bytes are not those of the base, or the streams do not make exactly the value. The contents of the buffer
    ///   are then undefined.
    /// - Throws: `.outOfMemory`.
    package func apply(to base: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, isBaseChecked: Bool = false) throws
        -> Bool
    {
        guard base.count == baseSize, isBaseChecked || Bytes.crc32c(base) == baseChecksum else { return false }
        func apply(_ streams: UnsafeRawBufferPointer) -> Bool {
            llvs_shim_difference_apply(
                streams.baseAddress, streams.count, base.baseAddress, base.count, target.baseAddress, target.count) == 1
                && Bytes.crc32c(UnsafeRawBufferPointer(target)) == checksum
        }
        guard isDeflated else { return apply(streams) }
        return try withScratch(streamsSize) { scratch in readStreams(into: scratch) && apply(UnsafeRawBufferPointer(scratch)) }
    }

    /// Copies the streams to the buffer, of `streamsSize` bytes, and inflates them if they are deflated.
    /// - Returns: false if they do not inflate to exactly that size.
    func readStreams(into target: UnsafeMutableRawBufferPointer) -> Bool {
        if isDeflated { return Inflated.fill(target.baseAddress, size: streamsSize, from: streams) }
        target.copyMemory(from: streams)
        return true
    }
}
