/// Content ids, which are computed from the contents of versions: docs/format.md, "Ids of versions".
extension VersionID {
    /// Whether it has the form of a content id: a UUID of version 8, in capitals, small letters or both.
    package var hasContentForm: Bool {
        guard let text else { return high & 0xF000 == 0x8000 && low >> 62 == 0b10 }
        guard text.utf8.count == 36 else { return false }
        let folded = self.folded
        return folded.text == nil && folded.hasContentForm
    }
}

/// Whether a version matches its id.
package enum Vouching {
    /// The id makes no claim about the contents: the caller or another implementation chose it.
    case free
    /// The id was computed from these contents.
    case content
    /// The id was computed from these contents except the timestamp, as earlier releases did for merges.
    case oldMerge
    /// The id was computed from other contents.
    case none
}

/// Computes the content id of a version from its header and then its changes, in order.
struct ContentCheck {
    private let id: VersionID
    private var content = IdentityHasher(.content)
    private var oldMerge: IdentityHasher?
    private let isFixedRoot: Bool

    /// Nil if the id has another form.
    init?(_ version: Version, changeCount: Int) {
        guard version.id.hasContentForm else { return nil }
        id = version.id
        isFixedRoot =
            version.predecessors.isEmpty && version.metadata.isEmpty && changeCount == 0
            && version.timestamp.bitPattern == EmptyRoot.version.timestamp.bitPattern
        content.add(predecessors: version.predecessors)
        content.add(timestamp: version.timestamp)
        content.add(version.metadata)
        content.add(changeCount: changeCount)
        guard version.predecessors.count == 2 else { return }
        var old = IdentityHasher(.oldMerge)
        old.add(predecessors: version.predecessors)
        old.add(version.metadata)
        old.add(changeCount: changeCount)
        oldMerge = old
    }
    mutating func add(setting id: UnsafeRawBufferPointer, size: Int, digest: UnsafeRawBufferPointer) {
        content.add(setting: id, size: size, digest: digest)
        oldMerge?.add(setting: id, size: size, digest: digest)
    }
    mutating func add(_ kind: Value.Change.Kind, _ id: UnsafeRawBufferPointer, stored: VersionID?) {
        content.add(kind, id, stored: stored)
        oldMerge?.add(kind, id, stored: stored)
    }
    mutating func finish() -> Vouching {
        if id == EmptyRoot.id { return isFixedRoot ? .content : .none }
        if content.finishID() == id { return .content }
        if oldMerge?.finishID() == id { return .oldMerge }
        return .none
    }
}

extension Version {
    /// Returns the id of a version with these contents and `changes`. Appends to `digests` those of the values that have theirs in the
    /// record.
    package func contentID(_ changes: RecordChanges, digests: inout [UInt8]) -> VersionID {
        var hasher = IdentityHasher(.content)
        hasher.add(predecessors: predecessors)
        hasher.add(timestamp: timestamp)
        hasher.add(metadata)
        hasher.add(changes, digests: &digests)
        return hasher.finishID()
    }

    /// Returns whether the version with these changes matches its id.
    func vouching(_ changes: RecordChanges, digests: inout [UInt8]) -> Vouching {
        guard var check = ContentCheck(self, changeCount: changes.count) else { return .free }
        for change in changes {
            guard change.hasData else { check.add(change.kind, change.id, stored: change.storedVersion); continue }
            guard change.written == nil else {
                change.digest.withUnsafeBytes { check.add(setting: change.id, size: change.size, digest: $0) }
                continue
            }
            let digest = SHA256.words(change.data)
            withUnsafeBytes(of: digest) { bytes in
                check.add(setting: change.id, size: change.data.count, digest: bytes)
                if change.data.count > RecordTable.digestThreshold { digests.append(contentsOf: bytes) }
            }
        }
        return check.finish()
    }

    /// Returns whether another implementation may have added changes without effect to a merge that it relayed.
    func mayBeRelayed(_ changes: [RecordChange]) -> Bool {
        predecessors.count == 2 && id != EmptyRoot.id && changes.contains { $0.kind != .insert && $0.kind != .update }
    }

    /// The error for a version that does not match its id.
    var isNotWhatItsIDSays: StoreError {
        let why =
            id == EmptyRoot.id
            ? "it is not the empty root, which is the same everywhere"
            : id.text != nil
                ? "such an id is in capitals when it is genuine"
                : "an id of this form is computed from what the version holds, and this one holds something else"
        return StoreError(
            .contentMismatch,
            "Version \(id) does not match its id: \(why). Nothing of it was stored; the genuine version will be "
                + "accepted when it arrives. Remove this one at its origin.",
            versionID: id.description)
    }
}
