@testable import LLVSCore

package func memoryStore() throws -> Store { try Store.inMemory() }

extension Store {
    package static func inMemory() throws -> Store {
        var options = Options()
        options.storage = .memory
        return try Store(path: "", options: options)
    }

    package func text(_ key: String, _ version: Version) throws -> String? {
        try value(ValueID(key), at: version.id).map { String(decoding: $0.data, as: UTF8.self) }
    }
    package func set(_ pairs: [String: String], _ base: Version?, remove: [String] = [], id: VersionID? = nil) throws -> Version {
        try makeVersion(
            basedOn: base?.id,
            changes: pairs.map { .insert(try ValueID($0.key), data: bytes($0.value)) } + remove.map { .remove(try ValueID($0)) }, id: id)
    }
    package func state(_ version: VersionID) throws -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: try values(at: version, limit: .max).map {
                ($0.id.description, "\(String(decoding: $0.data, as: UTF8.self))@\($0.storedVersion)")
            })
    }

    /// The history, while no other thread uses the store.
    package var quietHistory: History { sharedHistory.dagReference.takeUnretainedValue() }

    /// Whether both have equal records, version by version.
    package func hasSameVersions(as other: Store) throws -> Bool {
        let ids = try allVersionIDs()
        guard try Set(ids) == Set(other.allVersionIDs()) else { return false }
        return try ids.allSatisfy { try version($0) == other.version($0) && changes(madeIn: $0) == other.changes(madeIn: $0) }
    }
}

/// Stores in a directory.
package enum DiskStore {
    package static let kinds: [(name: String, storage: Store.StorageChoice)] = [("file", .file), ("sqlite", .sqlite)]

    /// Opens the directory's store of the kind with that index.
    package static func open(
        _ kind: Int, _ directory: String, durability: Durability = .normal, budget: Int = 64 << 20, readOnly: Bool = false
    ) throws -> Store {
        var options = Store.Options()
        options.storage = kinds[kind].storage
        options.durability = durability
        options.memoryBudget = budget
        options.readOnly = readOnly
        return try Store(path: directory + (kind == 0 ? "/store" : "/store.sqlite"), options: options)
    }
}
