/// An id and opaque bytes that prevail at some version.
public struct Value: Hashable, Sendable {
    /// Its key.
    public var id: ValueID
    /// 0 bytes to 1 GiB. The store never looks inside.
    public var data: [UInt8]
    /// The version in which these bytes were stored.
    public var storedVersion: VersionID

    /// A value as a read returns it; creating one stores nothing.
    public init(id: ValueID, data: [UInt8], storedVersion: VersionID) {
        self.id = id; self.data = data; self.storedVersion = storedVersion
    }
    /// Identifies these bytes.
    public var reference: Reference { Reference(id: id, version: storedVersion) }

    /// Identifies bytes: the value id, and the version that stored them.
    public struct Reference: Hashable, Sendable {
        /// The value's id.
        public var id: ValueID
        /// The version that stored the bytes, which may differ from the version that was read.
        public var version: VersionID
        /// Creates a reference to bytes. Reading them shows whether a store has them.
        public init(id: ValueID, version: VersionID) { self.id = id; self.version = version }
    }

    /// A record, in a version, of a change to one value.
    public enum Change: Hashable, Sendable {
        /// Stores bytes; the value was absent at the first predecessor.
        case insert(ValueID, data: [UInt8])
        /// Stores bytes; the value was present, with other bytes or another reference.
        case update(ValueID, data: [UInt8])
        /// Removes the value from here on; earlier versions keep it.
        case remove(ValueID)
        /// Takes over bytes that are stored elsewhere in the ancestry, as a merge does with the second side's.
        case preserve(Reference)
        /// Takes over a removal from the second side.
        case preserveRemoval(ValueID)

        /// The kinds of changes.
        public enum Kind: UInt8, Sendable {
            /// Stores bytes under an id that had none at the first predecessor.
            case insert = 1
            /// Stores other bytes under an id that has some.
            case update
            /// Removes the value.
            case remove
            /// Takes over, by reference, bytes that are stored elsewhere in the ancestry.
            case preserve
            /// Takes over a removal from the second side of a merge.
            case preserveRemoval
        }

        /// The kind of the change.
        public var kind: Kind {
            switch self {
            case .insert: .insert
            case .update: .update
            case .remove: .remove
            case .preserve: .preserve
            case .preserveRemoval: .preserveRemoval
            }
        }
        /// The id of the changed value.
        public var id: ValueID {
            switch self {
            case .insert(let id, _), .update(let id, _), .remove(let id), .preserveRemoval(let id): id
            case .preserve(let reference): reference.id
            }
        }
        /// The change without the bytes of its value.
        package var withoutData: Change {
            switch self {
            case .insert(let id, _): .insert(id, data: [])
            case .update(let id, _): .update(id, data: [])
            default: self
            }
        }
    }
}
