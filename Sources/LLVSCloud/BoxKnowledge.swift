/// The knowledge of one opened exchange about folders at Box, and the changes it is waiting for.
struct BoxKnowledge {
    /// The position in the account's events; nil before the first request.
    var position: String?
    /// The ids of listed folders, by directory.
    var directories: [String: String] = [:]
    /// Ids of folders, by their parent and their names in lower case. Complete for listed parents.
    private var inner: [String: [String: String]] = [:]
    private var listed: Set<String> = []
    /// Ids of folders that were looked up.
    private var way: Set<String> = []
    /// Files reported by events that no list has shown, and until when to wait for them.
    private var expected: [String: [String: Double]] = [:]
    /// Seconds by which lists may lag behind events.
    private static let lag = 60.0

    /// Discards everything except the position in the events.
    mutating func forget() {
        (inner, listed, way) = ([:], [], [])
        directories = [:]
    }
    /// Forgets which folders exist. Listed files stay valid, since events report their changes.
    mutating func lookAgain() { (inner, listed) = ([:], []) }

    // MARK: Folders

    mutating func inner(_ parent: String, _ name: String) -> String? {
        guard let id = inner[parent]?[name.lowercased()] else { return nil }
        way.insert(id)
        return id
    }
    func isListed(_ folder: String) -> Bool { listed.contains(folder) }
    mutating func list(_ folder: String, _ items: [CloudEntry]) {
        listed.insert(folder)
        inner[folder] = [:]
        for item in items where item.isFolder { inner[folder]?[item.name.lowercased()] = item.id }
    }
    mutating func unlist(_ folder: String?) { if let folder { listed.remove(folder) } }
    mutating func add(_ parent: String, _ name: String, _ id: String) {
        inner[parent, default: [:]][name.lowercased()] = id
        way.insert(id)
    }

    func isOnTheWay(_ id: String) -> Bool { way.contains(id) }
    /// Returns whether an item has the same name and parent as before.
    func isKnown(_ entry: CloudEntry?) -> Bool {
        guard let entry, let parent = entry.parents.first else { return false }
        return inner[parent]?[entry.name.lowercased()] == entry.id
    }

    // MARK: Files that lists do not show yet

    mutating func expect(_ id: String, in directory: String) {
        expected[directory, default: [:]][id] = Clock.steady() + BoxKnowledge.lag
    }
    mutating func shown(_ id: String, in directory: String) { expected[directory]?[id] = nil }
    /// Returns the directories with such files.
    mutating func awaited() -> [String] {
        let now = Clock.steady()
        expected = expected.compactMapValues { files in
            let left = files.filter { $0.value > now }
            return left.isEmpty ? nil : left
        }
        return Array(expected.keys)
    }
}
