import CLLVSShims

/// A finished file of the packed layout: its name, and its bytes in pieces.
struct MadePack {
    let name: PackName
    let pieces: [[UInt8]]
    /// The total number of bytes.
    let size: Int

    /// All bytes in one array.
    var bytes: [UInt8] {
        var all: [UInt8] = []
        all.reserveCapacity(size)
        for piece in pieces { all += piece }
        return all
    }
}

/// Builds one file of the packed layout: docs/pack-format.md, section 2. Its blocks are compressed as they are filled.
struct PackWriter {
    /// The fields of the file's header and name.
    struct Identity {
        var kind: PackKind
        var store: PackID
        var salt: PackID
        var writer: UInt64
        var first: UInt32
        var last: UInt32
        /// The previous pack of the writer; for a blob, the digest of the content of all parts.
        var link = PackID.zero
        /// Milliseconds since 1970, for people.
        var made: UInt64 = 0
    }
    private let identity: Identity
    private let deflates: Bool
    private let sizeLimit: Int
    private var blocks: [[UInt8]] = []
    private var blockIndex = ByteWriter()
    /// The block that is being filled.
    private var raw: [UInt8] = []
    private var position = PackFormat.headerSize
    private var rawTotal = 0
    private var versions: [PackIndex.VersionEntry] = []
    private var versionIndexSize = 0
    private var services: [PackIndex.Service] = []
    private var seen = PackID.zero

    /// - Parameter sizeLimit: the approximate size of the file above which `hasRoom` returns false.
    init(_ identity: Identity, deflates: Bool = true, sizeLimit: Int = PackFormat.writtenFile) {
        self.identity = identity; self.deflates = deflates; self.sizeLimit = sizeLimit
    }

    var versionCount: Int { versions.count }

    /// Returns whether a version with a payload of this size fits within the limits of writers.
    func hasRoom(for payloadSize: Int) -> Bool {
        let record = payloadSize + 8
        let index = blockIndex.bytes.count + versionIndexSize + 64
        return versions.count < PackFormat.writtenVersions && blocks.count + 8 < PackFormat.blocksLimit
            && rawTotal + raw.count + record <= PackFormat.writtenRaw && index + 256 <= PackFormat.writtenIndex
            && position + raw.count + record + index + 1024 <= sizeLimit
    }

    /// Adds a version. Its predecessors must be added before.
    /// - Parameter identity: the first 8 bytes of its identity digest.
    mutating func add(_ id: VersionID, identity: UInt64, payload: [UInt8]) throws {
        let place = try put(PackRecordType.version, payload)
        versions.append(PackIndex.VersionEntry(id: id, place: place, identity: identity))
        versionIndexSize += (id.text.map { $0.utf8.count } ?? 16) + 1 + 15 + 8
    }

    /// Adds the service records of the pack, after all of its versions.
    mutating func add(_ said: PackServices) throws {
        for (type, payload) in said.records {
            if type == PackRecordType.seen { seen = PackID(payload.withUnsafeBytes { SHA256.digest($0) }) ?? .zero }
            if services.isEmpty { try finishBlock() }
            services.append(PackIndex.Service(type: type, place: try put(type, payload)))
        }
    }

    /// Adds bytes without records, as blocks: of a part of a blob, or of a root.
    mutating func add(bare bytes: UnsafeRawBufferPointer) throws {
        var at = 0
        while at < bytes.count {
            let end = min(bytes.count, at + PackFormat.blockLimit)
            raw = Array(UnsafeRawBufferPointer(rebasing: bytes[at..<end]))
            try finishBlock()
            at = end
        }
    }

    private mutating func put(_ type: UInt8, _ payload: [UInt8]) throws -> PackIndex.Place {
        var head = ByteWriter()
        head.varint(UInt64(payload.count + 1))
        head.bytes.append(type)
        let size = head.bytes.count + payload.count
        guard size <= PackFormat.recordLimit else {
            throw StoreError(.internal, "A record of \(size) bytes was to go into a pack, which takes at most \(PackFormat.recordLimit).")
        }
        if !raw.isEmpty, raw.count + size > PackFormat.blockLimit { try finishBlock() }
        let offset = raw.count
        try Memory.grow(&raw, by: size, "A pack")
        raw += head.bytes
        raw += payload
        return PackIndex.Place(
            block: UInt32(truncatingIfNeeded: blocks.count), offset: UInt32(truncatingIfNeeded: offset),
            length: UInt32(truncatingIfNeeded: size))
    }

    private mutating func finishBlock() throws {
        guard !raw.isEmpty else { return }
        try Memory.expect(raw.count, "A pack")
        let size = raw.count, headerSize = PackFormat.blockHeaderSize, isDeflated = deflates && identity.kind != .root
        var codec: UInt8 = 0
        var block = [UInt8](unsafeUninitializedCapacity: headerSize + size) { buffer, filled in
            filled = headerSize + size
            for i in 0..<headerSize { buffer[i] = 0 }
            raw.withUnsafeBytes { source in
                let room = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[headerSize...])
                if isDeflated, let from = source.baseAddress, let to = room.baseAddress,
                    case let made = llvs_shim_deflate(from, size, to, size - 1), made > 0
                {
                    codec = 1
                    filled = headerSize + made
                } else {
                    room.copyMemory(from: source)
                }
            }
        }
        let stored = block.count - headerSize
        block[0] = codec
        for i in 0..<4 {
            block[1 + i] = UInt8(truncatingIfNeeded: stored >> (8 * i))
            block[5 + i] = UInt8(truncatingIfNeeded: size >> (8 * i))
        }
        blockIndex.varint(UInt64(position))
        blockIndex.varint(UInt64(stored))
        blockIndex.varint(UInt64(size))
        blockIndex.raw(block.withUnsafeBytes { Array(SHA256.digest(UnsafeRawBufferPointer(rebasing: $0[headerSize...])).prefix(8)) })
        blocks.append(block)
        position += block.count
        rawTotal += size
        raw.removeAll(keepingCapacity: size <= PackFormat.blockLimit)
    }

    /// Returns the file.
    mutating func finish() throws -> MadePack {
        try finishBlock()
        var name = PackName(
            kind: identity.kind, writer: identity.kind == .log || identity.kind == .base ? identity.writer : 0,
            digest: identity.kind == .blob ? identity.link : .zero, first: identity.first, last: identity.last, id: .zero)
        let header = name.header(store: identity.store, salt: identity.salt, writer: identity.writer)
        let index = self.index()
        var trailer = ByteWriter()
        trailer.integer(UInt64(position))
        trailer.integer(UInt32(truncatingIfNeeded: index.count))
        trailer.integer(UInt32(truncatingIfNeeded: versions.count))
        trailer.integer(UInt64(0))
        trailer.integer(UInt64(rawTotal))
        trailer.integer(identity.made)
        trailer.raw(identity.link.bytes)
        trailer.raw(seen.bytes)
        var hash = SHA256()
        hash.update(header)
        hash.update(index)
        hash.update(trailer.bytes)
        trailer.raw(hash.finish())
        trailer.raw([UInt8](repeating: 0, count: 32))
        trailer.raw(identity.salt.bytes)
        trailer.raw(PackFormat.end)
        let pieces = [header] + blocks + [index, trailer.bytes]
        var whole = SHA256()
        for piece in pieces { whole.update(piece) }
        guard let id = PackID(whole.finish()) else { throw StoreError(.internal, "A digest has too few bytes.") }
        name.id = id
        return MadePack(name: name, pieces: pieces, size: pieces.reduce(0) { $0 + $1.count })
    }

    private mutating func index() -> [UInt8] {
        var out = ByteWriter()
        out.varint(UInt64(blocks.count))
        out.raw(blockIndex.bytes)
        versions.sort { $0.id < $1.id }
        out.varint(UInt64(versions.count))
        for version in versions {
            out.versionID(version.id)
            PackWriter.put(version.place, into: &out)
            out.raw(PackID.bytes(of: version.identity))
        }
        out.varint(UInt64(services.count))
        for service in services {
            out.bytes.append(service.type)
            PackWriter.put(service.place, into: &out)
        }
        return out.bytes
    }
    private static func put(_ place: PackIndex.Place, into out: inout ByteWriter) {
        out.varint(UInt64(place.block))
        out.varint(UInt64(place.offset))
        out.varint(UInt64(place.length))
    }

    /// Returns one part of a blob.
    static func blobPart(
        store: PackID, salt: PackID, writer: UInt64, digest: PackID, part: Int, _ bytes: UnsafeRawBufferPointer
    ) throws -> MadePack {
        let number = UInt32(truncatingIfNeeded: part)
        var pack = PackWriter(
            Identity(kind: .blob, store: store, salt: salt, writer: writer, first: number, last: number, link: digest))
        try pack.add(bare: bytes)
        return try pack.finish()
    }
}
