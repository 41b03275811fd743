/// Stores values of a pack as differences from earlier values of the same pack: docs/pack-format.md, "Values as differences".
struct PackDifferences {
    /// A value of the pack.
    private struct Node {
        /// The place of the value; 0 if it is whole.
        var place: Int
        var size: Int
        /// The stored bytes of the differences on its way, its own included; 0 if it is whole.
        var way: Int
        var checksum: UInt32
        /// The version that stored its base; nil if it is whole.
        var base: VersionID?
    }
    private struct Key: Hashable {
        var version: VersionID
        var id: [UInt8]
    }

    /// The most values that are noted. If there are more, all are discarded, and the next values are whole.
    private static let mostNodes = 65_536

    private let store: Store
    private var nodes: [Key: Node] = [:]
    /// The version of the pack that stored the last value of each id.
    private var last: [[UInt8]: VersionID] = [:]
    /// The values of the version that is being written.
    private var new: [(id: [UInt8], node: Node)] = []
    /// The bytes of the values that are differences.
    private var total = 0

    init(_ store: Store) { self.store = store }

    /// Whether the pack can have no more differences.
    var isFull: Bool { total >= PackFormat.writtenDifferences - PackFormat.recordLimit }

    /// Begins a version. Called before its payload is made.
    mutating func begin() { new = [] }

    /// Notes the values of the version. Called after the version is in the pack.
    mutating func keepValues(of version: VersionID) {
        if nodes.count + new.count > PackDifferences.mostNodes { (nodes, last) = ([:], [:]) }
        for (id, node) in new {
            nodes[Key(version: version, id: id)] = node
            last[id] = version
            if node.base != nil { total += node.size }
        }
        new = []
    }

    /// Returns the stored bytes of a value as a difference; nil if it is to be whole. If an earlier value cannot be read, the value is sent
    /// whole as well.
    mutating func difference(_ entry: RecordTable.Entry, _ data: UnsafeRawBufferPointer, of record: PackRecord) throws
        -> [UInt8]?
    {
        guard Differencing.sizes.contains(data.count) else { return nil }
        let id = Array(entry.id), checksum = Bytes.crc32c(data)
        if entry.kind == .update, !isFull, let made = try? make(id, entry, data, checksum, of: record) {
            new.append((id, made.node))
            return made.stored
        }
        new.append((id, Node(place: 0, size: data.count, way: 0, checksum: checksum, base: nil)))
        return nil
    }

    private func make(
        _ id: [UInt8], _ entry: RecordTable.Entry, _ data: UnsafeRawBufferPointer, _ checksum: UInt32, of record: PackRecord
    ) throws -> (stored: [UInt8], node: Node)? {
        guard last[id] != nil, let nearest = try nearest(id, of: record) else { return nil }
        let way = way(nearest, id)
        guard let before = way.first, let whole = way.last, whole.node.place == 0 else { return nil }
        let place = before.node.place + 1
        guard place <= Differencing.largestPlace else { return nil }
        /// Returns the most stored bytes of a difference from the first value of a way; nil if that value may not be the base.
        func room(_ way: ArraySlice<(version: VersionID, node: Node)>) -> Int? {
            // If the id is not a content id, the reader may have recorded another value under it.
            guard let base = way.first, base.version.hasContentForm, base.node.place < place,
                Differencing.isWithinLimits(way.map(\.node.size), of: data.count),
                case let room = min(whole.node.size / 2 - base.node.way, data.count - 64), room > 0
            else { return nil }
            return room
        }
        func made(_ stored: [UInt8], on base: (version: VersionID, node: Node)) -> (stored: [UInt8], node: Node) {
            let node = Node(
                place: place, size: data.count, way: base.node.way + stored.count, checksum: checksum, base: base.version)
            return (stored, node)
        }
        if let copied = try copied(id, entry, data, checksum, of: record, place: place, room) {
            return made(copied.stored, on: copied.base)
        }
        let wanted = Differencing.basePlace(of: place)
        guard let index = way.firstIndex(where: { $0.node.place <= wanted }) else { return nil }
        for at in index..<way.count {
            guard let room = room(way[at...]) else { continue }
            let base = way[at]
            let stored: [UInt8]? = try withValue(base.version, base.node, entry.id) { bytes in
                try ValueDifference.make(
                    data, checksum: checksum, from: bytes, checksum: base.node.checksum,
                    link: .init(version: base.version, body: 0, place: place, wayBefore: base.node.way), room: room, deflates: false)
            }
            return stored.map { made($0, on: base) }
        }
        return nil
    }

    /// Returns the difference that the store has, with plain streams; nil if it has none, or its base is not in the pack.
    private func copied(
        _ id: [UInt8], _ entry: RecordTable.Entry, _ data: UnsafeRawBufferPointer, _ checksum: UInt32, of record: PackRecord, place: Int,
        _ room: (ArraySlice<(version: VersionID, node: Node)>) -> Int?
    ) throws -> (stored: [UInt8], base: (version: VersionID, node: Node))? {
        guard entry.isDifference else { return nil }
        return try store.records.withStored(
            record.place, at: UInt64(entry.bodyOffset), size: entry.size, id: entry.id, stored: record.id, anew: false
        ) { form -> (stored: [UInt8], base: (version: VersionID, node: Node))? in
            guard case .difference(let bytes) = form, case .difference(let difference) = ValueDifference.read(bytes, size: entry.size),
                difference.checksum == checksum, case let way = way(difference.base, id), let base = way.first,
                base.node.size == difference.baseSize, base.node.checksum == difference.baseChecksum, let most = room(way[...])
            else { return nil }
            let link = ValueDifference.Link(version: difference.base, body: 0, place: place, wayBefore: base.node.way)
            return try difference.plain(link, size: data.count, atMost: most).map { ($0, base) }
        } ?? nil
    }

    /// Returns the version of the pack that stored the value that prevails at a predecessor; nil if the pack has no such version.
    private func nearest(_ id: [UInt8], of record: PackRecord) throws -> VersionID? {
        for predecessor in record.header.predecessors {
            if nodes[Key(version: predecessor, id: id)] != nil { return predecessor }
            let ordinal = try store.requireOrdinal(predecessor)
            guard let entry = try id.withUnsafeBytes({ try store.maps.entry($0, at: ordinal) }) else { continue }
            let version = store.versionID(entry.version)
            if nodes[Key(version: version, id: id)] != nil { return version }
        }
        return nil
    }

    /// Returns a value and the other values on its way, the whole value last. The array is empty if the pack does not have the value.
    private func way(_ version: VersionID, _ id: [UInt8]) -> [(version: VersionID, node: Node)] {
        var way: [(version: VersionID, node: Node)] = [], at: VersionID? = version
        while let version = at, let node = nodes[Key(version: version, id: id)], way.count <= Differencing.mostSteps {
            way.append((version, node))
            at = node.base
        }
        return way
    }

    /// Calls with a value of the store. Returns nil if the store does not have it, or has another size.
    private func withValue<R>(
        _ version: VersionID, _ node: Node, _ id: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> R?
    ) throws -> R? {
        let records = store.records
        if let known = records.bases.find(version, id, size: node.size, checksum: node.checksum) {
            return try known.withUnsafeBytes(body)
        }
        guard let place = store.recordPlaces(of: version).first else { return nil }
        let entry = MapEntry(version: 0, size: MapEntry.unknownSize, bodyOffset: 0)
        return try records.withBody(place, entry, id: id, stored: version) { bytes in
            guard bytes.count == node.size else { return nil }
            records.bases.keep(version, id, try Memory.copy(bytes, "Keeping a value"), checksum: node.checksum)
            return try body(bytes)
        }
    }
}
