import LLVSTestSupport

@testable import LLVSCore

/// A record that breaks the rules, as a writer would encode it: the encoder itself checks nothing.
/// - Parameter summing: whether the record states the right sum of the values' sizes.
/// - Parameter blobThreshold: larger values are in blobs, which do not exist.
package func hostileRecord(
    _ version: Version, _ changes: [Value.Change], summing: Bool = true, blobThreshold: Int? = nil
) throws -> [UInt8] {
    try changes.withBorrowed { borrowed in
        var version = version
        if summing { version.valueDataSize = borrowed.reduce(0) { $0 + UInt64($1.data.count) } }
        let changes = RecordChanges(borrowed)
        let encoder = RecordEncoder()
        try encoder.encode(version, changes, blobThreshold: blobThreshold) { _, _ in BlobID(high: 0, low: 1) }
        return try encoder.bytes(changes)
    }
}

package func plainVersion(_ id: String, _ predecessors: [String] = [], timestamp: Double = 1) throws -> Version {
    Version(
        id: try VersionID(id), predecessors: try predecessors.map { try VersionID($0) }, timestamp: timestamp, valueDataSize: 0,
        metadata: Metadata())
}

package func hookedStore(_ records: [[UInt8]] = [], durability: Durability = .normal) throws -> (Store, HookedStorage) {
    let storage = HookedStorage(records: records)
    var options = Store.Options()
    options.durability = durability
    return (try Store(storage: storage, options: options), storage)
}
