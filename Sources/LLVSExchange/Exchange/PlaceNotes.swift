/// Where a store saves what it knows of a place: in its caches, under a name derived from the place and the machine. (A store that is
/// copied to another machine is another device there.)
enum PlaceNotes {
    static func name(_ place: String) -> String {
        let digest = Array("\(place)\n\(WriterMachine.current.machine)".utf8).withUnsafeBytes { SHA256.digest($0) }
        return "packs-" + Base32.encode(Array(digest.prefix(10)))
    }

    /// Returns the name for one of several accounts with places of their own at one address. The first account uses the name of the
    /// address, as notes did before accounts were distinguished.
    static func name(_ place: String, _ account: String?, _ storage: any Storage) throws -> String {
        let first = name(place)
        guard let account, let owner = try storage.cacheGet(ownerName(first)), owner != mark(account) else { return first }
        return name("\(place)\n\(account)")
    }
    static func ownerName(_ first: String) -> String { "\(first)-account" }
    static func mark(_ account: String) -> [UInt8] { Array(account.utf8).withUnsafeBytes { Array(SHA256.digest($0).prefix(10)) } }

    // MARK: Places with single files

    /// Returns whether single files were met at the place.
    static func hadVersions(_ store: Store, _ place: String, _ account: String?) throws -> Bool {
        try store.cacheGet(versionsName(name(place, account, store.storage))) != nil
    }
    /// Records that they were, if the caches can be written.
    static func setHadVersions(_ store: Store, _ place: String, _ account: String?) throws {
        let name = try versionsName(name(place, account, store.storage))
        if try store.cacheGet(name) == nil { try? store.cachePut(name, [1]) }
    }
    /// Returns the identity of the place; nil if none is recorded, or if an earlier version of this library wrote it.
    static func identity(of store: Store, _ place: String, _ account: String?) throws -> PlaceIdentity? {
        try store.cacheGet(versionsName(name(place, account, store.storage))).flatMap(PlaceIdentity.init(encoded:))
    }
    static func setIdentity(_ identity: PlaceIdentity, of store: Store, _ place: String, _ account: String?) throws {
        try store.cachePut(versionsName(name(place, account, store.storage)), identity.encoded)
        // From now on the address belongs to the first account, as with packs.
        let first = name(place)
        if let account, try store.cacheGet(ownerName(first)) == nil { try store.cachePut(ownerName(first), mark(account)) }
    }
    static func forgetIdentity(of store: Store, _ place: String, _ account: String?) throws {
        let name = try versionsName(name(place, account, store.storage))
        if try store.cacheGet(name) != nil { try store.cacheDelete(name) }
    }
    static func versionsName(_ name: String) -> String { "\(name)-versions" }
}
