/// The history as one run of bytes: a cache, so that opening a large store does not read every record.
///
///     index   = magic "LLVSHIX7" · size of mark varint · mark (the storage's) · branches varint · (size varint · name, or 255 u8 and its
///     SHA-256 if it is longer than 64 bytes) ...
///             · rows varint · row ... · persisted map
///     row     = 255 u8 for a version that was given up; else version id · timestamp · checksum u32 · value data size varint
///             · changes × 32 + traits varint (1: labels are true, 2: preserves, 4: ids are known, 8: made at another time,
///             16: undoes)
///             · hash of each id that it changed u32 × changes, if they are known · when it was made, if at another time: the difference
///             of the bits from the timestamp's, zigzag varint
///             · predecessors: 0, or how many rows back varint, twice · branch + 1 varint
///             · segment varint (place in the mark) · offset: distance from the end of the row before's record, zigzag varint · length
///             varint
///
///     timestamp = bits of the f64, as the difference from those of the row before: zigzag varint, so small for versions that were made one
///     after another
///
///     persisted map = 0 u8 if there is none; else 1 u8 · id of the flat map (16 bytes) · row of its version varint
///             · row + 1 of the version that it is patched to, 0 for none, varint · size of the patch varint · patch
///                     (2 and 3 u8 in place of 0 and 1 in a store whose values may be differences)
///
/// The number of a row is the ordinal of its version in the process that loads the index, and in all later ones that load its successors:
/// flat map and patch name versions by it. Rows come after those of their predecessors. Any inconsistency invalidates the whole index. The
/// checksum is in the storage's envelope.
enum HistoryIndex {
    private static let magic: UInt64 = 0x3758_4948_5356_4C4C

    private static let hole: UInt8 = 255

    /// Encodes the history. The caller holds the store's lock, at least for reading.
    static func encode(
        _ history: History, _ persisted: PersistedMap?, mark: [UInt8], mayHaveDifferences: Bool = false,
        place: (RecordPlace) -> RecordPlace = { $0 }
    ) -> [UInt8] {
        let differences: UInt8 = mayHaveDifferences ? 2 : 0
        var out = ByteWriter()
        out.bytes.reserveCapacity(64 + mark.count + history.liveCount * 48)
        out.integer(magic)
        out.varint(UInt64(mark.count))
        out.raw(mark)
        out.varint(UInt64(history.branchNames.count))
        for name in history.branchNames {
            out.varint(UInt64(name.key.count))
            out.raw(name.key)
        }
        out.varint(UInt64(history.rows.count))
        var end: UInt64 = 0, time: UInt64 = 0
        for i in history.rows.indices {
            let row = history.rows[i]
            guard row.state == .live else { out.bytes.append(hole); continue }
            let at = place(row.place)
            out.versionID(history.id(UInt32(truncatingIfNeeded: i)))
            out.zigzag(row.timestamp.bitPattern &- time)
            time = row.timestamp.bitPattern
            out.integer(row.checksum)
            out.varint(row.valueDataSize)
            let hashes = row.traits.contains(.keysAreKnown) ? history.keyHashes(of: UInt32(truncatingIfNeeded: i)) : nil
            out.varint(
                UInt64(row.changeCount) << 5 | (row.traits.contains(.changeKindsVerified) ? 1 : 0)
                    | (row.traits.contains(.preserves) ? 2 : 0)
                    | (hashes == nil ? 0 : 4) | (row.made == row.timestamp ? 0 : 8) | (row.traits.contains(.undoes) ? 16 : 0))
            for hash in hashes ?? [] { out.integer(hash) }
            if row.made != row.timestamp { out.zigzag(row.made.bitPattern &- row.timestamp.bitPattern) }
            for predecessor in [row.first, row.second] { out.varint(predecessor == History.none ? 0 : UInt64(i) - UInt64(predecessor)) }
            out.varint(row.branch == History.none ? 0 : UInt64(row.branch) + 1)
            out.varint(UInt64(at.segment))
            out.zigzag(at.offset &- end)
            out.varint(at.length)
            end = at.offset &+ at.length
        }
        if let persisted {
            out.bytes.append(1 | differences)
            out.integer(persisted.id.high.byteSwapped)
            out.integer(persisted.id.low.byteSwapped)
            out.varint(UInt64(persisted.base))
            out.varint(persisted.patch.map { UInt64($0.ordinal) + 1 } ?? 0)
            out.varint(UInt64(persisted.patch?.bytes.count ?? 0))
            out.raw(persisted.patch?.bytes ?? [])
        } else {
            out.bytes.append(differences)
        }
        return out.bytes
    }

    /// Decodes a history. Calls `resume` with the storage's mark; it returns this process's numbers for the segments. Returns nil if the
    /// index is invalid.
    /// - Throws: errors of the control, which is checked at each row.
    static func decode(
        _ bytes: [UInt8], _ control: PacedControl = .none, resume: ([UInt8]) -> [UInt32]?
    ) throws -> (history: History, persisted: PersistedMap?, mayHaveDifferences: Bool)? {
        try bytes.withUnsafeBytes { raw in
            var reader = ByteReader(raw)
            guard reader.integer(UInt64.self) == magic, let markSize = reader.count(atMost: reader.remaining),
                let mark = reader.take(markSize),
                let branchCount = reader.count(atMost: reader.remaining)
            else { return nil }
            var branches: [BranchName] = []
            for _ in 0..<branchCount {
                guard let size = reader.count(atMost: reader.remaining), let name = reader.take(size).flatMap({ BranchName(key: $0) })
                else { return nil }
                branches.append(name)
            }
            guard let count = reader.count(atMost: reader.remaining) else { return nil }
            // The whole index is decoded before the storage resumes after it.
            let history = History()
            do { try history.reserve(count) } catch { return nil }
            var end: UInt64 = 0, time: UInt64 = 0
            for number in 0..<count {
                try control.step()
                if reader.peek() == hole {
                    _ = reader.integer(UInt8.self)
                    history.appendHole()
                    continue
                }
                guard let id = reader.versionID(), let later = reader.zigzag(), Double(bitPattern: time &+ later).isFinite,
                    let checksum = reader.integer(UInt32.self), let valueDataSize = reader.varint(),
                    let changes = reader.count(atMost: Limits.changesPerVersion << 5 | 31),
                    let hashes = changes & 4 != 0 ? reader.take((changes >> 5) * 4) : UnsafeRawBufferPointer(start: nil, count: 0),
                    let earlier = changes & 8 != 0 ? reader.zigzag() : 0,
                    let first = reader.count(atMost: number),
                    let second = reader.count(atMost: number), let branch = reader.count(atMost: branches.count),
                    let segment = reader.count(atMost: Int(UInt32.max - 1)), let distance = reader.zigzag(), let length = reader.varint(),
                    length < UInt64(Int64.max)
                else { return nil }
                time &+= later
                let made = Double(bitPattern: time &+ earlier)
                guard made.isFinite else { return nil }
                let offset = end &+ distance
                guard offset < UInt64(Int64.max) else { return nil }
                end = offset + length
                guard
                    history.appendLive(
                        id: id, timestamp: Double(bitPattern: time), valueDataSize: valueDataSize,
                        first: first == 0 ? History.none : UInt32(number - first),
                        second: second == 0 ? History.none : UInt32(number - second),
                        branch: branch == 0 ? nil : branches[branch - 1],
                        place: RecordPlace(segment: UInt32(segment), offset: offset, length: length),
                        checksum: checksum, changeCount: changes >> 5,
                        traits: (changes & 1 != 0 ? History.Traits.changeKindsVerified : []).union(changes & 2 != 0 ? .preserves : [])
                            .union(changes & 16 != 0 ? .undoes : []),
                        made: made)
                else { return nil }
                if changes & 4 != 0 {
                    history.noteKeys(UInt32(number), count: changes >> 5) {
                        UInt32(littleEndian: hashes.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self))
                    }
                }
            }
            history.findHeads()
            guard let told = reader.integer(UInt8.self), told <= 3 else { return nil }
            var persisted: PersistedMap?
            if told & 1 != 0 {
                guard let id = reader.blobID(), let base = reader.count(atMost: count - 1), let patched = reader.count(atMost: count),
                    let size = reader.count(atMost: reader.remaining), let patch = reader.take(size), history.isLive(base),
                    patched == 0 || history.isLive(patched - 1)
                else { return nil }
                persisted = PersistedMap(
                    id: RandomName(id), base: UInt32(base), patch: patched == 0 ? nil : (UInt32(patched - 1), Array(patch)),
                    versionLimit: count)
            }
            guard reader.remaining == 0, let segments = resume(Array(mark)), history.renumberSegments(segments) else { return nil }
            return (history, persisted, told & 2 != 0)
        }
    }
}
