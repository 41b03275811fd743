import LLVS
import LLVSTestHelpers
import Testing

@Suite struct FaultPlanTests {
    private func store(_ plan: FaultPlan) throws -> Store {
        var options = Store.Options()
        options.storage = .custom(try FaultyStorage(MemoryStorage(), plan: plan))
        return try Store(path: "", options: options)
    }
    private func commit(_ store: Store, _ turn: Int) throws {
        try store.makeVersion(basedOn: nil, changes: [.insert(try ValueID("\(turn)"), data: [UInt8(turn & 255)])])
    }

    @Test func failsTheOneThatWasNamed() throws {
        let plan = FaultPlan()
        let store = try store(plan)
        plan.reset()
        plan.add(Fault(.fail, on: .append, code: .noSpace, first: 3, count: 2))
        let failed = (1...6).filter { turn in code { try commit(store, turn) } == .noSpace }
        #expect(failed == [3, 4] && plan.injected == 2 && plan.count(of: .append) == 6)
        #expect(plan.lastInjected == "append 4 of the store in memory: fail")
        plan.clear()
        try commit(store, 7)
        #expect(try store.heads().count == 5)
    }

    @Test func isTheSameByTheSeed() throws {
        func failures(_ seed: UInt64) throws -> [Int] {
            let plan = FaultPlan(seed: seed)
            let store = try store(plan)
            plan.add(Fault(.fail, on: .append, probability: 0.3))
            return (0..<200).filter { turn in code { try commit(store, turn) } != nil }
        }
        let first = try failures(1)
        #expect(try failures(1) == first && failures(2) != first)
        #expect((30...90).contains(first.count))
    }

    @Test func whatFailedIsNotThereUnlessOnlyTheAcknowledgementIsLost() throws {
        let plan = FaultPlan()
        let base = MemoryStorage()
        let storage = try FaultyStorage(base, plan: plan)
        plan.add(Fault(.fail, on: .append, count: 1))
        plan.add(Fault(.loseAcknowledgement, on: .append, first: 2, count: 1))
        for (record, expected) in [([1], .io), ([2], .unknownOutcome)] as [([UInt8], StoreError.Code)] {
            #expect(code { try StorageConformance.append(storage, [record]) } == expected)
        }
        var found: [[UInt8]] = []
        try base.verify(OperationControl(), found: { found.append(Array($0.prefix)) }, damage: { _ in })
        #expect(found == [[2]])
    }

    /// It is unknown whether the version was stored. If it is saved again, it must be the very same version, or one id would have two
    /// contents.
    @Test(arguments: [FaultKind.loseAcknowledgement, .fail]) func aVersionWhoseAppendHadAnUnknownOutcomeIsMadeAgainAsTheSame(
        kind: FaultKind
    ) throws {
        let plan = FaultPlan(), base = MemoryStorage()
        var options = Store.Options()
        options.storage = .custom(try FaultyStorage(base, plan: plan))
        let store = try Store(path: "", options: options)
        let id = try VersionID("mine"), a = try ValueID("a")
        plan.add(Fault(kind, on: .append, code: .unknownOutcome, count: 1))
        do {
            try store.makeVersion(basedOn: nil, changes: [.insert(a, data: [1])], id: id)
            Issue.record("it was acknowledged")
        } catch let error as StoreError { #expect(error.code == .unknownOutcome && error.versionID == "mine") }
        if kind == .fail {
            // The version is not in the store, but other contents under its id are refused, since it may have been stored.
            #expect(code { try store.makeVersion(basedOn: nil, changes: [.insert(a, data: [2])], id: id) } == .versionMismatch)
        }
        try store.makeVersion(basedOn: nil, changes: [.insert(a, data: [1])], id: id)
        var records: [[UInt8]] = []
        try base.verify(OperationControl(), found: { records.append(Array($0.prefix)) }, damage: { _ in })
        #expect(Set(records).count == 1 && records.count == (kind == .fail ? 1 : 2))
        #expect(try store.verify().isWhole && store.value(a, at: id)?.data == [1])
    }

    /// Merges and received versions are the same whenever they are added.
    @Test func aBatchWhoseAppendHadAnUnknownOutcomeIsAddedAgain() throws {
        let plan = FaultPlan(), source = try Store.inMemory(), target = try store(plan)
        let root = try source.makeVersion(basedOn: nil, changes: [insert("a", "1")]).id
        try source.makeVersion(basedOn: root, changes: [insert("b", "2")])
        let name = VersionID.random().description
        let there = MemoryTransport(name: name)
        _ = try Exchange(store: source, transport: there).send()
        plan.add(Fault(.loseAcknowledgement, on: .append, count: 1))
        #expect(code { _ = try Exchange(store: target, transport: MemoryTransport(name: name)).retrieve() } == .unknownOutcome)
        #expect(try Exchange(store: target, transport: MemoryTransport(name: name)).retrieve().problems.isEmpty)
        #expect(try target.hasSameVersions(as: source) && target.verify().isWhole)
    }
}
