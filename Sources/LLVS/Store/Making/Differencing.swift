/// What is known for storing values as differences: whether a store does, and the ways of values that were saved lately. Safe from all
/// threads.
final class Differencing: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// A value on the way from one to the value that is stored whole.
    struct Node {
        var version: VersionID
        /// 0: it is stored whole.
        var place: Int
        /// Of the value.
        var size: Int
        /// Bytes that are stored for it.
        var stored: Int
        /// Stored bytes of the differences from the one that is stored whole up to here.
        var way: Int
        /// Where its body begins in its record; 0: not known.
        var body: Int
        /// Of its bytes; nil when that is not known.
        var checksum: UInt32?
    }
    /// A value that is about to be stored, and how.
    struct New {
        var id: [UInt8]
        var index: Int
        /// From this value on; those behind it are on the way.
        var nodes: [Node]
        /// Its bytes, where others will stand on it.
        var bytes: [UInt8] = []
    }
    private struct Known {
        var id: [UInt8]
        var nodes: [Node]
    }

    /// Sizes of values that are stored as differences.
    static let sizes = 1_024...(1 << 20)
    /// The largest place that is given: the next value is stored whole.
    static let largestPlace = 255
    /// How many differences lead to the value that is stored whole, at most.
    static let mostSteps = 4
    /// Of versions with more changes nothing is kept in memory for the next ones.
    static let mostKept = 16
    private static let mostKnown = 64, mostFailures = 64

    /// Returns the place of the base for a place above 0: the last digit to the base 4 that is not 0 is cleared.
    static func basePlace(of place: Int) -> Int {
        var digit = 1
        while place > 0, place / digit % 4 == 0 { digit *= 4 }
        return place - place / digit % 4 * digit
    }
    /// Returns whether a value may be a difference, given the sizes of the values from its base to the one that is stored whole.
    static func isWithinLimits(_ way: [Int], of size: Int) -> Bool {
        way.count <= mostSteps && way.allSatisfy { $0 <= 2 * size } && way.reduce(size, +) <= 9 * size
    }

    private let lock = Lock(.leaf)
    private var isOn: Bool, isMet: Bool
    private var known: [Known] = []
    /// Of ids whose last values had nothing in common: how often, and how many saves are not tried.
    private var failures: [[UInt8]: (count: Int, skipped: Int)] = [:]
    private var stored: (count: UInt64, stored: UInt64, whole: UInt64) = (0, 0, 0)
    private let choice: Store.Differences

    init(_ choice: Store.Differences) {
        self.choice = choice
        isOn = choice == .on
        isMet = isOn
    }

    /// Whether values are stored as differences.
    var isUsed: Bool { lock.withLock { isOn } }
    /// Whether the store has differences, or may have.
    var mayBeMet: Bool { lock.withLock { isMet } }
    /// The store has differences, or may have: with `auto` there will be more.
    func note() {
        lock.withLock {
            isMet = true
            isOn = choice != .off
        }
    }

    /// The way of a value; nil when it is not known.
    func way(of version: VersionID, _ id: UnsafeRawBufferPointer) -> [Node]? {
        lock.withLock {
            guard let index = known.lastIndex(where: { $0.nodes[0].version == version && $0.id.elementsEqual(id) }) else { return nil }
            return known[index].nodes
        }
    }

    /// Of values that were stored as differences: how many, the bytes stored for them, and their own bytes.
    var counts: (count: UInt64, stored: UInt64, whole: UInt64) { lock.withLock { stored } }

    /// Keeps the way of a value that was stored, for the next one of its id.
    func keep(_ id: [UInt8], _ nodes: [Node]) {
        guard let node = nodes.first else { return }
        lock.withLock {
            if node.place > 0 {
                stored.count &+= 1
                stored.stored &+= UInt64(node.stored)
                stored.whole &+= UInt64(node.size)
            }
            if let index = known.lastIndex(where: { $0.id == id }) { known.remove(at: index) }
            known.append(Known(id: id, nodes: nodes))
            if known.count > Differencing.mostKnown { known.removeFirst() }
        }
    }

    /// Whether a difference of the id's next value is to be looked for.
    func shouldTry(_ id: UnsafeRawBufferPointer) -> Bool {
        lock.withLock {
            guard !failures.isEmpty, let index = failures.index(forKey: Array(id)) else { return true }
            guard failures.values[index].skipped > 0 else { return true }
            failures.values[index].skipped -= 1
            return false
        }
    }

    /// Keeps in mind that the id's last two values had nothing in common, or had.
    func note(_ id: UnsafeRawBufferPointer, isMade: Bool) {
        lock.withLock {
            if isMade {
                if !failures.isEmpty { failures[Array(id)] = nil }
                return
            }
            if failures.count >= Differencing.mostFailures { failures = [:] }
            let count = (failures[Array(id)]?.count ?? 0) + 1
            failures[Array(id)] = (count, count >= 2 ? 8 : 0)
        }
    }
}

/// The versions that are stored together, of which some may build on others: their values are in memory, and their records nowhere yet.
struct DifferenceBatch {
    private var drafts: [UInt32: Draft] = [:]
    private var ways: [UInt32: [[UInt8]: [Differencing.Node]]] = [:]
    /// The ordinals of the versions.
    private var ordinals: [VersionID: UInt32] = [:]

    /// - Parameter items: of one alone, or of small values, nothing is kept.
    init(_ items: some Collection<Store.Storing>) {
        let smallest = UInt64(Differencing.sizes.lowerBound)
        guard items.count > 1, items.contains(where: { $0.draft.version.valueDataSize >= smallest }) else { return }
        for item in items {
            drafts[item.ordinal] = item.draft
            ordinals[item.draft.version.id] = item.ordinal
        }
    }

    var isEmpty: Bool { drafts.isEmpty }
    func draft(_ ordinal: UInt32) -> Draft? { drafts[ordinal] }
    func way(of ordinal: UInt32, _ id: UnsafeRawBufferPointer) -> [Differencing.Node]? { ways[ordinal]?[Array(id)] }
    mutating func keep(_ ordinal: UInt32, _ new: [Differencing.New]) {
        guard !drafts.isEmpty else { return }
        for one in new { ways[ordinal, default: [:]][one.id] = one.nodes }
    }
    /// The value that one of the versions stores, in memory.
    func bytes(_ version: VersionID, _ id: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard !drafts.isEmpty, let ordinal = ordinals[version], let change = drafts[ordinal]?.changes.change(of: id), change.written == nil,
            change.kind == .insert || change.kind == .update
        else { return nil }
        return change.data
    }
}

extension Store {
    /// The stored bytes of a value as its difference from an earlier one of its id, and what is known of its way; nil when it is stored
    /// whole. Nothing that is wrong with earlier values keeps it from being stored.
    /// - Parameters:
    ///   - view: what prevails at the first predecessor, when that is at hand.
    ///   - batch: the versions that are stored with this one.
    func difference(
        _ id: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer, of draft: Draft, _ view: DeltaChains.View?, _ batch: DifferenceBatch
    ) -> (stored: [UInt8], hasDigest: Bool, nodes: [Differencing.Node])? {
        guard Differencing.sizes.contains(data.count), draft.first != History.none, differencing.shouldTry(id) else { return nil }
        do {
            guard let nodes = try wayBefore(id, at: draft.first, view, batch), let last = nodes.last, last.place == 0,
                let before = nodes.first
            else { return nil }
            let place = before.place + 1
            guard place <= Differencing.largestPlace else { return nil }
            let wanted = Differencing.basePlace(of: place)
            guard let index = nodes.firstIndex(where: { $0.place <= wanted }) else { return nil }
            let way = nodes[index...], base = nodes[index]
            // Under an id that is not computed another store may have recorded another value, and theirs may prevail after a union.
            guard base.version.hasContentForm else { return nil }
            let room = min(last.stored / 2 - base.way, data.count - 1)
            guard room > 0, Differencing.isWithinLimits(way.map(\.size), of: data.count) else { return nil }
            let checksum = Bytes.crc32c(data)
            let made = try withBase(base, id, batch) { bytes, baseChecksum -> [UInt8]? in
                try ValueDifference.make(
                    data, checksum: checksum, from: bytes, checksum: baseChecksum,
                    link: .init(version: base.version, body: base.body, place: place, wayBefore: base.way), room: room)
            }
            differencing.note(id, isMade: made != nil)
            guard let made else { return nil }
            let node = Differencing.Node(
                version: draft.version.id, place: place, size: data.count, stored: made.count, way: base.way + made.count, body: 0,
                checksum: checksum)
            return (made, !base.version.hasContentForm, [node] + way)
        } catch { return nil }
    }

    /// Calls with the bytes of a value on which another one will stand, and their checksum.
    private func withBase<R>(
        _ node: Differencing.Node, _ id: UnsafeRawBufferPointer, _ batch: DifferenceBatch,
        _ body: (UnsafeRawBufferPointer, UInt32) throws -> R?
    ) throws -> R? {
        if let bytes = batch.bytes(node.version, id) {
            guard bytes.count == node.size else { return nil }
            return try body(bytes, node.checksum ?? Bytes.crc32c(bytes))
        }
        if let checksum = node.checksum, let known = records.bases.find(node.version, id, size: node.size, checksum: checksum) {
            return try known.withUnsafeBytes { try body($0, checksum) }
        }
        guard let place = recordPlaces(of: node.version).first else { return nil }
        let entry = MapEntry(version: 0, size: UInt32(truncatingIfNeeded: node.size), bodyOffset: UInt64(node.body))
        return try records.withBody(place, entry, id: id, stored: node.version) { bytes in
            guard bytes.count == node.size else { return nil }
            let checksum = Bytes.crc32c(bytes)
            if node.checksum == nil || node.checksum == checksum {
                records.bases.keep(node.version, id, try Memory.copy(bytes, "Keeping a value"), checksum: checksum)
            }
            return try body(bytes, checksum)
        }
    }

    /// The value that prevails under an id at a version that others build on, and those on its way; nil when there is none, or it has a
    /// file of its own.
    private func wayBefore(_ id: UnsafeRawBufferPointer, at first: UInt32, _ view: DeltaChains.View?, _ batch: DifferenceBatch) throws
        -> [Differencing.Node]?
    {
        var at = first
        while let draft = batch.draft(at) {
            if let change = draft.changes.change(of: id) {
                guard change.kind == .insert || change.kind == .update, change.written == nil else { return nil }
                return batch.way(of: at, id)
            }
            at = draft.first
            guard at != History.none else { return nil }
        }
        guard let entry = try view?.lookup(id) ?? maps.entry(id, at: at) else { return nil }
        let (version, place) = lock.withRead { (dag.id(entry.version), dag.rows[Int(entry.version)].place) }
        guard place.segment != ProvisionalRecords.segment else { return nil }
        if var known = differencing.way(of: version, id) {
            if known[0].body == 0 { known[0].body = Int(clamping: entry.bodyOffset) }
            return known
        }
        var entryKnown = entry
        if entry.bodyOffset == 0 || entry.size == MapEntry.unknownSize {
            guard let found = try maps.stored(id, in: entry.version) else { return nil }
            entryKnown = found
        }
        guard entryKnown.bodyOffset != 0, Int(entryKnown.size) <= 2 * Differencing.sizes.upperBound else { return nil }
        return try readWay(id, version, place, size: Int(entryKnown.size), body: Int(clamping: entryKnown.bodyOffset))
    }

    /// Reads how the values on a way are stored. One that is whole is kept as a base.
    private func readWay(_ id: UnsafeRawBufferPointer, _ version: VersionID, _ place: RecordPlace, size: Int, body: Int) throws
        -> [Differencing.Node]?
    {
        /// What was read of one value: how it is, and of a difference what it stands on.
        struct Met {
            var node: Differencing.Node
            var base: (version: VersionID, size: Int, body: Int, checksum: UInt32)?
        }
        var nodes: [Differencing.Node] = [], at = (version: version, place: place, size: size, body: body), checksum: UInt32?
        while nodes.count <= Differencing.mostSteps {
            var offset = at.body
            if offset == 0 {
                guard let found = try records.findChange(at.place, id), found.body.blob == nil, found.body.size == at.size else {
                    return nil
                }
                offset = found.body.bodyOffset
            }
            var node = Differencing.Node(
                version: at.version, place: 0, size: at.size, stored: 0, way: 0, body: offset, checksum: checksum)
            let met: Met? =
                try records.withStored(
                    at.place, at: UInt64(offset), size: at.size, id: id, stored: at.version, anew: false
                ) { form in
                    switch form {
                    case .whole(let bytes):
                        node.stored = bytes.count
                        let own = Bytes.crc32c(bytes)
                        guard checksum == nil || checksum == own else { return nil }
                        node.checksum = own
                        records.bases.keep(at.version, id, try Memory.copy(bytes, "Keeping a value"), checksum: own)
                        return Met(node: node)
                    case .deflated(let bytes):
                        node.stored = bytes.count
                        try Memory.expect(at.size, "Keeping a value")
                        guard let whole = Inflated.bytes(at.size, from: bytes) else { return nil }
                        let own = whole.withUnsafeBytes { Bytes.crc32c($0) }
                        guard checksum == nil || checksum == own else { return nil }
                        node.checksum = own
                        records.bases.keep(at.version, id, whole, checksum: own)
                        return Met(node: node)
                    case .difference(let bytes):
                        guard case .difference(let difference) = ValueDifference.read(bytes, size: at.size) else { return nil }
                        node.place = difference.place
                        node.stored = bytes.count
                        node.way = difference.waySize
                        node.checksum = difference.checksum
                        return Met(
                            node: node, base: (difference.base, difference.baseSize, difference.baseBody, difference.baseChecksum))
                    }
                } ?? nil
            guard let met, nodes.last.map({ met.node.place < $0.place }) ?? true else { return nil }
            nodes.append(met.node)
            guard let base = met.base else { return nodes }
            if var known = differencing.way(of: base.version, id), known[0].checksum == base.checksum {
                if known[0].body == 0 { known[0].body = base.body }
                return nodes + known
            }
            guard let next = recordPlaces(of: base.version).first else { return nil }
            at = (base.version, next, base.size, base.body)
            checksum = base.checksum
        }
        return nil
    }

    /// Keeps what the next values of the same ids stand on. To be called once the version is stored.
    func keepWays(_ item: Storing) {
        for new in item.ways {
            differencing.keep(new.id, new.nodes)
            guard let node = new.nodes.first, let checksum = node.checksum, !new.bytes.isEmpty else { continue }
            new.id.withUnsafeBytes { records.bases.keep(node.version, $0, new.bytes, checksum: checksum) }
        }
    }
}
