/// An index at one version, as bytes of a cache: what a later process begins with, instead of reading all values.
///
///     "LLVSIDX1" · digest of the definition (32) · version id · checksum of the version's record u32 · values · entries (varints)
///     · for each entry, in order: bytes shared with the one before · further bytes (varints) · these · CRC-32C of all before
///
/// A version id says what the version holds; the checksum of its record keeps a store apart from another that gave the same id to something
/// else. What does not add up in any way is not there.
struct IndexFile {
    private static let magic = Array("LLVSIDX1".utf8)
    /// Key and id.
    private static let mostEntry = 5_120 + 1_024

    let version: VersionID
    let checksum: UInt32
    let root: MapNode?
    let values: Int

    /// The cache of an index.
    static func name(_ digest: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return "index-" + String(decoding: digest.prefix(16).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    static func bytes(of tree: IndexCache.Tree, _ version: VersionID, _ checksum: UInt32) throws -> [UInt8] {
        var out = ByteWriter(), last: [UInt8] = [], stopped: (any Error)?
        out.raw(magic + tree.digest)
        out.versionID(version)
        out.integer(checksum)
        out.varint(UInt64(clamping: tree.values))
        out.varint(UInt64(clamping: tree.root?.count ?? 0))
        tree.root?.forEach { key, _ in
            let shared = last.withUnsafeBytes { MapNode.commonPrefix($0, key) }
            out.varint(UInt64(shared))
            out.varint(UInt64(key.count - shared))
            out.raw(UnsafeRawBufferPointer(rebasing: key[shared...]))
            last.replaceSubrange(shared..., with: key[shared...])
            do { try Memory.check() } catch { stopped = error }
            return stopped == nil
        }
        if let stopped { throw stopped }
        out.integer(out.bytes.withUnsafeBytes { Bytes.crc32c($0) })
        return out.bytes
    }

    /// Nil for bytes that are no index of that definition.
    /// - Throws: what the control throws, `.outOfMemory`.
    init?(_ bytes: [UInt8], _ definition: IndexDefinition, _ control: PacedControl) throws {
        let end = bytes.count - 4
        guard end > 0, bytes.starts(with: IndexFile.magic + definition.digest) else { return nil }
        let read = try bytes.withUnsafeBytes { all -> (VersionID, UInt32, MapNode?, Int)? in
            let body = UnsafeRawBufferPointer(rebasing: all[..<end])
            guard Bytes.crc32c(body) == UInt32(littleEndian: all.loadUnaligned(fromByteOffset: end, as: UInt32.self)) else { return nil }
            var reader = ByteReader(body)
            guard reader.take(IndexFile.magic.count + definition.digest.count) != nil, let version = reader.versionID(),
                let checksum = reader.integer(UInt32.self), let values = reader.count(atMost: Int(UInt32.max)),
                // Each has two bytes at least.
                let count = reader.count(atMost: body.count / 2)
            else { return nil }
            try Memory.expect(body.count &+ count * 96, "Reading an index")
            var arena = KeyArena(), last: [UInt8] = []
            for i in 0..<count {
                guard let shared = reader.count(atMost: last.count), let rest = reader.count(atMost: IndexFile.mostEntry - shared),
                    let more = reader.take(rest)
                else { return nil }
                // Behind the one before.
                guard i == 0 || rest > 0 && (shared == last.count || more[0] > last[shared]) else { return nil }
                last.replaceSubrange(shared..., with: more)
                guard IndexFile.isEntry(last, definition) else { return nil }
                last.withUnsafeBytes { arena.append($0, IndexMaking.slot) }
                try control.step(0, bytes: rest)
            }
            guard reader.remaining == 0 else { return nil }
            let root = try arena.withChanges(isSorted: true) { try MapNode.applying($0, to: nil, deepest: IndexMaking.deepestPrefix) }
            return (version, checksum, root, values)
        }
        guard let read else { return nil }
        (version, checksum, root, values) = read
    }

    /// Whether it is a key, and an id that may have it.
    private static func isEntry(_ entry: [UInt8], _ definition: IndexDefinition) -> Bool {
        entry.withUnsafeBytes { entry in
            let size = IndexKey.size(entry, parts: definition.parts, folds: definition.folds)
            guard let size, size < entry.count else { return false }
            return IndexTuples.absence(of: UnsafeRawBufferPointer(rebasing: entry[size...]), in: definition) == nil
        }
    }
}

/// The indexes in the caches of a store: one version of each. Derived, and passed over in doubt.
enum IndexFiles {
    /// Fewer values than this are read again sooner than a file is written.
    static let fewestValues = 256
    /// After changes of so large a part of the values the file is written anew.
    private static let changedPart = 8
    private static let list = "indexes", mostFiles = 16

    /// What is kept of an index, if it is good for this store; what is not good for any is removed.
    /// - Throws: what the control throws, `.outOfMemory`.
    static func tree(_ definition: IndexDefinition, in store: Store, _ control: PacedControl) throws -> IndexCache.Tree? {
        let name = IndexFile.name(definition.digest)
        guard let bytes = try? store.storage.cacheGet(name) else { return nil }
        guard let file = try IndexFile(bytes, definition, control) else {
            if !store.storage.isReadOnly { try? store.storage.cacheDelete(name) }
            return nil
        }
        guard let ordinal = try store.findOrdinal(file.version), checksum(ordinal, store) == file.checksum else { return nil }
        return IndexCache.Tree(definition.digest, ordinal, file.root, values: file.values)
    }

    /// Writes a tree, where that pays: `changes` were made to it since a file of it was read or written; nil: it was made of all values.
    /// - Returns: whether a file of it is there now.
    static func save(_ tree: IndexCache.Tree, changes: Int?, in store: Store) -> Bool {
        let isMuch = changes.map { $0 >= max(fewestValues, tree.values / changedPart) } ?? (tree.values >= fewestValues)
        let storage = store.storage
        guard isMuch, !storage.isReadOnly, !(storage is MemoryStorage), !store.isVirtual(tree.ordinal) else { return false }
        let name = IndexFile.name(tree.digest)
        do {
            let bytes = try IndexFile.bytes(of: tree, store.versionID(tree.ordinal), checksum(tree.ordinal, store))
            try storage.cachePut(name, bytes)
        } catch { return false }
        note(name, in: storage)
        return true
    }

    private static func checksum(_ ordinal: UInt32, _ store: Store) -> UInt32 {
        store.lock.withRead { store.dag.rows[Int(ordinal)].checksum }
    }

    /// Remembers which files there are, the last first, and removes those that were written longest ago.
    private static func note(_ name: String, in storage: any Storage) {
        let known = ((try? storage.cacheGet(list)) ?? nil) ?? []
        var names = known.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
            .filter { $0 != name && $0.hasPrefix("index-") }
        names.insert(name, at: 0)
        for old in names.dropFirst(mostFiles) { try? storage.cacheDelete(old) }
        let text = Array(names.prefix(mostFiles).joined(separator: "\n").utf8)
        if text != known { try? storage.cachePut(list, text) }
    }
}
