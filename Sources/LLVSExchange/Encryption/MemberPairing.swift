/// A pairing of the members of an encrypted place, who need not be paired. It is derived from the newest keys of the place, and changes
/// when these are renewed. Devices that are not members, or no longer, do not have it. `Exchange.memberPairing` returns it.
public struct MemberPairing: Sendable {
    /// Returns the pairing for the keys that were read last; nil if none were read yet.
    package let now: @Sendable () -> Pairing?

    init(_ now: @escaping @Sendable () -> Pairing?) { self.now = now }

    /// Returns the current pairing.
    /// - Throws: `.keyMissing` if the keys were not read yet.
    package func current() throws -> Pairing {
        guard let pairing = now() else {
            throw StoreError(
                .keyMissing,
                "The keys for connections were not read yet. Exchange with the encrypted place first, or request its "
                    + "pairing; if the place cannot be reached, give the pairing that was saved.")
        }
        return pairing
    }

    /// Returns whether a pairing is still the current one.
    package func isCurrent(_ pairing: Pairing) -> Bool { now().map { $0.isSame(pairing) } ?? true }

    /// Thrown if the keys were renewed since a connection began: the device at its other end may have been removed.
    package struct Renewed: Error {
        package init() {}
    }
}

extension Pairing {
    /// docs/live-protocol.md, section 1.
    init(_ keys: StoreKeys) { self.init(storeID: keys.store.bytes, liveKey: keys.current.liveKey) }

    package func isSame(_ other: Pairing) -> Bool {
        storeID == other.storeID && liveKey.withBytes { Array($0) } == other.liveKey.withBytes { Array($0) }
    }
}
