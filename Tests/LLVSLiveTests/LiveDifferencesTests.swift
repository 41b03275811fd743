import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange
@testable import LLVSLive

/// Values sent over a link as differences: docs/live-protocol.md, "DATA".
@Suite("Live: differences") struct LiveDifferencesTests {
    typealias Wire = PeerSessionTests.Wire

    private func store(_ directory: String? = nil) throws -> Store {
        var options = Store.Options()
        options.durability = .normal
        if directory == nil { options.storage = .memory }
        return try Store(path: directory.map { $0 + "/store" } ?? "", options: options)
    }

    /// Saves edits of an incompressible value, each on the one before.
    private func edit(_ store: Store, _ text: inout [UInt8], _ count: Int, on before: VersionID? = nil) throws -> [VersionID] {
        var head = before, made: [VersionID] = []
        for i in 0..<count {
            if head != nil { text[(i * 7_919 + 500) % text.count] ^= 1 }
            let version = try store.makeVersion(basedOn: head, changes: [.update(id("note"), data: text)]).id
            made.append(version)
            head = version
        }
        return made
    }

    private func expectSame(_ a: Store, _ b: Store, _ versions: [VersionID]) throws {
        for version in versions {
            let value = try #require(try a.value(id("note"), at: version))
            #expect(try b.value(id("note"), at: version)?.data == value.data)
        }
    }

    @Test func anEditOfALongTextTakesFewBytes() throws {
        let a = try store(), b = try store()
        var text = Filling.noise(1, 60_000)
        var versions = try edit(a, &text, 30)
        var wire = try Wire(a, b)
        try wire.run()
        #expect(wire.carried < 60_000 + 30 * 400 + 2_000)
        // Versions are pushed one by one, in both directions.
        for (from, _) in [(a, b), (b, a), (a, b)] {
            let before = wire.carried
            versions += try edit(from, &text, 1, on: versions.last)
            try wire.a.storeChanged()
            try wire.b.storeChanged()
            try wire.run()
            #expect(wire.carried - before < 1_000)
        }
        try expectSame(a, b, versions)
        try expectSame(b, a, versions)
        #expect(try b.statistics().differences >= 31)
        #expect(try b.verifyRecords(OperationControl()).isWhole)
    }

    /// A peer that does not announce that it reads differences gets whole values.
    @Test func oneThatReadsNoneGetsWholeValues() throws {
        let a = try store(), b = try store()
        PeerKnowledge.of(b).readsNoDifferences(of: [], isKnown: false)
        var text = Filling.noise(1, 60_000)
        let versions = try edit(a, &text, 4)
        var wire = try Wire(a, b)
        try wire.run()
        #expect(wire.carried > 4 * 60_000)
        try expectSame(a, b, versions)
        // In the other direction there are differences.
        let carried = wire.carried
        let more = try edit(b, &text, 1, on: versions.last)
        try wire.b.storeChanged()
        try wire.run()
        #expect(wire.carried - carried < 1_000)
        try expectSame(b, a, more)
    }

    /// A version whose base is damaged at the receiver is refused, and comes whole over the next link.
    @Test func aDamagedBaseKeepsNothingOut() throws {
        try withTemporaryDirectory { directory in
            let a = try store()
            var b = try store(directory), text = Filling.noise(1, 60_000)
            let versions = try edit(a, &text, 3)
            var wire = try Wire(a, b)
            try wire.run()
            try wire.a.close()
            try wire.run()
            try b.close()
            try flip(Filling.noise(1, 60_000).prefix(64), in: directory)
            b = try store(directory)
            let last = try edit(a, &text, 2, on: versions.last)
            wire = try Wire(a, b)
            try wire.run()
            let problems = wire.b.takeProblems()
            #expect(problems.first?.name == last[0].description && problems.first?.error.message.contains("Connect again") == true)
            #expect(try b.version(last[0]) == nil)
            try wire.a.close()
            try wire.run()
            wire = try Wire(a, b)
            try wire.run()
            try expectSame(a, b, last)
            #expect(wire.b.takeProblems().isEmpty)
            try wire.a.close()
            try wire.run()
            try b.close()
        }
    }

    private func payloads(_ store: Store, _ versions: [VersionID]) throws -> [[UInt8]] {
        var source = VersionSource(store, hasDifferences: true)
        return try versions.map { try source.payload(of: $0) }
    }

    /// The base is missing although the predecessors are present.
    @Test func aMissingBaseIsReported() throws {
        let a = try store(), b = try store()
        var text = Filling.noise(1, 20_000)
        // The last version has place 4, so its base is the one with place 3.
        let versions = try edit(a, &text, 5)
        let sent = try payloads(a, versions)
        #expect(sent[0].count > 20_000 && sent[1].count < 300 && sent[4].count < 300)
        var sink = VersionSink(b)
        sink.hasDifferences = true
        for one in [sent[0], sent[4]] {
            try sink.append(one, came: one.count)
            try sink.run()
        }
        try sink.flush()
        #expect(sink.takeAdded() == [versions[0]])
        #expect(sink.takeProblems().map(\.name) == [versions[4].description] && sink.refused == 1)
        #expect(!PeerKnowledge.of(b).readsDifferences(of: [1]))
    }

    /// A base that cannot be read, or too many differences, concern the links with that device. Unknown devices count as one.
    @Test func oneDeviceThatIsRefusedIsNotAll() throws {
        let a = try store(), b = try store(), identities = (Filling.noise(7, 32), Filling.noise(8, 32))
        let key = try PeerSession.publicKey(of: identities.0)
        var text = Filling.noise(1, 60_000)
        let first = try edit(a, &text, 1)
        var wire = try Wire(a, b, identities: identities)
        try wire.run()
        try wire.a.close()
        try wire.run()
        let made = try edit(a, &text, 40, on: first.last), known = PeerKnowledge.of(b)
        wire = try Wire(a, b, identities: identities)
        wire.b.receiving.sink = VersionSink(b, account: smallAccount())
        wire.a.sending.source = VersionSource(a)
        #expect { try wire.run() } throws: { ($0 as? StoreError)?.code == .tooLarge }
        #expect(!known.readsDifferences(of: key) && known.readsDifferences(of: [1]))
        let carried = try made.filter { try b.version($0) == nil }.count * 60_000
        wire = try Wire(a, b, identities: identities)
        try wire.run()
        #expect(wire.carried > carried)
        try expectSame(a, b, made)
        known.readsNoDifferences(of: [2], isKnown: false)
        #expect(!known.readsDifferences(of: [1]))
    }

    /// A peer that did not announce that it reads differences must not get one.
    @Test func oneThatWasNotAnnouncedEndsTheLink() throws {
        let a = try store(), b = try store()
        var text = Filling.noise(1, 20_000)
        let sent = try payloads(a, edit(a, &text, 2))
        var sink = VersionSink(b)
        try sink.append(sent[0] + sent[1], came: 1)
        let fault = #expect(throws: LiveFault.self) { try sink.run() }
        #expect(fault?.code == .version)
    }

    /// A difference of some 100 bytes can turn 60,000 bytes into 60,000 others. The total that a link computes is limited in proportion to
    /// what it received.
    @Test func differencesAreBoundedByWhatCame() throws {
        let a = try store()
        var text = Filling.noise(1, 60_000)
        let versions = try edit(a, &text, 40), sent = try payloads(a, versions)
        for (least, came, taken) in [(600_000, 0, 5), (0, 100, 39), (0, 7, 0), (0, 8, 39)] as [(UInt64, Int, Int)] {
            var sink = VersionSink(try store(), account: SourceAccount(leastDifferences: least)), read = 0
            sink.hasDifferences = true
            try sink.append(sent[0], came: 0)
            try sink.run()
            do {
                for one in sent.dropFirst() {
                    try sink.append(one, came: came)
                    try sink.run()
                    read += 1
                }
            } catch let fault as LiveFault { #expect(fault.code == .bound) }
            #expect(read == taken, "\(least) \(came)")
        }
    }

    /// An account with room for few differences of 60,000 bytes. Each whole value adds room for as many again.
    private func smallAccount() -> SourceAccount { SourceAccount(leastDifferences: 600_000, differenceFactor: 10) }

    /// Two stores in sync, and then 40 edits in the first one.
    private func edited(_ body: (_ a: Store, _ b: Store, _ made: [VersionID], _ wire: Wire) throws -> Void) throws {
        let a = try store(), b = try store()
        var text = Filling.noise(1, 60_000)
        let first = try edit(a, &text, 1)
        var wire = try Wire(a, b)
        try wire.run()
        try wire.a.close()
        try wire.run()
        let made = try edit(a, &text, 40, on: first.last)
        wire = try Wire(a, b)
        wire.b.receiving.sink = VersionSink(b, account: smallAccount())
        try body(a, b, made, wire)
    }

    /// A sender counts as the receiver does, and sends some values whole, so the link continues.
    @Test func aSenderObeysTheBound() throws {
        try edited { a, b, made, wire in
            var wire = wire
            wire.a.sending.source = VersionSource(a, account: smallAccount())
            try wire.run()
            #expect(wire.carried > 60_000 && wire.carried < 20 * 60_000)
            #expect(wire.a.state.phase == .inStep && wire.b.state.phase == .inStep)
            try expectSame(a, b, made)
            #expect(PeerKnowledge.of(b).readsDifferences(of: [1]))
        }
    }

    /// A sender that ignores the bound: versions that arrive before it is exceeded remain, and the next link brings the rest as whole
    /// values.
    @Test func aSenderThatDoesNotObeyTheBoundGetsOnOverTheNextLink() throws {
        try edited { a, b, made, wire in
            var wire = wire
            wire.a.sending.source = VersionSource(a)
            #expect { try wire.run() } throws: { ($0 as? StoreError)?.code == .tooLarge }
            let here = try made.filter { try b.version($0) != nil }.count
            #expect(here >= 5 && here < 40)
            wire = try Wire(a, b)
            try wire.run()
            #expect(wire.carried > (40 - here) * 60_000)
            try expectSame(a, b, made)
        }
    }

    /// Versions that the store already has are neither counted nor computed.
    @Test func presentVersionsAreNotCounted() throws {
        let a = try store(), b = try store()
        var text = Filling.noise(1, 60_000)
        let versions = try edit(a, &text, 40), sent = try payloads(a, versions)
        var wire = try Wire(a, b)
        try wire.run()
        var sink = VersionSink(b, account: SourceAccount(leastDifferences: 0, differenceFactor: 0))
        sink.hasDifferences = true
        for one in sent { try sink.append(one, came: one.count) }
        try sink.run()
        try sink.flush()
        #expect(sink.takeAdded().isEmpty && sink.refused == 0)
        #expect(try b.history().count == a.history().count)
    }
}
