/// A lookup of single ids at a version, without making its map if that does not pay.
package enum Prevailing {
    case map(MapNode?)
    case chain(DeltaChains.View)
    /// Looks up ids one by one, until a map pays.
    case past(MapProvider, UInt32)

    /// Returns the entry that prevails for a key; nil if there is none.
    package func lookup(_ key: UnsafeRawBufferPointer) throws -> MapEntry? {
        switch self {
        case .map(let root): root?.lookup(key)
        case .chain(let view): view.lookup(key)
        case .past(let maps, let ordinal): try maps.entry(key, at: ordinal)
        }
    }
}
