/// Which values to erase.
public struct ErasureQuery: Sendable {
    /// The ids of the values.
    public var ids: [ValueID] = []
    /// The version at which the values prevail that are erased. Nil: all values that were ever stored under the ids.
    public var version: VersionID?
    /// A run of bytes: all values that contain it are erased, too. Empty: none.
    public var containing: [UInt8] = []
    /// The bytes that prevail afterwards at heads at which an erased value prevails; nil: such values are removed there.
    public var replacement: [UInt8]?
    /// Whether to change nothing, and only report what would be erased.
    public var isDryRun = false
    /// A text that is stored in the order, and that every device with the store can read. At most `mostWhy` bytes.
    public var why = ""
    /// The most bytes of `why`.
    public static let mostWhy = 65_536
    /// For the mode "stewards": the private key (the seed of Ed25519, 32 bytes) of a steward who signs the order. Empty: it is not signed,
    /// and counts on this device alone.
    public var signer: [UInt8] = []
    /// Erases nothing.
    public init() {}
}

/// What was erased, or would be.
public struct ErasureReport: Hashable, Sendable {
    /// Values that this call erased.
    public var values: UInt64 = 0
    /// Versions that stored them.
    public var versions: UInt64 = 0
    /// The bytes that they had.
    public var bytes: UInt64 = 0
    /// The values among them that the store itself had made as copies: choices of conflicts.
    public var copies: UInt64 = 0
    /// Other values that are stored in another way, because they were differences from erased ones.
    public var rewritten: UInt64 = 0
    /// Versions whose records cannot be read, so that it is unknown whether they have the values.
    public var unread: UInt64 = 0
    /// The ids of the values whose bytes are orders: empty if nothing was found, or of a dry run.
    public var orders: [ValueID] = []
    /// The versions that were made: the first has the orders, and all of them remove or replace values.
    public var made: [VersionID] = []
    /// Where the bytes still are, and what has to happen so that they go. Empty: nothing in this store has them any more.
    public var waiting: [String] = []
    /// Where else the bytes may be, as far as this device knows. Of a dry run: before the order is made. Empty if nothing was found.
    public var places: [ErasurePlace] = []
    /// Creates the report of an erasure that found nothing.
    public init() {}
}

/// An order to erase values that is in the store.
public struct Erasure: Hashable, Sendable {
    /// Where an order stands on this device.
    public enum State: UInt32, Sendable {
        /// Nothing in the store has the bytes any more.
        case followed = 1
        /// The order is followed when the store is opened next, or `erase` called: something still holds the bytes.
        case waiting
        /// The order of another device is followed once its delay is over (`Erasure.due`).
        case announced
        /// The order of another device names so much that it waits for a decision here (`Store.decideErasure`).
        case held
        /// It was decided here to keep the bytes.
        case kept
        /// The policy of this device does not let the order count: it has no effect here.
        case notValid
        /// It has no effect yet: more stewards must sign it (`Store.signErasure`).
        case unsigned
    }
    /// The id of the value whose bytes are the order.
    public var id: ValueID
    /// The version that stored it.
    public var version: VersionID
    /// When it was made, in UTC: "2026-11-28T06:00:00Z".
    public var made: String
    /// Text of the caller.
    public var why: String
    /// The number of values that it names.
    public var values: UInt64
    /// Where it stands.
    public var state: State
    /// Whether another device made it.
    public var isOfOther: Bool
    /// When an announced order is followed, in seconds since 2001-01-01 UTC; 0 for the others.
    public var due: Double
    /// For the mode "stewards": how many stewards signed it, and how many must.
    public var signatures: UInt32 = 0, needed: UInt32 = 0
    /// Where else the bytes may be, as far as this device knows. Empty if the order does not count here.
    public var places: [ErasurePlace] = []
    /// Whether nothing in the store has the bytes any more.
    public var isFollowed: Bool { state == .followed }
}

/// How many orders to erase count on a device, by where they stand.
public struct ErasureCounts: Hashable, Sendable {
    /// Followed; to be followed; waiting for the end of their delay; waiting for a decision (`Store.decideErasure`).
    public var followed: UInt64 = 0, waiting: UInt64 = 0, announced: UInt64 = 0, held: UInt64 = 0
    /// Counts of a store without orders.
    public init() {}
}

/// What to do with an order of another device.
public enum ErasureDecision: UInt32, Sendable {
    /// Follow it now.
    case follow = 1
    /// Keep the bytes on this device. It sends them to nobody all the same.
    case keep
}

/// The changes that become hollow, and the values that are stored whole since their bases become hollow.
struct ErasurePlan {
    struct OfVersion {
        /// The SHA-256 of the values that become hollow.
        var hollow: [ValueID: [UInt8]] = [:]
        var whole: Set<ValueID> = []
    }
    var versions: [VersionID: OfVersion] = [:]
    /// The bytes of the values that are stored whole.
    private(set) var wholeBytes: UInt64 = 0
    /// The beginnings of the digests, as files of large values have them.
    var blobDigests: Set<[UInt8]> = []

    /// - Parameter targets: the indexes of changes that become hollow.
    /// - Throws: `.damaged` if a value cannot be read whose digest is not recorded, or that is to be stored whole.
    init(_ targets: [VersionID: [Int]], in store: Store, _ control: PacedControl) throws {
        var ids: Set<ValueID> = []
        for (version, indexes) in targets {
            try control.step(0)
            // A version that the store does not have any more has no bytes to erase.
            guard let place = store.recordPlaces(of: version).first else { continue }
            let wanted = Set(indexes)
            var i = -1, found = OfVersion()
            try store.records.forEachChange(place) { entry, _ in
                i += 1
                guard wanted.contains(i), entry.kind == .insert || entry.kind == .update, !entry.id.starts(with: EraseOrder.reserved)
                else { return }
                let id = ValueID(unchecked: entry.id)
                let digest =
                    try entry.digest.map { Array($0) } ?? store.records.withValue(entry, in: place, of: version) { SHA256.digest($0) }
                found.hollow[id] = digest
                ids.insert(id)
                blobDigests.insert(Array(digest.prefix(16)))
            }
            if !found.hollow.isEmpty { versions[version] = found }
        }
        guard !ids.isEmpty, store.differencing.mayBeMet else { return }
        try store.forEachRecord(changing: ids, control) { version, place in
            guard try store.records.header(place).hasDifferences else { return }
            try store.records.forEachChange(place) { entry, _ in
                guard entry.isDifference else { return }
                let id = ValueID(unchecked: entry.id)
                guard ids.contains(id), versions[version]?.hollow[id] == nil,
                    let base = try store.records.base(of: entry, in: place, version: version), versions[base]?.hollow[id] != nil
                else { return }
                // The value must be readable as long as its base is.
                try store.records.withValue(entry, in: place, of: version) { _ in }
                versions[version, default: OfVersion()].whole.insert(id)
                wholeBytes &+= UInt64(entry.size)
            }
        }
    }
    var wholeCount: Int { versions.values.reduce(0) { $0 + $1.whole.count } }
}

/// What a storage asks while it erases. Called on the thread that erases.
package protocol StorageErasure: AnyObject {
    /// Whether files with old bytes are overwritten before they are removed.
    var overwrites: Bool { get }
    /// Returns whether a record has bytes that are to be erased, or must be stored anew because of that.
    func concerns(_ record: ScannedRecord) throws -> Bool
    /// Returns the new bytes for a record that `concerns`, and the blobs that it names and the new one does not.
    /// - Parameter isLast: whether the old record is removed now. If not, the result is nil if the store has the new record already.
    func rewritten(_ place: RecordPlace, isLast: Bool) throws -> (bytes: [UInt8], freed: [BlobID])?
    /// Returns whether a blob that no record names may have bytes that are to be erased: one with these first bytes of its SHA-256.
    func concerns(blobWithDigest digest: [UInt8]) -> Bool
    /// Called once the new records are durable, with the old and the new places of all records that moved, before old bytes are
    /// overwritten.
    func moved(_ places: [RecordPlace: RecordPlace]) throws
}

/// Erases by a plan.
final class PlannedErasure: StorageErasure {
    private let store: Store
    private let plan: ErasurePlan
    let overwrites: Bool
    private let whenMoved: ([RecordPlace: RecordPlace]) throws -> Void

    init(_ store: Store, _ plan: ErasurePlan, overwrites: Bool, whenMoved: @escaping ([RecordPlace: RecordPlace]) throws -> Void) {
        self.store = store; self.plan = plan; self.overwrites = overwrites; self.whenMoved = whenMoved
    }

    func concerns(_ record: ScannedRecord) throws -> Bool {
        guard let id = Store.versionNamed(by: record.prefix), plan.versions[id] != nil else { return false }
        return try concerns(record.place, id)
    }
    private func concerns(_ place: RecordPlace, _ id: VersionID) throws -> Bool {
        guard let planned = plan.versions[id] else { return false }
        var concerns = false
        try store.records.forEachChange(place) { entry, _ in
            guard entry.kind == .insert || entry.kind == .update, !concerns, !entry.isHollow else { return }
            let id = ValueID(unchecked: entry.id)
            concerns = planned.hollow[id] != nil || entry.isDifference && planned.whole.contains(id)
        }
        return concerns
    }

    func rewritten(_ place: RecordPlace, isLast: Bool) throws -> (bytes: [UInt8], freed: [BlobID])? {
        let id = try store.records.header(place).id
        guard let planned = plan.versions[id] else { return nil }
        if !isLast, let current = store.recordPlaces(of: id).first, current != place, try !concerns(current, id) { return nil }
        // Nothing is forgotten before the old record can go, but no value may lose its base.
        let keepsBytes = !isLast && !overwrites
        if keepsBytes, planned.whole.isEmpty { return nil }
        var whole: [ValueID: [UInt8]] = [:], hollow: [ValueID: [UInt8]] = [:]
        try store.records.forEachChange(place) { entry, _ in
            guard entry.kind == .insert || entry.kind == .update, !entry.isHollow else { return }
            let key = ValueID(unchecked: entry.id)
            if !keepsBytes, let digest = planned.hollow[key] { hollow[key] = digest }
            guard entry.isDifference, planned.whole.contains(key) else { return }
            whole[key] = try store.records.withValue(entry, in: place, of: id) { try Memory.copy($0, "Storing a value whole") }
        }
        let made = try HollowedRecord(store.records.bytes(of: place), hollow: hollow, whole: whole)
        return (made.bytes, made.freed)
    }

    func concerns(blobWithDigest digest: [UInt8]) -> Bool { plan.blobDigests.contains(digest) }
    func moved(_ places: [RecordPlace: RecordPlace]) throws { try whenMoved(places) }
}
