/// Which versions are ancestors of one version after another, for who asks about many: what is behind those asked about last is
/// kept, so that a line or a ladder of versions, each on the one before, is walked over once, however much is asked about each.
struct KnownAncestry {
    /// More steps are not walked to find a single ancestor.
    private static let fewSteps = 64
    /// Behind these, and themselves.
    private var tips: [UInt32] = []
    private var known = MergedAncestry()

    /// Whether a version is one of these, or an ancestor of one of them.
    /// - Parameter look: called now and then; what it throws ends the walk.
    mutating func contains(_ ancestor: UInt32, behind versions: [UInt32], in store: Store, _ look: () throws -> Void) rethrows -> Bool {
        if versions.contains(ancestor) { return true }
        if versions != tips {
            if let isIn = store.lock.withRead({ store.dag.isAncestor(ancestor, of: versions, within: KnownAncestry.fewSteps) }) {
                return isIn
            }
            // What is behind the tips is behind what builds on them.
            let goesOn = store.lock.withRead {
                tips.allSatisfy { tip in
                    versions.contains { $0 == tip || store.dag.rows[Int($0)].first == tip || store.dag.rows[Int($0)].second == tip }
                }
            }
            if !goesOn { known = MergedAncestry() }
            tips = []
            for version in versions { known = try store.walk(MergedAncestry.Adding(version, to: known.taken()), look) }
            tips = versions
        }
        return known.contains(ancestor)
    }
}
