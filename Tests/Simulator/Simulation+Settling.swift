import LLVS
import LLVSTestSupport

/// The end of a history: no more saves, no more faults. Within few rounds all stores have one state, and no more versions are made.
extension Simulation {
    /// The number of rounds that docs/convergence.md promises.
    private var roundsAllowed: Int {
        if let rounds = plan.rounds { return rounds }
        return switch plan.finish {
        case .phases: settlesInOne ? 1 : 2
        case .turns: 2
        case .mixed: 3
        case .fixed: 10
        }
    }
    /// Stores that joined later have the settings of earlier ones.
    private var settlesInOne: Bool { plan.settlesInOne }

    func settle() throws {
        guard replicas.contains(where: { !$0.known.isEmpty }) else { return }
        goToMain()
        var random = SeededRandom(seed: plan.seed ^ 0x5E77_1E)
        say("the saves and the losses end: \(plan.finish)")
        let inTurn = replicas.shuffled(using: &random)
        var rounds = 0
        while true {
            rounds += 1
            guard rounds <= roundsAllowed else {
                throw Failure(
                    "not settled",
                    "after \(roundsAllowed) rounds (\(plan.finish)): "
                        + replicas.map {
                            "store \($0.number) is at \(model.name($0.current)) of \(model.heads(of: $0.known).map { "V\($0)" })"
                        }.joined(separator: "; "))
            }
            say("round \(rounds)")
            switch plan.finish {
            case .phases:
                try exchangeAll(&random)
                for replica in replicas.shuffled(using: &random) { try merge(replica) }
            case .turns:
                for replica in replicas.shuffled(using: &random) {
                    try retrieve(replica)
                    try merge(replica)
                    try send(replica)
                }
            case .fixed:
                for replica in inTurn {
                    try retrieve(replica)
                    try send(replica)
                    try merge(replica)
                }
            case .mixed:
                var turns = replicas.flatMap { [$0.number, $0.number, $0.number] }.shuffled(using: &random)
                var done: [Int: Int] = [:]
                while let number = turns.popLast() {
                    let replica = replicas[number]
                    switch done[number, default: 0] {
                    case 0: try retrieve(replica)
                    case 1: try merge(replica)
                    default: try send(replica)
                    }
                    done[number, default: 0] += 1
                }
            }
            if isSettled { break }
        }
        counted(rounds: rounds)
        try checkThatItStays(&random)
    }

    /// A store that is at a branch merges it into the rest, which is like a new change. So all stores leave their branches first.
    private func goToMain() {
        if plan.selectsAll || plan.staysOnBranches { return }
        let all = replicas.reduce(into: VersionSet()) { $0.formUnion($1.known) }
        let main = model.unbranchedHeads(of: all)
        for replica in replicas {
            guard let current = replica.current, let number = model.numbers[current],
                !main.contains(where: { model[$0].ancestors.contains(number) })
            else { continue }
            replica.leave()
        }
    }

    private func retrieve(_ replica: Replica) throws {
        for folder in replica.attachments { try expectNoProblems(exchange(replica, folder, sends: false), replica) }
    }
    private func send(_ replica: Replica) throws {
        for folder in replica.attachments { try expectNoProblems(exchange(replica, folder, sends: true), replica) }
    }

    /// All stores send, then all retrieve. With several folders this is repeated until everything has passed through all of them.
    private func exchangeAll(_ random: inout SeededRandom) throws {
        for _ in 0..<plan.folderCount {
            for replica in replicas.shuffled(using: &random) { try send(replica) }
            for replica in replicas.shuffled(using: &random) { try retrieve(replica) }
        }
        for replica in replicas where replica.known != replicas[0].known {
            throw Failure(
                "not exchanged",
                "store \(replica.number) lacks \(replicas[0].known.subtracting(replica.known).numbers), store 0 "
                    + "\(replica.known.subtracting(replicas[0].known).numbers)"
            )
        }
    }

    /// Until each store has had its turn, files that were damaged earlier may still cause problems.
    private func expectNoProblems(_ result: ExchangeResult, _ replica: Replica) throws {
        guard plan.finish == .phases else { return }
        if plan.folderCount == 1, let problem = unexpected(result.problems).first {
            throw Failure("problem \(problem.error.code.name)", "store \(replica.number): \(problem.error.message)")
        }
    }

    func mainHeads(_ replica: Replica) -> [Int] {
        plan.selectsAll ? model.heads(of: replica.known) : model.unbranchedHeads(of: replica.known)
    }

    private var isSettled: Bool {
        let heads = mainHeads(replicas[0])
        guard model.groupedByState(heads).count <= 1 else { return false }
        return replicas.allSatisfy { replica in
            replica.known == replicas[0].known && mainHeads(replica) == heads
                && (heads.isEmpty || replica.current == model[heads[0]].version.id)
        }
    }

    /// Checks that further exchanges and merges change nothing.
    private func checkThatItStays(_ random: inout SeededRandom) throws {
        let known = replicas[0].known
        for _ in 0..<2 {
            try exchangeAll(&random)
            for replica in replicas { try merge(replica) }
        }
        if !isSettled || replicas[0].known != known { throw Failure("unsettled again", "after it had settled") }
        for replica in replicas {
            for folder in replica.attachments {
                for sends in [true, false] {
                    let result = try exchange(replica, folder, sends: sends)
                    if !result.versions.isEmpty || !unexpected(result.problems).isEmpty {
                        throw Failure("never done", "store \(replica.number) still exchanges: \(result.versions), \(result.problems)")
                    }
                }
                guard let exchange = replica.exchanges[folder] else { continue }
                let result = try exchange.retrieve(verifyKnown: true)
                if !result.versions.isEmpty || !unexpected(result.problems).isEmpty {
                    throw Failure("wrong files", "in folder \(folder): \(result.problems)")
                }
            }
        }
    }
}
