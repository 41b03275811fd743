/// Where a store keeps what it knows of a place: among its caches, under a name made of the place and the machine (a store that is carried
/// to another machine is another device there).
enum PlaceNotes {
    static func name(_ place: String) -> String {
        let digest = Array("\(place)\n\(WriterMachine.current.machine)".utf8).withUnsafeBytes { SHA256.digest($0) }
        return "packs-" + Base32.encode(Array(digest.prefix(10)))
    }

    /// The name for one of several accounts that have places of their own at one address: the first of them has the name of the address,
    /// which notes had before accounts were told apart.
    static func name(_ place: String, _ account: String?, _ storage: any Storage) throws -> String {
        let first = name(place)
        guard let account, let owner = try storage.cacheGet(ownerName(first)), owner != mark(account) else { return first }
        return name("\(place)\n\(account)")
    }
    static func ownerName(_ first: String) -> String { "\(first)-account" }
    static func mark(_ account: String) -> [UInt8] { Array(account.utf8).withUnsafeBytes { Array(SHA256.digest($0).prefix(10)) } }

    // MARK: Places with single files

    /// Whether single files were met there.
    static func hadVersions(_ store: Store, _ place: String, _ account: String?) throws -> Bool {
        try store.cacheGet(versionsName(name(place, account, store.storage))) != nil
    }
    /// Keeps in mind that they were, where that can be kept.
    static func setHadVersions(_ store: Store, _ place: String, _ account: String?) throws {
        let name = try versionsName(name(place, account, store.storage))
        if try store.cacheGet(name) == nil { try? store.cachePut(name, [1]) }
    }
    /// What the place is known by; nil: nothing, or an earlier version of this library wrote it.
    static func identity(of store: Store, _ place: String, _ account: String?) throws -> PlaceIdentity? {
        try store.cacheGet(versionsName(name(place, account, store.storage))).flatMap(PlaceIdentity.init(encoded:))
    }
    static func setIdentity(_ identity: PlaceIdentity, of store: Store, _ place: String, _ account: String?) throws {
        try store.cachePut(versionsName(name(place, account, store.storage)), identity.encoded)
        // The address belongs to the first account from now on, as with packs.
        let first = name(place)
        if let account, try store.cacheGet(ownerName(first)) == nil { try store.cachePut(ownerName(first), mark(account)) }
    }
    static func forgetIdentity(of store: Store, _ place: String, _ account: String?) throws {
        let name = try versionsName(name(place, account, store.storage))
        if try store.cacheGet(name) != nil { try store.cacheDelete(name) }
    }
    static func versionsName(_ name: String) -> String { "\(name)-versions" }
}
