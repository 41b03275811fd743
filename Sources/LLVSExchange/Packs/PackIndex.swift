/// The index at the end of a file: what it contains, and where. All of it is checked before it is used.
struct PackIndex {
    struct Block: Equatable {
        var offset: Int, stored: Int, raw: Int
        /// The first 8 bytes of SHA-256 over the stored bytes.
        var digest: UInt64
        /// The size from `offset` on, including the header of the block.
        var size: Int { PackFormat.blockHeaderSize + stored }
    }
    /// The place of a record, including its length and type.
    struct Place: Equatable {
        var block: UInt32, offset: UInt32, length: UInt32
        fileprivate var start: UInt64 { UInt64(block) << 32 | UInt64(offset) }
    }
    struct VersionEntry: Equatable {
        var id: VersionID
        var place: Place
        /// The first 8 bytes of the version's identity digest.
        var identity: UInt64
    }
    struct Service: Equatable {
        var type: UInt8
        var place: Place
    }

    let name: PackName
    /// 64 bytes.
    let header: [UInt8]
    private(set) var blocks: [Block] = []
    /// Sorted by id.
    private(set) var versions: [VersionEntry] = []
    /// In the order of their places.
    private(set) var services: [Service] = []
    /// The previous pack of the writer.
    let link: PackID
    /// The first bytes of SHA-256 over what the writer had seen.
    let seen: PackID

    /// Reads the index from the last bytes of a file.
    /// - Parameters:
    ///   - size: the size of the file.
    ///   - tail: its last bytes.
    ///   - stores: the store ids of the roots.
    ///   - header: the first bytes, if they are at hand. If not, they follow from the name and the store ids.
    /// - Returns: nil if more bytes of the end are needed.
    /// - Throws: `PackFault`.
    static func read(_ name: PackName, size: Int, tail: UnsafeRawBufferPointer, stores: [PackID], header: [UInt8]? = nil) throws
        -> PackIndex?
    {
        let trailerSize = PackFormat.trailerSize
        guard size <= PackFormat.fileLimit(name.kind) else {
            throw PackFault.tooLarge("it has \(size) bytes; at most \(PackFormat.fileLimit(name.kind)) are read")
        }
        guard size >= PackFormat.headerSize + trailerSize, tail.count >= trailerSize, tail.count <= size,
            tail.suffix(8).elementsEqual(PackFormat.end)
        else { throw PackFault.notThere("it has no end") }
        let trailer = UnsafeRawBufferPointer(rebasing: tail.suffix(trailerSize))
        var cursor = PackCursor(trailer)
        let at = try cursor.integer(UInt64.self), indexSize = Int(try cursor.integer(UInt32.self))
        let count = try cursor.integer(UInt32.self), flags = try cursor.integer(UInt32.self), zero = try cursor.integer(UInt32.self)
        let raw = try cursor.integer(UInt64.self)
        _ = try cursor.integer(UInt64.self)
        let link = try cursor.id(), seen = try cursor.id()
        let digest = try cursor.take(32), tag = try cursor.take(32), salt = try cursor.id()
        guard indexSize <= PackFormat.indexLimit, raw <= PackFormat.rawLimit else {
            throw PackFault.tooLarge("it has an index of \(indexSize) bytes, and \(raw) bytes when it is inflated")
        }
        guard at >= UInt64(PackFormat.headerSize), at == UInt64(size - trailerSize) - min(UInt64(indexSize), UInt64(size - trailerSize))
        else { throw PackFault.damaged("its index is not where it says") }
        guard tail.count >= trailerSize + indexSize else { return nil }
        let index = UnsafeRawBufferPointer(rebasing: tail.suffix(trailerSize + indexSize).prefix(indexSize))
        let headers = header.map { [$0] } ?? stores.map { name.header(store: $0, salt: salt) }
        let right = headers.first { header in
            var hash = SHA256()
            hash.update(header)
            hash.update(index)
            hash.update(UnsafeRawBufferPointer(rebasing: trailer[..<72]))
            return hash.finish().elementsEqual(digest)
        }
        guard let right else { throw PackFault.damaged("its digest is wrong") }
        guard flags & 0xFFFF == 0 else { throw PackFault.newer("it has the flags \(flags), which this library does not know") }
        guard zero == 0, !tag.contains(where: { $0 != 0 }), right.count == PackFormat.headerSize, PackID(right[32..<48]) == salt else {
            throw PackFault.damaged("it has a field that must be zero and is not, or two salts")
        }
        guard name.kind != .root || link == .zero, name.kind != .blob || link == name.digest else {
            throw PackFault.damaged("it names a pack that it cannot name")
        }
        var result = PackIndex(name: name, header: right, link: link, seen: seen)
        try result.parse(index, end: Int(at), count: Int(count), raw: raw)
        return result
    }

    /// Returns how many of the last bytes of a file have its index, according to a trailer for which `read` needed more.
    static func size(in tail: [UInt8]) -> Int {
        let place = tail.suffix(PackFormat.trailerSize).dropFirst(8).prefix(4)
        return PackFormat.trailerSize + Int(place.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    }

    private mutating func parse(_ bytes: UnsafeRawBufferPointer, end: Int, count: Int, raw: UInt64) throws {
        var cursor = PackCursor(bytes)
        try readBlocks(&cursor, end: end, raw: raw)
        let versionCount = try cursor.count(size: 13, limit: PackFormat.versionsLimit)
        try Memory.expect(versionCount * MemoryLayout<VersionEntry>.stride, "The index of a pack")
        versions.reserveCapacity(versionCount)
        for _ in 0..<versionCount {
            let id = try cursor.versionID()
            if let last = versions.last, !(last.id < id) { throw PackFault.damaged("its versions are out of order") }
            versions.append(VersionEntry(id: id, place: try place(&cursor), identity: try cursor.word()))
        }
        let serviceCount = try cursor.count(size: 4, limit: PackFormat.servicesLimit)
        for _ in 0..<serviceCount { services.append(Service(type: try cursor.integer(UInt8.self), place: try place(&cursor))) }
        try cursor.end()
        guard count == versions.count, name.kind == .log || name.kind == .base || (versions.isEmpty && services.isEmpty) else {
            throw PackFault.damaged("it has another number of records than it says")
        }
        try checkPlaces()
        try checkServices()
    }

    private mutating func readBlocks(_ cursor: inout PackCursor, end: Int, raw: UInt64) throws {
        var at = PackFormat.headerSize, total: UInt64 = 0
        for _ in 0..<(try cursor.count(size: 11, limit: PackFormat.blocksLimit)) {
            let offset = try cursor.varint(), stored = try cursor.varint()
            let size = try cursor.number(atMost: PackFormat.recordLimit) { .tooLarge("it has a block of \($0) bytes when it is inflated") }
            let digest = try cursor.word()
            guard offset == UInt64(at), stored > 0, stored <= UInt64(size) else {
                throw PackFault.damaged("a block of it is not where it says, or has a size that it cannot have")
            }
            blocks.append(Block(offset: at, stored: Int(stored), raw: size, digest: digest))
            at += PackFormat.blockHeaderSize + Int(stored)
            total += UInt64(size)
        }
        guard at == end, total == raw else { throw PackFault.damaged("its blocks do not add up") }
    }

    private func place(_ cursor: inout PackCursor) throws -> Place {
        let block = try cursor.varint(), offset = try cursor.varint()
        let length = try cursor.number(atMost: PackFormat.recordLimit) { .tooLarge("it has a record of \($0) bytes") }
        guard block < UInt64(blocks.count), length >= 2, case let size = UInt64(blocks[Int(block)].raw), offset <= size,
            UInt64(length) <= size - offset
        else { throw PackFault.damaged("a record of it is outside of its block") }
        guard size <= UInt64(PackFormat.blockLimit) || UInt64(length) == size else {
            throw PackFault.damaged("a large block of it is not one record")
        }
        return Place(block: UInt32(block), offset: UInt32(offset), length: UInt32(length))
    }

    /// Checks that no two records overlap, and that each large block has a record.
    private func checkPlaces() throws {
        let places = (versions.map(\.place) + services.map(\.place)).sorted { $0.start < $1.start }
        for (one, two) in zip(places, places.dropFirst()) {
            guard one.block != two.block || UInt64(one.offset) + UInt64(one.length) <= UInt64(two.offset) else {
                throw PackFault.damaged("records of it overlap")
            }
        }
        guard blocks.contains(where: { $0.raw > PackFormat.blockLimit }) else { return }
        let owners = Set(places.map(\.block))
        for (number, block) in blocks.enumerated() where block.raw > PackFormat.blockLimit {
            guard owners.contains(UInt32(number)) else { throw PackFault.damaged("a large block of it has no record") }
        }
    }

    private func checkServices() throws {
        for (one, two) in zip(services, services.dropFirst()) where one.place.start >= two.place.start {
            throw PackFault.damaged("its service records are out of order")
        }
        var once: Set<UInt8> = []
        for type in services.map(\.type) {
            switch type {
            case PackRecordType.seen, PackRecordType.replaces, PackRecordType.covers:
                guard once.insert(type).inserted, name.kind == .base || type == PackRecordType.seen else {
                    throw PackFault.damaged("it has a service record twice, or where none may be")
                }
            case PackRecordType.notice, PackRecordType.ignorable...: break
            case ...PackRecordType.version: throw PackFault.damaged("it has another record among the service records")
            default: throw PackFault.newer("it has a record of type \(type), which this library does not know")
            }
        }
        guard once.contains(PackRecordType.seen) == (seen != .zero) else {
            throw PackFault.damaged("it contradicts itself about what its writer had seen")
        }
    }

    private init(name: PackName, header: [UInt8], link: PackID, seen: PackID) {
        self.name = name; self.header = header; self.link = link; self.seen = seen
    }
}
