/// What the members of an encrypted place share without being paired: a pairing that follows from the newest keys of the place, and is
/// another one when these are renewed. Whoever is no member, or no more, has it not. `Exchange.memberPairing` gives it.
public struct MemberPairing: Sendable {
    /// By the keys as they were read last; nil before.
    let now: @Sendable () -> Pairing?

    init(_ now: @escaping @Sendable () -> Pairing?) { self.now = now }

    /// The one of now.
    /// - Throws: `.keyMissing` when the keys were not read yet.
    func current() throws -> Pairing {
        guard let pairing = now() else {
            throw StoreError(
                .keyMissing,
                "The keys that a connection is to be made by were not read yet. Exchange with the encrypted place first, or ask for its "
                    + "pairing; where the place cannot be reached, give the pairing that was kept.")
        }
        return pairing
    }

    /// Whether a pairing that was the one of now is so still.
    func isCurrent(_ pairing: Pairing) -> Bool { now().map { $0.isSame(pairing) } ?? true }

    /// The keys were renewed since a connection was made: whoever is at its other end may have been removed.
    struct Renewed: Error {}
}

extension Pairing {
    /// docs/live-protocol.md, section 1.
    init(_ keys: StoreKeys) { self.init(storeID: keys.store.bytes, liveKey: keys.current.liveKey) }

    func isSame(_ other: Pairing) -> Bool {
        storeID == other.storeID && liveKey.withBytes { Array($0) } == other.liveKey.withBytes { Array($0) }
    }
}
