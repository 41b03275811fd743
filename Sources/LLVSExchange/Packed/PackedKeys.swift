/// The credentials with which an exchange with an encrypted remote was opened, and the keys that they opened.
package final class PackedKeys: @unchecked Sendable {
    // Sendable: `lock` guards all that changes.
    let crypto: Crypto
    private let lock = Lock(.leaf)
    private var unlocking: RemoteKeys
    private var found: Opened?

    /// The keys, with the names of their files and when they were read.
    struct Opened {
        var keys: StoreKeys
        var names: [String]
        var at: Int64
        let sealing: PackSealing
    }

    package init(_ given: RemoteKeys) throws {
        unlocking = given
        crypto = try RemoteKeys.crypto()
    }

    /// The credentials of the exchange; the passphrase is the one last set.
    var given: RemoteKeys { lock.withLock { unlocking } }
    func setPassphrase(_ new: Secret) { lock.withLock { unlocking.passphrase = new } }
    var opened: Opened? { lock.withLock { found } }
    func set(_ keys: StoreKeys, _ names: [String], at now: Int64) {
        let opened = Opened(keys: keys, names: names, at: now, sealing: PackCipher(keys, crypto).sealing)
        lock.withLock { found = opened }
    }
    func lookedAgain(at now: Int64) { lock.withLock { found?.at = now } }
    func forget() { lock.withLock { found = nil } }
}

extension PackedRun {
    /// How files are sealed at the remote.
    var sealing: PackSealing { keys?.opened?.sealing ?? .none }
}
