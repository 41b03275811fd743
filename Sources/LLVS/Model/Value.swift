/// An id and opaque bytes, as they prevail at some version.
public struct Value: Hashable, Sendable {
    /// Its key.
    public var id: ValueID
    /// 0 bytes to 1 GiB. The store never looks inside.
    public var data: [UInt8]
    /// The version in which these bytes were stored.
    public var storedVersion: VersionID

    /// A value as it would be read; nothing is stored by making one.
    public init(id: ValueID, data: [UInt8], storedVersion: VersionID) {
        self.id = id; self.data = data; self.storedVersion = storedVersion
    }
    /// Which bytes these are.
    public var reference: Reference { Reference(id: id, version: storedVersion) }

    /// Which bytes: the value id, and the version in which they were stored.
    public struct Reference: Hashable, Sendable {
        /// The value's id.
        public var id: ValueID
        /// The version that stored the bytes, which need not be the one that was read at.
        public var version: VersionID
        /// Names bytes; whether they are in a store is found out when they are asked for.
        public init(id: ValueID, version: VersionID) { self.id = id; self.version = version }
    }

    /// What a version records of one value.
    public enum Change: Hashable, Sendable {
        /// The value was not there at the first predecessor.
        case insert(ValueID, data: [UInt8])
        /// It was, with other bytes or another reference.
        case update(ValueID, data: [UInt8])
        /// The value is gone from here on; earlier versions keep it.
        case remove(ValueID)
        /// Comes over from elsewhere in the ancestry: a merge's way of taking the second side's bytes.
        case preserve(Reference)
        /// The removal comes over from the second side.
        case preserveRemoval(ValueID)

        /// What a change does.
        public enum Kind: UInt8, Sendable {
            /// Stores bytes under an id that had none at the first predecessor.
            case insert = 1
            /// Stores other bytes under an id that has some.
            case update
            /// Takes the value away.
            case remove
            /// Brings over, by reference, bytes that are stored elsewhere in the ancestry.
            case preserve
            /// Brings over a removal from the second side of a merge.
            case preserveRemoval
        }

        /// What it does, without saying to which value.
        public var kind: Kind {
            switch self {
            case .insert: .insert
            case .update: .update
            case .remove: .remove
            case .preserve: .preserve
            case .preserveRemoval: .preserveRemoval
            }
        }
        /// The value that it is about.
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
