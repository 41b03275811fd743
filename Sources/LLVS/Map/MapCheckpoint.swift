/// The map of one version as one run of bytes: a cache, so that a large store need not replay its history to read.
///
///     checkpoint = magic "LLVSMAP1" · version id · storing versions varint · (version id · checksum of its record u32) ...
///                · entries varint · entry ...
///     entry      = bytes shared with the key before varint · size of the rest varint · rest · storing version varint
///                · size + 1 (0: not told) varint · offset of the body in the record varint
///
/// Keys ascend. The storage's envelope carries the checksum. A storing version whose record is another one now
/// (the same version written again) has its bodies looked up anew.
enum MapCheckpoint {
    private static let magic: UInt64 = 0x3150_414D_5356_4C4C

    static func encode(_ version: VersionID, _ root: MapNode?, stored: (UInt32) -> (id: VersionID, checksum: UInt32)) -> [UInt8] {
        var numbers: [UInt32: UInt64] = [:]
        var order: [UInt32] = []
        root?.forEach { _, entry in
            if numbers[entry.version] == nil { numbers[entry.version] = UInt64(order.count); order.append(entry.version) }
            return true
        }
        var out = ByteWriter()
        out.bytes.reserveCapacity(64 + order.count * 24 + (root?.count ?? 0) * 40)
        out.integer(magic)
        out.versionID(version)
        out.varint(UInt64(order.count))
        for ordinal in order {
            let (id, checksum) = stored(ordinal)
            out.versionID(id)
            out.integer(checksum)
        }
        out.varint(UInt64(root?.count ?? 0))
        var last: [UInt8] = []
        root?.forEach { key, entry in
            let shared = last.withUnsafeBytes { MapNode.commonPrefix($0, key) }
            out.varint(UInt64(shared))
            out.varint(UInt64(key.count - shared))
            out.raw(UnsafeRawBufferPointer(rebasing: key[shared...]))
            out.varint(numbers[entry.version] ?? 0)
            out.varint(entry.size == MapEntry.unknownSize ? 0 : UInt64(entry.size) + 1)
            out.varint(entry.bodyOffset)
            last.removeAll(keepingCapacity: true)
            last.append(contentsOf: key)
            return true
        }
        return out.bytes
    }

    /// Of which version the checkpoint is; nil when it is none.
    static func version(_ bytes: [UInt8]) -> VersionID? {
        bytes.withUnsafeBytes { raw in
            var reader = ByteReader(raw)
            return reader.integer(UInt64.self) == magic ? reader.versionID() : nil
        }
    }

    /// The map; nil when the checkpoint is void. `known` gives ordinal and record checksum of a version.
    static func decode(_ bytes: [UInt8], known: (VersionID) -> (ordinal: UInt32, checksum: UInt32)?) -> (version: VersionID, root: MapNode?)? {
        bytes.withUnsafeBytes { raw in
            var reader = ByteReader(raw)
            guard reader.integer(UInt64.self) == magic, let version = reader.versionID(), let storedCount = reader.count(atMost: reader.remaining) else { return nil }
            var stored: [(ordinal: UInt32, same: Bool)] = []
            stored.reserveCapacity(storedCount)
            for _ in 0..<storedCount {
                guard let id = reader.versionID(), let checksum = reader.integer(UInt32.self), let (ordinal, current) = known(id) else { return nil }
                stored.append((ordinal, current == checksum))
            }
            guard let count = reader.count(atMost: reader.remaining) else { return nil }
            var arena = KeyArena()
            var key: [UInt8] = []
            for _ in 0..<count {
                guard let shared = reader.count(atMost: key.count), let size = reader.count(atMost: Limits.valueIDSize - shared), let rest = reader.take(size),
                      let number = reader.count(atMost: stored.count - 1), let length = reader.count(atMost: Limits.valueSize + 1), let offset = reader.varint()
                else { return nil }
                // Ascending: the first byte that is not shared must be higher than the one it replaces.
                guard let next = rest.first, shared == key.count || next > key[shared] else { return nil }
                key.removeLast(key.count - shared)
                key.append(contentsOf: rest)
                let (ordinal, same) = stored[number]
                let isKnown = same && length > 0
                key.withUnsafeBytes {
                    arena.append($0, MapEntry(version: ordinal, size: isKnown ? UInt32(length - 1) : MapEntry.unknownSize, bodyOffset: isKnown ? offset : 0))
                }
            }
            guard reader.remaining == 0 else { return nil }
            return (version, arena.withChanges(isSorted: true) { MapNode.applying($0, to: nil) })
        }
    }
}
