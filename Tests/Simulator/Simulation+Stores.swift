import LLVS
import LLVSTestSupport

/// The operations of one store, and their expected results by the model.
extension Simulation {
    /// Makes a version. Returns its number.
    func save(
        _ replica: Replica, on base: VersionID?, _ changes: [Value.Change], _ metadata: Metadata, isAgain: Bool = false,
        asApp: Bool = false, through other: Store? = nil
    ) throws -> Int {
        let store = other ?? replica.store
        var predecessor = base ?? (plan.start == .emptyRoot || replica.coordinator != nil ? EmptyRoot.id : nil)
        let id: VersionID? = isAgain ? replica.environment.nextID() : nil
        let made: Version
        let savesAsApp = asApp && replica.coordinator != nil && !isAgain && !changes.isEmpty && replica.coordinated == base
        if savesAsApp, removesNothing(changes, metadata, at: base) {
            guard let coordinator = replica.coordinator, try coordinator.save(changes, metadata: metadata) == nil else {
                throw Failure("saved", "a removal without effect, by the coordinator of store \(replica.number)")
            }
            made = try store.makeVersion(basedOn: predecessor, changes: changes, metadata: metadata)
        } else if savesAsApp, let coordinator = replica.coordinator {
            let alike = headsLike(base, replica)
            defer {
                if alike.count > 1 { say("store \(replica.number) merges \(alike.map { "V\($0)" }), which are alike, to save on that") }
            }
            guard let saved = try coordinator.save(changes, metadata: metadata), coordinator.currentVersion == saved.id else {
                throw Failure("not saved", "by the coordinator of store \(replica.number)")
            }
            made = saved
            if alike.count > 1 {
                var merges = try newMerges(replica)
                let joined = try checkFold(replica, alike, &merges, [])
                predecessor = model[joined].version.id
            }
        } else {
            made = try store.makeVersion(basedOn: predecessor, changes: changes, metadata: metadata, id: id)
        }
        if predecessor == EmptyRoot.id, model[EmptyRoot.id] == nil {
            _ = try model.add(EmptyRoot.version, [], state: [:])
        }
        if let root = model.numbers[EmptyRoot.id], predecessor == EmptyRoot.id { replica.known.insert(root) }
        let before = predecessor.flatMap { model[$0] }
        var state = before?.state ?? [:]
        for change in changes {
            switch change {
            case .insert(let id, let data), .update(let id, let data): state[id] = Held(stored: made.id, data: data)
            case .remove(let id), .preserveRemoval(let id): state[id] = nil
            case .preserve(let reference):
                guard let from = model.numbers[reference.version], let data = model[from].stored(reference.id) else { continue }
                // A preserve of the value that prevails changes nothing.
                if state[reference.id]?.stored == reference.version { continue }
                state[reference.id] = Held(stored: made.id, data: data)
            }
        }
        // No timestamp is used twice, unless there are none left.
        let expected = max(replica.environment.reading, before.map { after($0.version.timestamp) } ?? -.infinity)
        let isNewTime =
            other != nil || replica.environment.given.insert(made.timestamp).inserted || made.timestamp >= .greatestFiniteMagnitude
        // If the timestamp had to be ahead of the clock, the version records the clock's reading.
        var ownMetadata = made.metadata
        let clock = ownMetadata["__llvs_clock"]
        ownMetadata["__llvs_clock"] = nil
        let reading = replica.environment.reading, saysClock = made.timestamp > reading + 60 && reading >= 788_918_400
        let isClockRight = (clock != nil) == saysClock && clock.map { Double(String(decoding: $0, as: UTF8.self)) == reading } ?? true
        if made.predecessors != (predecessor.map { [$0] } ?? []) || ownMetadata != metadata || made.timestamp < expected || !isNewTime
            || !isClockRight
        {
            throw Failure("wrong version", "store \(replica.number): \(made), its time should be \(expected)")
        }
        let number = try model.add(made, store.changes(madeIn: made.id), state: state)
        replica.known.insert(number)
        counted(versions: 1)
        say(
            "store \(replica.number) saves V\(number) on \(model.name(predecessor))\(metadata.branch.map { " on branch \($0)" } ?? "") at "
                + "\(made.timestamp): "
                + "\(model[number].changes.map(model.describe).joined(separator: ", ")) -> \(model.describe(state))")
        if isAgain, try store.makeVersion(basedOn: predecessor, changes: changes, metadata: metadata, id: id) != made {
            throw Failure("made again", "making V\(number) again made another")
        }
        try checkVersion(replica, number)
        return number
    }

    /// Whether a save only removes absent values. In that case a coordinator makes no version.
    private func removesNothing(_ changes: [Value.Change], _ metadata: Metadata, at base: VersionID?) -> Bool {
        let state = base.flatMap { model[$0] }?.state ?? [:]
        return metadata.isEmpty && changes.allSatisfy { if case .remove(let id) = $0 { state[id] == nil } else { false } }
    }

    /// Heads without a branch whose state equals that of the base of a coordinator's save, newest first.
    private func headsLike(_ base: VersionID?, _ replica: Replica) -> [Int] {
        let heads = model.unbranchedHeads(of: replica.known)
        guard let at = base.flatMap({ model.numbers[$0] }), heads.contains(at) else { return [] }
        return heads.filter { model.haveEqualStates(at, $0) }
    }

    /// The timestamp of a version that is made on top.
    func after(_ time: Double) -> Double {
        let next = time + 1e-6 > time ? time + 1e-6 : time.nextUp
        return next.isFinite ? next : time
    }

    // MARK: Merging

    /// Merges as an app does: all heads into the current version.
    func merge(_ replica: Replica) throws {
        let store = replica.store
        if replica.current == nil {
            replica.current = mainHeads(replica).first.map { model[$0].version.id }
        }
        guard let current = replica.current, let into = model.numbers[current] else { return }
        var folded = mainHeads(replica).filter { !model.isAncestor($0, of: into) }
        if !folded.contains(into), !folded.contains(where: { model.isAncestor(into, of: $0) }) { folded.append(into) }
        folded = model.newestFirst(folded)
        let arbiter = replica.plan.arbiter.arbiter(defect), selection = plan.selectsAll ? HeadSelection.all : .unbranched
        let merged: Version?
        if let coordinator = replica.coordinator {
            let before = replica.coordinated
            let changed = try coordinator.merge(selection: selection, arbiter: arbiter, metadata: replica.plan.metadata)
            if changed != (before != replica.coordinated) {
                throw Failure("wrong merge", "the coordinator of store \(replica.number) says \(changed)")
            }
            merged = coordinator.currentVersion == current ? nil : try store.version(coordinator.currentVersion)
        } else {
            merged = try store.mergeHeads(into: current, arbiter: arbiter, selection: selection, metadata: replica.plan.metadata)
        }
        say("store \(replica.number) merges \(folded.map { "V\($0)" }.joined(separator: ", ")) into V\(into)")
        let groups = model.groupedByState(folded)
        guard groups.count > 1 else {
            // All heads have equal states: nothing is made, and the newest one becomes the current version.
            let expected = folded.first == into ? nil : folded.first
            guard merged?.id == expected.map({ model[$0].version.id }) else {
                throw Failure("wrong merge", "store \(replica.number) got \(model.name(merged?.id)), not V\(expected ?? into)")
            }
            if let merged { replica.current = merged.id }
            return try checkHistory(replica)
        }
        guard let merged else { throw Failure("wrong merge", "store \(replica.number) merged nothing") }
        var made = try newMerges(replica)
        var hasTarget = Set(folded.filter { model[$0].ancestors.contains(into) })
        var joined: [Int] = []
        for group in groups {
            let head = try checkFold(replica, group, &made, hasTarget)
            if !hasTarget.isDisjoint(with: group) { hasTarget.insert(head) }
            joined.append(head)
        }
        let result = try checkFold(replica, model.newestFirst(joined), &made, hasTarget)
        guard merged.id == model[result].version.id else {
            throw Failure("wrong merge", "store \(replica.number) got \(model.name(merged.id)), not V\(result)")
        }
        replica.current = merged.id
        try checkHistory(replica)
    }

    /// Merges in a store that were not compared yet.
    private func newMerges(_ replica: Replica) throws -> [Version] {
        try replica.store.allVersionIDs().compactMap { id in
            if let known = model.numbers[id], replica.known.contains(known) { return nil }
            guard let version = try replica.store.version(id), version.predecessors.count == 2 else { return nil }
            return version
        }
    }

    /// Compares the steps of a fold with the model. Returns the number of the result.
    private func checkFold(_ replica: Replica, _ folded: [Int], _ made: inout [Version], _ holders: Set<Int>) throws -> Int {
        var result = folded[0]
        var hasTarget = holders.contains(result)
        for next in folded.dropFirst() {
            let pair = model.newestFirst([result, next]).map { model[$0].version.id }
            guard let i = made.firstIndex(where: { $0.predecessors == pair }) else {
                throw Failure("wrong merge", "store \(replica.number) made no merge of V\(result) and V\(next)")
            }
            let nextOnly = !hasTarget && holders.contains(next)
            hasTarget = hasTarget || nextOnly
            result = try checkMerge(replica, made.remove(at: i), nextOnly ? next : result, nextOnly ? result : next)
        }
        return result
    }

    func mergeTwo(_ replica: Replica, _ a: Int, _ b: Int, relation: MergeRelation) throws {
        let merged = try replica.store.merge(
            model[a].version.id, with: model[b].version.id, arbiter: replica.plan.arbiter.arbiter(defect), metadata: replica.plan.metadata,
            relation: relation)
        say("store \(replica.number) merges V\(a) and V\(b)\(relation == .unrelated ? " as if unrelated" : "")")
        if let ahead = a == b || model.isAncestor(b, of: a) ? a : model.isAncestor(a, of: b) ? b : nil {
            guard merged.id == model[ahead].version.id else { throw Failure("wrong merge", "no fast-forward to V\(ahead)") }
            return
        }
        _ = try checkMerge(replica, merged, a, b, related: relation != .unrelated)
        try checkHistory(replica)
    }

    /// Compares a merge of a store with that of the model. Returns its number.
    private func checkMerge(_ replica: Replica, _ merged: Version, _ ours: Int, _ theirs: Int, related: Bool = true) throws -> Int {
        var outcome = model.merge(ours, theirs, replica.plan.arbiter, related: related)
        for id in outcome.own { outcome.state[id]?.stored = merged.id }
        let first = model[outcome.first].version, second = model[outcome.second].version
        let metadata = outcome.isSettled ? Metadata() : replica.plan.metadata
        guard merged.predecessors == [first.id, second.id], merged.metadata == metadata, merged.timestamp == after(first.timestamp) else {
            throw Failure("wrong merge", "\(merged) of \(model.name(first.id)) and \(model.name(second.id)), settled: \(outcome.isSettled)")
        }
        let changes = try replica.store.changes(madeIn: merged.id)
        if outcome.isSettled, changes.contains(where: { ![.preserve, .preserveRemoval].contains($0.kind) }) {
            throw Failure("wrong merge", "a settled merge says \(changes.map(model.describe))")
        }
        let number: Int
        if let known = model.numbers[merged.id] {
            number = known
            if model[known].state != outcome.state {
                throw Failure(
                    "wrong state", "V\(known) was \(model.describe(model[known].state)), and is \(model.describe(outcome.state)) here")
            }
        } else {
            do { number = try model.add(merged, changes, state: outcome.state) } catch let failure as Failure {
                throw Failure(failure.kind, "merge of \(model.name(first.id)) and \(model.name(second.id)): \(failure.detail)")
            }
            counted(versions: 1)
        }
        counted(merges: 1, settled: outcome.isSettled ? 1 : 0)
        replica.known.insert(number)
        say(
            "    V\(number) of \(model.name(first.id)) and \(model.name(second.id))\(outcome.isSettled ? ", without asking" : "") at "
                + "\(merged.timestamp) -> \(model.describe(model[number].state))"
        )
        try checkVersion(replica, number)
        return number
    }

    func revert(_ replica: Replica, _ undone: Int, _ head: Int) throws {
        let reverted = try replica.store.revert(model[undone].version.id, at: model[head].version.id)
        let was = model[undone].predecessors.first.map { model[$0].state } ?? [:], became = model[undone].state
        var state = model[head].state, taken: [ValueID] = [], superseded: [ValueID] = []
        for id in Set(was.keys).union(became.keys) where was[id]?.stored != became[id]?.stored {
            // The same bytes were stored again, so there is nothing to undo.
            guard was[id]?.data != became[id]?.data else { continue }
            if state[id]?.data == became[id]?.data {
                taken.append(id)
            } else if state[id]?.data != was[id]?.data {
                superseded.append(id)
            }
        }
        if reverted.undone != taken.sorted() || reverted.superseded != superseded.sorted() || (reverted.version == nil) != taken.isEmpty {
            throw Failure("wrong revert", "V\(undone) at V\(head): \(reverted), not \(taken.sorted()) and \(superseded.sorted())")
        }
        guard let made = reverted.version else {
            say("store \(replica.number) finds nothing of V\(undone) to revert at V\(head)")
            return
        }
        let changes = try replica.store.changes(madeIn: made.id)
        for id in taken {
            // Accept the value from before, or the value that lost against the undone one when another line was merged.
            let found = changes.lazy.compactMap { change -> [UInt8]? in
                switch change {
                case .insert(id, let data), .update(id, let data): data
                default: nil
                }
            }.first
            let isOther = found != nil && othersMerged(since: undone, upTo: head).contains { $0[id]?.data == found }
            state[id] = (isOther ? found : was[id]?.data).map { Held(stored: made.id, data: $0) }
        }
        let number = try model.add(made, changes, state: state)
        counted(versions: 1)
        replica.known.insert(number)
        say("store \(replica.number) reverts V\(undone) at V\(head): V\(number) -> \(model.describe(state))")
        try checkVersion(replica, number)
    }

    /// The states of lines without a version at the time they were merged with the line that has it.
    private func othersMerged(since version: Int, upTo head: Int) -> [[ValueID: Held]] {
        var line: Set<Int> = [version], found: [[ValueID: Held]] = []
        for number in version...max(version, head) where number > version {
            let sides = model[number].predecessors
            if sides.contains(where: line.contains) { line.insert(number) }
            if sides.count == 2, let other = sides.first(where: { !line.contains($0) }), line.contains(number) {
                found.append(model[other].state)
            }
        }
        return found
    }

    // MARK: Exchanging

    /// - Parameters: - stopsAt: the number of progress calls after which the exchange is cancelled. - joins: whether the store was just
    ///   told to join the contents of the folder.
    @discardableResult
    func exchange(_ replica: Replica, _ folder: Int, sends: Bool, stopsAt: Int? = nil, joins: Bool = false) throws -> ExchangeResult {
        guard let exchange = replica.exchanges[folder] else { return ExchangeResult() }
        let told = Told()
        var control = OperationControl()
        if let stopsAt {
            control.progress = { _ in
                told.count += 1; return told.count <= stopsAt
            }
        }
        do {
            let result = try sends ? exchange.send(control: control) : exchange.retrieve(control: control)
            let problems = result.problems.map { problem in
                "\((try? VersionID(problem.name)).map { model.name($0) } ?? problem.name): \(problem.error.code.name)"
            }
            say(
                "store \(replica.number) \(sends ? "sends" : "retrieves") \(result.versions.map { model.name($0) }.joined(separator: " "))"
                    + (problems.isEmpty ? "" : ", problems: \(problems.joined(separator: ", "))"))
            for problem in result.problems
            where [.versionMismatch, .invalidReference, .internal, .duplicateID].contains(problem.error.code) {
                throw Failure("problem \(problem.error.code.name)", problem.error.message)
            }
            if !sends { try takeIn(replica, result.versions) }
            try checkHistory(replica)
            return result
        } catch let error as StoreError where [.transport, .cancelled].contains(error.code) {
            say("store \(replica.number) fails to \(sends ? "send" : "retrieve"): \(error.code.name)")
            counted(faults: 1)
            // Versions that were added as a whole before that remain.
            try takeIn(replica, replica.store.allVersionIDs())
            return ExchangeResult()
        } catch let error as StoreError where error.code == .notFound && foldersWithLosses.contains(folder) && !joins {
            say("store \(replica.number) refuses folder \(folder), and is made to join it")
            exchange.restorationState = Array("new".utf8)
            return try self.exchange(replica, folder, sends: sends, stopsAt: stopsAt, joins: true)
        }
    }
    private final class Told: @unchecked Sendable { var count = 0 }

    /// Records versions that a store reports as received.
    func takeIn(_ replica: Replica, _ ids: [VersionID]) throws {
        let before = replica.known
        for id in ids {
            guard let number = model.numbers[id] else { throw Failure("unknown version", "store \(replica.number) got \(id)") }
            replica.known.insert(number)
            // The empty root arrives together with a version that builds on it, and is not reported.
            if let root = model.numbers[EmptyRoot.id], model[number].ancestors.contains(root) { replica.known.insert(root) }
        }
        for number in replica.known.subtracting(before).numbers {
            guard model[number].ancestors.isSubset(of: replica.known) else {
                throw Failure("ancestry missing", "store \(replica.number) got V\(number)")
            }
            try checkVersion(replica, number)
        }
    }

    /// Hands over versions in the order of the list.
    func give(_ numbers: [Int], to replica: Replica) throws {
        let expected = VersionSet(
            numbers.filter { number in
                // Every store knows the contents of the empty root.
                let missing = VersionSet(
                    model[number].ancestors.subtracting(replica.known).numbers.filter { model[$0].version.id != EmptyRoot.id })
                return missing.isSubset(of: VersionSet(numbers))
            })
        let additions = try replica.store.add(
            numbers.map { .init(version: model[$0].version, changes: model[$0].changes.shuffledSteadily($0)) })
        say("store \(replica.number) is given \(numbers.map { "V\($0)" }.joined(separator: " "))")
        for (number, addition) in zip(numbers, additions) {
            switch addition {
            case .added where expected.contains(number) && !replica.known.contains(number): break
            // The empty root may have arrived alone before, which is not counted.
            case .alreadyPresent where replica.known.contains(number) || model[number].version.id == EmptyRoot.id: break
            case .problem(let error) where error.code == .missingPredecessor && !expected.contains(number): break
            default: throw Failure("wrong addition", "store \(replica.number), V\(number): \(addition)")
            }
        }
        try takeIn(replica, expected.numbers.map { model[$0].version.id })
        try checkHistory(replica)
    }
}

extension Array {
    /// A different order, which is the same each time.
    fileprivate func shuffledSteadily(_ seed: Int) -> [Element] {
        var random = SeededRandom(seed: UInt64(seed))
        return shuffled(using: &random)
    }
}
