import LLVS
import LLVSTestSupport

/// Comparing a store with the model.
extension Simulation {
    /// Compares a version, its changes and its state.
    func checkVersion(_ replica: Replica, _ number: Int) throws {
        let store = replica.store, expected = model[number], id = expected.version.id
        guard let version = try store.version(id) else { throw Failure("version lost", "V\(number) in store \(replica.number)") }
        if version != expected.version {
            throw Failure("wrong version", "V\(number) in store \(replica.number): \(version), not \(expected.version)")
        }
        let changes = try store.changes(madeIn: id)
        if changes != expected.changes {
            throw Failure(
                "wrong changes",
                "V\(number) in store \(replica.number): \(changes.map(model.describe)), not \(expected.changes.map(model.describe))")
        }
        try checkState(replica, number)
    }

    func checkState(_ replica: Replica, _ number: Int) throws {
        let expected = model[number].state
        let values = try replica.store.values(at: model[number].version.id, limit: 1_000)
        var state: [ValueID: Held] = [:]
        for value in values { state[value.id] = Held(stored: value.storedVersion, data: value.data) }
        if state != expected || values.count != expected.count || !zip(values, values.dropFirst()).allSatisfy({ $0.id < $1.id }) {
            throw Failure("wrong state", "V\(number) in store \(replica.number): \(model.describe(state)), not \(model.describe(expected))")
        }
    }

    /// Checks that the store has exactly the versions that it must have, and the right heads.
    func checkHistory(_ replica: Replica) throws {
        // The empty root may have arrived alone and is not counted.
        let ids = try replica.store.allVersionIDs().filter { $0 != EmptyRoot.id }
        let there = VersionSet(ids.compactMap { model.numbers[$0] })
        let known = VersionSet(replica.known.numbers.filter { model[$0].version.id != EmptyRoot.id })
        if there != known || ids.count != known.numbers.count {
            let lost = known.subtracting(there).numbers, new = there.subtracting(known).numbers
            throw Failure(
                lost.isEmpty ? "unexpected version" : "version lost",
                "store \(replica.number): lost \(lost), unexpected \(new) of \(ids.count)")
        }
        let heads = try replica.store.headIDs(), expected = model.heads(of: replica.known).map { model[$0].version.id }
        if heads != expected {
            throw Failure("wrong heads", "store \(replica.number): \(heads.map { model.name($0) }), not \(expected.map { model.name($0) })")
        }
    }

    /// Checks the current version of a coordinator after it was opened again.
    func checkCurrent(_ replica: Replica, isKept: Bool) throws {
        guard replica.coordinator != nil else { return }
        let start = (model.unbranchedHeads(of: replica.known).first ?? model.heads(of: replica.known).first).map { model[$0].version.id }
        // A coordinator that began without a note writes none until it moves.
        var expected = [isKept && replica.current != nil ? replica.current : start]
        if replica.current == replica.unnoted { expected.append(start) }
        guard expected.contains(replica.coordinated) else {
            throw Failure(
                "wrong current version", "store \(replica.number): \(model.name(replica.coordinated)), not \(model.name(expected[0]))")
        }
        replica.current = replica.coordinated
        if !isKept || replica.coordinated == start { replica.unnoted = start }
    }

    /// Compares everything that a store can return.
    func checkAll(_ replica: Replica) throws {
        _ = try replica.store.reloadHistory()
        try checkHistory(replica)
        for number in replica.known.numbers { try checkVersion(replica, number) }
        var random = SeededRandom(seed: plan.seed)
        for _ in 0..<4 {
            guard let a = replica.known.numbers.randomElement(using: &random), let b = replica.known.numbers.randomElement(using: &random)
            else { break }
            try checkPair(replica, a, b)
        }
        let report = try replica.store.verify()
        // Verifying also reads the record of the empty root, which may have arrived alone.
        let counted = UInt64(try replica.store.allVersionIDs().count)
        if !report.isWhole || report.pending != 0 || report.versions != counted {
            throw Failure("not whole", "store \(replica.number): \(report)")
        }
    }

    private func checkPair(_ replica: Replica, _ a: Int, _ b: Int) throws {
        let x = model[a], y = model[b], store = replica.store
        let bases = try store.mergeBases(x.version.id, y.version.id),
            expected = model.bestCommonAncestors([a], b).map { model[$0].version.id }
        if bases != expected {
            throw Failure("wrong bases", "V\(a), V\(b): \(bases.map { model.name($0) }), not \(expected.map { model.name($0) })")
        }
        var state = x.state
        for change in try store.differences(from: x.version.id, to: y.version.id) {
            if (change.kind == .insert) != (state[change.id] == nil) { throw Failure("wrong difference", "V\(a) to V\(b): \(change)") }
            state[change.id] = change.reference.flatMap { reference in
                model[reference.version]?.stored(change.id).map { Held(stored: reference.version, data: $0) }
            }
        }
        if state != y.state {
            throw Failure("wrong difference", "V\(a) to V\(b): \(model.describe(state)), not \(model.describe(y.state))")
        }
    }
}
