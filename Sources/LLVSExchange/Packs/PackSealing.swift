/// Converts a pack to the file that is stored at the remote, and back: encrypts it, or leaves it as it is. A pack's name and pack id are
/// those of the stored file.
struct PackSealing: Sendable {
    /// Returns the stored file of a pack. Its name has its own pack id.
    var seal: @Sendable (MadePack) throws -> MadePack
    /// Returns the pack in a stored file, whose bytes match its name.
    /// - Throws: `PackFault`.
    var open: @Sendable (PackName, [UInt8]) throws -> [UInt8]
    /// Returns the parts of a stored file of a given size, from at least its first `EncryptedPack.headSize` bytes. If it is nil, a range
    /// of the stored file is that range of the pack.
    /// - Throws: `PackFault`.
    var openParts: (@Sendable (PackName, _ size: Int, _ head: [UInt8]) throws -> EncryptedPack)?
    var isEncrypted: Bool { openParts != nil }
    /// Returns the digests that names of the parts of a blob may have, given the SHA-256 of its content. The first is the one for
    /// writing.
    var blobDigests: @Sendable ([UInt8]) throws -> [PackID] = { PackID($0).map { [$0] } ?? [] }

    /// Returns whether a stored file uses the current keys for writing, given its header and 16 more bytes.
    /// - Throws: `PackFault`.
    var isCurrent: @Sendable (PackName, [UInt8]) throws -> Bool = { _, _ in true }

    /// Stores the pack unchanged.
    static let none = PackSealing(seal: { $0 }, open: { $1 })
}

/// Sources of random numbers, and of the time that is recorded for people. Simulations replace them.
struct PackRandom: Sendable {
    var word: @Sendable () -> UInt64
    /// Milliseconds since 1970.
    var milliseconds: @Sendable () -> UInt64

    func id() -> PackID { PackID(high: word(), low: word()) }

    static let system = PackRandom(
        word: { PackID.random().high }, milliseconds: { UInt64(max(0, (Clock.now() + Clock.secondsFrom1970To2001) * 1000)) })
}
