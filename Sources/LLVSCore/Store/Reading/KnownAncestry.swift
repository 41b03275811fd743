/// Answers whether versions are ancestors of one version after another. It retains the ancestors of the last ones. So a chain of
/// versions, each based on the one before, is walked once, however many queries there are for each.
package struct KnownAncestry {
    /// The most steps of a walk for a single ancestor.
    private static let fewSteps = 64
    /// The versions whose ancestors are known.
    private var tips: [UInt32] = []
    private var known = MergedAncestry()
    package init() {}

    /// Returns whether a version equals one of these, or is an ancestor of one.
    /// - Parameter look: called now and then. It may throw to end the walk.
    package mutating func contains(_ ancestor: UInt32, behind versions: [UInt32], in store: Store, _ look: () throws -> Void) rethrows
        -> Bool
    {
        if versions.contains(ancestor) { return true }
        if versions != tips {
            if let isIn = store.lock.withRead({ store.dag.isAncestor(ancestor, of: versions, within: KnownAncestry.fewSteps) }) {
                return isIn
            }
            // Ancestors of the tips are ancestors of the tips' descendants.
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
