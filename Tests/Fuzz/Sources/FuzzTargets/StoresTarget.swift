import Glibc
import LLVS

@testable import LLVSCore

/// The files of a store directory: marker, segments, blobs, caches.
///
///     input = how u8 (bit 0: checksums as they come; bit 1: read only) · (kind u8 · size u16 · bytes) ...
///     kind  = 0 marker   1 segment   2 blob   3 the history's cache   4 a map's cache   5 a segment under another's name
enum StoresTarget {
    static let target = FuzzTarget(name: "stores", run: run, seeds: seeds)

    @Sendable private static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        let how = input.byte(), repairs = how & 1 == 0
        let path = Folder.empty()
        for folder in ["segments", "blobs", "cache"] { mkdir(path + "/" + folder, 0o755) }
        Folder.write("llvs-store", Array(StoreDirectory.markerText.utf8))
        var number: UInt64 = 0, hasCaches = false
        while !input.isAtEnd, number < 32 {
            let kind = input.byte()
            var bytes = input.part()
            number += 1
            let other = RandomName(high: 0, low: number)
            hasCaches = hasCaches || (3...4).contains(kind % 6)
            switch kind % 6 {
            case 0: Folder.write("llvs-store", bytes)
            case 1, 5:
                let id =
                    repairs ? Repair.segment(&bytes) : bytes.count >= 32 ? bytes.withUnsafeBytes { RandomName(loading: $0, at: 16) } : nil
                Folder.write("segments/\(((kind % 6 == 5 ? nil : id) ?? other).hex).seg", bytes)
            case 2:
                let id = repairs ? Repair.blob(&bytes) : bytes.count >= 32 ? bytes.withUnsafeBytes { RandomName(loading: $0, at: 16) } : nil
                Folder.write("blobs/\((id ?? other).hex).blob", bytes)
            case 3: cache("history", bytes, repairs)
            default:
                let id =
                    bytes.count >= FlatMapFile.footerSize
                    ? bytes.withUnsafeBytes { RandomName(loading: $0, at: $0.count - FlatMapFile.footerSize + 8) } : other
                cache(FlatMap.namePrefix + id.hex, bytes, repairs)
            }
        }
        Examining.attempt {
            var options = Examining.options(.file)
            options.readOnly = how & 2 != 0
            options.compaction = how & 4 != 0 ? .always : .onRequest
            options.compactionGrace = 0
            let store = try Store(path: path, options: options)
            if how & 4 != 0 { Examining.attempt { _ = try store.compact() } }
            Examining.examine(store, isDerived: !hasCaches)
        }
        Folder.remove(path)
    }

    private static func cache(_ name: String, _ data: [UInt8], _ repairs: Bool) {
        let envelope = repairs ? CacheDirectory.envelope(name, size: UInt64(data.count), checksum: Repair.checksum(data[...])) : []
        Folder.write("cache/\(name).cache", envelope + data)
    }

    @Sendable private static func seeds() throws -> [FuzzTarget.Seed] {
        let path = Folder.empty()
        var options = Examining.options(.file)
        options.memoryBudget = 64 << 20
        let store = try Store(path: path, options: options)
        try Examples.fill(store)
        let blob = try store.storage.storeBlob(UnsafeRawBufferPointer(start: nil, count: 0))
        // Caches are written only for larger stores.
        let flat = try store.lock.withRead { store.dag.headOrdinals.first }.flatMap { head in
            try store.maps.map(head).flatMap { try store.maps.flatten($0, of: head, isKept: true) }
        }
        let persisted = store.lock.withRead { store.maps.persisted }
        let mark = store.storage.scanMark() ?? []
        let index = store.lock.withRead { HistoryIndex.encode(store.dag, persisted, mark: mark, place: store.storage.currentPlace) }
        try store.storage.cachePut("history", index)
        _ = (flat, blob)
        try store.close()
        var parts: [(kind: UInt8, bytes: [UInt8])] = [(0, Folder.read("llvs-store"))]
        for name in Folder.names("segments") { parts.append((1, Folder.read("segments/" + name))) }
        for name in Folder.names("blobs") { parts.append((2, Folder.read("blobs/" + name))) }
        for name in Folder.names("cache") {
            parts.append((name == "history.cache" ? 3 : 4, Array(Folder.read("cache/" + name).dropFirst(CacheDirectory.envelopeSize))))
        }
        Folder.remove(path)
        func input(_ how: UInt8, _ parts: [(kind: UInt8, bytes: [UInt8])]) -> [UInt8] {
            parts.reduce([how]) { $0 + [$1.kind] + FuzzInput.part($1.bytes) }
        }
        return [
            FuzzTarget.Seed(name: "store", bytes: input(0, parts)), FuzzTarget.Seed(name: "store-read-only", bytes: input(2, parts)),
            FuzzTarget.Seed(name: "store-compacted", bytes: input(4, parts + parts.filter { $0.kind == 1 }.map { (5, $0.bytes) })),
            FuzzTarget.Seed(name: "segments", bytes: input(0, parts.filter { $0.kind == 1 })),
            FuzzTarget.Seed(name: "segment-as-it-comes", bytes: input(1, parts.filter { $0.kind < 3 })),
        ]
    }
}
