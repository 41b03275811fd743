/// The knowledge of a transport about the files at a place, from the last listing and from what it sent since.
struct RemoteKnowledge {
    /// A digest of a set of names, to detect changes without storing them. Names can be added in any order.
    struct Digest: Equatable {
        private var count: UInt64 = 0, first: UInt64 = 0, second: UInt64 = 0
        init(_ ids: [VersionID]) { for id in ids { add(id) } }

        init(sizes: [VersionID: Int]) { for (id, size) in sizes { add(id, size: size) } }

        mutating func add(_ id: VersionID, size: Int = 0) {
            // FNV-1a with two offsets, summed so that the order does not matter. It is no protection; it only saves a request.
            var a: UInt64 = 0xCBF2_9CE4_8422_2325, b: UInt64 = 0x9E37_79B9_7F4A_7C15
            (a, b) = (a ^ UInt64(bitPattern: Int64(size)) &* 0x9E37_79B9_7F4A_7C15, b &+ UInt64(bitPattern: Int64(size)))
            for byte in id.description.utf8 {
                a = (a ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
                b = (b ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
            }
            count &+= 1
            first &+= a ^ a >> 29
            second &+= b ^ b >> 31
        }

        static let size = 24
        var bytes: [UInt8] { [count, first, second].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } } }
        init?(bytes: ArraySlice<UInt8>) {
            guard bytes.count == Digest.size else { return nil }
            let words = (0..<3).map { i in bytes.dropFirst(8 * i).prefix(8).reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) } }
            (count, first, second) = (words[0], words[1], words[2])
        }
    }
    enum State { case absent, file, directory }

    /// The listing of a retrieve, for the send that follows.
    var fresh: (listing: ExchangeListing, until: Double)?
    /// The names of the versions when last all of them had their changes files, and there were no others.
    private(set) var checked: Digest?
    /// Files that were sent since the last listing in the same request as a refused file.
    var sent: Set<String> = []
    private var current: (digest: Digest, mark: UInt64)?
    private var sizes: [VersionID: Int] = [:]
    private var directories: Set<VersionID> = [], changesOnly: Set<VersionID> = [], versionsOnly: Set<VersionID> = []
    private var marks: UInt64 = 0

    // MARK: Sizes

    /// The sizes of changes files, as last listed or sent.
    private var changesSizes: [VersionID: Int] = [:]
    /// The version files and their sizes when a listing was last compared, also by an earlier process.
    private var compared: Digest?
    /// Files whose listed size is new or changed.
    private var resized: Set<VersionID> = []
    /// When the changes files were last listed, in seconds since 2001, and whether some were sent since.
    private var changesListed = -Double.infinity, hasSent = false
    /// Seconds after which the changes files are listed again: in any case, and if some were sent since.
    private static let longestTrust = 86_400.0, longestTrustOfSent = 600.0

    /// Returns whether to list the changes files: names were added or removed, or their sizes are due for a check.
    func wantsChanges(_ digest: Digest, _ now: Double) -> Bool {
        if checked != digest { return true }
        let age = now - changesListed
        return age < 0 || age > RemoteKnowledge.longestTrust || (hasSent && age > RemoteKnowledge.longestTrustOfSent)
    }

    /// Records the sizes from a listing of the changes files.
    mutating func takeChanges(_ sizes: [VersionID: Int], _ now: Double) {
        for (id, size) in sizes where changesSizes[id] != size { resized.insert(id) }
        (changesSizes, changesListed, hasSent) = (sizes, now, false)
    }

    /// See `ExchangeTransport.takeListed`.
    mutating func takeListed() -> [ChangedFiles] {
        let all = resized
        resized = []
        return all.map { ChangedFiles(name: $0.description, versionSize: sizes[$0] ?? -1, changesSize: changesSizes[$0] ?? -1) }
    }

    /// Records a listing. Returns its mark.
    mutating func take(_ listing: ExchangeListing, _ digest: Digest, _ sizes: [VersionID: Int], _ directories: Set<VersionID>) -> UInt64 {
        let now = Digest(sizes: sizes)
        if compared != now {
            for (id, size) in sizes where self.sizes[id] != size && !directories.contains(id) { resized.insert(id) }
            compared = now
        }
        self.sizes = sizes
        self.directories = directories
        sent = []
        changesOnly = Set(listing.changesOnly)
        versionsOnly = Set(listing.versionsOnly)
        checked = changesOnly.isEmpty && versionsOnly.isEmpty ? digest : nil
        if let current, current.digest == digest, checked != nil { return current.mark }
        marks += 1
        current = (digest, marks)
        return marks
    }

    /// Adds files that were sent.
    mutating func add(_ files: [ExchangeFiles]) {
        hasSent = hasSent || !files.isEmpty
        for file in files {
            guard let id = VersionID(validating: file.name) else { continue }
            changesSizes[id] = file.changes.size
            if sizes[id] == nil { compared?.add(id, size: file.version.count) } else { compared = nil }
            if sizes.updateValue(file.version.count, forKey: id) == nil, !changesOnly.contains(id) {
                checked?.add(id)
            }
            changesOnly.remove(id)
            versionsOnly.remove(id)
        }
    }

    func state(_ id: VersionID?, _ folder: ExchangeListing.Foreign.Folder) -> State {
        guard let id else { return .absent }
        switch folder {
        case .versions: return directories.contains(id) ? .directory : sizes[id] == nil ? .absent : .file
        case .changes: return changesOnly.contains(id) || (sizes[id] != nil && !versionsOnly.contains(id)) ? .file : .absent
        }
    }

    func isEmptyThere(_ id: VersionID) -> Bool { sizes[id] == 0 && !directories.contains(id) }

    // MARK: In a later process

    /// Format 1 had only the digest of the names.
    private static let format: UInt8 = 2
    /// The digests of the names and of the sizes, when the changes files were last listed, and whether some were sent since.
    var state: [UInt8] {
        get {
            guard let checked else { return [] }
            var bytes = [RemoteKnowledge.format]
            bytes += checked.bytes
            bytes += compared?.bytes ?? [UInt8](repeating: 0, count: Digest.size)
            withUnsafeBytes(of: changesListed.bitPattern.littleEndian) { bytes.append(contentsOf: $0) }
            bytes.append(hasSent ? 1 : 0)
            return bytes
        }
        set {
            let rest = newValue.dropFirst()
            (checked, compared, changesListed, hasSent) = (nil, nil, -.infinity, false)
            switch newValue.first {
            case 1: checked = Digest(bytes: rest)
            case RemoteKnowledge.format where rest.count == 2 * Digest.size + 9:
                checked = Digest(bytes: rest.prefix(Digest.size))
                compared = Digest(bytes: rest.dropFirst(Digest.size).prefix(Digest.size))
                let time = rest.dropFirst(2 * Digest.size).prefix(8).reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
                changesListed = Double(bitPattern: time)
                hasSent = rest.last == 1
                if !changesListed.isFinite { changesListed = -.infinity }
            default: break
            }
        }
    }
}
