import CLLVSShims

/// Makes differences.
extension ValueDifference {
    /// What a new difference records about its base and its way.
    package struct Link {
        /// The version that stored the base.
        package var version: VersionID
        /// Where the body of the base begins in its record; 0 if the difference is to have no hint.
        package var body: Int
        /// The place of the new value.
        package var place: Int
        /// The stored bytes of the differences on the way of the base, the base included; 0 if the base is stored whole.
        package var wayBefore: Int
        package init(version: VersionID, body: Int, place: Int, wayBefore: Int) {
            self.version = version; self.body = body; self.place = place; self.wayBefore = wayBefore
        }
    }

    /// Streams of at most this many bytes are stored as they are.
    private static let deflateThreshold = 64

    /// Returns the stored bytes of a value as its difference from a base; nil if they have more than `room` bytes, or the two have too
    /// little in common.
    /// - Parameter deflates: whether streams above the threshold are deflated if that makes them smaller.
    /// - Throws: `.outOfMemory`.
    package static func make(
        _ value: UnsafeRawBufferPointer, checksum: UInt32, from base: UnsafeRawBufferPointer, checksum baseChecksum: UInt32, link: Link,
        room: Int, deflates: Bool = true
    ) throws -> [UInt8]? {
        // Larger streams are not tried: deflate is assumed to make them at most four times smaller.
        let raw = min(value.count, max(room, 0) * (deflates ? 4 : 1))
        guard raw > 0 else { return nil }
        return try withScratch(raw) { scratch in
            let count = llvs_shim_difference_make(base.baseAddress, base.count, value.baseAddress, value.count, scratch.baseAddress, raw)
            guard count > 0 else { return nil }
            let streams = UnsafeRawBufferPointer(rebasing: scratch[..<count])
            // Verify that the difference makes the value: a caller may have changed the value meanwhile.
            let comesBack = try withScratch(value.count) { target in
                llvs_shim_difference_apply(streams.baseAddress, count, base.baseAddress, base.count, target.baseAddress, target.count) == 1
                    && Bytes.crc32c(UnsafeRawBufferPointer(target)) == checksum
            }
            guard comesBack else { return nil }
            var deflated: [UInt8] = []
            try Memory.expect(2 * count, "Storing a value as a difference")
            if deflates, count > deflateThreshold, let from = streams.baseAddress {
                deflated = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                    filled = llvs_shim_deflate(from, count, buffer.baseAddress, count - 8)
                }
            }
            let stored = stored(
                streams, deflated: deflated, link: link, baseSize: base.count, baseChecksum: baseChecksum, checksum: checksum)
            return stored.count <= room && isWithinLimits(stored, size: value.count) ? stored : nil
        }
    }

    /// Returns whether the reader accepts the stored bytes of a value of `size` bytes. If a value repeats its base several times, the
    /// difference can be too small for its size.
    static func isWithinLimits(_ stored: [UInt8], size: Int) -> Bool {
        stored.withUnsafeBytes { if case .difference = read($0, size: size) { true } else { false } }
    }

    /// Returns the stored bytes of the same difference with plain streams; nil if they have more than `most` bytes, or the reader does not
    /// accept them.
    package func plain(_ link: Link, size: Int, atMost most: Int) throws -> [UInt8]? {
        func stored(_ streams: UnsafeRawBufferPointer) -> [UInt8]? {
            guard streams.count <= size else { return nil }
            let stored = ValueDifference.stored(
                streams, link: link, baseSize: baseSize, baseChecksum: baseChecksum, checksum: checksum)
            return stored.count <= most && ValueDifference.isWithinLimits(stored, size: size) ? stored : nil
        }
        guard isDeflated else { return stored(streams) }
        return try withScratch(streamsSize) { scratch in
            guard Inflated.fill(scratch.baseAddress, size: streamsSize, from: streams) else { return nil }
            return stored(UnsafeRawBufferPointer(scratch))
        }
    }

    /// Returns the stored bytes of a difference with these streams.
    /// - Parameter deflated: the deflated streams; empty if the streams are stored as they are.
    static func stored(
        _ streams: UnsafeRawBufferPointer, deflated: [UInt8] = [], link: Link, baseSize: Int, baseChecksum: UInt32, checksum: UInt32
    ) -> [UInt8] {
        var behind = ByteWriter()
        behind.versionID(link.version)
        behind.varint(UInt64(baseSize))
        behind.varint(UInt64(link.body))
        behind.integer(baseChecksum)
        behind.integer(checksum)
        if deflated.isEmpty {
            behind.raw(streams)
        } else {
            behind.varint(UInt64(streams.count))
            behind.raw(deflated)
        }
        var way = link.wayBefore
        while true {
            var out = ByteWriter()
            out.bytes.reserveCapacity(16 + behind.bytes.count)
            out.bytes.append(deflated.isEmpty ? 0 : 1)
            out.varint(UInt64(link.place))
            out.varint(UInt64(way))
            let size = out.bytes.count + behind.bytes.count
            if way == link.wayBefore + size {
                out.raw(behind.bytes)
                return out.bytes
            }
            way = link.wayBefore + size
        }
    }
}
