import LLVS
import LLVSTestSupport

/// One event of a history. Its random numbers come from a seed of its own. So if other steps are left out, only the versions that it can
/// choose from change.
struct Step {
    enum Kind: Int, CaseIterable {
        /// Saves on the current version.
        case save
        /// Saves on an older version, perhaps with a branch. The store then stays where it is, or moves there.
        case saveElsewhere
        /// Merges all heads, as an app would.
        case merge
        /// Merges any two versions.
        case mergeTwo
        case revert
        case retrieve, send
        /// Hands versions from one store to another in any order; some are missing.
        case give
        /// Loses, empties or truncates a file of a folder.
        case damage
        /// Closes or discards a store, and opens it again with or without its caches.
        case restart
        case compact
        case putSnapshot
        /// Adds a store, from a snapshot or empty.
        case join
        /// Sets a clock right, wrong, or back.
        case skew
        /// Saves through another process's handle.
        case otherProcess
        /// Moves the store to another version.
        case move
    }
    var kind: Kind
    var replica: Int
    var seed: UInt64
    /// Seconds since the beginning.
    var time: Double
}

/// Everything about a history that is decided before it begins. One number determines all of it.
struct Plan {
    enum Start: Int, CaseIterable {
        /// All stores begin with one common version.
        case shared
        /// All stores begin on the empty root, as coordinators do.
        case emptyRoot
        /// Each store begins with a root of its own, so merges have no common ancestor.
        case apart
    }
    enum Finish: Int, CaseIterable {
        /// All stores exchange, then all merge.
        case phases
        /// One store after another retrieves, merges and sends.
        case turns
        /// The steps of all stores are interleaved.
        case mixed
        /// One store after another exchanges, as a coordinator does, and merges, always in the same order. What it merged waits for its
        /// next turn.
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
        /// Whether it saves and merges as an app does, with a `StoreCoordinator`.
        var isCoordinated = false
    }

    let seed: UInt64
    var replicas: [ReplicaPlan] = []
    /// The folders to which each replica is attached.
    var attachments: [[Int]] = []
    var folderCount = 1
    var areFoldersReal = false
    var weather = Weather.calm
    var start = Start.shared
    var finish = Finish.phases
    /// Whether all heads are merged, or only those without a branch.
    var selectsAll = false
    var usesBranches = false
    var hasLargeValues = false
    var keyCount = 4
    var steps: [Step] = []
    /// The number of rounds in which the stores must settle. Nil: the promised number.
    var rounds: Int?
    /// Whether stores that are at a branch stay there at the end.
    var staysOnBranches = false
    /// Whether an attacker writes to the folders (`HostilePeer`).
    var isAttacked = false

    static let beginning = 810_000_000.0

    /// - Parameter replicaCount: used by shrinking.
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
            // A chain: each folder has a store that is also attached to the next folder.
            let own = i % folderCount
            attachments.append(folderCount > 1 && (i < folderCount || chance(3)) ? [own, (own + 1) % folderCount].sorted() : [own])
        }
        if let replicaCount { replicas = Array(replicas.prefix(replicaCount)); attachments = Array(attachments.prefix(replicaCount)) }

        // Each history has its own frequencies: some kinds of steps are frequent, some never occur.
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
            // Hundreds of heads that are not merged before the end.
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

    /// A deviation of a clock.
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

    /// Whether one round of exchange and merge must suffice.
    var settlesInOne: Bool {
        guard let first = replicas.first else { return true }
        return replicas.allSatisfy {
            $0.arbiter.kind == first.arbiter.kind && $0.arbiter.isSymmetric && $0.arbiter.stamp == first.arbiter.stamp
                && $0.metadata == first.metadata
        }
    }
}
