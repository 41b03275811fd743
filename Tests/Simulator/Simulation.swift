import LLVS
import LLVSTestSupport

/// Runs one history. Each step happens to the stores and to the model, and afterwards the two are compared.
final class Simulation {
    let plan: Plan
    let defect: Defect?
    var model = Model()
    var replicas: [Replica] = []
    let folders: [SimulatedFolder]
    var peer = HostilePeer()
    private let folderPaths: [String]
    /// Real folders that have lost files. Stores may refuse these until they are told to fill them again.
    private(set) var foldersWithLosses: Set<Int> = []
    private let directory: TemporaryDirectory?
    /// Called with what happens, if a trace is requested.
    let trace: ((String) -> Void)?
    private(set) var counts = Counts()

    struct Counts {
        var histories = 0, steps = 0, versions = 0, merges = 0, settled = 0, faults = 0, rounds = 0, worst = 0
        mutating func add(_ other: Counts) {
            histories += other.histories; steps += other.steps; versions += other.versions; merges += other.merges
            settled += other.settled; faults += other.faults; rounds += other.rounds; worst = max(worst, other.worst)
        }
    }

    init(_ plan: Plan, defect: Defect?, trace: ((String) -> Void)? = nil) throws {
        self.plan = plan; self.defect = defect; self.trace = trace
        let needsDirectory = plan.areFoldersReal || plan.replicas.contains { $0.medium != .simulated }
        directory = needsDirectory ? TemporaryDirectory() : nil
        let base = directory?.path ?? ""
        folders = (0..<plan.folderCount).map { _ in SimulatedFolder() }
        folderPaths = plan.areFoldersReal ? (0..<plan.folderCount).map { "\(base)/folder\($0)" } : []
        for (i, replica) in plan.replicas.enumerated() { try addReplica(replica, plan.attachments[i % plan.attachments.count]) }
    }

    func add(_ more: Counts) { counts.add(more) }
    func say(_ text: @autoclosure () -> String) { if let trace { trace(text()) } }

    func addReplica(_ replica: Plan.ReplicaPlan, _ attachments: [Int]) throws {
        let number = replicas.count
        replicas.append(
            try Replica(
                number, replica, attachments: attachments, folders: folders, folderPaths: folderPaths,
                path: (directory?.path ?? "") + "/store\(number)", checksIDs: defect != .ids))
        let arbiter = "\(replica.arbiter.kind)\(replica.arbiter.isWrapped ? " as a callback" : "")"
        let habits =
            "\(replica.arbiter.stamp == nil ? "" : ", stamping")\(replica.metadata.isEmpty ? "" : ", merges carry metadata")"
            + (replica.skew == 0 ? "" : ", its clock is \(replica.skew) s off")
        say("store \(number): \(replica.medium), \(arbiter)\(habits), folders \(attachments)")
    }

    func run() throws -> Counts {
        counts.histories = 1
        if plan.start == .shared, let first = replicas.first {
            prepare(first, Step(kind: .save, replica: 0, seed: plan.seed, time: 0))
            let root = try save(first, on: nil, ["k0", "k1"].map { .insert(try ValueID($0), data: Array("root".utf8)) }, Metadata())
            try first.go(to: model[root].version.id)
            for other in replicas.dropFirst() {
                try give(model.versions.indices.map { $0 }, to: other)
                try other.go(to: model[root].version.id)
            }
        }
        for step in plan.steps {
            counts.steps += 1
            let replica = replicas[step.replica % replicas.count]
            prepare(replica, step)
            if plan.isAttacked { try attack(step) }
            do { try perform(step, replica) } catch let error as StoreError {
                throw Failure("error \(error.code.name)", "store \(replica.number), \(step.kind): \(error.message)")
            }
        }
        for replica in replicas {
            for view in replica.views.values { view.weather = .calm }
            replica.environment.now = Plan.beginning + 1e6
        }
        if plan.isAttacked { try cleanUp() }
        try settle()
        for replica in replicas {
            try checkAll(replica)
            for view in replica.views.values { counts.faults += view.faults }
            try replica.close()
        }
        return counts
    }

    /// Sets the random numbers and the time of a step.
    private func prepare(_ replica: Replica, _ step: Step) {
        for (folder, view) in replica.views.sorted(by: { $0.key < $1.key }) {
            view.weather = plan.weather
            view.swallows = defect == .transport
            view.random = SeededRandom(seed: step.seed ^ UInt64(folder + 1) << 32)
        }
        replica.environment.now = Plan.beginning + step.time
        replica.environment.ids = SeededRandom(seed: ~step.seed)
    }

    // MARK: What happens

    private func perform(_ step: Step, _ replica: Replica) throws {
        var random = SeededRandom(seed: step.seed)
        func chance(_ n: Int) -> Bool { Int.random(in: 0..<n, using: &random) == 0 }
        func anyKnown() -> Int? { replica.known.numbers.randomElement(using: &random) }
        switch step.kind {
        case .save:
            let base = replica.current
            let made = try save(
                replica, on: base, changes(replica, &random), chance(6) ? try Metadata([(Array("note".utf8), [1, 2])]) : Metadata(),
                isAgain: chance(10), asApp: true)
            try replica.go(to: model[made].version.id)
        case .saveElsewhere:
            guard let base = anyKnown() else { return }
            var metadata = Metadata()
            if plan.usesBranches, !chance(3) { metadata.branch = "b\(Int.random(in: 0..<2, using: &random))" }
            let made = try save(replica, on: chance(12) ? nil : model[base].version.id, changes(replica, &random), metadata)
            if chance(2) { try replica.go(to: model[made].version.id) }
        case .merge: try merge(replica)
        case .mergeTwo:
            guard let a = anyKnown(), let b = anyKnown() else { return }
            try mergeTwo(replica, a, b, relation: chance(6) ? .unrelated : .any)
        case .revert:
            guard let undone = anyKnown(), let head = replica.current, let base = model.numbers[head], replica.known.contains(undone) else {
                return
            }
            try revert(replica, undone, base)
        case .retrieve, .send:
            guard let folder = replica.attachments.randomElement(using: &random) else { return }
            let stopsAt = plan.weather.failure > 0 && chance(8) ? Int.random(in: 0..<10, using: &random) : nil
            try exchange(replica, folder, sends: step.kind == .send, stopsAt: stopsAt)
        case .give:
            let other = replicas[Int.random(in: replicas.indices, using: &random)]
            let missing = other.known.subtracting(replica.known).numbers.shuffled(using: &random)
            try give(missing.filter { _ in !chance(5) }, to: replica)
        case .damage:
            if folderPaths.isEmpty {
                if let what = folders[Int.random(in: folders.indices, using: &random)].damage(&random) {
                    counts.faults += 1; say("damage: \(what)")
                }
            } else {
                let folder = Int.random(in: folderPaths.indices, using: &random)
                guard let damage = RealFolder.damage(folderPaths[folder], &random) else { return }
                counts.faults += 1
                if damage.loses { foldersWithLosses.insert(folder) }
                say("damage: \(damage.what)")
            }
        case .restart:
            let vanishes = chance(2), withoutCaches = chance(2)
            say("store \(replica.number) \(vanishes ? "is killed" : "is closed") and opened again\(withoutCaches ? " without caches" : "")")
            counts.faults += 1
            try replica.restart(vanishing: vanishes, withoutCaches: withoutCaches, defect: defect)
            try checkCurrent(replica, isKept: !(withoutCaches && replica.plan.medium != .sqlite))
            try checkAll(replica)
        case .compact:
            say("store \(replica.number) is compacted")
            _ = try replica.store.compact()
            try checkAll(replica)
        case .putSnapshot: try putSnapshot(replica, folder: replica.attachments.randomElement(using: &random) ?? 0)
        case .join: try join(like: replica, fromSnapshot: chance(2), random.next())
        case .skew:
            replica.environment.skew = Plan.skew(&random)
            say("the clock of store \(replica.number) is \(replica.environment.skew) s off")
        case .otherProcess:
            let other = try replica.another()
            let made = try save(replica, on: replica.current, changes(replica, &random), Metadata(), through: other)
            try other.close()
            guard try replica.store.version(model[made].version.id) != nil else {
                throw Failure("not seen", "a version of another process: V\(made)")
            }
        case .move:
            // A coordinator is at the empty root only before the first save.
            guard let to = anyKnown(), replica.coordinator == nil || model[to].version.id != EmptyRoot.id else { return }
            try replica.go(to: model[to].version.id)
            say("store \(replica.number) goes to V\(to)")
        }
    }

    private func changes(_ replica: Replica, _ random: inout SeededRandom) throws -> [Value.Change] {
        let keys = (0..<plan.keyCount).map { $0 == 2 ? "k]}" : "k\($0)" }.shuffled(using: &random)
        return try keys.prefix(Int.random(in: 0..<8, using: &random) == 0 ? 0 : Int.random(in: 1...3, using: &random)).map { key in
            let id = try ValueID(key)
            var data = Array("\(Int.random(in: 0..<4, using: &random))".utf8)
            if plan.hasLargeValues, Int.random(in: 0..<6, using: &random) == 0 {
                data = [UInt8](repeating: data[0], count: [5_000, 70_000, 1_200_000][Int.random(in: 0..<3, using: &random)])
            } else if Int.random(in: 0..<6, using: &random) == 0 {
                data = Array(
                    "\(data[0]): \"]}\" and so on, so that it is longer than sixty-four bytes, at which some stores begin to make blobs"
                        .utf8)
            }
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1: return .remove(id)
            case 2:
                // The bytes of any version that stored the id, whether it is an ancestor or not.
                let having = replica.known.numbers.filter { model[$0].stored(id) != nil }
                if let from = having.randomElement(using: &random) { return .preserve(.init(id: id, version: model[from].version.id)) }
                return .update(id, data: data)
            case 3...5: return .insert(id, data: data)
            default: return .update(id, data: data)
            }
        }
    }

    private func putSnapshot(_ replica: Replica, folder: Int) throws {
        guard let exchange = replica.exchanges[folder], !model.heads(of: replica.known).isEmpty else { return }
        do {
            _ = try Snapshots(store: replica.store, transport: exchange.transport).put()
            say("store \(replica.number) puts a snapshot into folder \(folder)")
        } catch let error as StoreError where error.code == .transport {
            say("store \(replica.number) fails to put a snapshot")
        } catch let error as StoreError where error.code == .notFound && foldersWithLosses.contains(folder) {
            say("store \(replica.number) refuses folder \(folder) for a snapshot")
        }
    }

    private func join(like model: Replica, fromSnapshot: Bool, _ seed: UInt64) throws {
        guard replicas.count < 12 else { return }
        try addReplica(model.plan, model.attachments)
        guard let new = replicas.last else { return }
        prepare(new, Step(kind: .join, replica: 0, seed: seed, time: model.environment.now - Plan.beginning))
        for folder in new.attachments where fromSnapshot {
            guard let exchange = new.exchanges[folder] else { continue }
            do {
                _ = try Snapshots(store: new.store, transport: exchange.transport).restore()
                say("store \(new.number) restores the snapshot of folder \(folder)")
                try takeIn(new, new.store.allVersionIDs())
                break
            } catch let error as StoreError where [.snapshotMissing, .snapshotDamaged, .transport].contains(error.code) {
                say("store \(new.number) cannot restore the snapshot of folder \(folder): \(error.code.name)")
                try checkHistory(new)
            }
        }
        if new.current == nil, let head = try new.store.mostRecentHead()?.id { try new.go(to: head) }
    }
}

extension Simulation {
    func counted(versions: Int = 0, merges: Int = 0, settled: Int = 0, faults: Int = 0, rounds: Int = 0) {
        var more = Counts()
        more.versions = versions; more.merges = merges; more.settled = settled; more.faults = faults; more.rounds = rounds;
        more.worst = rounds
        add(more)
    }
}
