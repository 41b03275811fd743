/// The state of storing values as differences: whether the store does it, and the ways of values that were saved lately. Safe from all
/// threads.
package final class Differencing: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    /// A value on a way.
    struct Node {
        var version: VersionID
        /// The place of the value; 0 if it is stored whole.
        var place: Int
        /// The size of the value.
        var size: Int
        /// How many bytes are stored for the value.
        var stored: Int
        /// The stored bytes of the differences on its way, its own included; 0 if it is stored whole.
        var way: Int
        /// The offset of its body in its record; 0 if it is not known.
        var body: Int
        /// The checksum of the value's bytes; nil if it is not known.
        var checksum: UInt32?
    }
    /// A value that is about to be stored, and its way.
    struct New {
        var id: [UInt8]
        var index: Int
        /// This value, and then the other values on its way.
        var nodes: [Node]
        /// The bytes of the value, if it is to be cached as a base; else empty.
        var bytes: [UInt8] = []
    }
    private struct Known {
        var id: [UInt8]
        var nodes: [Node]
    }

    /// The sizes of values that may be stored as differences.
    package static let sizes = 1_024...(4 << 20)
    /// The largest place that a writer gives. The next value is stored whole.
    package static let largestPlace = 329
    /// The most differences on a way that a writer makes.
    package static let mostSteps = 4
    /// If a version has more changes, neither the bytes of its values nor the ways of whole values are cached.
    static let mostKept = 16
    private static let mostKnown = 64, failureSlots = 4_096

    /// Returns the place of the base for a place above 0: docs/format.md, "Choice of the base". The place is a sum of at most four binomial
    /// coefficients C(a, 4) + C(b, 3) + C(c, 2) + C(d, 1), each the largest one that fits. The last one above 0 is left out.
    package static func basePlace(of place: Int) -> Int {
        var left = place, last = 0
        for choice in stride(from: mostSteps, through: 1, by: -1) where left > 0 {
            var from = choice, next = 1
            while next <= left {
                last = next
                from += 1
                next = next * from / (from - choice)
            }
            left -= last
        }
        return place - last
    }
    /// Returns whether a value with this place is the base of the next one.
    static func becomesBase(_ place: Int) -> Bool { place < largestPlace && basePlace(of: place + 1) == place }
    /// Returns whether a value may be a difference, given the sizes of the values from its base to the one that is stored whole.
    package static func isWithinLimits(_ way: [Int], of size: Int) -> Bool {
        way.count <= mostSteps && way.allSatisfy { $0 <= 2 * size } && way.reduce(size, +) <= 9 * size
    }

    private let lock = Lock(.leaf)
    private var isOn: Bool, isMet: Bool
    private var known: [Known] = []
    /// By the checksum of the id: how often the last values had nothing in common, and how many further saves to skip. Ids may share a
    /// slot, so that any number of ids has room. Empty until the first failure.
    private var failures: [(count: UInt8, skipped: UInt8)] = []
    private var stored: (count: UInt64, stored: UInt64, whole: UInt64) = (0, 0, 0)
    private let choice: Store.Differences

    init(_ choice: Store.Differences) {
        self.choice = choice
        isOn = choice == .on
        isMet = isOn
    }

    /// Whether the store stores values as differences.
    var isUsed: Bool { lock.withLock { isOn } }
    /// Forgets the ways of values: some of their bases may have no bytes any more.
    func forget() { lock.withLock { known = [] } }
    /// Whether the store has differences, or may have.
    var mayBeMet: Bool { lock.withLock { isMet } }
    /// Notes that the store has differences, or may have. Unless the choice is `off`, it then stores values as differences.
    func note() {
        lock.withLock {
            isMet = true
            isOn = choice != .off
        }
    }

    /// Returns the way of a value; nil if it is not known.
    func way(of version: VersionID, _ id: UnsafeRawBufferPointer) -> [Node]? {
        lock.withLock {
            guard let index = known.lastIndex(where: { $0.nodes[0].version == version && $0.id.elementsEqual(id) }) else { return nil }
            return known[index].nodes
        }
    }

    /// The values that were stored as differences: their number, their stored bytes, and the bytes of the values.
    var counts: (count: UInt64, stored: UInt64, whole: UInt64) { lock.withLock { stored } }

    /// Caches the way of a value that was stored, for the next value of its id.
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

    /// Returns whether to try a difference for the next value of an id. If not, it counts the save as skipped.
    func shouldTry(_ id: UnsafeRawBufferPointer) -> Bool {
        lock.withLock {
            guard !failures.isEmpty else { return true }
            let slot = Differencing.slot(of: id)
            guard failures[slot].skipped > 0 else { return true }
            failures[slot].skipped -= 1
            return false
        }
    }

    /// Notes whether a difference was made between the last two values of an id. After repeated failures the next saves are skipped.
    func note(_ id: UnsafeRawBufferPointer, isMade: Bool) {
        lock.withLock {
            if failures.isEmpty {
                if isMade { return }
                failures = Array(repeating: (0, 0), count: Differencing.failureSlots)
            }
            let slot = Differencing.slot(of: id), count: UInt8 = isMade ? 0 : min(failures[slot].count + 1, 2)
            failures[slot] = (count, count == 2 ? 8 : 0)
        }
    }

    private static func slot(of id: UnsafeRawBufferPointer) -> Int { Int(Bytes.crc32c(id)) % failureSlots }
}

/// The versions that are stored together. Some may build on others, whose values are in memory but not yet in records.
struct DifferenceBatch {
    private var drafts: [UInt32: Draft] = [:]
    private var ways: [UInt32: [[UInt8]: [Differencing.Node]]] = [:]
    /// The ordinals of the versions.
    private var ordinals: [VersionID: UInt32] = [:]

    /// Creates a batch.
    /// - Parameter items: the versions. If there is only one, or all values are small, the batch stays empty.
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
    /// Returns the value that one of the versions stores under an id, from memory; nil if there is none.
    func bytes(_ version: VersionID, _ id: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard !drafts.isEmpty, let ordinal = ordinals[version], let change = drafts[ordinal]?.changes.change(of: id), change.written == nil,
            change.kind == .insert || change.kind == .update
        else { return nil }
        return change.data
    }
}

extension Store {
    /// Returns the stored bytes of a value as its difference from an earlier value of its id, and its way; nil if the value is to be stored
    /// whole. If an earlier value cannot be read, the value is stored whole as well.
    /// - Parameters:
    ///   - view: the map of the first predecessor, if it is in memory.
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
            // If the id is not a content id, another store may have recorded another value under it, which may prevail after a union.
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

    /// Calls with the bytes of a value that will be a base, and their checksum.
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

    /// Returns the value that prevails under an id at the predecessor `first`, and the other values on its way; nil if there is none, or
    /// its way cannot be read.
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
        guard entryKnown.size != MapEntry.unknownSize, Int(entryKnown.size) <= 2 * Differencing.sizes.upperBound else { return nil }
        return try readWay(id, version, place, size: Int(entryKnown.size), body: Int(clamping: entryKnown.bodyOffset))
    }

    /// Reads how the values on a way are stored. Caches the whole value as a base, unless it is a blob.
    private func readWay(_ id: UnsafeRawBufferPointer, _ version: VersionID, _ place: RecordPlace, size: Int, body: Int) throws
        -> [Differencing.Node]?
    {
        /// What was read of one value: its node, and its base if it is a difference.
        struct Met {
            var node: Differencing.Node
            var base: (version: VersionID, size: Int, body: Int, checksum: UInt32)?
        }
        // The limits of the value to which the way belongs, so that reading the way costs no more than reading the value.
        var total = size
        var nodes: [Differencing.Node] = [], at = (version: version, place: place, size: size, body: body), checksum: UInt32?
        while nodes.count <= Differencing.mostSteps {
            var offset = at.body
            if offset == 0 {
                guard let found = try records.findChange(at.place, id), !found.body.isHollow, found.body.size == at.size else { return nil }
                if found.body.blob != nil {
                    let size = at.size, version = at.version
                    return nodes + [.init(version: version, place: 0, size: size, stored: size, way: 0, body: 0, checksum: checksum)]
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
            guard base.size <= ValueDifference.largestBase(of: size), total + base.size <= ValueDifference.largestWay(of: size),
                let next = recordPlaces(of: base.version).first
            else { return nil }
            total += base.size
            at = (base.version, next, base.size, base.body)
            checksum = base.checksum
        }
        return nil
    }

    /// Caches the ways and bases for the next values of the same ids. Called after the version is stored.
    func keepWays(_ item: Storing) {
        for new in item.ways {
            differencing.keep(new.id, new.nodes)
            guard let node = new.nodes.first, let checksum = node.checksum, !new.bytes.isEmpty else { continue }
            new.id.withUnsafeBytes { records.bases.keep(node.version, $0, new.bytes, checksum: checksum) }
        }
    }
}
