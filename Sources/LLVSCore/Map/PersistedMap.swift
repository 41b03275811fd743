/// The persisted maps in the caches: one flat map, and perhaps the patch of a later version.
struct PersistedMap {
    /// The id of the flat map.
    var id: RandomName
    /// The ordinal of the version whose map it is.
    var base: UInt32
    /// A later version, and the patch to its map (see `MapPatch`).
    var patch: (ordinal: UInt32, bytes: [UInt8])?
    /// Ordinals in flat map and patch are below this.
    var versionLimit: Int
    /// The flat map, once it was opened.
    var flat: FlatMap?
    /// The reader for lookups before that.
    var lazyReader: LazyMapReader?

    /// Bytes of memory that it takes, or may take by lookups of single ids.
    var memory: Int { flat?.memory.memory ?? lazyReader?.mostMemory ?? 0 }

    var name: String { FlatMap.namePrefix + id.hex }

    init(id: RandomName, base: UInt32, patch: (ordinal: UInt32, bytes: [UInt8])? = nil, versionLimit: Int, flat: FlatMap? = nil) {
        self.id = id; self.base = base; self.patch = patch; self.versionLimit = versionLimit; self.flat = flat
    }

    func isOf(_ ordinal: UInt32) -> Bool { base == ordinal || patch?.ordinal == ordinal }
}
