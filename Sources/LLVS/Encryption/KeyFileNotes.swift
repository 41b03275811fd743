/// What a device remembers of the files of rings at a place: docs/encryption.md, section 5, "Which files are read".
///
/// Anybody who may write to the place can add files of such names. Each of them is read once; those that counted are read first.
struct KeyFileNotes: Equatable, Sendable {
    enum Outcome: UInt8, Sendable {
        /// A ring of others, or one that did not count.
        case others
        /// Not a ring, whatever is tried again: its bytes are those that its name says.
        case useless
        /// Unreadable, but may become readable.
        case open
    }
    /// The rings that counted, the newest first.
    var rings: [KeyFileName] = []
    /// The other files that were read, by the first half of their ids.
    var tried: [UInt64: Outcome] = [:]
    /// The id at which the last call ended, if it did not read all files.
    var next = PackID.zero
    /// A digest of the identities with which they were read.
    private(set) var identities = PackID.zero

    /// The most rings that are remembered, and how many of them may be competing ones.
    static let ringsLimit = 256, competingLimit = 64
    /// The most files and bytes that one call reads for the first time.
    static let files = 256, bytes = 16 << 20
    /// The same for a device that has used no keys of the place yet.
    static let filesOfNew = 4_096, bytesOfNew = 64 << 20
    /// The most files that one call reads again, and the most entries of `tried`.
    static let again = 16, triedLimit = 20_000

    init() {}
    init(rings: [KeyFileName], tried: [UInt64: Outcome], next: PackID, identities: PackID) {
        (self.rings, self.tried, self.next, self.identities) = (rings, tried, next, identities)
    }

    /// Forgets the outcomes of other identities.
    mutating func begin(_ identities: [AgeIdentity]) {
        let text = identities.map(\.recipient).sorted().flatMap(\.bytes), digest = KeyFileName.id(of: text)
        if digest != self.identities { (tried, self.identities) = ([:], digest) }
    }
    mutating func note(_ name: KeyFileName, _ outcome: Outcome) {
        guard tried[name.id.high] != nil || tried.count < KeyFileNotes.triedLimit else { return }
        tried[name.id.high] = outcome
    }

    /// Chooses the files to read.
    /// - Parameters:
    ///   - names: the files at the place.
    ///   - isNew: whether the device has used no keys of the place yet.
    /// - Returns: the files that counted; those to read for the first time, and again; and the number of files left for later calls.
    mutating func chosen(_ names: [KeyFileName], isNew: Bool) -> (known: [KeyFileName], new: [KeyFileName], left: Int) {
        let counted = Set(rings)
        if tried.count >= KeyFileNotes.triedLimit {
            // Those that are gone make room.
            let listed = Set(names.map(\.id.high))
            tried = tried.filter { listed.contains($0.key) }
        }
        var known: [KeyFileName] = [], new: [KeyFileName] = [], open: [KeyFileName] = []
        for name in names {
            if counted.contains(name) { known.append(name); continue }
            switch tried[name.id.high] {
            case nil: new.append(name)
            case .open: open.append(name)
            case .others, .useless: break
            }
        }
        let most = isNew ? KeyFileNotes.filesOfNew : KeyFileNotes.files, left = max(0, new.count - most)
        if left > 0 {
            new = Array(KeyFileNotes.turned(new, from: next).prefix(most))
            next = new.last?.id ?? .zero
        }
        return (known, new + KeyFileNotes.turned(open, from: next).prefix(KeyFileNotes.again), left)
    }
    /// Returns at most `limit` names of each kind, besides the rings that counted. Rings that were not read come first, from the one at
    /// which the last call ended.
    func limited(_ names: [KeyFileName], to limit: Int) -> [KeyFileName] {
        guard names.count > limit else { return names }
        let counted = Set(rings), passphrases = names.filter { $0.epoch == 0 }.prefix(limit)
        let rest = KeyFileNotes.turned(names.filter { $0.epoch > 0 && !counted.contains($0) }, from: next)
        let (new, old) = (rest.filter { tried[$0.id.high] == nil }, rest.filter { tried[$0.id.high] != nil })
        return passphrases + names.filter(counted.contains) + (new + old).prefix(limit)
    }
    /// Returns the names by id, beginning behind one.
    private static func turned(_ names: [KeyFileName], from id: PackID) -> [KeyFileName] {
        let sorted = names.sorted { $0.id < $1.id }
        return sorted.filter { id < $0.id } + sorted.filter { !(id < $0.id) }
    }
}
