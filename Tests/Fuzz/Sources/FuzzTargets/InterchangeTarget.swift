import LLVS
@testable import LLVSUpkeep

/// Documents of the interchange layout: versions, changes, manifests, nodes of foreign stores.
///
///     input = which u8 · size of pieces u8 · document
enum InterchangeTarget {
    static let target = FuzzTarget(name: "interchange", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let which = input.byte(), pieces = Int(input.byte()) + 1, document = input.rest()
        switch which % 5 {
        case 0: version(document, pieces)
        case 1: changes(document, pieces)
        case 2: manifest(document)
        case 3: Examining.attempt { _ = try InterchangeDecoder.bareVersion(document, name: EmptyRoot.id, file: "a version") }
        default: Examining.attempt { _ = try ForeignStoreDirectory.Node(document, file: "a node") }
        }
    }

    private static func version(_ document: [UInt8], _ pieces: Int) {
        let whole = outcome { try InterchangeDecoder.versionOfAnyName(.bytes(document), file: "a version") }
        let inPieces = outcome { try InterchangeDecoder.versionOfAnyName(.pieces(Pieces(document, pieces)), file: "a version") }
        require(agree(whole, inPieces), "in pieces of \(pieces) the version is another: \(whole), \(inPieces)")
        guard case .success(let version) = whole else { return }
        require(version.timestamp.isFinite, "a timestamp that no store keeps")
        let canonical = InterchangeEncoder.version(version)
        require(
            outcome { try InterchangeDecoder.version(canonical, name: version.id) } == .success(version), "decoding gives another version"
        )
    }

    private static func changes(_ document: [UInt8], _ pieces: Int) {
        let whole = outcome { try InterchangeDecoder.changes(document, of: EmptyRoot.id) }
        let inPieces = outcome { try InterchangeDecoder.changes(.pieces(Pieces(document, pieces)), of: EmptyRoot.id) }
        require(agree(whole, inPieces), "in pieces of \(pieces) the changes are others: \(whole), \(inPieces)")
        guard case .success(let changes) = whole else { return }
        for (a, b) in zip(changes, changes.dropFirst()) { require(a.id < b.id, "changes out of order, or twice") }
        let canonical = InterchangeEncoder.changes(changes)
        require(
            outcome { try InterchangeDecoder.changes(canonical, of: EmptyRoot.id) } == .success(changes),
            "decoding gives other changes")
        require(
            changes.allSatisfy { change in
                let bytes =
                    switch change {
                    case .insert(_, let data), .update(_, let data): data.count
                    default: 0
                    }
                return bytes <= document.count && change.id.bytes.count <= document.count
            }, "more than the document holds")
    }

    private static func manifest(_ document: [UInt8]) {
        guard let manifest = Examining.attempt({ try SnapshotManifest(document, file: "a manifest") }) else { return }
        require(
            Examining.attempt { try SnapshotManifest(manifest.encoded(), file: "a manifest") } == manifest,
            "decoding gives another manifest")
    }

    private enum Outcome<R: Equatable>: Equatable { case success(R), failure(StoreError.Code) }
    /// With two faults the first one found is reported, which depends on the pieces.
    private static func agree<R>(_ a: Outcome<R>, _ b: Outcome<R>) -> Bool {
        if case .failure = a, case .failure = b { return true }
        return a == b
    }
    private static func outcome<R: Equatable>(_ body: () throws -> R) -> Outcome<R> {
        var failure = StoreError.Code.internal
        let result = Examining.attempt {
            do { return try body() } catch {
                if let error = error as? StoreError { failure = error.code }
                throw error
            }
        }
        return result.map { .success($0) } ?? .failure(failure)
    }

    /// A document that is read a few bytes at a time.
    private final class Pieces: PieceReader, @unchecked Sendable {
        private let bytes: [UInt8], piece: Int
        private var position = 0
        init(_ bytes: [UInt8], _ piece: Int) { self.bytes = bytes; self.piece = piece }
        var size: Int { bytes.count }
        func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
            let count = min(piece, buffer.count, bytes.count - position)
            buffer.copyBytes(from: bytes[position..<position + count])
            position += count
            return count
        }
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        var seeds: [FuzzTarget.Seed] = []
        func add(_ which: UInt8, _ name: String, _ document: [UInt8]) {
            seeds.append(FuzzTarget.Seed(name: name, bytes: [which, 6] + document))
        }
        for (i, (version, changes)) in try Examples.history().enumerated() {
            add(0, "version-\(i)", InterchangeEncoder.version(version))
            add(1, "changes-\(i)", InterchangeEncoder.changes(i == 2 ? Array(changes.suffix(5)) : changes))
        }
        add(
            0, "version-lenient",
            Array(
                (#"{ "more":[null,true,1e-3,{"a":[]}], "version":{"valueDataSize":null,"metadata":["\u00e9\ud83d\ude00","#
                    + #"{"data":"AA=="}],"predecessors":null,"timestamp":-12.5E+2,"identifier":"A"}}"#).utf8))
        var manifest = SnapshotManifest(snapshotID: "6BA7B811-9DAD-41D1-80B4-00C04FD430C8", createdAt: 7e8, latestVersionID: "x")
        manifest.chunkCount = 1
        manifest.chunkDigests = [SnapshotChunk.digest([1])]
        add(2, "manifest", manifest.encoded())
        add(3, "bare", Array(#"{"identifier":"00000000-0000-8000-8000-000000000000","timestamp":0}"#.utf8))
        add(
            4, "node",
            Array(
                (#"{"children":{"nodes":[{"key":"ab","version":"v1"}],"values":[{"valueReference":{"valueId":"x","#
                    + #""storedVersionId":"v1"}}]}}"#).utf8))
        return seeds
    }
}
