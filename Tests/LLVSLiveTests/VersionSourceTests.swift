import LLVSExchange
import LLVSTestHelpers
import Testing

@testable import LLVSCore
@testable import LLVSLive

/// What one side of a direct connection reads for the other: docs/live-protocol.md, "WANT and BLOB".
@Suite("Live: large values") struct VersionSourceTests {
    /// Two compressible values of 3 MiB in two versions, and a third version that names the first value again.
    private func source() throws -> (source: VersionSource, values: [[UInt8]], digests: [[UInt8]]) {
        var options = Store.Options()
        options.storage = .memory
        let store = try Store(path: "", options: options)
        let values = (0..<2).map { n in Filling.runs(of: 7, count: 3 << 20, from: UInt8(n)) }
        var source = VersionSource(store), last: Version?
        for (n, value) in [values[0], values[1], values[0]].enumerated() {
            last = try store.makeVersion(basedOn: last?.id, changes: [.insert(try ValueID("large \(n)"), data: value)])
            _ = try source.payload(of: try #require(last).id)
        }
        return (source, values, values.map { value in value.withUnsafeBytes { SHA256.digest($0) } })
    }

    @Test func eachValueIsReadTwiceForEachTimeThatItIsNamed() throws {
        var (source, values, digests) = try source()
        for n in [0, 1, 0, 1, 0, 0] {
            var got: [UInt8] = []
            while got.count < values[n].count { got += try source.piece(digests[n], UInt64(got.count), 256 << 10) }
            #expect(got == values[n])
        }
        #expect(try source.piece(digests[0], UInt64(values[0].count), 10).isEmpty)
    }

    /// Each request inflates a value from its beginning, so a request for one byte would cost all of it.
    @Test(arguments: [[0, 1], [0]]) func whoAsksAgainAndAgainIsTurnedAway(_ order: [Int]) throws {
        var (source, _, digests) = try source()
        var read = 0
        let fault = #expect(throws: LiveFault.self) {
            for _ in 0..<1_000 {
                for n in order {
                    // The last byte, and the one before it.
                    for offset in [(3 << 20) - 1, (3 << 20) - 2] {
                        _ = try source.piece(digests[n], UInt64(offset), 1)
                        read += 1
                    }
                }
            }
        }
        #expect(fault?.code == .bound && read <= 2 * (2 * 3 + VersionSource.begunLimit))
        // Acknowledged versions are no longer named.
        source.forget()
        #expect(try source.piece(digests[0], 0, 1).isEmpty)
    }

    #if DEBUG
    /// Each frame of a peer may say how far it is. Recording that does not visit all versions.
    @Test func whatAPeerSaysOfItsOrderIsNotedAtOnce() throws {
        var options = Store.Options()
        options.storage = .memory
        let store = try Store(path: "", options: options), count = 50
        var last: Version?
        for n in 0..<count { last = try store.makeVersion(basedOn: last?.id, changes: [.insert(try ValueID("x"), data: [UInt8(n)])]) }
        let knowledge = PeerKnowledge.of(store), device = [UInt8](repeating: 1, count: 32)
        let since = LiveFrame.Since(incarnation: .random(), ordinal: 7)
        #expect(Work.versions.counting { for _ in 0..<10 { knowledge.note(since, of: device, in: store) } } == 0)
        var known: LiveFrame.Since?
        #expect(Work.versions.counting { known = knowledge.since(of: device, in: store) } >= count)
        #expect(known == since)
    }
    #endif
}
