import LLVS
import LLVSTestSupport

/// One thing that happens in a history. All chance in it comes from a seed of its own, so that leaving out other steps
/// changes nothing but what there is to choose from.
struct Step {
    enum Kind: Int, CaseIterable {
        /// A version on the current one.
        case save
        /// A version on an older one, perhaps with a branch; the store stays where it is, or moves there.
        case saveElsewhere
        /// All heads, as an app would.
        case merge
        /// Any two versions.
        case mergeTwo
        case revert
        case retrieve, send
        /// Versions handed from one store to another in any order, some missing.
        case give
        /// A file of a folder is lost, emptied or cut short.
        case damage
        /// A store is closed, or just vanishes, and is opened again, with or without its caches.
        case restart
        case compact
        case putSnapshot
        /// A store that was not there before, from a snapshot or from nothing.
        case join
        /// A clock is put right, or wrong, or back.
        case skew
        /// Another process works on the same store.
        case otherProcess
        /// The store goes to another version.
        case move
    }
    var kind: Kind
    var replica: Int
    var seed: UInt64
    /// Seconds that have gone by.
    var time: Double
}

/// Everything about a history that is decided before it begins, from one number.
struct Plan {
    enum Start: Int, CaseIterable {
        /// All begin with one version that all have.
        case shared
        /// Each begins on the empty root, as with coordinators.
        case emptyRoot
        /// Each begins with a root of its own: merges have no common ancestor.
        case apart
    }
    enum Finish: Int, CaseIterable {
        /// All exchange, then all merge.
        case phases
        /// One after another retrieves, merges and sends.
        case turns
        /// What each does is mixed with what the others do.
        case mixed
        /// One after another exchanges, as a coordinator does, and merges, always in the same order: what it merged waits for its next
        /// turn.
        case fixed
    }
    enum Medium: Int { case simulated, file, sqlite }
    struct ReplicaPlan {
        var arbiter = ArbiterPlan()
        var metadata = Metadata()
        var medium = Medium.simulated
        var blobThreshold: Int?
        var isBlocked = false
        var skew = 0.0
        var memoryBudget = 1 << 20
        /// Saves and merges as an app does, by a `StoreCoordinator`.
        var isCoordinated = false
    }

    let seed: UInt64
    var replicas: [ReplicaPlan] = []
    /// Which folders a replica is attached to.
    var attachments: [[Int]] = []
    var folderCount = 1
    var areFoldersReal = false
    var weather = Weather.calm
    var start = Start.shared
    var finish = Finish.phases
    /// All heads, or those without a branch.
    var selectsAll = false
    var usesBranches = false
    var hasLargeValues = false
    var keyCount = 4
    var steps: [Step] = []
    /// The rounds within which it must settle, if others than the promised ones are requested.
    var rounds: Int?
    /// Stores that are at a branch when the end begins stay there.
    var staysOnBranches = false
    /// Somebody who may write to the folders does what harms (`HostilePeer`).
    var isAttacked = false

    static let beginning = 810_000_000.0

    /// - Parameter replicaCount: for shrinking.
    init(seed: UInt64, replicaCount: Int? = nil, realShare: Int = 12) {
        self.seed = seed
        var random = SeededRandom(seed: seed)
        func chance(_ n: Int) -> Bool { Int.random(in: 0..<n, using: &random) == 0 }
        let count = Int.random(in: 2...(chance(8) ? 9 : 5), using: &random)
        start = chance(2) ? .shared : chance(2) ? .emptyRoot : .apart
        finish = Finish(rawValue: Int.random(in: 0..<4, using: &random)) ?? .phases
        usesBranches = chance(3)
        selectsAll = usesBranches ? chance(2) : chance(6)
        hasLargeValues = chance(40)
        keyCount = Int.random(in: 1...6, using: &random)
        let isReal = realShare > 0 && chance(realShare)
        areFoldersReal = isReal && !chance(4)
        folderCount = chance(4) ? Int.random(in: 2...3, using: &random) : 1
        if folderCount > 1 { finish = .phases }
        if !chance(5) {
            weather.arrives = [0.3, 0.6, 0.9, 1][Int.random(in: 0..<4, using: &random)]
            weather.partial = chance(2) ? 0.3 : 0
            weather.loss = chance(2) ? 0.05 : 0
            weather.stale = chance(3) ? 0.2 : 0
            weather.twice = chance(4) ? 0.2 : 0
            weather.failure = chance(3) ? 0.05 : 0
        }
        let same = chance(3), kind = ArbiterPlan.Kind(rawValue: Int.random(in: 0..<5, using: &random)) ?? .ours
        for i in 0..<max(count, replicaCount ?? 0) {
            var replica = ReplicaPlan()
            replica.arbiter.kind = same ? kind : ArbiterPlan.Kind(rawValue: Int.random(in: 0..<5, using: &random)) ?? .ours
            replica.arbiter.isWrapped = chance(3)
            if !same {
                if chance(8) { replica.arbiter.stamp = (try? ValueID("stamp")).map { .init(id: $0, data: Array("by \(i)".utf8)) } }
                if chance(2) { replica.metadata["device"] = Array("\"\(i % 3)\"".utf8) }
                if selectsAll, usesBranches, chance(4) { replica.metadata.branch = "merges" }
            }
            if isReal { replica.medium = chance(3) ? .sqlite : .file }
            replica.blobThreshold = chance(4) ? 64 : nil
            replica.isBlocked = chance(2)
            replica.skew = chance(3) ? Plan.skew(&random) : 0
            replica.memoryBudget = chance(4) ? 64 << 20 : 1 << 20
            replica.isCoordinated = chance(4) && start != .apart && !usesBranches
            replicas.append(replica)
            // A chain: each folder has a store that is also attached to the next.
            let own = i % folderCount
            attachments.append(folderCount > 1 && (i < folderCount || chance(3)) ? [own, (own + 1) % folderCount].sorted() : [own])
        }
        if let replicaCount { replicas = Array(replicas.prefix(replicaCount)); attachments = Array(attachments.prefix(replicaCount)) }

        // Each history has its own habits: some kinds of steps often, some never.
        var weights = Step.Kind.allCases.map { _ in chance(3) ? 0 : Int.random(in: 1...4, using: &random) }
        weights[Step.Kind.save.rawValue] = Int.random(in: 3...10, using: &random)
        for kind in [Step.Kind.merge, .retrieve, .send] where !chance(8) { weights[kind.rawValue] = Int.random(in: 2...6, using: &random) }
        for kind in [Step.Kind.join, .compact, .putSnapshot, .restart, .otherProcess] {
            weights[kind.rawValue] = min(1, weights[kind.rawValue])
        }
        if !usesBranches, chance(2) { weights[Step.Kind.saveElsewhere.rawValue] = 0 }
        let steepness = [0, 1e-6, 1, 3_600][Int.random(in: 0..<4, using: &random)]
        var time = 0.0
        var length = Int.random(in: 3...(chance(10) ? 120 : 40), using: &random)
        if chance(150) {
            // Hundreds of heads, which nobody merges before the end.
            (length, keyCount) = (Int.random(in: 100...300, using: &random), 30)
            for kind in [Step.Kind.merge, .mergeTwo, .otherProcess, .restart, .compact] { weights[kind.rawValue] = 0 }
            weights[Step.Kind.saveElsewhere.rawValue] = 40
        }
        let total = weights.reduce(0, +)
        for _ in 0..<length {
            var pick = Int.random(in: 0..<total, using: &random), kind = Step.Kind.save
            for candidate in Step.Kind.allCases {
                pick -= weights[candidate.rawValue]
                if pick < 0 { kind = candidate; break }
            }
            time += Double(Int.random(in: 0..<4, using: &random)) * steepness
            steps.append(Step(kind: kind, replica: Int.random(in: 0..<64, using: &random), seed: random.next(), time: time))
        }
    }

    /// How wrong a clock is.
    static func skew(_ random: inout SeededRandom) -> Double {
        switch Int.random(in: 0..<12, using: &random) {
        case 0: 1e12
        case 1: -2e9
        case 2: Double.greatestFiniteMagnitude
        case 3...5: 0
        case 6, 7: Double(Int.random(in: -3...3, using: &random)) * 1e-6
        default: Double(Int.random(in: -100_000...100_000, using: &random))
        }
    }

    /// Whether one round of exchange and merge must be enough.
    var settlesInOne: Bool {
        guard let first = replicas.first else { return true }
        return replicas.allSatisfy {
            $0.arbiter.kind == first.arbiter.kind && $0.arbiter.isSymmetric && $0.arbiter.stamp == first.arbiter.stamp
                && $0.metadata == first.metadata
        }
    }
}
