import LLVS
@testable import LLVSCore
@testable import LLVSUpkeep

/// A snapshot: its manifest and its chunks.
///
///     input = how u8 · versions u16 · ...
///     how 0: payloads of chunks, to which the target adds headers and digests: (size u16 · payload) ...
///         1: chunks, for which the target computes the digests: (size u16 · chunk) ...
///         2: all as it comes: (size u16 · manifest) · (size u16 · chunk) ...
///         3: chunks of another implementation's zip: (size u16 · chunk) ...
enum SnapshotsTarget {
    static let target = FuzzTarget(name: "snapshots", run: run, seeds: seeds)
    private static let id = "6BA7B811-9DAD-41D1-80B4-00C04FD430C8"

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte() % 4, versions = UInt64(input.uint16())
        Examining.attempt {
            let place = MemoryTransport(name: "fuzz snapshots")
            var manifest = SnapshotManifest(snapshotID: id, createdAt: 1, latestVersionID: "")
            var document = how == 2 ? input.part() : nil
            while !input.isAtEnd, manifest.chunkDigests.count < 64 {
                var chunk = input.part()
                if how == 0 { chunk = SnapshotsTarget.chunk(chunk) }
                manifest.totalSize += UInt64(chunk.count)
                try place.writeSnapshotFile(SnapshotLimits.chunkName(manifest.chunkDigests.count), chunk)
                manifest.chunkDigests.append(SnapshotChunk.digest(chunk))
            }
            manifest.chunkCount = UInt64(manifest.chunkDigests.count)
            manifest.versionCount = versions
            if how == 3 { manifest.format = ZipSnapshot.format }
            document = document ?? manifest.encoded()
            try place.writeSnapshotFile("manifest.json", document ?? [])
            let store = try Examining.memoryStore()
            do { _ = try Snapshots(store: store, transport: place).restore() } catch {
                require(try store.allVersionIDs().isEmpty, "a snapshot that was refused left versions: \(StoreError.of(error).message)")
                throw error
            }
            try again(store)
            Examining.examine(store)
        }
    }

    /// Puts a snapshot of the restored versions, and restores it in another store.
    private static func again(_ store: Store) throws {
        guard try !store.allVersionIDs().isEmpty else { return }
        let place = MemoryTransport(name: "fuzz snapshots, again"), copy = try Examining.memoryStore()
        _ = try Snapshots(store: store, transport: place).put()
        _ = try Snapshots(store: copy, transport: place).restore()
        require(try copy.allVersionIDs().count == store.allVersionIDs().count, "a restored store has other versions")
        for id in try store.allVersionIDs().prefix(20) {
            require(try copy.changes(madeIn: id) == store.changes(madeIn: id), "the changes of \(id) differ after a snapshot")
        }
    }

    private static func chunk(_ payload: [UInt8]) -> [UInt8] {
        var out = ByteWriter(bytes: Array(id.utf8))
        out.bytes.append(0)
        out.integer(UInt32(payload.count))
        out.raw(payload)
        return out.bytes
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        let store = try Examining.memoryStore()
        try Examples.fill(store)
        let place = MemoryTransport(name: "fuzz snapshot seeds")
        let manifest = try Snapshots(store: store, transport: place).put()
        guard let chunk = try place.readSnapshotFile("llvs-v1/chunk-000"),
            let payload = SnapshotChunk.payload(chunk, of: manifest.snapshotID)
        else { return [] }
        let count = [UInt8(manifest.versionCount), 0]
        // A snapshot has a random id and the current time. Seeds have fixed ones.
        var fixed = SnapshotManifest(snapshotID: id, createdAt: 1, latestVersionID: manifest.latestVersionID)
        let own = Array(id.utf8) + chunk.dropFirst(SnapshotLimits.idSize)
        fixed.versionCount = manifest.versionCount
        fixed.chunkCount = 1
        fixed.totalSize = UInt64(own.count)
        fixed.chunkDigests = [SnapshotChunk.digest(own)]
        let half = payload.count / 2
        return [
            FuzzTarget.Seed(name: "payload", bytes: [0] + count + FuzzInput.part(payload)),
            FuzzTarget.Seed(
                name: "payloads", bytes: [0] + count + FuzzInput.part(Array(payload[..<half])) + FuzzInput.part(Array(payload[half...]))),
            FuzzTarget.Seed(name: "chunk", bytes: [1] + count + FuzzInput.part(own)),
            FuzzTarget.Seed(name: "snapshot", bytes: [2] + count + FuzzInput.part(fixed.encoded()) + FuzzInput.part(own)),
            FuzzTarget.Seed(
                name: "zip", bytes: [3] + count + FuzzInput.part(Array(zip.prefix(200))) + FuzzInput.part(Array(zip.dropFirst(200)))),
        ]
    }

    /// A zip with one version and one value.
    private static let zip: [UInt8] =
        Array(
            ("UEsDBBQAAAAAAAAAIQBMb0YJLgAAAC4AAAAPAAAAdmVyc2lvbnMvYS5qc29ueyJpZGVudGlmaWVyIjoiYSIsInRpbWVzdGFtcCI6MSwibWV0YW"
                + "RhdGEiOltdfVBLAwQUAAAACAAAACEAFQxbnEMAAABSAAAAJwAAAG1hcHMvX19sbHZzX3ZhbHVlcy9fXy9sbHZzX3Jvb3QvYS8uanNvbqtWSs7I"
                + "zEkpSs1TsqpWKkvMKU0tVrKKhjKDUtNSgVLJqXBJzxQlK6VsJR2l4pL8otSUsNSi4sz8PLBoolJtbWxtLQBQSwMEFAAAAAAAAAAhALfv3IMBAA"
                + "AAAQAAABAAAAB2YWx1ZXMvay9hLy5qc29uMVBLAQIUAxQAAAAAAAAAIQBMb0YJLgAAAC4AAAAPAAAAAAAAAAAAAACAAQAAAAB2ZXJzaW9ucy9h"
                + "Lmpzb25QSwECFAMUAAAACAAAACEAFQxbnEMAAABSAAAAJwAAAAAAAAAAAAAAgAFbAAAAbWFwcy9fX2xsdnNfdmFsdWVzL19fL2xsdnNfcm9vdC"
                + "9hLy5qc29uUEsBAhQDFAAAAAAAAAAhALfv3IMBAAAAAQAAABAAAAAAAAAAAAAAAIAB4wAAAHZhbHVlcy9rL2EvLmpzb25QSwUGAAAAAAMAAwDQ"
                + "AAAAEgEAAAAA").utf8
        ).withUnsafeBytes { Base64.decode($0) } ?? []
}
