/// An index at one version, encoded for a cache, so that a later process need not read all values.
///
///     "LLVSIDX2" · bytes of the definition (varint) · the definition, canonical JSON · version id · checksum of its record u32
///     · values · entries (varints) · for each entry, in order: bytes shared with the one before · further bytes (varints) · these
///     · CRC-32C of all before
///
/// A version id usually determines the content of the version; the checksum of its record distinguishes stores that gave one id to
/// different versions. An inconsistent file is ignored.
struct IndexFile {
    private static let magic = Array("LLVSIDX2".utf8)
    /// The most bytes of an entry: key and id.
    private static let mostEntry = 5_120 + 1_024
    /// The entries together have at most this many times the bytes of the file. Larger indexes are neither written nor read: otherwise a
    /// small file of long entries that share nearly all of their bytes could take any amount of memory.
    private static let mostExpansion = 64
    /// Entries are inserted into the tree in batches of about this many bytes.
    private static let stretch = 4 << 20

    let version: VersionID
    let checksum: UInt32
    let root: MapNode?
    let values: Int

    /// The name of the cache of an index.
    static func name(_ digest: [UInt8]) -> String { "index-" + Hex.text(of: Array(digest.prefix(16))) }

    /// Encodes a tree; nil if its file is not to be written.
    static func bytes(
        of tree: IndexCache.Tree, _ definition: IndexDefinition, _ version: VersionID, _ checksum: UInt32
    ) throws -> [UInt8]? {
        var out = ByteWriter(), last: [UInt8] = [], size = 0, stopped: (any Error)?
        out.raw(magic)
        out.varint(UInt64(definition.text.count))
        out.raw(definition.text)
        out.versionID(version)
        out.integer(checksum)
        out.varint(UInt64(clamping: tree.values))
        out.varint(UInt64(clamping: tree.root?.count ?? 0))
        tree.root?.forEach { key, _ in
            let shared = last.withUnsafeBytes { MapNode.commonPrefix($0, key) }
            do { try Memory.grow(&out.bytes, by: 20 + key.count - shared, "Writing an index") } catch { stopped = error }
            guard stopped == nil else { return false }
            out.varint(UInt64(shared))
            out.varint(UInt64(key.count - shared))
            out.raw(UnsafeRawBufferPointer(rebasing: key[shared...]))
            last.replaceSubrange(shared..., with: key[shared...])
            size &+= key.count
            return true
        }
        if let stopped { throw stopped }
        guard size / mostExpansion <= out.bytes.count else { return nil }
        out.integer(out.bytes.withUnsafeBytes { Bytes.crc32c($0) })
        return out.bytes
    }

    /// Returns the definition in the bytes of a file; nil for other bytes.
    static func definition(of bytes: [UInt8]) -> IndexDefinition? {
        bytes.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            guard let start = reader.take(magic.count), start.elementsEqual(magic), let size = reader.count(atMost: reader.remaining),
                let text = reader.take(size)
            else { return nil }
            return try? IndexDefinition(text)
        }
    }

    /// Nil if the bytes are no index of that definition.
    /// - Throws: errors of the control, `.outOfMemory`.
    init?(_ bytes: [UInt8], _ definition: IndexDefinition, _ control: PacedControl) throws {
        let end = bytes.count - 4
        var head = ByteWriter()
        head.raw(IndexFile.magic)
        head.varint(UInt64(definition.text.count))
        head.raw(definition.text)
        guard end > 0, bytes.starts(with: head.bytes) else { return nil }
        let read = try bytes.withUnsafeBytes { all -> (VersionID, UInt32, MapNode?, Int)? in
            let body = UnsafeRawBufferPointer(rebasing: all[..<end])
            guard Bytes.crc32c(body) == UInt32(littleEndian: all.loadUnaligned(fromByteOffset: end, as: UInt32.self)) else { return nil }
            var reader = ByteReader(body)
            guard reader.take(head.bytes.count) != nil, let version = reader.versionID(),
                let checksum = reader.integer(UInt32.self), let values = reader.count(atMost: Int(UInt32.max)),
                // Each takes at least two bytes.
                let count = reader.count(atMost: body.count / 2)
            else { return nil }
            var root: MapNode?, arena = KeyArena(), last: [UInt8] = [], size = 0, stretch = 0
            func flush() throws {
                try Memory.expect(arena.count * 96, "Reading an index")
                root = try arena.withChanges(isSorted: true) { try MapNode.applying($0, to: root, deepest: IndexMaking.deepestPrefix) }
                (arena, stretch) = (KeyArena(), 0)
            }
            for i in 0..<count {
                guard let shared = reader.count(atMost: last.count), let rest = reader.count(atMost: IndexFile.mostEntry - shared),
                    let more = reader.take(rest)
                else { return nil }
                // Entries must ascend.
                guard i == 0 || rest > 0 && (shared == last.count || more[0] > last[shared]) else { return nil }
                last.replaceSubrange(shared..., with: more)
                guard IndexFile.isEntry(last, definition) else { return nil }
                size += last.count
                stretch += last.count
                guard size / IndexFile.mostExpansion <= body.count else { return nil }
                try arena.makeRoom(for: last.count, "Reading an index")
                last.withUnsafeBytes { arena.append($0, IndexMaking.slot) }
                if stretch >= IndexFile.stretch { try flush() }
                try control.step(0, bytes: last.count)
            }
            guard reader.remaining == 0 else { return nil }
            try flush()
            return (version, checksum, root, values)
        }
        guard let read else { return nil }
        (version, checksum, root, values) = read
    }

    /// Returns whether an entry is a valid key, followed by an id that fits the index.
    private static func isEntry(_ entry: [UInt8], _ definition: IndexDefinition) -> Bool {
        entry.withUnsafeBytes { entry in
            let size = IndexKey.size(entry, parts: definition.parts, folds: definition.folds)
            guard let size, size < entry.count else { return false }
            return IndexTuples.absence(of: UnsafeRawBufferPointer(rebasing: entry[size...]), in: definition) == nil
        }
    }
}

/// The indexes in the caches of a store: one version of each. Derived, and ignored if doubtful.
enum IndexFiles {
    /// For fewer values no file is written, since reading them again is cheap.
    static let fewestValues = 256
    /// The file is rewritten after changes to this fraction of the values.
    private static let changedPart = 8
    private static let list = "indexes", mostFiles = 16

    /// Returns the cached tree of an index if it is valid for this store. Removes a file that is invalid for any store.
    /// - Throws: errors of the control, `.outOfMemory`.
    static func tree(_ definition: IndexDefinition, in store: Store, _ control: PacedControl) throws -> IndexCache.Tree? {
        guard definition.isLasting else { return nil }
        let name = IndexFile.name(definition.digest)
        guard let bytes = try? store.storage.cacheGet(name) else { return nil }
        guard let file = try IndexFile(bytes, definition, control) else {
            if !store.storage.isReadOnly { try? store.storage.cacheDelete(name) }
            return nil
        }
        guard let ordinal = try store.findOrdinal(file.version), checksum(ordinal, store) == file.checksum else { return nil }
        return IndexCache.Tree(definition.digest, ordinal, file.root, values: file.values)
    }

    /// Writes a tree if it is worth it. `changes` is the number of changes since a file of it was read or written; nil if it was made from
    /// all values.
    /// - Returns: whether a file was written.
    static func save(_ tree: IndexCache.Tree, _ definition: IndexDefinition, changes: Int?, in store: Store) -> Bool {
        let isMuch = changes.map { $0 >= max(fewestValues, tree.values / changedPart) } ?? (tree.values >= fewestValues)
        let storage = store.storage
        guard isMuch, definition.isLasting, !storage.isReadOnly, !(storage is MemoryStorage), !store.isVirtual(tree.ordinal) else {
            return false
        }
        let name = IndexFile.name(tree.digest)
        do {
            let checksum = checksum(tree.ordinal, store)
            let version = store.versionID(tree.ordinal)
            guard let bytes = try IndexFile.bytes(of: tree.withoutOverlay(), definition, version, checksum) else { return false }
            try storage.cachePut(name, bytes)
        } catch { return false }
        note(name, in: storage)
        return true
    }

    /// Returns the names of all files in the list.
    static func names(in store: Store) -> [String] {
        (((try? store.storage.cacheGet(list)) ?? nil) ?? []).split(separator: UInt8(ascii: "\n")).prefix(mostFiles)
            .map { String(decoding: $0, as: UTF8.self) }.filter { $0.hasPrefix("index-") }
    }

    private static func checksum(_ ordinal: UInt32, _ store: Store) -> UInt32 {
        store.lock.withRead { store.dag.rows[Int(ordinal)].checksum }
    }

    /// Adds a file to the list, newest first, and removes the files that were written longest ago.
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
