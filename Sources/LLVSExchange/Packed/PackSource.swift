/// A pack at a remote: whole in memory, or only its end.
///
/// Indirect: copying an inline value reads bytes of the larger case that the smaller one never wrote, which valgrind reports.
indirect enum PackSource {
    case whole(PackFile)
    case part(PartialPack)

    var index: PackIndex {
        switch self {
        case .whole(let file): file.index
        case .part(let part): part.index
        }
    }
    var services: PackServices {
        switch self {
        case .whole(let file): file.services
        case .part(let part): part.services
        }
    }
}

/// Locates parts of a pack at a remote, encrypted or not.
struct PackParts {
    let name: PackName
    /// The bytes of the pack itself, decrypted.
    let size: Int
    private let sealed: EncryptedPack?

    /// - Parameter size: the bytes of the file, which is the pack.
    init(_ name: PackName, size: Int) { (self.name, self.size, sealed) = (name, size, nil) }
    init(_ name: PackName, _ sealed: EncryptedPack) { (self.name, size, self.sealed) = (name, sealed.plainSize, sealed) }

    /// The last bytes of the pack, which usually contain its whole index.
    var tail: Range<Int> { sealed?.tail(PackedSettings.tail) ?? max(0, size - PackedSettings.tail)..<size }

    /// Returns the bytes of the file that hold a range of the pack.
    /// - Throws: `PackFault`.
    func place(of range: Range<Int>) throws -> Range<Int> { try sealed?.sealedRange(of: range) ?? range }

    /// Returns a range of the pack, decrypted from the bytes of the file that `place` returns. For a range up to the end the tag is
    /// checked, and replaced by zeros.
    /// - Throws: `PackFault` if no holder of the keys wrote these bytes there.
    func open(_ range: Range<Int>, _ bytes: [UInt8]) throws -> [UInt8] {
        guard let sealed else { return bytes }
        var plain = try sealed.open(range, bytes)
        if range.upperBound == size { try sealed.check(&plain) }
        return plain
    }
}

/// The end of a pack, and blocks of it on demand: docs/pack-format.md, section 7.
struct PartialPack {
    let parts: PackParts
    let index: PackIndex
    /// The contents of its service records.
    let services: PackServices
    /// Bytes before a large index that are read with it, since service records precede it.
    private static let margin = 16 << 10

    /// - Parameters:
    ///   - tail: the last bytes of the pack.
    ///   - read: reads a range of the pack.
    /// - Throws: `PackFault`, and errors of `read`.
    init(_ parts: PackParts, tail: [UInt8], stores: [PackID], _ read: (Range<Int>) throws -> [UInt8]) throws {
        let name = parts.name, size = parts.size
        var tail = tail
        var index = try tail.withUnsafeBytes { try PackIndex.read(name, size: size, tail: $0, stores: stores) }
        if index == nil {
            let wanted = min(size, PackIndex.size(in: tail) + PartialPack.margin)
            tail = try read((size - wanted)..<(size - tail.count)) + tail
            index = try tail.withUnsafeBytes { try PackIndex.read(name, size: size, tail: $0, stores: stores) }
        }
        guard let index else { throw PackFault.notThere("its end is cut short") }
        self.parts = parts
        self.index = index
        let begin = size - tail.count
        var raw: [Int: [UInt8]] = [:], records: [(UInt8, [UInt8])] = []
        for service in index.services {
            let number = Int(service.place.block), block = index.blocks[number]
            if raw[number] == nil {
                let bytes =
                    block.offset >= begin
                    ? Array(tail.dropFirst(block.offset - begin).prefix(block.size)) : try read(block.offset..<block.offset + block.size)
                raw[number] = try bytes.withUnsafeBytes { try PackFile.inflate(block, $0) }
            }
            try raw[number]?.withUnsafeBytes { raw in
                records.append((service.type, Array(try PackFile.payload(service.place, service.type, in: raw))))
            }
        }
        services = try PackServices(records, seen: index.seen)
    }

    /// Returns the ranges with the blocks of these versions; close neighbours are joined.
    func ranges(of versions: [PackIndex.VersionEntry]) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        for number in Set(versions.map { Int($0.place.block) }).sorted() {
            let block = index.blocks[number], end = block.offset + block.size
            if let last = ranges.last, block.offset - last.upperBound < PackedSettings.tail {
                ranges[ranges.count - 1] = last.lowerBound..<end
            } else {
                ranges.append(block.offset..<end)
            }
        }
        return ranges
    }

    /// Returns a block from ranges that were read.
    func block(_ number: Int, in ranges: [(range: Range<Int>, bytes: [UInt8])]) throws -> [UInt8] {
        let block = index.blocks[number]
        guard let found = ranges.first(where: { $0.range.contains(block.offset) }), found.bytes.count == found.range.count,
            block.offset + block.size <= found.range.upperBound
        else { throw PackFault.notThere("a block of it is cut short") }
        let start = block.offset - found.range.lowerBound
        return try found.bytes[start..<start + block.size].withUnsafeBytes { try PackFile.inflate(block, $0) }
    }
}
