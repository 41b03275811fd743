import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSLive

/// Tests which link was asked for which versions: docs/live-protocol.md, "NEWS".
@Suite("Live: versions that were asked for") struct AskedVersionsTests {
    private final class Link {}
    private let first = Link(), second = Link()
    private var one: ObjectIdentifier { ObjectIdentifier(first) }
    private var two: ObjectIdentifier { ObjectIdentifier(second) }

    private func store() throws -> Store {
        var options = Store.Options()
        options.storage = .memory
        return try Store(path: "", options: options)
    }
    private func ids(_ range: Range<Int>) throws -> [VersionID] { try range.map { try VersionID("v\($0)") } }

    @Test func oneLinkIsAskedAtATime() throws {
        let store = try store(), known = PeerKnowledge.of(store), both = try ids(0..<2)
        func ask(_ ids: [VersionID], _ link: ObjectIdentifier, at now: Double, even: Bool = false) throws -> [VersionID]? {
            try known.lacking(ids, over: link, in: store, evenElsewhere: even, isLate: !even, at: now)
        }
        #expect(try ask([both[0]], one, at: 0) == [both[0]])
        // All of them are requested as a whole, since there is one answer. Versions that wait do not count as requested.
        #expect(try ask(both, two, at: 1) == nil)
        #expect(try ask([both[1]], one, at: 1) == [both[1]])
        #expect(try ask(both, one, at: 2) == both, "the same link may ask again")
        #expect(try ask(both, two, at: 2, even: true) == both)
        #expect(try ask(both, one, at: 2) == nil, "they are the other's now")
        // A side that sends something is waited for longer.
        known.noteHeard(two, at: 4)
        #expect(try ask(both, one, at: 6.5) == nil)
        #expect(try ask(both, one, at: 7.5) == both)
        known.leave(two)
        #expect(try ask(both, two, at: 8) == nil, "versions requested from another link meanwhile remain requested")
        known.leave(one)
        #expect(try ask(both, two, at: 8) == both)
        known.noteCame(both, over: one)
        #expect(try ask(both, one, at: 8) == both)
    }

    /// If a side was asked and sent nothing, this device does not wait for it again until it has sent as many versions as it failed to
    /// send.
    @Test func whoWasIdleIsNotWaitedFor() throws {
        var asked = AskedVersions(), now = 0.0
        let all = try ids(0..<20)
        /// Whether the second link waits for a version that the first was asked for. After a while it takes over.
        func waits(_ id: VersionID) -> Bool {
            now += 10
            asked.note([id], over: one, at: now)
            // The first link sends something all the time.
            now += AskedVersions.patience
            asked.heard(one, at: now)
            defer { asked.note([id], over: two, at: now) }
            return asked.isElsewhere(id, than: two, at: now)
        }
        #expect(waits(all[0]))
        #expect(!waits(all[1]) && !waits(all[2]))
        asked.came([all[1]], over: one)
        #expect(waits(all[3]) && !waits(all[4]), "it was idle twice")
        asked.came([all[5]], over: one)
        #expect(!waits(all[6]))
        asked.came([all[7]], over: two)
        #expect(!waits(all[8]))
        asked.came([all[9]], over: one)
        #expect(waits(all[10]))
        #expect(!waits(all[11]))
        asked.end(one)
        #expect(waits(all[12]))
        // A request that a link makes because it is closing does not make the other link count as idle.
        asked.end(one)
        asked.note([all[13]], over: one, at: now)
        asked.note([all[13]], over: two, isLate: false, at: now)
        #expect(waits(all[14]))
    }

    @Test func whatCameIsNotAskedFor() throws {
        let store = try store(), known = PeerKnowledge.of(store)
        let made = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("a"), data: [1])]).id
        #expect(try known.lacking([made], over: one, in: store, evenElsewhere: false) == [])
        let other = try ids(0..<1)
        #expect(try known.lacking([made] + other, over: one, in: store, evenElsewhere: false) == other)
    }

    /// A side that announces ever more versions, and sends none.
    @Test func whatIsKeptIsBounded() throws {
        var asked = AskedVersions()
        for number in 0..<40 { asked.note(try ids(number * 1_000..<(number + 1) * 1_000), over: one, at: 0) }
        let all = try ids(0..<40_000)
        #expect(all.filter { asked.isElsewhere($0, than: two, at: 0) }.count == 1_000)
        asked.end(one)
        #expect(!all.contains { asked.isElsewhere($0, than: two, at: 0) })
    }
}
