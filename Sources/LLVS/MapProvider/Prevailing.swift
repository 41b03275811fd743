/// What prevails for single ids at a version, without making its map where that does not pay.
enum Prevailing {
    case map(MapNode?)
    case chain(DeltaChains.View)
    /// One id after the other, until there are so many that a map pays.
    case past(MapProvider, UInt32)

    /// What prevails for a key; nil when nothing does.
    func lookup(_ key: UnsafeRawBufferPointer) throws -> MapEntry? {
        switch self {
        case .map(let root): root?.lookup(key)
        case .chain(let view): view.lookup(key)
        case .past(let maps, let ordinal): try maps.entry(key, at: ordinal)
        }
    }
}
