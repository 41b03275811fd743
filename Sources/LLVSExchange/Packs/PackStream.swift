/// A sequence of packs as bytes that a host transports: docs/pack-format.md, section 14.
///
///     stream = start (32) · (frame (21) · file) ... · frame of kind 0
///     start  = magic (8) · format u8 · zero (7) · store id (16)
///     frame  = kind u8 · size u32 · pack id (16); at the end: 0 · count of the files · start of SHA-256 over their pack ids
enum PackStream {
    static let magic = Array("LLVSPKS\n".utf8)
    static let format: UInt8 = 1
    static let startSize = 32
    static let frameSize = 5 + PackID.size

    static func start(_ storeID: PackID) -> [UInt8] { magic + [format, 0, 0, 0, 0, 0, 0, 0] + storeID.bytes }

    static func frame(_ kind: UInt8, _ number: Int, _ id: PackID) -> [UInt8] {
        let size = UInt32(truncatingIfNeeded: number)
        return [kind] + (0..<4).map { UInt8(truncatingIfNeeded: size >> (8 * UInt32($0))) } + id.bytes
    }
    /// Returns the most bytes of a file in a stream, which is the limit of writers.
    static func fileLimit(_ kind: PackKind) -> Int { kind == .blob ? PackFormat.fileLimit(.blob) : PackFormat.writtenFile }
}

/// The state of both sides of a stream: how many files there were, and a digest of their ids.
struct PackStreamSum {
    private var hash = SHA256()
    private(set) var count = 0
    mutating func add(_ id: PackID) {
        hash.update(id.bytes)
        count += 1
    }
    mutating func finish() -> PackID { PackID(hash.finish()) ?? .zero }
}
