/// What a pack states besides its versions.
struct PackServices: Equatable {
    /// A writer, and its newest pack that was seen.
    struct Seen: Equatable {
        var writer: UInt64, number: UInt32, id: PackID
    }
    /// A range of a writer's pack numbers.
    struct Range: Equatable {
        var writer: UInt64, first: UInt32, last: UInt32
        fileprivate static func isBefore(_ a: Range, _ b: Range) -> Bool { (a.writer, a.first) < (b.writer, b.first) }
    }
    struct Notice: Equatable {
        var kind: UInt8, payload: [UInt8]
        /// The remote continues at the address in the payload.
        static let moved: UInt8 = 1
        /// The writer in the payload writes no more.
        static let retired: UInt8 = 2
        /// The remote had been emptied, and its writer filled it again from its own store.
        static let seededAnew: UInt8 = 3
        /// A name of the writer, for people.
        static let named: UInt8 = 4
        /// A part of a large value is damaged. The payload is the digest of the value's reference, and the id of the part.
        static let damagedPart: UInt8 = 5
        /// Versions of the pack that lack bytes of values. The payload is their number, and their ids in order.
        static let hollow: UInt8 = 7
        init(kind: UInt8, payload: [UInt8]) { self.kind = kind; self.payload = payload }
        init(hollow ids: [VersionID]) {
            var out = ByteWriter()
            out.varint(UInt64(ids.count))
            for id in ids.sorted() { out.versionID(id) }
            self.init(kind: Notice.hollow, payload: out.bytes)
        }
    }
    /// The versions of the pack that lack bytes of values, as its notices say.
    var hollow: Set<VersionID> {
        var ids: Set<VersionID> = []
        for notice in notices where notice.kind == Notice.hollow {
            // A payload in another form says nothing.
            _ = try? notice.payload.withUnsafeBytes { bytes in
                var cursor = PackCursor(bytes)
                for _ in 0..<(try cursor.count(size: 2, limit: PackFormat.entriesLimit)) { ids.insert(try cursor.versionID()) }
            }
        }
        return ids
    }
    /// The newest packs of other writers that the writer had seen, sorted by writer.
    var seen: [Seen] = []
    /// Packs that this one contains completely: log and base packs.
    var replaces: [PackName] = []
    /// The numbers that the pack covers besides its own.
    var covers: [Range] = []
    var notices: [Notice] = []

    init() {}

    /// Parses the payloads of service records, given by type.
    /// - Parameter digest: the digest in the trailer of the record with `seen`.
    /// - Throws: `PackFault`.
    init(_ records: [(UInt8, [UInt8])], seen digest: PackID) throws {
        for (type, payload) in records {
            try payload.withUnsafeBytes { bytes in
                var cursor = PackCursor(bytes)
                switch type {
                case PackRecordType.seen:
                    guard PackID(SHA256.digest(bytes)) == digest else {
                        throw PackFault.damaged("its record of what was seen does not match its digest")
                    }
                    try readSeen(&cursor)
                case PackRecordType.replaces: try readReplaces(&cursor)
                case PackRecordType.covers: try readCovers(&cursor)
                case PackRecordType.notice:
                    let kind = try cursor.integer(UInt8.self)
                    notices.append(Notice(kind: kind, payload: Array(try cursor.take(cursor.remaining))))
                default: return
                }
                try cursor.end()
            }
        }
    }

    private mutating func readSeen(_ cursor: inout PackCursor) throws {
        for _ in 0..<(try cursor.count(size: 28, limit: PackFormat.entriesLimit)) {
            let one = Seen(writer: try cursor.word(), number: try cursor.integer(UInt32.self), id: try cursor.id())
            if let last = seen.last, last.writer >= one.writer { throw PackFault.damaged("what it has seen is out of order") }
            seen.append(one)
        }
    }

    private mutating func readReplaces(_ cursor: inout PackCursor) throws {
        var last: [UInt8] = []
        for _ in 0..<(try cursor.count(size: 29, limit: PackFormat.entriesLimit)) {
            let number = try cursor.integer(UInt8.self)
            guard let kind = PackKind(rawValue: number), kind == .log || kind == .base else {
                throw PackFault.damaged("it replaces what cannot be replaced")
            }
            let writer = try cursor.word(), first = try cursor.integer(UInt32.self)
            let name = PackName(
                kind: kind, writer: writer, first: first, last: kind == .log ? first : try cursor.integer(UInt32.self), id: try cursor.id())
            guard writer != 0, first != 0, first <= name.last else { throw PackFault.damaged("it replaces what cannot be a name") }
            let form = PackServices.form(name)
            guard replaces.isEmpty || Bytes.compare(last, form) < 0 else { throw PackFault.damaged("what it replaces is out of order") }
            last = form
            replaces.append(name)
        }
    }

    private mutating func readCovers(_ cursor: inout PackCursor) throws {
        for _ in 0..<(try cursor.count(size: 16, limit: PackFormat.entriesLimit)) {
            let one = Range(
                writer: try cursor.word(), first: try cursor.integer(UInt32.self), last: try cursor.integer(UInt32.self))
            guard one.first != 0, one.first <= one.last else { throw PackFault.damaged("it covers an empty range") }
            if let before = covers.last {
                guard before.writer < one.writer || (before.writer == one.writer && UInt64(before.last) + 1 < UInt64(one.first)) else {
                    throw PackFault.damaged("what it covers touches, or is out of order")
                }
            }
            covers.append(one)
        }
    }

    /// Returns a name in the form for `replaces`.
    private static func form(_ name: PackName) -> [UInt8] {
        var out = ByteWriter()
        out.bytes.append(name.kind.rawValue)
        out.raw(PackID.bytes(of: name.writer))
        out.integer(name.first)
        if name.kind == .base { out.integer(name.last) }
        out.raw(name.id.bytes)
        return out.bytes
    }

    /// The payloads of the records, with types, in writing order.
    var records: [(type: UInt8, payload: [UInt8])] {
        var result: [(UInt8, [UInt8])] = []
        if !seen.isEmpty {
            var out = ByteWriter()
            out.varint(UInt64(seen.count))
            for one in seen.sorted(by: { $0.writer < $1.writer }) {
                out.raw(PackID.bytes(of: one.writer))
                out.integer(one.number)
                out.raw(one.id.bytes)
            }
            result.append((PackRecordType.seen, out.bytes))
        }
        let forms = Set(replaces.map(PackServices.form)).sorted { Bytes.compare($0, $1) < 0 }
        if !forms.isEmpty {
            var out = ByteWriter()
            out.varint(UInt64(forms.count))
            for form in forms { out.raw(form) }
            result.append((PackRecordType.replaces, out.bytes))
        }
        let ranges = PackServices.joined(covers)
        if !ranges.isEmpty {
            var out = ByteWriter()
            out.varint(UInt64(ranges.count))
            for range in ranges {
                out.raw(PackID.bytes(of: range.writer))
                out.integer(range.first)
                out.integer(range.last)
            }
            result.append((PackRecordType.covers, out.bytes))
        }
        for notice in notices { result.append((PackRecordType.notice, [notice.kind] + notice.payload)) }
        return result
    }

    /// Returns the ranges sorted, with adjacent ones joined.
    static func joined(_ ranges: [Range]) -> [Range] {
        var result: [Range] = []
        for range in ranges.sorted(by: Range.isBefore) {
            if let last = result.last, last.writer == range.writer, UInt64(last.last) + 1 >= UInt64(range.first) {
                result[result.count - 1].last = max(last.last, range.last)
            } else {
                result.append(range)
            }
        }
        return result
    }
}
