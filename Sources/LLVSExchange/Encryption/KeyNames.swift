/// The name of a key file below `pack1/keys/` (docs/encryption.md, section 4). Each file has exactly one name.
package enum KeyFileName: Hashable, Sendable, CustomStringConvertible {
    /// The keys of all epochs up to a number, for the members.
    case ring(epoch: UInt32, id: PackID)
    /// The identity of the member "passphrase".
    case passphrase(id: PackID)

    private static let ringPrefix = "ring-", passPrefix = "pass-"

    /// Nil if the text is no such name.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        if bytes.starts(with: KeyFileName.ringPrefix.utf8) {
            let fields = bytes.dropFirst(5).split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
            guard fields.count == 2, let number = Base32.decode(fields[0], size: 4), let id = Base32.decode(fields[1], size: PackID.size),
                let id = PackID(id)
            else { return nil }
            let epoch = number.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            guard epoch > 0 else { return nil }
            self = .ring(epoch: epoch, id: id)
        } else if bytes.starts(with: KeyFileName.passPrefix.utf8) {
            guard let id = Base32.decode(bytes.dropFirst(5), size: PackID.size), let id = PackID(id) else { return nil }
            self = .passphrase(id: id)
        } else {
            return nil
        }
    }

    /// - Parameter epoch: 0 for a passphrase.
    init(epoch: UInt32, id: PackID) { self = epoch == 0 ? .passphrase(id: id) : .ring(epoch: epoch, id: id) }

    /// The beginning of SHA-256 over the bytes of the file.
    var id: PackID {
        switch self {
        case .ring(_, let id), .passphrase(let id): id
        }
    }
    /// 0 for a passphrase.
    var epoch: UInt32 { if case .ring(let epoch, _) = self { epoch } else { 0 } }
    package var description: String {
        switch self {
        case .ring(let epoch, let id):
            KeyFileName.ringPrefix + Base32.encode((0..<4).map { UInt8(truncatingIfNeeded: epoch >> (24 - 8 * UInt32($0))) }) + "-\(id)"
        case .passphrase(let id): KeyFileName.passPrefix + id.description
        }
    }
    static func id(of bytes: [UInt8]) -> PackID { bytes.withUnsafeBytes { PackID(SHA256.digest($0)) } ?? .zero }
}

/// The directory of key files in some layout. Names are those of `KeyFileName`; calls come from one thread at a time.
package protocol KeyDirectory: AnyObject {
    /// For messages: "the WebDAV folder https://host/path/".
    var description: String { get }
    /// Returns the names in the directory of keys, including foreign ones.
    func keyFiles() throws -> [String]
    /// Returns the names with the newest files first, as far as the place reports times.
    func newestFirst(_ names: [KeyFileName]) throws -> [KeyFileName]
    /// Returns whether the place has anything besides keys: roots, packs, parts of values.
    func holdsData() throws -> Bool
    /// Returns the bytes of a file; nil if it is missing. Of a file with more than `limit` bytes returns one more than `limit`.
    /// - Throws: `KeyFiles.Withheld` if the place returns other files, but not this one.
    func read(_ name: String, limit: Int) throws -> [UInt8]?
    /// Creates a file, whole or not at all. An existing file of that name can only have the same bytes.
    func create(_ name: String, _ bytes: [UInt8]) throws
    /// Removes a file. A missing file is no error.
    func delete(_ name: String) throws
}

extension KeyDirectory {
    package func newestFirst(_ names: [KeyFileName]) throws -> [KeyFileName] { names }
}

/// The clock for making keys. Tests replace it.
struct KeyClock {
    /// Seconds since 1970.
    var now: () -> Int64 = { System.now / 1_000_000_000 }
    /// Waits for this many seconds; throws if cancelled.
    var wait: (Double) throws -> Void

    /// "2026-11-22T20:00:00Z"
    func text() -> String {
        var seconds = time_t(now()), parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ value: Int32, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        return "\(digits(parts.tm_year &+ 1900, 4))-\(digits(parts.tm_mon &+ 1, 2))-\(digits(parts.tm_mday, 2))T"
            + "\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))Z"
    }
}
