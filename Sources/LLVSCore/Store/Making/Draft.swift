/// A version that is being made, with all that its record will contain. Its bytes are borrowed from the caller.
package struct Draft {
    package var version: Version
    package var first: UInt32
    package var second: UInt32
    package var changes: RecordChanges
    /// What is known of the version beyond its record.
    var traits: History.Traits
    /// For each change that preserves bytes, where they are; empty if that is not known of any.
    package var located: [MapEntry?] = []
    /// SHA-256 of the values that carry theirs in the record and have no file yet, one after another, as far as they are known.
    package var digests: [UInt8] = []
    /// Whether the caller gave the time, whatever the clock shows.
    var isDated = false
    /// The time of this device's clock, if it bounds when the version, or an ancestor, was made.
    package var storedAt: Double?

    init(version: Version, first: UInt32, second: UInt32, changes: RecordChanges, traits: History.Traits = []) {
        self.version = version; self.first = first; self.second = second; self.changes = changes; self.traits = traits
    }
    /// - Parameter changes: sorted by id bytes, without duplicates.
    package init(version: Version, first: UInt32, second: UInt32, changes: [RecordChange], traits: History.Traits = []) {
        self.init(version: version, first: first, second: second, changes: RecordChanges(changes), traits: traits)
    }

    /// Returns a draft's changes as map changes of the version with this ordinal, for the record that the encoder prepared.
    package func mapChanges(_ ordinal: UInt32, in encoder: RecordEncoder, ordinalOf: (VersionID) -> UInt32?) -> [MapChange] {
        var out: [MapChange] = []
        out.reserveCapacity(changes.count)
        var bodyOffset = encoder.bodiesStart
        let bodies = encoder.bodies
        for i in 0..<min(changes.count, bodies.count) {
            let change = changes[i], body = bodies[i]
            switch change.kind {
            case .insert, .update:
                out.append(
                    MapChange(
                        key: change.id,
                        entry: MapEntry(
                            version: ordinal, size: UInt32(truncatingIfNeeded: change.size),
                            bodyOffset: body.isNone ? 0 : UInt64(bodyOffset))))
                bodyOffset += body.sizeInRecord
            case .preserve:
                let version = change.storedVersion.flatMap(ordinalOf) ?? ordinal
                if i < located.count, let known = located[i], known.version == version {
                    out.append(MapChange(key: change.id, entry: known))
                    continue
                }
                out.append(MapChange(key: change.id, entry: MapEntry(version: version, size: MapEntry.unknownSize, bodyOffset: 0)))
            case .remove, .preserveRemoval:
                out.append(MapChange(key: change.id, entry: nil))
            }
        }
        return out
    }
}
