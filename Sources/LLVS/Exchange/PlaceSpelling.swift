/// What notes call a place: one address has many spellings, and they all lead to the same notes. Belongs to one transport, and does not
/// change as long as that lasts.
///
/// Notes go by the usual spelling. If a spelling led to another usual one before (a symbolic link that leads elsewhere by now, a folder in
/// the place of a link), it keeps the notes that it had: what is there now is perhaps the place of another store.
final class PlaceSpelling: Sendable {
    private let given: String
    private let usual: @Sendable () -> String
    private let found = Guarded<(store: ObjectIdentifier, place: String)?>(nil)

    /// - Parameters:
    ///   - given: what the place is called as its address is spelled.
    ///   - usual: the same of the usual spelling; called at the first exchange.
    init(_ given: String, usual: @escaping @Sendable () -> String) { self.given = given; self.usual = usual }

    /// Returns what the notes of a store call the place.
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
        // Nothing relies on it, and the store may be one that takes nothing.
        if before != usual, before != nil || usual != given { try? store.cachePut(note, Array(usual.utf8)) }
        return usual
    }
}

extension PlaceNotes {
    static func spellingName(_ name: String) -> String { "\(name)-spelling" }
    /// Whether anything is kept of the place.
    static func hasNotes(_ store: Store, _ place: String) throws -> Bool {
        let first = name(place)
        for name in [first, versionsName(first), ownerName(first)] where try store.cacheGet(name) != nil { return true }
        return false
    }
}
