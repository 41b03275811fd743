import LLVSCore
import LLVSTestHelpers
import Testing

/// All storages pass the conformance suite.
@Suite struct StorageConformanceTests {
    @Test func memory() throws {
        try StorageConformance.run {
            StorageConformance.Subject(isPersistent: false, isShared: false, opensReadOnly: false) { _ in MemoryStorage() }
        }
    }

    @Test(arguments: [Durability.full, .normal]) func file(durability: Durability) throws {
        try StorageConformance.run {
            let directory = TemporaryDirectory()
            return StorageConformance.Subject { readOnly in
                var options = FileStorage.Options()
                options.readOnly = readOnly
                options.durability = durability
                return try FileStorage(path: directory.path + "/store", options: options)
            }
        }
    }

    @Test func fileWithSmallSegments() throws {
        try StorageConformance.run {
            let directory = TemporaryDirectory()
            return StorageConformance.Subject { readOnly in
                var options = FileStorage.Options()
                options.readOnly = readOnly
                options.durability = .normal
                options.segmentLimit = 10_000
                options.openFiles = 2
                return try FileStorage(path: directory.path + "/store", options: options)
            }
        }
    }

    @Test(arguments: [Durability.full, .normal]) func sqlite(durability: Durability) throws {
        try StorageConformance.run {
            let directory = TemporaryDirectory()
            return StorageConformance.Subject { readOnly in
                var options = SQLiteStorage.Options()
                options.readOnly = readOnly
                options.durability = durability
                return try SQLiteStorage(path: directory.path + "/store.sqlite", options: options)
            }
        }
    }
}
