/// What the caches know of maps: one flat map, and perhaps what a later version has other than it.
struct PersistedMap {
    /// The flat map that is meant, which has the same id.
    var id: RandomName
    /// The ordinal of the version that it is the map of.
    var base: UInt32
    /// A later version, and how its map differs (see `MapPatch`).
    var patch: (ordinal: UInt32, bytes: [UInt8])?
    /// Ordinals in flat map and patch are below this.
    var versionLimit: Int
    /// The flat map, once it was asked for.
    var flat: FlatMap?
    /// What is asked before that.
    var lazyReader: LazyMapReader?

    /// Bytes of memory that it takes, or may come to take while single ids are asked for.
    var memory: Int { flat?.memory.memory ?? lazyReader?.mostMemory ?? 0 }

    var name: String { FlatMap.namePrefix + id.hex }

    init(id: RandomName, base: UInt32, patch: (ordinal: UInt32, bytes: [UInt8])? = nil, versionLimit: Int, flat: FlatMap? = nil) {
        self.id = id; self.base = base; self.patch = patch; self.versionLimit = versionLimit; self.flat = flat
    }

    func isOf(_ ordinal: UInt32) -> Bool { base == ordinal || patch?.ordinal == ordinal }
}
