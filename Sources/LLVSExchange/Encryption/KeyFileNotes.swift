/// What a device remembers of the files of rings at a place: docs/encryption.md, section 5, "Which files are read".
///
/// Any user who may write to the place can add files of such names. Rings that opened are read first. A file that can never become a ring
/// is read once.
struct KeyFileNotes: Equatable, Sendable {
    enum Outcome: UInt8, Sendable {
        /// A file for other identities; its bytes match its name.
        case others
        /// Never a ring of its name, since its bytes match its name: trying again does not help.
        case useless
        /// Unreadable, but may become readable.
        case open
        /// The place does not return its bytes now. It may be a ring.
        case withheld
        var mayChange: Bool { self == .open || self == .withheld }
    }
    /// The rings that this device could open and that a holder of known keys made. First the rings that count, newest first; then competing
    /// rings; then rings that are not listed now.
    private(set) var rings: [KeyFileName] = []
    /// Other rings that opened.
    private(set) var strange: [KeyFileName] = []
    /// The files that the passphrase opened.
    var passphrases: [KeyFileName] = []
    /// The other files that were read.
    var tried: [KeyFileName: Outcome] = [:]
    /// The files at which the last call ended: among those to read for the first time, and those to read again.
    var next = KeyFileName.passphrase(id: .zero), nextAgain = KeyFileName.passphrase(id: .zero)
    /// For a new device: the file behind which it began to read all files once, in order; nil if it has not begun, or has read all.
    var turn: KeyFileName?
    /// A digest of the identities with which they were read.
    private(set) var identities = PackID.zero

    /// The most rings that are remembered, and of `strange` ones.
    static let ringsLimit = 256, strangeLimit = 64
    /// The most files and bytes that one call reads for the first time.
    static let files = 256, bytes = 16 << 20
    /// The most files and bytes that one call reads for the first time on a device that has used no keys of the place yet.
    static let filesOfNew = 4_096, bytesOfNew = 64 << 20
    /// The most files that one call reads again, and the most entries of `tried`.
    static let again = 16, triedLimit = 20_000

    init() {}
    init(rings: [KeyFileName], strange: [KeyFileName], identities: PackID) {
        (self.rings, self.strange, self.identities) = (rings, strange, identities)
    }

    /// Forgets the outcomes of other identities.
    mutating func begin(_ identities: [AgeIdentity]) {
        let text = identities.map(\.recipient).sorted().flatMap(\.bytes), digest = KeyFileName.id(of: text)
        if digest != self.identities { (tried, turn, self.identities) = ([:], nil, digest) }
    }
    mutating func note(_ name: KeyFileName, _ outcome: Outcome) {
        // A file that is withheld is counted in any case: a new device waits for it.
        let limit = outcome == .withheld ? 2 * KeyFileNotes.triedLimit : KeyFileNotes.triedLimit
        guard tried[name] != nil || tried.count < limit else { return }
        tried[name] = outcome
    }
    /// Remembers rings that opened, besides former ones: those may only be absent from a listing. A ring for which there is no room is
    /// read as if for the first time.
    mutating func remember(_ rings: [KeyFileName], strange: [KeyFileName]) {
        self.rings = KeyFileNotes.joined(rings, self.rings, to: KeyFileNotes.ringsLimit)
        // Known files come first, so that a new file displaces none that is still listed.
        let held = Set(self.rings), former = Set(self.strange)
        let found = strange.filter(former.contains) + strange.filter { !former.contains($0) }
        let all = KeyFileNotes.joined(found, self.strange, to: .max).filter { !held.contains($0) }
        self.strange = Array(all.prefix(KeyFileNotes.strangeLimit))
    }
    private static func joined(_ first: [KeyFileName], _ rest: [KeyFileName], to limit: Int) -> [KeyFileName] {
        let held = Set(first)
        return Array((first + rest.filter { !held.contains($0) }).prefix(limit))
    }
    private var known: Set<KeyFileName> { Set(rings + strange + passphrases) }

    /// The files to read.
    struct Chosen {
        /// Rings that opened before.
        var known: [KeyFileName] = []
        /// The files to read for the first time, and the files to read again.
        var new: [KeyFileName] = [], again: [KeyFileName] = []
        /// The number of files left for later calls.
        var left = 0
    }
    /// Chooses the files to read.
    /// - Parameters:
    ///   - names: the files at the place.
    ///   - isNew: whether the device has used no keys of the place yet.
    mutating func chosen(_ names: [KeyFileName], isNew: Bool) -> Chosen {
        if tried.count >= KeyFileNotes.triedLimit {
            // Forgetting files that are no longer listed makes room.
            let listed = Set(names)
            tried = tried.filter { listed.contains($0.key) }
        }
        let known = known, most = isNew ? KeyFileNotes.filesOfNew : KeyFileNotes.files
        var chosen = Chosen()
        for name in names {
            if known.contains(name) { chosen.known.append(name); continue }
            switch tried[name] {
            case nil: chosen.new.append(name)
            case .open, .withheld: chosen.again.append(name)
            case .others, .useless: break
            }
        }
        chosen.new = KeyFileNotes.turned(chosen.new, from: next)
        if isNew {
            // Only so many files are remembered as read. The others have been read once when the turn ends where it began.
            let end = turn ?? next
            turn = end
            chosen.new = chosen.new.filter { KeyFileNotes.isReached($0, from: next, to: end) }
        }
        chosen.left = max(0, chosen.new.count - most)
        chosen.new = Array(chosen.new.prefix(most))
        chosen.again = Array(KeyFileNotes.turned(chosen.again, from: nextAgain).prefix(KeyFileNotes.again))
        return chosen
    }
    /// Returns at most `limit` names of each kind, besides the files that opened and a few to read again. Files that were not read come
    /// first, from the one at which the last call ended.
    func limited(_ names: [KeyFileName], to limit: Int) -> [KeyFileName] {
        guard names.count > limit else { return names }
        let known = known, strangers = names.filter { !known.contains($0) }
        let passphrases = strangers.filter { $0.epoch == 0 }.prefix(limit), rings = strangers.filter { $0.epoch > 0 }
        let again = KeyFileNotes.turned(rings.filter { tried[$0]?.mayChange == true }, from: nextAgain).prefix(KeyFileNotes.again)
        let new = KeyFileNotes.turned(rings.filter { tried[$0] == nil }, from: next)
        let old = rings.filter { tried[$0] != nil && !again.contains($0) }
        return passphrases + names.filter(known.contains) + again + (new + old).prefix(limit)
    }
    /// The order in which files are read.
    private static func isBehind(_ one: KeyFileName, _ other: KeyFileName) -> Bool { (other.id, other.epoch) < (one.id, one.epoch) }
    /// Returns the names in their order, beginning with the one after the given name.
    private static func turned(_ names: [KeyFileName], from name: KeyFileName) -> [KeyFileName] {
        let sorted = names.sorted { isBehind($1, $0) }
        return sorted.filter { isBehind($0, name) } + sorted.filter { !isBehind($0, name) }
    }
    /// Returns whether a turn that begins behind one name reaches another at its end or before. If both are the same, it reaches all.
    private static func isReached(_ name: KeyFileName, from start: KeyFileName, to end: KeyFileName) -> Bool {
        isBehind(end, start) ? isBehind(name, start) && !isBehind(name, end) : isBehind(name, start) || !isBehind(name, end)
    }
}
