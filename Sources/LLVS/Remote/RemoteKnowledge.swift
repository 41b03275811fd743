/// What a transport knows of the files at a place, from the last listing and from what it sent since.
struct RemoteKnowledge {
    /// A set of names, told from others without keeping them. Names can be added in any order.
    struct Digest: Equatable {
        private var count: UInt64 = 0, first: UInt64 = 0, second: UInt64 = 0
        init(_ ids: [VersionID]) { for id in ids { add(id) } }

        mutating func add(_ id: VersionID) {
            // FNV-1a, from two beginnings; sums of them, so that the order is no matter. Nobody is kept out by it, only spared a request.
            var a: UInt64 = 0xCBF2_9CE4_8422_2325, b: UInt64 = 0x9E37_79B9_7F4A_7C15
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
    /// The names of versions when all of them last had their changes, and no others were there.
    private(set) var checked: Digest?
    /// Files that were sent since the last listing along with one that was refused.
    var sent: Set<String> = []
    private var current: (digest: Digest, mark: UInt64)?
    private var sizes: [VersionID: Int] = [:]
    private var directories: Set<VersionID> = [], changesOnly: Set<VersionID> = [], versionsOnly: Set<VersionID> = []
    private var marks: UInt64 = 0

    /// Takes a listing up; what marks it.
    mutating func take(_ listing: ExchangeListing, _ digest: Digest, _ sizes: [VersionID: Int], _ directories: Set<VersionID>) -> UInt64 {
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

    /// What was sent is there.
    mutating func add(_ files: [ExchangeFiles]) {
        for file in files {
            guard let id = VersionID(validating: file.name) else { continue }
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

    private static let format: UInt8 = 1
    var state: [UInt8] {
        get { checked.map { [RemoteKnowledge.format] + $0.bytes } ?? [] }
        set { checked = newValue.first == RemoteKnowledge.format ? Digest(bytes: newValue.dropFirst()) : nil }
    }
}
