/// The kind of a file of the packed layout, with its number in the file's header.
enum PackKind: UInt8, Sendable {
    /// The versions of one send.
    case log = 1
    /// Merged from other packs.
    case base = 2
    /// A part of a value that is too large for a pack.
    case blob = 3
    /// Identifies the remote.
    case root = 4

    /// The prefix of the names of this kind.
    var prefix: String {
        switch self {
        case .log: "pack1/log/"
        case .base: "pack1/base/"
        case .blob: "pack1/blob/"
        case .root: "pack1/root-"
        }
    }
    /// The sizes in bytes of the fields of a name of this kind.
    fileprivate var fields: [Int] {
        switch self {
        case .log: [8, 4, PackID.size]
        case .base: [8, 4, 4, PackID.size]
        case .blob: [PackID.size, 2, PackID.size]
        case .root: [PackID.size]
        }
    }
}

/// The name of a file in the packed layout: docs/pack-format.md, section 1. Each file has one name, in one spelling.
package struct PackName: Hashable, Sendable, CustomStringConvertible {
    var kind: PackKind
    /// The writer of a log or base pack; 0 for other kinds.
    var writer: UInt64 = 0
    /// For a blob, the digest of the content of all parts together; zero for other kinds.
    var digest = PackID.zero
    /// For a base pack, the first number that it covers; for other kinds the same as `last`.
    var first: UInt32 = 0
    /// The number of a log pack, the last number of a base pack, or the part of a blob; 0 for a root.
    var last: UInt32 = 0
    /// The first bytes of SHA-256 over the bytes of the file.
    var id: PackID

    /// Parses a name; nil if the text is not a name of the layout.
    package init?(_ text: String) {
        for kind in [PackKind.log, .base, .blob, .root] where text.utf8.starts(with: kind.prefix.utf8) {
            let rest = text.utf8.dropFirst(kind.prefix.utf8.count)
            let parts = rest.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
            guard parts.count == kind.fields.count else { return nil }
            var fields: [[UInt8]] = []
            for (part, size) in zip(parts, kind.fields) {
                guard let field = Base32.decode(part, size: size) else { return nil }
                fields.append(field)
            }
            guard let last = fields.last, let id = PackID(last) else { return nil }
            let numbers = fields.dropFirst().dropLast().map { $0.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } }
            self.init(kind: kind, first: numbers.first ?? 0, last: numbers.last ?? 0, id: id)
            switch kind {
            case .log, .base:
                writer = fields[0].reduce(0) { $0 << 8 | UInt64($1) }
                guard writer != 0, self.first != 0, self.first <= self.last else { return nil }
            case .blob: digest = PackID(fields[0]) ?? .zero
            case .root: break
            }
            return
        }
        return nil
    }
    init(kind: PackKind, writer: UInt64 = 0, digest: PackID = .zero, first: UInt32 = 0, last: UInt32 = 0, id: PackID) {
        self.kind = kind; self.writer = writer; self.digest = digest; self.first = first; self.last = last; self.id = id
    }

    /// Whether the name is valid, as is every name that was parsed.
    var isWhole: Bool {
        switch kind {
        case .log, .base: writer != 0 && digest == .zero && first != 0 && (kind == .log ? first == last : first <= last)
        case .blob: writer == 0 && first == last && last <= UInt32(UInt16.max)
        case .root: writer == 0 && digest == .zero && first == 0 && last == 0
        }
    }

    package var description: String {
        func number(_ value: UInt32, _ size: Int) -> String {
            Base32.encode((0..<size).map { UInt8(truncatingIfNeeded: value >> UInt32(8 * (size - 1 - $0))) })
        }
        let owner = Base32.encode(PackID.bytes(of: writer))
        let fields =
            switch kind {
            case .log: [owner, number(last, 4), id.description]
            case .base: [owner, number(first, 4), number(last, 4), id.description]
            case .blob: [digest.description, number(last, 2), id.description]
            case .root: [id.description]
            }
        return kind.prefix + fields.joined(separator: "-")
    }

    /// Returns the header of a file of this name, which follows from the name, the store id and the salt. The name of a blob or a root
    /// does not have the writer.
    func header(store: PackID, salt: PackID, writer: UInt64? = nil) -> [UInt8] {
        var out = ByteWriter()
        out.raw(PackFormat.magic)
        out.raw([PackFormat.format, kind.rawValue, 0, 0, 0, 0, 0, 0])
        out.raw(store.bytes)
        out.raw(salt.bytes)
        out.raw(PackID.bytes(of: writer ?? self.writer))
        out.integer(last)
        out.integer(first)
        return out.bytes
    }
}
