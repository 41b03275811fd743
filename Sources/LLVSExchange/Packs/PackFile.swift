/// A file of the packed layout in memory, checked from its name to the last record. Blocks are decompressed one at a time.
struct PackFile {
    let index: PackIndex
    private let bytes: [UInt8]
    /// The content of the service records.
    private(set) var services = PackServices()

    /// - Parameters:
    ///   - bytes: the whole file.
    ///   - stores: the store ids of the roots at the place. A pack of another store is refused. A root is not compared with them.
    ///   - size: the size according to a listing.
    ///   - sealing: how the pack is stored in the file.
    /// - Throws: `PackFault`. Then nothing of the file may be used.
    init(_ name: PackName, _ bytes: [UInt8], stores: [PackID], size: Int? = nil, sealing: PackSealing = .none) throws {
        guard bytes.count <= PackFormat.fileLimit(name.kind) else {
            throw PackFault.tooLarge("it has \(bytes.count) bytes; at most \(PackFormat.fileLimit(name.kind)) are read")
        }
        guard size ?? bytes.count == bytes.count, bytes.withUnsafeBytes({ PackID(SHA256.digest($0)) }) == name.id else {
            throw PackFault.notThere("its bytes do not match its name")
        }
        let bytes = try sealing.open(name, bytes)
        let header = try PackFile.checkHeader(name, bytes, stores)
        guard
            let index = try bytes.withUnsafeBytes({
                try PackIndex.read(name, size: bytes.count, tail: $0, stores: stores, header: header)
            })
        else { throw PackFault.damaged("its index is not where it says") }
        self.index = index
        self.bytes = bytes
        try checkBlocks()
    }

    private static func checkHeader(_ name: PackName, _ bytes: [UInt8], _ stores: [PackID]) throws -> [UInt8] {
        guard bytes.count >= PackFormat.headerSize + PackFormat.trailerSize, bytes.starts(with: PackFormat.magic),
            bytes.suffix(8).elementsEqual(PackFormat.end)
        else { throw PackFault.damaged("it is not a pack") }
        let header = Array(bytes[..<PackFormat.headerSize])
        guard header[8] <= PackFormat.format else { throw PackFault.newer("it has the format \(header[8])") }
        guard let store = PackID(header[16..<32]), let salt = PackID(header[32..<48]) else { throw PackFault.damaged("it is not a pack") }
        let writer = header[48..<56].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let isOfWriter = name.kind == .log || name.kind == .base
        guard header == name.header(store: store, salt: salt, writer: isOfWriter ? nil : writer) else {
            throw PackFault.damaged("its header is not that of its name")
        }
        guard name.kind == .root || stores.contains(store) else { throw PackFault.otherStore("it is of another store (\(store))") }
        return header
    }

    /// Checks that every block decompresses to the size and the records in the index.
    private mutating func checkBlocks() throws {
        let places = index.versions.map { ($0.place, PackRecordType.version) } + index.services.map { ($0.place, $0.type) }
        let sorted = places.sorted { ($0.0.block, $0.0.offset) < ($1.0.block, $1.0.offset) }
        var next = 0, services: [(UInt8, [UInt8])] = []
        for number in index.blocks.indices {
            let raw = try block(number)
            try raw.withUnsafeBytes { raw in
                while next < sorted.count, sorted[next].0.block == UInt32(number) {
                    let (place, type) = sorted[next]
                    let payload = try PackFile.payload(place, type, in: raw)
                    if type != PackRecordType.version { services.append((type, try Memory.copy(payload, "Reading a pack"))) }
                    next += 1
                }
            }
        }
        switch index.name.kind {
        case .log, .base: self.services = try PackServices(services, seen: index.seen)
        case .blob:
            let size = index.blocks.reduce(0) { $0 + $1.raw }
            guard size >= 1, size <= PackFormat.partSize else { throw PackFault.damaged("it has \(size) bytes, which no part has") }
        case .root:
            guard index.blocks.count == 1, bytes[PackFormat.headerSize] == 0 else { throw PackFault.damaged("it is not a root") }
        }
    }

    /// Returns the uncompressed bytes of a block.
    func block(_ number: Int) throws -> [UInt8] {
        let block = index.blocks[number]
        guard block.offset <= bytes.count, block.size <= bytes.count - block.offset else {
            throw PackFault.notThere("a block of it is cut short")
        }
        return try bytes.withUnsafeBytes {
            try PackFile.inflate(block, UnsafeRawBufferPointer(rebasing: $0[block.offset..<block.offset + block.size]))
        }
    }

    /// Returns the payload of the record of a version.
    func payload(of entry: PackIndex.VersionEntry) throws -> [UInt8] {
        try block(Int(entry.place.block)).withUnsafeBytes { Array(try PackFile.payload(entry.place, PackRecordType.version, in: $0)) }
    }

    /// Calls with the uncompressed bytes of each block, in order: the content of a part of a blob, or of a root.
    func forEachBlock(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        for number in index.blocks.indices { try block(number).withUnsafeBytes(body) }
    }

    /// Returns the uncompressed bytes of a block, given its header and stored bytes.
    static func inflate(_ block: PackIndex.Block, _ bytes: UnsafeRawBufferPointer) throws -> [UInt8] {
        guard bytes.count == block.size else { throw PackFault.notThere("a block of it is cut short") }
        var cursor = PackCursor(bytes)
        let codec = try cursor.integer(UInt8.self)
        let isRight =
            try cursor.integer(UInt32.self) == UInt32(truncatingIfNeeded: block.stored)
            && cursor.integer(UInt32.self) == UInt32(truncatingIfNeeded: block.raw)
        let stored = try cursor.take(block.stored)
        guard isRight, PackID(SHA256.digest(stored))?.high == block.digest else {
            throw PackFault.damaged("a block of it does not match its index")
        }
        switch codec {
        case 0:
            guard block.stored == block.raw else { throw PackFault.damaged("a block of it has two sizes") }
            return try Memory.copy(stored, "Reading a pack")
        case 1:
            try Memory.expect(block.raw, "Reading a pack")
            guard let raw = Inflated.bytes(block.raw, from: stored) else {
                throw PackFault.damaged("a block of it does not inflate to what its index says")
            }
            return raw
        default: throw PackFault.newer("a block of it has the codec \(codec)")
        }
    }

    /// Returns the bytes of a record after its length and type.
    static func payload(_ place: PackIndex.Place, _ type: UInt8, in raw: UnsafeRawBufferPointer) throws -> UnsafeRawBufferPointer {
        let end = Int(place.offset) + Int(place.length)
        guard end <= raw.count else { throw PackFault.damaged("a record of it is outside of its block") }
        var cursor = PackCursor(UnsafeRawBufferPointer(rebasing: raw[Int(place.offset)..<end]))
        guard try cursor.varint() == UInt64(cursor.remaining), try cursor.integer(UInt8.self) == type else {
            throw PackFault.damaged("a record of it does not match its index")
        }
        return try cursor.take(cursor.remaining)
    }
}
