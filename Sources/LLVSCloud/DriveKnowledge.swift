/// Cached knowledge of a place at Google Drive: ids of folders, and ids for new items. It may be outdated at any time; a 404 or a listing
/// shows that.
final class DriveKnowledge: Sendable {
    private struct State {
        /// The id of the top folder, which is also called "root".
        var root: String?
        /// Ids by directory, oldest first; none if it does not exist.
        var folders: [String: [String]] = [:]
        /// Ids of all folders on the paths to those.
        var way: Set<String> = []
        /// Folders that this process created, and the time until which they count as existing although no list shows them.
        var made: [(entry: CloudEntry, until: Double)] = []
        var ids: [String] = []
    }
    private let state = Guarded(State())

    static let idsAtOnce = 64
    /// Seconds for which lists may not show new items.
    private static let lag = 60.0

    // MARK: Shared knowledge

    private static let all = Guarded<[String: DriveKnowledge]>([:])

    /// Returns the instance for a place in this process, so that a reopened exchange need not look for folders. Without an account returns
    /// a new instance.
    static func shared(of place: CloudFolder, account: String?) -> DriveKnowledge {
        guard let account else { return DriveKnowledge() }
        let name = "\(place.description)\n\(account)"
        return all.withLock { all in
            if let known = all[name] { return known }
            if all.count >= 64 { all = [:] }
            let made = DriveKnowledge()
            all[name] = made
            return made
        }
    }

    // MARK: Folders

    var root: String? {
        get { state.withLock { $0.root } }
        set { state.withLock { $0.root = newValue } }
    }
    func folder(_ directory: String) -> [String]? { state.withLock { $0.folders[directory] } }
    func setFolder(_ directory: String, _ ids: [String]) {
        state.withLock { state in
            state.folders[directory] = ids
            state.way.formUnion(ids)
        }
    }
    func forgetFolders() {
        state.withLock {
            $0.folders = [:]; $0.way = []; $0.made = []; $0.root = nil
        }
    }
    func made(_ folder: CloudEntry) { state.withLock { $0.made.append((folder, Clock.steady() + DriveKnowledge.lag)) } }
    /// Returns recently created folders of those names that no list has shown yet. A folder that was shown once is no longer assumed to
    /// exist.
    func unseen(_ components: [String], _ found: [CloudEntry]) -> [CloudEntry] {
        state.withLock { state in
            let now = Clock.steady(), seen = Set(found.map(\.id))
            state.made.removeAll { $0.until < now || seen.contains($0.entry.id) }
            return state.made.map(\.entry).filter { components.contains($0.name) }
        }
    }
    func forgetMade(_ id: String) { state.withLock { state in state.made.removeAll { $0.entry.id == id } } }
    func isOnTheWay(_ id: String) -> Bool { state.withLock { $0.way.contains(id) } }

    /// Returns the folders along a path: for each step all of its name, oldest first.
    /// - Parameter found: the results of a query, in any order.
    func chain(_ components: [String], _ found: [CloudEntry]) -> [[String]] {
        state.withLock { state in
            let folders = found.filter(\.isFolder).sorted(by: CloudEntry.isOlder)
            var levels: [[String]] = [], above = Set([state.root].compactMap { $0 } + ["root", "appDataFolder"])
            for name in components {
                let here = folders.filter { $0.name == name && !above.isDisjoint(with: $0.parents) }.map(\.id)
                levels.append(here)
                above = Set(here)
                state.way.formUnion(here)
            }
            return levels
        }
    }

    // MARK: Ids for new items

    func takeIDs(_ count: Int) -> [String]? {
        state.withLock { state in
            guard state.ids.count >= count else { return nil }
            defer { state.ids.removeLast(count) }
            return Array(state.ids.suffix(count))
        }
    }
    func addIDs(_ ids: [String]) { state.withLock { $0.ids += ids } }
}
