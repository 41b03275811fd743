/// A version about to be made: all that its record will say. Bytes are borrowed from whoever asked for it.
struct Draft {
    var version: Version
    var first: UInt32
    var second: UInt32
    /// Sorted by id bytes, each id once.
    var changes: [RecordChange]
    /// Whether the changes were checked against the state at `first`.
    var labelsAreTrue = false

    var traits: History.Traits {
        var traits: History.Traits = labelsAreTrue ? .labelsAreTrue : []
        if changes.contains(where: { $0.kind == .preserve }) { traits.insert(.preserves) }
        return traits
    }

    /// How a draft's changes look as map changes of the version with this ordinal.
    func mapChanges(_ ordinal: UInt32, bodies: [RecordEncoder.Body], ordinalOf: (VersionID) -> UInt32?) -> [MapChange] {
        var out: [MapChange] = []
        out.reserveCapacity(changes.count)
        for i in changes.indices {
            let change = changes[i]
            switch change.kind {
            case .insert, .update:
                out.append(MapChange(key: change.id, entry: MapEntry(
                    version: ordinal, size: UInt32(truncatingIfNeeded: change.data.count), bodyOffset: UInt64(bodies[i].offset))))
            case .preserve:
                let version = change.storedVersion.flatMap(ordinalOf) ?? ordinal
                out.append(MapChange(key: change.id, entry: MapEntry(version: version, size: MapEntry.unknownSize, bodyOffset: 0)))
            case .remove, .preserveRemoval:
                out.append(MapChange(key: change.id, entry: nil))
            }
        }
        return out
    }
}

extension Array where Element == Value.Change {
    /// Calls with the changes as borrowed ones. The arrays of bytes in `self` are kept alive for the call, and an
    /// array's storage does not move while nobody changes it.
    func withBorrowed<R>(_ body: (UnsafeBufferPointer<BorrowedChange>) throws -> R) rethrows -> R {
        let owned = self
        return try withExtendedLifetime(owned) {
            let borrowed = owned.map { change -> BorrowedChange in
                let id = change.id.bytes.withUnsafeBytes { $0 }
                switch change {
                case .insert(_, let data), .update(_, let data):
                    return BorrowedChange(kind: change.kind, id: id, data: data.withUnsafeBytes { $0 })
                case .preserve(let reference):
                    return BorrowedChange(kind: .preserve, id: id, storedVersion: reference.version)
                case .remove, .preserveRemoval:
                    return BorrowedChange(kind: change.kind, id: id)
                }
            }
            return try borrowed.withUnsafeBufferPointer { try body($0) }
        }
    }
}
