/// The sort key of a version: its generation, so that it comes after its predecessors, then canonical order.
package struct OrderKey {
    package let generation: UInt32
    let timestamp: Double
    package let id: VersionID
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
    /// Returns sort keys, which can be sorted after the lock is released.
    func orderKeys(_ ordinals: [UInt32]) -> [OrderKey] {
        ordinals.map { OrderKey(generation: rows[Int($0)].generation, timestamp: rows[Int($0)].timestamp, id: id($0), ordinal: $0) }
    }
}

extension [OrderKey] {
    /// Returns the keys sorted.
    /// - Parameter look: called now and then; an error that it throws ends the work.
    package func sorted(looking look: () throws -> Void) rethrows -> [OrderKey] { try sorted(by: OrderKey.isBefore, looking: look) }
}
