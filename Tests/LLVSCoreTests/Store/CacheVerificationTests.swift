import LLVSTestHelpers
import Testing

@testable import LLVSCore

/// Caches with valid checksums and wrong contents, whether by an attacker or a defect.
@Suite struct CacheVerificationTests {
    enum Forgery: String, CaseIterable { case predecessor, timestamp, branch, hidden, invented, keys, map, patchedMap }

    /// The same history, with a forged row for the last version.
    private static func forged(_ history: History, _ forgery: Forgery) -> History {
        let forged = History(), last = UInt32(history.rows.count - 1)
        for i in history.rows.indices {
            let row = history.rows[i], ordinal = UInt32(i)
            if ordinal == last, forgery == .hidden { break }
            func add(_ id: VersionID, _ change: Bool) {
                let new = forged.append(
                    id: id, timestamp: row.timestamp + (change && forgery == .timestamp ? 1 : 0), valueDataSize: row.valueDataSize,
                    first: change && forgery == .predecessor ? row.first - 1 : row.first, second: row.second,
                    branch: change && forgery == .branch ? BranchName("draft") : history.branch(ordinal), place: row.place,
                    checksum: row.checksum, changeCount: Int(row.changeCount), traits: row.traits)
                if change, forgery == .keys { forged.noteKeys(new, count: 1) { _ in 1 } }
                forged.publish(new, place: row.place, checksum: row.checksum)
            }
            add(history.id(ordinal), ordinal == last)
            if ordinal == last, forgery == .invented { add(VersionID(high: 7, low: 7), false) }
        }
        return forged
    }

    /// Enough versions for the history to be cached, each of which changes a value, and enough values for their map to be cached.
    private static let versions = 1_100, values = 4_500

    /// One store is the original for all forgeries; each is reported in a copy.
    @Test(arguments: [0, 1]) func aForgedCacheIsReportedAndDeleted(kind: Int) throws {
        try withTemporaryDirectory { original in
            let store = try DiskStore.open(kind, original)
            var last = try store.makeVersion(basedOn: nil, changes: (0..<Self.values).map { .insert(try id("v \($0)"), data: [1]) })
            for i in 0..<Self.versions {
                last = try store.makeVersion(basedOn: last.id, changes: [.update(id("v \(i)"), data: [UInt8(i & 0xFF), 2])])
            }
            #expect(try store.verifyRecords(OperationControl()).isWhole)
            try store.close()
            for forgery in Forgery.allCases { try Self.tell(forgery, kind, original, last) }
        }
    }

    private static func tell(_ forgery: Forgery, _ kind: Int, _ original: String, _ last: Version) throws {
        try withTemporaryDirectory { directory in
            try copyFiles(original, directory)
            var store = try DiskStore.open(kind, directory)
            #expect(store.caches.versions == Self.versions + 1 && store.maps.persisted != nil, "\(forgery)")
            #expect(!store.caches.areWrong, "\(forgery)")

            let ordinal = try #require(store.quietHistory.ordinal(of: last.id)), before = try store.maps.map(ordinal - 1)
            switch forgery {
            case .map, .patchedMap:
                // The map of the previous version under the id of this one.
                store.lock.withWrite { store.maps.persisted = nil }
                let base = forgery == .map ? ordinal : ordinal - 700
                let flattened = try forgery == .map ? before : store.maps.map(base)
                _ = try store.maps.flatten(try #require(flattened), of: base, isKept: true)
                if forgery == .patchedMap {
                    let flat = try #require(store.maps.persisted?.flat), root = try #require(before)
                    let patch = try #require(MapPatch.encode(flat, to: root, limit: 3_000))
                    store.lock.withWrite { store.maps.persisted?.patch = (ordinal, patch) }
                }
                store.lock.withWrite { store.maps.persisted?.versionLimit = store.dag.rows.count }
            default: break
            }
            let history = Self.forged(store.quietHistory, forgery)
            try store.cachePut(
                Store.historyName,
                HistoryIndex.encode(
                    history, forgery == .hidden ? nil : store.maps.persisted, mark: try #require(store.storage.scanMark()),
                    place: store.storage.currentPlace))
            try store.storage.close(discarding: false)

            store = try DiskStore.open(kind, directory)
            #expect(store.caches.rows > 0, "\(forgery)")
            let damages = try store.verifyRecords(OperationControl()).damages
            #expect(
                damages.map(\.lost) == [.nothing]
                    && damages[0].file.contains(forgery == .map || forgery == .patchedMap ? "map-" : "history"), "\(forgery): \(damages)")
            try store.close()

            store = try DiskStore.open(kind, directory)
            #expect(store.caches.rows == 0, "\(forgery)")
            #expect(try store.verifyRecords(OperationControl()).isWhole, "\(forgery)")
            let newest = Self.versions - 1
            #expect(
                try store.heads().map(\.id) == [last.id] && store.value(id("v \(newest)"), at: last.id)?.data == [UInt8(newest & 0xFF), 2],
                "\(forgery)")
            try store.close()
        }
    }
}
