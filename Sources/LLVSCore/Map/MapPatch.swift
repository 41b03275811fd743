/// The differences of a map from a persisted map. If they are few, they are written instead of another persisted map.
///
///     patch   = entries varint · (number: distance from the one before varint · entry) ...
///             · keys varint · (size varint · key · 0 u8 if it was removed, else 1 u8 · entry) ...
///     entry   = storing version varint · size + 1 (0: unknown) varint
///             · offset of the body: distance from the entry's before, zigzag varint (it is the same in records of a kind)
///
/// The numbers are those of the persisted map's entries, and ascend. The keys are those removed and added, and ascend as well. Versions are
/// the numbers of the history index that holds the patch.
struct MapPatch {
    /// Changed entries of the persisted map, sorted by number.
    private var updates: [(number: Int, entry: MapEntry)] = []
    /// Added and removed keys, in order.
    private var keys = KeyArena()

    /// Nil if more than `limit` keys differ.
    static func encode(_ flat: FlatMap, to map: MapNode?, limit: Int) -> [UInt8]? {
        struct TooMuch: Error {}
        var updates = ByteWriter(), keys = ByteWriter()
        var updateCount = 0, keyCount = 0, last = 0, updateOffset: UInt64 = 0, keyOffset: UInt64 = 0
        func put(_ entry: MapEntry, behind offset: inout UInt64, in out: inout ByteWriter) {
            out.varint(UInt64(entry.version))
            out.varint(entry.size == MapEntry.unknownSize ? 0 : UInt64(entry.size) + 1)
            let distance = Int64(bitPattern: entry.bodyOffset &- offset)
            out.varint(UInt64(bitPattern: distance << 1 ^ distance >> 63))
            offset = entry.bodyOffset
        }
        do {
            try MapNode.forEachDifference(MapNode(flat), map) { key, old, new in
                guard updateCount + keyCount < limit else { throw TooMuch() }
                if old != nil, let new, let number = flat.find(key, beneath: flat.root) {
                    updates.varint(UInt64(number - last))
                    last = number
                    put(new, behind: &updateOffset, in: &updates)
                    updateCount += 1
                } else {
                    keys.varint(UInt64(key.count))
                    keys.raw(key)
                    keys.bytes.append(new == nil ? 0 : 1)
                    if let new { put(new, behind: &keyOffset, in: &keys) }
                    keyCount += 1
                }
            }
        } catch { return nil }
        var out = ByteWriter()
        out.varint(UInt64(updateCount))
        out.raw(updates.bytes)
        out.varint(UInt64(keyCount))
        out.raw(keys.bytes)
        return out.bytes
    }

    /// Nil if the bytes are invalid. `count`: entries of the persisted map. `versionLimit`: storing versions are below it.
    init?(_ bytes: [UInt8], count: Int, versionLimit: Int) {
        guard count > 0, bytes.withUnsafeBytes({ read($0, count: count, versionLimit: versionLimit) }) else { return nil }
    }

    private mutating func read(_ bytes: UnsafeRawBufferPointer, count: Int, versionLimit: Int) -> Bool {
        var reader = ByteReader(bytes)
        var offset: UInt64 = 0
        func entry() -> MapEntry? {
            guard let version = reader.count(atMost: versionLimit - 1), let size = reader.count(atMost: Limits.valueSize + 1),
                let zigzag = reader.varint()
            else { return nil }
            offset = offset &+ (zigzag >> 1 ^ (0 &- (zigzag & 1)))
            return MapEntry(version: UInt32(version), size: size == 0 ? MapEntry.unknownSize : UInt32(size - 1), bodyOffset: offset)
        }
        guard let updateCount = reader.count(atMost: min(count, reader.remaining)) else { return false }
        updates.reserveCapacity(updateCount)
        var last = 0
        for i in 0..<updateCount {
            guard let distance = reader.count(atMost: count - 1 - last), distance > 0 || i == 0, let entry = entry() else { return false }
            last += distance
            updates.append((last, entry))
        }
        offset = 0
        guard let keyCount = reader.count(atMost: reader.remaining) else { return false }
        var before: UnsafeRawBufferPointer?
        for _ in 0..<keyCount {
            guard let size = reader.count(atMost: Limits.valueIDSize), size > 0, let key = reader.take(size),
                let isThere = reader.integer(UInt8.self), isThere <= 1
            else { return false }
            if let before, Bytes.compare(before, key) >= 0 { return false }
            before = key
            if isThere == 0 {
                keys.append(key, nil)
            } else {
                guard let entry = entry() else { return false }
                keys.append(key, entry)
            }
        }
        return reader.remaining == 0
    }

    /// Returns the patched map; nil is the empty one. `flat` must have as many entries as `init` was given.
    /// - Parameter other: makes a map with other entries, given by ascending numbers.
    func apply(
        to flat: FlatMap, _ other: (FlatMap, [(number: Int, entry: MapEntry)]) throws -> FlatMap? = { FlatMap($0, replacing: $1) }
    ) throws -> MapNode? {
        // Replacing the slots costs 16 bytes per value, copying the paths to a few entries less.
        if updates.count >= flat.count / 512, let replaced = try other(flat, updates) {
            return try keys.withChanges(isSorted: true) { try MapNode.applying($0, to: MapNode(replaced)) }
        }
        var changes = KeyArena()
        for (number, entry) in updates { flat.withKey(number) { changes.append($0, entry) } }
        let updated = try changes.withChanges(isSorted: true) { try MapNode.applying($0, to: MapNode(flat)) }
        return try keys.withChanges(isSorted: true) { try MapNode.applying($0, to: updated) }
    }

    // MARK: Single ids

    /// Returns the change of a key that was added or removed; nil if it was neither.
    func change(of key: UnsafeRawBufferPointer) -> MapChange? { keys.find(key) }

    /// Returns the new entry for an entry of the persisted map; nil if it is unchanged.
    func update(of number: Int) -> MapEntry? {
        var low = 0, high = updates.count
        while low < high {
            let middle = (low + high) >> 1
            if updates[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low < updates.count && updates[low].number == number ? updates[low].entry : nil
    }
}
