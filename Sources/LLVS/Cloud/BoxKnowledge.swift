/// What one opened exchange knows of folders at Box, and what it waits for.
struct BoxKnowledge {
    /// Where the account's events go on; nil before they were first asked for.
    var position: String?
    /// Folders whose files were listed, by directory.
    var directories: [String: String] = [:]
    /// Ids of folders by the one that they lie in and by their names in lower case. Listed ones hold all that there are.
    private var inner: [String: [String: String]] = [:]
    private var listed: Set<String> = []
    /// Ids of folders that somebody asked for.
    private var way: Set<String> = []
    /// Files that events tell of and that no list has shown, and until when they are waited for.
    private var expected: [String: [String: Double]] = [:]
    /// For how long lists may lag behind events, in seconds.
    private static let lag = 60.0

    /// All but where the events go on.
    mutating func forget() {
        (inner, listed, way) = ([:], [], [])
        directories = [:]
    }
    /// Which folders there are. What was listed stays true as far as events tell.
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
    /// Whether it is what and where it was.
    func isKnown(_ entry: CloudEntry?) -> Bool {
        guard let entry, let parent = entry.parents.first else { return false }
        return inner[parent]?[entry.name.lowercased()] == entry.id
    }

    // MARK: Files that lists do not show yet

    mutating func expect(_ id: String, in directory: String) {
        expected[directory, default: [:]][id] = Clock.steady() + BoxKnowledge.lag
    }
    mutating func shown(_ id: String, in directory: String) { expected[directory]?[id] = nil }
    /// The directories with such files.
    mutating func awaited() -> [String] {
        let now = Clock.steady()
        expected = expected.compactMapValues { files in
            let left = files.filter { $0.value > now }
            return left.isEmpty ? nil : left
        }
        return Array(expected.keys)
    }
}
