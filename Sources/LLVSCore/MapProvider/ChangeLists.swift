/// The recorded changes of versions, in memory, so that differences, merges and maps need not read the records again.
///
/// A ring of bytes holds the newest lists, and a table holds their offsets, indexed by the low bits of the version's ordinal. A new list
/// overwrites the oldest; nothing is searched. Safe from all threads.
///
///     list   = changes varint · change ...
///     change = kind u8 (remove for both kinds of removal), with bit 3 if a fingerprint follows · id size varint · id
///              · for preserve: ordinal of the storing version varint
///              · for insert, update and preserve: value size varint · offset of the body varint · [fingerprint u32]
package final class ChangeLists: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// One change of a version. The key is borrowed.
    package struct Change {
        package var kind: Value.Change.Kind
        package var key: UnsafeRawBufferPointer
        /// The entry that prevails from here on; nil for removals.
        package var entry: MapEntry?
        /// The fingerprint of the value's bytes, if known. Different fingerprints imply different bytes.
        var fingerprint: UInt32?
    }

    /// The table of offsets takes an eighth of the default size of the lists.
    private static let mostSlots = 1 << 16
    /// The most bytes of tag, sizes, versions and fingerprint of a change.
    private static let changeHeadSize = 40
    /// In longer lists fingerprints are not searched, since comparing the bytes is as fast.
    private static let longestSearched = 64

    private let lock = Lock(.maps)
    /// Mapped at full size from the beginning; only written pages take memory.
    private let memory: MappedMemory?
    private let ring: UnsafeMutableRawPointer
    private let size: Int
    /// All bytes ever written. A list that begins at p is present while `end - p` is at most `size`.
    private var end = 0
    private var slots: [(ordinal: UInt32, start: Int)]

    init(capacity: Int) {
        memory = MappedMemory(count: max(64 << 10, capacity))
        size = memory?.count ?? 64 << 10
        ring = memory?.base ?? .allocate(byteCount: size, alignment: 8)
        slots = Array(repeating: (History.none, 0), count: 1_024)
    }
    deinit { if memory == nil { ring.deallocate() } }

    package static func fingerprint(_ data: UnsafeRawBufferPointer) -> UInt32 { Bytes.crc32c(data) }

    /// Stores the changes of a version, unless they are too many.
    func insert(_ ordinal: UInt32, _ changes: [Change]) {
        guard changes.count <= MapPolicy.longestKeptList else { return }
        var room = 10
        for change in changes { room += change.key.count + ChangeLists.changeHeadSize }
        lock.lock()
        defer { lock.unlock() }
        guard let start = reserve(room) else { return }
        var at = ring + start % size
        put(UInt64(changes.count), &at)
        for change in changes {
            let kind = change.entry == nil ? Value.Change.Kind.remove : change.kind
            at.storeBytes(of: kind.rawValue | (change.fingerprint == nil ? 0 : 8), as: UInt8.self)
            at += 1
            put(UInt64(change.key.count), &at)
            if let key = change.key.baseAddress { memcpy(at, key, change.key.count) }
            at += change.key.count
            guard let entry = change.entry else { continue }
            if change.kind == .preserve { put(UInt64(entry.version), &at) }
            put(UInt64(entry.size), &at)
            put(entry.bodyOffset, &at)
            guard let fingerprint = change.fingerprint else { continue }
            at.storeBytes(of: fingerprint, as: UInt32.self)
            at += 4
        }
        end = start + (at - (ring + start % size))
        note(ordinal, start)
    }

    /// Calls `body` with each change of a version in order of the ids; false if they are not in memory. `body` must not call the store.
    package func forEach(_ ordinal: UInt32, _ body: (Change) -> Void) -> Bool { forEach(ordinal, atMost: .max, body) }

    /// `most`: lists of more changes count as absent.
    private func forEach(_ ordinal: UInt32, atMost most: UInt64, _ body: (Change) -> Void) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        let slot = slots[Int(ordinal) & (slots.count - 1)]
        guard slot.ordinal == ordinal, end - slot.start <= size else { return false }
        var at = UnsafeRawPointer(ring + slot.start % size)
        let count = take(&at)
        guard count <= most else { return false }
        for _ in 0..<count {
            let tag = at.load(as: UInt8.self)
            at += 1
            guard let kind = Value.Change.Kind(rawValue: tag & 7) else { return false }
            let count = Int(truncatingIfNeeded: take(&at))
            var change = Change(kind: kind, key: UnsafeRawBufferPointer(start: at, count: count))
            at += count
            switch kind {
            case .insert, .update, .preserve:
                let version = kind == .preserve ? UInt32(truncatingIfNeeded: take(&at)) : ordinal
                let size = UInt32(truncatingIfNeeded: take(&at))
                change.entry = MapEntry(version: version, size: size, bodyOffset: take(&at))
                if tag & 8 != 0 {
                    change.fingerprint = at.loadUnaligned(as: UInt32.self)
                    at += 4
                }
            case .remove, .preserveRemoval: break
            }
            body(change)
        }
        return true
    }

    /// Returns the fingerprint of the bytes that a version with few changes stored under an id; nil if unknown.
    package func fingerprint(_ ordinal: UInt32, _ key: UnsafeRawBufferPointer) -> UInt32? {
        var found: UInt32?
        _ = forEach(ordinal, atMost: UInt64(ChangeLists.longestSearched)) {
            if $0.fingerprint != nil, Bytes.equal($0.key, key) { found = $0.fingerprint }
        }
        return found
    }

    func removeAll() {
        lock.withLock { for i in slots.indices { slots[i] = (History.none, 0) } }
    }

    // MARK: The ring

    /// Returns the offset of `room` contiguous bytes; nil if they are too many. Lists that they overwrite are lost.
    private func reserve(_ room: Int) -> Int? {
        guard room <= size / 4 else { return nil }
        let left = size - end % size
        if left < room { end += left }
        return end
    }

    private func note(_ ordinal: UInt32, _ start: Int) {
        while slots.count < ChangeLists.mostSlots {
            let old = slots[Int(ordinal) & (slots.count - 1)]
            guard old.ordinal != ordinal, old.ordinal != History.none, end - old.start <= size else { break }
            let before = slots
            slots = Array(repeating: (History.none, 0), count: before.count * 2)
            for slot in before where slot.ordinal != History.none { slots[Int(slot.ordinal) & (slots.count - 1)] = slot }
        }
        slots[Int(ordinal) & (slots.count - 1)] = (ordinal, start)
    }

    @inline(__always)
    private func put(_ value: UInt64, _ at: inout UnsafeMutableRawPointer) {
        var v = value
        while v >= 0x80 {
            at.storeBytes(of: UInt8(truncatingIfNeeded: v) | 0x80, as: UInt8.self)
            at += 1
            v >>= 7
        }
        at.storeBytes(of: UInt8(truncatingIfNeeded: v), as: UInt8.self)
        at += 1
    }

    @inline(__always)
    private func take(_ at: inout UnsafeRawPointer) -> UInt64 {
        var value: UInt64 = 0, shift: UInt64 = 0
        while true {
            let b = at.load(as: UInt8.self)
            at += 1
            value |= UInt64(b & 0x7F) << shift
            if b < 0x80 { return value }
            shift += 7
        }
    }
}
