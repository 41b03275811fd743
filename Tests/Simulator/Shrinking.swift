/// One run of a plan, whole or with steps and stores left out.
struct Trial {
    var seed: UInt64
    var realShare: Int
    /// Nil: all of the plan's.
    var stores: Int?
    /// Numbers of the steps that are kept; nil: all.
    var steps: [Int]?
    var isCalm = false
    var defect: Defect?
    var finish: Plan.Finish?
    var rounds: Int?
    var staysOnBranches = false

    var plan: Plan {
        var plan = Plan(seed: seed, replicaCount: stores, realShare: realShare)
        if let steps { plan.steps = steps.filter(plan.steps.indices.contains).map { plan.steps[$0] } }
        if isCalm { plan.weather = .calm }
        if let finish, plan.folderCount == 1 { plan.finish = finish }
        plan.rounds = rounds
        plan.staysOnBranches = staysOnBranches
        return plan
    }

    func run(trace: ((String) -> Void)? = nil) -> Result<Simulation.Counts, Failure> {
        do { return .success(try Simulation(plan, defect: defect, trace: trace).run()) } catch let failure as Failure {
            return .failure(failure)
        } catch {
            return .failure(Failure("error", "\(error)"))
        }
    }

    /// Arguments that do the same again.
    var arguments: String {
        var text = "--replay \(seed) --real \(realShare)"
        if let stores { text += " --stores \(stores)" }
        if let steps { text += " --steps \(steps.isEmpty ? "none" : steps.map(String.init).joined(separator: ","))" }
        if isCalm { text += " --calm" }
        if let finish { text += " --finish \(finish)" }
        if let rounds { text += " --rounds \(rounds)" }
        if staysOnBranches { text += " --stay" }
        if let defect { text += " --defect \(defect.rawValue)" }
        return text
    }
}

extension Trial {
    /// A shorter history that fails in the same way: fewer steps, fewer stores, calm weather, as long as anything can go
    /// (delta debugging; Zeller, Hildebrandt 2002).
    func shrunk(_ kind: String) -> Trial {
        func fails(_ trial: Trial) -> Bool {
            guard case .failure(let failure) = trial.run() else { return false }
            return failure.kind == kind
        }
        var best = self
        best.steps = best.steps ?? Array(best.plan.steps.indices)
        best.stores = best.stores ?? best.plan.replicas.count
        while true {
            let before = best
            if !best.isCalm {
                var trial = best
                trial.isCalm = true
                if fails(trial) { best = trial }
            }
            while let stores = best.stores, stores > 1 {
                var trial = best
                trial.stores = stores - 1
                guard fails(trial) else { break }
                best = trial
            }
            best = best.withFewerSteps(fails)
            if best.size == before.size { return best }
        }
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
