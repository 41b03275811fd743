/// Turns a pack into the file that lies at the remote, and back: encrypts it, or leaves it as it is. A pack's name and pack id are those
/// of the stored file.
struct PackSealing: Sendable {
    /// The stored file of a pack, with its own pack id in the name.
    var seal: @Sendable (MadePack) throws -> MadePack
    /// The pack that a stored file holds. The bytes are those that the name says.
    /// - Throws: `PackFault`.
    var open: @Sendable (PackName, [UInt8]) throws -> [UInt8]
    /// The parts of a stored file of so many bytes, of which the first `EncryptedPack.headSize` are given, at least. Nil: a range of the
    /// stored file is that range of the pack.
    /// - Throws: `PackFault`.
    var openParts: (@Sendable (PackName, _ size: Int, _ head: [UInt8]) throws -> EncryptedPack)?
    var isEncrypted: Bool { openParts != nil }
    /// The digests that names of the parts of a blob may have, by SHA-256 of what they hold: first the one that is written.
    var blobDigests: @Sendable ([UInt8]) throws -> [PackID] = { PackID($0).map { [$0] } ?? [] }

    /// Whether a stored file of which this is the beginning, its header and 16 bytes more, has the keys that are written with.
    /// - Throws: `PackFault`.
    var isCurrent: @Sendable (PackName, [UInt8]) throws -> Bool = { _, _ in true }

    /// The file is the pack.
    static let none = PackSealing(seal: { $0 }, open: { $1 })
}

/// What is drawn at random, and the time that is written down for people: given by simulations.
struct PackRandom: Sendable {
    var word: @Sendable () -> UInt64
    /// Since 1970.
    var milliseconds: @Sendable () -> UInt64

    func id() -> PackID { PackID(high: word(), low: word()) }

    static let system = PackRandom(
        word: { PackID.random().high }, milliseconds: { UInt64(max(0, (Clock.now() + Clock.secondsFrom1970To2001) * 1000)) })
}
