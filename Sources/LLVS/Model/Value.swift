/// An id and opaque bytes, as they prevail at some version.
public struct Value: Hashable, Sendable {
    public var id: ValueID
    /// 0 bytes to 1 GiB. The store never looks inside.
    public var data: [UInt8]
    /// The version in which these bytes were stored.
    public var storedVersion: VersionID

    public init(id: ValueID, data: [UInt8], storedVersion: VersionID) {
        self.id = id; self.data = data; self.storedVersion = storedVersion
    }
    /// Which bytes these are.
    public var reference: Reference { Reference(id: id, version: storedVersion) }

    /// Which bytes: the value id, and the version in which they were stored.
    public struct Reference: Hashable, Sendable {
        public var id: ValueID
        public var version: VersionID
        public init(id: ValueID, version: VersionID) { self.id = id; self.version = version }
    }

    /// What a version records of one value.
    public enum Change: Hashable, Sendable {
        /// The value was not there at the first predecessor.
        case insert(ValueID, data: [UInt8])
        /// It was, with other bytes or another reference.
        case update(ValueID, data: [UInt8])
        case remove(ValueID)
        /// Comes over from elsewhere in the ancestry: a merge's way of taking the second side's bytes.
        case preserve(Reference)
        /// The removal comes over from the second side.
        case preserveRemoval(ValueID)

        /// What a change does.
        public enum Kind: UInt8, Sendable { case insert = 1, update, remove, preserve, preserveRemoval }

        public var kind: Kind {
            switch self {
            case .insert: .insert
            case .update: .update
            case .remove: .remove
            case .preserve: .preserve
            case .preserveRemoval: .preserveRemoval
            }
        }
        public var id: ValueID {
            switch self {
            case .insert(let id, _), .update(let id, _), .remove(let id), .preserveRemoval(let id): id
            case .preserve(let reference): reference.id
            }
        }
        /// The same without the bytes of its value.
        var withoutData: Change {
            switch self {
            case .insert(let id, _): .insert(id, data: [])
            case .update(let id, _): .update(id, data: [])
            default: self
            }
        }
    }
}
