import LLVS
import LLVSTestSupport

/// A folder through which stores exchange, with everything that was sent to it.
final class SimulatedFolder {
    enum Area { case versions, changes }
    struct Name: Hashable { var area: Area; var id: String }
    struct File { var bytes: [UInt8]; var edition: Int }

    private(set) var files: [Name: File] = [:]
    /// Names in the order of their first arrival, so that nothing depends on hashing.
    private(set) var names: [Name] = []
    var snapshots: [String: [UInt8]] = [:]
    private var editions = 0

    func write(_ name: Name, _ bytes: [UInt8]) {
        if files[name] == nil, !names.contains(name) { names.append(name) }
        editions += 1
        files[name] = File(bytes: bytes, edition: editions)
    }
    func remove(_ name: Name) { files[name] = nil }

    /// Loses, empties or truncates a file; now and then all files are lost.
    func damage(_ random: inout SeededRandom) -> String? {
        let there = names.filter { files[$0] != nil }
        guard let name = there.randomElement(using: &random), let file = files[name] else { return nil }
        if Int.random(in: 0..<12, using: &random) == 0 {
            files = [:]
            return "all \(there.count) files are lost"
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0: remove(name); return "\(name.area) \(name.id) is lost"
        case 1: write(name, []); return "\(name.area) \(name.id) is emptied"
        default:
            let size = SimulatedFolder.cut(file.bytes, &random)
            write(name, Array(file.bytes.prefix(size)))
            return "\(name.area) \(name.id) is cut to \(size) of \(file.bytes.count) bytes"
        }
    }
    /// The size to which a file is truncated: any, and often one where the rest looks complete.
    static func cut(_ bytes: [UInt8], _ random: inout SeededRandom) -> Int {
        guard !bytes.isEmpty else { return 0 }
        let ends = bytes.indices.dropLast().filter { [UInt8(ascii: "}"), UInt8(ascii: "]")].contains(bytes[$0]) }
        if Bool.random(using: &random), let end = ends.randomElement(using: &random) { return end + 1 }
        return Int.random(in: 0..<bytes.count, using: &random)
    }
}

/// The probabilities of what can happen to files on their way.
struct Weather {
    /// A file that is new or was changed is seen as a whole; otherwise it is seen as before.
    var arrives = 1.0
    /// A file that is not seen as a whole is seen in part.
    var partial = 0.0
    /// A file that is sent is lost, emptied or truncated for all.
    var loss = 0.0
    /// A listing is outdated.
    var stale = 0.0
    /// A listing repeats a name, or contains conflict copies.
    var twice = 0.0
    /// A call of the transport fails, at its beginning or halfway.
    var failure = 0.0
    static let calm = Weather()
}

/// A store's own copy of a `SimulatedFolder`. A slow and unreliable program synchronizes it with the copies of others.
final class FolderView: ExchangeTransport, @unchecked Sendable {
    private let folder: SimulatedFolder
    private struct Seen { var bytes: [UInt8]; var edition: Int; var isWhole: Bool }
    private var seen: [SimulatedFolder.Name: Seen] = [:]
    private var earlier: [String]?
    /// Set before each step.
    var weather = Weather.calm
    var random = SeededRandom(seed: 0)
    /// Set for `Defect.transport`.
    var swallows = false
    /// The number of faults so far.
    private(set) var faults = 0
    private let tellsMarks: Bool
    private var mark: (names: [String], number: UInt64) = ([], 0)

    init(_ folder: SimulatedFolder, tellsMarks: Bool) { self.folder = folder; self.tellsMarks = tellsMarks }

    let description = "the simulated folder"
    var restorationState: [UInt8] = []

    private func happens(_ probability: Double) -> Bool {
        guard probability > 0, Double.random(in: 0..<1, using: &random) < probability else { return false }
        faults += 1
        return true
    }
    private func mayFail(_ what: String) throws {
        if happens(weather.failure) { throw StoreError(.transport, "\(what) failed, as it sometimes does.") }
    }

    /// Copies what has arrived by now.
    private func refresh() {
        for name in folder.names {
            guard let file = folder.files[name] else {
                if seen[name] != nil, Double.random(in: 0..<1, using: &random) < weather.arrives { seen[name] = nil }
                continue
            }
            if let mine = seen[name], mine.edition == file.edition, mine.isWhole { continue }
            if weather.arrives >= 1 || Double.random(in: 0..<1, using: &random) < weather.arrives {
                seen[name] = Seen(bytes: file.bytes, edition: file.edition, isWhole: true)
            } else if happens(weather.partial) {
                let size = Bool.random(using: &random) ? 0 : SimulatedFolder.cut(file.bytes, &random)
                seen[name] = Seen(bytes: Array(file.bytes.prefix(size)), edition: file.edition, isWhole: false)
            }
        }
    }

    private func visible(_ area: SimulatedFolder.Area) -> [String] {
        folder.names.compactMap { $0.area == area && seen[$0] != nil ? $0.id : nil }
    }

    func list(_ control: OperationControl) throws -> ExchangeListing {
        try mayFail("Listing")
        let before = visible(.versions)
        refresh()
        var versions = visible(.versions), isExact = true
        if happens(weather.stale) { versions = earlier ?? before; isExact = false } else { earlier = versions }
        let there = Set(versions)
        let changesOnly = visible(.changes).filter { !there.contains($0) }
        if happens(weather.twice), let one = versions.randomElement(using: &random) {
            versions += [one, "\(one).sync-conflict-20260101-000000-ABCDEFG", "\(one) (2)", ".syncthing.\(one).tmp"]
            isExact = false
        }
        var listing = ExchangeListing(versions: versions.shuffled(using: &random), changesOnly: changesOnly)
        if tellsMarks, isExact {
            let names = versions + ["/"] + changesOnly
            if names != mark.names { mark = (names, mark.number + 1) }
            listing.mark = mark.number
        }
        return listing
    }

    private func fetch(_ area: SimulatedFolder.Area, _ names: [String], _ control: OperationControl) throws -> [FetchedFile] {
        try mayFail("Fetching")
        if happens(weather.failure) { refresh() }
        // Sometimes a fetch returns only some of the files.
        let count = weather.failure > 0 ? Int.random(in: 1...max(1, names.count), using: &random) : names.count
        return try names.prefix(count).enumerated().map { i, id in
            try control.check(.receiving, i, of: names.count, doing: "Retrieving")
            return seen[.init(area: area, id: id)].map { .data($0.bytes) } ?? .missing
        }
    }
    func fetchVersions(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] { try fetch(.versions, names, control) }
    func fetchChanges(_ names: [String], _ control: OperationControl) throws -> [FetchedFile] { try fetch(.changes, names, control) }

    func send(_ files: [ExchangeFiles], _ control: OperationControl) throws {
        for (i, file) in files.enumerated() {
            try mayFail("Sending")
            try control.check(.sending, i, of: files.count, doing: "Sending")
            guard file.version.withUnsafeBytes({ WholeFile.version.isWhole($0, of: $0.count) }) else {
                throw Failure("unreadable elsewhere", "the file of \(file.name): \(String(decoding: file.version, as: UTF8.self))")
            }
            put(.init(area: .changes, id: file.name), try file.changes.bytes())
            try mayFail("Sending")
            put(.init(area: .versions, id: file.name), file.version)
        }
    }
    private func put(_ name: SimulatedFolder.Name, _ bytes: [UInt8]) {
        if swallows, name.area == .changes, name.id.utf8.reduce(0, { $0 &+ Int($1) }) % 16 == 0 {
            // Whole for the sender, and missing for all others.
            seen[name] = Seen(bytes: bytes, edition: -1, isWhole: true)
            return
        }
        var bytes = bytes
        if happens(weather.loss) {
            switch Int.random(in: 0..<3, using: &random) {
            case 0: folder.remove(name); seen[name] = nil; return
            case 1: bytes = []
            default: bytes = Array(bytes.prefix(SimulatedFolder.cut(bytes, &random)))
            }
        }
        folder.write(name, bytes)
        seen[name] = folder.files[name].map { Seen(bytes: $0.bytes, edition: $0.edition, isWhole: true) }
    }

    /// Checks files as the real folder does.
    func unusable(among names: [String], _ control: OperationControl) throws -> [String] {
        func isWhole(_ area: SimulatedFolder.Area, _ id: String, _ kind: WholeFile) -> Bool {
            guard let bytes = seen[.init(area: area, id: id)]?.bytes else { return false }
            return bytes.withUnsafeBytes { kind.isWhole($0, of: $0.count) }
        }
        return names.filter { !isWhole(.versions, $0, .version) || !isWhole(.changes, $0, .changes) }
    }

    func readSnapshotFile(_ name: String) throws -> [UInt8]? {
        try mayFail("Reading")
        if happens(weather.partial) {
            return Bool.random(using: &random) ? nil : folder.snapshots[name].map { Array($0.prefix(SimulatedFolder.cut($0, &random))) }
        }
        return folder.snapshots[name]
    }
    func writeSnapshotFile(_ name: String, _ data: [UInt8]) throws { try mayFail("Writing"); folder.snapshots[name] = data }
    func deleteSnapshotFile(_ name: String) throws { try mayFail("Deleting"); folder.snapshots[name] = nil }
    func snapshotFileNames() throws -> [String] { folder.snapshots.keys.sorted() }

    func observe(_ changed: @escaping @Sendable () -> Void) throws -> (any ExchangeObservation)? { nil }
    func close() {}
}
