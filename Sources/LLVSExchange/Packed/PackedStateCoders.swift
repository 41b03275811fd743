/// Encodes the state of a remote: little-endian, lists preceded by their counts.
struct StateWriter {
    var bytes = ByteWriter()

    mutating func list<T>(_ items: [T], _ put: (inout StateWriter, T) -> Void) {
        bytes.varint(UInt64(items.count))
        for item in items { put(&self, item) }
    }
    mutating func put(_ part: UInt8, _ contents: [UInt8]) {
        bytes.bytes.append(part)
        bytes.varint(UInt64(contents.count))
        bytes.raw(contents)
    }
    mutating func put(_ name: PackName) {
        bytes.bytes.append(name.kind.rawValue)
        bytes.integer(name.writer)
        put(name.digest)
        bytes.integer(name.first)
        bytes.integer(name.last)
        put(name.id)
    }
    mutating func put(_ id: PackID) {
        bytes.integer(id.high.byteSwapped)
        bytes.integer(id.low.byteSwapped)
    }
    mutating func text(_ text: String) {
        bytes.varint(UInt64(text.utf8.count))
        bytes.raw(Array(text.utf8))
    }
    mutating func put(_ range: PackServices.Range) {
        bytes.integer(range.writer)
        bytes.integer(range.first)
        bytes.integer(range.last)
    }
    mutating func put(_ seen: PackServices.Seen) {
        bytes.integer(seen.writer)
        bytes.integer(seen.number)
        put(seen.id)
    }
}

/// Decodes it. The functions throw `PackFault`.
struct StateReader {
    var cursor: PackCursor
    init(_ bytes: UnsafeRawBufferPointer) { cursor = PackCursor(bytes) }

    mutating func list<T>(_ read: (inout StateReader) throws -> T) throws -> [T] {
        let count = try cursor.number(atMost: cursor.remaining) { _ in .damaged("a list of it is too long") }
        var all: [T] = []
        for _ in 0..<count { all.append(try read(&self)) }
        return all
    }
    mutating func size() throws -> Int { try cursor.number(atMost: 1 << 40) { _ in .damaged("a size of it is too large") } }
    /// Reads seconds since 1970, bounded so that sums cannot overflow.
    mutating func time() throws -> Int64 {
        let time = try cursor.integer(Int64.self)
        guard time.magnitude <= 1 << 60 else { throw PackFault.damaged("a time of it is none") }
        return time
    }
    mutating func bytes() throws -> [UInt8] {
        Array(try cursor.take(try cursor.number(atMost: cursor.remaining) { _ in .damaged("it is cut short") }))
    }
    mutating func text() throws -> String { String(decoding: try bytes(), as: UTF8.self) }
    mutating func flag() throws -> Bool { try cursor.integer(UInt8.self) != 0 }
    mutating func name() throws -> PackName {
        guard let kind = PackKind(rawValue: try cursor.integer(UInt8.self)) else { throw PackFault.damaged("a name of it is none") }
        let name = PackName(
            kind: kind, writer: try cursor.integer(UInt64.self), digest: try cursor.id(), first: try cursor.integer(UInt32.self),
            last: try cursor.integer(UInt32.self), id: try cursor.id())
        guard name.isWhole else { throw PackFault.damaged("a name of it is none") }
        return name
    }
    mutating func range() throws -> PackServices.Range {
        let range = PackServices.Range(
            writer: try cursor.integer(UInt64.self), first: try cursor.integer(UInt32.self), last: try cursor.integer(UInt32.self))
        guard range.first <= range.last else { throw PackFault.damaged("a range of it is empty") }
        return range
    }
    mutating func seen() throws -> PackServices.Seen {
        PackServices.Seen(writer: try cursor.integer(UInt64.self), number: try cursor.integer(UInt32.self), id: try cursor.id())
    }
}
