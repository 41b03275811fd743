/// What a version is put in order by: by generation, so that it comes after its predecessors, then canonically.
struct OrderKey {
    let generation: UInt32
    let timestamp: Double
    let id: VersionID
    let ordinal: UInt32

    static func isBefore(_ a: OrderKey, _ b: OrderKey) -> Bool {
        if a.generation != b.generation { return a.generation < b.generation }
        return a.timestamp != b.timestamp ? a.timestamp < b.timestamp : a.id < b.id
    }

    /// Canonical order: is `a` later than `b`?
    static func isNewer(_ a: OrderKey, _ b: OrderKey) -> Bool {
        a.timestamp != b.timestamp ? a.timestamp > b.timestamp : a.id > b.id
    }
}

extension History {
    /// To be put in order when the lock is not held any more.
    func orderKeys(_ ordinals: [UInt32]) -> [OrderKey] {
        ordinals.map { OrderKey(generation: rows[Int($0)].generation, timestamp: rows[Int($0)].timestamp, id: id($0), ordinal: $0) }
    }
}

extension [OrderKey] {
    /// In order.
    /// - Parameter look: called now and then; what it throws ends the work.
    func sorted(looking look: () throws -> Void) rethrows -> [OrderKey] { try sorted(by: OrderKey.isBefore, looking: look) }
}
