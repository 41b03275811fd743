/// Finds the name under which notes record a place. One address has many spellings, and all of them lead to the same notes. It belongs to
/// one transport, and its result does not change during the transport's life.
///
/// Notes are stored under the usual spelling. A spelling may have led to another usual one before: a symbolic link may lead elsewhere now,
/// or a folder may have replaced a link. If so, the spelling keeps its earlier notes, since the present place may belong to another store.
package final class PlaceSpelling: Sendable {
    private let given: String
    private let usual: @Sendable () -> String
    private let found = Guarded<(store: ObjectIdentifier, place: String)?>(nil)

    /// - Parameters:
    ///   - given: the name of the place by the address as it was spelled.
    ///   - usual: returns the name by the usual spelling; called at the first exchange.
    init(_ given: String, usual: @escaping @Sendable () -> String) { self.given = given; self.usual = usual }

    /// Returns the name under which the notes of a store record the place.
    func place(in store: Store) throws -> String {
        let key = ObjectIdentifier(store)
        if let found = found.withLock({ $0 }), found.store == key { return found.place }
        let place = try look(store)
        found.withLock { $0 = (key, place) }
        return place
    }

    private func look(_ store: Store) throws -> String {
        let usual = usual(), note = PlaceNotes.spellingName(PlaceNotes.name(given))
        if usual != given, try PlaceNotes.hasNotes(store, given) { return given }
        let before = try store.cacheGet(note).map { String(decoding: $0, as: UTF8.self) }
        if let before, before != usual, try PlaceNotes.hasNotes(store, before) { return before }
        // Nothing depends on this note, and the store may be read-only.
        if before != usual, before != nil || usual != given { try? store.cachePut(note, Array(usual.utf8)) }
        return usual
    }
}

extension PlaceNotes {
    static func spellingName(_ name: String) -> String { "\(name)-spelling" }
    /// Returns whether the store has notes about the place.
    static func hasNotes(_ store: Store, _ place: String) throws -> Bool {
        let first = name(place)
        for name in [first, versionsName(first), ownerName(first)] where try store.cacheGet(name) != nil { return true }
        return false
    }
}
