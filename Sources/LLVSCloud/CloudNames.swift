/// The files of a directory, by name.
struct CloudDirectory {
    private var oldest: [String: CloudEntry] = [:]
    /// Further files of the same names, oldest first.
    private var others: [String: [CloudEntry]] = [:]
    /// The names of all, by id.
    private var all: [String: String] = [:]
    /// The feed position after which changes are reported; nil if a listing is one request.
    var token: String?
    /// The ids of the folders that were listed.
    let folders: [String]
    /// The time of the listing, by `Clock.steady`.
    let since = Clock.steady()

    init(_ entries: [CloudEntry], in folders: [String], token: String?) {
        self.token = token
        self.folders = folders
        // Sorted once, since very many files may have one name.
        var byID: [String: CloudEntry] = [:]
        for entry in entries { byID[entry.id] = entry }
        all = byID.mapValues(\.name)
        for (name, entries) in Dictionary(grouping: byID.values, by: \.name) {
            let entries = entries.sorted(by: CloudEntry.isOlder)
            oldest[name] = entries.first
            if entries.count > 1 { others[name] = Array(entries.dropFirst()) }
        }
    }

    private mutating func put(_ entry: CloudEntry) {
        all[entry.id] = entry.name
        guard let first = oldest[entry.name] else { oldest[entry.name] = entry; return }
        // A known file may be reported with another time.
        var rest = ([first] + (others[entry.name] ?? [])).filter { $0.id != entry.id }
        rest.append(entry)
        rest.sort(by: CloudEntry.isOlder)
        oldest[entry.name] = rest.removeFirst()
        others[entry.name] = rest.isEmpty ? nil : rest
    }

    /// Adds a file from a feed; it may have been renamed.
    mutating func add(_ entry: CloudEntry) throws {
        if oldest[entry.name]?.id != entry.id { remove(entry.id) }
        try Memory.expect(256, "A listing")
        put(entry)
    }
    mutating func remove(_ id: String) {
        guard let name = all.removeValue(forKey: id) else { return }
        if oldest[name]?.id == id { return removeOldest(name) }
        let rest = (others[name] ?? []).filter { $0.id != id }
        others[name] = rest.isEmpty ? nil : rest
    }
    private mutating func removeOldest(_ name: String) {
        var rest = others[name] ?? []
        oldest[name] = rest.isEmpty ? nil : rest.removeFirst()
        others[name] = rest.isEmpty ? nil : rest
    }
    mutating func forget(_ name: String) { oldest[name] = nil; others[name] = nil }

    func entry(_ name: String) -> CloudEntry? { oldest[name] }
    func contains(_ id: String) -> Bool { all[id] != nil }
    func ids(_ name: String) -> [String]? { oldest[name].map { [$0.id] + (others[name] ?? []).map(\.id) } }
    var entries: [RemoteEntry] {
        oldest.values.map { one in
            var entry = RemoteEntry(name: one.name, isDirectory: one.isFolder, size: one.isFolder ? nil : one.size)
            entry.digest = one.digest.flatMap(RemoteDigest.init(hex:))
            return entry
        }
    }
}

/// The files known to one opened exchange.
final class CloudNames: Sendable {
    private let directories = Guarded<[String: CloudDirectory]>([:])
    /// Seconds for which a feed replaces listings.
    private static let oldest = 86_400.0

    func directory(_ directory: String) -> CloudDirectory? {
        directories.withLock { $0[directory].flatMap { $0.since + CloudNames.oldest > Clock.steady() ? $0 : nil } }
    }
    func set(_ directory: String, _ files: CloudDirectory) { directories.withLock { $0[directory] = files } }
    func forget(_ directory: String) { directories.withLock { $0[directory] = nil } }
    func forgetAll() { directories.withLock { $0 = [:] } }

    /// Returns all ids of a name, oldest first; nil if unknown.
    func file(_ path: String) -> [String]? {
        let (directory, name) = RemoteName.split(path)
        return directories.withLock { $0[directory]?.ids(name) }
    }
    /// Returns the file of that name; nil if unknown.
    func entry(_ path: String) -> CloudEntry? {
        let (directory, name) = RemoteName.split(path)
        return directories.withLock { $0[directory]?.entry(name) }
    }
    func addFile(_ path: String, _ entry: CloudEntry) {
        let (directory, name) = RemoteName.split(path)
        var entry = entry
        entry.name = name
        directories.withLock { all in try? all[directory, default: CloudDirectory([], in: [], token: nil)].add(entry) }
    }
    func forgetFile(_ path: String) {
        let (directory, name) = RemoteName.split(path)
        directories.withLock { $0[directory]?.forget(name) }
    }
}
