extension Exchange {
    /// How versions are stored at a place.
    public enum Layout: Sendable {
        /// The layout that the place has.
        case automatic
        /// Two files for each version, which other implementations read: docs/interchange.md.
        case interchange
        /// Many versions in a file, for few requests: docs/pack-format.md.
        case packed
        /// Both, so that devices with packs and other implementations can exchange. For an empty place, or one with single files. Not
        /// encrypted.
        case bridged
    }
}
