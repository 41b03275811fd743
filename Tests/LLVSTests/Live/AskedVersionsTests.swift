import Testing
@testable import LLVS

/// What was asked for over which link: docs/live-protocol.md, "NEWS".
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
            try known.lacking(ids, over: link, in: store, evenElsewhere: even, at: now)
        }
        #expect(try ask([both[0]], one, at: 0) == [both[0]])
        // As a whole, as there is one answer; what waits is not taken for asked.
        #expect(try ask(both, two, at: 1) == nil)
        #expect(try ask([both[1]], one, at: 1) == [both[1]])
        #expect(try ask(both, one, at: 2) == both, "the same link may ask again")
        #expect(try ask(both, two, at: 2, even: true) == both)
        #expect(try ask(both, one, at: 2) == nil, "they are the other's now")
        // Who sends something is waited for longer.
        known.noteHeard(two, at: 4)
        #expect(try ask(both, one, at: 6.5) == nil)
        #expect(try ask(both, one, at: 7.5) == both)
        known.leave(two)
        #expect(try ask(both, two, at: 8) == nil, "what another link was asked for meanwhile stays so")
        known.leave(one)
        #expect(try ask(both, two, at: 8) == both)
        known.noteCame(both)
        #expect(try ask(both, one, at: 8) == both)
    }

    @Test func whatCameIsNotAskedFor() throws {
        let store = try store(), known = PeerKnowledge.of(store)
        let made = try store.makeVersion(basedOn: nil, changes: [.insert(ValueID("a"), data: [1])]).id
        #expect(try known.lacking([made], over: one, in: store, evenElsewhere: false) == [])
        let other = try ids(0..<1)
        #expect(try known.lacking([made] + other, over: one, in: store, evenElsewhere: false) == other)
    }

    /// Who tells of ever more, and sends none of it.
    @Test func whatIsKeptIsBounded() throws {
        var asked = AskedVersions()
        for number in 0..<40 { asked.note(try ids(number * 1_000..<(number + 1) * 1_000), over: one, at: 0) }
        let all = try ids(0..<40_000)
        #expect(all.filter { asked.isElsewhere($0, than: two, at: 0) }.count == 1_000)
        asked.end(one)
        #expect(!all.contains { asked.isElsewhere($0, than: two, at: 0) })
    }
}
