import CLLVSShims

/// Where bytes that an order to erase names may be, beside the store, as far as this device knows: docs/forgetting.md, "Where bytes may
/// be".
public struct ErasurePlace: Hashable, Sendable {
    /// Whether the bytes are there.
    public enum Reach: UInt32, Sendable {
        /// This device removed them, or found none.
        case gone = 1
        /// They may be there until what the reason names has happened.
        case pending
        /// They may be there, and nothing that this device does removes them.
        case outOfReach
    }
    /// What the bytes wait for, or why they are out of reach.
    public enum Reason: UInt32, Sendable {
        /// They are gone.
        case none = 0
        /// The next exchange of this device with the place removes them.
        case exchange
        /// The policy of this device lets the order count for this device alone.
        case policy
        /// Another device has them until it follows the order. If it was not seen since the order was made, the reach is `pending`.
        /// Otherwise it decides by its own policy, and its own report says what it did.
        case device
        /// The service may keep deleted files, or old versions of files.
        case bin
        /// The file system keeps old contents of files that are overwritten.
        case medium
        /// Programs of another kind read the place, and keep what they read.
        case foreign
        /// Versions were written to streams, of which nothing is known.
        case stream
        /// Backups, exports and copies of the store, of which nothing is known.
        case backup
    }
    /// The place, the device or the store, for people.
    public var name: String
    /// Whether the bytes are there.
    public var reach: Reach
    /// Why.
    public var reason: Reason
    /// When this device last exchanged with it, or saw the other device, in seconds since 2001-01-01 UTC; 0: not known.
    public var lastSeen: Double

    init(_ name: String, _ reach: Reach, _ reason: Reason, lastSeen: Double = 0) {
        self.name = name; self.reach = reach; self.reason = reason; self.lastSeen = lastSeen
    }
}

/// Something to which this device sent versions, as the cache `erasure-places` has it.
package struct NotedPlace: Equatable, Sendable {
    package enum Kind: UInt8, Sendable { case place = 1, device, stream }
    package let kind: Kind, name: String
    /// Whether programs of another kind read it.
    package var isForeign = false
    /// Whether it may keep deleted files.
    package var keepsDeleted = false
    /// When it was last seen, in seconds since 1970.
    package var seen: UInt64 = 0
    /// How many orders are known to be followed there, in the order of the note, and the SHA-256 of their names.
    var cleaned: UInt64 = 0, mark: [UInt8] = []

    package init(_ kind: Kind, _ name: String, isForeign: Bool = false, keepsDeleted: Bool = false) {
        self.kind = kind; self.name = PrintableText.escaping(String(name.prefix(NotedPlace.mostName)))
        self.isForeign = isForeign; self.keepsDeleted = keepsDeleted
    }
    private static let mostName = 1_024
}

/// What is known of places, devices and streams. Read from the cache `erasure-places` when it is first needed. If the cache is lost, a
/// place is known again after the next exchange with it.
final class NotedPlaces: Sendable {
    static let name = "erasure-places"
    private static let format: UInt8 = 1, most = 1_024
    /// The places by what identifies them; nil: not read yet.
    let known = Guarded<[String: NotedPlace]?>(nil)

    static func key(_ place: NotedPlace) -> String { "\(place.kind.rawValue) \(place.name)" }

    static func decoded(_ bytes: [UInt8]) -> [String: NotedPlace] {
        bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes), found: [String: NotedPlace] = [:]
            guard reader.integer(UInt8.self) == format, let count = reader.count(atMost: most) else { return [:] }
            for _ in 0..<count {
                guard let kind = reader.integer(UInt8.self).flatMap(NotedPlace.Kind.init), let flags = reader.integer(UInt8.self),
                    let seen = reader.integer(UInt64.self), let cleaned = reader.integer(UInt64.self), let mark = reader.take(32),
                    let size = reader.count(atMost: 8_192), let name = reader.take(size)
                else { return found }
                var one = NotedPlace(kind, String(decoding: name, as: UTF8.self), isForeign: flags & 1 != 0, keepsDeleted: flags & 2 != 0)
                (one.seen, one.cleaned, one.mark) = (seen, cleaned, cleaned > 0 ? Array(mark) : [])
                found[key(one)] = one
            }
            return found
        }
    }
    static func encoded(_ places: [String: NotedPlace]) -> [UInt8] {
        var out = ByteWriter()
        out.bytes.append(format)
        let newest = places.values.sorted { ($1.seen, $0.name) < ($0.seen, $1.name) }.prefix(most)
        out.varint(UInt64(newest.count))
        for one in newest {
            out.bytes += [one.kind.rawValue, (one.isForeign ? 1 : 0) | (one.keepsDeleted ? 2 : 0)]
            out.integer(one.seen)
            out.integer(one.cleaned)
            out.raw(one.mark.count == 32 ? one.mark : [UInt8](repeating: 0, count: 32))
            let name = Array(one.name.utf8)
            out.varint(UInt64(name.count))
            out.raw(name)
        }
        return out.bytes
    }
}

extension Orders {
    private var places: NotedPlaces { store.attachments.object(NotedPlaces.self) { NotedPlaces() } }

    private func notedPlaces() throws -> [String: NotedPlace] {
        if let known = places.known.withLock({ $0 }) { return known }
        let bytes = try store.storage.hasCache(NotedPlaces.name) ? store.storage.cacheGet(NotedPlaces.name) : nil
        let read = bytes.map(NotedPlaces.decoded) ?? [:]
        places.known.withLock { $0 = read }
        return read
    }

    /// Notes that versions were exchanged with places or devices, or written to a stream. A place is written once a day, or once a minute
    /// if there are orders.
    /// - Parameter isCleaned: whether all orders that count here for others were followed at the places. Nil: not known.
    package func note(_ places: [NotedPlace], isCleaned: Bool? = nil) {
        guard store.storage.canErase, !store.isReadOnly else { return }
        do {
            let names = try named().names, before = try notedPlaces(), pause: UInt64 = names.isEmpty ? 86_400 : 60
            var changed: [String: NotedPlace] = [:]
            for place in places {
                var new = place
                let key = NotedPlaces.key(place), old = before[key]
                if new.seen == 0 { new.seen = now }
                if isCleaned == true, place.kind == .place, !names.isEmpty {
                    (new.cleaned, new.mark) = (UInt64(names.count), Orders.mark(names[...]))
                } else if let old, isCleaned == nil {
                    (new.cleaned, new.mark) = (old.cleaned, old.mark)
                }
                if var same = old {
                    same.seen = new.seen
                    if same == new, new.seen < (old?.seen ?? 0) &+ pause { continue }
                }
                changed[key] = new
            }
            guard !changed.isEmpty else { return }
            // Another handle may have noted others.
            self.places.known.withLock { $0 = nil }
            let all = try notedPlaces().merging(changed) { $1 }
            try store.storage.cachePut(NotedPlaces.name, NotedPlaces.encoded(all))
            self.places.known.withLock { $0 = all }
        } catch { Log.write(.info, "Places of \(store.description) were not noted: \(error)") }
    }

    fileprivate static func mark(_ names: ArraySlice<String>) -> [UInt8] {
        Array(names.joined().utf8).withUnsafeBytes { SHA256.digest($0) }
    }

    /// Returns what is known of places now.
    func reach() throws -> ErasureReach {
        let named = try named(), mode = try known()?.policy.mode ?? .nobody
        var known: [ErasureReach.Known] = [], right: [UInt64: [UInt8]] = [0: []]
        for place in try notedPlaces().values.sorted(by: { ($0.kind.rawValue, $0.name) < ($1.kind.rawValue, $1.name) }) {
            if place.cleaned <= UInt64(named.names.count), right[place.cleaned] == nil {
                right[place.cleaned] = Orders.mark(named.names[..<Int(place.cleaned)])
            }
            known.append(ErasureReach.Known(place: place, cleaned: right[place.cleaned] == place.mark ? place.cleaned : 0))
        }
        let indexes = Dictionary(named.names.enumerated().map { ($1, UInt64($0)) }) { first, _ in first }
        let medium = !store.path.isEmpty && llvs_shim_copies_on_write(store.path) == 1 ? store.description : nil
        return ErasureReach(known: known, indexes: indexes, areCleaned: mode != .nobody, medium: medium)
    }
}

/// What a device knows of the places where bytes may be.
struct ErasureReach {
    struct Known { let place: NotedPlace, cleaned: UInt64 }
    let known: [Known]
    /// The places of orders that count for others in their list.
    let indexes: [String: UInt64]
    /// Whether the policy lets this device clean places.
    let areCleaned: Bool
    /// The store, if its file system keeps old contents.
    let medium: String?

    /// Returns where the bytes that an order names may be, beside the store.
    /// - Parameters:
    ///   - line: the order; nil: one that was not made yet.
    ///   - made: when it was made, in UTC.
    func places(of line: ErasureNote.Line?, made: [UInt8]) -> [ErasurePlace] {
        let index = line.flatMap { indexes[$0.order] }, isOrdered = line == nil || index != nil
        var found: [ErasurePlace] = []
        for (place, cleaned) in known.map({ ($0.place, $0.cleaned) }) {
            let seen = Double(place.seen) - Clock.secondsFrom1970To2001
            func add(_ reach: ErasurePlace.Reach, _ reason: ErasurePlace.Reason) {
                found.append(ErasurePlace(place.name, reach, reason, lastSeen: seen))
            }
            switch place.kind {
            case .stream: add(.outOfReach, .stream)
            case .device:
                let isSeen = line.map { line in
                    line.came.map { place.seen > $0.time } ?? made.lexicographicallyPrecedes(EraseOrder.text(ofTime: seen))
                }
                add(isSeen ?? false ? .outOfReach : .pending, .device)
            case .place:
                if let index, index < cleaned {
                    add(.gone, .none)
                } else if areCleaned && isOrdered {
                    add(.pending, .exchange)
                } else {
                    add(.outOfReach, .policy)
                }
                if place.keepsDeleted { add(.outOfReach, .bin) }
                if place.isForeign { add(.outOfReach, .foreign) }
            }
        }
        if let medium { found.append(ErasurePlace(medium, .outOfReach, .medium)) }
        found.append(ErasurePlace("", .outOfReach, .backup))
        return found
    }
}
