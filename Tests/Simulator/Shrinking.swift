/// One run of a plan, whole or with steps and stores left out.
struct Trial {
    var seed: UInt64
    var realShare: Int
    /// Nil: all stores of the plan.
    var stores: Int?
    /// The numbers of the steps that are kept; nil: all steps.
    var steps: [Int]?
    var isCalm = false
    var defect: Defect?
    var finish: Plan.Finish?
    var rounds: Int?
    var staysOnBranches = false
    var isAttacked = false

    var plan: Plan {
        var plan = Plan(seed: seed, replicaCount: stores, realShare: realShare)
        if let steps { plan.steps = steps.filter(plan.steps.indices.contains).map { plan.steps[$0] } }
        if isCalm { plan.weather = .calm }
        if let finish, plan.folderCount == 1 {
            plan.finish = finish
            if finish == .fixed {
                for i in plan.replicas.indices where plan.replicas[i].skew == .greatestFiniteMagnitude { plan.replicas[i].skew = 0 }
            }
        }
        plan.rounds = rounds
        plan.staysOnBranches = staysOnBranches
        plan.isAttacked = isAttacked && !plan.areFoldersReal
        return plan
    }

    func run(trace: ((String) -> Void)? = nil) -> Result<Simulation.Counts, Failure> {
        do { return .success(try Simulation(plan, defect: defect, trace: trace).run()) } catch let failure as Failure {
            return .failure(failure)
        } catch {
            return .failure(Failure("error", "\(error)"))
        }
    }

    /// Arguments that repeat the run.
    var arguments: String {
        var text = "--replay \(seed) --real \(realShare)"
        if let stores { text += " --stores \(stores)" }
        if let steps { text += " --steps \(steps.isEmpty ? "none" : steps.map(String.init).joined(separator: ","))" }
        if isCalm { text += " --calm" }
        if let finish { text += " --finish \(finish)" }
        if let rounds { text += " --rounds \(rounds)" }
        if staysOnBranches { text += " --stay" }
        if isAttacked { text += " --attacked" }
        if let defect { text += " --defect \(defect.rawValue)" }
        return text
    }
}

extension Trial {
    /// Finds a shorter history that fails in the same way, with fewer steps, fewer stores and calm weather, until nothing more can be left
    /// out (delta debugging; Zeller, Hildebrandt 2002).
    func shrunk(_ kind: String) -> Trial {
        func fails(_ trial: Trial) -> Bool {
            guard case .failure(let failure) = trial.run() else { return false }
            return failure.kind == kind
        }
        var whole = self
        whole.steps = whole.steps ?? Array(whole.plan.steps.indices)
        whole.stores = whole.stores ?? whole.plan.replicas.count
        // The number of stores decides which store a step applies to. So the shortest history with few stores may be longer than the
        // shortest with many.
        let tries = [whole.withFewerStores(fails), whole].map { start in
            var best = start
            while true {
                let before = best.size
                var calm = best
                calm.isCalm = true
                if !best.isCalm, fails(calm) { best = calm }
                best = best.withFewerSteps(fails).withoutPairs(fails).withFewerStores(fails)
                if best.size == before { return best }
            }
        }
        return tries.min { $0.size < $1.size } ?? whole
    }

    private func withFewerStores(_ fails: (Trial) -> Bool) -> Trial {
        var best = self
        while let stores = best.stores, stores > 1 {
            var trial = best
            trial.stores = stores - 1
            guard fails(trial) else { break }
            best = trial
        }
        return best
    }

    /// Leaves out steps in pairs, since some steps can only be left out together.
    private func withoutPairs(_ fails: (Trial) -> Bool) -> Trial {
        guard let steps, steps.count <= 16 else { return self }
        for i in steps.indices {
            for j in steps.indices.dropFirst(i + 1) {
                var trial = self
                trial.steps = steps.indices.filter { $0 != i && $0 != j }.map { steps[$0] }
                if fails(trial) { return trial.withoutPairs(fails) }
            }
        }
        return self
    }

    private var size: Int { (steps?.count ?? 0) + (stores ?? 0) + (isCalm ? 0 : 1) }

    private func withFewerSteps(_ fails: (Trial) -> Bool) -> Trial {
        var best = self, pieces = 2
        while let steps = best.steps, !steps.isEmpty {
            let length = max(1, (steps.count + pieces - 1) / pieces)
            var shorter: Trial?
            for start in stride(from: 0, to: steps.count, by: length) {
                var trial = best
                trial.steps = Array(steps[..<start] + steps[min(start + length, steps.count)...])
                if fails(trial) { shorter = trial; break }
            }
            if let shorter {
                best = shorter
                pieces = max(2, pieces - 1)
            } else if length == 1 {
                break
            } else {
                pieces = min(steps.count, pieces * 2)
            }
        }
        return best
    }
}
