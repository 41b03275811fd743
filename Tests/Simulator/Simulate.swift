import LLVS
import LLVSTestSupport

/// Random histories of many stores, each from one number: docs/convergence.md.
@main
struct Simulate {
    static let usage = """
        simulate [--histories <number>] [--seconds <number>] [--seed <number>] [--threads <number>] [--defect <name>] [--real <n>]
            Runs histories with successive seeds, from the given one (0): the given number (1,000), or for the given time.
            One in <n> uses real files (12; 0: none). A history that fails is shortened as far as possible, and reported.
        simulate --replay <seed> [--stores <number>] [--steps <number>,...] [--calm] [--defect <name>] [--real <n>]
            Runs one history, or a part of it, and prints its events.
        Both accept --finish phases|turns|mixed|fixed, --rounds <number> (the most rounds in which a history must settle), and
            --stay (stores that are on a branch at the end stay there), to find the limits of the guarantee; and --attacked: an
            attacker who may write to the folders forges versions, publishes ids of others in other letters, cycles, and versions
            without changes.
        simulate --rules [--histories <number>] [--seconds <number>] [--seed <number>] [--threads <number>] [--replay <seed>]
            The same with stores that have rules (RulesHistory): counters, sets, lists, texts, reverts, and devices of which some
            merge by rules.
        simulate --self-test
            Plants defects (--defect: \(Defect.allCases.map(\.rawValue).joined(separator: ", "))),
            and fails unless each is found, and reported with few steps.
        """

    static func main() {
        // Hashes are the same in each run, so sets and dictionaries have the same order.
        if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
            setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
            execv("/proc/self/exe", CommandLine.unsafeArgv)
        }
        guard let options = Options(CommandLine.arguments.dropFirst()) else {
            print(usage)
            exit(2)
        }
        if options.isSelfTest { exit(SelfTest.run() ? 0 : 1) }
        if options.replays { exit(replay(options.trial, hasRules: options.hasRules) ? 0 : 1) }
        exit(runMany(options) ? 0 : 1)
    }

    struct Options {
        var histories = 1_000
        var seconds: Double?
        var threads = 2
        var replays = false
        var isSelfTest = false
        var hasRules = false
        var trial = Trial(seed: 0, realShare: 12)

        init?(_ arguments: ArraySlice<String>) {
            var rest = arguments
            func number() -> Int? { rest.popFirst().flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil } }
            while let option = rest.popFirst() {
                switch option {
                case "--histories": guard let n = number() else { return nil }; histories = n
                case "--seconds":
                    guard let n = rest.popFirst().flatMap({ Double($0) }), n > 0 else { return nil }
                    seconds = n
                    histories = .max
                case "--seed", "--replay":
                    guard let n = rest.popFirst().flatMap({ UInt64($0) }) else { return nil }
                    trial.seed = n
                    replays = option == "--replay"
                case "--threads": guard let n = number(), n > 0 else { return nil }; threads = n
                case "--real": guard let n = number() else { return nil }; trial.realShare = n
                case "--stores": guard let n = number(), n > 0 else { return nil }; trial.stores = n
                case "--steps":
                    guard let list = rest.popFirst() else { return nil }
                    trial.steps = list.split(separator: ",").compactMap { Int($0) }
                case "--finish":
                    guard let name = rest.popFirst(), let finish = Plan.Finish.allCases.first(where: { "\($0)" == name }) else {
                        return nil
                    }
                    trial.finish = finish
                case "--rounds": guard let n = number(), n > 0 else { return nil }; trial.rounds = n
                case "--stay": trial.staysOnBranches = true
                case "--attacked": trial.isAttacked = true
                case "--calm": trial.isCalm = true
                case "--defect": guard let d = rest.popFirst().flatMap(Defect.init) else { return nil }; trial.defect = d
                case "--self-test": isSelfTest = true
                case "--rules": hasRules = true
                default: return nil
                }
            }
        }
    }

    /// Prints the steps of one history. Returns whether it succeeded.
    static func replay(_ trial: Trial, hasRules: Bool = false) -> Bool {
        let trace: (String) -> Void = { print("  \($0)") }
        switch hasRules ? RulesHistory.run(seed: trial.seed, defect: trial.defect, trace: trace) : trial.run(trace: trace) {
        case .success: print("It went well."); return true
        case .failure(let failure): print("FAILED  \(failure.kind): \(failure.detail)"); return false
        }
    }

    private static func runMany(_ options: Options) -> Bool {
        let lock = Lock(), began = now()
        var next = 0, passed = 0, counts = Simulation.Counts(), failures: [(Trial, Failure)] = []
        Watch.begin(threads: options.threads)
        let errors = Parallel.run(threads: options.threads, times: 1) { thread, _ in
            while true {
                let taken = lock.withLock { () -> Int? in
                    let isOver = next >= options.histories || failures.count >= 3 || options.seconds.map { now() - began >= $0 } ?? false
                    if isOver { return nil }
                    next += 1
                    return next - 1
                }
                guard let taken else { return }
                var trial = options.trial
                trial.seed &+= UInt64(taken)
                Watch.note(thread, trial.seed)
                let result = options.hasRules ? RulesHistory.run(seed: trial.seed, defect: trial.defect) : trial.run()
                lock.withLock {
                    switch result {
                    case .success(let more): passed += 1; counts.add(more)
                    case .failure(let failure): failures.append((trial, failure))
                    }
                }
            }
        }
        for (trial, failure) in failures {
            if options.hasRules {
                print("FAILED  \(failure.kind): \(failure.detail)\nscripts/simulate --rules --replay \(trial.seed)")
            } else {
                tell(trial, failure)
            }
        }
        for error in errors { print("FAILED  \(error)") }
        print(
            "\(counts.histories) histories\(options.hasRules ? " with rules" : "") from seed \(options.trial.seed) on: "
                + "\(counts.steps) steps, \(counts.versions) versions, \(counts.merges) merges held against the model "
                + "(\(counts.settled) settled without asking), \(counts.faults) faults; "
                + "\(counts.rounds) rounds to settle, at most \(counts.worst)"
        )
        print("\(passed) passed, \(failures.count + errors.count) failed")
        return failures.isEmpty && errors.isEmpty
    }

    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Prints a failed history, as short as it can be made.
    private static func tell(_ trial: Trial, _ failure: Failure) {
        print("FAILED  seed \(trial.seed), \(failure.kind): \(failure.detail)")
        let short = trial.shrunk(failure.kind)
        print("The shortest part of it that fails like that, \(short.steps?.count ?? 0) steps: scripts/simulate \(short.arguments)")
        _ = replay(short)
    }
}

/// Prints which histories were running if the process dies.
enum Watch {
    nonisolated(unsafe) private static var seeds: UnsafeMutablePointer<UInt64>?
    nonisolated(unsafe) private static var count = 0

    static func begin(threads: Int) {
        seeds = .allocate(capacity: threads)
        seeds?.initialize(repeating: 0, count: threads)
        count = threads
        for number in [SIGILL, SIGTRAP, SIGSEGV, SIGABRT, SIGBUS] {
            signal(number) { number in
                Watch.write("FAILED  the process died (signal \(number)) in one of the histories with seeds ")
                for i in 0..<Watch.count { Watch.write("\(Watch.seeds?[i] ?? 0) ") }
                Watch.write("\n0 passed, 1 failed\n")
                _exit(1)
            }
        }
    }
    static func note(_ thread: Int, _ seed: UInt64) { seeds?[thread] = seed }
    private static func write(_ text: String) { var text = text; text.withUTF8 { _ = Glibc.write(1, $0.baseAddress, $0.count) } }
}

/// Checks that deliberate faults are noticed, and shortened to few steps.
enum SelfTest {
    /// The most steps that a shortened history may have for each defect.
    private static let most: [Defect: Int] = [.arbiter: 4, .transport: 3, .storage: 3, .ids: 4]

    static func run() -> Bool {
        var passed = 0, failed = 0
        func check(_ what: String, _ isGood: Bool) {
            print("\(isGood ? "ok     " : "FAILED ") \(what)")
            if isGood { passed += 1 } else { failed += 1 }
        }
        let inexact = (UInt64(0)..<300).first { seed in
            if case .failure(let failure) = RulesHistory.run(seed: seed, defect: .arbiter) { failure.kind != "not settled" } else { false }
        }
        check("a device that does not merge by rules: found by seed \(inexact.map { "\($0)" } ?? "none")", inexact != nil)
        for defect in Defect.allCases {
            var found: (Trial, Failure)?
            for seed in UInt64(0)..<300 {
                var trial = Trial(seed: seed, realShare: 0, defect: defect)
                trial.isAttacked = defect == .ids
                if case .failure(let failure) = trial.run() { found = (trial, failure); break }
            }
            check("\(defect): found by seed \(found?.0.seed.description ?? "none")", found != nil)
            guard let (trial, failure) = found else { continue }
            let short = trial.shrunk(failure.kind)
            print(
                "        \(short.steps?.count ?? 0) of \(trial.plan.steps.count) steps, \(short.stores ?? 0) of "
                    + "\(trial.plan.replicas.count) stores: \(short.arguments)"
            )
            check("\(defect): reported in few steps", short.steps?.count ?? .max <= most[defect] ?? 0)
            var again: [String] = []
            for _ in 0..<2 {
                var told = ""
                if case .failure(let failure) = short.run(trace: { told += $0 + "\n" }) { told += "\(failure.kind): \(failure.detail)" }
                again.append(told)
            }
            let tells = again[0].split(separator: "\n").contains { $0.hasPrefix("\(failure.kind): ") }
            check("\(defect): the same each time", again[0] == again[1] && tells)
            var whole = short
            whole.defect = nil
            if case .failure(let failure) = whole.run() {
                print("        \(failure)"); check("\(defect): nothing is wrong without it", false)
            } else {
                check("\(defect): nothing is wrong without it", true)
            }
        }
        print("\(passed) passed, \(failed) failed")
        return failed == 0
    }
}
