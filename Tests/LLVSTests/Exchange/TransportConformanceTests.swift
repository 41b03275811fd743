import LLVS
import LLVSExchangeTesting
import LLVSTestHelpers
import Testing

/// All transports pass the conformance suite, and the suite finds faulty ones.
@Suite struct TransportConformanceTests {
    private static func memory(_ plan: FaultPlan? = nil) -> TransportConformance.Subject {
        let name = VersionID.random().description, keeper = MemoryTransport(name: name)
        return TransportConformance.Subject(tells: true) {
            // The area exists as long as the place does.
            _ = keeper
            let transport = MemoryTransport(name: name)
            return plan.map { FaultyTransport(transport, plan: $0) } ?? transport
        }
    }

    @Test func memory() throws { try TransportConformance.run { TransportConformanceTests.memory() } }

    @Test(arguments: [Durability.full, .normal]) func folder(durability: Durability) throws {
        try TransportConformance.run {
            let directory = TemporaryDirectory()
            return TransportConformance.Subject(tells: true) {
                var options = FolderTransport.Options()
                options.durability = durability
                return try FolderTransport(path: directory.path + "/shared", options: options)
            }
        }
    }

    /// A plan without rules changes nothing, but counts.
    @Test func wrapped() throws {
        let plan = FaultPlan()
        try TransportConformance.run { TransportConformanceTests.memory(plan) }
        #expect(plan.injected == 0 && plan.count(of: .send) > 100 && plan.count(of: .transport) == plan.count())
    }

    @Test(arguments: [
        (FaultKind.absent, FaultOperations.list, "what was sent is listed, and nothing else"),
        (.corrupt, .list, "what was sent is listed, and nothing else"),
        (.cut, .list, "many files are listed and fetched"),
        (.absent, .fetchVersions, "files come back byte for byte"),
        (.corrupt, .fetchVersions, "files come back byte for byte"),
        (.cut, .fetchChanges, "large files are complete"),
        (.absent, .send, "files that are sent again are replaced"),
        (.corrupt, .send, "files come back byte for byte"),
        (.cut, .send, "another transport on the place sees what was sent"),
        (.fail, .send, "both files of a listed version can be fetched"),
        (.loseAcknowledgement, .send, "two stores exchange through it"),
        (.absent, .snapshotWrite, "snapshot files are kept, replaced and deleted"),
        (.absent, .snapshotDelete, "snapshot files are kept, replaced and deleted"),
        (.corrupt, .snapshotRead, "snapshot files are kept, replaced and deleted"),
        (.corrupt, .snapshotList, "snapshot files are kept, replaced and deleted"),
    ])
    func findsWhatIsWrong(kind: FaultKind, operation: FaultOperations, check: String) {
        let plan = FaultPlan(seed: 5)
        plan.add(Fault(kind, on: operation))
        let results = TransportConformance.check(only: check) { TransportConformanceTests.memory(plan) }
        #expect(results.count == 1 && results.allSatisfy { $0.outcome == .failed && !$0.message.isEmpty }, "\(results)")
    }

    /// Fetching may return only a part of the files.
    @Test func allowsWhatIsAllowed() throws {
        let plan = FaultPlan()
        plan.add(Fault(.partial, on: [.fetchVersions, .fetchChanges]))
        try TransportConformance.run { TransportConformanceTests.memory(plan) }
        #expect(plan.injected > 100)
    }
}
