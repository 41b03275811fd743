import LLVS
@testable import LLVSCore
@testable import LLVSExchange

/// A stream of packs that a host passes in.
///
///     input = how u8 · ...
///     how 0: records of versions, in a pack with valid checksums and identity digests: (size u16 · record) ...
///         1: files of a stream, to which the target adds digests, pack ids and frames: (size u16 · file) ...
///         2: the stream as it comes
enum PacksTarget {
    static let target = FuzzTarget(name: "packs", run: run, seeds: seeds)
    private static let storeID = PackID(high: 1, low: 2), salt = PackID(high: 3, low: 4), writer: UInt64 = 5

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte() % 3
        Examining.attempt {
            let stream: [UInt8]
            switch how {
            case 0: stream = try framed([pack(&input)])
            case 1:
                var files: [[UInt8]] = []
                while !input.isAtEnd, files.count < 16 { files.append(repaired(input.part())) }
                stream = framed(files)
            default: stream = input.rest()
            }
            let store = try Examining.memoryStore()
            let result = Examining.attempt { try read(stream, into: store) }
            require(result?.problems.allSatisfy { $0.error.code != .internal } ?? true, "an internal error among the problems")
            try again(store)
            Examining.examine(store)
        }
    }

    private static func read(_ stream: [UInt8], into store: Store) throws -> ExchangeResult {
        var left = stream[...]
        return try store.readPack { buffer in
            let count = min(buffer.count, left.count)
            buffer.copyBytes(from: left.prefix(count))
            left = left.dropFirst(count)
            return count
        }
    }

    /// Adds the accepted versions to another store.
    private static func again(_ store: Store) throws {
        let ids = try store.allVersionIDs(), copy = try Examining.memoryStore()
        var stream: [UInt8] = []
        let packed = try store.writePack { stream.append(contentsOf: $0) }
        let problems = try read(stream, into: copy).problems
        require(packed.problems.isEmpty && problems.isEmpty, "versions that were accepted cannot be sent: \(packed.problems) \(problems)")
        for id in ids.prefix(20) where try copy.contains(id) {
            require(try copy.changes(madeIn: id) == store.changes(madeIn: id), "the changes of \(id) differ after a pack")
        }
        try copy.close()
    }

    private static func pack(_ input: inout FuzzInput) throws -> [UInt8] {
        var pack = PackWriter(.init(kind: .log, store: storeID, salt: salt, writer: writer, first: 1, last: 1))
        let scratch = try Examining.memoryStore()
        var ids: Set<VersionID> = [], values: [VersionID: [ValueID: [UInt8]]] = [:]
        while !input.isAtEnd, ids.count < 64 {
            var record = input.part()
            Repair.record(&record)
            guard case .whole(let header) = record.withUnsafeBytes({ RecordHeader.read($0, recordLength: UInt64($0.count)) }),
                ids.insert(header.id).inserted
            else { continue }
            var payload = ByteWriter(bytes: [0])
            payload.varint(UInt64(record.count))
            payload.raw(record)
            payload.varint(0)
            let whole = payload.bytes
            func bytes(_ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer) {
                buffer.copyBytes(from: whole[Int(offset)..<Int(offset) + buffer.count])
            }
            var identity: UInt64 = 0
            if let contents = try? PackedVersion.contents(header.id, size: whole.count, bytes),
                let received = try? PackedVersion.received(
                    contents, bytes,
                    withBase: { id, difference, body in
                        guard let base = values[difference.base]?[ValueID(unchecked: id)] else { throw PackFault.damaged("no base") }
                        try base.withUnsafeBytes(body)
                    }, value: { _ in throw PackFault.damaged("no blob") })
            {
                for change in received.changes {
                    if case .insert(let id, let data) = change { values[header.id, default: [:]][id] = data }
                    if case .update(let id, let data) = change { values[header.id, default: [:]][id] = data }
                }
                identity = (try? scratch.identityDigest(received.version, scratch.sortedChanges(received)).first8) ?? 0
            }
            try pack.add(header.id, identity: identity, payload: whole)
        }
        return try pack.finish().bytes
    }

    /// Gives a file the digest that fits its header, index and trailer.
    private static func repaired(_ file: [UInt8]) -> [UInt8] {
        var file = file
        guard file.count >= PackFormat.headerSize + PackFormat.trailerSize else { return file }
        let trailer = file.count - PackFormat.trailerSize
        let at = file[trailer..<trailer + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard at <= UInt64(trailer) else { return file }
        var hash = LLVSCore.SHA256()
        hash.update(Array(file[..<PackFormat.headerSize]))
        hash.update(Array(file[Int(at)..<trailer]))
        hash.update(Array(file[trailer..<trailer + 72]))
        file.replaceSubrange(trailer + 72..<trailer + 104, with: hash.finish())
        return file
    }

    private static func framed(_ files: [[UInt8]]) -> [UInt8] {
        var stream = PackStream.start(storeID), sum = PackStreamSum()
        for file in files {
            let id = file.withUnsafeBytes { PackID(LLVSCore.SHA256.digest($0)) } ?? .zero
            stream += PackStream.frame(file.count > 9 && file[9] == PackKind.blob.rawValue ? 3 : 1, file.count, id) + file
            sum.add(id)
        }
        return stream + PackStream.frame(0, sum.count, sum.finish())
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        let store = try Examining.memoryStore()
        try Examples.fill(store)
        var records: [UInt8] = [0], pack = PackWriter(.init(kind: .log, store: storeID, salt: salt, writer: writer, first: 1, last: 1))
        var differences: PackDifferences? = PackDifferences(store)
        for id in try store.allVersionIDs() {
            let (payload, identity) = try PackRecord(id, of: store).payload(&differences)
            try pack.add(id, identity: identity, payload: payload)
            differences?.keepValues(of: id)
            let record = try payload.withUnsafeBytes { bytes -> [UInt8] in
                var cursor = ByteReader(bytes)
                _ = cursor.integer(UInt8.self)
                guard let size = cursor.count(atMost: cursor.remaining), let record = cursor.take(size) else {
                    throw StoreError(.internal, "A payload cannot be read.")
                }
                return Array(record)
            }
            records += FuzzInput.part(record)
        }
        let made = try pack.finish()
        let value = [UInt8](repeating: 7, count: 3_000)
        let digest = value.withUnsafeBytes { PackID(LLVSCore.SHA256.digest($0)) } ?? .zero
        let part = try value.withUnsafeBytes {
            try PackWriter.blobPart(store: storeID, salt: salt, writer: writer, digest: digest, part: 0, $0)
        }
        return [
            FuzzTarget.Seed(name: "records", bytes: records),
            FuzzTarget.Seed(name: "pack", bytes: [1] + FuzzInput.part(made.bytes)),
            FuzzTarget.Seed(name: "blob", bytes: [1] + FuzzInput.part(part.bytes) + FuzzInput.part(made.bytes)),
            FuzzTarget.Seed(name: "stream", bytes: [2] + framed([made.bytes])),
        ]
    }
}
